"""Old answers: caches in front of Nova, and a Placement that reads from a copy of its database."""

import typing as t
from collections.abc import Iterator

import pytest
from minicloud_ctl import databases, holdings, servers

from .bed import CLAIM, HOME, NO_AGE, OTHER, Bed, Siege
from .liars import UUID, Copies

pytestmark = pytest.mark.long

CACHED = {
    "everything": "/",
    "listings": r"/(os-migrations|os-services|os-hypervisors|servers/detail|servers\?)",
    "servers": rf"/servers/{UUID}$",
    "migrations": "/os-migrations",
    "compute nodes and migrations": "/os-(migrations|hypervisors)",
    "servers and migrations": r"/(servers/|os-migrations)",
}
BEHIND = {
    "listings": r"GET /resource_providers",
    "consumers": rf"GET /allocations/{UUID}",
    "everything": "GET /",
}


@pytest.fixture(scope="module")
def traveller(bed: Bed) -> str:
    """A live server that moves while an old answer says that it rests."""
    return bed.world.boot(HOME)


@pytest.fixture
def journey(siege: Siege, traveller: str) -> Iterator[t.Callable[[], None]]:
    """Begins a move that stays unconfirmed, and from then on compares its two consumers too."""
    bed = siege.bed

    def depart() -> None:
        bed.live["traveller"] = traveller
        bed.live["migration of traveller"] = servers.migrate(bed.world.cloud, traveller, OTHER)
        siege.before = bed.picture()

    yield depart
    siege.assert_alive()
    siege.wires.nova.clear()
    siege.wires.placement.clear()
    del bed.live["traveller"], bed.live["migration of traveller"]
    servers.revert(bed.world.cloud, traveller)
    holdings.await_providers(bed.world.cloud, traveller, bed.world.provider(HOME))
    siege.before = bed.picture()


def _run_with_old_answers(siege: Siege, copies: Copies, journey: t.Callable[[], None]) -> None:
    """Run once to fill the copies, let a server move, and run again with what they have."""
    siege.run()
    siege.bed.renew()
    journey()
    copies.serves = True

    siege.run()

    assert copies.served


@pytest.mark.parametrize("dated", ["age", "date", "fresh"])
@pytest.mark.parametrize("cached", CACHED)
def test_cache_before_nova_convicts_nobody(
    siege: Siege, journey: t.Callable[[], None], cached: str, dated: str
) -> None:
    """It has the answers of an earlier run, in which the server had not moved."""
    copies = siege.wires.nova.middlebox = Copies(CACHED[cached], dated)

    _run_with_old_answers(siege, copies, journey)


def test_workers_with_caches_of_their_own_convict_nobody(
    siege: Siege, journey: t.Callable[[], None]
) -> None:
    copies = siege.wires.nova.middlebox = Copies("/", chance=0.5)

    _run_with_old_answers(siege, copies, journey)


def test_cached_404_of_a_live_server_convicts_nobody(siege: Siege) -> None:
    """The answer is from a time when the server had lost its instance mapping."""
    copies = siege.wires.nova.middlebox = Copies(rf"/servers/{UUID}", statuses=frozenset({404}))
    with siege.bed.world.lost_mapping(siege.bed.live["active"]):
        consumers = list(siege.bed.live.values())
        siege.scheduled.forks.run("orphan_detect", consumers=consumers, **NO_AGE)
    copies.serves = True

    siege.run()

    assert siege.scheduled.done, siege.scheduled.told
    assert copies.served


def test_cached_allocation_of_a_server_does_not_free_what_its_migration_has_for_it(
    siege: Siege, traveller: str
) -> None:
    """A move failed, and a cache has the allocation that the server had on its host before."""
    bed = siege.bed
    copies = siege.wires.placement.middlebox = Copies(rf"GET /allocations/{traveller}")
    siege.scheduled.forks.run("orphan_detect", consumers=[traveller], **NO_AGE)
    migration = servers.migrate(bed.world.cloud, traveller, OTHER)
    servers.revert(bed.world.cloud, traveller)
    holdings.await_providers(bed.world.cloud, traveller, bed.world.provider(HOME))
    bed.world.hold(traveller, {bed.world.provider(OTHER): CLAIM})
    bed.world.hold(migration, {bed.world.provider(HOME): CLAIM})
    siege.before = bed.picture()
    copies.serves = True

    siege.run()

    assert copies.served
    siege.wires.placement.clear()
    held = {**bed.placement.held(traveller), **bed.placement.held(migration)}
    bed.world.hold(traveller, {bed.world.provider(HOME): CLAIM})
    bed.world.hold(migration, {})
    siege.before = bed.picture()
    assert bed.world.provider(HOME) in held


@pytest.mark.parametrize("behind", BEHIND)
def test_placement_behind_a_lagging_copy_changes_no_moved_server(
    siege: Siege, journey: t.Callable[[], None], behind: str
) -> None:
    copies = siege.wires.placement.middlebox = Copies(BEHIND[behind])

    _run_with_old_answers(siege, copies, journey)


def test_write_that_a_lagging_copy_does_not_show_is_not_counted(siege: Siege) -> None:
    """All reading goes to the copy, which is from before the writes."""
    copies = siege.wires.placement.middlebox = Copies("GET /")
    siege.wires.placement.on(
        "POST", "^/allocations$", before=lambda: setattr(copies, "serves", True)
    )

    siege.run()

    outcomes = {entry["outcome"] for entry in siege.scheduled.done["outcomes"]}
    assert outcomes <= {"failed", "skipped"}


def test_placement_restored_from_a_backup_keeps_what_lives(siege: Siege, traveller: str) -> None:
    """Old allocations are back at old generations, and newer servers have none."""
    bed = siege.bed
    cloud, paths = bed.world.cloud, bed.world.paths
    databases.keep_allocations(paths)
    before = {name: bed.placement.held(consumer) for name, consumer in bed.live.items()}
    newer = bed.world.boot(OTHER)
    migration = servers.migrate(cloud, traveller, OTHER)
    databases.restore_allocations(paths)
    siege.before = bed.picture()

    siege.run()

    assert {name: bed.placement.held(consumer) for name, consumer in bed.live.items()} == before
    assert bed.placement.held(newer) in ({}, {bed.world.provider(OTHER): CLAIM})
    # Unconfirmed: whatever it has belongs to it.
    assert bed.placement.held(traveller) == {bed.world.provider(HOME): CLAIM}
    assert bed.placement.held(migration) == {}
    bed.world.hold(traveller, {bed.world.provider(OTHER): CLAIM})
    bed.world.hold(migration, {bed.world.provider(HOME): CLAIM})
    servers.revert(cloud, traveller)
    holdings.await_providers(cloud, traveller, bed.world.provider(HOME))
    siege.before = bed.picture()
