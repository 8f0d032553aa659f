"""When a server is settled on its host, so that a migration of it may lose its allocation.

And what the server must have itself before that.
"""

import typing as t

import hypothesis
import pytest

from .......plugins.module_utils._core.facts.consumer import build_views
from .......plugins.module_utils._core.facts.index import SnapshotIndex
from ...situations import Situation, deleted_server, ended_migration, evacuated_source, extra_host
from ...world import World, answer
from ...worlds import worlds
from ..scene import PooledScene

UNSETTLED = (
    *("BUILD", "REBUILD", "REBOOT", "SHELVED_OFFLOADED", "DELETED", "MIGRATING", "ERROR"),
    "",
)


@pytest.fixture(name="cloud")
def _cloud() -> PooledScene:
    return PooledScene()


@pytest.mark.parametrize(
    "situation",
    [evacuated_source, extra_host, ended_migration],
    ids=lambda situation: situation.__name__,
)
@pytest.mark.parametrize(
    "state",
    [
        *({"status": status} for status in UNSETTLED),
        {"task_known": False},
        {"task_state": "powering-off"},
        {"host": None},
        {"node": None},
        {"host": "compute-3"},
    ],
    ids=str,
)
def test_unsettled_server_or_unknown_host_keeps_everything(
    cloud: PooledScene, situation: Situation, state: dict[str, t.Any]
) -> None:
    consumer = situation(cloud)
    server = cloud.migrations[consumer].server if consumer in cloud.migrations else consumer
    cloud.alter(server, **state)

    assert cloud.found(consumer).change is None


@pytest.mark.parametrize("status", ["confirmed", "error"])
@pytest.mark.parametrize(
    ("servers", "migrations"),
    [
        ((), ("here",)),
        ((), ("there",)),
        (("pool",), ("here", "pool")),
        (("there",), ("here", "pool")),
        (("there",), ("here", "pool of here")),
        (("there",), ("here", "former pool")),
        (("here",), ("there",)),
    ],
    ids=str,
)
def test_migration_keeps_what_its_server_lacks(
    cloud: PooledScene, servers: tuple[str, ...], migrations: tuple[str, ...], status: str
) -> None:
    named = {
        "here": cloud.here,
        "there": cloud.there,
        "pool": cloud.pool,
        "pool of here": cloud.provider("pool of here", cloud.here, sharing=True),
        "former pool": cloud.provider("former pool"),
    }
    server = cloud.server(cloud.there, *(named[name] for name in servers))
    migration = cloud.migration(
        server, cloud.here, cloud.there, status, *(named[name] for name in migrations)
    )

    assert cloud.found(migration).verdict == "undecided"


def test_server_on_an_unknown_host_does_not_have_its_own_tree(cloud: PooledScene) -> None:
    cloud.host("compute-2")
    gone = cloud.provider("gone")
    server = cloud.server(cloud.there, gone)
    migration = cloud.goes(server, "confirmed", cloud.here)
    del cloud.providers[gone]

    assert cloud.undecided(migration) == "server_has_less_than_migration"


@pytest.mark.parametrize("status", ["confirmed", "completed", "done"])
def test_server_not_where_its_newest_move_ended_is_not_on_the_extra_host(
    cloud: PooledScene, status: str
) -> None:
    server = extra_host(cloud)
    cloud.comes(server, status)

    assert cloud.undecided(server) == "newest_move_unfinished"


@pytest.mark.parametrize("status", ["error", "failed", "cancelled", "reverted"])
def test_move_that_changed_nothing_does_not_locate_the_server(
    cloud: PooledScene, status: str
) -> None:
    server = extra_host(cloud)
    cloud.comes(server, status)

    finding = cloud.found(server)
    assert (finding.verdict, finding.freed_providers) == ("orphaned", {cloud.here})


def test_only_the_newest_move_locates_the_server(cloud: PooledScene) -> None:
    server = extra_host(cloud)
    cloud.comes(server, "completed")
    cloud.goes(server, "completed")

    assert cloud.found(server).verdict == "orphaned"


@pytest.mark.parametrize(
    ("status", "changes", "reason"),
    [
        ("migrating", {}, "server_is_moving"),
        ("migrating", {"hypervisors": answer("GET hypervisors", 500)}, "hypervisor_listing_unread"),
        ("error", {}, None),
    ],
)
def test_what_contradicts_that_a_server_is_gone(
    cloud: PooledScene, status: str, changes: dict[str, t.Any], reason: str | None
) -> None:
    server = deleted_server(cloud)
    cloud.goes(server, status)
    views = build_views(SnapshotIndex(cloud.snapshot(**changes)))
    (view,) = [view for view in views if view.consumer == server]

    assert (view.contradiction.id if view.contradiction else None) == reason


@hypothesis.given(worlds())
def test_a_healthy_server_has_neither_another_tree_nor_a_doubtful_one(world: World) -> None:
    """Lookups ask the same before it is known whether a host is gone."""
    for view in build_views(SnapshotIndex(world.snapshot())):
        has_own_only = not view.other_trees and not view.doubtful_trees
        is_server = view.migration is None and view.own_tree is not None

        assert view.healthy == (is_server and view.own_tree in view.trees and has_own_only)
