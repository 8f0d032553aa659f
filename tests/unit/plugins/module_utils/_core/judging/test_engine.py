"""The rules, as tables.

What is proven, what is protected, and that nothing a live server needs is ever an orphan.
"""

import dataclasses as d
import typing as t
from collections.abc import Callable

import pytest

from .......plugins.module_utils._core.facts.index import ListingsIndex, SnapshotIndex
from .......plugins.module_utils._core.models.nova import Service
from .......plugins.module_utils._core.models.snapshot import Scope
from .......plugins.module_utils._core.options.policy import Policy
from .......plugins.module_utils._core.reading.candidates import find_candidates
from ...judging import list_cases
from ...world import ASKED_AT, FLAVOR, NOW, PLENTY, answer
from ..scene import Scene

Situation = Callable[[Scene], str]

POLICY = Policy(min_age=3600, unknown_min_age=86400)
DISK = {"DISK_GB": 1}
DEVICE = {"CUSTOM_VF": 1}
LATE = "2026-11-20T13:00:00.000000"


# What the situations below are made of.


def deleted(scene: Scene) -> str:
    return scene.delete(scene.server(scene.here, scene.here))


def ended_migration(scene: Scene) -> str:
    server = scene.server(scene.there, scene.there)
    return scene.migration(server, scene.here, scene.there, "confirmed", scene.here)


def failed_migration(scene: Scene) -> str:
    """It took its server nowhere, and has nothing of it but the allocation of its source."""
    server = scene.server(scene.there, scene.there)
    return scene.migration(server, scene.here, scene.there, "error", scene.here)


def evacuated(scene: Scene, status: str = "done") -> str:
    return moved(scene, scene.server(scene.there, scene.here, scene.there), status, "evacuation")


def moved(scene: Scene, server: str, status: str, type: str = "migration") -> str:
    """Record a move of a server from `here` to `there`, and return the server."""
    scene.migration(server, scene.here, scene.there, status, type=type)
    return server


def moved_back(scene: Scene, server: str, status: str, type: str = "migration") -> str:
    """Record a move of a server from `there` to `here`, and return the server."""
    scene.migration(server, scene.there, scene.here, status, type=type)
    return server


def extra_host(scene: Scene) -> str:
    return scene.server(scene.there, scene.here, scene.there)


def extra_host_that_is_gone(scene: Scene) -> str:
    """No migration names the host: the rows are purged, or it was moved before there were any."""
    return scene.lose_host(extra_host(scene))


def with_device_of(scene: Scene, consumer: str, root: str) -> str:
    """Give a consumer an allocation of a device of a host."""
    nic = scene.provider(f"{scene.nodes[root].name}_nic", root)
    return scene.hold(consumer, nic, amounts=DEVICE)


def with_shared_disk(scene: Scene, consumer: str) -> str:
    return scene.hold(consumer, scene.provider("pool", sharing=True), amounts=DISK)


def offloaded(scene: Scene) -> str:
    return scene.server(None, scene.here, status="SHELVED_OFFLOADED")


def shelved_away(scene: Scene) -> str:
    return scene.did(scene.did(offloaded(scene), "create", NOW), "shelve", NOW)


def shelved_away_after_a_long_life(scene: Scene) -> str:
    """The action that placed it is older than the newest ten actions.

    Some in between were never ended.
    """
    server = scene.did(offloaded(scene), "create", NOW)
    for number in range(12):
        scene.did(server, "reboot", None if number % 3 else NOW)
    return scene.did(server, "shelve", NOW)


def failed_to_boot(scene: Scene) -> str:
    return scene.did(scene.server(None, scene.here, status="ERROR"), "create", NOW)


def failed_to_be_scheduled(scene: Scene) -> str:
    """No host was ever asked."""
    server = scene.server(None, scene.here, status="ERROR")
    scene.did(server, "create", NOW, event="conductor_schedule_and_build_instances")
    return scene.fail_newest_action(server)


def failed_to_boot_elsewhere(scene: Scene) -> str:
    """The next host may still have the build in its queue."""
    return scene.act(scene.server(None, scene.here, status="ERROR"), "create", scene.there)


def handed_over(scene: Scene, server: str) -> str:
    """Record an unshelve.

    Conductor has allocated, ended its own part and handed over; the host has not begun.
    """
    return scene.did(server, "unshelve", NOW, event="schedule_instances")


def found_no_host(scene: Scene, server: str) -> str:
    """Record an unshelve for which conductor found no host."""
    return scene.fail_newest_action(handed_over(scene, server))


def unshelving_cut_short(scene: Scene) -> str:
    """The task is gone (a restart cleared it), but Nova never recorded the end."""
    return scene.did(shelved_away(scene), "unshelve", None)


def unshelving_that_waits_behind_a_reset_and_a_later_shelve(scene: Scene) -> str:
    """It waits in the queue of the host with its allocation, which is dead.

    The server continued elsewhere after a reset, and was shelved there.
    """
    server = scene.act(offloaded(scene), "create", scene.there)
    handed_over(scene, scene.act(server, "shelve", scene.there))
    scene.did(server, "resetState")
    return scene.act(scene.act(server, "rebuild", scene.there), "shelve", scene.there)


def unshelving_that_waits_behind_a_later_shelve(scene: Scene) -> str:
    """An old Nova does not record the reset."""
    server = handed_over(scene, scene.act(offloaded(scene), "create", scene.there))
    for _number in range(12):
        scene.act(server, "reboot", scene.there)
    return scene.act(server, "shelve", scene.there)


def deleted_by_hand(scene: Scene) -> str:
    """The row has `deleted` = 1, where Nova writes the row's own id.

    No listing has it, and Nova still shows its actions.
    """
    server = scene.server(scene.here, scene.here)
    scene.delete_by_hand(server)
    return server


def deleted_by_hand_after_a_delete_that_failed(scene: Scene) -> str:
    server = scene.server(scene.here, scene.here)
    scene.delete_by_hand(scene.did(scene.did(server, "create", NOW), "delete", NOW))
    return server


def moved_in_vain(scene: Scene, type: str = "live-migration") -> str:
    """Create a settled server on `there` with an allocation where a failed move went."""
    return moved_back(scene, extra_host(scene), "error", type)


def moved_in_vain_and_later_away(scene: Scene) -> str:
    return moved(scene, moved_back(scene, moved_in_vain(scene), "confirmed"), "confirmed")


def with_failed_row(scene: Scene, server: str, **fields: t.Any) -> str:
    """Change the row of the only move that failed."""
    (failed,) = (row.uuid for row in scene.migrations.values() if row.status == "error")
    scene.alter(failed, **fields)
    return server


def unshelved(scene: Scene, *holds: str) -> str:
    """Create a server that was moved to `here`, then shelved, and is on `there` since."""
    server = moved_back(scene, scene.server(scene.there, *holds), "confirmed")
    scene.act(scene.act(server, "create", scene.there), "shelve", scene.here)
    return scene.act(server, "unshelve", scene.there)


def unshelved_with_another_host(scene: Scene) -> str:
    return unshelved(scene, scene.here, scene.there)


# Orphans: the allocation on the host `here` goes, or on what is called so.


def ended_migration_after_a_failed_move_to_the_same_host(scene: Scene) -> str:
    """The server is where that move should have taken its guest."""
    server = moved_back(scene, scene.server(scene.here, scene.here), "error", "live-migration")
    moved_back(scene, server, "confirmed")
    return scene.migration(server, scene.here, scene.here, "confirmed", scene.here, type="resize")


def ended_migration_of_deleted(scene: Scene) -> str:
    server = scene.delete(scene.server(scene.there, scene.there))
    return scene.migration(server, scene.here, scene.there, "error", scene.here)


def ended_migration_on_the_same_host(scene: Scene) -> str:
    server = scene.server(scene.here, scene.here)
    return scene.migration(server, scene.here, scene.here, "confirmed", scene.here, type="resize")


def ended_migration_with_doubled_amounts(scene: Scene) -> str:
    pool = scene.provider("pool", sharing=True)
    server = scene.hold(scene.server(scene.there, scene.there), pool, amounts=DISK)
    move = scene.migration(server, scene.here, scene.there, "confirmed", scene.here)
    return scene.hold(move, pool, amounts=DISK)


def ended_migration_of_a_server_deleted_by_hand(scene: Scene) -> str:
    server = scene.server(scene.there, scene.there)
    scene.delete_by_hand(server)
    return scene.migration(server, scene.here, scene.there, "error", scene.here)


def confirmed_migration_of_an_unshelved_server(scene: Scene) -> str:
    """The migration's own host is the server's host again."""
    server = unshelved(scene, scene.there)
    (move,) = (known.uuid for known in scene.migrations.values() if known.server == server)
    return scene.hold(move, scene.here)


def deleted_migration(scene: Scene) -> str:
    migration = scene.stranger(scene.here)
    scene.unlisted_migrations.add(migration)
    return migration


def deleted_on_an_orphaned_provider(scene: Scene) -> str:
    server = deleted(scene)
    del scene.nodes[scene.here]
    return server


def unknown(scene: Scene) -> str:
    scene.server(scene.there, scene.there)
    return scene.stranger(scene.here)


def evacuated_from_a_node_that_was_renamed(scene: Scene) -> str:
    """nova-compute has started since, but does not find its old node to complete the evacuation."""
    scene.here = scene.host("old-name", service="rack-7")
    server = scene.lose_host(evacuated(scene))
    scene.host("new-name", service="rack-7")
    return server


def moved_in_vain_and_later_live_migrated_away(scene: Scene) -> str:
    server = moved_in_vain(scene, "evacuation")
    scene.set_service(scene.there, "up")
    moved_back(scene, server, "completed", "live-migration")
    return moved(scene, server, "completed", "live-migration")


def shelved_away_long_after_it_was_offloaded(scene: Scene) -> str:
    server = scene.did(shelved_away_after_a_long_life(scene), "lock")
    return scene.did(scene.did(server, "shelveOffload", NOW), "unlock")


ORPHANED: dict[str, dict[str, Situation]] = {
    "deleted_server": {
        "deleted": deleted,
        "with child": lambda scene: with_device_of(scene, deleted(scene), scene.here),
        "on an orphaned provider": deleted_on_an_orphaned_provider,
        "named by an ended migration": lambda scene: moved(scene, deleted(scene), "error"),
        "by hand": deleted_by_hand,
        "by hand after a delete that failed": deleted_by_hand_after_a_delete_that_failed,
    },
    "ended_migration": {
        "ended": ended_migration,
        "from a host that is gone": lambda scene: scene.lose_host(ended_migration(scene)),
        "after a failed move to the same host": (
            ended_migration_after_a_failed_move_to_the_same_host
        ),
        "of a deleted server": ended_migration_of_deleted,
        "of a server deleted by hand": ended_migration_of_a_server_deleted_by_hand,
        "on the same host": ended_migration_on_the_same_host,
        "with doubled amounts": ended_migration_with_doubled_amounts,
        "of an unshelved server": confirmed_migration_of_an_unshelved_server,
    },
    "deleted_migration": {"deleted": deleted_migration},
    "evacuated_source": {
        "done": evacuated,
        "completed": lambda scene: evacuated(scene, "completed"),
        "from an orphaned provider": lambda scene: scene.lose_host(evacuated(scene)),
        "from a node that was renamed": evacuated_from_a_node_that_was_renamed,
        "moved in vain before": lambda scene: moved(
            scene, moved_back(scene, moved_in_vain(scene), "confirmed"), "done", "evacuation"
        ),
    },
    "extra_host": {
        "extra": extra_host,
        # Its own host has none, and Nova lists the other one: no device of that is its own.
        "with a device": lambda scene: with_device_of(scene, extra_host(scene), scene.here),
        "gone": extra_host_that_is_gone,
        "gone, with its disk in a pool": lambda scene: with_shared_disk(
            scene, extra_host_that_is_gone(scene)
        ),
        "moved in vain and later confirmed away": moved_in_vain_and_later_away,
        "moved in vain and later live-migrated away": moved_in_vain_and_later_live_migrated_away,
        "moved in vain and later reverted from there": lambda scene: moved_back(
            scene, moved_in_vain(scene), "reverted", "resize"
        ),
        "unshelved": unshelved_with_another_host,
        "unshelved and locked since": lambda scene: scene.did(
            unshelved_with_another_host(scene), "lock"
        ),
    },
    "unhosted_server": {
        "shelved away": shelved_away,
        "shelved away after a long life": shelved_away_after_a_long_life,
        "shelved away long after it was offloaded": shelved_away_long_after_it_was_offloaded,
        # It has more actions than one page, and its creation is not among them.
        # It has an allocation on the very host that shelved it.
        "with its placement no longer listed": lambda scene: scene.did(
            scene.did(offloaded(scene), "reboot", NOW), "shelve", NOW
        ),
        "from a host that is gone": lambda scene: scene.lose_host(shelved_away(scene)),
        "offloaded without a record of it": lambda scene: scene.did(
            scene.alter(offloaded(scene), launched_at=NOW), "create", NOW
        ),
        "shelved away and found no host": lambda scene: found_no_host(scene, shelved_away(scene)),
        "failed to boot": failed_to_boot,
        "failed to boot on a host that is gone": lambda scene: scene.lose_host(
            failed_to_boot(scene)
        ),
        "failed to be scheduled": failed_to_be_scheduled,
        # A reset is an action without events.
        "failed to boot and reset to error": lambda scene: scene.did(
            failed_to_boot(scene), "resetState"
        ),
        "failed to be unshelved and reset to error": lambda scene: scene.alter(
            scene.did(found_no_host(scene, shelved_away(scene)), "resetState"), status="ERROR"
        ),
        # Nova ends only the first row of two events of one name.
        "failed to boot on two hosts": lambda scene: scene.did(
            scene.server(None, scene.here, status="ERROR"), "create", NOW, None
        ),
        "failed to boot and locked": lambda scene: scene.did(failed_to_boot(scene), "lock"),
    },
    "unknown_consumer": {"unknown": unknown},
}


@pytest.mark.parametrize(("kind", "situation"), list_cases(ORPHANED))
def test_orphan_is_proven(kind: str, situation: Situation) -> None:
    scene = Scene()
    consumer = situation(scene)
    finding = scene.found(consumer, POLICY)

    assert (finding.verdict, finding.kind) == ("orphaned", kind)
    if situation is ended_migration_of_a_server_deleted_by_hand:
        assert finding.reason.id == "migration_of_deleted_server"
    held = set(scene.allocations[consumer].resources)
    freed = {uuid for uuid in held if scene.providers[uuid].root == scene.here}
    if situation is ended_migration_with_doubled_amounts:
        freed = held
    assert finding.freed_providers == freed != set()
    assert finding.change is not None
    assert set(finding.change.after["allocations"]) == held - freed
    assert finding.evidence and finding.reason.endswith(".")


def unconfirmed_resize(scene: Scene, status: str = "finished") -> str:
    server = scene.server(scene.there, scene.there, status="VERIFY_RESIZE")
    return scene.migration(server, scene.here, scene.there, status, scene.here)


def moving(scene: Scene) -> str:
    server = scene.server(scene.here, scene.there)
    scene.migration(server, scene.here, scene.there, "migrating", scene.here)
    return server


def source_of_a_move(scene: Scene) -> str:
    server = scene.server(scene.here, scene.there)
    return scene.migration(server, scene.here, scene.there, "pre-migrating", scene.here)


def purged_on_a_host_of_another_nova(scene: Scene) -> str:
    """Its host has Nova's trait and is not ours.

    A service of that name runs, and has no compute node yet.
    """
    consumer = scene.lose_host(scene.stranger(scene.here))
    scene.services.append(Service("nova-compute", "compute-1", "enabled", "up"))
    return consumer


PROTECTED: dict[tuple[str, str], dict[str, Situation]] = {
    # Placement accepts such a uuid, and Nova never writes one.
    ("foreign_uuid", "uuid_not_novas"): {
        "written in large letters": lambda scene: scene.hold(
            "ABCDEF12-0000-4000-8000-00000000ABCD", scene.here
        )
    },
    ("foreign_provider", "of_other_nova"): {
        "purged on a host of another Nova": purged_on_a_host_of_another_nova,
        "on somebody else's provider": lambda scene: scene.stranger(scene.provider("fpga-farm")),
    },
    ("booting", "being_built"): {
        "booting": lambda scene: scene.server(
            None, scene.here, status="BUILD", task_state="scheduling"
        )
    },
    ("moving", "migration_under_way"): {"moving": moving, "source": source_of_a_move},
    ("verify_resize", "resize_to_confirm"): {
        "unconfirmed": unconfirmed_resize,
        "with failed migration": lambda scene: unconfirmed_resize(scene, "error"),
    },
    ("task", "task_under_way"): {
        "with task": lambda scene: scene.alter(extra_host(scene), task_state="rebuilding")
    },
    ("soft_deleted", "soft_deleted"): {
        "soft deleted": lambda scene: scene.alter(extra_host(scene), status="SOFT_DELETED")
    },
    ("unknown_status", "status_unknown"): {
        "unknown status": lambda scene: scene.server(
            None, scene.here, scene.there, status="UNKNOWN"
        )
    },
    ("error_with_host", "error_on_host"): {
        "error with host": lambda scene: scene.alter(extra_host(scene), status="ERROR")
    },
    ("foreign_type", "of_other_service"): {
        "container": lambda scene: scene.stranger(scene.here, type="CONTAINER")
    },
    ("too_young", "younger_than_min_age"): {
        "young": lambda scene: scene.hold(deleted(scene), scene.here, age=60),
        "of unknown age": lambda scene: scene.hold(deleted(scene), scene.here, age=None),
    },
    ("unknown_consumer", "younger_than_unknown_min_age"): {
        "unknown but young": lambda scene: scene.stranger(scene.here, age=7200)
    },
}


@pytest.mark.parametrize(("expected", "situation"), list_cases(PROTECTED))
def test_consumer_is_protected(expected: tuple[str, str], situation: Situation) -> None:
    scene = Scene()
    kind, verdict, reason = scene.told(situation(scene), POLICY)

    assert (verdict, kind, reason) == ("protected", *expected)


def test_finding_names_the_server_and_the_migration() -> None:
    scene = Scene()
    server = scene.found(extra_host(scene), POLICY)
    migration = scene.found(ended_migration(scene), POLICY)

    assert server.server is not None and server.server.uuid == server.subject
    assert migration.migration is not None and migration.migration.uuid == migration.subject


def test_young_consumer_stays_protected_while_a_cell_does_not_answer() -> None:
    scene = Scene()
    consumer = scene.stranger(scene.here, age=7200)
    scene.services.append(Service("nova-compute", "compute-9", "UNKNOWN", None))

    assert scene.told(consumer, POLICY)[:2] == ("unknown_consumer", "protected")


# What is not decided.


def interrupted_live_migration(scene: Scene) -> str:
    """The guest runs on the source, where only the ended migration has an allocation.

    The server has the destination.
    """
    server = scene.server(scene.here, scene.there)
    return scene.migration(
        server, scene.here, scene.there, "error", scene.here, type="live-migration"
    )


def live_migration_that_failed_towards_a_host_without_a_word_of_its_node(scene: Scene) -> str:
    """The host name alone shows where the guest may run."""
    server = scene.server(scene.here, scene.here, scene.there)
    return with_failed_row(scene, moved(scene, server, "error", "live-migration"), dest_node=None)


def confirmed_migration_with_the_only_allocation_on_the_host(scene: Scene) -> str:
    """The server has lost its own allocation except for a child.

    Only the migration's allocation accounts for the guest.
    """
    server = with_device_of(scene, scene.server(scene.here), scene.here)
    return scene.migration(server, scene.here, scene.here, "confirmed", scene.here, type="resize")


def unmapped_and_named_by_a_migration(scene: Scene) -> str:
    return moved(scene, scene.lose_mapping(scene.server(None, scene.here)), "completed")


def on_an_ironic_host_with_doubtful_node(scene: Scene) -> str:
    node, twin = (scene.host("node-1", service="ironic") for _number in range(2))
    return scene.server(node, node, twin)


def migration_of_a_cell_too_slow_to_be_listed(scene: Scene) -> str:
    """Nova omits the cell's rows from the whole listing with 200.

    The listing by host has them.
    """
    migration = unconfirmed_resize(scene)
    scene.left_out_migrations.add(migration)
    return migration


def evacuated_from_a_host_that_was_only_cut_off(scene: Scene) -> str:
    """Its guest still runs there: nova-compute destroys it only when it starts."""
    server = evacuated(scene)
    scene.set_service(scene.here, "up")
    return server


def evacuated_from_a_host_that_is_forced_down_and_reports(scene: Scene) -> str:
    """Nova calls a service that is forced down `down`, whatever it reports."""
    server = evacuated(scene)
    scene.services = [
        d.replace(service, state="down", forced_down=True, updated_at=ASKED_AT)
        if service.host == scene.nodes[scene.here].host
        else service
        for service in scene.services
    ]
    return server


def ended_migration_with_a_host_that_was_only_cut_off(scene: Scene) -> str:
    """A cold migration gave its consumer the allocation on the evacuated host as well."""
    third = scene.host("compute-3")
    server = moved(scene, scene.server(third, third), "done", "evacuation")
    scene.set_service(scene.here, "up")
    return scene.migration(server, scene.there, third, "confirmed", scene.here, scene.there)


def ended_migration_whose_server_is_elsewhere(scene: Scene) -> str:
    server = moved(scene, scene.server(scene.here, scene.here), "completed", "live-migration")
    return scene.migration(
        server, scene.there, scene.here, "error", scene.there, type="live-migration"
    )


def evacuation_handed_over_after_a_failed_boot_to_a_host_that_is_down(scene: Scene) -> str:
    """The newest action counts, which no host has begun."""
    server = scene.did(failed_to_boot(scene), "evacuate", NOW, event="rebuild_server")
    return scene.take_down(scene.fail_newest_action(server))


def soft_deleted_without_mapping(scene: Scene) -> str:
    """The listing of deleted servers also has what can be restored.

    Its host has lost its mapping too, so no listing shows it.
    """
    server = scene.lose_mapping(scene.server(None, scene.here, status="SOFT_DELETED"))
    scene.deleted[server] = scene.servers[server]
    return server


def without_a_mapping(scene: Scene) -> str:
    """Nova answers 404 for a live server, but shows it on its host."""
    return scene.lose_mapping(scene.server(scene.here, scene.here))


def without_a_mapping_but_deleted_elsewhere(scene: Scene) -> str:
    server = without_a_mapping(scene)
    scene.deleted[server] = scene.servers[server]
    return server


def with_a_lost_mapping_that_no_host_shows(scene: Scene) -> str:
    """Nova shows no actions of it either."""
    server = scene.did(without_a_mapping(scene), "create", NOW)
    return scene.answers("marker", scene.alter(server, host="compute-of-a-cell-unknown"), 500)


def deleted_by_hand_and_seen_on_its_host(scene: Scene) -> str:
    server = deleted_by_hand(scene)
    scene.nodes[scene.here] = d.replace(scene.nodes[scene.here], servers=(server,))
    return server


def moved_in_vain_and_confirmed_away_before_that(scene: Scene) -> str:
    server = moved(scene, moved_back(scene, extra_host(scene), "confirmed"), "confirmed")
    return moved_back(scene, server, "error", "live-migration")


def moved_in_vain_and_later_away_between_others(scene: Scene) -> str:
    """After an evacuation that failed late, guests can run on both."""
    third = scene.host("compute-3")
    server = moved_in_vain(scene, "evacuation")
    scene.migration(server, scene.there, third, "confirmed")
    scene.migration(server, third, scene.there, "completed", type="live-migration")
    return server


def moved_in_vain_and_later_resized_in_place(scene: Scene) -> str:
    """Both ends of that move are one host, so it does not show that the server left."""
    server = moved_in_vain(scene)
    for host in (scene.here, scene.there):
        scene.migration(server, host, host, "confirmed", type="resize")
    return server


def unshelved_before_its_newest_move(scene: Scene) -> str:
    server = scene.act(extra_host(scene), "unshelve", scene.there)
    return moved_back(scene, server, "done", "evacuation")


def unshelved_while_an_older_evacuation_came_to_its_end(scene: Scene) -> str:
    """The evacuation waited for its host, which processed it late.

    Before that the state was reset, and the server shelved and unshelved. It is `done` before the
    new host is saved, and the guest is there by then.
    """
    server = unshelved_with_another_host(scene)
    (move,) = (known.uuid for known in scene.migrations.values() if known.server == server)
    scene.alter(move, type="evacuation", status="done", updated_at=LATE)
    return server


def unshelved_on_a_host_that_is_hidden_from_us(scene: Scene) -> str:
    server = unshelved_with_another_host(scene)
    newest, *older = scene.actions[server]
    hidden = tuple(d.replace(event, host=None) for event in newest.events)
    scene.actions[server] = (d.replace(newest, events=hidden), *older)
    return server


def with_a_service_without_a_node(scene: Scene, host: str, state: str) -> str:
    """Its provider may be that of the host, which is not discovered."""
    server = extra_host_that_is_gone(scene)
    scene.services.append(Service("nova-compute", host, "enabled", state))
    return server


def extra_host_that_is_gone_while_its_own_lacks_a_device(scene: Scene) -> str:
    return scene.lose_host(with_device_of(scene, extra_host(scene), scene.here))


def extra_hosts_of_which_one_is_gone_while_its_own_lacks_a_device(scene: Scene) -> str:
    third = scene.host("compute-3")
    server = with_device_of(scene, scene.hold(extra_host(scene), third), third)
    scene.remove_host(third)
    return server


def extra_host_that_is_gone_while_its_own_is_hardly_held(scene: Scene) -> str:
    server = scene.server(scene.there, scene.here)
    return scene.lose_host(scene.hold(server, scene.there, amounts={"VCPU": 1}))


def extra_host_named_by_a_migration(scene: Scene) -> str:
    server = moved(scene, scene.server(scene.there, scene.there), "error")
    return scene.hold(server, scene.here, amounts=DISK)


def on_a_foreign_provider_beside_a_dead_cell(scene: Scene) -> str:
    scene.services.append(Service("nova-compute", "compute-9", "UNKNOWN", None))
    return scene.stranger(scene.provider("fpga-farm"))


def not_where_it_was_moved(scene: Scene) -> str:
    """A lagging replica shows the old host beside the finished evacuation.

    The destination would look wrong.
    """
    server = scene.server(scene.here, scene.here, scene.there)
    return moved(scene, server, "done", "evacuation")


UNDECIDED: dict[tuple[str, str], dict[str, Situation]] = {
    ("deleted_server", "also_a_migration"): {
        "deleted by hand and known as a migration": lambda scene: scene.answers(
            "marker", deleted_by_hand(scene), 200
        )
    },
    ("deleted_server", "listed_on_host"): {
        "deleted by hand and seen on its host": deleted_by_hand_and_seen_on_its_host,
        "without a mapping but deleted elsewhere": without_a_mapping_but_deleted_elsewhere,
    },
    ("ended_migration", "guest_not_cleaned_up"): {
        "a host that was only cut off": ended_migration_with_a_host_that_was_only_cut_off
    },
    ("ended_migration", "server_has_less_than_migration"): {
        "interrupted live migration": interrupted_live_migration,
        "the only disk": lambda scene: with_shared_disk(scene, failed_migration(scene)),
        "the only child": lambda scene: with_device_of(scene, failed_migration(scene), scene.there),
        "the only allocation": confirmed_migration_with_the_only_allocation_on_the_host,
        "the only disk on a formerly sharing host": lambda scene: scene.hold(
            failed_migration(scene), scene.host("compute-3"), amounts=DISK
        ),
    },
    ("ended_migration", "server_not_settled"): {
        "server in error": lambda scene: scene.migration(
            scene.server(None, scene.there, status="ERROR"),
            *(scene.here, scene.there, "error", scene.here),
        ),
        "server elsewhere": ended_migration_whose_server_is_elsewhere,
    },
    ("evacuated_source", "guest_not_cleaned_up"): {
        "only cut off": evacuated_from_a_host_that_was_only_cut_off,
        "forced down": evacuated_from_a_host_that_is_forced_down_and_reports,
    },
    ("extra_host", "classes_only_on_gone_hosts"): {
        "its own lacks a device": extra_host_that_is_gone_while_its_own_lacks_a_device,
        "one is gone": extra_hosts_of_which_one_is_gone_while_its_own_lacks_a_device,
        "its own is hardly held": extra_host_that_is_gone_while_its_own_is_hardly_held,
    },
    ("extra_host", "guest_not_cleaned_up"): {
        "only cut off, and on a third": lambda scene: scene.hold(
            evacuated_from_a_host_that_was_only_cut_off(scene), scene.host("compute-3")
        )
    },
    ("extra_host", "may_share_resources"): {
        "a formerly shared disk": lambda scene: scene.hold(
            scene.server(scene.there, scene.there), scene.here, amounts=DISK
        ),
        # The trait is gone. No move leaves an allocation of classes that the server does not have
        # on its own host.
        "a formerly shared device": lambda scene: scene.hold(
            scene.server(scene.there, scene.there), scene.here, amounts={"CUSTOM_FPGA": 1}
        ),
        "named by a migration": extra_host_named_by_a_migration,
    },
    ("extra_host", "move_may_have_ended"): {
        "confirmed away before": moved_in_vain_and_confirmed_away_before_that,
        "away between others": moved_in_vain_and_later_away_between_others,
        "moved in vain twice": lambda scene: moved_back(
            scene, moved_in_vain_and_later_away(scene), "failed", "evacuation"
        ),
        "a row that changed after the later move": lambda scene: with_failed_row(
            scene, moved_in_vain_and_later_away(scene), updated_at=LATE
        ),
        "at an unknown time": lambda scene: with_failed_row(
            scene, moved_in_vain_and_later_away(scene), updated_at=None
        ),
        "resized in place": moved_in_vain_and_later_resized_in_place,
        # The guest may run on a host of which only the service was deleted.
        "gone": lambda scene: scene.lose_host(moved_in_vain(scene)),
        "without a word of its node": (
            live_migration_that_failed_towards_a_host_without_a_word_of_its_node
        ),
    },
    ("extra_host", "providers_of_unlisted_nodes"): {
        "service runs": lambda scene: with_a_service_without_a_node(scene, "compute-1", "up"),
        "service is down": lambda scene: with_a_service_without_a_node(
            scene, "compute-1.example.org", "down"
        ),
    },
    ("unhosted_server", "action_may_be_queued"): {
        # The message broker took the request, and conductor never learned it.
        # The host takes it from its queue when it starts.
        "unshelving handed over with an error to a host that is down": lambda scene: (
            scene.take_down(found_no_host(scene, shelved_away(scene)))
        ),
        "boot handed over with an error to a host that is down": lambda scene: scene.take_down(
            failed_to_be_scheduled(scene)
        ),
        "evacuation": evacuation_handed_over_after_a_failed_boot_to_a_host_that_is_down,
    },
    ("unhosted_server", "build_may_be_in_progress"): {
        "failed elsewhere": failed_to_boot_elsewhere,
        "failed elsewhere and reset": lambda scene: scene.did(
            failed_to_boot_elsewhere(scene), "resetState"
        ),
    },
    ("unhosted_server", "last_actions_unfinished"): {
        "unshelving after a long life": lambda scene: handed_over(
            scene, shelved_away_after_a_long_life(scene)
        ),
        "reset since a long life": lambda scene: scene.did(
            shelved_away_after_a_long_life(scene), "resetState"
        ),
        # The action has no events: it waits for its host.
        "shelve that was never taken up": lambda scene: scene.did(
            scene.did(offloaded(scene), "create", NOW), "shelve"
        ),
        # The part of the host ended with an error, so it proves nothing about earlier actions.
        # Those are further back than the reading goes.
        "shelved away in vain": lambda scene: scene.fail_newest_action(
            shelved_away_after_a_long_life(scene)
        ),
        "waits behind a later shelve": unshelving_that_waits_behind_a_later_shelve,
        # Its service was deleted while the unshelve waited in its queue.
        # nova-compute creates another when it starts.
        "to a host that is gone": lambda scene: scene.lose_host(
            handed_over(scene, shelved_away(scene))
        ),
        "cut short": unshelving_cut_short,
        # The action is recorded before its first event.
        "just begun": lambda scene: scene.did(shelved_away(scene), "unshelve"),
        "cut short and reset": lambda scene: scene.did(unshelving_cut_short(scene), "resetState"),
        "cut short and reset to error": lambda scene: scene.alter(
            scene.did(unshelving_cut_short(scene), "resetState"), status="ERROR"
        ),
        "waits in the queue": lambda scene: handed_over(scene, shelved_away(scene)),
        "waits in the queue, and reset to error": lambda scene: scene.alter(
            scene.did(handed_over(scene, shelved_away(scene)), "resetState"), status="ERROR"
        ),
        # Somebody has removed the task of the first one from the database.
        "waits behind one that found no host": lambda scene: found_no_host(
            scene, handed_over(scene, shelved_away(scene))
        ),
        "waits behind one that ended in error": lambda scene: scene.alter(
            found_no_host(scene, handed_over(scene, shelved_away(scene))), status="ERROR"
        ),
        "rebuild that runs behind a lock": lambda scene: scene.did(
            scene.did(shelved_away(scene), "rebuild", None), "lock"
        ),
        "unreadable actions": lambda scene: scene.answers(
            "last_actions", failed_to_boot(scene), 403
        ),
    },
    ("unhosted_server", "last_host_unknown"): {
        "offloaded elsewhere": lambda scene: scene.act(offloaded(scene), "shelve", scene.there),
        "failed to be unshelved": lambda scene: found_no_host(
            scene, scene.server(None, scene.here, status="ERROR")
        ),
        "failed to boot without a record of it": lambda scene: scene.server(
            None, scene.here, status="ERROR"
        ),
    },
    ("unhosted_server", "server_fields_missing"): {
        "its host is hidden": lambda scene: scene.alter(failed_to_boot(scene), host_known=False),
        "its task is hidden": lambda scene: scene.alter(failed_to_boot(scene), task_known=False),
    },
    ("unhosted_server", "state_may_have_been_reset"): {
        "reset and later shelve": unshelving_that_waits_behind_a_reset_and_a_later_shelve,
        "reset that cannot be read": lambda scene: scene.answers(
            "actions", unshelving_that_waits_behind_a_reset_and_a_later_shelve(scene), 503
        ),
        "later one that found no host": lambda scene: found_no_host(
            scene, unshelving_that_waits_behind_a_reset_and_a_later_shelve(scene)
        ),
    },
    ("unknown_consumer", "credentials_not_checked"): {
        "no live server to compare": lambda scene: scene.stranger(scene.here)
    },
    # Its host must be named for it to be an unknown consumer.
    ("unknown_consumer", "host_to_be_named"): {
        "on a host that is gone": lambda scene: scene.lose_host(unknown(scene))
    },
    ("unproven", "compute_node_ambiguous"): {
        "doubtful node of Ironic": on_an_ironic_host_with_doubtful_node,
        "node that Nova does not list": lambda scene: scene.server(
            scene.here, scene.here, scene.there, node="compute-1.example.org"
        ),
    },
    ("unproven", "deletion_not_proven"): {
        "soft-deleted without mapping": soft_deleted_without_mapping,
        "unreadable migrations": lambda scene: scene.answers("migrations", deleted(scene), 503),
    },
    ("unproven", "listed_on_host"): {"without a mapping": without_a_mapping},
    ("unproven", "may_belong_to_down_cell"): {
        "foreign provider beside a dead cell": on_a_foreign_provider_beside_a_dead_cell
    },
    ("unproven", "migration_listed_once"): {
        "cell too slow to be listed": migration_of_a_cell_too_slow_to_be_listed
    },
    ("unproven", "migrations_left"): {
        "unmapped and named by a migration": unmapped_and_named_by_a_migration
    },
    ("unproven", "migrations_unread"): {
        "unreadable listing of the host": lambda scene: scene.answers(
            "host_migrations", deleted_migration(scene), 500
        )
    },
    ("unproven", "newest_move_unfinished"): {
        "unshelved before its newest move": unshelved_before_its_newest_move,
        "while an older evacuation ended": unshelved_while_an_older_evacuation_came_to_its_end,
        # Its newest unshelve should have placed it on a third host.
        "unshelved elsewhere": lambda scene: scene.did(
            unshelved_with_another_host(scene), "unshelve", NOW, host="compute-3"
        ),
        "unshelving that failed": lambda scene: scene.fail_newest_action(
            unshelved_with_another_host(scene)
        ),
        "unshelving that has not ended": lambda scene: scene.act(
            unshelved_with_another_host(scene), "unshelve", scene.there, None
        ),
        "unshelved on a hidden host": unshelved_on_a_host_that_is_hidden_from_us,
        "unshelved with unreadable actions": lambda scene: scene.answers(
            "last_actions", unshelved_with_another_host(scene), 403
        ),
        "not where it was moved": not_where_it_was_moved,
    },
    ("unproven", "other_lookup_failed"): {
        "deleted by hand, with unreadable actions": lambda scene: scene.answers(
            "actions", deleted_by_hand(scene), 403
        ),
        "deleted by hand, with unreadable listing": lambda scene: scene.answers(
            "deleted_listing", deleted_by_hand(scene), 500
        ),
        "lost mapping": with_a_lost_mapping_that_no_host_shows,
        "refused": lambda scene: scene.answers("deleted_listing", deleted(scene), 403),
        "unanswered once": lambda scene: scene.answers("marker", unknown(scene), 503),
        "unanswered, and its host is gone": lambda scene: scene.lose_host(
            scene.answers("marker", unknown(scene), 503)
        ),
    },
    ("unproven", "own_allocation_incomplete"): {
        "a part of its own host": lambda scene: with_device_of(
            scene, scene.server(scene.there, scene.here), scene.there
        )
    },
    ("unproven", "server_lookup_failed"): {
        "dead cell": lambda scene: scene.answers(
            "server", scene.server(scene.here, scene.here, scene.there), 500
        )
    },
    ("unproven", "server_unsettled"): {
        "failed to boot, on somebody else's provider": lambda scene: scene.hold(
            failed_to_boot(scene), scene.provider("fpga-farm")
        ),
        "task not shown": lambda scene: scene.alter(extra_host(scene), task_known=False),
        "no host": lambda scene: scene.server(
            None, scene.here, scene.provider("fpga-farm"), status="ERROR"
        ),
        "host that may be hidden": lambda scene: scene.server(None, scene.here, host_known=False),
        "no host, and a task not shown": lambda scene: scene.server(
            None, scene.here, task_known=False
        ),
        "node alone": lambda scene: scene.alter(failed_to_boot(scene), node="compute-1"),
    },
    ("unproven", "settled_elsewhere"): {
        "on a provider of somebody else": lambda scene: scene.server(
            scene.here, scene.provider("fpga-farm")
        ),
        "moved, and without an allocation": lambda scene: moved(
            scene, scene.server(scene.here), "completed"
        ),
    },
    ("unproven", "unknown_move_type"): {
        "teleported": lambda scene: moved(scene, extra_host(scene), "completed", "teleport")
    },
}


@pytest.mark.parametrize(("expected", "situation"), list_cases(UNDECIDED))
def test_consumer_is_undecided(expected: tuple[str, str], situation: Situation) -> None:
    scene = Scene()
    kind, verdict, reason = scene.told(situation(scene), POLICY)

    assert (verdict, kind, reason) == ("undecided", *expected)


def test_foreign_provider_is_named_beside_hosts_that_are_or_were_novas() -> None:
    scene = Scene()
    consumer = scene.stranger(scene.here, scene.there, scene.provider("fpga-farm"))
    finding = scene.found(scene.lose_host(consumer))

    assert (finding.verdict, finding.kind) == ("protected", "foreign_provider")
    assert finding.reason.id == "of_other_nova" and "fpga-farm" in finding.reason


def on_shared_disk(scene: Scene) -> str:
    on_host = {"VCPU": 1, "MEMORY_MB": 512}
    scene.stock[scene.here] = dict.fromkeys(on_host, PLENTY)
    return with_shared_disk(
        scene, scene.hold(scene.server(scene.here), scene.here, amounts=on_host)
    )


def on_its_ironic_node(scene: Scene) -> str:
    scene.host("node-1", service="ironic")
    node = scene.host("node-2", service="ironic")
    return scene.server(node, node)


@pytest.mark.parametrize("situation", [on_shared_disk, on_its_ironic_node])
def test_consumer_is_healthy(situation: Situation) -> None:
    scene = Scene()

    assert scene.find(situation(scene), POLICY) is None


def with_children(scene: Scene) -> str:
    flavor = d.replace(FLAVOR, extra_specs={"pci_passthrough:alias": "x:1"})
    child = scene.provider("compute-1_pci", scene.here)
    scene.traits[child] = frozenset({"COMPUTE_MANAGED_PCI_DEVICE"})
    server = scene.server(scene.here, scene.here, flavor=flavor)
    return scene.hold(server, child, amounts={"CUSTOM_PCI_X": 1})


def with_an_allocation_on_no_host(scene: Scene) -> str:
    server = scene.server(scene.here, scene.here)
    return scene.hold(server, scene.provider("former-pool"), amounts=DISK)


@pytest.mark.parametrize(
    ("situation", "said"),
    [(with_children, "alias x"), (with_an_allocation_on_no_host, "former-pool")],
)
def test_allocation_that_cannot_be_explained_is_left_alone(situation: Situation, said: str) -> None:
    scene = Scene()
    finding = scene.found(situation(scene), POLICY)

    assert (finding.verdict, finding.change) == ("undecided", None) and said in finding.reason


def test_live_server_keeps_its_tree_and_shared_disk_when_another_host_is_dropped() -> None:
    scene = Scene()
    pool = scene.provider("pool", sharing=True)
    child = scene.provider("compute-2_pci", scene.there)
    change = scene.found(scene.hold(extra_host(scene), pool, child, amounts=DISK), POLICY).change

    assert change is not None
    assert set(change.after["allocations"]) == {scene.there, pool, child}
    assert change.after["allocations"][scene.there] == {
        "resources": scene.allocations[change.consumer].resources[scene.there]
    }


# Exclusions.


@pytest.mark.parametrize("excluded", ["compute-1", "uuid of compute-1", "compute-1_nic"])
def test_excluded_provider_protects_its_consumers(excluded: str) -> None:
    scene = Scene()
    consumer = with_device_of(scene, deleted(scene), scene.here)
    name = scene.here if excluded.startswith("uuid") else excluded

    assert scene.found(consumer, excluding(name)).kind == "excluded"


def excluding(name: str) -> Policy:
    return Policy(exclude_providers=frozenset({name}))


@pytest.mark.parametrize("excluded", ["nova-1", "compute-1", "Compute-1.EXAMPLE", "NOVA-1.lan"])
def test_host_is_excluded_by_each_of_its_names_in_any_spelling(excluded: str) -> None:
    """The host of a service and its provider often have different names."""
    scene = Scene("compute-1.example", "compute-11")
    scene.rename_host(scene.here, host="nova-1")
    consumer, other = (scene.delete(scene.server(root, root)) for root in (scene.here, scene.there))

    assert scene.found(consumer, excluding(excluded)).kind == "excluded"
    assert scene.found(other, excluding(excluded)).kind != "excluded"


@pytest.mark.parametrize("excluded", ["10.0.0.2", "rack-1.compute", "compute-1.rack-2"])
def test_exclusion_of_one_host_is_not_that_of_a_similar_one(excluded: str) -> None:
    scene = Scene("10.0.0.1", "compute-1.rack-1")
    scene.host("compute-1.rack-2")

    for root in (scene.here, scene.there):
        consumer = scene.delete(scene.server(root, root))
        assert scene.found(consumer, excluding(excluded)).kind != "excluded"


def test_excluded_child_protects_its_whole_tree() -> None:
    scene = Scene()
    consumer = with_device_of(scene, deleted(scene), scene.here)
    other, bystander = extra_host(scene), scene.stranger(scene.there)
    policy = excluding("compute-1_nic")

    assert {scene.found(one, policy).kind for one in (consumer, other)} == {"excluded"}
    assert scene.found(bystander, policy).kind == "unknown_consumer"


def test_excluded_tree_protects_who_has_only_a_child_of_it() -> None:
    scene = Scene()
    consumer = scene.stranger(scene.provider("compute-1_pci", scene.here))

    assert scene.found(consumer, excluding("compute-1")).kind == "excluded"


def test_excluded_host_protects_a_server_that_has_no_allocation_there() -> None:
    """A change could make one."""
    scene = Scene()
    server = scene.server(scene.there, scene.here)

    assert scene.found(server, excluding("compute-2")).kind == "excluded"


@pytest.mark.parametrize(("root", "place"), [("here", "on compute-1"), (None, "without a host")])
def test_unsettled_server_is_named_with_its_place(root: str | None, place: str) -> None:
    scene = Scene()
    home = scene.here if root else None
    server = scene.server(home, scene.here, scene.there, task_known=False)

    assert place in scene.found(server).reason


def test_excluded_consumer_is_protected() -> None:
    scene = Scene()
    consumer = deleted(scene)
    policy = Policy(exclude_consumers=frozenset({consumer}))

    assert scene.found(consumer, policy).kind == "excluded"


# Hosts that are gone.


@pytest.mark.parametrize(
    ("field", "name", "verdict"),
    [
        ("hosts", "compute-1", "orphaned"),
        ("hosts", "uuid of compute-1", "orphaned"),
        ("consumers", "the consumer", "orphaned"),
        ("hosts", "compute-2", "undecided"),
        (None, "", "undecided"),
    ],
)
def test_consumer_on_a_deleted_host_is_unknown_where_that_host_is_named(
    field: str | None, name: str, verdict: str
) -> None:
    scene = Scene()
    consumer = scene.lose_host(unknown(scene))
    meant = {"uuid of compute-1": scene.here, "the consumer": consumer}
    scope = Scope(**({field: (meant.get(name, name),)} if field else {}))

    assert scene.told(consumer, POLICY, scope=scope)[:2] == ("unknown_consumer", verdict)


def test_deleted_host_without_the_nova_trait_belongs_to_somebody_else() -> None:
    scene = Scene()
    consumer = scene.lose_host(unknown(scene))
    scene.were_novas.clear()

    told = scene.told(consumer, POLICY, scope=Scope(hosts=("compute-1",)))
    assert told[:2] == ("foreign_provider", "protected")


def test_allocation_possibly_of_another_nova_is_not_taken_from_a_server() -> None:
    scene = Scene()
    server = extra_host_that_is_gone(scene)
    cloud = d.replace(scene.snapshot().cloud, other_novas=("RegionTwo",))
    finding = scene.found(server, POLICY, cloud=cloud)

    assert (finding.kind, finding.verdict) == ("extra_host", "undecided")
    assert finding.reason.id == "providers_of_unlisted_nodes"
    assert "RegionTwo" in finding.reason and "compute-1" in finding.reason


SILENT = answer("GET /os-services", 200, (Service("nova-compute", "x", "UNKNOWN", None),))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"services": answer("GET /os-services", 500)}, "may_be_host_of_down_cell"),
        ({"services_after": SILENT}, "may_be_host_of_down_cell"),
        ({"hypervisors": answer("GET /os-hypervisors/detail", 200, ())}, "nodes_not_in_placement"),
        ({"host_lookups": {}}, "host_not_looked_up"),
        ({"host_lookups": {"compute-1": answer("GET /os-hosts", 500)}}, "host_lookup_failed"),
    ],
)
def test_unsound_listing_of_hosts_proves_no_host_deleted(
    changes: dict[str, t.Any], told: str
) -> None:
    scene = Scene()
    extra_host_that_is_gone(scene)
    index = SnapshotIndex(scene.snapshot(**changes))

    assert SnapshotIndex(scene.snapshot()).is_gone(scene.here)
    assert not index.is_gone(scene.here) and index.find_possible_host(scene.here).id == told


def test_row_deleted_by_hand_is_reported() -> None:
    scene = Scene()
    alone, asked_for = (
        scene.found(situation(scene), POLICY)
        for situation in (deleted_by_hand, deleted_by_hand_after_a_delete_that_failed)
    )

    assert alone.reason.id == asked_for.reason.id == "server_deleted"
    assert "by hand" in alone.reason and "no delete action" in alone.reason
    assert "by hand" in asked_for.reason and "user user requested" in asked_for.reason


def test_only_consumers_that_the_listings_leave_open_are_candidates() -> None:
    scene = Scene()
    plain = with_shared_disk(scene, scene.server(scene.here, scene.here))
    doubtful = [situation(scene) for situation in (deleted, extra_host, moving, unknown)]
    candidates = find_candidates(ListingsIndex(scene.snapshot()))

    assert plain not in candidates
    assert set(doubtful) <= set(candidates)
