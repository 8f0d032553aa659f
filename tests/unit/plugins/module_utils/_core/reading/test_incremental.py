"""One reading of what changed since an earlier one."""

import dataclasses as d
import functools
import typing as t

import hypothesis
import hypothesis.strategies as st
import pytest

from .......plugins.module_utils._core.facts.index import SnapshotIndex
from .......plugins.module_utils._core.findings.memory import build_memory
from .......plugins.module_utils._core.judging.engine import judge
from .......plugins.module_utils._core.models.finding import Finding
from .......plugins.module_utils._core.models.memory import Memory, RememberedNode
from .......plugins.module_utils._core.models.nova import Migration, Server
from .......plugins.module_utils._core.models.placement import Allocations, Provider
from .......plugins.module_utils._core.models.snapshot import Scope, Shard, Snapshot
from .......plugins.module_utils._core.reading.incremental import (
    Changes,
    FullReadingNeeded,
    choose_consumers,
    explain_changed_hosts,
    list_changed_providers,
    merge_allocations,
)
from ...judging import NO_MINIMUM_AGE
from ...nova_lives import Life, Moment, read_lives
from ...world import FLAVOR, World, answer
from ..changes.test_nova_races import Cloud, open_collector, remediate

# A reading of what changed finds what a full reading finds, and a forged memory convicts nobody


WHOLE = Scope()
SHARDS = (Scope(shard=Shard(1, 2)), Scope(shard=Shard(2, 2)))

# What Nova's listing of changes does not show.
_UNSEEN = ("purge", "marked as deleted by hand")


class ChangingCloud(Cloud):
    """A cloud that lists what changed since `remember` was called."""

    def __init__(self, life: t.Sequence[Moment]) -> None:
        super().__init__(life)
        self._newest: set[str] = set()
        self.remember()

    def remember(self) -> None:
        """Take the state as read. Each change is listed by two readings: also the newest one."""
        self._changed = self._newest
        self._held = self._list_held()

    def go_to(self, moment: int) -> None:
        """Pass each moment on the way: Nova also lists what has changed, and changed back."""
        for passed in range(self.at + 1, moment):
            self._pass(passed)
        self._pass(moment)

    def _pass(self, moment: int) -> None:
        before = self._list_rows()
        super().go_to(moment)
        now = self._list_rows()
        self._newest = {uuid for uuid in now if now[uuid] != before.get(uuid)}
        self._changed = self._changed | self._newest

    def _list_rows(self) -> dict[str, t.Any]:
        return {**self.world.deleted, **self.world.servers, **self.world.migrations}

    def _list_held(self) -> dict[str, Allocations]:
        return {
            consumer: dict(allocation.resources)
            for consumer, allocation in self.world.allocations.items()
        }

    def list_providers(self) -> t.Any:
        """Return the providers, with a new generation where an allocation was written.

        That an allocation was deleted gives none.
        """
        written = set()
        for consumer, held in self._list_held().items():
            before = self._held.get(consumer, {})
            written |= {uuid for uuid, amounts in held.items() if before.get(uuid) != amounts}
        providers = super().list_providers()
        for uuid in written:
            providers[uuid] = d.replace(providers[uuid], generation=2)
        return providers

    def list_changed_servers(self, since: str) -> t.Any:
        self.happens()
        rows = {**self.world.deleted, **self.world.servers}
        changed = tuple(row for uuid, row in rows.items() if uuid in self._changed)
        return answer("GET /servers/detail?changes-since", 200, changed)

    def list_changed_migrations(self, since: str) -> t.Any:
        self.happens()
        rows = self.world.migrations
        changed = tuple(row for uuid, row in rows.items() if uuid in self._changed)
        return answer("GET /os-migrations?changes-since", 200, changed)


def read_fully(cloud: Cloud, scope: Scope = WHOLE) -> tuple[Snapshot, list[Finding]]:
    return _read(cloud, lambda reading: reading.collect(scope))


def read_changes(
    cloud: Cloud, memory: Memory, scope: Scope = WHOLE
) -> tuple[Snapshot, list[Finding]]:
    return _read(cloud, lambda reading: reading.collect_changes(scope, memory))


def _read(cloud: Cloud, read: t.Callable[[t.Any], Snapshot]) -> tuple[Snapshot, list[Finding]]:
    with open_collector(cloud) as reading:
        snapshot = read(reading)
    return snapshot, list(judge(SnapshotIndex(snapshot), NO_MINIMUM_AGE))


def take_memory(cloud: ChangingCloud, scope: Scope) -> Memory | None:
    """Return what a full reading of the cloud leaves, and count changes from here on."""
    cloud.remember()
    snapshot, findings = read_fully(cloud, scope)
    return build_memory(SnapshotIndex(snapshot), findings)


def outline(findings: t.Iterable[Finding]) -> dict[str, t.Any]:
    """Return what matters of each finding."""
    return {finding.id: (finding.verdict, finding.reason, finding.change) for finding in findings}


@st.composite
def remembered_lives(
    draw: st.DrawFn, scopes: t.Sequence[Scope] = (WHOLE,)
) -> tuple[ChangingCloud, list[Memory]]:
    """Draw a life at its end, and a memory of each of `scopes` from an earlier moment."""
    life = draw(st.sampled_from(_list_long_lives()))
    first = draw(st.integers(0, len(life) - 2))
    hypothesis.assume(not any(set(_UNSEEN) & set(row["told"]) for row in life.rows[first + 1 :]))
    cloud = ChangingCloud(life)
    cloud.go_to(first)
    memories = [take_memory(cloud, scope) for scope in scopes]
    cloud.go_to(len(life) - 1)
    # Between the two last writes of a deletion a server is DELETED and still has its row. For this
    # moment a full reading says that it lacks an allocation.
    servers = cloud.world.servers.values()
    hypothesis.assume(all(memories) and all(server.status != "DELETED" for server in servers))
    return cloud, [memory for memory in memories if memory]


@functools.cache
def _list_long_lives() -> list[Life]:
    return [*read_lives(least=2)]


@hypothesis.given(remembered_lives())
def test_changes_show_what_a_full_reading_shows(
    remembered: tuple[ChangingCloud, list[Memory]],
) -> None:
    cloud, (memory,) = remembered
    try:
        snapshot, found = read_changes(cloud, memory)
    except FullReadingNeeded as reason:
        hypothesis.event(f"full reading: {reason}")
        return
    hypothesis.event(f"{len(snapshot.candidates)} candidates")
    _snapshot, expected = read_fully(cloud)

    assert outline(found) == outline(expected), cloud.life


@hypothesis.given(remembered_lives(SHARDS))
def test_two_shards_find_changes_together(remembered: tuple[ChangingCloud, list[Memory]]) -> None:
    cloud, memories = remembered
    found: dict[str, t.Any] = {}
    expected: dict[str, t.Any] = {}
    try:
        for scope, memory in zip(SHARDS, memories, strict=True):
            found.update(outline(read_changes(cloud, memory, scope)[1]))
    except FullReadingNeeded:
        return
    for scope in SHARDS:
        expected.update(outline(read_fully(cloud, scope)[1]))

    assert found == expected, cloud.life


@hypothesis.given(remembered_lives(), st.data())
def test_forged_memory_costs_no_live_server_its_allocation(
    remembered: tuple[ChangingCloud, list[Memory]], data: st.DataObject
) -> None:
    cloud, (memory,) = remembered
    forged = data.draw(forge(cloud, memory))
    try:
        with open_collector(cloud) as reading:
            snapshot = reading.collect_changes(Scope(), forged)
            found = judge(SnapshotIndex(snapshot), NO_MINIMUM_AGE)
            remediate(cloud, reading, found)
    except FullReadingNeeded:
        return
    assert not cloud.wrong, cloud.wrong


@st.composite
def forge(draw: st.DrawFn, cloud: ChangingCloud, memory: Memory) -> Memory:
    """Draw a memory that lies in any of its parts."""
    consumers = [*cloud.world.servers, *cloud.world.deleted, *cloud.world.migrations]
    roots = [provider.uuid for provider in cloud.world.providers.values() if provider.is_host]
    names = [node.host for node in cloud.world.nodes.values()]
    nodes = st.builds(
        RememberedNode,
        st.sampled_from(roots),
        st.sampled_from(names),
        st.sampled_from(names),
        st.integers(0, 3),
    )
    amounts = st.dictionaries(st.sampled_from(["VCPU", "MEMORY_MB"]), st.integers(1, 9))
    lies: dict[str, t.Any] = {
        "watched": st.frozensets(st.sampled_from(consumers)),
        "nodes": st.lists(nodes).map(tuple),
        "allocations": st.dictionaries(
            st.sampled_from(consumers), st.dictionaries(st.sampled_from(roots), amounts)
        ),
        "generations": st.just(dict.fromkeys(memory.generations, 2)),
        "has_open_migrations": st.booleans(),
    }
    told = draw(st.sets(st.sampled_from(sorted(lies)), min_size=1))
    return d.replace(memory, **{name: draw(lies[name]) for name in sorted(told)})


# Which consumers are looked up after a few changes


HERE, THERE, POOL, CHILD = "root-1", "root-2", "pool", "child-1"
SMALL = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
WITHOUT_DISK = {"VCPU": 1, "MEMORY_MB": 512}
PROVIDERS = {
    HERE: Provider(HERE, "compute-1", 5, HERE, None),
    THERE: Provider(THERE, "compute-2", 5, THERE, None),
    CHILD: Provider(CHILD, "compute-1_pci", 5, HERE, HERE),
    POOL: Provider(POOL, "pool", 5, POOL, None, sharing=True),
}


def make_memory(**fields: t.Any) -> Memory:
    nodes = (
        RememberedNode(HERE, "compute-1", "node-1", 1),
        RememberedNode(THERE, "compute-2", "node-2", 0),
    )
    memory = Memory(
        source="cloud",
        full_at="2026-11-22T03:00:00Z",
        read_at="2026-11-22T03:45:00Z",
        changes_since="2026-11-22T03:00:00Z",
        generations=dict.fromkeys(PROVIDERS, 5),
        allocations={"server": {HERE: SMALL}},
        hosts=frozenset({"compute-1", "compute-2"}),
        nodes=nodes,
        watched=frozenset(),
        has_open_migrations=False,
    )
    return d.replace(memory, **fields)


def make_server(**fields: t.Any) -> Server:
    """Return a server of the first of two hosts, as a world has it."""
    world = World()
    uuid = world.server(world.host("node-1", service="compute-1"))
    return d.replace(world.servers[uuid], **{"uuid": "server", **fields})


def make_migration(status: str) -> Migration:
    """Return a migration of that server to the second host."""
    world = World()
    roots = [world.host(f"node-{number}", service=f"compute-{number}") for number in (1, 2)]
    uuid = world.migration("server", *roots, status)
    return d.replace(world.migrations[uuid], uuid="migration")


def choose(
    memory: Memory,
    *servers: Server,
    migrations: tuple[Migration, ...] = (),
    changed: t.Collection[str] = (),
    allocations: t.Any = None,
    shard: Shard | None = None,
) -> list[str]:
    """Choose the consumers after changes; the providers in `changed` have new generations."""
    providers = dict(PROVIDERS)
    for uuid in changed:
        providers[uuid] = d.replace(providers[uuid], generation=6)
    changes = Changes(providers, servers, migrations)
    read = list_changed_providers(memory, providers)
    merged = merge_allocations(memory, read, allocations or {})
    return choose_consumers(memory, changes, merged, Scope(shard=shard))


@pytest.mark.parametrize("watched", [frozenset(), frozenset({"stray"})])
def test_only_consumers_that_were_not_in_order_are_looked_up_without_a_change(
    watched: frozenset[str],
) -> None:
    assert choose(make_memory(watched=watched)) == sorted(watched)


@pytest.mark.parametrize(
    ("allocations", "chosen"),
    [
        ({"server": {HERE: {**SMALL, "VCPU": 2}}}, ["server"]),
        ({"server": {HERE: SMALL, CHILD: {"CUSTOM_VF": 1}}}, ["server"]),
        ({"server": {HERE: SMALL, THERE: SMALL}}, ["server"]),
        # It has none any more.
        ({}, ["server"]),
        ({"server": {HERE: SMALL}, "stray": {HERE: SMALL}}, ["stray"]),
        # A new generation alone changes nothing.
        ({"server": {HERE: SMALL}}, []),
    ],
)
def test_consumer_with_another_allocation_is_looked_up(
    allocations: t.Any, chosen: list[str]
) -> None:
    changed = [HERE, CHILD, THERE]
    assert choose(make_memory(), changed=changed, allocations=allocations) == chosen


GONE = {"host": None, "node": None, "status": "SHELVED_OFFLOADED"}
ELSEWHERE = {"host": "compute-2", "node": "node-2"}
VGPU = d.replace(FLAVOR, extra_specs={"resources:VGPU": "1"})


@pytest.mark.parametrize(
    ("fields", "allocations", "is_chosen"),
    [
        ({}, {HERE: SMALL}, False),
        # It boots from a volume, or may do so.
        ({"image": None, "volumes": ("volume",)}, {HERE: WITHOUT_DISK}, False),
        ({"volumes": ("volume",)}, {HERE: WITHOUT_DISK}, False),
        ({}, {HERE: WITHOUT_DISK, POOL: {"DISK_GB": 1}}, False),
        (GONE, {}, False),
        ({**GONE, "status": "DELETED"}, {}, False),
        (ELSEWHERE, {THERE: SMALL}, False),
        # Its allocation was removed with DELETE, or is an orphan: a lookup shows which.
        ({"status": "DELETED"}, {HERE: SMALL}, True),
        (GONE, {HERE: SMALL}, True),
        (ELSEWHERE, {HERE: SMALL}, True),
        (ELSEWHERE, {HERE: SMALL, THERE: SMALL}, True),
        ({"host": "compute-3", "node": "node-3"}, {HERE: SMALL}, True),
        ({"node": None}, {HERE: SMALL}, True),
        ({}, {}, True),
        ({}, {HERE: {**SMALL, "VCPU": 2}}, True),
        ({}, {HERE: SMALL, CHILD: {"CUSTOM_VF": 1}}, True),
        ({}, {CHILD: {"CUSTOM_VF": 1}}, True),
        ({"flavor": None}, {HERE: SMALL}, True),
        ({"flavor": d.replace(FLAVOR, extra_specs=None)}, {HERE: SMALL}, True),
        ({"flavor": VGPU}, {HERE: SMALL}, True),
    ],
)
def test_changed_server_is_looked_up_unless_it_is_in_order(
    fields: dict[str, t.Any], allocations: t.Any, is_chosen: bool
) -> None:
    memory = make_memory(allocations={"server": allocations} if allocations else {})
    assert choose(memory, make_server(**fields)) == ["server"] * is_chosen


@pytest.mark.parametrize(
    ("status", "holds", "chosen"),
    [
        ("confirmed", False, []),
        ("confirmed", True, ["migration", "server"]),
        ("finished", True, ["migration", "server"]),
        ("running", False, ["server"]),
        ("error", True, ["migration", "server"]),
    ],
)
def test_changed_migration_is_looked_up_with_its_server(
    status: str, holds: bool, chosen: list[str]
) -> None:
    allocations: dict[str, t.Any] = {"server": {HERE: SMALL}}
    if holds:
        allocations["migration"] = {THERE: SMALL}
    memory = make_memory(allocations=allocations)
    assert choose(memory, migrations=(make_migration(status),)) == chosen


def test_server_on_a_host_of_another_shard_is_left_to_it() -> None:
    shards = [Shard(1, 2), Shard(2, 2)]
    mine = next(shard for shard in shards if shard.contains(HERE))
    other = next(shard for shard in shards if not shard.contains(HERE))
    memory = make_memory(allocations={})

    assert choose(memory, make_server(), shard=mine) == ["server"]
    assert choose(memory, make_server(), shard=other) == []


def test_tree_without_a_compute_node_is_always_read() -> None:
    memory = make_memory(nodes=())

    assert list_changed_providers(memory, PROVIDERS) == [CHILD, HERE, THERE]


def test_remembered_allocations_elsewhere_stay() -> None:
    memory = make_memory(allocations={"server": {HERE: SMALL, POOL: {"DISK_GB": 1}}})
    providers = {**PROVIDERS, HERE: d.replace(PROVIDERS[HERE], generation=6)}

    assert list_changed_providers(memory, providers) == [HERE]
    assert merge_allocations(memory, [HERE], {"server": {HERE: WITHOUT_DISK}}) == {
        "server": {HERE: WITHOUT_DISK, POOL: {"DISK_GB": 1}}
    }


@pytest.mark.parametrize(
    ("providers", "hosts", "why"),
    [
        (set(PROVIDERS), {"compute-1", "compute-2"}, ""),
        (set(PROVIDERS) - {CHILD}, {"compute-1", "compute-2"}, "Resource providers"),
        ({*PROVIDERS, "new"}, {"compute-1", "compute-2"}, "Resource providers"),
        (set(PROVIDERS), {"compute-1"}, "Hosts"),
        (set(PROVIDERS), {"compute-1", "compute-2", "compute-3"}, "Hosts"),
    ],
)
def test_other_hosts_need_a_full_reading(providers: set[str], hosts: set[str], why: str) -> None:
    explanation = explain_changed_hosts(make_memory(), providers, hosts)
    assert explanation.startswith(why) and bool(explanation) == bool(why)
