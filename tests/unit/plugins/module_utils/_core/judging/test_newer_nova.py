"""What newer releases of Nova do, or may do one day, and an older rule could misunderstand.

A word that these rules do not know is never taken for the end of something.
"""

from __future__ import annotations

import dataclasses as d

import pytest

from .......plugins.module_utils._core.models.finding import Finding
from .......plugins.module_utils._core.models.placement import Inventory
from ...judging import NO_MINIMUM_AGE, judge
from ...world import NOW, World


def _find_all(world: World, *consumers: str) -> list[Finding]:
    found = judge(world.snapshot(), NO_MINIMUM_AGE)
    return [finding for finding in found if finding.consumer in consumers]


def test_live_migration_cancelled_by_a_graceful_shutdown_changes_nothing(
    world: World, here: str, there: str
) -> None:
    """It was still queued, and nothing is rolled back.

    See nova/compute/manager.py, _cleanup_live_migrations_in_pool and _reset_live_migration.
    """
    server = world.server(here, there)
    migration = world.migration(server, here, there, "cancelled", here, type="live-migration")

    found = _find_all(world, server, migration)

    assert {finding.kind for finding in found} == {"unreverted_allocation", "ended_migration"}
    assert [finding.change for finding in found] == [None, None]


def test_server_evacuated_to_be_stopped_loses_its_source_alone(
    world: World, here: str, there: str
) -> None:
    """From compute microversion 2.95 on, an evacuated server is stopped."""
    server = world.server(there, here, there, status="SHUTOFF")
    world.migration(server, here, there, "done", type="evacuation")

    (finding,) = _find_all(world, server)

    assert (finding.kind, finding.freed_providers) == ("evacuated_source", {here})


def test_evacuation_that_could_not_stop_its_server_keeps_both_hosts(
    world: World, here: str, there: str
) -> None:
    """The guest runs on the destination when stop_instance fails (2.95)."""
    server = world.server(here, here, there)
    world.migration(server, here, there, "failed", type="evacuation")

    assert [finding.change for finding in _find_all(world, server)] == [None]


def test_migration_that_the_resource_tracker_calls_stale_keeps_its_allocation(
    world: World, here: str, there: str
) -> None:
    """nova/compute/resource_tracker.py, _update_usage_from_migrations, writes `error`."""
    server = world.server(there, there, status="VERIFY_RESIZE")
    migration = world.migration(server, here, there, "error", here, type="resize")

    (finding,) = _find_all(world, migration)

    assert (finding.verdict, finding.kind) == ("protected", "verify_resize")


@pytest.mark.parametrize("status", ["paused", "copying", "cancelling", ""])
def test_migration_with_an_unknown_status_is_under_way(
    world: World, here: str, there: str, status: str
) -> None:
    server = world.server(here, here, there)
    migration = world.migration(server, here, there, status, here)

    found = _find_all(world, server, migration)

    assert {finding.kind for finding in found} == {"moving"}
    assert not any(finding.change for finding in found)


@pytest.mark.parametrize("status", ["WARMING", "FREEZING", "DELETED", ""])
def test_server_with_an_unknown_status_is_not_settled(
    world: World, here: str, there: str, status: str
) -> None:
    server = world.server(here, here, there, status=status)
    migration = world.migration(server, there, here, "confirmed", there)

    assert not any(finding.change for finding in _find_all(world, server, migration))


@pytest.mark.parametrize("status", ["completed", "confirmed", "done", "error", "cancelled"])
def test_migration_of_an_unknown_type_frees_nothing(
    world: World, here: str, there: str, status: str
) -> None:
    """Whether its guest can be at either end is not known."""
    server = world.server(here, here, there)
    migration = world.migration(server, here, there, status, there, type="warm-migration")

    assert not any(finding.change for finding in _find_all(world, server, migration))
    assert {one.reason.id for one in _find_all(world, server, migration)} == {
        "unknown_move_type",
        "server_has_unknown_move",
    }


@pytest.mark.parametrize("status", ["completed", "confirmed", "done"])
def test_server_that_arrived_by_an_unknown_type_of_move_loses_nothing(
    world: World, here: str, there: str, status: str
) -> None:
    server = world.server(there, here, there)
    migration = world.migration(server, here, there, status, here, type="warm-migration")

    assert not any(finding.change for finding in _find_all(world, migration))


@pytest.mark.parametrize("kind", ["INSTANCE", "MIGRATION"])
def test_consumers_that_nova_types_are_judged_and_keep_their_type(
    world: World, here: str, there: str, kind: str
) -> None:
    server = world.server(there)
    world.hold(server, here, there, type=kind)
    resized = world.server(there, there, status="VERIFY_RESIZE")
    waiting = world.migration(resized, here, there, "finished", type="resize")
    world.hold(waiting, here, type=kind)

    (leftover,) = _find_all(world, server)
    (finding,) = _find_all(world, waiting)

    assert leftover.kind == "extra_host"
    assert leftover.change is not None and leftover.change.after["consumer_type"] == kind
    assert finding.verdict == "protected"


@pytest.mark.parametrize("kind", ["RESERVATION", "SHARE", "unknown_to_us"])
def test_consumers_of_a_type_that_nova_does_not_use_are_protected(
    world: World, here: str, kind: str
) -> None:
    server = world.server(here, status="ACTIVE")
    world.hold(server, here, type=kind)
    world.delete(server)

    (finding,) = _find_all(world, server)

    assert (finding.verdict, finding.kind) == ("protected", "foreign_type")


def test_one_time_use_device_is_reserved_and_still_the_servers(world: World, here: str) -> None:
    """Nova reserves the whole inventory once the device is allocated (2025.2)."""
    device = world.provider("compute-1_0000:84:00.0", here)
    server = world.server(here, here)
    world.hold(server, device, amounts={"CUSTOM_PCI_8086_1572": 1})
    world.stock[device] = {"CUSTOM_PCI_8086_1572": Inventory(1, 1, 1, 1, 1, 1.0)}

    assert not any(finding.change for finding in _find_all(world, server))


def test_server_of_a_resize_to_another_cell_is_seen_on_both_hosts(
    world: World, here: str, there: str
) -> None:
    """The hypervisors of both cells have a row of it, of which one is hidden.

    See nova/conductor/tasks/cross_cell_migrate.py; os-hypervisors does not leave it out.
    """
    server = world.server(there, there, status="VERIFY_RESIZE")
    migration = world.migration(server, here, there, "finished", here, type="resize")
    world.nodes[here] = d.replace(world.nodes[here], servers=(server,))

    (finding,) = _find_all(world, migration)

    assert finding.verdict == "protected"


def test_unshelved_server_bound_to_a_host_keeps_what_it_has(
    world: World, here: str, there: str
) -> None:
    """From 2.91 on an unshelve can name a host: until that has begun there is only the claim."""
    server = world.server(None, there, status="SHELVED_OFFLOADED", task_state="unshelving")
    world.did(server, "unshelve", None)

    assert [finding.verdict for finding in _find_all(world, server)] == ["protected"]


def test_unshelve_that_lost_its_task_keeps_its_claim(world: World, here: str, there: str) -> None:
    """The state was reset while the request waited for its host."""
    server = world.server(None, there, status="SHELVED_OFFLOADED")
    world.did(server, "create", NOW)
    world.did(server, "shelve", NOW)
    world.did(server, "unshelve")

    assert [finding.change for finding in _find_all(world, server)] == [None]
    assert [one.reason.id for one in _find_all(world, server)] == ["last_actions_unfinished"]
