"""What newer releases of Nova do, or may do one day, and an older rule could misunderstand.

A word that these rules do not know is never taken for the end of something.
"""

import dataclasses as d

import pytest

from .......plugins.module_utils._core.models.placement import Inventory
from ...world import NOW
from ..scene import Scene

ENDS = pytest.mark.parametrize("status", ["completed", "confirmed", "done"])


def test_live_migration_cancelled_by_a_graceful_shutdown_changes_nothing(scene: Scene) -> None:
    """It was still queued, and nothing is rolled back.

    See nova/compute/manager.py, _cleanup_live_migrations_in_pool and _reset_live_migration.
    """
    server = scene.server(scene.here, scene.there)
    migration = scene.goes(server, "cancelled", scene.here, type="live-migration")

    assert scene.found(server).kind == "unreverted_allocation" and not scene.found(server).change
    assert scene.found(migration).kind == "ended_migration" and not scene.found(migration).change


def test_server_evacuated_to_be_stopped_loses_its_source_alone(scene: Scene) -> None:
    """From compute microversion 2.95 on, an evacuated server is stopped."""
    server = scene.server(scene.there, scene.here, scene.there, status="SHUTOFF")
    scene.goes(server, "done", type="evacuation")
    finding = scene.found(server)

    assert (finding.kind, finding.freed_providers) == ("evacuated_source", {scene.here})


def test_evacuation_that_could_not_stop_its_server_keeps_both_hosts(scene: Scene) -> None:
    """The guest runs on the destination when stop_instance fails (2.95)."""
    server = scene.spread()
    scene.goes(server, "failed", type="evacuation")

    assert not scene.found(server).change


def test_migration_that_the_resource_tracker_calls_stale_keeps_its_allocation(scene: Scene) -> None:
    """nova/compute/resource_tracker.py, _update_usage_from_migrations, writes `error`."""
    server = scene.server(scene.there, scene.there, status="VERIFY_RESIZE")
    migration = scene.goes(server, "error", scene.here, type="resize")

    assert scene.told(migration)[:2] == ("verify_resize", "protected")


@pytest.mark.parametrize("status", ["paused", "copying", "cancelling", ""])
def test_migration_with_an_unknown_status_is_under_way(scene: Scene, status: str) -> None:
    server = scene.spread()
    migration = scene.goes(server, status, scene.here)

    for consumer in (server, migration):
        assert scene.found(consumer).kind == "moving" and not scene.found(consumer).change


@pytest.mark.parametrize("status", ["WARMING", "FREEZING", "DELETED", ""])
def test_server_with_an_unknown_status_is_not_settled(scene: Scene, status: str) -> None:
    server = scene.spread(status=status)
    migration = scene.comes(server, "confirmed", scene.there)

    assert not scene.found(server).change and not scene.found(migration).change


@pytest.mark.parametrize("status", ["completed", "confirmed", "done", "error", "cancelled"])
def test_migration_of_an_unknown_type_frees_nothing(scene: Scene, status: str) -> None:
    """Whether its guest can be at either end is not known."""
    server = scene.spread()
    migration = scene.goes(server, status, scene.there, type="warm-migration")

    assert scene.undecided(server) == "unknown_move_type"
    assert scene.undecided(migration) == "server_has_unknown_move"


@ENDS
def test_server_that_arrived_by_an_unknown_type_of_move_loses_nothing(
    scene: Scene, status: str
) -> None:
    server = scene.server(scene.there, scene.here, scene.there)

    assert not scene.found(scene.goes(server, status, scene.here, type="warm-migration")).change


@pytest.mark.parametrize("kind", ["INSTANCE", "MIGRATION"])
def test_consumers_that_nova_types_are_judged_and_keep_their_type(scene: Scene, kind: str) -> None:
    server = scene.hold(scene.server(scene.there), scene.here, scene.there, type=kind)
    resized = scene.server(scene.there, scene.there, status="VERIFY_RESIZE")
    waiting = scene.hold(scene.goes(resized, "finished", type="resize"), scene.here, type=kind)
    leftover = scene.found(server)

    assert leftover.kind == "extra_host"
    assert leftover.change is not None and leftover.change.after["consumer_type"] == kind
    assert scene.found(waiting).verdict == "protected"


@pytest.mark.parametrize("kind", ["RESERVATION", "SHARE", "unknown_to_us"])
def test_consumers_of_a_type_that_nova_does_not_use_are_protected(scene: Scene, kind: str) -> None:
    server = scene.delete(scene.hold(scene.server(scene.here), scene.here, type=kind))

    assert scene.told(server)[:2] == ("foreign_type", "protected")


def test_one_time_use_device_is_reserved_and_still_the_servers(scene: Scene) -> None:
    """Nova reserves the whole inventory once the device is allocated (2025.2)."""
    device = scene.provider("compute-1_0000:84:00.0", scene.here)
    server = scene.server(scene.here, scene.here)
    scene.hold(server, device, amounts={"CUSTOM_PCI_8086_1572": 1})
    scene.stock[device] = {"CUSTOM_PCI_8086_1572": Inventory(1, 1, 1, 1, 1, 1.0)}
    finding = scene.find(server)

    assert finding is None or not finding.change


def test_server_of_a_resize_to_another_cell_is_seen_on_both_hosts(scene: Scene) -> None:
    """The hypervisors of both cells have a row of it, of which one is hidden.

    See nova/conductor/tasks/cross_cell_migrate.py; os-hypervisors does not leave it out.
    """
    server = scene.server(scene.there, scene.there, status="VERIFY_RESIZE")
    migration = scene.goes(server, "finished", scene.here, type="resize")
    scene.nodes[scene.here] = d.replace(scene.nodes[scene.here], servers=(server,))

    assert scene.found(migration).verdict == "protected"


def test_unshelved_server_bound_to_a_host_keeps_what_it_has(scene: Scene) -> None:
    """From 2.91 on an unshelve can name a host: until that has begun there is only the claim."""
    server = scene.server(None, scene.there, status="SHELVED_OFFLOADED", task_state="unshelving")

    assert scene.found(scene.did(server, "unshelve", None)).verdict == "protected"


def test_unshelve_that_lost_its_task_keeps_its_claim(scene: Scene) -> None:
    """The state was reset while the request waited for its host."""
    server = scene.server(None, scene.there, status="SHELVED_OFFLOADED")
    scene.did(scene.did(server, "create", NOW), "shelve", NOW)

    assert scene.undecided(scene.did(server, "unshelve")) == "last_actions_unfinished"
