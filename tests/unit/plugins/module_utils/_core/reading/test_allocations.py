"""The allocations in scope, and those of the shards of a cloud."""

import dataclasses as d
import types
import typing as t

import hypothesis
import hypothesis.strategies as st
import pytest

from .......plugins.module_utils._common.errors import InvalidInput
from .......plugins.module_utils._core.facts.index import ListingsIndex
from .......plugins.module_utils._core.models.finding import Finding
from .......plugins.module_utils._core.models.kinds import KINDS
from .......plugins.module_utils._core.models.placement import (
    Allocation,
    Allocations,
    Inventory,
    ProviderDetails,
)
from .......plugins.module_utils._core.models.snapshot import HostGroups, Scope, Shard, Snapshot
from .......plugins.module_utils._core.options.policy import Policy
from .......plugins.module_utils._core.reading.allocations import (
    NO_PROJECT,
    find_owning_root,
    find_roots_of_hosts,
    find_roots_of_members,
    find_unowned,
    list_providers_to_read,
    list_roots_in_shard,
    select_allocations,
)
from .......plugins.module_utils._core.reading.candidates import (
    choose_hosts_for_server_details,
    find_candidates,
    find_mismatched_nodes,
)
from .....examples import count_examples
from ...judging import judge
from ...world import CLAIM, World, answer
from ...worlds import worlds

# Which root providers are those of the hosts that a user names


@pytest.fixture(name="site")
def _site() -> World:
    world = World()
    world.host("compute-1.example", service="compute-1")
    for name in ("node-1", "node-2"):
        world.host(name, service="ironic")
    world.provider("gone")
    return world


def _name(site: World, roots: t.Iterable[str]) -> set[str]:
    return {site.providers[root].name for root in roots}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("compute-1", {"compute-1.example"}),
        ("compute-1.example", {"compute-1.example"}),
        ("ironic", {"node-1", "node-2"}),
        ("node-2", {"node-2"}),
        ("gone", {"gone"}),
    ],
)
def test_a_host_goes_by_the_name_of_its_service_its_hypervisor_or_its_provider(
    site: World, name: str, found: set[str]
) -> None:
    roots = find_roots_of_hosts([name], site.nodes.values(), site.providers)

    assert _name(site, roots) == found
    assert find_roots_of_hosts(roots, site.nodes.values(), site.providers) == roots


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        # A provider that shares is no host, and neither is a child.
        (["pool"], "knows pool"),
        (["nic"], "knows nic"),
        (["b", "node-1", "a"], r"knows a, b\."),
    ],
)
def test_all_names_that_are_not_those_of_hosts_are_named(
    site: World, hosts: list[str], said: str
) -> None:
    site.provider("pool", sharing=True)
    site.provider("nic", next(iter(site.nodes)))

    with pytest.raises(InvalidInput, match=f"^hosts: .*{said}"):
        find_roots_of_hosts(hosts, site.nodes.values(), site.providers)


@pytest.mark.parametrize(
    ("hosts", "found"),
    [
        (["compute-1"], {"compute-1.example"}),
        (["ironic"], {"node-1", "node-2"}),
        # Nova lists it no longer, or its cell does not answer.
        (["gone"], {"gone"}),
        (["gone", "ironic"], {"gone", "node-1", "node-2"}),
        # A group names hosts of services, and a node of another host is not one.
        (["node-2"], set()),
        (["compute-1.example"], set()),
        (["nonesuch"], set()),
        ([], set()),
    ],
)
def test_a_member_of_a_group_is_the_host_of_a_service(
    site: World, hosts: list[str], found: set[str]
) -> None:
    roots = find_roots_of_members(hosts, site.nodes.values(), site.providers)

    assert _name(site, roots) == found


def test_a_provider_that_holds_the_name_of_a_member_belongs_to_it(site: World) -> None:
    old = site.provider("compute-1.example")

    roots = find_roots_of_members(["compute-1"], site.nodes.values(), site.providers)

    assert old in roots and len(roots) == 2


def test_a_member_has_no_sharing_provider_of_its_name(site: World) -> None:
    pool = site.provider("compute-1", sharing=True)

    assert pool not in find_roots_of_members(["compute-1"], site.nodes.values(), site.providers)


# All shards of a cloud together report what one reading reports, and nothing twice


AT_ONCE = Policy(
    min_age=0, unknown_min_age=0, unconfirmed_min_age=0, stuck_min_age=0, stale_min_age=0
)
LONG_AGO = "2026-01-01T00:00:00.000000"
LITTLE = Inventory(total=1, reserved=0, min_unit=1, max_unit=1, step_size=1, allocation_ratio=1.0)
STORIES = (
    "amount",
    "owner",
    "moved",
    "swapped",
    "leaked",
    "bandwidth",
    "conflict",
    "former",
    "hostless",
)

many = hypothesis.settings(max_examples=count_examples(200))


def read(
    world: World, shard: Shard | None = None, group: t.Collection[str] | None = None, **scope: t.Any
) -> Snapshot:
    """Return the snapshot of `world` that the readers would make.

    A shard reads its part, and its candidates are its own consumers.

    group: the roots of the hosts of a group that is read, by their uuids.
    """
    known = world.snapshot()
    listed = {uuid for uuid in known.providers if world.providers[uuid]}
    held = _keep(known.allocations, listed)
    trees = None
    nodes = known.hypervisors.value or ()
    if shard:
        held = _keep(held, set(list_providers_to_read(shard.contains, known.providers)))
        held = select_allocations(shard.contains, held, known.providers)
        trees = tuple(sorted(list_roots_in_shard(shard, known.providers, nodes)))
    if group is not None:
        trees = tuple(sorted(group))
        held = select_allocations(group.__contains__, held, known.providers)
        hosts = tuple(node.host for node in nodes if node.uuid in group)
        scope["groups"] = HostGroups(aggregates=("rack",), aggregate_names=("rack",), hosts=hosts)
    snapshot = d.replace(known, allocations=held, trees=trees, scope=Scope(shard=shard, **scope))
    index = ListingsIndex(snapshot)
    classes = {"VCPU": LITTLE, "MEMORY_MB": LITTLE}
    marked = {
        root.uuid: known.details.get(root.uuid, ProviderDetails()).traits for root in index.roots
    }
    covered = {
        root.uuid: ProviderDetails(classes, traits=marked[root.uuid])
        for root in index.roots
        if index.covers(root.uuid)
    }
    # Traits of candidates are read wherever they are.
    snapshot = d.replace(snapshot, details={**known.details, **covered})
    hosts = choose_hosts_for_server_details(index).hosts
    glances = {
        uuid: server
        for uuid, server in world.servers.items()
        if server.host in hosts and uuid not in world.unmapped
    }
    candidates = [uuid for uuid in find_candidates(index, glances) if uuid in known.evidence]
    if shard:
        candidates = [uuid for uuid in candidates if _owned(uuid, snapshot, glances)]
    return d.replace(snapshot, candidates=tuple(candidates))


def _keep(
    allocations: t.Mapping[str, Allocations], providers: t.Collection[str]
) -> dict[str, Allocations]:
    """Return the parts of allocations on some providers, without the consumers that have none."""
    kept = {
        consumer: {provider: share for provider, share in held.items() if provider in providers}
        for consumer, held in allocations.items()
    }
    return {consumer: held for consumer, held in kept.items() if held}


def _owned(consumer: str, snapshot: Snapshot, glances: t.Any) -> bool:
    allocation, index = snapshot.evidence[consumer].allocation.value, ListingsIndex(snapshot)
    root = find_owning_root(consumer, allocation.resources if allocation else {}, index, glances)
    return root is not None and index.covers(root)


def shards(count: int) -> list[Shard]:
    return [Shard(number, count) for number in range(1, count + 1)]


def told(
    world: World, shard: Shard | None = None, group: t.Collection[str] | None = None, **scope: t.Any
) -> dict[str, Finding]:
    findings = judge(read(world, shard, group, **scope), AT_ONCE)
    assert len({finding.id for finding in findings}) == len(findings)
    return {finding.id: finding for finding in findings}


@st.composite
def clouds(draw: st.DrawFn) -> World:
    """Return a random cloud with live servers that have wrong allocations.

    Services may be down, and moves may hang.
    """
    world = draw(worlds())
    # A service is listed once, however many compute nodes it has.
    world.services = list({service.host: service for service in world.services}.values())
    nodes = sorted(world.nodes)
    for story in draw(st.lists(st.sampled_from(STORIES), min_size=1, max_size=2)):
        _drift(world, story, draw(st.sampled_from(nodes)), draw(st.sampled_from(nodes)))
    for number, service in enumerate(world.services):
        if draw(st.sampled_from([False] * 4 + [True])):
            world.services[number] = d.replace(
                service, state="down", status="disabled", updated_at=LONG_AGO
            )
    for uuid, move in world.migrations.items():
        if draw(st.booleans()):
            world.migrations[uuid] = d.replace(move, updated_at=LONG_AGO)
    return world


def _drift(world: World, story: str, home: str, other: str) -> None:
    """Create a live server on `home` whose allocation is not the right one."""
    if story in ("conflict", "former"):
        node = world.host(f"anew-{world.uuid()}")
        del world.providers[node]
        old = world.provider(world.nodes[node].name)
        world.were_novas.add(old)
        if story == "former":
            world.server(node, old)
    elif story == "hostless":
        world.server(None, other)
    elif story == "amount":
        world.hold(world.server(home), home, amounts={**CLAIM, "VCPU": 2})
    elif story == "owner":
        world.server(home, home, user="another")
    elif story in ("leaked", "bandwidth") and home in world.providers:
        classes = {"leaked": "CUSTOM_VF", "bandwidth": "NET_BW_EGR_KILOBIT_PER_SEC"}
        world.hold(
            world.server(home, home),
            world.provider(f"{story}-{world.uuid()}", home),
            amounts={classes[story]: 1},
        )
    elif home != other and other in world.providers:
        server = world.server(home, other)
        if story == "swapped" and home in world.providers:
            world.migration(server, home, other, "error", home)


@many
@hypothesis.given(clouds(), st.data())
def test_group_frees_on_its_hosts_what_a_whole_reading_frees_there(
    world: World, data: st.DataObject
) -> None:
    """What it finds is judged as in a reading of the whole cloud.

    It may look up more consumers, of which it sees only a part in the listings, and only a lookup
    shows a wrong owner.
    """
    roots = [uuid for uuid, provider in world.providers.items() if provider and provider.is_host]
    group = frozenset(data.draw(st.lists(st.sampled_from(sorted(roots)), min_size=1)))
    whole, part = told(world), told(world, group=group)

    for name, finding in part.items():
        if finding.kind != "wrong_owner" and finding.change is not None:
            assert whole[name].change == finding.change
    for name, finding in whole.items():
        freed: t.Collection[str] = finding.change.frees if finding.change else ()
        if {world.providers[uuid].root for uuid in freed if world.providers.get(uuid)} & group:
            assert part[name].change == finding.change


@pytest.mark.parametrize("kinds", [(), ("wrong_owner",)], ids=["listed", "all-looked-up"])
@many
@hypothesis.given(clouds(), st.integers(1, 5))
def test_shards_together_report_everything_once(
    kinds: tuple[str, ...], world: World, count: int
) -> None:
    parts = [told(world, shard, kinds=kinds) for shard in shards(count)]
    whole = told(world, kinds=kinds)

    assert sorted(name for part in parts for name in part) == sorted(whole)
    assert {name: finding for part in parts for name, finding in part.items()} == whole


@many
@hypothesis.given(clouds(), st.integers(2, 5))
def test_each_tree_is_read_by_one_shard(world: World, count: int) -> None:
    nodes = tuple(world.nodes.values())
    roots = [
        root
        for shard in shards(count)
        for root in list_roots_in_shard(shard, world.providers, nodes)
    ]

    assert sorted(roots) == sorted(
        {*(provider.root for provider in world.providers.values()), *world.nodes}
    )
    for shard in shards(count):
        assert {
            world.providers[uuid].root
            for uuid in list_providers_to_read(shard.contains, world.providers)
            if not world.providers[uuid].sharing
        } <= list_roots_in_shard(shard, world.providers, nodes)


# What Placement has of Nova's groups is no part of these worlds; `kinds/test_mirror.py` has its
# shards. Neither is what other services and usages say, nor the lookup of a server on the source of
# its evacuation. A shard never finds that capacities are uneven.
NOT_GENERATED = {
    "aggregate_mismatch",
    "trait_mismatch",
    "zone_mismatch",
    "uneven_capacity",
    "unfinished_evacuation",
    "stuck_server",
    "missing_project",
    "missing_provider",
    "hidden_allocation",
    "bare_metal_mismatch",
}


def test_generated_clouds_have_findings_of_every_kind() -> None:
    """Without them the properties above would prove little."""
    found: set[str] = set()

    def all_were_found(world: World) -> bool:
        for scope in ({}, {"kinds": ("wrong_owner",)}):
            found.update(
                finding.kind
                for finding in told(world, **scope).values()
                if finding.verdict != "protected"
            )
        return found >= {kind.name for kind in KINDS} - NOT_GENERATED

    hypothesis.find(
        clouds(),
        all_were_found,
        settings=hypothesis.settings(max_examples=2000, phases=[hypothesis.Phase.generate]),
    )


class TwoHosts(World):
    """Two hosts in different shards of two; the first has the lower uuid."""

    def __init__(self) -> None:
        super().__init__()
        first = self.host("compute-first")
        while True:
            second = self.host("compute-second")
            if Shard(1, 2).contains(first) != Shard(1, 2).contains(second):
                break
            del self.providers[second], self.nodes[second]
        self.first, self.second = first, second

    def shard_of(self, root: str) -> Shard:
        return next(shard for shard in shards(2) if shard.contains(root))


@pytest.mark.parametrize("home_is_lower", [True, False])
def test_allocation_on_another_host_is_reported_by_the_shard_of_that_host(
    home_is_lower: bool,
) -> None:
    """To the shard of its home the server looks healthy, whichever of the two uuids is lower."""
    world = TwoHosts()
    home, other = (world.first, world.second) if home_is_lower else (world.second, world.first)
    server = world.server(home, home, other)

    found = told(world, world.shard_of(other))
    about = [name for name, finding in found.items() if finding.consumer is not None]

    assert about == [f"extra_host/{server}"]
    assert f"extra_host/{server}" not in told(world, world.shard_of(home))


def test_server_without_allocation_belongs_to_the_shard_of_its_host() -> None:
    world = TwoHosts()
    server = world.server(world.first)

    assert f"missing_allocation/{server}" in told(world, world.shard_of(world.first))
    assert f"missing_allocation/{server}" not in told(world, world.shard_of(world.second))


@pytest.mark.parametrize("home_is_lower", [True, False])
def test_shard_of_the_node_without_the_server_reports_two_nodes_of_one_service(
    home_is_lower: bool,
) -> None:
    """These are Ironic's nodes: the listing shows the server on both."""
    world = TwoHosts()
    for root in (world.first, world.second):
        world.nodes[root] = d.replace(world.nodes[root], host="ironic")
    home, other = (world.first, world.second) if home_is_lower else (world.second, world.first)
    server = world.server(home, home, other)

    telling = [shard for shard in shards(2) if f"extra_host/{server}" in told(world, shard)]
    assert telling == [world.shard_of(other)]


def test_servers_on_a_shared_disk_are_examined_only_by_the_shard_of_their_host() -> None:
    """The shard of the sharing provider sees all of them, but only this allocation."""
    world = TwoHosts()
    pool = world.provider("pool", sharing=True)
    for root in (world.first, world.second):
        server = world.hold(world.server(root), root, amounts={"VCPU": 1, "MEMORY_MB": 512})
        world.hold(server, pool, amounts={"DISK_GB": 1})
    lacking = world.hold(world.server(world.first), pool, amounts={"DISK_GB": 1})
    stranger = world.stranger(pool)

    assert {
        uuid
        for shard in shards(2)
        for uuid in find_candidates(ListingsIndex(read(world, shard)), world.servers)
    } == {lacking, stranger}


def test_consumer_of_a_sharing_provider_alone_is_reported_by_the_shard_of_that_provider() -> None:
    world = TwoHosts()
    pool = world.provider("pool", sharing=True)
    stranger = world.stranger(pool)

    found = [
        (shard, finding.kind)
        for shard in shards(2)
        for finding in told(world, shard).values()
        if finding.consumer == stranger
    ]
    assert found == [(world.shard_of(pool), "unproven")]


def test_shard_depends_on_the_name_alone() -> None:
    """These were computed once.

    Another Python, machine or day must distribute the hosts in the same way.
    """
    names = [
        "f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08",
        "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11",
        "compute-17",
    ]

    numbers = [next(shard.number for shard in shards(8) if shard.contains(name)) for name in names]
    assert numbers == [4, 8, 2]


def test_shards_have_similar_sizes() -> None:
    names = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(4000)]

    assert all(400 < sum(map(shard.contains, names)) < 600 for shard in shards(8))


def test_few_hosts_do_not_establish_usual_figures() -> None:
    """Four hosts of a shard may all have the same fault.

    Figures that many hosts have count as usual.
    """
    world = World()
    roots = [world.host(f"compute-{number}") for number in range(6)]
    used = {"VCPU": 3, "MEMORY_MB": 512}
    nodes = {root: d.replace(world.nodes[root], used=used) for root in roots}
    few = {root: nodes[root] for root in roots[:4]}

    for needed, found in (({}, []), ({"min_agreeing": 5}, roots[:4])):
        assert find_mismatched_nodes(nodes, {}, **needed) == []
        assert find_mismatched_nodes(few, {}, **needed) == found


def test_every_host_of_a_small_shard_is_read() -> None:
    world = TwoHosts()
    for root in (world.first, world.second):
        world.nodes[root] = d.replace(world.nodes[root], used={"VCPU": 1, "MEMORY_MB": 1})

    assert choose_hosts_for_server_details(ListingsIndex(read(world))).hosts == ()
    for root in (world.first, world.second):
        part = ListingsIndex(read(world, world.shard_of(root)))
        assert choose_hosts_for_server_details(part).hosts == (world.nodes[root].host,)


def test_no_consumer_is_lost_where_nova_lists_no_compute_node() -> None:
    world = TwoHosts()
    stranger = world.stranger(world.first, world.second)
    silent = answer("GET /os-hypervisors/detail", 500)

    def seen(shard: Shard) -> list[str]:
        snapshot = d.replace(read(world, shard), hypervisors=silent)
        candidates = find_candidates(ListingsIndex(snapshot))
        return [uuid for uuid in candidates if _owned(uuid, snapshot, {})]

    assert [uuid for shard in shards(2) for uuid in seen(shard)] == [stranger]


@pytest.mark.parametrize(
    ("unowned", "hidden", "looked_up", "found", "left"),
    [
        (0, 0, 0, 0, {}),
        (1, 0, 100, 1, {}),
        # What no listing has is not found, and all was looked up.
        (1, 7, 150, 1, {}),
        # As many candidates would be too many.
        (150, 0, 100, 100, {"VCPU": 50}),
    ],
)
def test_consumers_of_no_project_are_found_with_few_lookups(
    unowned: int, hidden: int, looked_up: int, found: int, left: dict[str, int]
) -> None:
    consumers = [f"{number:03}" for number in range(150)]
    owners = dict.fromkeys(consumers, "demo") | dict.fromkeys(consumers[:unowned], NO_PROJECT)
    asked: list[str] = []

    def get_allocation(one: str) -> Allocation:
        asked.append(one)
        return Allocation(one, 1, owners[one], "u", None, {"p": {"VCPU": 1}}, 9)

    placement = types.SimpleNamespace(
        get_usages=lambda _project: {"VCPU": unowned + hidden},
        get_allocations=lambda uuids: map(get_allocation, uuids),
    )
    assert find_unowned(t.cast("t.Any", placement), consumers) == (consumers[:found], left)
    assert len(asked) == looked_up
