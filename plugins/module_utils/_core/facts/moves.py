# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What instance actions prove about moves that Nova's records of migrations do not show. Pure.

An unshelve has no migration, and can wait in the queue of a host after it seems to have failed:
conductor records an error when the message broker took the request and conductor never learned it
(nova/conductor/manager.py, unshelve_instance), or an operator resets the state of the server. Then
another unshelve, or after a reset a rebuild, places the server elsewhere. No host asks whether the
first one is still wanted when it takes it from its queue (nova/compute/manager.py,
_unshelve_instance).

That a guest is at the source of a resize or cold migration that failed is not proven by what Nova
says. `resize_instance` saves the destination as the server's host only after the driver has copied
the disks (nova/compute/manager.py, _resize_instance), and what fails between the two leaves a disk
on the destination and the source in the API. What does prove it is what hosts have recorded in the
server's instance actions: how far the move came, or that the source has started the guest since.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence

from ..._common.errors import Reason
from ..._common.times import is_earlier
from ..models.nova import (
    ARRIVED_MIGRATION_STATUSES,
    COLD_MIGRATION_TYPES,
    COLD_MOVING_ACTIONS,
    CREATE_ACTION,
    FAILED_MIGRATION_STATUSES,
    PLACING_ACTIONS,
    REBUILD_ACTION,
    RESET_ACTION,
    REVERT_ACTION,
    SHELVING_ACTIONS,
    STARTING_ACTIONS,
    UNSHELVE_ACTION,
    Action,
    ActionEvent,
    Migration,
)
from .consumer import ConsumerView
from .server import ACTIONS_UNREAD, ServerView, has_begun
from .services import COMPUTE


def explain_possible_move_without_migration(view: ConsumerView) -> Reason | None:
    """Return why the guest may be on another host, or get there, without a migration; or None.

    Nova has none of an evacuation if its database was restored from before it, and makes none for
    an unshelve.
    """
    own_host = view.server.host if view.server else None
    other_hosts = {_get_host(view, root) for root in view.other_trees}
    # An evacuation is always to another host, not to another node of the same one.
    if other_hosts != {own_host} and view.index.list_compute_states(own_host) != {"up"}:
        return Reason(
            "own_service_not_up",
            f"nova-compute on {own_host} is not up: if Nova's database was restored from before "
            "an evacuation, its guest may run on another host.",
        )
    doubts = (_explain_possible_unshelve(view, root) for root in view.other_trees)
    return next(filter(None, doubts), None)


def _get_host(view: ConsumerView, root: str) -> str | None:
    """Return the host of the compute node behind the tree `root`, or None if Nova lists none."""
    return view.index.nodes[root].host if root in view.index.nodes else None


def _explain_possible_unshelve(view: ConsumerView, root: str) -> Reason | None:
    """Return how an unshelve may still place, or have placed, the server on a host twice; or None.

    root: another tree on which it has an allocation. A host that is up has emptied its queue.
    """
    host = _get_host(view, root)
    if host is None or find_placement_after_unshelve(view, root) is None:
        return None
    if view.index.list_compute_states(host) != {"up"}:
        return Reason(
            "unshelve_may_be_queued",
            "it was placed again after an unshelve: that one may still wait for nova-compute "
            f"on {host}, which is not up.",
        )
    remaining_guest = explain_possible_guest_of_unshelve(view, [root])
    return remaining_guest.reword(f"{remaining_guest}.") if remaining_guest else None


def find_placement_after_unshelve(view: ServerView, root: str) -> Action | None:
    """Return the newest action that gave the server a host, if an unshelve is older; None if not.

    Actions from before the server left the tree `root` by a migration do not count: while the
    server was there, its host had emptied its queue.
    """
    placements = _list_placements(view, root)
    is_after = any(action.action == UNSHELVE_ACTION for action in placements[:-1])
    return placements[-1] if is_after else None


def _list_placements(view: ServerView, root: str) -> list[Action]:
    """Return what gave the server a host since it left the tree `root`, oldest first."""
    arrived = (move for move in view.server_migrations if move.has_arrived)
    left_at = next((move.created_at for move in arrived if view.is_source(root, move)), None)
    placements = [
        action
        for action in view.subject.actions.value or ()
        if action.action in (UNSHELVE_ACTION, REBUILD_ACTION)
        and not is_earlier(action.start_time, left_at)
    ]
    return sorted(placements, key=lambda action: action.start_time or "")


def list_repeated_unshelves(view: ServerView, root: str) -> list[Action]:
    """Return the unshelves that the newest placement repeats, newest first.

    No shelve came between them. Each may have left a guest on the host that began it: the last
    write of an unshelve is outside of what Nova cleans up after (nova/compute/manager.py,
    _unshelve_instance).
    """
    placements = _list_placements(view, root)
    if not placements:
        return []
    shelves = [one for one in view.subject.actions.value or () if one.action in SHELVING_ACTIONS]
    times = [one.start_time or "" for one in shelves]
    shelved_at = max((at for at in times if is_earlier(at, placements[-1].start_time)), default="")
    unshelves = [one for one in reversed(placements[:-1]) if one.action == UNSHELVE_ACTION]
    return [one for one in unshelves if not is_earlier(one.start_time, shelved_at)]


def is_where_placed(view: ServerView, placement: Action) -> bool:
    """Return whether the server is where its newest `placement` or a later move took it."""
    if view.server is None:
        return False
    read = _find_read_action(view, placement)
    placed_on: frozenset[str | None] = read.successful_placing_hosts if read else frozenset()
    if view.server.host in placed_on:
        return True
    # The first move since then began where Nova had the server, which a late unshelve may have
    # changed. Where a later move ended is compared with the host of the server in any case.
    sources = [
        move.source_compute
        for move in view.server_migrations
        if move.status in ARRIVED_MIGRATION_STATUSES
        and is_earlier(placement.start_time, move.created_at)
    ]
    return bool(sources) and sources[-1] in placed_on


def _find_read_action(view: ServerView, action: Action) -> Action | None:
    """Return an action with its events, None where these were not read."""
    details = filter(None, (answer.value for answer in view.subject.last_actions))
    return next((one for one in details if one.request_id == action.request_id), None)


def explain_possible_guest_of_unshelve(
    view: ServerView, roots: Iterable[str | None]
) -> Reason | None:
    """Return why the guest may be in one of the trees `roots`, not where Nova has it; or None.

    A host that began an unshelve may have made the guest, whether the unshelve ended well or not.
    A host that does an unshelve late becomes the server's host, while the guest runs where a later
    one placed it.
    """
    for root in filter(None, roots):
        placement = find_placement_after_unshelve(view, root)
        if placement is None:
            continue
        for unshelve in list_repeated_unshelves(view, root):
            if _may_have_begun(view, unshelve, root):
                return Reason(
                    "unshelve_may_have_begun",
                    f"{view.index.get_host_name(root)} may also have begun an unshelve of it "
                    f"({unshelve.request_id}), and its guest may run there",
                )
        if not is_where_placed(view, placement):
            return Reason(
                "placement_not_confirmed",
                f"its newest action {placement.action} is not known to have placed it on "
                f"{view.node_name}: an earlier unshelve may have waited and done that, and its "
                "guest may run on another host",
            )
    return None


def _may_have_begun(view: ServerView, action: Action, root: str) -> bool:
    """Return whether a host may have begun the action, by those of its events that were read."""
    if root not in view.index.nodes:
        return False
    read = _find_read_action(view, action)
    if read is None:
        return True
    # A None hides which host it was.
    return any(host is None or _may_be_at(view, root, host) for host in read.placing_hosts)


def _may_be_at(view: ServerView, root: str, host: str) -> bool:
    # The name of the server's own host needs no other explanation.
    if view.server is not None and view.server.host == host:
        return view.index.may_be_at(root, host, None)
    return view.may_be_at(root, host, None)


def list_taken_over_roots(
    view: ServerView, migration: Migration, roots: Iterable[str | None]
) -> list[str]:
    """Return which `roots` of a migration's allocation it did not leave itself.

    A cold migration takes over all that its server has, also on other hosts than its source.
    """
    others = [root for root in roots if root and root != view.own_tree]
    return [root for root in others if not view.is_source(root, migration)]


# The event around the part of conductor in which it creates the migration, so that one process
# wrote both times.
_SCHEDULED = "conductor_migrate_server"
# What happens before the source is asked for anything; all of it can fail and has touched no guest.
_BEFORE_THE_SOURCE = frozenset({_SCHEDULED, "cold_migrate", "compute_prep_resize"})
_AT_THE_SOURCE = "compute_resize_instance"
# Across cells, other events say the same (nova/conductor/tasks/cross_cell_migrate.py).
_DESTROYED_AT_THE_DESTINATION = (
    "compute_revert_resize",
    "compute_revert_snapshot_based_resize_at_dest",
)
_ACROSS_CELLS = "snapshot_based_resize"

# What a move can end with that this module can prove anything about.
_PROVABLE_STATUSES = FAILED_MIGRATION_STATUSES | {"reverted"}

# Beyond so many that concern a move nothing more is asked, and it stays unproven.
_MAX_ACTIONS = 20


def list_relevant_request_ids(actions: Iterable[Action], since: str | None) -> list[str]:
    """Return the request ids of the actions that say where the guest is after a migration.

    actions: those of the server, newest first. since: when the migration began.

    The last id is that of the newest request to move the server that is surely older than the
    migration. So the request that began it is among them, although two machines wrote the two
    times.
    """
    wanted = COLD_MOVING_ACTIONS | STARTING_ACTIONS.keys() | {REVERT_ACTION}
    request_ids: list[str] = []
    relevant = (action for action in actions if action.action in wanted)
    for action in itertools.islice(relevant, _MAX_ACTIONS):
        request_ids.append(action.request_id)
        if action.action in COLD_MOVING_ACTIONS and not is_earlier(since, action.start_time):
            break
    return request_ids


def find_source_doubt(view: ConsumerView, migration: Migration) -> Reason | None:
    """Return why the guest of a server may not be at the source of a failed cold `migration`.

    The result is None where it is proven to be there. Every move that was tried since has to be
    proven likewise.
    """
    actions = [answer.value for answer in view.subject.last_actions if answer.value is not None]
    is_all = len(actions) == len(view.subject.last_actions)
    if view.subject.actions.value is None or not is_all:
        return ACTIONS_UNREAD.reword("the actions on it since then could not be read")
    for move in _list_moves_since(view, migration):
        if move.uuid in view.refused_live_migrations:
            continue
        if move.type not in COLD_MIGRATION_TYPES or move.status not in _PROVABLE_STATUSES:
            return Reason(
                "later_move_not_provable",
                f"{move.type} {move.uuid}, which began later, is {move.status}",
            )
        if not _has_stayed(view, move, actions):
            if _crosses_cells(actions):
                return Reason(
                    "moved_across_cells",
                    f"{move.type} {move.uuid} went to another cell, and its guest may run on "
                    f"{move.dest_compute}: look for it there (virsh list --all)",
                )
            return Reason(
                "guest_not_proven_at_source",
                f"nothing proves that {move.type} {move.uuid} left no guest on "
                f"{move.dest_compute}: start or hard reboot the server on {view.node_name} "
                f"to prove where it is; if its disks are in {view.consumer}_resize there, give "
                "that directory its old name first",
            )
    return None


def _list_moves_since(view: ConsumerView, migration: Migration) -> Iterator[Migration]:
    """Yield `migration` and all of the server that are newer."""
    for move in view.server_migrations:
        yield move
        if move.uuid == migration.uuid:
            return


def _has_stayed(view: ConsumerView, move: Migration, actions: list[Action]) -> bool:
    """Return whether the guest is proven to be at the source of `move`, or back there."""
    # Nova calls a move reverted when the guest at the destination is destroyed
    # (nova/compute/resource_tracker.py, drop_move_claim_at_dest).
    if move.status == "reverted" or _was_destroyed_at_destination(move, actions):
        return True
    requests = [action for action in actions if action.action in COLD_MOVING_ACTIONS]
    origins = [action for action in requests if has_begun(action, move, _SCHEDULED)]
    # Without a request that surely began the move, nothing says how far it came.
    if origins and all(_has_never_left(action, move) for action in origins):
        return True
    # Across cells, Nova gives the server back to the source before the destination has destroyed
    # the guest (RevertResizeTask), so that a start at the source proves nothing.
    if _crosses_cells(actions):
        return False
    # Where no request surely began the move, the newest one may have. Without any request, no
    # action is known to be newer than the move.
    newest = next(iter(origins or requests), None)
    newer_actions = actions[: actions.index(newest)] if newest else []
    return _was_started_since(view, move, newer_actions)


def _crosses_cells(actions: list[Action]) -> bool:
    return any(_ACROSS_CELLS in event.event for action in actions for event in action.events)


def _was_destroyed_at_destination(move: Migration, actions: list[Action]) -> bool:
    reverts = [action for action in actions if action.action == REVERT_ACTION]
    return any(_is_destruction(event, move) for action in reverts for event in action.events)


def _is_destruction(event: ActionEvent, move: Migration) -> bool:
    """Return whether the destination of `move` recorded that it destroyed the guest."""
    return (
        event.event in _DESTROYED_AT_THE_DESTINATION
        and event.result == "Success"
        and event.host == move.dest_compute
        and is_earlier(move.created_at, event.start_time)
    )


def _has_never_left(action: Action, move: Migration) -> bool:
    """Return whether a move was given up while the source still had the guest.

    It ended before the source was asked for the guest, or the source's driver gave it up while it
    copied the disks.
    """
    # An action that still runs may yet move the guest.
    return action.is_finished and all(
        event.event in _BEFORE_THE_SOURCE
        or (event.event == _AT_THE_SOURCE and _has_failed_in_copy(event, move))
        for event in action.events
    )


def _has_failed_in_copy(event: ActionEvent, move: Migration) -> bool:
    return event.result == "Error" and event.failed_in_copy and event.host == move.source_compute


def _was_started_since(view: ConsumerView, move: Migration, newer: list[Action]) -> bool:
    """Return whether the host of the server has started its guest after the end of `move`."""
    return view.server is not None and any(
        event.event == STARTING_ACTIONS.get(action.action)
        # A start that failed does not prove that the guest is there.
        and event.result == "Success"
        and event.host == view.server.host
        and is_earlier(move.changed_at, event.start_time)
        for action in newer
        for event in action.events
    )


# Whether an action may still give a host to a server that has none.
_LAST_HOST_UNKNOWN = Reason(
    "last_host_unknown", "the action that gave it its last host is not known"
)


def explain_possible_placement(view: ConsumerView) -> Reason | None:
    """Return which action may still give a host to a server without one; None if none can."""
    if _was_refused(view):
        return None
    actions: list[Action] = []
    for answer in view.subject.last_actions:
        action = answer.value
        if action is None or not (action.is_finished or _is_reset_to_error(action, view)):
            return Reason("last_actions_unfinished", "its last actions may not have finished")
        actions.append(action)
    allocated_hosts = set(view.index.list_hosts_of(view.allocation.resources))
    shelving = next((action for action in actions if action.shelving_hosts), None)
    if shelving is None:
        doubt = _explain_possible_unfinished_placement(actions, allocated_hosts)
        newest_actions = actions
    else:
        position = actions.index(shelving)
        placed = bool(_list_placing_actions(actions[position:]))
        only_on_shelving_host = allocated_hosts <= shelving.shelving_hosts
        doubt = _explain_possible_queued_action(view, placed, only_on_shelving_host)
        newest_actions = actions[:position]
    return (
        doubt
        or _explain_lost_guest(view, newest_actions)
        or _explain_possible_handover(view, newest_actions, allocated_hosts)
    )


def _was_refused(view: ConsumerView) -> bool:
    """Return whether conductor gave up the request for a server before it was handed to any host.

    Conductor creates the servers of a request, checks the quota again, and only then records the
    action `create` of each and hands it to its host. When it gives up it sets all of them to ERROR
    with the fault, and leaves their allocations (LP 1806064; nova/conductor/manager.py,
    schedule_and_build_instances and _cleanup_build_artifacts). A server without the action was
    never handed over, whatever became of the others of the same request. nova-compute sets a server
    to ERROR whose build was interrupted without a fault, and a reset is an action.
    """
    server, actions = view.server, view.subject.actions.value
    if server is None or server.status != "ERROR" or server.launched_at:
        return False
    return bool(server.fault) and actions == () and not view.server_migrations


def _is_reset_to_error(action: Action, view: ConsumerView) -> bool:
    """Return whether nova-api alone did the action, without events (_reset_state).

    A reset leaves the server in ERROR or ACTIVE. It does not end the actions before it.
    """
    in_error = view.server is not None and view.server.status == "ERROR"
    return in_error and action.action == RESET_ACTION


def _list_placing_actions(actions: Sequence[Action]) -> list[Action]:
    """Return those of the actions that can give a host to a server."""
    return [action for action in actions if action.action in PLACING_ACTIONS]


def _explain_possible_unfinished_placement(
    actions: Sequence[Action], allocated_hosts: Collection[str | None]
) -> Reason | None:
    """Return which action may still give a host to a server that was not shelved, or None.

    actions: all finished, the newest first.
    """
    placing = _list_placing_actions(actions)
    if not placing:
        return _LAST_HOST_UNKNOWN
    # The reading ends at the newest one that a host began. Nothing came before a `create`.
    oldest = placing[-1]
    if not oldest.placing_hosts and oldest.action != CREATE_ACTION:
        return _LAST_HOST_UNKNOWN
    # Conductor tries a build on a second host when the first has ended its part. When that host
    # starts, Nova sets the server to ERROR, and then the host takes the build from its queue
    # (nova/compute/manager.py, _error_out_instances_whose_build_was_interrupted).
    if oldest.placing_hosts and not oldest.placing_hosts.issuperset(allocated_hosts):
        return Reason(
            "build_may_be_in_progress",
            f"a host on which it has an allocation may still process the action {oldest.action}",
        )
    return None


def _explain_possible_handover(
    view: ConsumerView, newest_actions: Sequence[Action], allocated_hosts: Collection[str | None]
) -> Reason | None:
    """Return which host may have an action in its queue that failed before a host began it.

    Conductor records the failure also when the message broker took the request and conductor never
    learned it. A host that is up has processed its queue.

    newest_actions: since a finished shelve, if there was one.
    """
    placing = _list_placing_actions(newest_actions)
    if not placing or placing[0].placing_hosts:
        return None
    silent = [
        str(host) for host in allocated_hosts if view.index.list_compute_states(host) != {"up"}
    ]
    if not silent:
        return None
    return Reason(
        "action_may_be_queued",
        f"{COMPUTE} on {', '.join(sorted(silent))} is not up and may have the action "
        f"{placing[0].action} in its queue",
    )


def _explain_lost_guest(view: ConsumerView, newest_actions: Sequence[Action]) -> Reason | None:
    """Return why the guest of a server in ERROR may be where Nova no longer has it, or None.

    Nova takes the host from a server whose guest runs only when it shelves the server. A build that
    failed never had a guest that ran (nova/compute/manager.py, _update_instance_after_spawn), and
    an unshelve that failed has destroyed it (_unshelve_instance).

    newest_actions: since a finished shelve, if there was one.
    """
    server = view.server
    if server is None or server.status != "ERROR" or not server.launched_at:
        return None
    for placing in _list_placing_actions(newest_actions):
        failed_to_unshelve = placing.action == UNSHELVE_ACTION and not placing.unshelving_hosts
        if not failed_to_unshelve:
            return Reason(
                "guest_was_launched",
                f"its guest was launched at {server.launched_at}, and nothing shows that it was "
                "shelved: its host may have been removed from the database by hand",
            )
    return None


def _explain_possible_queued_action(
    view: ConsumerView, placed: bool, only_on_shelving_host: bool
) -> Reason | None:
    """Return why an action from before a finished shelve may still give the server a host.

    Only a host that has the server shelves it, and the API takes no other action while one has a
    task (nova/compute/api.py, check_instance_state): so everything requested before has finished.
    The exceptions are a reset of the state, and an error of conductor after it has handed over
    (nova/conductor/manager.py, unshelve_instance). Both hide the task of an action that waits in
    the queue of another host. The server has an allocation on that other host. So if the server has
    allocations only on the host that shelved it, no action waits: a host takes its messages in
    their order.

    placed: whether the newest action that could give it a host was listed, and has finished.
    """
    if only_on_shelving_host:
        return None
    if not placed:
        return _LAST_HOST_UNKNOWN
    actions = view.subject.actions.value
    if actions is None or any(action.action == RESET_ACTION for action in actions):
        return Reason(
            "state_may_have_been_reset",
            "its state may have been reset, and an action from before that may still wait for a "
            "host on which it has an allocation",
        )
    return None
