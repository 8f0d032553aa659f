"""Which domains and instance directories are leftovers; above all, which are not."""

from __future__ import annotations

import dataclasses as d
import typing as t

import pytest

from ......plugins.module_utils._common.errors import InvalidInput
from ......plugins.module_utils._core.facts.index import SnapshotIndex
from ......plugins.module_utils._core.options.policy import Policy
from ......plugins.module_utils._hypervisors.guest_rules import (
    GuestFinding,
    check_compute_hosts,
    judge_guests,
    list_servers_to_look_up,
)
from ......plugins.module_utils._hypervisors.guests import Guest, parse_guests
from ..judging import NO_MINIMUM_AGE
from ..world import NOW, World, answer

STRANGER = "0a000000-0000-4000-8000-000000000001"
LONG_AGO = "2020-11-20T12:00:00Z"


UNDECIDED, PROTECTED, ORPHANED = "undecided", "protected", "orphaned"
Facts = dict[str, t.Any]


def _domain(uuid: str, state: str = "shut off", **facts: t.Any) -> Facts:
    nova = {"name": "web-7", "flavor": "m1", "project": None, "user": None, "created_at": LONG_AGO}
    found = {"uuid": uuid, "name": "instance-00000001", "state": state, "nova": nova, "disks": []}
    return {**found, **facts}


def _directory(uuid: str, **facts: t.Any) -> Facts:
    found = {"uuid": uuid, "name": uuid, "kind": "instance", "age_seconds": 10**8, "inode": 1}
    return {**found, "open": False, "link": False, "shared": False, **facts}


def _result(host: str, *domains: Facts, **told: t.Any) -> Facts:
    """Return what `hypervisor_guest_info` returns about a host."""
    found = {"host": host, "read_at": NOW, "domains": list(domains), "directories": []}
    return {**found, **told}


class Site(World):
    """The host `here` with guests, and the host `there`; each has a server of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.here, self.there = self.host("here"), self.host("there")
        self.guest = self.server(self.here, self.here)
        self.neighbour = self.server(self.there, self.there)

    def found(self, *domains: Facts, host: str = "here", **told: t.Any) -> list[Guest]:
        own = (_domain(self.guest, "running"),) if host == "here" else ()
        return parse_guests(_result(host, *own, *domains, **told))

    def judged(
        self, guests: list[Guest], policy: Policy = NO_MINIMUM_AGE, **changes: t.Any
    ) -> list[GuestFinding]:
        snapshot = self.snapshot(**changes)
        moves = answer("GET /os-migrations?host=here", 200, self._migrations_at("here"))
        asked = {}
        for uuid in list_servers_to_look_up(guests, SnapshotIndex(snapshot)):
            asked[uuid] = self._evidence(uuid)
            if asked[uuid].server.status == 404:
                asked[uuid] = d.replace(asked[uuid], host_migrations=(moves,))
        return judge_guests(guests, SnapshotIndex(d.replace(snapshot, evidence=asked)), policy)

    def verdicts(self, uuid: str, policy: Policy = NO_MINIMUM_AGE, **changes: t.Any) -> set[str]:
        """Return the verdicts for a shut off domain and for a directory of that server.

        The other host has a directory of it, too.
        """
        beside = self.beside(_directory(uuid, inode=2))
        here = self.found(_domain(uuid), directories=[_directory(uuid)])
        found = [
            finding
            for finding in self.judged([*here, *beside], policy, **changes)
            if finding.guest.host == "here"
        ]
        assert [each.guest.kind for each in found] == ["leftover_directory", "leftover_domain"]
        return {finding.decision.verdict for finding in found}

    def beside(self, *directories: Facts, **told: t.Any) -> list[Guest]:
        """Return what the other host has: its own server, and these directories."""
        neighbour = _domain(self.neighbour, "running")
        return self.found(neighbour, directories=directories, host="there", **told)

    def about(
        self, *domains: Facts, policy: Policy = NO_MINIMUM_AGE, **told: t.Any
    ) -> tuple[str, str]:
        """Return the verdict and the reason for the only guest without a server here."""
        return self.told(self.found(*domains, **told), policy)

    def told(
        self, guests: list[Guest], policy: Policy = NO_MINIMUM_AGE, **changes: t.Any
    ) -> tuple[str, str]:
        (finding,) = self.judged(guests, policy, **changes)
        return finding.decision.verdict, finding.decision.reason.id

    def gone(self) -> str:
        server = self.server(self.here)
        self.delete(server)
        return server

    def moved(self, status: str = "confirmed", type: str = "migration") -> str:
        server = self.server(self.there, self.there)
        self.migration(server, self.here, self.there, status, type=type)
        return server

    def marked_by_hand(self) -> str:
        server = self.server(self.here)
        self.delete_by_hand(server)
        return server

    def elsewhere(self, *ends: str, status: str = "confirmed", type: str = "migration") -> str:
        """Return a server on the other host; `ends` are those of its migration, if it has one."""
        server = self.server(self.there, self.there)
        if ends:
            self.migration(server, *ends, status, type=type)
        return server


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


def test_guest_of_a_server_on_this_host_is_not_a_finding(site: Site) -> None:
    resized = _directory(site.guest, name=f"{site.guest}_resize")

    assert site.judged(site.found(directories=[_directory(site.guest), resized])) == []


def test_guest_of_a_server_found_here_only_by_direct_lookup_is_not_a_finding(site: Site) -> None:
    site.nodes[site.here] = d.replace(site.nodes[site.here], servers=())
    hidden = answer("GET /os-hypervisors/detail", 200, tuple(site.nodes.values()))

    assert site.judged(site.found(), hypervisors=hidden) == []


@pytest.mark.parametrize("remembered", [True, False])
def test_guest_of_a_deleted_server_is_leftover(site: Site, remembered: bool) -> None:
    server = site.server(site.here)
    site.delete(server, remembered)

    assert site.verdicts(server) == {ORPHANED}


@pytest.mark.parametrize(
    ("make", "verdict", "reason"),
    [
        (Site.marked_by_hand, ORPHANED, "left_by_deleted_server"),
        (Site.moved, ORPHANED, "left_by_move"),
        (lambda site: site.moved("accepted", "evacuation"), PROTECTED, "migration_under_way"),
        (lambda site: site.moved("done", "evacuation"), PROTECTED, "evacuated_from_here"),
        (lambda site: site.moved("completed", "evacuation"), ORPHANED, "left_by_move"),
        (lambda site: site.elsewhere(), UNDECIDED, "no_migration_away"),
        (
            lambda site: site.elsewhere(site.there, site.here, status="reverted"),
            ORPHANED,
            "left_by_move",
        ),
        (
            lambda site: site.elsewhere(site.there, site.here),
            UNDECIDED,
            "settled_elsewhere_not_certain",
        ),
    ],
    ids=[
        "marked as deleted by hand",
        "moved away",
        "being evacuated",
        "evacuated, its host is not back",
        "evacuated, its host is back",
        "without a move",
        "moved back",
        "arrived here, and is reported elsewhere",
    ],
)
def test_domain_and_directory_of_a_server_have_the_verdict_of_its_fate(
    site: Site, make: t.Callable[[Site], str], verdict: str, reason: str
) -> None:
    server = make(site)

    assert site.verdicts(server) == {verdict}
    assert site.about(_domain(server)) == (verdict, reason)


def test_age_of_the_guest_counts_because_the_marking_has_no_time(site: Site) -> None:
    server = site.marked_by_hand()
    policy = Policy(min_age=0, unknown_min_age=86400)

    assert site.verdicts(server, policy) == {ORPHANED}
    young = _domain(server, nova={"created_at": "2026-11-20T11:00:00Z"})
    assert site.about(young, policy=policy)[0] == PROTECTED


@pytest.mark.parametrize("status", [403, 500])
@pytest.mark.parametrize("question", ["server", "migrations", "deleted_listing", "actions"])
def test_missing_answers_leave_a_server_not_proven_as_marked(
    site: Site, question: str, status: int
) -> None:
    server = site.marked_by_hand()
    site.answers(question, server, status)

    assert site.verdicts(server) == {UNDECIDED}


def test_guest_shown_by_a_hypervisor_is_not_leftover(site: Site) -> None:
    server = site.marked_by_hand()
    site.nodes[site.there] = d.replace(site.nodes[site.there], servers=(server,))

    assert site.verdicts(server) == {UNDECIDED}


@pytest.mark.parametrize("status", ["error", "failed", "cancelled"])
@pytest.mark.parametrize("type", ["migration", "resize", "live-migration", "evacuation"])
@pytest.mark.parametrize("towards", [True, False])
def test_unsuccessful_move_may_have_left_the_disk_here(
    site: Site, status: str, type: str, towards: bool
) -> None:
    ends = (site.there, site.here) if towards else (site.here, site.there)

    assert ORPHANED not in site.verdicts(site.elsewhere(*ends, status=status, type=type))


@pytest.mark.parametrize("type", ["live-migration", "evacuation"])
def test_failed_move_to_an_earlier_name_of_the_host_may_have_left_the_disk_here(
    site: Site, type: str
) -> None:
    server = site.elsewhere(site.here, site.there)
    failed = site.migration(server, site.there, site.here, "error", type=type)
    site.migrations[failed] = d.replace(
        site.migrations[failed], dest_compute="earlier", dest_node="earlier"
    )

    assert site.verdicts(server) == {UNDECIDED}
    assert site.about(_domain(server))[1] == "newest_move_did_not_leave"


@pytest.mark.parametrize(
    "status", ["migrating", "post-migrating", "finished", "reverting", "running", "accepted"]
)
def test_guest_under_way_is_protected(site: Site, status: str) -> None:
    assert site.verdicts(site.moved(status)) == {PROTECTED}


@pytest.mark.parametrize(
    "state",
    [
        {"status": "VERIFY_RESIZE"},
        {"status": "SOFT_DELETED"},
        {"status": "UNKNOWN"},
        {"status": "ERROR"},
        {"task_state": "resize_migrating"},
        {"task_state": "deleting"},
        {"status": "REBUILD"},
        {"task_known": False},
    ],
    ids=str,
)
def test_unsettled_server_protects_everything(site: Site, state: Facts) -> None:
    server = site.moved()
    site.servers[server] = d.replace(site.servers[server], **state)

    assert ORPHANED not in site.verdicts(server)


@pytest.mark.parametrize("status", ["BUILD", "SHELVED_OFFLOADED", "ERROR"])
def test_server_without_a_host_protects_everything(site: Site, status: str) -> None:
    server = site.server(status=status)

    assert ORPHANED not in site.verdicts(server)
    reason = site.about(_domain(server))[1]
    assert reason == ("being_built" if status == "BUILD" else "settled_elsewhere_not_certain")


@pytest.mark.parametrize("question", ["server", "migrations"])
@pytest.mark.parametrize("status", [403, 500, 503])
@pytest.mark.parametrize("make", [Site.gone, Site.moved])
def test_unreadable_guest_is_undecided(
    site: Site, question: str, status: int, make: t.Callable[[Site], str]
) -> None:
    server = make(site)
    site.answers(question, server, status)

    assert site.verdicts(server) == {UNDECIDED}


@pytest.mark.parametrize("question", ["deleted_listing", "actions", "marker"])
def test_unanswered_question_makes_absence_inconclusive(site: Site, question: str) -> None:
    site.answers(question, STRANGER, 500)

    assert site.verdicts(STRANGER) == {UNDECIDED}
    assert site.about(_domain(STRANGER))[1] == "not_proven_left_over"


def test_unanswered_listing_of_migrations_makes_absence_inconclusive(site: Site) -> None:
    unread = answer("GET /os-migrations", 500, None)

    assert site.verdicts(STRANGER, migrations=unread) == {UNDECIDED}
    assert site.verdicts(site.gone(), migrations=unread) == {UNDECIDED}


def test_server_that_lost_its_mapping_and_is_seen_elsewhere_is_undecided(site: Site) -> None:
    server = site.moved()
    site.unmapped.add(server)

    assert site.verdicts(server) == {UNDECIDED}


def test_absence_is_inconclusive_without_a_live_server_to_test_the_credentials(site: Site) -> None:
    guests = site.found(_domain(STRANGER))

    assert site.verdicts(STRANGER) == {ORPHANED}
    assert site.told(guests)[1] == "left_by_unknown_server"
    assert site.verdicts(STRANGER, samples=()) == {UNDECIDED}
    assert site.told(guests, samples=())[1] == "server_visibility_not_checked"


@pytest.mark.parametrize(
    ("is_looked_up", "reason"), [(False, "server_not_looked_up"), (True, "allocation_unread")]
)
def test_guest_that_is_not_read_is_undecided(site: Site, is_looked_up: bool, reason: str) -> None:
    guests, snapshot = site.found(_domain(STRANGER)), site.snapshot()
    if is_looked_up:
        evidence = d.replace(site._evidence(STRANGER), allocation=answer("GET /allocations", 503))
        snapshot = d.replace(snapshot, evidence={STRANGER: evidence})
    (finding,) = judge_guests(guests, SnapshotIndex(snapshot), NO_MINIMUM_AGE)

    assert (finding.decision.verdict, finding.decision.reason.id) == (UNDECIDED, reason)


ACTIVE_STATES = ["running", "paused", "in shutdown", "crashed", "pmsuspended", "idle", "no state"]


@pytest.mark.parametrize("state", ACTIVE_STATES)
def test_running_domain_is_protected_with_its_directory(site: Site, state: str) -> None:
    server = site.gone()
    found = site.judged(site.found(_domain(server, state), directories=[_directory(server)]))

    assert [finding.decision.verdict for finding in found] == [PROTECTED, PROTECTED]
    assert all(f"is {state}" in finding.decision.reason for finding in found)
    reasons = ["domain_of_directory_is_active", "domain_is_active"]
    assert [finding.decision.reason.id for finding in found] == reasons


def test_directory_is_protected_when_domains_were_not_read(site: Site) -> None:
    directories = [_directory(site.guest), _directory(site.gone())]
    guests = parse_guests(_result("here", directories=directories) | {"domains": None})

    assert site.told(guests) == (PROTECTED, "domain_of_directory_is_active")


def test_domain_not_created_by_nova_is_protected(site: Site) -> None:
    assert site.about(_domain(STRANGER, nova=None)) == (PROTECTED, "not_defined_by_nova")


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"link": True}, "symbolic_link"),
        ({"open": True}, "file_open"),
        ({"open": None}, "open_files_unknown"),
    ],
    ids=str,
)
def test_directory_in_use_is_protected(site: Site, facts: Facts, reason: str) -> None:
    assert site.about(directories=[_directory(site.gone(), **facts)]) == (PROTECTED, reason)


@pytest.mark.parametrize("folder", ["/var/lib/nova/instances", "/elsewhere/in/a/container"])
def test_directory_with_a_disk_of_another_domain_is_protected(site: Site, folder: str) -> None:
    server, owner = site.gone(), site.server(site.here, site.here, status="SHUTOFF")
    borrower = _domain(owner, name="borrower", disks=[f"{folder}/{server}/disk"])
    (finding,) = site.judged(site.found(borrower, directories=[_directory(server)]))

    assert (finding.decision.verdict, finding.decision.reason.id) == (PROTECTED, "disk_in_use")
    assert "borrower" in finding.decision.reason


def test_domain_does_not_protect_its_own_directory(site: Site) -> None:
    server = site.gone()
    own = _domain(server, disks=[f"/var/lib/nova/instances/{server}/disk"])
    found = site.judged(site.found(own, directories=[_directory(server)]))

    assert [finding.decision.verdict for finding in found] == [ORPHANED] * 2


@pytest.mark.parametrize("shared", [True, None])
def test_directory_on_shared_storage_is_protected_while_its_server_lives(
    site: Site, shared: bool | None
) -> None:
    moved, gone = (_directory(uuid, shared=shared) for uuid in (site.moved(), site.gone()))

    assert site.about(directories=[moved]) == (PROTECTED, "storage_may_be_shared")
    assert site.about(directories=[gone])[0] == ORPHANED


def test_leftover_younger_than_the_minimum_age_is_protected(site: Site) -> None:
    for server in (site.gone(), site.moved()):
        assert site.verdicts(server, Policy(min_age=4 * 3600)) == {PROTECTED}


def test_recently_changed_directory_is_protected(site: Site) -> None:
    server = site.gone()
    site.deleted[server] = d.replace(site.deleted[server], terminated_at=LONG_AGO)
    policy = Policy(min_age=3600)

    assert site.verdicts(server, policy) == {ORPHANED}
    for age in (3599, 0, None):
        changed = _directory(server, age_seconds=age)
        assert site.about(directories=[changed], policy=policy)[0] == PROTECTED


def test_guest_unknown_to_nova_must_be_old_itself(site: Site) -> None:
    policy = Policy(min_age=0, unknown_min_age=86400)
    changed = _directory(STRANGER, age_seconds=86399)

    assert site.verdicts(STRANGER, policy) == {ORPHANED}
    for created_at in (NOW, None):
        young = _domain(STRANGER, nova={"created_at": created_at})
        assert site.about(young, policy=policy) == (PROTECTED, "left_for_too_short")
    assert site.about(directories=[changed], policy=policy)[0] == PROTECTED


@pytest.mark.parametrize("name", ["here", "exclude the root by uuid"])
def test_excluded_host_and_excluded_server_are_protected(site: Site, name: str) -> None:
    server = site.gone()
    host = frozenset({name if name == "here" else site.here})

    assert site.verdicts(server, Policy(min_age=0, exclude_providers=host)) == {PROTECTED}
    excluded = Policy(min_age=0, exclude_consumers=frozenset({server}))
    assert site.verdicts(server, excluded) == {PROTECTED}


def test_host_without_any_of_its_servers_makes_everything_undecided(site: Site) -> None:
    """Somebody gave it the name of another host.

    Everything on it looks as if it had moved away.
    """
    guests = parse_guests(_result("here", _domain(site.moved())))

    assert site.told(guests) == (UNDECIDED, "servers_of_host_absent")


def test_host_with_running_foreign_servers_makes_everything_undecided(site: Site) -> None:
    """Nova has no server on the host whose name this one was given.

    So none of them can be missing here.
    """
    empty = site.host("empty")
    stopped = site.server(site.here, site.here, status="SHUTOFF")
    site.migration(stopped, empty, site.here, "confirmed")
    domains = _domain(site.guest, "running"), _domain(stopped)
    found = site.judged(parse_guests(_result("empty", *domains, directories=[_directory(stopped)])))

    assert [finding.decision.verdict for finding in found] == [UNDECIDED] * 3
    assert found[0].decision.reason.id == "domain_of_unlisted_server"


def test_wrong_cloud_makes_everything_undecided(site: Site) -> None:
    """The host has a namesake there, on which Nova has no server.

    That Nova knows nothing of what is here.
    """
    site.host("empty")
    living = "0b000000-0000-4000-8000-000000000001"
    domains = _domain(living, "running"), _domain(STRANGER)
    found = site.judged(
        parse_guests(_result("empty", *domains, directories=[_directory(STRANGER)]))
    )

    assert [finding.decision.verdict for finding in found] == [UNDECIDED] * 3


@pytest.mark.parametrize("own", [True, False])
def test_different_compute_node_of_nova_compute_makes_everything_undecided(
    site: Site, own: bool
) -> None:
    empty, server = site.host("empty"), site.server(site.here, site.here, status="SHUTOFF")
    site.migration(server, empty, site.here, "confirmed")
    told = {"compute_id": empty if own else site.here, "directories": [_directory(server)]}

    own_guests = site.found(directories=[_directory(server, inode=2)])
    found = site.judged([*parse_guests(_result("empty", _domain(server), **told)), *own_guests])

    assert {finding.decision.verdict for finding in found} == {ORPHANED if own else UNDECIDED}
    assert len(found) == 2
    assert found[0].decision.reason.id == ("left_by_move" if own else "wrong_compute_id")


def test_guest_not_created_by_nova_does_not_make_the_host_doubtful(site: Site) -> None:
    empty, server = site.host("empty"), site.elsewhere()
    site.migration(server, empty, site.there, "confirmed")
    domains = _domain(STRANGER, "running", nova=None), _domain(server)
    found = site.judged(parse_guests(_result("empty", *domains)))

    verdicts = {finding.guest.uuid: finding.decision.verdict for finding in found}
    assert verdicts == {STRANGER: PROTECTED, server: ORPHANED}


def test_domain_without_a_definition_time_is_protected(site: Site) -> None:
    untimed = _domain(site.gone(), nova={"created_at": "\n2020-11-20 12:00:00\n"})

    told = site.about(untimed, policy=Policy(min_age=4 * 3600))
    assert told == (PROTECTED, "younger_than_min_age")


def test_only_guests_that_nova_does_not_show_here_are_looked_up(site: Site) -> None:
    found = site.found(_domain(STRANGER), _domain(site.neighbour))
    listed = list_servers_to_look_up(found, SnapshotIndex(site.snapshot()))

    assert listed == sorted([STRANGER, site.neighbour])


def test_host_must_have_the_name_of_one_compute_service(site: Site) -> None:
    site.host("node-1", service="ironic")
    site.host("node-2", service="ironic")
    nodes = list(site.nodes.values())

    check_compute_hosts(["here", "there"], nodes)
    for name in ("somewhere", "ironic", "node-1", ""):
        with pytest.raises(InvalidInput, match="exactly one compute node"):
            check_compute_hosts(["here", name], nodes)


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"host": "here"},
        [],
        _result("here", {}),
        _result("here", _domain(STRANGER, nova="web-7")),
        _result("here", directories=[{"uuid": STRANGER, "name": STRANGER}]),
        _result("here", directories=[_directory(STRANGER, age_seconds="old")]),
    ],
    ids=str,
)
def test_incomplete_info_is_refused(told: t.Any) -> None:
    with pytest.raises(InvalidInput, match="hypervisor_guest_info"):
        parse_guests(told)


@pytest.mark.parametrize("uuid", ["../../etc", "", None, STRANGER.upper()])
def test_guest_id_that_is_not_a_uuid_is_refused(site: Site, uuid: t.Any) -> None:
    with pytest.raises(InvalidInput, match="valid UUID"):
        site.found(_domain(uuid))


def test_findings_differ_by_host_and_directory(site: Site) -> None:
    server = site.gone()
    names = (server, f"{server}_resize")
    directories = [_directory(server, name=name) for name in names]
    found = site.judged(site.found(_domain(server), directories=directories))

    assert [finding.guest.id for finding in found] == [
        *(f"leftover_directory/here/{name}" for name in names),
        f"leftover_domain/here/{server}",
    ]


@pytest.mark.parametrize("state", ACTIVE_STATES)
@pytest.mark.parametrize("status", ["done", "completed", "failed"])
def test_guest_that_runs_where_nova_does_not_have_it_is_a_finding(
    site: Site, state: str, status: str
) -> None:
    server = site.moved(status, "evacuation")
    directory, domain = site.judged(
        site.found(_domain(server, state), directories=[_directory(server)])
    )

    assert (domain.kind, domain.decision.verdict) == ("running_leftover", ORPHANED)
    assert ("nova-compute here destroys" in domain.decision.reason) == (status == "done")
    assert directory.decision.verdict == PROTECTED


@pytest.mark.parametrize("status", ["SHUTOFF", "ERROR", "PAUSED"])
@pytest.mark.parametrize("nova", [None, {"created_at": LONG_AGO}])
def test_guest_runs_elsewhere_in_whatever_state_nova_has_its_server(
    site: Site, status: str, nova: t.Any
) -> None:
    # It was started by hand, or a live migration went on without Nova.
    server = site.server(site.there, site.there, status=status)
    (finding,) = site.judged(site.found(_domain(server, "running", nova=nova)))

    assert finding.kind == "running_leftover"


def test_guest_runs_elsewhere_however_lately_nova_did_something(site: Site) -> None:
    server = site.moved("done", "evacuation")
    (finding,) = site.judged(site.found(_domain(server, "running")), Policy(min_age=10**9))

    assert finding.kind == "running_leftover"


def test_only_guest_of_a_server_is_not_called_a_second_one(site: Site) -> None:
    """libvirt has completed a live migration that Nova gave up: it runs here, and only here."""
    server = site.elsewhere(site.there, site.here, status="error", type="live-migration")
    (finding,) = site.judged(site.found(_domain(server, "running")))

    assert finding.kind == "running_leftover"
    assert finding.decision.reason.id == "guest_runs_elsewhere_for_nova"
    assert "Two guests" not in finding.decision.reason


def test_guest_of_a_server_without_a_host_runs_too(site: Site) -> None:
    server = site.server(status="SHELVED_OFFLOADED")
    (finding,) = site.judged(site.found(_domain(server, "running")))

    assert finding.kind == "running_leftover" and "on no host" in finding.decision.reason


@pytest.mark.parametrize(
    "change",
    [
        {"task_state": "migrating"},
        {"status": "VERIFY_RESIZE"},
        {"updated": "2026-11-20T12:00:01Z"},
        {"status": "UNKNOWN"},
    ],
    ids=str,
)
def test_guest_of_a_server_that_is_moving_is_no_second_one(site: Site, change: Facts) -> None:
    server = site.moved()
    assert site.about(_domain(server, "running"))[0] == ORPHANED
    site.servers[server] = d.replace(site.servers[server], **change)

    verdict, reason = site.about(_domain(server, "running"))
    assert verdict in (PROTECTED, UNDECIDED)
    assert (reason == "moved_since_it_was_read") is ("updated" in change)


@pytest.mark.parametrize("node", ["own", "none", "another"])
@pytest.mark.parametrize("evacuated", [True, False])
def test_guests_of_a_host_that_was_cut_off_and_evacuated_are_findings(
    site: Site, node: str, evacuated: bool
) -> None:
    """Nova has no server there any more, and all of them run."""
    empty = site.host("cut-off")
    server = site.server(site.here, site.here)
    stopped = site.server(site.here, site.here, status="SHUTOFF")
    for each in (server, stopped):
        kind = {"type": "evacuation"} if evacuated else {}
        site.migration(each, empty, site.here, "done", **kind)
    compute_id = {"own": empty, "none": None, "another": site.here}[node]
    domains = _domain(server, "running"), _domain(stopped)
    guests = parse_guests(_result("cut-off", *domains, compute_id=compute_id))
    found = {finding.guest.uuid: finding for finding in site.judged(guests)}

    proven = node == "own" or (node == "none" and evacuated)
    assert (found[server].kind == "running_leftover") == proven
    assert found[server].decision.verdict == (ORPHANED if proven else UNDECIDED)
    # Without a proof of which host it is, nothing may be changed there.
    assert node == "own" or found[stopped].decision.verdict == UNDECIDED


def test_directory_of_a_live_server_is_left_over_only_beside_another_one(site: Site) -> None:
    server = site.moved()
    one = site.found(directories=[_directory(server)])

    def judge(beside: list[Guest]) -> tuple[str, str]:
        found = site.judged([*one, *beside])
        (decision,) = (each.decision for each in found if each.guest.host == "here")
        return decision.verdict, decision.reason.id

    other = _directory(server, inode=2)
    assert judge(site.beside(other)) == (ORPHANED, "left_by_move")
    assert judge(site.beside()) == (PROTECTED, "other_directory_not_seen")
    for facts in (
        {"inode": 1},
        {"inode": None},
        # That host may see this directory, over a protocol that gives it a number of its own.
        {"shared": True},
        {"shared": None},
        {"name": f"{server}_resize"},
    ):
        assert judge(site.beside({**other, **facts}))[0] == PROTECTED, facts
    there = _result("there", directories=[other])
    assert judge(parse_guests(there)) == (ORPHANED, "left_by_move")
    # Of a host that may be another one, nothing is proven.
    doubtful = parse_guests({**there, "compute_id": site.here})
    assert judge(doubtful) == (PROTECTED, "other_directory_not_seen")


@pytest.mark.parametrize("status", ["ACTIVE", "SHUTOFF", "ERROR"])
@pytest.mark.parametrize("beside", [True, False])
def test_disks_that_a_cut_move_put_aside_are_named_with_the_way_back(
    site: Site, status: str, beside: bool
) -> None:
    server = site.server(site.here, site.here, status=status)
    site.migration(server, site.here, site.there, "error")
    names = [f"{server}_resize", *([server] if beside else [])]
    directories = [_directory(server, name=name) for name in names]
    (finding,) = site.judged(site.found(_domain(server), directories=directories))
    reason = finding.decision.reason

    assert (finding.guest.name, finding.decision.verdict) == (f"{server}_resize", UNDECIDED)
    assert reason.id == "put_aside_by_cut_off_move"
    assert f"rename {server}_resize to {server} " in reason and "--hard" in reason


@pytest.mark.parametrize(("source", "kind"), [("here", "resize"), ("there", "migration")])
def test_what_an_earlier_move_left_beside_the_disks_is_not_to_be_put_back(
    site: Site, source: str, kind: str
) -> None:
    """The last move was confirmed, and the server is only shut off."""
    server = site.server(site.here, site.here, status="SHUTOFF")
    site.migration(server, getattr(site, source), site.here, "confirmed", type=kind)
    directories = [_directory(server, name=f"{server}_resize"), _directory(server)]
    (finding,) = site.judged(site.found(_domain(server), directories=directories))

    assert (finding.guest.name, finding.decision.verdict) == (f"{server}_resize", UNDECIDED)
    assert finding.decision.reason.id == "left_by_earlier_move"
    assert f"rename {server}_resize" not in finding.decision.reason


def test_disks_that_a_move_puts_aside_now_are_protected(site: Site) -> None:
    server = site.server(site.here, site.here, task_state="resize_migrating")
    site.migration(server, site.here, site.there, "migrating")

    assert site.about(directories=[_directory(server, name=f"{server}_resize")])[0] == PROTECTED


def _quarantine(site: Site, uuid: str, **facts: t.Any) -> Facts:
    name = f"{uuid}.20200101T000000Z"
    found = {"uuid": uuid, "name": name, "age_seconds": 10**8, "shared": False, "inode": 1}
    return _result("here", _domain(site.guest, "running"), quarantined=[{**found, **facts}])


def test_directories_in_quarantine_are_judged_only_when_asked_for(site: Site) -> None:
    told = _quarantine(site, site.gone())

    assert site.judged(parse_guests(told)) == []
    (finding,) = site.judged(parse_guests(told, quarantined=True))
    assert finding.guest.quarantined and finding.decision.verdict == ORPHANED


def test_quarantine_is_kept_while_its_server_may_need_it(site: Site) -> None:
    def judge(uuid: str, *beside: Guest, **facts: t.Any) -> str | None:
        guests = parse_guests(_quarantine(site, uuid, **facts), quarantined=True)
        found = site.judged([*guests, *beside])
        return found[0].decision.verdict if found else None

    moved = site.moved()
    elsewhere = site.beside(_directory(moved, inode=2))
    assert judge(moved, *elsewhere) == ORPHANED
    assert judge(moved) == PROTECTED
    assert judge(moved, *elsewhere, shared=True) == PROTECTED
    # It came back, under the same directory or as one that is put aside.
    assert judge(site.guest) is None
    assert judge(site.guest, name=f"{site.guest}_resize.20200101T000000Z") is None
    unreadable = site.gone()
    site.answers("server", unreadable, 500)
    assert judge(unreadable) == UNDECIDED
