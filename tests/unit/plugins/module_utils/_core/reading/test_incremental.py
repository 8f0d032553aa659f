# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A reading of what changed finds what a full reading finds, and a forged memory convicts nobody.

Both are tried on lives of a server, with a memory that was taken at any of their points.
"""

from __future__ import annotations

import dataclasses as d
import typing as t

import hypothesis
import hypothesis.strategies as st

from ansible_collections.osops.placement.plugins.module_utils._core.facts.index import SnapshotIndex
from ansible_collections.osops.placement.plugins.module_utils._core.findings.memory import (
    build_memory,
)
from ansible_collections.osops.placement.plugins.module_utils._core.judging.engine import judge
from ansible_collections.osops.placement.plugins.module_utils._core.models.memory import (
    Memory,
    RememberedNode,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.snapshot import (
    Scope,
    Shard,
)
from ansible_collections.osops.placement.plugins.module_utils._core.reading.incremental import (
    FullReadingNeeded,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils._core.changes.test_nova_races import (  # noqa: E501
    Cloud,
    open_collector,
    remediate,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.judging import (
    NO_MINIMUM_AGE,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.nova_lives import (
    Life,
    lives,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.world import answer

if t.TYPE_CHECKING:
    from ansible_collections.osops.placement.plugins.module_utils._core.models.placement import (
        Allocations,
    )
    from ansible_collections.osops.placement.plugins.module_utils._core.models.snapshot import (
        Snapshot,
    )
    from ansible_collections.osops.placement.plugins.module_utils._core.models.verdict import (
        Finding,
    )

WHOLE = Scope()
SHARDS = (Scope(shard=Shard(1, 2)), Scope(shard=Shard(2, 2)))

# What Nova's listing of changes does not show.
_UNSEEN = ("purge", "marked as deleted by hand")


class ChangingCloud(Cloud):
    """A cloud that lists what changed since `remember` was called."""

    def __init__(self, life: Life) -> None:
        super().__init__(life, {})
        self.remember()

    def remember(self) -> None:
        self._servers = dict(self.world.servers)
        self._deleted = set(self.world.deleted)
        self._migrations = dict(self.world.migrations)
        self._held = self._list_held()

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
        changed = [
            server
            for uuid, server in self.world.servers.items()
            if self._servers.get(uuid) != server
        ]
        changed += [
            server for uuid, server in self.world.deleted.items() if uuid not in self._deleted
        ]
        return answer("GET /servers/detail?changes-since", 200, tuple(changed))

    def list_changed_migrations(self, since: str) -> t.Any:
        self.happens()
        changed = [
            row for uuid, row in self.world.migrations.items() if self._migrations.get(uuid) != row
        ]
        return answer("GET /os-migrations?changes-since", 200, tuple(changed))


def read_fully(cloud: Cloud, scope: Scope = WHOLE) -> tuple[Snapshot, list[Finding]]:
    with open_collector(cloud) as reading:
        snapshot = reading.collect(scope)
    return snapshot, list(judge(SnapshotIndex(snapshot), NO_MINIMUM_AGE))


def read_changes(
    cloud: Cloud, memory: Memory, scope: Scope = WHOLE
) -> tuple[Snapshot, list[Finding]]:
    with open_collector(cloud) as reading:
        snapshot = reading.collect_changes(scope, memory)
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
    """Draw a life, and a memory of each of `scopes` that was taken at one of its steps."""
    moment = draw(st.integers(1, 25))
    steps = 0
    taken: list[tuple[ChangingCloud, list[Memory | None], int]] = []

    def watch(life: Life) -> None:
        nonlocal steps
        steps += 1
        if steps == moment:
            cloud = ChangingCloud(life)
            memories = [take_memory(cloud, scope) for scope in scopes]
            taken.append((cloud, memories, len(life.told)))

    life = draw(lives(watch, length=6))
    hypothesis.assume(taken)
    cloud, taken_memories, told = taken[0]
    memories = [memory for memory in taken_memories if memory is not None]
    hypothesis.assume(len(memories) == len(scopes))
    hypothesis.assume(not set(_UNSEEN) & set(life.told[told:]))
    # Between the two last writes of a deletion a server is DELETED and still has its row. For this
    # moment a full reading says that it lacks an allocation.
    servers = cloud.world.servers.values()
    hypothesis.assume(all(server.status != "DELETED" for server in servers))
    return cloud, memories


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
def test_two_shards_find_changes_together(
    remembered: tuple[ChangingCloud, list[Memory]],
) -> None:
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
