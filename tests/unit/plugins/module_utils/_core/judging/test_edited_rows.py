"""Rows of Nova's databases that operators edit by hand when something is stuck.

What Nova itself would never write proves nothing, and no allocation that a live server needs may be
changed because of it.
"""

import dataclasses as d
import typing as t

import pytest

from ...world import CLAIM, NOW
from ..scene import Scene

# The instance action that begins a migration of each type.
ACTIONS = {
    "evacuation": "evacuate",
    "live-migration": "live-migration",
    "migration": "migrate",
    "resize": "resize",
}
EVACUATION_OR_LIVE = pytest.mark.parametrize("kind", ["evacuation", "live-migration"])


def _cut_live_migration(scene: Scene, *holds: str, status: str = "error") -> tuple[str, str]:
    """Return a server and the deleted row of its interrupted live migration.

    The server has the destination only, and the migration the source, where the guest runs.
    """
    server = scene.did(scene.server(scene.here, scene.there), "live-migration", NOW)
    move = scene.goes(server, status, scene.here, *holds, type="live-migration")
    return server, scene.delete_row(move)


def _row_of_nobody(scene: Scene) -> str:
    """Return a migration without a row, which has an allocation on `here`."""
    return scene.delete_row(scene.hold(scene.uuid(), scene.here))


def _move_first(scene: Scene, server: str, before: tuple[str, str] | None) -> None:
    """Let a server come to `here` by a move of this type and status."""
    if before:
        kind, status = before
        scene.did(server, ACTIONS[kind], NOW)
        scene.comes(server, status, type=kind)


# Rows of migrations that were deleted or hidden (nova/api/openstack/compute/migrations.py, _output,
# leaves out those with hidden = 1).


@pytest.mark.parametrize("status", ["error", "failed", "cancelled", "running"])
def test_deleted_row_of_an_interrupted_live_migration_keeps_what_its_server_needs(
    scene: Scene, status: str
) -> None:
    _server, migration = _cut_live_migration(scene, status=status)

    assert scene.undecided(migration) == "moved_server_without_allocation"


def test_restored_server_keeps_the_allocation_of_its_migration(scene: Scene) -> None:
    """UPDATE instances SET deleted = 0: the rows of its migrations stay deleted."""
    server = scene.did(scene.server(scene.here), "resize", NOW)
    move = scene.migration(server, scene.here, scene.here, "error", scene.here)

    assert not scene.found(scene.delete_row(move)).change


@pytest.mark.parametrize("status", ["VERIFY_RESIZE", "RESIZE", "REVERT_RESIZE", "MIGRATING"])
def test_deleted_row_of_a_move_under_way_keeps_what_its_server_goes_back_to(
    scene: Scene, status: str
) -> None:
    """The server has the destination, and every host has what its servers need."""
    server = scene.server(scene.there, scene.there, status=status)
    migration = scene.delete_row(scene.goes(server, "finished", scene.here))

    assert scene.undecided(migration) == "server_moving_without_migration"
    assert server in scene.found(migration).reason
    scene.answers("unlisted_moves", "", 403)
    assert scene.undecided(migration) == "moving_servers_unread"


def test_deleted_row_of_a_move_under_way_is_not_that_of_a_failed_one_before(scene: Scene) -> None:
    server = scene.server(scene.there, scene.there, status="VERIFY_RESIZE")
    scene.goes(server, "error")

    assert not scene.found(scene.delete_row(scene.goes(server, "finished", scene.here))).change


@pytest.mark.parametrize("did", ["create", "rebuild", "unshelve"])
def test_server_without_an_allocation_that_was_never_moved_needs_none_of_a_migration(
    scene: Scene, did: str
) -> None:
    server = scene.did(scene.server(scene.here), did, NOW)
    migration = _row_of_nobody(scene)

    assert scene.found(migration).change
    scene.answers("actions", server, 403)
    assert not scene.found(migration).change


@pytest.mark.parametrize("holds_child", [False, True])
def test_deleted_row_of_a_migration_frees_it_once_all_servers_have_their_own(
    scene: Scene, holds_child: bool
) -> None:
    scene.server(scene.here, scene.here)
    if holds_child:
        scene.server(scene.here, scene.here, scene.provider("compute-1_pci", scene.here))
    finding = scene.found(_row_of_nobody(scene))

    assert finding.kind == "deleted_migration" and finding.change


def test_server_whose_listed_migration_has_its_allocation_needs_no_other(scene: Scene) -> None:
    """Its own move is under way, and so has the source."""
    moving = scene.server(scene.here, scene.there, task_state="migrating")
    scene.goes(moving, "running", scene.here, type="live-migration")
    finding = scene.found(_row_of_nobody(scene))

    assert finding.kind == "deleted_migration" and finding.change


@pytest.mark.parametrize("holds_child", [False, True])
def test_old_listing_of_a_host_does_not_free_what_its_server_needs(
    scene: Scene, holds_child: bool
) -> None:
    """A cache has what the host listed before a live migration, which was interrupted since."""
    child = scene.provider("compute-1_pci", scene.here)
    server, migration = _cut_live_migration(scene, child)
    host = scene.snapshot().host_allocations[scene.here]
    listed = {server: {scene.here: CLAIM}, **({migration: {child: CLAIM}} if holds_child else {})}
    old = d.replace(host, tree=d.replace(host.tree, value=listed))

    reason = scene.undecided(migration, host_allocations={scene.here: old})
    assert reason == "host_allocations_differ"


@pytest.mark.parametrize("status", ["confirmed", "completed", "error"])
def test_leftover_of_an_earlier_move_is_not_what_its_server_needs(
    scene: Scene, status: str
) -> None:
    """The server came back, and a live migration from there was interrupted since."""
    server = scene.did(scene.server(scene.here, scene.there), "live-migration", NOW)
    scene.goes(server, status, scene.here)
    migration = scene.delete_row(scene.goes(server, "error", scene.here, type="live-migration"))

    assert scene.undecided(migration)
    assert server in scene.found(migration).reason


def test_bandwidth_of_a_port_is_not_what_a_server_needs_of_its_host(scene: Scene) -> None:
    """A live migration was interrupted, and then a port was attached.

    Nova adds the bandwidth of the port to the allocation of the server
    (nova/compute/manager.py, _allocate_port_resource_for_instance).
    """
    bridge = scene.provider("compute-1:br-ex", scene.here)
    server, migration = _cut_live_migration(scene)
    scene.hold(server, bridge, amounts={"NET_BW_EGR_KILOBIT_PER_SEC": 1000})

    assert scene.undecided(migration)
    assert server in scene.found(migration).reason


def test_host_that_an_api_worker_does_not_find_may_have_a_server_that_needs_it(
    scene: Scene,
) -> None:
    """The worker lists no server of a host in a cell that it does not know.

    It answers 404 when it is asked for the servers of the compute node.
    """
    _server, migration = _cut_live_migration(scene)
    snapshot = scene.snapshot()
    host = snapshot.host_allocations[scene.here]
    nodes = tuple(d.replace(node, servers=None) for node in snapshot.hypervisors.value or ())
    unfound: dict[str, t.Any] = {
        "hypervisors": d.replace(snapshot.hypervisors, value=nodes),
        "host_allocations": {
            scene.here: d.replace(host, servers=d.replace(host.servers, value=()))
        },
    }

    assert scene.undecided(migration, **unfound) == "host_allocations_unread"


def test_host_that_an_api_worker_leaves_out_may_have_a_server_that_needs_it(scene: Scene) -> None:
    """The worker that lists the compute nodes does not know their cell.

    Only the candidate is read, and a lookup of the host by the name of its provider is a 404.
    """
    scene.here = scene.host("server-room-7", service="compute-9")
    server, migration = _cut_live_migration(scene)
    del scene.nodes[scene.here]

    assert scene.undecided(migration) == "service_without_node"
    scene.services = [row for row in scene.services if row.host != "compute-9"]
    assert scene.undecided(migration) == "server_on_unlisted_host"
    assert server in scene.found(migration).reason
    del scene.servers[server]
    assert scene.found(migration).change


@pytest.mark.parametrize("status", [403, 500])
@pytest.mark.parametrize("question", ["tree_allocations", "host_servers"])
def test_unread_allocations_or_servers_of_its_host_prove_nothing(
    scene: Scene, question: str, status: int
) -> None:
    migration = _row_of_nobody(scene)
    scene.answers(question, scene.here, status)

    assert scene.undecided(migration)


# Statuses of migrations that were stuck.

# Nova gives these only to migrations of other types, or says with them nothing of the guest.
FOREIGN_STATUSES = ("cancelled", "confirmed", "reverted", "error", "failed")


@pytest.mark.parametrize("status", FOREIGN_STATUSES)
@EVACUATION_OR_LIVE
def test_destination_of_a_move_that_was_ended_by_hand_keeps_its_allocation(
    scene: Scene, kind: str, status: str
) -> None:
    """The destination died when the guest ran there already.

    The row stayed `pre-migrating` or `running`, and the operator wrote another status and reset the
    server to ACTIVE on its source.
    """
    server = scene.spread()
    scene.goes(server, status, type=kind)

    assert scene.undecided(server)


@pytest.mark.parametrize("status", [*FOREIGN_STATUSES, "completed", "done"])
@EVACUATION_OR_LIVE
def test_server_is_not_given_back_to_the_source_of_a_move_that_was_ended_by_hand(
    scene: Scene, kind: str, status: str
) -> None:
    """It has the destination alone, as when the source came back during the evacuation."""
    server = scene.server(scene.here, scene.there)
    scene.goes(server, status, type=kind)

    assert not scene.found(server).change


STATUSES_BY_HAND = pytest.mark.parametrize(
    "status", ["error", "failed", "cancelled", "completed", "done"]
)


@STATUSES_BY_HAND
@pytest.mark.parametrize("kind", ["migration", "resize"])
def test_source_of_a_halfway_revert_keeps_the_last_disk(
    scene: Scene, kind: str, status: str
) -> None:
    """The destination has destroyed the guest (nova/compute/manager.py, revert_resize)."""
    server = scene.server(scene.there, scene.there)
    migration = scene.goes(server, status, scene.here, type=kind)
    scene.did(scene.did(server, "resize", NOW), "revertResize")

    assert scene.undecided(migration) == "revert_was_requested"


@STATUSES_BY_HAND
def test_server_keeps_both_ends_of_a_halfway_revert(scene: Scene, status: str) -> None:
    """An operator has given the server an allocation on the source, where its last disk is."""
    server = scene.server(scene.there, scene.here, scene.there)
    scene.goes(server, status)
    scene.did(scene.did(server, "resize", NOW), "revertResize")

    assert scene.undecided(server) == "may_be_reverted_halfway"
    scene.answers("actions", server, 500)
    assert not scene.found(server).change


@pytest.mark.parametrize(
    ("kind", "status", "took_the_disk"),
    [
        # The revert came to its end, and only its record did not.
        ("live-migration", "completed", True),
        ("resize", "confirmed", True),
        ("live-migration", "error", False),
        ("migration", "completed", False),
    ],
)
def test_later_move_from_the_source_of_a_failed_revert_may_have_taken_the_disk_along(
    scene: Scene, kind: str, status: str, took_the_disk: bool
) -> None:
    server = scene.server(scene.there, scene.here, scene.there)
    migration = scene.goes(server, "error", scene.here)
    scene.did(scene.did(server, "migrate", NOW), "revertResize")
    scene.goes(server, status, type=kind)

    assert bool(scene.found(server).change) is took_the_disk
    if took_the_disk:
        assert scene.found(server).kind == "extra_host"
        assert scene.found(migration).kind == "ended_migration" and scene.found(migration).change


def test_failed_resize_without_a_revert_leaves_nothing_on_its_source(scene: Scene) -> None:
    server = scene.server(scene.there, scene.here, scene.there)
    scene.goes(server, "error")
    finding = scene.found(scene.did(server, "resize", NOW))

    assert finding.kind == "extra_host" and finding.change


@pytest.mark.parametrize("status", ["completed", "confirmed", "done"])
def test_server_that_is_not_where_its_row_says_it_went_keeps_everything(
    scene: Scene, status: str
) -> None:
    """A move that never took place was written off as a success."""
    server = scene.spread()
    migration = scene.goes(server, status, scene.here, type="live-migration")

    assert not scene.found(server).change and not scene.found(migration).change


def test_server_whose_row_says_that_it_went_back_keeps_everything(scene: Scene) -> None:
    """A resize that waits for its confirmation was written off as reverted."""
    server = scene.server(scene.there, scene.here, scene.there)
    migration = scene.goes(server, "reverted", scene.here, type="resize")

    assert not scene.found(server).change and not scene.found(migration).change


MOVES = pytest.mark.parametrize("action", ACTIONS.values())


@MOVES
def test_server_whose_migrations_were_purged_keeps_everything(scene: Scene, action: str) -> None:
    """DELETE FROM migrations: its actions still show that it was moved."""
    assert scene.undecided(scene.did(scene.spread(), action, NOW))


@MOVES
@pytest.mark.parametrize(
    "before", [(), ("completed",), ("completed", "error"), ("completed", "completed"), ("error",)]
)
def test_server_whose_newest_migration_was_deleted_keeps_everything(
    scene: Scene, before: tuple[str, ...], action: str
) -> None:
    """DELETE FROM migrations WHERE status = 'pre-migrating': its guest may run where it went."""
    server = scene.spread()
    for status in before:
        _move_first(scene, server, ("live-migration", status))
        scene.pass_time()
    scene.did(server, action, NOW)

    assert scene.undecided(server) == "move_without_migration"
    assert action in scene.found(server).reason


def test_server_that_lost_a_row_between_two_others_keeps_everything(scene: Scene) -> None:
    """Its guest runs on the other host since, so that the later move from here failed."""
    server = scene.spread()
    _move_first(scene, server, ("live-migration", "completed"))
    scene.pass_time()
    scene.did(scene.did(server, "evacuate", NOW), "live-migration", NOW)
    scene.migration(server, scene.here, scene.host("third"), "error", type="live-migration")

    assert scene.undecided(server)


@pytest.mark.parametrize("status", ["done", "completed"])
def test_server_evacuated_again_without_a_row_keeps_both_hosts(scene: Scene, status: str) -> None:
    server = scene.spread()
    _move_first(scene, server, ("evacuation", status))
    scene.set_service(scene.there, "up")
    scene.pass_time()

    assert scene.undecided(scene.did(server, "evacuate", NOW))


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("evacuation", "reverted"),
        ("live-migration", "reverted"),
        ("live-migration", "done"),
        ("migration", "reverted"),
        ("migration", "completed"),
        ("resize", "reverted"),
        ("resize", "completed"),
    ],
)
def test_row_that_took_the_server_nowhere_does_not_hide_a_deleted_one(
    scene: Scene, kind: str, status: str
) -> None:
    """Its guest may run where the deleted row took it.

    Nova does not give the later row this status, or the revert gave back both allocations.
    """
    server = scene.did(scene.spread(), "evacuate", NOW)
    scene.pass_time()
    scene.did(server, ACTIONS[kind], NOW)
    scene.migration(server, scene.here, scene.host("third"), status, type=kind)
    scene.set_service(scene.here, "up")

    assert scene.undecided(server)


def test_row_that_was_made_late_does_not_stand_for_a_deleted_one(scene: Scene) -> None:
    """A live migration waited in conductor's queue while the server was evacuated."""
    server, third = scene.did(scene.spread(), "live-migration", NOW), scene.host("third")
    scene.pass_time()
    scene.did(server, "evacuate", NOW)
    scene.migration(server, third, scene.here, "done", type="evacuation")
    scene.pass_time()
    scene.migration(server, scene.here, third, "error", type="live-migration")
    scene.pass_time()

    assert scene.undecided(scene.did(server, "evacuate", NOW))


MOVES_BEFORE = [
    ("live-migration", "completed"),
    ("migration", "confirmed"),
    ("resize", "confirmed"),
    ("evacuation", "completed"),
]
ANY_MOVE_BEFORE = pytest.mark.parametrize("before", [None, *MOVES_BEFORE])


@ANY_MOVE_BEFORE
@pytest.mark.parametrize("is_newer", [False, True])
def test_server_of_a_database_from_before_its_evacuation_keeps_both_hosts(
    scene: Scene, before: tuple[str, str] | None, is_newer: bool
) -> None:
    """The cell was restored from a backup: neither migration nor action says where it is.

    is_newer: whether the backup lacks also the host that runs the guest.
    """
    server = scene.spread()
    _move_first(scene, server, before)
    scene.set_service(scene.there, "up")
    scene.set_service(scene.here, "down")
    if is_newer:
        scene.remove_host(scene.there)

    assert scene.undecided(server) == "own_service_not_up"


def test_other_node_of_the_same_dead_host_is_not_where_it_was_evacuated_to(scene: Scene) -> None:
    first, second = scene.host("first", "ironic"), scene.host("second", "ironic")
    server = scene.server(first, first, second)
    scene.set_service(first, "down")

    assert scene.told(server)[:2] == ("extra_host", "orphaned")


@ANY_MOVE_BEFORE
@pytest.mark.parametrize(
    ("did", "waits"),
    [
        (("unshelve",), False),
        (("rebuild",), False),
        (("rebuild", "unshelve"), False),
        (("unshelve", "unshelve"), True),
        (("unshelve", "rebuild"), True),
    ],
)
def test_server_keeps_the_host_where_an_earlier_unshelve_may_wait(
    scene: Scene, before: tuple[str, str] | None, did: tuple[str, ...], waits: bool
) -> None:
    """The broker took the first one, conductor recorded an error, and the host is down."""
    server = scene.spread()
    _move_first(scene, server, before)
    if before:
        scene.pass_time()
    for action in did:
        scene.did(server, action, NOW)
    scene.set_service(scene.there, "down")
    _kind, verdict, reason = scene.told(server)

    assert verdict == ("undecided" if waits else "orphaned")
    assert (reason == "unshelve_may_be_queued") is waits


@pytest.mark.parametrize(
    ("newest", "is_late"), [("own", False), ("other", True), ("moved since", False)]
)
@pytest.mark.parametrize("action", ["unshelve", "rebuild"])
def test_server_keeps_both_hosts_where_an_earlier_unshelve_may_have_been_done_late(
    scene: Scene, newest: str, is_late: bool, action: str
) -> None:
    """The guest of the newest one runs on the other host."""
    server, third = scene.spread(), scene.host("third")
    placed_on = {"own": scene.here, "other": scene.there, "moved since": third}[newest]
    scene.did(server, "unshelve", NOW)
    scene.pass_time()
    scene.act(server, action, placed_on)
    if newest == "moved since":
        scene.pass_time()
        scene.did(server, "migrate", NOW)
        scene.migration(server, third, scene.here, "confirmed")
    _kind, verdict, reason = scene.told(server)

    assert verdict == ("undecided" if is_late else "orphaned")
    assert (reason == "placement_not_confirmed") is is_late


@pytest.mark.parametrize("status", ["completed", "failed"])
@pytest.mark.parametrize("later", ["evacuation", "live-migration"])
def test_server_keeps_the_host_of_an_evacuation_that_only_its_source_called_completed(
    scene: Scene, status: str, later: str
) -> None:
    """The destination died when the guest ran, the source came back, and was left again."""
    third = scene.host("third")
    server = scene.did(scene.server(scene.here, scene.here, third), "evacuate", NOW)
    scene.migration(server, scene.there, third, status, type="evacuation")
    scene.pass_time()
    _move_first(scene, server, (later, "completed"))

    assert scene.undecided(server)


@pytest.mark.parametrize("later", ["evacuation", "live-migration"])
def test_completed_evacuation_from_whose_end_the_server_was_moved_leaves_no_guest_there(
    scene: Scene, later: str
) -> None:
    third = scene.host("third")
    server = scene.did(scene.server(scene.here, scene.here, third), "evacuate", NOW)
    scene.migration(server, scene.there, third, "completed", type="evacuation")
    scene.pass_time()
    scene.did(server, ACTIONS[later], NOW)
    scene.migration(server, third, scene.here, "completed", type=later)

    assert scene.found(server).verdict == "orphaned"


@EVACUATION_OR_LIVE
@pytest.mark.parametrize("status", ["confirmed", "error"])
def test_migration_keeps_the_host_where_an_earlier_move_failed(
    scene: Scene, kind: str, status: str
) -> None:
    """It took over all that its server had, with what the failed move left on a third host."""
    third = scene.host("third")
    server = scene.did(scene.server(scene.here, scene.here), ACTIONS[kind], NOW)
    scene.migration(server, scene.there, third, "failed", type=kind)
    scene.set_service(scene.there, "up")
    scene.pass_time()
    scene.did(server, "migrate", NOW)

    assert scene.undecided(scene.comes(server, status, scene.there, third))


@pytest.mark.parametrize("before", MOVES_BEFORE)
def test_unshelves_from_before_the_server_left_the_other_host_do_not_wait_there(
    scene: Scene, before: tuple[str, str]
) -> None:
    server = scene.did(scene.did(scene.spread(), "unshelve", NOW), "unshelve", NOW)
    scene.pass_time()
    _move_first(scene, server, before)
    scene.set_service(scene.there, "down")

    assert scene.found(server).verdict == "orphaned"


def test_old_migrations_that_were_purged_leave_the_orphan_of_a_later_one(scene: Scene) -> None:
    """DELETE FROM migrations WHERE created_at < …: the newest one says where the server is."""
    server = scene.spread()
    for _count in range(3):
        scene.did(server, "live-migration", NOW)
        scene.pass_time()
    _move_first(scene, server, ("live-migration", "completed"))

    assert scene.told(server)[:2] == ("extra_host", "orphaned")


@pytest.mark.parametrize("placed", ["create", "rebuild", "evacuate", "unshelve"])
def test_server_in_error_that_lost_its_host_keeps_what_its_guest_uses(
    scene: Scene, placed: str
) -> None:
    """UPDATE instances SET host = NULL, node = NULL, vm_state = 'error': its guest runs on."""
    server = scene.server(None, scene.here, status="ERROR", launched_at=NOW)

    assert scene.undecided(scene.did(server, placed, NOW)) == "guest_was_launched"


@pytest.mark.parametrize("before", ["unshelve", "shelve"])
def test_rebuild_for_which_no_host_was_found_leaves_the_doubt_about_its_guest(
    scene: Scene, before: str
) -> None:
    """Nova rebuilds a server in ERROR elsewhere if its host was taken away by hand."""
    server = scene.server(None, scene.here, status="ERROR", launched_at=NOW)
    scene.did(scene.did(server, "create", NOW), before, NOW)
    if before == "unshelve":
        scene.fail_newest_action(server)
    scene.fail_newest_action(scene.did(server, "rebuild", NOW, event="schedule_instances"))

    assert scene.undecided(server) == "guest_was_launched"


def test_server_in_error_that_never_ran_or_was_shelved_is_without_a_host(scene: Scene) -> None:
    """The host of a shelved server gave it up, and a failed build had no guest that ran."""
    failed = scene.did(scene.server(None, scene.here, status="ERROR"), "create", NOW)
    shelved, unshelved = (
        scene.server(None, scene.here, status="ERROR", launched_at=NOW) for _number in range(2)
    )
    scene.did(scene.did(shelved, "create", NOW), "shelve", NOW)
    scene.fail_newest_action(scene.did(unshelved, "unshelve", NOW))

    for server in (failed, shelved, unshelved):
        assert scene.told(server) == ("unhosted_server", "orphaned", "server_without_host")
        assert scene.found(server).change


@pytest.mark.parametrize("lost", ["host", "node"])
def test_server_that_lost_its_host_or_its_node_keeps_everything(scene: Scene, lost: str) -> None:
    """UPDATE instances SET host = NULL, or node = NULL."""
    assert scene.undecided(scene.alter(scene.spread(), **{lost: None}))
