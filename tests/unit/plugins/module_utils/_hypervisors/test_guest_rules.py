"""Which domains and instance directories are leftovers; above all, which are not."""

from __future__ import annotations

import dataclasses as d
import typing as t

import pytest

from ......plugins.module_utils._common.errors import InvalidInput, Reason
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


def _domain(uuid: str, **facts: t.Any) -> dict[str, t.Any]:
    nova = {"name": "web-7", "flavor": "m1", "project": None, "user": None, "created_at": LONG_AGO}
    return {
        "uuid": uuid,
        "name": "instance-00000001",
        "state": "shut off",
        "nova": nova,
        "disks": [],
        **facts,
    }


def _directory(uuid: str, **facts: t.Any) -> dict[str, t.Any]:
    found = {
        "uuid": uuid,
        "name": uuid,
        "kind": "instance",
        "age_seconds": 10**8,
        "open": False,
        "link": False,
        "shared": False,
        "inode": 1,
    }
    return {**found, **facts}


class Site(World):
    """The host `here` with guests, and the host `there`; each has a server of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.here, self.there = self.host("here"), self.host("there")
        self.guest, self.neighbour = (
            self.server(self.here, self.here),
            self.server(self.there, self.there),
        )

    def found(
        self,
        *domains: dict[str, t.Any],
        directories: tuple[dict[str, t.Any], ...] = (),
        host: str = "here",
    ) -> list[Guest]:
        own = (_domain(self.guest, state="running"),) if host == "here" else ()
        return parse_guests(
            {
                "host": host,
                "read_at": NOW,
                "domains": [*own, *domains],
                "directories": list(directories),
            }
        )

    def judged(
        self, guests: list[Guest], policy: Policy = NO_MINIMUM_AGE, **changes: t.Any
    ) -> list[GuestFinding]:
        snapshot = self.snapshot(**changes)
        moves = answer("GET /os-migrations?host=here", 200, self._migrations_at("here"))
        about = {
            uuid: self._evidence(uuid)
            for uuid in list_servers_to_look_up(guests, SnapshotIndex(snapshot))
        }
        asked = {
            uuid: d.replace(one, host_migrations=(moves,)) if one.server.status == 404 else one
            for uuid, one in about.items()
        }
        return judge_guests(guests, SnapshotIndex(d.replace(snapshot, evidence=asked)), policy)

    def verdicts(
        self, uuid: str, policy: Policy = NO_MINIMUM_AGE, **changes: t.Any
    ) -> tuple[str, str]:
        """Return the verdicts for a shut off domain and for a directory of that server.

        The other host has a directory of it, too.
        """
        beside = self.beside(_directory(uuid, inode=2))
        found = self.judged(
            [*self.found(_domain(uuid), directories=(_directory(uuid),)), *beside],
            policy,
            **changes,
        )
        domain, directory = (finding for finding in found if finding.guest.host == "here")
        assert (domain.guest.kind, directory.guest.kind) == (
            "leftover_directory",
            "leftover_domain",
        )
        return directory.decision.verdict, domain.decision.verdict

    def beside(self, *directories: dict[str, t.Any]) -> list[Guest]:
        """Return what the other host has: its own server, and these directories."""
        neighbour = _domain(self.neighbour, state="running")
        return self.found(neighbour, directories=directories, host="there")

    def about(
        self,
        *domains: dict[str, t.Any],
        policy: Policy = NO_MINIMUM_AGE,
        directories: tuple[dict[str, t.Any], ...] = (),
    ) -> tuple[str, Reason]:
        (finding,) = self.judged(self.found(*domains, directories=directories), policy)
        return finding.decision.verdict, finding.decision.reason

    def gone(self) -> str:
        server = self.server(self.here)
        self.delete(server)
        return server

    def moved(self, status: str = "confirmed", type: str = "migration") -> str:
        server = self.server(self.there, self.there)
        self.migration(server, self.here, self.there, status, type=type)
        return server


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


def test_guest_of_a_server_on_this_host_is_not_a_finding(site: Site) -> None:
    assert (
        site.judged(
            site.found(
                directories=(
                    _directory(site.guest),
                    _directory(site.guest, name=f"{site.guest}_resize"),
                )
            )
        )
        == []
    )


def test_guest_of_a_server_found_here_only_by_direct_lookup_is_not_a_finding(site: Site) -> None:
    site.nodes[site.here] = d.replace(site.nodes[site.here], servers=())
    hidden = answer("GET /os-hypervisors/detail", 200, tuple(site.nodes.values()))

    assert site.judged(site.found(), hypervisors=hidden) == []


@pytest.mark.parametrize("remembered", [True, False])
def test_guest_of_a_deleted_server_is_leftover(site: Site, remembered: bool) -> None:
    server = site.server(site.here)
    site.delete(server, remembered)

    assert site.verdicts(server) == ("orphaned", "orphaned")


def _marked_by_hand(site: Site) -> str:
    server = site.server(site.here)
    site.delete_by_hand(server)
    return server


def test_guest_of_a_server_marked_as_deleted_by_hand_is_leftover(site: Site) -> None:
    server = _marked_by_hand(site)

    assert site.verdicts(server) == ("orphaned", "orphaned")
    assert site.about(_domain(server))[1].id == "left_by_deleted_server"


def test_age_of_the_guest_counts_because_the_marking_has_no_time(site: Site) -> None:
    server = _marked_by_hand(site)
    policy = Policy(min_age=0, unknown_min_age=86400)

    assert site.verdicts(server, policy) == ("orphaned", "orphaned")
    young = {
        "name": "web-7",
        "flavor": "m1",
        "project": None,
        "user": None,
        "created_at": "2026-11-20T11:00:00Z",
    }
    assert site.about(_domain(server, nova=young), policy=policy)[0] == "protected"


@pytest.mark.parametrize("status", [403, 500])
@pytest.mark.parametrize("question", ["server", "migrations", "deleted_listing", "actions"])
def test_missing_answers_leave_a_server_not_proven_as_marked(
    site: Site, question: str, status: int
) -> None:
    server = _marked_by_hand(site)
    site.answers(question, server, status)

    assert site.verdicts(server) == ("undecided", "undecided")


def test_guest_shown_by_a_hypervisor_is_not_leftover(site: Site) -> None:
    server = _marked_by_hand(site)
    site.nodes[site.there] = d.replace(site.nodes[site.there], servers=(server,))

    assert site.verdicts(server) == ("undecided", "undecided")


def test_guest_of_a_server_that_moved_away_is_leftover(site: Site) -> None:
    assert site.verdicts(site.moved()) == ("orphaned", "orphaned")


def test_guest_of_a_server_that_moved_back_is_leftover(site: Site) -> None:
    server = site.server(site.there, site.there)
    site.migration(server, site.there, site.here, "reverted")

    assert site.verdicts(server) == ("orphaned", "orphaned")


@pytest.mark.parametrize("status", ["error", "failed", "cancelled"])
@pytest.mark.parametrize("type", ["migration", "resize", "live-migration", "evacuation"])
@pytest.mark.parametrize("towards", [True, False])
def test_unsuccessful_move_may_have_left_the_disk_here(
    site: Site, status: str, type: str, towards: bool
) -> None:
    server = site.server(site.there, site.there)
    ends = (site.there, site.here) if towards else (site.here, site.there)
    site.migration(server, *ends, status, type=type)

    assert "orphaned" not in site.verdicts(server)


def test_guest_that_arrived_here_but_is_reported_elsewhere_is_undecided(
    site: Site,
) -> None:
    server = site.server(site.there, site.there)
    site.migration(server, site.there, site.here, "confirmed")

    assert site.verdicts(server) == ("undecided", "undecided")


@pytest.mark.parametrize("type", ["live-migration", "evacuation"])
def test_failed_move_to_an_earlier_name_of_the_host_may_have_left_the_disk_here(
    site: Site, type: str
) -> None:
    server = site.server(site.there, site.there)
    site.migration(server, site.here, site.there, "confirmed")
    failed = site.migration(server, site.there, site.here, "error", type=type)
    site.migrations[failed] = d.replace(
        site.migrations[failed], dest_compute="earlier", dest_node="earlier"
    )

    assert site.verdicts(server) == ("undecided", "undecided")
    assert site.about(_domain(server))[1].id == "newest_move_did_not_leave"


def test_guest_without_a_move_away_is_undecided(site: Site) -> None:
    server = site.server(site.there, site.there)

    assert site.verdicts(server) == ("undecided", "undecided")
    assert site.about(_domain(server))[1].id == "no_migration_away"


@pytest.mark.parametrize(
    ("status", "verdict", "reason"),
    [
        ("accepted", "protected", "migration_under_way"),
        ("done", "protected", "evacuated_from_here"),
        ("completed", "orphaned", "left_by_move"),
    ],
)
def test_evacuated_guest_is_left_to_nova_until_its_host_is_back(
    site: Site, status: str, verdict: str, reason: str
) -> None:
    server = site.moved(status, "evacuation")

    assert site.verdicts(server) == (verdict, verdict)
    assert site.about(_domain(server))[1].id == reason


@pytest.mark.parametrize(
    "status", ["migrating", "post-migrating", "finished", "reverting", "running", "accepted"]
)
def test_guest_under_way_is_protected(site: Site, status: str) -> None:
    assert site.verdicts(site.moved(status)) == ("protected", "protected")


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
def test_unsettled_server_protects_everything(site: Site, state: dict[str, t.Any]) -> None:
    server = site.moved()
    site.servers[server] = d.replace(site.servers[server], **state)

    assert "orphaned" not in site.verdicts(server)


@pytest.mark.parametrize("status", ["BUILD", "SHELVED_OFFLOADED", "ERROR"])
def test_server_without_a_host_protects_everything(site: Site, status: str) -> None:
    server = site.server(status=status)

    assert "orphaned" not in site.verdicts(server)
    reason = site.about(_domain(server))[1].id
    assert reason == ("being_built" if status == "BUILD" else "settled_elsewhere_not_certain")


@pytest.mark.parametrize("question", ["server", "migrations"])
@pytest.mark.parametrize("status", [403, 500, 503])
@pytest.mark.parametrize("which", ["gone", "moved"])
def test_unreadable_guest_is_undecided(site: Site, question: str, status: int, which: str) -> None:
    server = getattr(site, which)()
    site.answers(question, server, status)

    assert site.verdicts(server) == ("undecided", "undecided")


@pytest.mark.parametrize("question", ["deleted_listing", "actions", "marker"])
def test_unanswered_question_makes_absence_inconclusive(site: Site, question: str) -> None:
    site.answers(question, STRANGER, 500)

    assert site.verdicts(STRANGER) == ("undecided", "undecided")
    assert site.about(_domain(STRANGER))[1].id == "not_proven_left_over"


def test_unanswered_listing_of_migrations_makes_absence_inconclusive(site: Site) -> None:
    assert site.verdicts(STRANGER, migrations=answer("GET /os-migrations", 500, None)) == (
        "undecided",
        "undecided",
    )
    assert site.verdicts(site.gone(), migrations=answer("GET /os-migrations", 500, None)) == (
        "undecided",
        "undecided",
    )


def test_server_that_lost_its_mapping_and_is_seen_elsewhere_is_undecided(site: Site) -> None:
    server = site.moved()
    site.unmapped.add(server)

    assert site.verdicts(server) == ("undecided", "undecided")


def test_absence_is_inconclusive_without_a_live_server_to_test_the_credentials(site: Site) -> None:
    assert site.verdicts(STRANGER) == ("orphaned", "orphaned")
    assert site.about(_domain(STRANGER))[1].id == "left_by_unknown_server"
    assert site.verdicts(STRANGER, samples=()) == ("undecided", "undecided")
    guests = site.found(_domain(STRANGER))
    (finding,) = site.judged(guests, samples=())
    assert finding.decision.reason.id == "server_visibility_not_checked"


def test_guest_without_a_lookup_is_undecided(site: Site) -> None:
    (finding,) = judge_guests(
        site.found(_domain(STRANGER)), SnapshotIndex(site.snapshot()), NO_MINIMUM_AGE
    )

    assert finding.decision.verdict == "undecided"
    assert finding.decision.reason.id == "server_not_looked_up"


def test_guest_of_a_server_whose_allocation_is_not_known_is_undecided(site: Site) -> None:
    guests, snapshot = site.found(_domain(STRANGER)), site.snapshot()
    evidence = d.replace(site._evidence(STRANGER), allocation=answer("GET /allocations", 503))
    index = SnapshotIndex(d.replace(snapshot, evidence={STRANGER: evidence}))
    (finding,) = judge_guests(guests, index, NO_MINIMUM_AGE)

    assert finding.decision.verdict == "undecided"
    assert finding.decision.reason.id == "allocation_unread"


@pytest.mark.parametrize(
    "state", ["running", "paused", "in shutdown", "crashed", "pmsuspended", "idle", "no state"]
)
def test_running_domain_is_protected_with_its_directory(site: Site, state: str) -> None:
    server = site.gone()
    found = site.judged(site.found(_domain(server, state=state), directories=(_directory(server),)))

    assert [finding.decision.verdict for finding in found] == ["protected", "protected"]
    assert all(f"is {state}" in finding.decision.reason for finding in found)
    assert {finding.decision.reason.id for finding in found} == {
        "domain_is_active",
        "domain_of_directory_is_active",
    }


def test_directory_is_protected_when_domains_were_not_read(site: Site) -> None:
    guests = parse_guests(
        {
            "host": "here",
            "read_at": NOW,
            "domains": None,
            "directories": [_directory(site.guest), _directory(site.gone())],
        }
    )
    (finding,) = site.judged(guests)

    assert finding.decision.verdict == "protected"
    assert finding.decision.reason.id == "domain_of_directory_is_active"


def test_domain_not_created_by_nova_is_protected(site: Site) -> None:
    verdict, reason = site.about(_domain(STRANGER, nova=None))

    assert (verdict, reason.id) == ("protected", "not_defined_by_nova")


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"link": True}, "symbolic_link"),
        ({"open": True}, "file_open"),
        ({"open": None}, "open_files_unknown"),
    ],
    ids=str,
)
def test_directory_in_use_is_protected(site: Site, facts: dict[str, t.Any], reason: str) -> None:
    verdict, told = site.about(directories=(_directory(site.gone(), **facts),))

    assert (verdict, told.id) == ("protected", reason)


@pytest.mark.parametrize("folder", ["/var/lib/nova/instances", "/elsewhere/in/a/container"])
def test_directory_with_a_disk_of_another_domain_is_protected(site: Site, folder: str) -> None:
    server = site.gone()
    borrower = _domain(
        site.server(site.here, site.here, status="SHUTOFF"),
        name="borrower",
        disks=[f"{folder}/{server}/disk"],
    )

    assert site.about(borrower, directories=(_directory(server),)) == (
        "protected",
        "It contains a disk of domain borrower.",
    )
    assert site.about(borrower, directories=(_directory(server),))[1].id == "disk_in_use"


def test_domain_does_not_protect_its_own_directory(site: Site) -> None:
    server = site.gone()
    own = _domain(server, disks=[f"/var/lib/nova/instances/{server}/disk"])

    assert [
        finding.decision.verdict
        for finding in site.judged(site.found(own, directories=(_directory(server),)))
    ] == ["orphaned"] * 2


@pytest.mark.parametrize("shared", [True, None])
def test_directory_on_shared_storage_is_protected_while_its_server_lives(
    site: Site, shared: bool | None
) -> None:
    verdict, reason = site.about(directories=(_directory(site.moved(), shared=shared),))

    assert (verdict, reason.id) == ("protected", "storage_may_be_shared")
    assert site.about(directories=(_directory(site.gone(), shared=shared),))[0] == "orphaned"


def test_leftover_younger_than_the_minimum_age_is_protected(site: Site) -> None:
    for server in (site.gone(), site.moved()):
        assert site.verdicts(server, Policy(min_age=4 * 3600)) == ("protected", "protected")
    policy = Policy(min_age=0, unknown_min_age=86400)
    young = _domain(STRANGER, nova={"created_at": NOW})
    assert site.about(young, policy=policy)[1].id == "left_for_too_short"


def test_recently_changed_directory_is_protected(site: Site) -> None:
    server = site.gone()
    site.deleted[server] = d.replace(site.deleted[server], terminated_at=LONG_AGO)
    policy = Policy(min_age=3600)

    assert site.verdicts(server, policy) == ("orphaned", "orphaned")
    for age in (3599, 0, None):
        assert (
            site.about(directories=(_directory(server, age_seconds=age),), policy=policy)[0]
            == "protected"
        )


def test_guest_unknown_to_nova_must_be_old_itself(site: Site) -> None:
    policy = Policy(min_age=0, unknown_min_age=86400)
    young = {"created_at": NOW}

    assert site.verdicts(STRANGER, policy) == ("orphaned", "orphaned")
    assert site.about(_domain(STRANGER, nova=young), policy=policy)[0] == "protected"
    assert site.about(_domain(STRANGER, nova={"created_at": None}), policy=policy)[0] == "protected"
    assert (
        site.about(directories=(_directory(STRANGER, age_seconds=86399),), policy=policy)[0]
        == "protected"
    )


@pytest.mark.parametrize("name", ["here", "exclude the root by uuid"])
def test_excluded_host_and_excluded_server_are_protected(site: Site, name: str) -> None:
    server = site.gone()
    host = Policy(min_age=0, exclude_providers=frozenset({name if name == "here" else site.here}))

    assert site.verdicts(server, host) == ("protected", "protected")
    assert site.verdicts(server, Policy(min_age=0, exclude_consumers=frozenset({server}))) == (
        "protected",
        "protected",
    )


def test_host_without_any_of_its_servers_makes_everything_undecided(site: Site) -> None:
    """Somebody gave it the name of another host.

    Everything on it looks as if it had moved away.
    """
    moved = site.moved()
    found = [guest for guest in site.found(_domain(moved)) if guest.uuid != site.guest]
    (finding,) = site.judged(found)

    assert (
        finding.decision.verdict == "undecided"
        and finding.decision.reason.id == "servers_of_host_absent"
    )


def test_host_with_running_foreign_servers_makes_everything_undecided(site: Site) -> None:
    """Nova has no server on the host whose name this one was given.

    So none of them can be missing here.
    """
    empty = site.host("empty")
    stopped = site.server(site.here, site.here, status="SHUTOFF")
    site.migration(stopped, empty, site.here, "confirmed")
    told = {
        "domains": [_domain(site.guest, state="running"), _domain(stopped)],
        "directories": [_directory(stopped)],
    }

    found = site.judged(parse_guests({"host": "empty", "read_at": NOW, **told}))

    assert [finding.decision.verdict for finding in found] == ["undecided"] * 3
    assert found[0].decision.reason.id == "domain_of_unlisted_server"


def test_wrong_cloud_makes_everything_undecided(site: Site) -> None:
    """The host has a namesake there, on which Nova has no server.

    That Nova knows nothing of what is here.
    """
    site.host("empty")
    living = "0b000000-0000-4000-8000-000000000001"
    told = {
        "domains": [_domain(living, state="running"), _domain(STRANGER)],
        "directories": [_directory(STRANGER)],
    }

    found = site.judged(parse_guests({"host": "empty", "read_at": NOW, **told}))

    assert [finding.decision.verdict for finding in found] == ["undecided"] * 3


@pytest.mark.parametrize("own", [True, False])
def test_different_compute_node_of_nova_compute_makes_everything_undecided(
    site: Site, own: bool
) -> None:
    empty, server = site.host("empty"), site.server(site.here, site.here, status="SHUTOFF")
    site.migration(server, empty, site.here, "confirmed")
    told = {
        "compute_id": empty if own else site.here,
        "domains": [_domain(server)],
        "directories": [_directory(server)],
    }

    own_guests = site.found(directories=(_directory(server, inode=2),))
    found = site.judged(
        [*parse_guests({"host": "empty", "read_at": NOW, **told}), *own_guests],
    )

    assert [finding.decision.verdict for finding in found] == [
        "orphaned" if own else "undecided"
    ] * 2
    assert found[0].decision.reason.id == ("left_by_move" if own else "wrong_compute_id")


def test_guest_not_created_by_nova_does_not_make_the_host_doubtful(site: Site) -> None:
    empty, server = site.host("empty"), site.server(site.there, site.there)
    site.migration(server, empty, site.there, "confirmed")
    told = {
        "domains": [_domain(STRANGER, state="running", nova=None), _domain(server)],
        "directories": [],
    }

    found = {
        finding.guest.uuid: finding.decision.verdict
        for finding in site.judged(parse_guests({"host": "empty", "read_at": NOW, **told}))
    }

    assert found == {STRANGER: "protected", server: "orphaned"}


def test_domain_without_a_definition_time_is_protected(site: Site) -> None:
    gone = site.gone()
    told = {
        "name": "web-7",
        "flavor": "m1",
        "project": None,
        "user": None,
        "created_at": "\n2020-11-20 12:00:00\n",
    }
    (finding,) = site.judged(site.found(_domain(gone, nova=told)), Policy(min_age=4 * 3600))
    assert finding.decision.verdict == "protected"
    assert finding.decision.reason.id == "younger_than_min_age"


def test_only_guests_that_nova_does_not_show_here_are_looked_up(site: Site) -> None:
    found = site.found(_domain(STRANGER), _domain(site.neighbour))

    assert list_servers_to_look_up(found, SnapshotIndex(site.snapshot())) == sorted(
        [STRANGER, site.neighbour]
    )


def test_host_must_have_the_name_of_one_compute_service(site: Site) -> None:
    site.host("node-1", service="ironic")
    site.host("node-2", service="ironic")
    nodes = list(site.nodes.values())

    check_compute_hosts(["here", "there"], nodes)
    for name in ("somewhere", "ironic", "node-1", ""):
        with pytest.raises(InvalidInput, match="set host to the name"):
            check_compute_hosts(["here", name], nodes)


@pytest.mark.parametrize(
    "told",
    [
        *(
            {},
            {"host": "here"},
            {"host": "here", "read_at": NOW, "domains": [{}], "directories": []},
            [],
        ),
        {
            "host": "here",
            "read_at": NOW,
            "domains": [_domain(STRANGER, nova="web-7")],
            "directories": [],
        },
        {
            "host": "here",
            "read_at": NOW,
            "domains": [],
            "directories": [{"uuid": STRANGER, "name": STRANGER}],
        },
        {
            "host": "here",
            "read_at": NOW,
            "domains": [],
            "directories": [_directory(STRANGER, age_seconds="old")],
        },
    ],
    ids=str,
)
def test_incomplete_info_is_refused(told: t.Any) -> None:
    with pytest.raises(InvalidInput, match="guests must be results of hypervisor_guest_info"):
        parse_guests(told)


@pytest.mark.parametrize("uuid", ["../../etc", "", None, STRANGER.upper()])
def test_guest_id_that_is_not_a_uuid_is_refused(site: Site, uuid: t.Any) -> None:
    with pytest.raises(InvalidInput, match="which is not a valid UUID"):
        site.found(_domain(uuid))


def test_findings_differ_by_host_and_directory(site: Site) -> None:
    server = site.gone()
    names = (server, f"{server}_resize")
    found = site.judged(
        site.found(
            _domain(server), directories=tuple(_directory(server, name=name) for name in names)
        )
    )

    assert [finding.guest.id for finding in found] == [
        *(f"leftover_directory/here/{name}" for name in names),
        f"leftover_domain/here/{server}",
    ]


ACTIVE_STATES = ["running", "paused", "in shutdown", "crashed", "pmsuspended", "idle", "no state"]


@pytest.mark.parametrize("state", ACTIVE_STATES)
@pytest.mark.parametrize("status", ["done", "completed", "failed"])
def test_guest_that_runs_where_nova_does_not_have_it_is_a_finding(
    site: Site, state: str, status: str
) -> None:
    server = site.moved(status, "evacuation")
    directory, domain = site.judged(
        site.found(_domain(server, state=state), directories=(_directory(server),))
    )

    assert (domain.kind, domain.decision.verdict) == ("running_leftover", "orphaned")
    assert ("nova-compute here destroys" in domain.decision.reason) == (status == "done")
    assert directory.decision.verdict == "protected"


@pytest.mark.parametrize(
    "state", [{"status": "SHUTOFF"}, {"status": "ERROR"}, {"status": "PAUSED"}], ids=str
)
@pytest.mark.parametrize("nova", [None, {"created_at": LONG_AGO}])
def test_guest_runs_elsewhere_in_whatever_state_nova_has_its_server(
    site: Site, state: dict[str, t.Any], nova: t.Any
) -> None:
    # It was started by hand, or a live migration went on without Nova.
    server = site.server(site.there, site.there, **state)
    (finding,) = site.judged(site.found(_domain(server, state="running", nova=nova)))

    assert finding.kind == "running_leftover"


def test_guest_runs_elsewhere_however_lately_nova_did_something(site: Site) -> None:
    server = site.moved("done", "evacuation")
    (finding,) = site.judged(site.found(_domain(server, state="running")), Policy(min_age=10**9))

    assert finding.kind == "running_leftover"


def test_only_guest_of_a_server_is_not_called_a_second_one(site: Site) -> None:
    """libvirt has completed a live migration that Nova gave up: it runs here, and only here."""
    server = site.server(site.there, site.there)
    site.migration(server, site.there, site.here, "error", type="live-migration")
    (finding,) = site.judged(site.found(_domain(server, state="running")))

    assert finding.kind == "running_leftover"
    assert finding.decision.reason.id == "guest_runs_elsewhere_for_nova"
    assert "Two guests" not in finding.decision.reason


def test_guest_of_a_server_without_a_host_runs_too(site: Site) -> None:
    server = site.server(status="SHELVED_OFFLOADED")
    (finding,) = site.judged(site.found(_domain(server, state="running")))

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
def test_guest_of_a_server_that_is_moving_is_no_second_one(
    site: Site, change: dict[str, t.Any]
) -> None:
    server = site.moved()
    assert site.about(_domain(server, state="running"))[0] == "orphaned"
    site.servers[server] = d.replace(site.servers[server], **change)

    verdict, reason = site.about(_domain(server, state="running"))
    assert verdict in ("protected", "undecided")
    assert (reason.id == "moved_since_it_was_read") is ("updated" in change)


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
    told = {
        "host": "cut-off",
        "read_at": NOW,
        "compute_id": {"own": empty, "none": None, "another": site.here}[node],
        "domains": [_domain(server, state="running"), _domain(stopped)],
        "directories": [],
    }
    found = {finding.guest.uuid: finding for finding in site.judged(parse_guests(told))}

    proven = node == "own" or (node == "none" and evacuated)
    assert (found[server].kind == "running_leftover") == proven
    assert found[server].decision.verdict == ("orphaned" if proven else "undecided")
    # Without a proof of which host it is, nothing may be changed there.
    assert node == "own" or found[stopped].decision.verdict == "undecided"


def test_directory_of_a_live_server_is_left_over_only_beside_another_one(site: Site) -> None:
    server = site.moved()
    one = site.found(directories=(_directory(server),))

    def judge(*directories: dict[str, t.Any]) -> str:
        found = site.judged([*one, *site.beside(*directories)])
        (finding,) = (each for each in found if each.guest.host == "here")
        return finding.decision.verdict

    assert judge(_directory(server, inode=2)) == "orphaned"
    assert judge() == "protected"
    assert judge(_directory(server, inode=1)) == "protected"
    assert judge(_directory(server, inode=None)) == "protected"
    # That host may see this directory, over a protocol that gives it a number of its own.
    assert judge(_directory(server, inode=2, shared=True)) == "protected"
    assert judge(_directory(server, inode=2, shared=None)) == "protected"
    assert judge(_directory(server, inode=2, name=f"{server}_resize")) == "protected"
    # Of a host that may be another one, nothing is proven.
    (finding,) = site.judged(
        [*one, *parse_guests({**_result("there"), "directories": [_directory(server, inode=2)]})]
    )
    assert finding.decision.verdict == "orphaned"
    assert finding.decision.reason.id == "left_by_move"
    other_node = {"compute_id": site.here, "directories": [_directory(server, inode=2)]}
    (finding,) = site.judged([*one, *parse_guests({**_result("there"), **other_node})])
    assert finding.decision.verdict == "protected"
    assert finding.decision.reason.id == "other_directory_not_seen"


def _result(host: str) -> dict[str, t.Any]:
    return {"host": host, "read_at": NOW, "domains": [], "directories": []}


@pytest.mark.parametrize("status", ["ACTIVE", "SHUTOFF", "ERROR"])
@pytest.mark.parametrize("beside", [True, False])
def test_disks_that_a_cut_move_put_aside_are_named_with_the_way_back(
    site: Site, status: str, beside: bool
) -> None:
    server = site.server(site.here, site.here, status=status)
    site.migration(server, site.here, site.there, "error")
    directories = (_directory(server, name=f"{server}_resize"),)
    if beside:
        directories += (_directory(server),)
    (finding,) = site.judged(site.found(_domain(server), directories=directories))

    assert (finding.guest.name, finding.decision.verdict) == (f"{server}_resize", "undecided")
    assert (
        finding.decision.reason.id == "put_aside_by_cut_off_move"
        and f"rename {server}_resize to {server} " in finding.decision.reason
    )
    assert "--hard" in finding.decision.reason


@pytest.mark.parametrize(
    ("source", "kind", "status"),
    [("here", "resize", "confirmed"), ("there", "migration", "confirmed")],
)
def test_what_an_earlier_move_left_beside_the_disks_is_not_to_be_put_back(
    site: Site, source: str, kind: str, status: str
) -> None:
    """The last move was confirmed, and the server is only shut off."""
    server = site.server(site.here, site.here, status="SHUTOFF")
    site.migration(server, getattr(site, source), site.here, status, type=kind)
    directories = (_directory(server, name=f"{server}_resize"), _directory(server))
    (finding,) = site.judged(site.found(_domain(server), directories=directories))

    assert (finding.guest.name, finding.decision.verdict) == (f"{server}_resize", "undecided")
    assert finding.decision.reason.id == "left_by_earlier_move"
    assert "cannot start" not in finding.decision.reason
    assert f"rename {server}_resize" not in finding.decision.reason


def test_disks_that_a_move_puts_aside_now_are_protected(site: Site) -> None:
    server = site.server(site.here, site.here, task_state="resize_migrating")
    site.migration(server, site.here, site.there, "migrating")

    assert site.about(directories=(_directory(server, name=f"{server}_resize"),))[0] == "protected"


def _quarantined(uuid: str, **facts: t.Any) -> dict[str, t.Any]:
    name = f"{uuid}.20200101T000000Z"
    found = {"uuid": uuid, "name": name, "age_seconds": 10**8, "shared": False, "inode": 1}
    return {**found, **facts}


def test_directories_in_quarantine_are_judged_only_when_asked_for(site: Site) -> None:
    told = {**_result("here"), "domains": [_domain(site.guest, state="running")]}
    told["quarantined"] = [_quarantined(site.gone())]

    assert site.judged(parse_guests(told)) == []
    (finding,) = site.judged(parse_guests(told, quarantined=True))
    assert finding.guest.quarantined and finding.decision.verdict == "orphaned"


def test_quarantine_is_kept_while_its_server_may_need_it(site: Site) -> None:
    def judge(uuid: str, *beside: Guest, **facts: t.Any) -> str | None:
        told = {**_result("here"), "domains": [_domain(site.guest, state="running")]}
        told["quarantined"] = [_quarantined(uuid, **facts)]
        found = site.judged([*parse_guests(told, quarantined=True), *beside])
        return found[0].decision.verdict if found else None

    moved = site.moved()
    elsewhere = site.beside(_directory(moved, inode=2))
    assert judge(moved, *elsewhere) == "orphaned"
    assert judge(moved) == "protected"
    assert judge(moved, *elsewhere, shared=True) == "protected"
    # It came back, under the same directory or as one that is put aside.
    assert judge(site.guest) is None
    assert judge(site.guest, name=f"{site.guest}_resize.20200101T000000Z") is None
    unreadable = site.gone()
    site.answers("server", unreadable, 500)
    assert judge(unreadable) == "undecided"
