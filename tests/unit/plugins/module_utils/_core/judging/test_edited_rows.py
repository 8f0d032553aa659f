"""Rows of Nova's databases that operators edit by hand when something is stuck.

What Nova itself would never write proves nothing, and no allocation that a live server needs may be
changed because of it.
"""

from __future__ import annotations

import dataclasses as d

import pytest

from .......plugins.module_utils._core.models.finding import Finding
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import NO_MINIMUM_AGE, judge
from ...world import CLAIM, NOW, World

# The instance action that begins a migration of each type.
ACTIONS = {
    "evacuation": "evacuate",
    "live-migration": "live-migration",
    "migration": "migrate",
    "resize": "resize",
}


def _find(world: World, consumer: str, policy: Policy = NO_MINIMUM_AGE) -> Finding:
    found = judge(world.snapshot(), policy)
    return next(finding for finding in found if finding.consumer == consumer)


def _delete_row(world: World, migration: str) -> str:
    """UPDATE migrations SET deleted = id: no listing has it, and it is still a marker."""
    del world.migrations[migration]
    world.unlisted_migrations.add(migration)
    return migration


# Rows of migrations that were deleted or hidden (nova/api/openstack/compute/migrations.py, _output,
# leaves out those with hidden = 1).


@pytest.mark.parametrize("status", ["error", "failed", "cancelled", "running"])
def test_deleted_row_of_an_interrupted_live_migration_keeps_what_its_server_needs(
    world: World, here: str, there: str, status: str
) -> None:
    """The server has the destination only, and the migration the source, where the guest runs."""
    server = world.server(here, there)
    migration = world.migration(server, here, there, status, here, type="live-migration")
    world.did(server, "live-migration", NOW)
    _delete_row(world, migration)

    finding = _find(world, migration)

    assert (finding.verdict, finding.change) == ("undecided", None)
    assert "may need" in finding.reason


def test_restored_server_keeps_the_allocation_of_its_migration(world: World, here: str) -> None:
    """UPDATE instances SET deleted = 0: the rows of its migrations stay deleted."""
    server = world.server(here)
    world.did(server, "resize", NOW)
    migration = _delete_row(world, world.migration(server, here, here, "error", here))

    assert _find(world, migration).change is None


@pytest.mark.parametrize("status", ["VERIFY_RESIZE", "RESIZE", "REVERT_RESIZE", "MIGRATING"])
def test_deleted_row_of_a_move_under_way_keeps_what_its_server_goes_back_to(
    world: World, here: str, there: str, status: str
) -> None:
    """The server has the destination, and every host has what its servers need."""
    server = world.server(there, there, status=status)
    migration = _delete_row(world, world.migration(server, here, there, "finished", here))

    finding = _find(world, migration)

    assert (finding.verdict, finding.change) == ("undecided", None)
    assert finding.reason.id == "server_moving_without_migration"
    assert server in finding.reason
    world.answers("unlisted_moves", "", 403)
    assert _find(world, migration).change is None
    assert _find(world, migration).reason.id == "moving_servers_unread"


def test_deleted_row_of_a_move_under_way_is_not_that_of_a_failed_one_before(
    world: World, here: str, there: str
) -> None:
    server = world.server(there, there, status="VERIFY_RESIZE")
    world.migration(server, here, there, "error")
    migration = _delete_row(world, world.migration(server, here, there, "finished", here))

    assert _find(world, migration).change is None


@pytest.mark.parametrize("did", ["create", "rebuild", "unshelve"])
def test_server_without_an_allocation_that_was_never_moved_needs_none_of_a_migration(
    world: World, here: str, there: str, did: str
) -> None:
    server = world.server(here)
    world.did(server, did, NOW)
    migration = _delete_row(world, world.migration(world.uuid(), here, there, "error", here))

    assert _find(world, migration).change is not None
    world.answers("actions", server, 403)
    assert _find(world, migration).change is None


@pytest.mark.parametrize("holds_child", [False, True])
def test_deleted_row_of_a_migration_frees_it_once_all_servers_have_their_own(
    world: World, here: str, there: str, holds_child: bool
) -> None:
    world.server(here, here)
    if holds_child:
        world.server(here, here, world.provider("compute-1_pci", here))
    migration = _delete_row(world, world.migration(world.uuid(), here, there, "error", here))

    assert _find(world, migration).kind == "deleted_migration"
    assert _find(world, migration).change is not None


def test_server_whose_listed_migration_has_its_allocation_needs_no_other(
    world: World, here: str, there: str
) -> None:
    """Its own move is under way, and so has the source."""
    moving = world.server(here, there, task_state="migrating")
    world.migration(moving, here, there, "running", here, type="live-migration")
    migration = _delete_row(world, world.migration(world.uuid(), here, there, "error", here))

    assert _find(world, migration).kind == "deleted_migration"
    assert _find(world, migration).change is not None


@pytest.mark.parametrize("holds_child", [False, True])
def test_old_listing_of_a_host_does_not_free_what_its_server_needs(
    world: World, here: str, there: str, holds_child: bool
) -> None:
    """A cache has what the host listed before a live migration, which was interrupted since."""
    child = world.provider("compute-1_pci", here)
    server = world.server(here, there)
    world.did(server, "live-migration", NOW)
    move = world.migration(server, here, there, "error", here, child, type="live-migration")
    migration = _delete_row(world, move)
    snapshot = world.snapshot()
    host = snapshot.host_allocations[here]
    listed = {server: {here: CLAIM}}
    if holds_child:
        listed[migration] = {child: CLAIM}
    old = d.replace(host, tree=d.replace(host.tree, value=listed))
    found = judge(d.replace(snapshot, host_allocations={here: old}), NO_MINIMUM_AGE)

    finding = next(finding for finding in found if finding.consumer == migration)

    assert (finding.verdict, finding.change) == ("undecided", None)
    assert finding.reason.id == "host_allocations_differ"


@pytest.mark.parametrize("status", ["confirmed", "completed", "error"])
def test_leftover_of_an_earlier_move_is_not_what_its_server_needs(
    world: World, here: str, there: str, status: str
) -> None:
    """The server came back, and a live migration from there was interrupted since."""
    server = world.server(here, there)
    world.did(server, "live-migration", NOW)
    world.migration(server, here, there, status, here)
    move = world.migration(server, here, there, "error", here, type="live-migration")
    migration = _delete_row(world, move)

    finding = _find(world, migration)

    assert (finding.verdict, finding.change) == ("undecided", None)
    assert server in finding.reason


def test_bandwidth_of_a_port_is_not_what_a_server_needs_of_its_host(
    world: World, here: str, there: str
) -> None:
    """A live migration was interrupted, and then a port was attached.

    Nova adds the bandwidth of the port to the allocation of the server
    (nova/compute/manager.py, _allocate_port_resource_for_instance).
    """
    bridge = world.provider("compute-1:br-ex", here)
    server = world.server(here, there)
    world.did(server, "live-migration", NOW)
    move = world.migration(server, here, there, "error", here, type="live-migration")
    migration = _delete_row(world, move)
    world.hold(server, bridge, amounts={"NET_BW_EGR_KILOBIT_PER_SEC": 1000})

    finding = _find(world, migration)

    assert (finding.verdict, finding.change) == ("undecided", None)
    assert server in finding.reason


def test_host_that_an_api_worker_does_not_find_may_have_a_server_that_needs_it(
    world: World, here: str, there: str
) -> None:
    """The worker lists no server of a host in a cell that it does not know.

    It answers 404 when it is asked for the servers of the compute node.
    """
    server = world.server(here, there)
    world.did(server, "live-migration", NOW)
    move = world.migration(server, here, there, "error", here, type="live-migration")
    migration = _delete_row(world, move)
    snapshot = world.snapshot()
    host = snapshot.host_allocations[here]
    nodes = tuple(d.replace(node, servers=None) for node in snapshot.hypervisors.value or ())
    found = judge(
        d.replace(
            snapshot,
            hypervisors=d.replace(snapshot.hypervisors, value=nodes),
            host_allocations={here: d.replace(host, servers=d.replace(host.servers, value=()))},
        ),
        NO_MINIMUM_AGE,
    )

    finding = next(finding for finding in found if finding.consumer == migration)

    assert (finding.verdict, finding.change) == ("undecided", None)
    assert finding.reason.id == "host_allocations_unread"


def test_host_that_an_api_worker_leaves_out_may_have_a_server_that_needs_it(
    world: World, there: str
) -> None:
    """The worker that lists the compute nodes does not know their cell.

    Only the candidate is read, and a lookup of the host by the name of its provider is a 404.
    """
    hidden = world.host("server-room-7", service="compute-9")
    server = world.server(hidden, there)
    world.did(server, "live-migration", NOW)
    move = world.migration(server, hidden, there, "error", hidden, type="live-migration")
    migration = _delete_row(world, move)
    del world.nodes[hidden]

    finding = _find(world, migration)

    assert (finding.verdict, finding.change) == ("undecided", None)
    assert finding.reason.id == "service_without_node"
    world.services = [row for row in world.services if row.host != "compute-9"]
    finding = _find(world, migration)
    assert (finding.verdict, finding.change) == ("undecided", None)
    assert finding.reason.id == "server_on_unlisted_host" and server in finding.reason
    del world.servers[server]
    assert _find(world, migration).change is not None


@pytest.mark.parametrize("status", [403, 500])
@pytest.mark.parametrize("question", ["tree_allocations", "host_servers"])
def test_unread_allocations_or_servers_of_its_host_prove_nothing(
    world: World, here: str, there: str, question: str, status: int
) -> None:
    migration = _delete_row(world, world.migration(world.uuid(), here, there, "error", here))
    world.answers(question, here, status)

    assert (_find(world, migration).verdict, _find(world, migration).change) == ("undecided", None)


# Statuses of migrations that were stuck.

# Nova gives these only to migrations of other types, or says with them nothing of the guest.
FOREIGN_STATUSES = ("cancelled", "confirmed", "reverted", "error", "failed")


@pytest.mark.parametrize("status", FOREIGN_STATUSES)
@pytest.mark.parametrize("kind", ["evacuation", "live-migration"])
def test_destination_of_a_move_that_was_ended_by_hand_keeps_its_allocation(
    world: World, here: str, there: str, kind: str, status: str
) -> None:
    """The destination died when the guest ran there already.

    The row stayed `pre-migrating` or `running`, and the operator wrote another status and reset the
    server to ACTIVE on its source.
    """
    server = world.server(here, here, there)
    world.migration(server, here, there, status, type=kind)

    finding = _find(world, server)

    assert (finding.verdict, finding.change) == ("undecided", None)


@pytest.mark.parametrize("status", [*FOREIGN_STATUSES, "completed", "done"])
@pytest.mark.parametrize("kind", ["evacuation", "live-migration"])
def test_server_is_not_given_back_to_the_source_of_a_move_that_was_ended_by_hand(
    world: World, here: str, there: str, kind: str, status: str
) -> None:
    """It has the destination alone, as when the source came back during the evacuation."""
    server = world.server(here, there)
    world.migration(server, here, there, status, type=kind)

    assert _find(world, server).change is None


@pytest.mark.parametrize("status", ["error", "failed", "cancelled", "completed", "done"])
@pytest.mark.parametrize("kind", ["migration", "resize"])
def test_source_of_a_halfway_revert_keeps_the_last_disk(
    world: World, here: str, there: str, kind: str, status: str
) -> None:
    """The destination has destroyed the guest (nova/compute/manager.py, revert_resize)."""
    server = world.server(there, there)
    migration = world.migration(server, here, there, status, here, type=kind)
    world.did(server, "resize", NOW)
    world.did(server, "revertResize")

    assert (_find(world, migration).verdict, _find(world, migration).change) == ("undecided", None)
    assert _find(world, migration).reason.id == "revert_was_requested"


@pytest.mark.parametrize("status", ["error", "failed", "cancelled", "completed", "done"])
def test_server_keeps_both_ends_of_a_halfway_revert(
    world: World, here: str, there: str, status: str
) -> None:
    """An operator has given the server an allocation on the source, where its last disk is."""
    server = world.server(there, here, there)
    world.migration(server, here, there, status)
    world.did(server, "resize", NOW)
    world.did(server, "revertResize")

    finding = _find(world, server)

    assert (finding.verdict, finding.change) == ("undecided", None)
    assert finding.reason.id == "may_be_reverted_halfway"
    world.answers("actions", server, 500)
    assert _find(world, server).change is None


def _fail_to_revert(world: World, here: str, there: str) -> tuple[str, str]:
    """Return a server on `there` whose cold migration was reverted halfway, and the migration."""
    server = world.server(there, here, there)
    migration = world.migration(server, here, there, "error", here)
    world.did(server, "migrate", NOW)
    world.did(server, "revertResize")
    return server, migration


@pytest.mark.parametrize(
    ("kind", "status"), [("live-migration", "completed"), ("resize", "confirmed")]
)
def test_later_move_from_the_source_of_a_failed_revert_took_the_disk_along(
    world: World, here: str, there: str, kind: str, status: str
) -> None:
    """The revert came to its end, and only its record did not."""
    server, migration = _fail_to_revert(world, here, there)
    world.migration(server, here, there, status, type=kind)

    assert _find(world, server).kind == "extra_host"
    assert _find(world, server).change is not None
    assert _find(world, migration).kind == "ended_migration"
    assert _find(world, migration).change is not None


@pytest.mark.parametrize(
    ("kind", "status"), [("live-migration", "error"), ("migration", "completed")]
)
def test_later_move_that_took_nothing_along_leaves_the_last_disk(
    world: World, here: str, there: str, kind: str, status: str
) -> None:
    server, _migration = _fail_to_revert(world, here, there)
    world.migration(server, here, there, status, type=kind)

    assert _find(world, server).change is None


def test_failed_resize_without_a_revert_leaves_nothing_on_its_source(
    world: World, here: str, there: str
) -> None:
    server = world.server(there, here, there)
    world.migration(server, here, there, "error")
    world.did(server, "resize", NOW)

    assert _find(world, server).kind == "extra_host"
    assert _find(world, server).change is not None


@pytest.mark.parametrize("status", ["completed", "confirmed", "done"])
def test_server_that_is_not_where_its_row_says_it_went_keeps_everything(
    world: World, here: str, there: str, status: str
) -> None:
    """A move that never took place was written off as a success."""
    server = world.server(here, here, there)
    migration = world.migration(server, here, there, status, here, type="live-migration")

    assert _find(world, server).change is None
    assert _find(world, migration).change is None


def test_server_whose_row_says_that_it_went_back_keeps_everything(
    world: World, here: str, there: str
) -> None:
    """A resize that waits for its confirmation was written off as reverted."""
    server = world.server(there, here, there)
    migration = world.migration(server, here, there, "reverted", here, type="resize")

    assert _find(world, server).change is None
    assert _find(world, migration).change is None


@pytest.mark.parametrize("action", ["migrate", "resize", "live-migration", "evacuate"])
def test_server_whose_migrations_were_purged_keeps_everything(
    world: World, here: str, there: str, action: str
) -> None:
    """DELETE FROM migrations: its actions still show that it was moved."""
    server = world.server(here, here, there)
    world.did(server, action, NOW)

    assert (_find(world, server).verdict, _find(world, server).change) == ("undecided", None)


@pytest.mark.parametrize("action", ["migrate", "resize", "live-migration", "evacuate"])
@pytest.mark.parametrize(
    "before", [(), ("completed",), ("completed", "error"), ("completed", "completed"), ("error",)]
)
def test_server_whose_newest_migration_was_deleted_keeps_everything(
    world: World, here: str, there: str, before: tuple[str, ...], action: str
) -> None:
    """DELETE FROM migrations WHERE status = 'pre-migrating': its guest may run where it went."""
    server = world.server(here, here, there)
    for status in before:
        world.did(server, "live-migration", NOW)
        world.migration(server, there, here, status, type="live-migration")
        world.pass_time()
    world.did(server, action, NOW)

    finding = _find(world, server)

    assert (finding.verdict, finding.change) == ("undecided", None)
    assert finding.reason.id == "move_without_migration" and action in finding.reason


def test_server_that_lost_a_row_between_two_others_keeps_everything(
    world: World, here: str, there: str
) -> None:
    """Its guest runs on the other host since, so that the later move from here failed."""
    server = world.server(here, here, there)
    world.did(server, "live-migration", NOW)
    world.migration(server, there, here, "completed", type="live-migration")
    world.pass_time()
    world.did(server, "evacuate", NOW)
    world.did(server, "live-migration", NOW)
    world.migration(server, here, world.host("third"), "error", type="live-migration")

    assert (_find(world, server).verdict, _find(world, server).change) == ("undecided", None)


@pytest.mark.parametrize("status", ["done", "completed"])
def test_server_evacuated_again_without_a_row_keeps_both_hosts(
    world: World, here: str, there: str, status: str
) -> None:
    server = world.server(here, here, there)
    world.did(server, "evacuate", NOW)
    world.migration(server, there, here, status, type="evacuation")
    world.set_service(there, "up")
    world.pass_time()
    world.did(server, "evacuate", NOW)

    assert (_find(world, server).verdict, _find(world, server).change) == ("undecided", None)


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
    world: World, here: str, there: str, kind: str, status: str
) -> None:
    """Its guest may run where the deleted row took it.

    Nova does not give the later row this status, or the revert gave back both allocations.
    """
    server = world.server(here, here, there)
    world.did(server, "evacuate", NOW)
    world.pass_time()
    world.did(server, ACTIONS[kind], NOW)
    world.migration(server, here, world.host("third"), status, type=kind)
    world.set_service(here, "up")

    assert (_find(world, server).verdict, _find(world, server).change) == ("undecided", None)


def test_row_that_was_made_late_does_not_stand_for_a_deleted_one(
    world: World, here: str, there: str
) -> None:
    """A live migration waited in conductor's queue while the server was evacuated."""
    server, third = world.server(here, here, there), world.host("third")
    world.did(server, "live-migration", NOW)
    world.pass_time()
    world.did(server, "evacuate", NOW)
    world.migration(server, third, here, "done", type="evacuation")
    world.pass_time()
    world.migration(server, here, third, "error", type="live-migration")
    world.pass_time()
    world.did(server, "evacuate", NOW)

    assert (_find(world, server).verdict, _find(world, server).change) == ("undecided", None)


BEFORE_THE_BACKUP = [
    None,
    ("live-migration", "completed"),
    ("migration", "confirmed"),
    ("resize", "confirmed"),
    ("evacuation", "completed"),
]


@pytest.mark.parametrize("before", BEFORE_THE_BACKUP)
@pytest.mark.parametrize("is_newer", [False, True])
def test_server_of_a_database_from_before_its_evacuation_keeps_both_hosts(
    world: World, here: str, there: str, before: tuple[str, str] | None, is_newer: bool
) -> None:
    """The cell was restored from a backup: neither migration nor action says where it is.

    is_newer: whether the backup lacks also the host that runs the guest.
    """
    server = world.server(here, here, there)
    if before:
        kind, status = before
        world.did(server, ACTIONS[kind], NOW)
        world.migration(server, there, here, status, type=kind)
        world.set_service(there, "up")
    world.set_service(here, "down")
    if is_newer:
        world.remove_host(there)

    finding = _find(world, server)

    assert (finding.verdict, finding.change) == ("undecided", None)
    assert finding.reason.id == "own_service_not_up"


def test_other_node_of_the_same_dead_host_is_not_where_it_was_evacuated_to(world: World) -> None:
    first, second = world.host("first", "ironic"), world.host("second", "ironic")
    server = world.server(first, first, second)
    world.set_service(first, "down")

    assert (_find(world, server).kind, _find(world, server).verdict) == ("extra_host", "orphaned")


@pytest.mark.parametrize("before", BEFORE_THE_BACKUP)
@pytest.mark.parametrize(
    ("did", "verdict"),
    [
        (("unshelve",), "orphaned"),
        (("rebuild",), "orphaned"),
        (("rebuild", "unshelve"), "orphaned"),
        (("unshelve", "unshelve"), "undecided"),
        (("unshelve", "rebuild"), "undecided"),
    ],
)
def test_server_keeps_the_host_where_an_earlier_unshelve_may_wait(
    world: World,
    here: str,
    there: str,
    before: tuple[str, str] | None,
    did: tuple[str, ...],
    verdict: str,
) -> None:
    """The broker took the first one, conductor recorded an error, and the host is down."""
    server = world.server(here, here, there)
    if before:
        kind, status = before
        world.did(server, ACTIONS[kind], NOW)
        world.migration(server, there, here, status, type=kind)
        world.pass_time()
    for action in did:
        world.did(server, action, NOW)
    world.set_service(there, "down")

    finding = _find(world, server)
    assert finding.verdict == verdict
    if verdict == "undecided":
        assert finding.reason.id == "unshelve_may_be_queued"


@pytest.mark.parametrize(
    ("newest", "verdict"),
    [("own", "orphaned"), ("other", "undecided"), ("moved since", "orphaned")],
)
@pytest.mark.parametrize("action", ["unshelve", "rebuild"])
def test_server_keeps_both_hosts_where_an_earlier_unshelve_may_have_been_done_late(
    world: World, here: str, there: str, newest: str, verdict: str, action: str
) -> None:
    """The guest of the newest one runs on the other host."""
    server, third = world.server(here, here, there), world.host("third")
    placed_on = {"own": here, "other": there, "moved since": third}[newest]
    world.did(server, "unshelve", NOW)
    world.pass_time()
    world.did(server, action, NOW, host=world.nodes[placed_on].host)
    if newest == "moved since":
        world.pass_time()
        world.did(server, "migrate", NOW)
        world.migration(server, third, here, "confirmed")

    finding = _find(world, server)
    assert finding.verdict == verdict
    if verdict == "undecided":
        assert finding.reason.id == "placement_not_confirmed"


@pytest.mark.parametrize("status", ["completed", "failed"])
@pytest.mark.parametrize("later", ["evacuation", "live-migration"])
def test_server_keeps_the_host_of_an_evacuation_that_only_its_source_called_completed(
    world: World, here: str, there: str, status: str, later: str
) -> None:
    """The destination died when the guest ran, the source came back, and was left again."""
    third = world.host("third")
    server = world.server(here, here, third)
    world.did(server, "evacuate", NOW)
    world.migration(server, there, third, status, type="evacuation")
    world.pass_time()
    world.did(server, ACTIONS[later], NOW)
    world.migration(server, there, here, "completed", type=later)

    assert _find(world, server).verdict == "undecided"


@pytest.mark.parametrize("later", ["evacuation", "live-migration"])
def test_completed_evacuation_from_whose_end_the_server_was_moved_leaves_no_guest_there(
    world: World, here: str, there: str, later: str
) -> None:
    third = world.host("third")
    server = world.server(here, here, third)
    world.did(server, "evacuate", NOW)
    world.migration(server, there, third, "completed", type="evacuation")
    world.pass_time()
    world.did(server, ACTIONS[later], NOW)
    world.migration(server, third, here, "completed", type=later)

    assert _find(world, server).verdict == "orphaned"


@pytest.mark.parametrize("kind", ["evacuation", "live-migration"])
@pytest.mark.parametrize("status", ["confirmed", "error"])
def test_migration_keeps_the_host_where_an_earlier_move_failed(
    world: World, here: str, there: str, kind: str, status: str
) -> None:
    """It took over all that its server had, with what the failed move left on a third host."""
    third = world.host("third")
    server = world.server(here, here)
    world.did(server, ACTIONS[kind], NOW)
    world.migration(server, there, third, "failed", type=kind)
    world.set_service(there, "up")
    world.pass_time()
    world.did(server, "migrate", NOW)
    migration = world.migration(server, there, here, status, there, third)

    assert _find(world, migration).verdict == "undecided"


@pytest.mark.parametrize("before", BEFORE_THE_BACKUP[1:])
def test_unshelves_from_before_the_server_left_the_other_host_do_not_wait_there(
    world: World, here: str, there: str, before: tuple[str, str]
) -> None:
    kind, status = before
    server = world.server(here, here, there)
    world.did(server, "unshelve", NOW)
    world.did(server, "unshelve", NOW)
    world.pass_time()
    world.did(server, ACTIONS[kind], NOW)
    world.migration(server, there, here, status, type=kind)
    world.set_service(there, "down")

    assert _find(world, server).verdict == "orphaned"


def test_old_migrations_that_were_purged_leave_the_orphan_of_a_later_one(
    world: World, here: str, there: str
) -> None:
    """DELETE FROM migrations WHERE created_at < …: the newest one says where the server is."""
    server = world.server(here, here, there)
    for _count in range(3):
        world.did(server, "live-migration", NOW)
        world.pass_time()
    world.did(server, "live-migration", NOW)
    world.migration(server, there, here, "completed", type="live-migration")

    finding = _find(world, server)

    assert (finding.kind, finding.verdict) == ("extra_host", "orphaned")


@pytest.mark.parametrize("placed", ["create", "rebuild", "evacuate", "unshelve"])
def test_server_in_error_that_lost_its_host_keeps_what_its_guest_uses(
    world: World, here: str, placed: str
) -> None:
    """UPDATE instances SET host = NULL, node = NULL, vm_state = 'error': its guest runs on."""
    server = world.server(None, here, status="ERROR", launched_at=NOW)
    world.did(server, placed, NOW)

    finding = _find(world, server)

    assert (finding.verdict, finding.change) == ("undecided", None)
    assert "by hand" in finding.reason


@pytest.mark.parametrize("before", ["unshelve", "shelve"])
def test_rebuild_for_which_no_host_was_found_leaves_the_doubt_about_its_guest(
    world: World, here: str, before: str
) -> None:
    """Nova rebuilds a server in ERROR elsewhere if its host was taken away by hand."""
    server = world.server(None, here, status="ERROR", launched_at=NOW)
    world.did(server, "create", NOW)
    world.did(server, before, NOW)
    if before == "unshelve":
        world.fail_newest_action(server)
    world.did(server, "rebuild", NOW, event="schedule_instances")
    world.fail_newest_action(server)

    finding = _find(world, server)

    assert (finding.verdict, finding.change) == ("undecided", None)
    assert finding.reason.id == "guest_was_launched"
    assert "by hand" in finding.reason


def test_server_in_error_that_never_ran_or_was_shelved_is_without_a_host(
    world: World, here: str
) -> None:
    """The host of a shelved server gave it up, and a failed build had no guest that ran."""
    failed = world.server(None, here, status="ERROR")
    shelved = world.server(None, here, status="ERROR", launched_at=NOW)
    for server in (failed, shelved):
        world.did(server, "create", NOW)
    world.did(shelved, "shelve", NOW)
    unshelved = world.server(None, here, status="ERROR", launched_at=NOW)
    world.did(unshelved, "unshelve", NOW)
    world.fail_newest_action(unshelved)

    for server in (failed, shelved, unshelved):
        assert _find(world, server).kind == "unhosted_server"
        assert _find(world, server).reason.id == "server_without_host"
        assert _find(world, server).change is not None


@pytest.mark.parametrize("lost", ["host", "node"])
def test_server_that_lost_its_host_or_its_node_keeps_everything(
    world: World, here: str, there: str, lost: str
) -> None:
    """UPDATE instances SET host = NULL, or node = NULL."""
    server = world.server(here, here, there)
    world.servers[server] = d.replace(world.servers[server], **{lost: None})

    assert (_find(world, server).verdict, _find(world, server).change) == ("undecided", None)
