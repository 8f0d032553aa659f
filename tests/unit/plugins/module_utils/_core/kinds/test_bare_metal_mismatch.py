"""Which nodes of Ironic contradict their provider, and which only seem to."""

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._core.facts.index import SnapshotIndex
from .......plugins.module_utils._core.kinds import bare_metal_mismatch
from .......plugins.module_utils._core.models.finding import Finding
from .......plugins.module_utils._core.models.other_services import BareMetalNode
from .......plugins.module_utils._core.models.placement import (
    Allocation,
    Inventory,
    ProviderDetails,
)
from .......plugins.module_utils._core.models.snapshot import Answer, BareMetal, Cloud, Surroundings
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import list_cases
from ...world import OLD, World, answer

LONG_AGO, LATELY = "2026-11-01T12:00:00", "2026-11-20T14:59:00"
CLASS = "CUSTOM_GOLD"
STRANGER = "99999999-0000-4000-8000-000000000000"


def make_details(reserved: int = 0, used: int = 0, total: int = 1) -> ProviderDetails:
    stock = Inventory(total, reserved, 1, 1, 1, 1.0)
    return ProviderDetails(inventories={CLASS: stock}, usages={CLASS: used})


FREE_NODE = BareMetalNode(
    uuid="",
    provision_state="available",
    maintenance=False,
    power_state="power off",
    instance=None,
    resource_class="gold",
    provisioned_at=LONG_AGO,
    updated_at=LONG_AGO,
)


def allocation_of(
    consumer: str, *nodes: str, age: int | None = OLD, status: int = 200
) -> Answer[Allocation]:
    """Return the answer about a consumer with an allocation of each of the nodes."""
    held = {node: {CLASS: 1} for node in nodes}
    found = Allocation(consumer, 1, "p", "u", None, held, age)
    return answer(f"GET /allocations/{consumer}", status, found if status == 200 else None)


class Site(World):
    """A node whose provider has its uuid, and a server that may be on it."""

    def __init__(self) -> None:
        super().__init__()
        # The next one.
        name = f"{self._count + 1:08x}-0000-4000-8000-000000000000"
        self.node = self.host(name, "metal")
        other = self.host("compute-1")
        self.other = self.server(other, other)
        self.guest = self.server(self.node)

    def find(
        self,
        *,
        consumer: str | None = None,
        age: int | None = OLD,
        moved_on: bool = False,
        status: int | None = 200,
        others: t.Mapping[str, Answer[Allocation]] | None = None,
        details: ProviderDetails | None = None,
        lookup: int | None = 0,
        server_status: int = 200,
        server: dict[str, t.Any] | None = None,
        **node: t.Any,
    ) -> list[Finding]:
        row = d.replace(FREE_NODE, uuid=self.node, **node)
        allocations = dict(others or {})
        if consumer:
            self.hold(consumer, self.node, amounts={CLASS: 1}, age=age)
            held = () if moved_on else (self.node,)
            if status is not None:
                allocations[consumer] = allocation_of(consumer, *held, age=age, status=status)
        servers = {}
        if server is not None:
            guest = d.replace(self.servers[self.guest], **server)
            shown = guest if server_status == 200 else None
            servers[self.guest] = answer(f"GET /servers/{self.guest}", server_status, shown)
        lookups = {self.node: answer(f"GET /nodes/{self.node}", lookup)} if lookup else {}
        nodes = (row,) if lookup == 0 else ()
        reading = BareMetal(
            nodes=answer("GET /nodes", 200, nodes),
            lookups=lookups,
            allocations=allocations,
            servers=servers,
            details={self.node: details} if details else {},
        )
        snapshot = self.snapshot(surroundings=Surroundings(bare_metal=reading))
        return list(bare_metal_mismatch.check(SnapshotIndex(snapshot), Policy()))


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


HELD: dict[str, t.Any] = {"consumer": STRANGER}
USED: dict[str, t.Any] = {"instance": STRANGER}
OFFERED = {"details": make_details()}
RESERVED = {"details": make_details(reserved=1)}
GONE: dict[str, t.Any] = {"lookup": 404}


def in_state(state: str | None, **fields: t.Any) -> dict[str, t.Any]:
    return {"provision_state": state, **fields}


FOUND: dict[str, dict[str, dict[str, t.Any]]] = {
    "node_has_other_consumer": {
        "allocated, and free in Ironic": HELD,
        "allocated by another than uses it": {**HELD, **in_state("active", instance="another")},
        "allocated, and being cleaned": {**HELD, **in_state("cleaning")},
    },
    "node_gone": {
        "allocated, and gone": {**HELD, **GONE},
        "offered, and gone": {**GONE, **OFFERED},
    },
    "unusable_node_offered": {
        "offered in maintenance": {"maintenance": True, **OFFERED},
        "offered in another state": {**in_state("manageable"), **OFFERED},
        "offered without power": {"power_state": None, **OFFERED},
        "offered in a state that Ironic does not show": {**in_state(None), **OFFERED},
    },
    "free_node_not_offered": {
        "free, and reserved": RESERVED,
        "free, and without inventory": {"details": ProviderDetails()},
    },
    "node_cleaning_for_long": {
        "cleaned for days": in_state("clean failed", last_error="no disk"),
        "waiting for its cleaning": in_state("clean wait"),
    },
}


@pytest.mark.parametrize(("reason", "fields"), list_cases(FOUND))
def test_contradiction_is_found_with_what_mends_it(
    site: Site, reason: str, fields: dict[str, t.Any]
) -> None:
    (finding,) = site.find(**fields)

    assert (finding.verdict, finding.subject, finding.change) == ("drifted", site.node, None)
    assert finding.reason.id == reason
    assert site.node in finding.reason
    # The state is told, unless the node is gone or nothing but its usage is wrong.
    if "provision_state" in fields:
        assert (fields["provision_state"] or "unknown") in finding.reason


HEALTHY: dict[str, dict[str, t.Any]] = {
    "free and offered": OFFERED,
    "in maintenance and reserved": {"maintenance": True, **RESERVED},
    "Ironic has just freed it": {**HELD, "updated_at": LATELY},
    "Ironic has just given it to nobody": {**HELD, "provisioned_at": LATELY},
    "nobody knows when it changed": {**HELD, "updated_at": None, "provisioned_at": None},
    "just allocated": {**HELD, "age": 60},
    "allocated nobody knows when": {**HELD, "age": None},
    "allocated, and not read": {**HELD, "status": None},
    "allocated, and not readable": {**HELD, "status": 503},
    "no longer allocated": {**HELD, "moved_on": True},
    "no longer allocated, and not yet offered": {**HELD, "moved_on": True, **RESERVED},
    "reserved, and allocated meanwhile": {"details": make_details(reserved=0, used=1)},
    "being cleaned since nobody knows when": in_state("clean failed", provisioned_at=None),
    "being cleaned, and in use": {**in_state("cleaning"), **USED},
    "being cleaned since lately": in_state("cleaning", provisioned_at=LATELY),
    "in use by something that Nova does not have": {**in_state("active"), **USED, **RESERVED},
    "not listed, and not looked up": {**HELD, "lookup": None},
    "gone, and nothing is left": {**GONE, **RESERVED},
    "gone, and nobody knows what is left": GONE,
    "gone, and offered, but just allocated": {**GONE, **HELD, "age": 60, **OFFERED},
    "deployed": {**in_state("deploying"), **USED},
}


@pytest.mark.parametrize("case", HEALTHY)
def test_node_without_a_contradiction_has_no_finding(site: Site, case: str) -> None:
    assert site.find(**HEALTHY[case]) == []


def test_node_in_use_by_its_consumer_is_in_order(site: Site) -> None:
    assert not site.find(consumer=site.guest, instance=site.guest, provision_state="active")


IN_USE = {**in_state("active"), **RESERVED}


@pytest.mark.parametrize("reserved", [1, 0])
def test_server_without_an_allocation_can_be_healed_while_its_node_is_not_reserved(
    site: Site, reserved: int
) -> None:
    fields = {**IN_USE, "details": make_details(reserved)}
    (finding,) = site.find(instance=site.guest, server={}, **fields)

    assert finding.reason.id == "node_server_without_allocation"
    assert f"heal_allocations --instance {site.guest}" in finding.reason
    assert ("skip_reserve_in_use_ironic_nodes" in finding.reason) is bool(reserved)


@pytest.mark.parametrize(
    "fields",
    [
        {"server": {"task_state": "spawning"}},
        {"server": {"task_known": False}},
        {"server": {"node": "another"}},
        {"server": None},
        {"server_status": 503},
        {"consumer": STRANGER, "moved_on": True},
        {"details": make_details(used=1)},
    ],
    ids=["busy", "unknown task", "elsewhere", "not in Nova", "unread", "lately", "meanwhile"],
)
def test_server_that_may_not_need_the_node_is_not_reported(
    site: Site, fields: dict[str, t.Any]
) -> None:
    """Or whose node has an allocation."""
    assert site.find(instance=site.guest, **{**IN_USE, "server": {}, **fields}) == []


def test_allocation_of_a_migration_is_not_reported(site: Site) -> None:
    migration = site.migration(site.guest, site.node, site.node, "migrating")

    assert site.find(consumer=migration) == []


@pytest.mark.parametrize("status", [403, 500])
def test_node_that_cannot_be_looked_up_is_undecided(site: Site, status: int) -> None:
    (finding,) = site.find(consumer=STRANGER, lookup=status)

    assert finding.verdict == "undecided"
    assert finding.reason.id == "ironic_lookup_failed" and f"{status}" in finding.reason


def test_consumers_that_may_have_left_do_not_hide_one_that_has_the_node(site: Site) -> None:
    names = [f"0000000{number}-0000-4000-8000-000000000000" for number in (1, 2, 3)]
    for name in names:
        site.hold(name, site.node, amounts={CLASS: 1})
    others = {
        names[0]: allocation_of(names[0], site.node, age=None),
        names[1]: allocation_of(names[1]),
        names[2]: allocation_of(names[2], site.node, age=60),
    }
    (finding,) = site.find(consumer=STRANGER, others=others, lookup=404)

    assert finding.reason.id == "node_gone" and STRANGER in finding.reason


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({**HELD, "age": 3600}, "node_has_other_consumer"),
        ({**HELD, "age": 3599}, None),
        ({**HELD, "updated_at": "2026-11-20T14:00:00"}, "node_has_other_consumer"),
        ({**HELD, "updated_at": "2026-11-20T14:00:01"}, None),
        (in_state("cleaning", provisioned_at="2026-11-19T15:00:00"), "node_cleaning_for_long"),
        (in_state("cleaning", provisioned_at="2026-11-19T15:00:01"), None),
    ],
    ids=str,
)
def test_ages_are_those_of_the_options(
    site: Site, fields: dict[str, t.Any], reason: str | None
) -> None:
    """Every answer is of 15:00."""
    assert (Policy().min_age, Policy().stuck_min_age) == (3600, 24 * 3600)

    found = [finding.reason.id for finding in site.find(**fields)]

    assert found == ([reason] if reason else [])


def test_error_of_ironic_is_cut(site: Site) -> None:
    (finding,) = site.find(provision_state="clean failed", last_error="x" * 201)

    assert f" {'x' * 199}…. " in finding.reason


def test_all_consumers_that_have_the_node_are_named(site: Site) -> None:
    other = "00000001-0000-4000-8000-000000000000"
    site.hold(other, site.node, amounts={CLASS: 1})
    others = {other: allocation_of(other, site.node)}
    (finding,) = site.find(consumer=STRANGER, others=others)

    assert finding.reason.id == "node_has_other_consumer"
    assert other in finding.reason and STRANGER in finding.reason


def test_reading_that_is_not_sound_proves_nothing(site: Site) -> None:
    site.nodes.clear()
    site.services.clear()

    assert site.find(consumer=STRANGER) == []


def test_provider_without_a_compute_node_may_be_that_of_another_ironic(site: Site) -> None:
    """Where another Nova uses this Placement, its Ironic may have the node."""
    snapshot = site.snapshot()
    other = Cloud("http://placement", "http://nova", "RegionOne", None, (), ("RegionTwo",))
    site.delete(site.guest)
    site.remove_host(site.node)
    for cloud, count in ((snapshot.cloud, 1), (other, 0)):
        reading = BareMetal(
            nodes=answer("GET /nodes", 200, ()),
            lookups={site.node: answer(f"GET /nodes/{site.node}", 404)},
            allocations={STRANGER: allocation_of(STRANGER, site.node)},
        )
        site.hold(STRANGER, site.node, amounts={CLASS: 1})
        read = site.snapshot(cloud=cloud, surroundings=Surroundings(bare_metal=reading))
        assert len(list(bare_metal_mismatch.check(SnapshotIndex(read), Policy()))) == count
