"""What a reading leaves for the next one, and when everything is read again."""

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._core.facts.index import SnapshotIndex
from .......plugins.module_utils._core.findings.memory import (
    build_memory,
    describe_source,
    explain_full_reading,
)
from .......plugins.module_utils._core.judging.engine import judge
from .......plugins.module_utils._core.models.memory import Memory
from .......plugins.module_utils._core.models.snapshot import Reading, Scope, Shard
from ...judging import NO_MINIMUM_AGE
from ...world import ASKED_AT, NOW, World, answer

DAY = 86400
YESTERDAY = "2026-11-19T12:00:00Z"


@pytest.fixture(name="world")
def _world() -> World:
    return World()


def remember(world: World, **changes: t.Any) -> Memory | None:
    index = SnapshotIndex(world.snapshot(**changes))
    return build_memory(index, judge(index, NO_MINIMUM_AGE))


def test_findings_are_watched_and_healthy_servers_are_not(world: World) -> None:
    here, there = world.host("compute-1"), world.host("compute-2")
    healthy = world.server(here, here)
    orphan = world.server(here, here, there)
    memory = remember(world)

    assert memory
    assert memory.watched == {orphan}
    assert set(memory.allocations) == {healthy, orphan}
    assert memory.hosts == {"compute-1", "compute-2"}
    assert memory.full_at == NOW
    # Five minutes before the reading, for the clocks of the conductors.
    assert memory.changes_since == "2026-11-20T14:55:00Z"


def test_time_of_the_full_reading_is_handed_on(world: World) -> None:
    here = world.host("compute-1")
    world.server(here, here)
    memory = remember(world, reading=Reading("incremental", YESTERDAY, "2026-11-20T11:50:00Z"))

    assert memory and memory.full_at == YESTERDAY
    # Each change is listed twice.
    assert (memory.read_at, memory.changes_since) == (ASKED_AT, "2026-11-20T11:45:00Z")


@pytest.mark.parametrize("status", ["running", "finished", "confirmed"])
def test_open_migration_is_remembered(world: World, status: str) -> None:
    here, there = world.host("compute-1"), world.host("compute-2")
    server = world.server(there, there)
    world.migration(server, here, there, status)
    memory = remember(world)

    assert memory and memory.has_open_migrations == (status != "confirmed")


def test_unsound_reading_is_not_remembered(world: World) -> None:
    here = world.host("compute-1")
    world.server(here, here)

    assert remember(world, services_after=answer("GET /os-services", 500)) is None


def test_reading_without_a_cell_is_not_remembered(world: World) -> None:
    here = world.host("compute-1")
    world.server(here, here)
    silent = d.replace(world.services[0], status="UNKNOWN", state=None)

    assert remember(world, services=answer("GET /os-services", 200, (silent,))) is None


@pytest.mark.parametrize(
    ("changes", "now", "why"),
    [
        ({}, "2026-11-20T13:00:00Z", ""),
        ({"full_at": YESTERDAY}, NOW, "one is due every 1d"),
        ({"full_at": "yesterday"}, NOW, "one is due every 1d"),
        ({"full_at": ""}, NOW, "an unknown time"),
        # The clock was wrong when the file was written.
        ({"full_at": "2026-11-21T12:00:00Z"}, NOW, "one is due every 1d"),
        ({"source": "another"}, NOW, "of another cloud"),
    ],
)
def test_what_makes_a_full_reading_necessary(
    world: World, changes: dict[str, str], now: str, why: str
) -> None:
    here = world.host("compute-1")
    world.server(here, here)
    source = describe_source(world.snapshot().cloud, Scope())
    memory = remember(world)
    assert memory

    explanation = explain_full_reading(d.replace(memory, **changes), source, now, DAY)
    assert why in explanation and bool(explanation) == bool(why)


def test_every_part_of_a_cloud_has_a_memory_of_its_own(world: World) -> None:
    cloud = world.snapshot().cloud
    scopes = [Scope(), Scope(shard=Shard(1, 2)), Scope(shard=Shard(2, 2)), Scope(projects=("a",))]
    sources = {describe_source(cloud, scope) for scope in scopes}
    sources.add(describe_source(d.replace(cloud, region="RegionTwo"), Scope()))

    assert len(sources) == 5
