"""The rules, as tables.

What is proven, what is protected, and that nothing a live server needs is ever an orphan.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Callable

import pytest

from .......plugins.module_utils._core.facts.index import ListingsIndex, SnapshotIndex
from .......plugins.module_utils._core.models.nova import Service
from .......plugins.module_utils._core.models.snapshot import Scope
from .......plugins.module_utils._core.options.policy import Policy
from .......plugins.module_utils._core.reading.candidates import find_candidates
from ...judging import judge
from ...world import ASKED_AT, CLAIM, FLAVOR, NOW, PLENTY, World, answer

Situation = Callable[[World, str, str], str]


POLICY = Policy(min_age=3600, unknown_min_age=86400)
DISK = {"DISK_GB": 1}


def deleted(world: World, here: str, there: str) -> str:
    server = world.server(here, here)
    world.delete(server)
    return server


def deleted_with_child(world: World, here: str, there: str) -> str:
    server = deleted(world, here, there)
    return world.hold(server, world.provider("compute-1_pci", here), amounts={"CUSTOM_PCI_X": 1})


def deleted_on_an_orphaned_provider(world: World, here: str, there: str) -> str:
    server = deleted(world, here, there)
    del world.nodes[here]
    return server


def deleted_named_by_an_ended_migration(world: World, here: str, there: str) -> str:
    server = deleted(world, here, there)
    world.migration(server, here, there, "error")
    return server


def ended_migration(world: World, here: str, there: str) -> str:
    server = world.server(there, there)
    return world.migration(server, here, there, "confirmed", here)


def ended_migration_from_a_host_that_is_gone(world: World, here: str, there: str) -> str:
    migration = ended_migration(world, here, there)
    world.remove_host(here)
    return migration


def ended_migration_after_a_failed_move_to_the_same_host(
    world: World, here: str, there: str
) -> str:
    """The server is where that move should have taken its guest."""
    server = world.server(here, here)
    world.migration(server, there, here, "error", type="live-migration")
    world.migration(server, there, here, "confirmed")
    return world.migration(server, here, here, "confirmed", here, type="resize")


def ended_migration_of_deleted(world: World, here: str, there: str) -> str:
    server = world.server(there, there)
    world.delete(server)
    return world.migration(server, here, there, "error", here)


def ended_migration_on_the_same_host(world: World, here: str, there: str) -> str:
    server = world.server(here, here)
    return world.migration(server, here, here, "confirmed", here, type="resize")


def ended_migration_with_doubled_amounts(world: World, here: str, there: str) -> str:
    pool = world.provider("pool", sharing=True)
    server = world.hold(world.server(there, there), pool, amounts=DISK)
    return world.hold(world.migration(server, here, there, "confirmed", here), pool, amounts=DISK)


def deleted_migration(world: World, here: str, there: str) -> str:
    migration = world.stranger(here)
    world.unlisted_migrations.add(migration)
    return migration


def evacuated(world: World, here: str, there: str, status: str = "done") -> str:
    server = world.server(there, here, there)
    world.migration(server, here, there, status, type="evacuation")
    return server


def evacuated_from_an_orphaned_provider(world: World, here: str, there: str) -> str:
    server = evacuated(world, here, there)
    world.remove_host(here)
    return server


def evacuated_from_a_node_that_was_renamed(world: World, here: str, there: str) -> str:
    """nova-compute has started since, but does not find its old node to complete the evacuation."""
    old = world.host("old-name", service="rack-7")
    server = evacuated(world, old, there)
    world.remove_host(old)
    world.host("new-name", service="rack-7")
    return server


def evacuated_and_completed(world: World, here: str, there: str) -> str:
    return evacuated(world, here, there, "completed")


def extra_host(world: World, here: str, there: str) -> str:
    return world.server(there, here, there)


def extra_host_named_by_a_migration(world: World, here: str, there: str) -> str:
    server = world.server(there, there)
    world.migration(server, here, there, "error")
    return world.hold(server, here, amounts=DISK)


def unknown(world: World, here: str, there: str) -> str:
    world.server(there, there)
    return world.stranger(here)


def extra_host_with_a_device(world: World, here: str, there: str) -> str:
    """Its own host has none, and Nova lists the other one: no device of that is its own."""
    nic = world.provider("compute-1_nic", here)
    return world.hold(extra_host(world, here, there), nic, amounts={"CUSTOM_VF": 1})


def shelved_away(world: World, here: str, there: str) -> str:
    server = world.server(None, here, status="SHELVED_OFFLOADED")
    world.did(server, "create", NOW)
    world.did(server, "shelve", NOW)
    return server


def offloaded_without_a_record_of_it(world: World, here: str, there: str) -> str:
    server = world.server(None, here, status="SHELVED_OFFLOADED", launched_at=NOW)
    world.did(server, "create", NOW)
    return server


def failed_to_boot(world: World, here: str, there: str) -> str:
    server = world.server(None, here, status="ERROR")
    world.did(server, "create", NOW)
    return server


def failed_to_be_scheduled(world: World, here: str, there: str) -> str:
    """No host was ever asked."""
    server = world.server(None, here, status="ERROR")
    world.did(server, "create", NOW, event="conductor_schedule_and_build_instances")
    world.fail_newest_action(server)
    return server


def shelved_away_and_found_no_host(world: World, here: str, there: str) -> str:
    server = shelved_away(world, here, there)
    _fail_to_be_scheduled(world, server)
    return server


def failed_to_boot_and_reset_to_error(world: World, here: str, there: str) -> str:
    """A reset is an action without events."""
    server = failed_to_boot(world, here, there)
    world.did(server, "resetState")
    return server


def failed_to_be_unshelved_and_reset_to_error(world: World, here: str, there: str) -> str:
    server = shelved_away(world, here, there)
    _fail_to_be_scheduled(world, server)
    world.did(server, "resetState")
    world.servers[server] = dataclasses.replace(world.servers[server], status="ERROR")
    return server


def failed_to_boot_on_two_hosts(world: World, here: str, there: str) -> str:
    """Nova ends only the first row of two events of one name."""
    server = world.server(None, here, status="ERROR")
    world.did(server, "create", NOW, None)
    return server


def failed_to_boot_and_locked(world: World, here: str, there: str) -> str:
    server = failed_to_boot(world, here, there)
    world.did(server, "lock")
    return server


def marked_as_deleted_by_hand(world: World, here: str, there: str) -> str:
    """The row has `deleted` = 1, where Nova writes the row's own id.

    No listing has it, and Nova still shows its actions.
    """
    server = world.server(here, here)
    world.delete_by_hand(server)
    return server


def marked_as_deleted_by_hand_after_a_delete_that_failed(
    world: World, here: str, there: str
) -> str:
    server = world.server(here, here)
    world.did(server, "create", NOW)
    world.did(server, "delete", NOW)
    world.delete_by_hand(server)
    return server


def ended_migration_of_a_server_marked_as_deleted(world: World, here: str, there: str) -> str:
    server = marked_as_deleted_by_hand(world, here=there, there=here)
    return world.migration(server, here, there, "error", here)


def shelved_away_after_a_long_life(world: World, here: str, there: str) -> str:
    """The action that placed it is older than the newest ten actions.

    Some in between were never ended.
    """
    server = world.server(None, here, status="SHELVED_OFFLOADED")
    world.did(server, "create", NOW)
    for number in range(12):
        world.did(server, "reboot", None if number % 3 else NOW)
    world.did(server, "shelve", NOW)
    return server


def shelved_away_long_after_it_was_offloaded(world: World, here: str, there: str) -> str:
    server = shelved_away_after_a_long_life(world, here, there)
    world.did(server, "lock")
    world.did(server, "shelveOffload", NOW)
    world.did(server, "unlock")
    return server


def offloaded_with_its_placement_no_longer_listed(world: World, here: str, there: str) -> str:
    """It has more actions than one page, and its creation is not among them.

    It has an allocation on the very host that shelved it.
    """
    server = world.server(None, here, status="SHELVED_OFFLOADED")
    world.did(server, "reboot", NOW)
    world.did(server, "shelve", NOW)
    return server


def shelved_away_from_a_host_that_is_gone(world: World, here: str, there: str) -> str:
    server = shelved_away(world, here, there)
    world.remove_host(here)
    return server


def failed_to_boot_on_a_host_that_is_gone(world: World, here: str, there: str) -> str:
    server = failed_to_boot(world, here, there)
    world.remove_host(here)
    return server


def extra_host_that_is_gone(world: World, here: str, there: str) -> str:
    """No migration names the host: the rows are purged, or it was moved before there were any."""
    server = extra_host(world, here, there)
    world.remove_host(here)
    return server


def extra_host_that_is_gone_with_its_disk_in_a_pool(world: World, here: str, there: str) -> str:
    return world.hold(
        extra_host_that_is_gone(world, here, there),
        world.provider("pool", sharing=True),
        amounts=DISK,
    )


def _moved_in_vain_to(world: World, here: str, there: str, type: str = "live-migration") -> str:
    """Create a settled server on `there` with an allocation where a failed move went."""
    server = world.server(there, here, there)
    world.migration(server, there, here, "error", type=type)
    return server


def moved_in_vain_and_later_confirmed_away(world: World, here: str, there: str) -> str:
    server = _moved_in_vain_to(world, here, there)
    world.migration(server, there, here, "confirmed")
    world.migration(server, here, there, "confirmed")
    return server


def moved_in_vain_and_later_live_migrated_away(world: World, here: str, there: str) -> str:
    server = _moved_in_vain_to(world, here, there, "evacuation")
    world.set_service(there, "up")
    world.migration(server, there, here, "completed", type="live-migration")
    world.migration(server, here, there, "completed", type="live-migration")
    return server


def moved_in_vain_and_later_reverted_from_there(world: World, here: str, there: str) -> str:
    server = _moved_in_vain_to(world, here, there)
    world.migration(server, there, here, "reverted", type="resize")
    return server


def moved_in_vain_and_later_evacuated_from_there(world: World, here: str, there: str) -> str:
    server = _moved_in_vain_to(world, here, there)
    world.migration(server, there, here, "confirmed")
    world.migration(server, here, there, "done", type="evacuation")
    return server


def _unshelved_on(world: World, moved_to: str, home: str, *holds: str) -> str:
    """Create a server that was moved to `moved_to`, then shelved, and is on `home` since."""
    server = world.server(home, *holds)
    world.migration(server, home, moved_to, "confirmed")
    world.did(server, "create", NOW, host=world.nodes[home].host)
    world.did(server, "shelve", NOW, host=world.nodes[moved_to].host)
    world.did(server, "unshelve", NOW, host=world.nodes[home].host)
    return server


def unshelved_with_another_host(world: World, here: str, there: str) -> str:
    return _unshelved_on(world, here, there, here, there)


def confirmed_migration_of_an_unshelved_server(world: World, here: str, there: str) -> str:
    """The migration's own host is the server's host again."""
    server = _unshelved_on(world, here, there, there)
    (migration,) = (known for known in world.migrations.values() if known.server == server)
    return world.hold(migration.uuid, here)


def unshelved_and_locked_since(world: World, here: str, there: str) -> str:
    server = unshelved_with_another_host(world, here, there)
    world.did(server, "lock")
    return server


ORPHANED = {
    marked_as_deleted_by_hand: ("deleted_server", {"compute-1"}),
    marked_as_deleted_by_hand_after_a_delete_that_failed: ("deleted_server", {"compute-1"}),
    ended_migration_of_a_server_marked_as_deleted: ("ended_migration", {"compute-1"}),
    shelved_away_after_a_long_life: ("unhosted_server", {"compute-1"}),
    shelved_away_long_after_it_was_offloaded: ("unhosted_server", {"compute-1"}),
    offloaded_with_its_placement_no_longer_listed: ("unhosted_server", {"compute-1"}),
    shelved_away_from_a_host_that_is_gone: ("unhosted_server", {"compute-1"}),
    failed_to_boot_on_a_host_that_is_gone: ("unhosted_server", {"compute-1"}),
    extra_host_that_is_gone: ("extra_host", {"compute-1"}),
    extra_host_that_is_gone_with_its_disk_in_a_pool: ("extra_host", {"compute-1"}),
    moved_in_vain_and_later_confirmed_away: ("extra_host", {"compute-1"}),
    moved_in_vain_and_later_live_migrated_away: ("extra_host", {"compute-1"}),
    moved_in_vain_and_later_reverted_from_there: ("extra_host", {"compute-1"}),
    moved_in_vain_and_later_evacuated_from_there: ("evacuated_source", {"compute-1"}),
    unshelved_with_another_host: ("extra_host", {"compute-1"}),
    confirmed_migration_of_an_unshelved_server: ("ended_migration", {"compute-1"}),
    unshelved_and_locked_since: ("extra_host", {"compute-1"}),
    deleted: ("deleted_server", {"compute-1"}),
    deleted_with_child: ("deleted_server", {"compute-1", "compute-1_pci"}),
    deleted_on_an_orphaned_provider: ("deleted_server", {"compute-1"}),
    deleted_named_by_an_ended_migration: ("deleted_server", {"compute-1"}),
    ended_migration: ("ended_migration", {"compute-1"}),
    ended_migration_from_a_host_that_is_gone: ("ended_migration", {"compute-1"}),
    ended_migration_after_a_failed_move_to_the_same_host: ("ended_migration", {"compute-1"}),
    ended_migration_of_deleted: ("ended_migration", {"compute-1"}),
    ended_migration_on_the_same_host: ("ended_migration", {"compute-1"}),
    ended_migration_with_doubled_amounts: ("ended_migration", {"compute-1", "pool"}),
    deleted_migration: ("deleted_migration", {"compute-1"}),
    evacuated: ("evacuated_source", {"compute-1"}),
    evacuated_from_a_node_that_was_renamed: ("evacuated_source", {"old-name"}),
    evacuated_and_completed: ("evacuated_source", {"compute-1"}),
    evacuated_from_an_orphaned_provider: ("evacuated_source", {"compute-1"}),
    extra_host: ("extra_host", {"compute-1"}),
    extra_host_with_a_device: ("extra_host", {"compute-1", "compute-1_nic"}),
    shelved_away: ("unhosted_server", {"compute-1"}),
    offloaded_without_a_record_of_it: ("unhosted_server", {"compute-1"}),
    failed_to_boot: ("unhosted_server", {"compute-1"}),
    failed_to_be_scheduled: ("unhosted_server", {"compute-1"}),
    shelved_away_and_found_no_host: ("unhosted_server", {"compute-1"}),
    failed_to_boot_and_reset_to_error: ("unhosted_server", {"compute-1"}),
    failed_to_be_unshelved_and_reset_to_error: ("unhosted_server", {"compute-1"}),
    failed_to_boot_on_two_hosts: ("unhosted_server", {"compute-1"}),
    failed_to_boot_and_locked: ("unhosted_server", {"compute-1"}),
    unknown: ("unknown_consumer", {"compute-1"}),
}


@pytest.mark.parametrize("situation", ORPHANED, ids=lambda situation: situation.__name__)
def test_orphan_is_proven(situation: Situation) -> None:
    kind, names = ORPHANED[situation]
    world, (here, there) = _two_hosts()
    consumer = situation(world, here, there)

    finding = _found(world, consumer)

    assert (finding.verdict, finding.kind) == ("orphaned", kind)
    if situation is ended_migration_of_a_server_marked_as_deleted:
        assert finding.reason.id == "migration_of_deleted_server"
    assert {world.providers[provider].name for provider in finding.freed_providers} == names
    assert finding.change is not None
    assert (
        set(finding.change.after["allocations"])
        == set(world.allocations[consumer].resources) - finding.freed_providers
    )
    assert finding.evidence and finding.reason.endswith(".")


def booting(world: World, here: str, there: str) -> str:
    return world.server(None, here, status="BUILD", task_state="scheduling")


def moving(world: World, here: str, there: str) -> str:
    server = world.server(here, there)
    world.migration(server, here, there, "migrating", here)
    return server


def source_of_a_move(world: World, here: str, there: str) -> str:
    return world.migration(world.server(here, there), here, there, "pre-migrating", here)


def unconfirmed_resize(world: World, here: str, there: str) -> str:
    return world.migration(
        world.server(there, there, status="VERIFY_RESIZE"), here, there, "finished", here
    )


def unconfirmed_resize_with_failed_migration(world: World, here: str, there: str) -> str:
    return world.migration(
        world.server(there, there, status="VERIFY_RESIZE"), here, there, "error", here
    )


def with_task(world: World, here: str, there: str) -> str:
    return world.server(there, here, there, task_state="rebuilding")


def soft_deleted(world: World, here: str, there: str) -> str:
    return world.server(there, here, there, status="SOFT_DELETED")


def unknown_status(world: World, here: str, there: str) -> str:
    return world.server(None, here, there, status="UNKNOWN")


def error_with_host(world: World, here: str, there: str) -> str:
    return world.server(there, here, there, status="ERROR")


def container(world: World, here: str, there: str) -> str:
    return world.stranger(here, type="CONTAINER")


def on_somebody_elses_provider(world: World, here: str, there: str) -> str:
    return world.stranger(world.provider("fpga-farm"))


def young(world: World, here: str, there: str) -> str:
    server = deleted(world, here, there)
    return world.hold(server, here, age=60)


def of_unknown_age(world: World, here: str, there: str) -> str:
    return world.hold(deleted(world, here, there), here, age=None)


def unknown_but_young(world: World, here: str, there: str) -> str:
    return world.stranger(here, age=7200)


def written_in_large_letters(world: World, here: str, there: str) -> str:
    """Placement accepts such a uuid, and Nova never writes one."""
    return world.hold("ABCDEF12-0000-4000-8000-00000000ABCD", here)


def purged_on_a_host_of_another_nova(world: World, here: str, there: str) -> str:
    """Its host has Nova's trait and is not ours.

    A service of that name runs, and has no compute node yet.
    """
    consumer = world.stranger(here)
    world.remove_host(here)
    world.services.append(Service("nova-compute", "compute-1", "enabled", "up"))
    return consumer


PROTECTED = {
    written_in_large_letters: ("foreign_uuid", "uuid_not_novas"),
    purged_on_a_host_of_another_nova: ("foreign_provider", "of_other_nova"),
    booting: ("booting", "being_built"),
    moving: ("moving", "migration_under_way"),
    source_of_a_move: ("moving", "migration_under_way"),
    unconfirmed_resize: ("verify_resize", "resize_to_confirm"),
    unconfirmed_resize_with_failed_migration: ("verify_resize", "resize_to_confirm"),
    with_task: ("task", "task_under_way"),
    soft_deleted: ("soft_deleted", "soft_deleted"),
    unknown_status: ("unknown_status", "status_unknown"),
    error_with_host: ("error_with_host", "error_on_host"),
    container: ("foreign_type", "of_other_service"),
    on_somebody_elses_provider: ("foreign_provider", "of_other_nova"),
    young: ("too_young", "younger_than_min_age"),
    of_unknown_age: ("too_young", "younger_than_min_age"),
    unknown_but_young: ("unknown_consumer", "younger_than_unknown_min_age"),
}


@pytest.mark.parametrize("situation", PROTECTED, ids=lambda situation: situation.__name__)
def test_consumer_is_protected(situation: Situation) -> None:
    world, (here, there) = _two_hosts()

    finding = _found(world, situation(world, here, there))

    assert (finding.verdict, finding.change) == ("protected", None)
    assert (finding.kind, finding.reason.id) == PROTECTED[situation]


def test_finding_names_the_server_and_the_migration() -> None:
    world, (here, there) = _two_hosts()
    server = _found(world, extra_host(world, here, there))
    migration = _found(world, ended_migration(world, here, there))

    assert server.server is not None and server.server.uuid == server.subject
    assert migration.migration is not None and migration.migration.uuid == migration.subject


def test_young_consumer_stays_protected_while_a_cell_does_not_answer() -> None:
    world, (here, there) = _two_hosts()
    consumer = unknown_but_young(world, here, there)
    world.services.append(Service("nova-compute", "compute-9", "UNKNOWN", None))
    finding = _found(world, consumer)

    assert (finding.verdict, finding.kind) == ("protected", "unknown_consumer")


def interrupted_live_migration(world: World, here: str, there: str) -> str:
    """The guest runs on the source, where only the ended migration has an allocation.

    The server has the destination.
    """
    return world.migration(
        world.server(here, there), here, there, "error", here, type="live-migration"
    )


def server_of_an_interrupted_live_migration(world: World, here: str, there: str) -> str:
    server = world.server(here, there)
    world.migration(server, here, there, "error", here, type="live-migration")
    return server


def live_migration_that_failed_towards_a_host_without_a_word_of_its_node(
    world: World, here: str, there: str
) -> str:
    """The host name alone shows where the guest may run."""
    server = world.server(here, here, there)
    move = world.migration(server, here, there, "error", type="live-migration")
    world.migrations[move] = dataclasses.replace(world.migrations[move], dest_node=None)
    return server


def ended_migration_with_the_only_disk(world: World, here: str, there: str) -> str:
    pool = world.provider("pool", sharing=True)
    return world.hold(
        world.migration(world.server(there, there), here, there, "error", here), pool, amounts=DISK
    )


def ended_migration_with_the_only_child(world: World, here: str, there: str) -> str:
    child = world.provider("compute-2_nic", there)
    migration = world.migration(world.server(there, there), here, there, "error", here)
    return world.hold(migration, child, amounts={"CUSTOM_VF": 1})


def ended_migration_of_a_server_in_error(world: World, here: str, there: str) -> str:
    return world.migration(world.server(None, there, status="ERROR"), here, there, "error", here)


def with_only_a_part_of_its_own_host(world: World, here: str, there: str) -> str:
    child = world.provider("compute-2_nic", there)
    return world.hold(world.server(there, here), child, amounts={"CUSTOM_VF": 1})


def with_a_formerly_shared_disk(world: World, here: str, there: str) -> str:
    return world.hold(world.server(there, there), here, amounts=DISK)


def with_a_formerly_shared_device(world: World, here: str, there: str) -> str:
    """The trait is gone.

    No move leaves an allocation of classes that the server does not have on its own host.
    """
    return world.hold(world.server(there, there), here, amounts={"CUSTOM_FPGA": 1})


def confirmed_migration_with_the_only_allocation_on_the_host(
    world: World, here: str, there: str
) -> str:
    """The server has lost its own allocation except for a child.

    Only the migration's allocation accounts for the guest.
    """
    server = world.hold(
        world.server(here), world.provider("compute-1_nic", here), amounts={"CUSTOM_VF": 1}
    )
    return world.migration(server, here, here, "confirmed", here, type="resize")


def ended_migration_with_the_only_disk_on_a_formerly_sharing_host(
    world: World, here: str, there: str
) -> str:
    migration = world.migration(world.server(there, there), here, there, "error", here)
    return world.hold(migration, world.host("compute-3"), amounts=DISK)


def without_a_mapping(world: World, here: str, there: str) -> str:
    """Nova answers 404 for a live server, but shows it on its host."""
    server = world.server(here, here)
    world.unmapped.add(server)
    return server


def without_a_mapping_but_deleted_elsewhere(world: World, here: str, there: str) -> str:
    server = without_a_mapping(world, here, there)
    world.deleted[server] = world.servers[server]
    return server


def unmapped_and_named_by_a_migration(world: World, here: str, there: str) -> str:
    server = world.server(None, here)
    world.unmapped.add(server)
    world.migration(server, here, there, "completed")
    return server


def on_an_ironic_host_with_doubtful_node(world: World, here: str, there: str) -> str:
    node = world.host("node-1", service="ironic")
    twin = world.host("node-1", service="ironic")
    return world.server(node, node, twin)


def migration_of_a_cell_too_slow_to_be_listed(world: World, here: str, there: str) -> str:
    """Nova omits the cell's rows from the whole listing with 200.

    The listing by host has them.
    """
    migration = world.migration(
        world.server(there, there, status="VERIFY_RESIZE"), here, there, "finished", here
    )
    world.left_out_migrations.add(migration)
    return migration


def deleted_migration_with_unreadable_host_listing(world: World, here: str, there: str) -> str:
    migration = deleted_migration(world, here, there)
    world.answers("host_migrations", migration, 500)
    return migration


def evacuation_not_yet_shown_by_the_server(world: World, here: str, there: str) -> str:
    """A lagging replica shows the old host beside the finished evacuation.

    The destination would look wrong.
    """
    server = world.server(here, here, there)
    world.migration(server, here, there, "done", type="evacuation")
    return server


def evacuated_from_a_host_that_was_only_cut_off(world: World, here: str, there: str) -> str:
    """Its guest still runs there: nova-compute destroys it only when it starts."""
    server = evacuated(world, here, there)
    world.set_service(here, "up")
    return server


def evacuated_from_a_host_that_is_forced_down_and_reports(
    world: World, here: str, there: str
) -> str:
    """Nova calls a service that is forced down `down`, whatever it reports."""
    server = evacuated(world, here, there)
    host = world.nodes[here].host
    world.services = [
        dataclasses.replace(service, state="down", forced_down=True, updated_at=ASKED_AT)
        if service.host == host
        else service
        for service in world.services
    ]
    return server


def evacuated_from_a_host_that_was_cut_off_and_on_a_third(
    world: World, here: str, there: str
) -> str:
    server = evacuated_from_a_host_that_was_only_cut_off(world, here, there)
    return world.hold(server, world.host("compute-3"))


def ended_migration_with_a_host_that_was_only_cut_off(world: World, here: str, there: str) -> str:
    """A cold migration gave its consumer the allocation on the evacuated host as well."""
    third = world.host("compute-3")
    server = world.server(third, third)
    world.migration(server, here, there, "done", type="evacuation")
    world.set_service(here, "up")
    return world.migration(server, there, third, "confirmed", here, there)


def ended_migration_whose_server_is_elsewhere(world: World, here: str, there: str) -> str:
    server = world.server(here, here)
    world.migration(server, here, there, "completed", type="live-migration")
    return world.migration(server, there, here, "error", there, type="live-migration")


def unshelving_cut_short(world: World, here: str, there: str) -> str:
    """The task is gone (a restart cleared it), but Nova never recorded the end."""
    server = shelved_away(world, here, there)
    world.did(server, "unshelve", None)
    return server


def unshelving_just_begun(world: World, here: str, there: str) -> str:
    """The action is recorded before its first event."""
    server = shelved_away(world, here, there)
    world.did(server, "unshelve")
    return server


def unshelving_cut_short_and_reset_to_error(world: World, here: str, there: str) -> str:
    server = unshelving_cut_short_and_reset(world, here, there)
    world.servers[server] = dataclasses.replace(world.servers[server], status="ERROR")
    return server


def unshelving_that_waits_for_its_host_and_reset_to_error(
    world: World, here: str, there: str
) -> str:
    server = unshelving_that_waits_in_the_queue_of_its_host(world, here, there)
    world.did(server, "resetState")
    world.servers[server] = dataclasses.replace(world.servers[server], status="ERROR")
    return server


def failed_to_boot_elsewhere_and_reset_to_error(world: World, here: str, there: str) -> str:
    server = failed_to_boot_elsewhere(world, here, there)
    world.did(server, "resetState")
    return server


def unshelving_cut_short_and_reset(world: World, here: str, there: str) -> str:
    server = unshelving_cut_short(world, here, there)
    world.did(server, "resetState")
    return server


def unshelving_that_waits_in_the_queue_of_its_host(world: World, here: str, there: str) -> str:
    """Conductor has allocated, ended its own part and handed over; the host has not begun."""
    server = shelved_away(world, here, there)
    world.did(server, "unshelve", NOW, event="schedule_instances")
    return server


def _fail_to_be_scheduled(world: World, server: str) -> None:
    """Record an unshelve for which conductor found no host."""
    world.did(server, "unshelve", NOW, event="schedule_instances")
    world.fail_newest_action(server)


def failed_to_be_unshelved_with_its_placement_no_longer_listed(
    world: World, here: str, there: str
) -> str:
    server = world.server(None, here, status="ERROR")
    _fail_to_be_scheduled(world, server)
    return server


def unshelving_that_waits_behind_one_that_found_no_host(world: World, here: str, there: str) -> str:
    """Somebody has removed the task of the first one from the database."""
    server = unshelving_that_waits_in_the_queue_of_its_host(world, here, there)
    _fail_to_be_scheduled(world, server)
    return server


def unshelving_that_waits_behind_one_that_ended_in_error(
    world: World, here: str, there: str
) -> str:
    server = unshelving_that_waits_behind_one_that_found_no_host(world, here, there)
    world.servers[server] = dataclasses.replace(world.servers[server], status="ERROR")
    return server


def unshelving_that_waits_behind_a_shelve_and_one_that_found_no_host(
    world: World, here: str, there: str
) -> str:
    server = unshelving_that_waits_behind_a_reset_and_a_later_shelve(world, here, there)
    _fail_to_be_scheduled(world, server)
    return server


def unshelving_handed_over_with_an_error_to_a_host_that_is_down(
    world: World, here: str, there: str
) -> str:
    """The message broker took the request, and conductor never learned it.

    The host takes it from its queue when it starts.
    """
    server = shelved_away(world, here, there)
    _fail_to_be_scheduled(world, server)
    world.set_service(here, "down")
    return server


def boot_handed_over_with_an_error_to_a_host_that_is_down(
    world: World, here: str, there: str
) -> str:
    server = failed_to_be_scheduled(world, here, there)
    world.set_service(here, "down")
    return server


def evacuation_handed_over_after_a_failed_boot_to_a_host_that_is_down(
    world: World, here: str, there: str
) -> str:
    """The newest action counts, which no host has begun."""
    server = failed_to_boot(world, here, there)
    world.did(server, "evacuate", NOW, event="rebuild_server")
    world.fail_newest_action(server)
    world.set_service(here, "down")
    return server


def rebuild_that_runs_behind_a_lock(world: World, here: str, there: str) -> str:
    server = shelved_away(world, here, there)
    world.did(server, "rebuild", None)
    world.did(server, "lock")
    return server


def with_a_host_that_is_hidden_from_us(world: World, here: str, there: str) -> str:
    server = failed_to_boot(world, here, there)
    world.servers[server] = dataclasses.replace(world.servers[server], host_known=False)
    return server


def with_a_task_that_is_hidden_from_us(world: World, here: str, there: str) -> str:
    server = failed_to_boot(world, here, there)
    world.servers[server] = dataclasses.replace(world.servers[server], task_known=False)
    return server


def without_a_host_on_somebody_elses_provider(world: World, here: str, there: str) -> str:
    server = failed_to_boot(world, here, there)
    return world.hold(server, world.provider("fpga-farm"))


def failed_to_boot_without_a_record_of_it(world: World, here: str, there: str) -> str:
    return world.server(None, here, status="ERROR")


def reset_to_active_without_a_host(world: World, here: str, there: str) -> str:
    server = failed_to_boot(world, here, there)
    world.servers[server] = dataclasses.replace(world.servers[server], status="ACTIVE")
    return server


def failed_to_boot_elsewhere(world: World, here: str, there: str) -> str:
    """The next host may still have the build in its queue."""
    server = world.server(None, here, status="ERROR")
    world.did(server, "create", NOW, host="compute-2")
    return server


def failed_to_boot_with_unreadable_actions(world: World, here: str, there: str) -> str:
    server = failed_to_boot(world, here, there)
    world.answers("last_actions", server, 403)
    return server


def soft_deleted_without_mapping(world: World, here: str, there: str) -> str:
    """The listing of deleted servers also has what can be restored.

    Its host has lost its mapping too, so no listing shows it.
    """
    server = world.server(None, here, status="SOFT_DELETED")
    world.unmapped.add(server)
    world.deleted[server] = world.servers[server]
    return server


def in_a_dead_cell(world: World, here: str, there: str) -> str:
    server = world.server(here, here, there)
    world.answers("server", server, 500)
    return server


def deleted_but_refused(world: World, here: str, there: str) -> str:
    server = deleted(world, here, there)
    world.answers("deleted_listing", server, 403)
    return server


def deleted_with_unreadable_migrations(world: World, here: str, there: str) -> str:
    server = deleted(world, here, there)
    world.answers("migrations", server, 503)
    return server


def task_not_shown(world: World, here: str, there: str) -> str:
    return world.server(there, here, there, task_known=False)


def unknown_without_a_live_server_to_compare(world: World, here: str, there: str) -> str:
    return world.stranger(here)


def marked_as_deleted_by_hand_and_seen_on_its_host(world: World, here: str, there: str) -> str:
    server = marked_as_deleted_by_hand(world, here, there)
    world.nodes[here] = dataclasses.replace(world.nodes[here], servers=(server,))
    return server


def marked_as_deleted_by_hand_and_known_as_a_migration(world: World, here: str, there: str) -> str:
    """It cannot be both."""
    server = marked_as_deleted_by_hand(world, here, there)
    world.answers("marker", server, 200)
    return server


def marked_as_deleted_by_hand_with_unreadable_actions(world: World, here: str, there: str) -> str:
    server = marked_as_deleted_by_hand(world, here, there)
    world.answers("actions", server, 403)
    return server


def marked_as_deleted_by_hand_with_unreadable_listing_of_the_deleted(
    world: World, here: str, there: str
) -> str:
    server = marked_as_deleted_by_hand(world, here, there)
    world.answers("deleted_listing", server, 500)
    return server


def with_a_lost_mapping_that_no_host_shows(world: World, here: str, there: str) -> str:
    """Nova shows no actions of it either."""
    server = world.server(here, here)
    world.unmapped.add(server)
    world.did(server, "create", NOW)
    world.servers[server] = dataclasses.replace(
        world.servers[server], host="compute-of-a-cell-unknown"
    )
    world.answers("marker", server, 500)
    return server


def unshelving_after_the_shelve_of_a_long_life(world: World, here: str, there: str) -> str:
    server = shelved_away_after_a_long_life(world, here, there)
    world.did(server, "unshelve", NOW, event="schedule_instances")
    return server


def shelved_away_after_a_long_life_and_reset_since(world: World, here: str, there: str) -> str:
    server = shelved_away_after_a_long_life(world, here, there)
    world.did(server, "resetState")
    return server


def shelved_away_by_a_host_that_never_took_it_up(world: World, here: str, there: str) -> str:
    """The action has no events: it waits for its host."""
    server = world.server(None, here, status="SHELVED_OFFLOADED")
    world.did(server, "create", NOW)
    world.did(server, "shelve")
    return server


def shelved_away_in_vain(world: World, here: str, there: str) -> str:
    """The part of the host ended with an error, so it proves nothing about earlier actions.

    Those are further back than the reading goes.
    """
    server = shelved_away_after_a_long_life(world, here, there)
    world.fail_newest_action(server)
    return server


def unshelving_that_waits_behind_a_reset_and_a_later_shelve(
    world: World, here: str, there: str
) -> str:
    """It waits in the queue of the host with its allocation, which is dead.

    The server continued elsewhere after a reset, and was shelved there.
    """
    server = world.server(None, here, status="SHELVED_OFFLOADED")
    elsewhere = world.nodes[there].host
    world.did(server, "create", NOW, host=elsewhere)
    world.did(server, "shelve", NOW, host=elsewhere)
    world.did(server, "unshelve", NOW, event="schedule_instances")
    world.did(server, "resetState")
    world.did(server, "rebuild", NOW, host=elsewhere)
    world.did(server, "shelve", NOW, host=elsewhere)
    return server


def unshelving_that_may_wait_behind_a_reset_that_cannot_be_read(
    world: World, here: str, there: str
) -> str:
    server = unshelving_that_waits_behind_a_reset_and_a_later_shelve(world, here, there)
    world.answers("actions", server, 503)
    return server


def unshelving_that_waits_behind_a_later_shelve(world: World, here: str, there: str) -> str:
    """An old Nova does not record the reset."""
    server = world.server(None, here, status="SHELVED_OFFLOADED")
    elsewhere = world.nodes[there].host
    world.did(server, "create", NOW, host=elsewhere)
    world.did(server, "unshelve", NOW, event="schedule_instances")
    for _number in range(12):
        world.did(server, "reboot", NOW, host=elsewhere)
    world.did(server, "shelve", NOW, host=elsewhere)
    return server


def offloaded_elsewhere_with_its_placement_no_longer_listed(
    world: World, here: str, there: str
) -> str:
    server = world.server(None, here, status="SHELVED_OFFLOADED")
    world.did(server, "shelve", NOW, host=world.nodes[there].host)
    return server


def unshelving_to_a_host_that_is_gone(world: World, here: str, there: str) -> str:
    """Its service was deleted while the unshelve waited in its queue.

    Nova-compute creates another when it starts.
    """
    server = shelved_away(world, here, there)
    world.did(server, "unshelve", NOW, event="schedule_instances")
    world.remove_host(here)
    return server


def moved_in_vain_and_confirmed_away_before_that(world: World, here: str, there: str) -> str:
    server = world.server(there, here, there)
    world.migration(server, there, here, "confirmed")
    world.migration(server, here, there, "confirmed")
    world.migration(server, there, here, "error", type="live-migration")
    return server


def moved_in_vain_and_later_away_between_others(world: World, here: str, there: str) -> str:
    """After an evacuation that failed late, guests can run on both."""
    third = world.host("compute-3")
    server = _moved_in_vain_to(world, here, there, "evacuation")
    world.migration(server, there, third, "confirmed")
    world.migration(server, third, there, "completed", type="live-migration")
    return server


def moved_in_vain_twice_and_away_between(world: World, here: str, there: str) -> str:
    server = moved_in_vain_and_later_confirmed_away(world, here, there)
    world.migration(server, there, here, "failed", type="evacuation")
    return server


def moved_in_vain_with_a_row_that_changed_after_the_later_move(
    world: World, here: str, there: str
) -> str:
    server = moved_in_vain_and_later_confirmed_away(world, here, there)
    (failed,) = (known for known in world.migrations.values() if known.status == "error")
    world.migrations[failed.uuid] = dataclasses.replace(
        failed, updated_at="2026-11-20T13:00:00.000000"
    )
    return server


def moved_in_vain_at_an_unknown_time(world: World, here: str, there: str) -> str:
    server = moved_in_vain_and_later_confirmed_away(world, here, there)
    (failed,) = (known for known in world.migrations.values() if known.status == "error")
    world.migrations[failed.uuid] = dataclasses.replace(failed, updated_at=None)
    return server


def moved_in_vain_and_later_resized_in_place(world: World, here: str, there: str) -> str:
    """Both ends of that move are one host, so it does not show that the server left."""
    server = _moved_in_vain_to(world, here, there)
    world.migration(server, here, here, "confirmed", type="resize")
    world.migration(server, there, there, "confirmed", type="resize")
    return server


def unshelved_before_its_newest_move(world: World, here: str, there: str) -> str:
    server = world.server(there, here, there)
    world.did(server, "unshelve", NOW, host=world.nodes[there].host)
    world.migration(server, there, here, "done", type="evacuation")
    return server


def unshelved_while_an_older_evacuation_came_to_its_end(world: World, here: str, there: str) -> str:
    """The evacuation waited for its host, which processed it late.

    Before that the state was reset, and the server shelved and unshelved. It is `done` before the
    new host is saved, and the guest is there by then.
    """
    server = _unshelved_on(world, here, there, here, there)
    (move,) = (known for known in world.migrations.values() if known.server == server)
    world.migrations[move.uuid] = dataclasses.replace(
        move, type="evacuation", status="done", updated_at="2026-11-20T13:00:00.000000"
    )
    return server


def unshelved_elsewhere(world: World, here: str, there: str) -> str:
    """Its newest unshelve should have placed it on a third host."""
    server = _unshelved_on(world, here, there, here, there)
    world.did(server, "unshelve", NOW, host="compute-3")
    return server


def unshelving_that_failed(world: World, here: str, there: str) -> str:
    server = _unshelved_on(world, here, there, here, there)
    world.fail_newest_action(server)
    return server


def unshelving_that_has_not_ended(world: World, here: str, there: str) -> str:
    server = _unshelved_on(world, here, there, here, there)
    world.did(server, "unshelve", None, host=world.nodes[there].host)
    return server


def unshelved_on_a_host_that_is_hidden_from_us(world: World, here: str, there: str) -> str:
    server = _unshelved_on(world, here, there, here, there)
    newest, *older = world.actions[server]
    hidden = tuple(dataclasses.replace(event, host=None) for event in newest.events)
    world.actions[server] = (dataclasses.replace(newest, events=hidden), *older)
    return server


def unshelved_with_unreadable_actions(world: World, here: str, there: str) -> str:
    server = unshelved_with_another_host(world, here, there)
    world.answers("last_actions", server, 403)
    return server


def extra_host_whose_service_runs_without_a_node(world: World, here: str, there: str) -> str:
    """The host is not discovered."""
    server = extra_host_that_is_gone(world, here, there)
    world.services.append(Service("nova-compute", "compute-1", "enabled", "up"))
    return server


def extra_host_whose_service_is_down_without_a_node(world: World, here: str, there: str) -> str:
    server = extra_host_that_is_gone(world, here, there)
    world.services.append(Service("nova-compute", "compute-1.example.org", "enabled", "down"))
    return server


def extra_host_that_is_gone_to_which_a_move_failed(world: World, here: str, there: str) -> str:
    """The guest may run on a host of which only the service was deleted."""
    server = _moved_in_vain_to(world, here, there)
    world.remove_host(here)
    return server


def extra_host_that_is_gone_while_its_own_lacks_a_device(
    world: World, here: str, there: str
) -> str:
    server = world.hold(
        extra_host(world, here, there),
        world.provider("compute-1_nic", here),
        amounts={"CUSTOM_VF": 1},
    )
    world.remove_host(here)
    return server


def extra_hosts_of_which_one_is_gone_while_its_own_lacks_a_device(
    world: World, here: str, there: str
) -> str:
    third = world.host("compute-3")
    server = world.server(there, there, here, third)
    world.hold(server, world.provider("compute-3_nic", third), amounts={"CUSTOM_VF": 1})
    world.remove_host(third)
    return server


def extra_host_that_is_gone_while_its_own_is_hardly_held(
    world: World, here: str, there: str
) -> str:
    server = world.hold(world.server(there, here), there, amounts={"VCPU": 1})
    world.remove_host(here)
    return server


def purged_on_a_host_that_is_gone(world: World, here: str, there: str) -> str:
    """Its host must be named for it to be an unknown consumer."""
    world.server(there, there)
    consumer = world.stranger(here)
    world.remove_host(here)
    return consumer


UNDECIDED = {
    marked_as_deleted_by_hand_and_seen_on_its_host: "listed_on_host",
    marked_as_deleted_by_hand_and_known_as_a_migration: "also_a_migration",
    marked_as_deleted_by_hand_with_unreadable_actions: "other_lookup_failed",
    marked_as_deleted_by_hand_with_unreadable_listing_of_the_deleted: "other_lookup_failed",
    with_a_lost_mapping_that_no_host_shows: "other_lookup_failed",
    unshelving_after_the_shelve_of_a_long_life: "last_actions_unfinished",
    shelved_away_after_a_long_life_and_reset_since: "last_actions_unfinished",
    shelved_away_by_a_host_that_never_took_it_up: "last_actions_unfinished",
    shelved_away_in_vain: "last_actions_unfinished",
    unshelving_that_waits_behind_a_reset_and_a_later_shelve: "state_may_have_been_reset",
    unshelving_that_may_wait_behind_a_reset_that_cannot_be_read: "state_may_have_been_reset",
    unshelving_that_waits_behind_a_later_shelve: "last_actions_unfinished",
    offloaded_elsewhere_with_its_placement_no_longer_listed: "last_host_unknown",
    unshelving_to_a_host_that_is_gone: "last_actions_unfinished",
    moved_in_vain_and_confirmed_away_before_that: "move_may_have_ended",
    moved_in_vain_and_later_away_between_others: "move_may_have_ended",
    moved_in_vain_twice_and_away_between: "move_may_have_ended",
    moved_in_vain_with_a_row_that_changed_after_the_later_move: "move_may_have_ended",
    moved_in_vain_at_an_unknown_time: "move_may_have_ended",
    moved_in_vain_and_later_resized_in_place: "move_may_have_ended",
    unshelved_before_its_newest_move: "newest_move_unfinished",
    unshelved_while_an_older_evacuation_came_to_its_end: "newest_move_unfinished",
    unshelved_elsewhere: "newest_move_unfinished",
    unshelving_that_failed: "newest_move_unfinished",
    unshelving_that_has_not_ended: "newest_move_unfinished",
    unshelved_on_a_host_that_is_hidden_from_us: "newest_move_unfinished",
    unshelved_with_unreadable_actions: "newest_move_unfinished",
    extra_host_whose_service_runs_without_a_node: "providers_of_unlisted_nodes",
    extra_host_whose_service_is_down_without_a_node: "providers_of_unlisted_nodes",
    extra_host_that_is_gone_to_which_a_move_failed: "move_may_have_ended",
    extra_host_that_is_gone_while_its_own_lacks_a_device: "classes_only_on_gone_hosts",
    extra_hosts_of_which_one_is_gone_while_its_own_lacks_a_device: "classes_only_on_gone_hosts",
    extra_host_that_is_gone_while_its_own_is_hardly_held: "classes_only_on_gone_hosts",
    purged_on_a_host_that_is_gone: "host_to_be_named",
    interrupted_live_migration: "server_has_less_than_migration",
    live_migration_that_failed_towards_a_host_without_a_word_of_its_node: "move_may_have_ended",
    ended_migration_with_the_only_disk: "server_has_less_than_migration",
    ended_migration_with_the_only_child: "server_has_less_than_migration",
    ended_migration_of_a_server_in_error: "server_not_settled",
    with_only_a_part_of_its_own_host: "own_allocation_incomplete",
    with_a_formerly_shared_disk: "may_share_resources",
    with_a_formerly_shared_device: "may_share_resources",
    confirmed_migration_with_the_only_allocation_on_the_host: "server_has_less_than_migration",
    ended_migration_with_the_only_disk_on_a_formerly_sharing_host: "server_has_less_than_migration",
    extra_host_named_by_a_migration: "may_share_resources",
    migration_of_a_cell_too_slow_to_be_listed: "migration_listed_once",
    deleted_migration_with_unreadable_host_listing: "migrations_unread",
    evacuation_not_yet_shown_by_the_server: "newest_move_unfinished",
    evacuated_from_a_host_that_was_only_cut_off: "guest_not_cleaned_up",
    evacuated_from_a_host_that_is_forced_down_and_reports: "guest_not_cleaned_up",
    evacuated_from_a_host_that_was_cut_off_and_on_a_third: "guest_not_cleaned_up",
    ended_migration_with_a_host_that_was_only_cut_off: "guest_not_cleaned_up",
    ended_migration_whose_server_is_elsewhere: "server_not_settled",
    soft_deleted_without_mapping: "deletion_not_proven",
    unshelving_cut_short: "last_actions_unfinished",
    unshelving_just_begun: "last_actions_unfinished",
    unshelving_cut_short_and_reset: "last_actions_unfinished",
    unshelving_that_waits_in_the_queue_of_its_host: "last_actions_unfinished",
    failed_to_be_unshelved_with_its_placement_no_longer_listed: "last_host_unknown",
    unshelving_that_waits_behind_one_that_found_no_host: "last_actions_unfinished",
    unshelving_that_waits_behind_one_that_ended_in_error: "last_actions_unfinished",
    unshelving_that_waits_behind_a_shelve_and_one_that_found_no_host: "state_may_have_been_reset",
    unshelving_handed_over_with_an_error_to_a_host_that_is_down: "action_may_be_queued",
    boot_handed_over_with_an_error_to_a_host_that_is_down: "action_may_be_queued",
    evacuation_handed_over_after_a_failed_boot_to_a_host_that_is_down: "action_may_be_queued",
    rebuild_that_runs_behind_a_lock: "last_actions_unfinished",
    with_a_host_that_is_hidden_from_us: "server_fields_missing",
    with_a_task_that_is_hidden_from_us: "server_fields_missing",
    without_a_host_on_somebody_elses_provider: "server_unsettled",
    failed_to_boot_without_a_record_of_it: "last_host_unknown",
    failed_to_boot_with_unreadable_actions: "last_actions_unfinished",
    failed_to_boot_elsewhere: "build_may_be_in_progress",
    failed_to_boot_elsewhere_and_reset_to_error: "build_may_be_in_progress",
    unshelving_cut_short_and_reset_to_error: "last_actions_unfinished",
    unshelving_that_waits_for_its_host_and_reset_to_error: "last_actions_unfinished",
    without_a_mapping: "listed_on_host",
    without_a_mapping_but_deleted_elsewhere: "listed_on_host",
    unmapped_and_named_by_a_migration: "migrations_left",
    on_an_ironic_host_with_doubtful_node: "compute_node_ambiguous",
    in_a_dead_cell: "server_lookup_failed",
    deleted_but_refused: "other_lookup_failed",
    deleted_with_unreadable_migrations: "deletion_not_proven",
    task_not_shown: "server_unsettled",
    unknown_without_a_live_server_to_compare: "credentials_not_checked",
}


@pytest.mark.parametrize("situation", UNDECIDED, ids=lambda situation: situation.__name__)
def test_consumer_is_undecided(situation: Situation) -> None:
    world, (here, there) = _two_hosts()

    finding = _found(world, situation(world, here, there))

    assert (finding.verdict, finding.change) == ("undecided", None), finding.reason
    assert finding.reason.id == UNDECIDED[situation]


def with_shared_disk(world: World, here: str, there: str) -> str:
    pool = world.provider("pool", sharing=True)
    on_host = {"VCPU": 1, "MEMORY_MB": 512}
    world.stock[here] = dict.fromkeys(on_host, PLENTY)
    server = world.hold(world.server(here), here, amounts=on_host)
    return world.hold(server, pool, amounts=DISK)


def with_children(world: World, here: str, there: str) -> str:
    server = world.server(
        here, here, flavor=dataclasses.replace(FLAVOR, extra_specs={"pci_passthrough:alias": "x:1"})
    )
    child = world.provider("compute-1_pci", here)
    world.traits[child] = frozenset({"COMPUTE_MANAGED_PCI_DEVICE"})
    return world.hold(server, child, amounts={"CUSTOM_PCI_X": 1})


def with_an_allocation_on_no_host(world: World, here: str, there: str) -> str:
    return world.hold(world.server(here, here), world.provider("former-pool"), amounts=DISK)


def on_its_ironic_node(world: World, here: str, there: str) -> str:
    world.host("node-1", service="ironic")
    node = world.host("node-2", service="ironic")
    return world.server(node, node)


HEALTHY = [with_shared_disk, on_its_ironic_node]


@pytest.mark.parametrize("situation", HEALTHY, ids=lambda situation: situation.__name__)
def test_consumer_is_healthy(situation: Situation) -> None:
    world, (here, there) = _two_hosts()
    consumer = situation(world, here, there)

    assert [
        finding for finding in judge(world.snapshot(), POLICY) if finding.consumer == consumer
    ] == []


@pytest.mark.parametrize(
    ("situation", "said"),
    [(with_children, "alias x"), (with_an_allocation_on_no_host, "former-pool")],
)
def test_allocation_that_cannot_be_explained_is_left_alone(situation: Situation, said: str) -> None:
    world, (here, there) = _two_hosts()
    consumer = situation(world, here, there)
    found = [row for row in judge(world.snapshot(), POLICY) if row.consumer == consumer]

    assert [(row.verdict, row.change) for row in found] == [("undecided", None)]
    assert said in found[0].reason


def test_live_server_keeps_its_tree_and_shared_disk_when_another_host_is_dropped() -> None:
    world, (here, there) = _two_hosts()
    pool = world.provider("pool", sharing=True)
    child = world.provider("compute-2_pci", there)
    server = world.hold(extra_host(world, here, there), pool, child, amounts=DISK)

    change = _found(world, server).change

    assert change is not None
    assert set(change.after["allocations"]) == {there, pool, child}
    assert change.after["allocations"][there] == {"resources": CLAIM}


@pytest.mark.parametrize("excluded", ["compute-1", "uuid of compute-1", "compute-1_pci"])
def test_excluded_provider_protects_its_consumers(excluded: str) -> None:
    world, (here, there) = _two_hosts()
    consumer = deleted_with_child(world, here, there)
    policy = Policy(
        exclude_providers=frozenset({here if excluded.startswith("uuid") else excluded})
    )

    assert _found(world, consumer, policy).kind == "excluded"


@pytest.mark.parametrize("excluded", ["nova-1", "compute-1", "Compute-1.EXAMPLE", "NOVA-1.lan"])
def test_host_is_excluded_by_each_of_its_names_in_any_spelling(excluded: str) -> None:
    """The host of a service and its provider often have different names."""
    world = World()
    here, there = world.host("compute-1.example", service="nova-1"), world.host("compute-11")
    consumer, other = deleted(world, here, there), deleted(world, there, here)
    policy = Policy(exclude_providers=frozenset({excluded}))

    assert _found(world, consumer, policy).kind == "excluded"
    assert _found(world, other, policy).kind != "excluded"


@pytest.mark.parametrize("excluded", ["10.0.0.2", "rack-1.compute", "compute-1.rack-2"])
def test_exclusion_of_one_host_is_not_that_of_a_similar_one(excluded: str) -> None:
    world = World()
    here, there = world.host("10.0.0.1"), world.host("compute-1.rack-1")
    world.host("compute-1.rack-2")
    policy = Policy(exclude_providers=frozenset({excluded}))

    for consumer in (deleted(world, here, there), deleted(world, there, here)):
        assert _found(world, consumer, policy).kind != "excluded"


def test_excluded_child_protects_its_whole_tree() -> None:
    world, (first, second) = _two_hosts()
    world.provider("compute-1_pci", first)
    consumer, other = deleted(world, first, second), extra_host(world, second, first)
    bystander = world.stranger(second)
    policy = Policy(exclude_providers=frozenset({"compute-1_pci"}))

    assert _found(world, consumer, policy).kind == _found(world, other, policy).kind == "excluded"
    assert _found(world, bystander, policy).kind == "unknown_consumer"


def test_excluded_tree_protects_who_has_only_a_child_of_it() -> None:
    world, (here, _there) = _two_hosts()
    consumer = world.stranger(world.provider("compute-1_pci", here))

    policy = Policy(exclude_providers=frozenset({"compute-1"}))
    assert _found(world, consumer, policy).kind == "excluded"


def test_excluded_host_protects_a_server_that_has_no_allocation_there() -> None:
    """A change could make one."""
    world, (here, there) = _two_hosts()
    server = world.server(there, here)

    policy = Policy(exclude_providers=frozenset({"compute-2"}))
    assert _found(world, server, policy).kind == "excluded"


def test_excluded_consumer_is_protected() -> None:
    world, (here, there) = _two_hosts()
    consumer = deleted(world, here, there)

    assert (
        _found(world, consumer, Policy(exclude_consumers=frozenset({consumer}))).kind == "excluded"
    )


@pytest.mark.parametrize(
    ("scope", "kind", "verdict"),
    [
        (Scope(hosts=("compute-1",)), "unknown_consumer", "orphaned"),
        (Scope(hosts=("uuid of compute-1",)), "unknown_consumer", "orphaned"),
        (Scope(consumers=("the consumer",)), "unknown_consumer", "orphaned"),
        (Scope(hosts=("compute-2",)), "unknown_consumer", "undecided"),
        (Scope(), "unknown_consumer", "undecided"),
    ],
)
def test_consumer_on_a_deleted_host_is_unknown_where_that_host_is_named(
    scope: Scope, kind: str, verdict: str
) -> None:
    world, (here, there) = _two_hosts()
    consumer = purged_on_a_host_that_is_gone(world, here, there)
    meant = {"uuid of compute-1": here, "the consumer": consumer}
    named = dataclasses.replace(
        scope,
        hosts=tuple(meant.get(name, name) for name in scope.hosts),
        consumers=tuple(meant.get(name, name) for name in scope.consumers),
    )
    found = next(
        finding
        for finding in judge(world.snapshot(scope=named), POLICY)
        if finding.consumer == consumer
    )

    assert (found.kind, found.verdict) == (kind, verdict), found.reason


def test_deleted_host_without_the_nova_trait_belongs_to_somebody_else() -> None:
    world, (here, there) = _two_hosts()
    consumer = purged_on_a_host_that_is_gone(world, here, there)
    world.were_novas.clear()
    found = next(
        finding
        for finding in judge(world.snapshot(scope=Scope(hosts=("compute-1",))), POLICY)
        if finding.consumer == consumer
    )

    assert (found.kind, found.verdict) == ("foreign_provider", "protected")


def test_allocation_possibly_of_another_nova_is_not_taken_from_a_server() -> None:
    world, (here, there) = _two_hosts()
    server = extra_host_that_is_gone(world, here, there)
    cloud = dataclasses.replace(world.snapshot().cloud, other_novas=("RegionTwo",))
    found = next(
        finding
        for finding in judge(world.snapshot(cloud=cloud), POLICY)
        if finding.consumer == server
    )

    assert (found.kind, found.verdict) == ("extra_host", "undecided")
    assert found.reason.id == "providers_of_unlisted_nodes"
    assert "RegionTwo" in found.reason and "compute-1" in found.reason


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"services": answer("GET /os-services", 500)}, "may_be_host_of_down_cell"),
        (
            {
                "services_after": answer(
                    "GET /os-services", 200, (Service("nova-compute", "x", "UNKNOWN", None),)
                )
            },
            "may_be_host_of_down_cell",
        ),
        ({"hypervisors": answer("GET /os-hypervisors/detail", 200, ())}, "nodes_not_in_placement"),
        ({"host_lookups": {}}, "host_not_looked_up"),
        (
            {"host_lookups": {"compute-1": answer("GET /os-hosts/compute-1", 500)}},
            "host_lookup_failed",
        ),
    ],
)
def test_unsound_listing_of_hosts_proves_no_host_deleted(
    changes: dict[str, t.Any], told: str
) -> None:
    world, (here, there) = _two_hosts()
    extra_host_that_is_gone(world, here, there)
    index = SnapshotIndex(world.snapshot(**changes))

    assert SnapshotIndex(world.snapshot()).is_gone(here)
    assert not index.is_gone(here) and index.find_possible_host(here).id == told


def test_row_marked_as_deleted_by_hand_is_reported() -> None:
    world, (here, there) = _two_hosts()
    alone = _found(world, marked_as_deleted_by_hand(world, here, there))
    asked_for = _found(
        world, marked_as_deleted_by_hand_after_a_delete_that_failed(world, here, there)
    )

    assert alone.reason.id == asked_for.reason.id == "server_deleted"
    assert "by hand" in alone.reason and "no delete action" in alone.reason
    assert "by hand" in asked_for.reason and "user user requested" in asked_for.reason


def test_only_consumers_that_the_listings_leave_open_are_candidates() -> None:
    world, (here, there) = _two_hosts()
    pool = world.provider("pool", sharing=True)
    plain = world.hold(world.server(here, here), pool, amounts=DISK)
    doubtful = [
        situation(world, here, there) for situation in (deleted, extra_host, moving, unknown)
    ]
    snapshot = world.snapshot()

    candidates = find_candidates(ListingsIndex(snapshot))

    assert plain not in candidates
    assert set(doubtful) <= set(candidates)


def _two_hosts() -> tuple[World, tuple[str, str]]:
    world = World()
    return world, (world.host("compute-1"), world.host("compute-2"))


def _found(world: World, consumer: str, policy: Policy = POLICY) -> t.Any:
    return next(
        finding for finding in judge(world.snapshot(), policy) if finding.consumer == consumer
    )
