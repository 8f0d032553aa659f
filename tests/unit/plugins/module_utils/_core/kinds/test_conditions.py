"""Which findings there are about hosts, services and migrations, and when there are none."""

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._core.facts.agreement import list_host_names
from .......plugins.module_utils._core.facts.index import SnapshotIndex
from .......plugins.module_utils._core.facts.soundness import list_failed_checks
from .......plugins.module_utils._core.models.change import ProviderRemoval
from .......plugins.module_utils._core.models.nova import Service
from .......plugins.module_utils._core.models.placement import Inventory, ProviderDetails, Totals
from .......plugins.module_utils._core.models.snapshot import (
    LISTED_BY_SERVERS,
    Cloud,
    HostGroups,
    Scope,
    Snapshot,
    Surroundings,
)
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import NO_MINIMUM_AGE, judge
from ...world import NOW, PLENTY, answer
from ..scene import Scene

HOST_LIKE = {"VCPU": PLENTY, "MEMORY_MB": PLENTY}
HOUR = 3600
LONG_AGO, LATELY = "2026-11-01T12:00:00.000000", "2026-11-20T11:00:00.000000"


UNKNOWN = Service("nova-compute", "compute-9", "UNKNOWN", None)


class Site(Scene):
    """Two hosts and a server on one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.guest = self.server(self.here, self.here)
        self.details: dict[str, ProviderDetails] = {}

    def orphaned(
        self,
        name: str = "compute-3",
        traits: t.Collection[str] = ("COMPUTE_NODE",),
        **inventories: Inventory,
    ) -> str:
        root = self.provider(name)
        self.details[root] = ProviderDetails(inventories or HOST_LIKE, traits=frozenset(traits))
        return root

    def arrange(self, kind: str) -> str:
        """Add an orphaned provider, or one with the name of a compute node that has none."""
        if kind == "name_conflict":
            del self.providers[self.here]
        return self.orphaned("compute-1" if kind == "name_conflict" else "compute-3")

    def has_service(self, host: str, *state: str | None, **fields: t.Any) -> Service:
        """Add a service that reported long ago, by default one that is enabled and up."""
        status = state or ("enabled", "up")
        self.services.append(
            Service("nova-compute", host, *status, **{"updated_at": LONG_AGO, **fields})
        )
        return self.services[-1]

    def snapshot(self, **changes: t.Any) -> Snapshot:
        return super().snapshot(**{"details": self.details, **changes})

    def stuck(self, status: str, updated: str | None, **fields: t.Any) -> str:
        """Add a migration of the server that was changed last then."""
        if status == "finished":
            self.servers[self.guest] = d.replace(self.servers[self.guest], status="VERIFY_RESIZE")
        return self.alter(self.comes(self.guest, status), updated_at=updated, **fields)

    def look_up(self, *servers: str) -> dict[str, Surroundings]:
        """Let the direct lookups of servers that were evacuated be read."""
        lookups = {uuid: answer("GET /servers", 200, self.servers[uuid]) for uuid in servers}
        return {"surroundings": Surroundings(evacuated=lookups)}


def of_cloud(*other_novas: str, allocators: tuple[str, ...] = ()) -> dict[str, Cloud]:
    """Let other services and other Novas use this Placement."""
    return {"cloud": Cloud("http://placement", "http://nova", "R", "ours", allocators, other_novas)}


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


def test_orphaned_provider_is_a_root_like_a_hosts_without_a_compute_node(site: Site) -> None:
    root = site.orphaned()
    child = site.provider("compute-3_nic", root)
    (finding,) = site.find_kind("orphaned_provider")

    assert (finding.verdict, finding.subject, finding.consumer) == ("drifted", root, None)
    assert isinstance(finding.change, ProviderRemoval)
    assert finding.reason.id == "provider_without_compute_node"
    assert [provider.uuid for provider in finding.change.providers] == [child, root]


def test_orphaned_provider_with_allocations_is_reported_and_not_deletable(site: Site) -> None:
    holder = site.hold(site.server(site.here), site.orphaned())
    site.delete(holder)
    (finding,) = site.find_kind("orphaned_provider")

    assert finding.change is None
    assert finding.reason.id == "tree_has_allocations" and holder in finding.reason


@pytest.mark.parametrize(
    ("totals", "hidden"),
    [
        (
            Totals({"VCPU": 3, "DISK_GB": 1}, {"VCPU": 1, "DISK_GB": 1}),
            "than Placement lists: 2 VCPU.",
        ),
        (Totals({"VCPU": 1}, {"VCPU": 1}), None),
        (None, None),
    ],
)
def test_more_in_use_than_listed_is_reported(
    site: Site, totals: Totals | None, hidden: str | None
) -> None:
    surroundings = Surroundings(totals={site.here: answer("GET usages", 200, totals)})
    found = site.find_kind("hidden_allocation", surroundings=surroundings)

    assert [(one.providers, one.change) for one in found] == [((site.here,), None)] * bool(hidden)
    assert all(hidden in one.reason for one in found)


@pytest.mark.parametrize("kind", ["orphaned_provider", "name_conflict"])
@pytest.mark.parametrize("totals", [Totals({"VCPU": 1}, {}), None], ids=["hidden", "unread"])
def test_tree_with_a_hidden_allocation_is_reported_and_not_deletable(
    site: Site, kind: str, totals: Totals | None
) -> None:
    child = site.provider("child", site.arrange(kind))
    surroundings = Surroundings(totals={child: answer("GET usages", 200, totals)})
    (finding,) = site.find_kind(kind, surroundings=surroundings)

    assert (finding.change, finding.reason.id) == (None, "tree_has_hidden_allocation")


def test_few_consumers_of_an_orphaned_provider_are_named(site: Site) -> None:
    root = site.orphaned()
    holders = sorted(site.stranger(root) for _number in range(5))
    (finding,) = site.find_kind("orphaned_provider")

    assert finding.change is None
    assert finding.reason.id == "tree_has_allocations"
    assert f"({', '.join(holders[:3])} and 2 more)" in finding.reason


@pytest.mark.parametrize("trait", ["COMPUTE_NODE", "OWNER_NOVA"])
@pytest.mark.parametrize("inventories", [HOST_LIKE, {"CUSTOM_BAREMETAL": PLENTY}])
def test_nova_trait_is_sufficient_for_an_orphaned_provider(
    site: Site, trait: str, inventories: dict[str, Inventory]
) -> None:
    root = site.orphaned(traits=[trait], **inventories)

    assert [finding.subject for finding in site.find_kind("orphaned_provider")] == [root]


@pytest.mark.parametrize(
    "inventories", [HOST_LIKE, {"IPV4_ADDRESS": PLENTY}, {"MEMORY_MB": PLENTY}, {"VCPU": PLENTY}]
)
def test_provider_without_the_nova_trait_is_never_orphaned(
    site: Site, inventories: dict[str, Inventory]
) -> None:
    """A container service creates such providers as well."""
    site.orphaned(traits=["CUSTOM_KUBERNETES"], **inventories)

    assert site.find_kind("orphaned_provider") == []


def test_provider_with_unread_contents_is_not_orphaned(site: Site) -> None:
    site.provider("compute-3")

    assert site.find_kind("orphaned_provider") == []


@pytest.mark.parametrize(
    "changes",
    [
        {"services": answer("GET /os-services", 200, (UNKNOWN,))},
        {"hypervisors": answer("GET /os-hypervisors/detail", 500)},
        {"hypervisors": answer("GET /os-hypervisors/detail", 200, ())},
    ],
)
def test_unsound_reading_finds_no_orphaned_provider(site: Site, changes: dict[str, t.Any]) -> None:
    site.orphaned()

    assert site.find_kind("orphaned_provider", **changes) == []


def test_node_listing_derived_from_servers_finds_no_orphaned_provider(site: Site) -> None:
    """A cell did not answer when the nodes were listed, and did before and after.

    No answer has ironic's node without a server.
    """
    names = [f"7b1f{number}000-0000-4000-8000-000000000000" for number in (1, 2)]
    used, empty = (site.host(name, service="ironic-1") for name in names)
    site.server(used, used)
    details = ProviderDetails(HOST_LIKE, traits=frozenset({"COMPUTE_NODE"}))
    site.details = dict.fromkeys((used, empty), details)
    nodes = tuple(node for uuid, node in site.nodes.items() if uuid != empty)
    listed = answer(LISTED_BY_SERVERS, 200, nodes)
    lookups = dict.fromkeys(list_host_names(names[1]), answer("GET /os-hosts", 404))
    snapshot = site.snapshot(hypervisors=listed, host_lookups=lookups)

    assert not [finding for finding in judge(snapshot, NO_MINIMUM_AGE) if finding.change]
    assert list_failed_checks(snapshot)


def test_unlisted_ironic_node_is_not_orphaned_because_no_host_has_its_name(site: Site) -> None:
    """Its service has another name.

    So a 404 for its own name proves nothing where the workers do not know its cell.
    """
    root = site.orphaned("7b1f1000-0000-4000-8000-000000000000", CUSTOM_BAREMETAL=PLENTY)
    (finding,) = site.find_kind("orphaned_provider")

    assert (finding.subject, finding.verdict, finding.change) == (root, "undecided", None)
    assert finding.reason.id == "name_is_a_uuid"
    assert not SnapshotIndex(site.snapshot()).is_gone(root)


def test_name_held_by_another_provider_is_a_conflict_and_not_orphaned(site: Site) -> None:
    """The new compute node has no provider: Placement refused it."""
    old = site.arrange("name_conflict")
    (finding,) = site.find_kind("name_conflict")

    assert (finding.subject, finding.verdict) == (old, "drifted")
    assert isinstance(finding.change, ProviderRemoval)
    assert finding.reason.id == "node_name_has_other_provider" and site.here in finding.reason
    assert site.find_kind("orphaned_provider") == []


def test_listed_node_has_no_conflict_with_a_second_node_of_its_name(site: Site) -> None:
    """Two compute services have one hypervisor name, and both are alive."""
    twin = site.uuid()
    site.nodes[twin] = d.replace(site.nodes[site.here], uuid=twin, host="another")

    assert site.find_kind("name_conflict") == []


@pytest.mark.parametrize(
    ("allocators", "told"),
    [((), "it may not be Nova's."), (("container",), "the service catalogue has container")],
)
def test_provider_with_a_host_name_and_without_the_nova_trait_is_not_deletable(
    site: Site, allocators: tuple[str, ...], told: str
) -> None:
    site.orphaned("compute-1", traits=[])
    del site.providers[site.here]
    (finding,) = site.find_kind("name_conflict", **of_cloud(allocators=allocators))

    assert (finding.verdict, finding.change) == ("undecided", None)
    assert finding.reason.id == "not_known_to_be_novas" and told in finding.reason


@pytest.mark.parametrize("kind", ["orphaned_provider", "name_conflict"])
@pytest.mark.parametrize("excluded", ["root", "root by name", "child", "child by name"])
def test_tree_with_an_excluded_provider_is_protected(site: Site, kind: str, excluded: str) -> None:
    root = site.arrange(kind)
    child = site.provider("port", root)
    names = {"root": root, "root by name": site.providers[root].name, "child": child}
    name = names.get(excluded, "port")
    policy = d.replace(NO_MINIMUM_AGE, exclude_providers=frozenset({name}))
    (finding,) = (one for one in judge(site.snapshot(), policy) if one.subject == root)

    assert (finding.kind, finding.verdict, finding.change) == ("excluded", "protected", None)
    assert finding.reason.id == "provider_excluded" and name in finding.reason


@pytest.mark.parametrize("kind", ["orphaned_provider", "name_conflict"])
def test_allocation_on_a_child_keeps_the_whole_tree(site: Site, kind: str) -> None:
    root = site.arrange(kind)
    holder = site.stranger(site.provider("port", root))
    (finding,) = site.find_kind(kind)

    assert finding.change is None
    assert finding.reason.id == "tree_has_allocations" and holder in finding.reason


def test_provider_marked_by_nova_is_not_a_container_host(site: Site) -> None:
    site.orphaned()
    (finding,) = site.find_kind("orphaned_provider", **of_cloud(allocators=("container",)))

    assert finding.verdict == "drifted"


def test_service_started_during_the_reading_counts(site: Site) -> None:
    site.orphaned()
    before = site.snapshot().services
    site.has_service("compute-3")

    assert site.find_kind("orphaned_provider", services=before) == []


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ({"host": "compute-3"}, "service_without_node"),
        ({"host": "az1-c07", "state": "down"}, "service_without_node"),
        ({"found": ()}, "node_not_listed"),
        ({"found": ("compute-30",)}, None),
        ({"found": None}, None),
        ({"status": 500}, "node_search_failed"),
        ({"catalogue": ("RegionTwo",)}, "other_nova_on_placement"),
        ({"novas": ("RegionTwo",)}, "other_nova_on_placement"),
        ({"novas": None}, "other_nova_possible"),
        ({"novas": None, "sole_nova": True}, None),
        ({"novas": ("RegionTwo",), "sole_nova": True}, "other_nova_on_placement"),
    ],
)
@pytest.mark.parametrize("kind", ["orphaned_provider", "name_conflict"])
def test_provider_of_a_host_that_no_listing_has_is_not_deletable(
    site: Site, kind: str, case: dict[str, t.Any], reason: str | None
) -> None:
    """It is down and not discovered, has no service any more, or is of a hidden Nova."""
    root = site.arrange(kind)
    if "host" in case:
        site.has_service(case["host"], "enabled", case.get("state", "up"))
    found, novas = case.get("found"), case.get("novas", ())
    status = case.get("status", 404 if found is None else 200)
    name = site.providers[root].name
    (finding,) = site.find_kind(
        kind,
        d.replace(NO_MINIMUM_AGE, sole_nova=case.get("sole_nova", False)),
        node_searches={name: answer("GET /os-hypervisors/detail?…", status, found)},
        other_novas=answer("GET /endpoints", 403 if novas is None else 200, novas),
        **of_cloud(*case.get("catalogue", ())),
    )

    assert (finding.verdict, bool(finding.change)) == (
        ("undecided", False) if reason else ("drifted", True)
    )
    assert finding.reason.id == reason or reason is None


@pytest.mark.parametrize(
    ("scope", "told"),
    [
        ({"hosts": ("compute-1",)}, False),
        ({"hosts": ("compute-3",)}, True),
        ({"consumers": ("u",)}, False),
    ],
)
def test_narrow_scope_reports_only_what_it_names(
    site: Site, scope: dict[str, t.Any], told: bool
) -> None:
    root = site.orphaned()
    site.has_service("compute-3", "disabled", "down")
    move = site.migration(site.guest, root, root, "migrating")
    site.alter(move, dest_compute="compute-3", updated_at=LONG_AGO)
    trees = tuple(
        uuid for uuid, provider in site.providers.items() if provider.name in scope.get("hosts", ())
    )
    found = {
        kind: site.find_kind(kind, scope=Scope(**scope), trees=trees)
        for kind in ("orphaned_provider", "stale_service", "stuck_migration")
    }

    assert {kind: bool(findings) for kind, findings in found.items()} == dict.fromkeys(found, told)


@pytest.mark.parametrize(
    ("hosts", "told"), [(("compute-3",), True), (("compute-1",), False)], ids=str
)
def test_group_reports_the_services_and_migrations_of_its_hosts(
    site: Site, hosts: tuple[str, ...], told: bool
) -> None:
    """Also those of a host that has neither a compute node nor a provider."""
    site.has_service("compute-3", "disabled", "down")
    scope = Scope(groups=HostGroups(aggregates=("rack",), hosts=hosts))

    assert bool(site.find_kind("stale_service", scope=scope, trees=())) is told


def test_node_with_its_own_provider_has_no_conflict(site: Site) -> None:
    assert site.find_kind("name_conflict") == []


@pytest.mark.parametrize(
    ("name", "service", "reason"),
    [
        ("compute-1", "compute-9", "hypervisors_have_one_name"),
        ("compute-1", "compute-1.dc1", "host_got_other_name"),
        # Two hosts of one short name, in two domains.
        ("host-5", "host-5.dc2", "hypervisors_have_one_name"),
        ("renamed", "renamed", "provider_has_name_of_other_node"),
        ("compute-9", "compute-9", "node_without_provider"),
        ("child", "child", "node_without_provider"),
        # It is a name_conflict.
        ("compute-3", "compute-3", None),
    ],
)
def test_compute_node_without_a_provider_is_reported_with_its_cause(
    site: Site, name: str, service: str, reason: str | None
) -> None:
    site.host("host-5", service="host-5.dc1")
    site.provider("child", site.here)
    site.orphaned()
    other = site.host("compute-7")
    site.providers[other] = d.replace(site.providers[other], name="renamed")
    node = site.host(name, service=service)
    created = {node: site.providers.pop(node)}
    again = {uuid: row for uuid, row in site.providers.items() if row.name == name}

    found = site.find_kind("missing_provider", providers_again=again)

    assert [(one.subject, one.reason.id, one.change) for one in found] == (
        [(node, reason, None)] if reason else []
    )
    unsound = {"providers_again": again, "migrations": answer("GET /os-migrations", 500)}
    for changes in ({"providers_again": created}, {"providers_again": None}, unsound):
        assert site.find_kind("missing_provider", **changes) == []


@pytest.mark.parametrize(
    ("status", "updated", "kind"),
    [
        ("finished", LONG_AGO, "unconfirmed_resize"),
        ("finished", LATELY, None),
        ("migrating", LONG_AGO, "stuck_migration"),
        ("migrating", LATELY, None),
        ("whatever comes next", LONG_AGO, "stuck_migration"),
        ("error", LONG_AGO, None),
        ("confirmed", LONG_AGO, None),
        ("finished", None, None),
        ("migrating", None, None),
    ],
)
def test_stuck_migration_is_reported(
    site: Site, status: str, updated: str | None, kind: str | None
) -> None:
    move = site.stuck(status, updated, created_at=updated)
    found = [*site.find_kind("unconfirmed_resize"), *site.find_kind("stuck_migration")]
    reasons = {
        "unconfirmed_resize": "resize_unconfirmed_for_long",
        "stuck_migration": "migration_unchanged_for_long",
    }
    assert [(finding.kind, finding.reason.id, finding.subject) for finding in found] == (
        [(kind, reasons[kind], move)] if kind else []
    )
    assert all(finding.change is None and site.guest in finding.reason for finding in found)


@pytest.mark.parametrize(
    ("status", "source", "task", "is_found"),
    [
        ("done", "compute-1", None, True),
        # The server was only reset while its evacuation hangs.
        ("accepted", "compute-1", None, True),
        ("pre-migrating", "compute-1", None, True),
        ("accepted", "compute-1", "rebuilding", False),
        # MariaDB finds the row of nova-compute by its name in any case.
        ("done", "COMPUTE-1", None, True),
        ("completed", "compute-1", None, False),
        ("failed", "compute-1", None, False),
        ("done", "compute-2", None, False),
    ],
)
def test_server_on_the_source_of_its_own_evacuation_is_reported(
    site: Site, status: str, source: str, task: str | None, is_found: bool
) -> None:
    move = site.goes(site.guest, status)
    site.alter(move, type="evacuation", source_compute=source, source_node=source)
    lookup = site.look_up(site.alter(site.guest, task_state=task))
    found = site.find_kind("unfinished_evacuation", **lookup)

    assert [finding.subject for finding in found] == ([move] if is_found else [])
    assert all(finding.change is None and site.guest in finding.reason for finding in found)
    # Without the direct lookup it may be on its way.
    assert site.find_kind("unfinished_evacuation") == []


@pytest.mark.parametrize(
    ("changes", "is_completed"),
    [
        ({}, True),
        # The host was deployed again: nova-compute does not find the node of the evacuation.
        ({"source_node": "compute-1.old.example.org"}, False),
        ({"source_compute": "COMPUTE-1"}, False),
    ],
)
def test_server_is_sent_back_only_where_a_start_completes_its_evacuation(
    site: Site, changes: dict[str, str], is_completed: bool
) -> None:
    site.alter(site.goes(site.guest, "done", type="evacuation"), **changes)
    (found,) = site.find_kind("unfinished_evacuation", **site.look_up(site.guest))

    assert ("Do not move it back" in found.reason) is not is_completed
    assert found.reason.id == "on_source_of_evacuation"
    assert ("only when Nova lists each of its evacuations" in found.reason) is is_completed


@pytest.mark.parametrize(
    ("host", "state", "fields", "told"),
    [
        ("compute-2", "disabled", {}, "is disabled"),
        ("compute-2", "enabled", {"forced_down": True}, "is forced down"),
        ("compute-9", "enabled", {}, "has no compute node"),
        ("compute-2", "disabled", {"updated_at": LATELY}, ""),
        ("compute-2", "disabled", {"state": "up"}, ""),
        ("compute-2", "enabled", {}, ""),
        ("compute-9", "enabled", {"state": "up"}, ""),
        ("controller", "disabled", {"binary": "nova-conductor"}, ""),
        ("compute-2", "disabled", {"updated_at": None}, ""),
    ],
)
def test_stale_service_is_reported(
    site: Site, host: str, state: str, fields: dict[str, t.Any], told: str
) -> None:
    service = d.replace(site.has_service(host, state, "down"), **fields)
    site.services = [service]
    found = site.find_kind("stale_service")

    assert [finding.service for finding in found] == ([service] if told else [])
    assert all(finding.reason.id == "service_down_for_long" for finding in found)
    assert all(told in finding.reason for finding in found)


@pytest.mark.parametrize(
    ("kind", "status", "other"),
    [("stuck_migration", "migrating", "finished"), ("unconfirmed_resize", "finished", "migrating")],
)
def test_migrations_that_are_right_do_not_hide_a_later_one(
    site: Site, kind: str, status: str, other: str
) -> None:
    for known, updated in (
        ("error", LONG_AGO),
        (other, LONG_AGO),
        (status, LATELY),
        (status, LONG_AGO),
    ):
        move = site.stuck(known, updated)

    assert [finding.subject for finding in site.find_kind(kind)] == [move]


def test_evacuations_that_are_right_do_not_hide_a_later_one(site: Site) -> None:
    busy = site.server(site.here, site.here, task_state="rebuilding")
    hidden = site.server(site.here, site.here, task_known=False)
    known = site.look_up(busy, hidden, site.guest)["surroundings"].evacuated
    lookups = {**known, "gone": answer("GET /servers", 404)}
    for server, status in (
        ("unknown", "done"),
        ("gone", "done"),
        (busy, "accepted"),
        (hidden, "accepted"),
        (site.guest, "done"),
    ):
        move = site.goes(server, status, type="evacuation")
    found = site.find_kind("unfinished_evacuation", surroundings=Surroundings(evacuated=lookups))

    assert [finding.subject for finding in found] == [move]


def test_no_service_is_stale_while_the_compute_nodes_are_not_known(site: Site) -> None:
    site.services = [site.has_service("compute-9", "enabled", "down")]
    unread = answer("GET /os-hypervisors/detail", 500)

    assert site.find_kind("stale_service", hypervisors=unread) == []


def test_services_that_are_right_do_not_hide_a_later_one(site: Site) -> None:
    down = site.has_service("compute-2", "enabled", "down")
    site.services = [
        d.replace(down, binary="nova-conductor"),
        d.replace(down, status="disabled", updated_at=LATELY),
        down,
        d.replace(down, status="disabled"),
    ]

    assert [finding.service for finding in site.find_kind("stale_service")] == site.services[-1:]


@pytest.mark.parametrize(
    ("kind", "policy"),
    [
        ("stuck_migration", Policy(stuck_min_age=HOUR)),
        ("unconfirmed_resize", Policy(unconfirmed_min_age=HOUR)),
        ("stale_service", Policy(stale_min_age=HOUR)),
    ],
)
@pytest.mark.parametrize(("seconds", "is_found"), [("00", True), ("01", False)])
def test_age_from_which_on_something_is_reported_is_that_of_the_option(
    site: Site, kind: str, policy: Policy, seconds: str, is_found: bool
) -> None:
    """Every answer is of 15:00."""
    updated = f"2026-11-20T14:00:{seconds}"
    status = "finished" if kind == "unconfirmed_resize" else "migrating"
    site.stuck(status, updated)
    site.has_service("compute-9", "disabled", "down", updated_at=updated)

    assert bool(site.find_kind(kind, policy)) is is_found


def test_ages_use_the_clock_of_the_service(site: Site) -> None:
    site.stuck("migrating", NOW)
    later = d.replace(site.snapshot().migrations, at="2026-12-20T12:00:00Z")

    assert site.find_kind("stuck_migration") == []
    assert len(site.find_kind("stuck_migration", migrations=later)) == 1
