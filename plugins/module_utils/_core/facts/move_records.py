# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Moves of a server that no migration shows: what its instance actions say about them. Pure.

A move has a migration. Nova records an instance action for each, and then creates its migration
before it chooses a host (nova/compute/api.py, evacuate; nova/conductor/manager.py, _live_migrate;
and nova/conductor/tasks/migrate.py, _preallocate_migration). An operator can delete a migration
that is stuck, or hide it; the action remains. A cold migration that conductor gives up before that
has no migration either, and nothing tells the two apart.

An unshelve has none, and can wait in the queue of a host after it seems to have failed: conductor
records an error when the message broker took the request and conductor never learned it
(nova/conductor/manager.py, unshelve_instance), or an operator resets the state of the server. Then
another unshelve, or after a reset a rebuild, places the server elsewhere. No host asks whether the
first one is still wanted when it takes it from its queue (nova/compute/manager.py,
_unshelve_instance).
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Sequence

from ..._common.errors import Reason
from ..._common.times import is_earlier, seconds_between
from ..models.nova import (
    ARRIVED_MIGRATION_STATUSES,
    MOVING_ACTIONS,
    REBUILD_ACTION,
    SHELVING_ACTIONS,
    UNSHELVE_ACTION,
    Action,
    Migration,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from .server import ServerView

# An action has the time of nova-api, a migration that of conductor. No server begins its next move
# so soon after the migration of the one before was created.
_CLOCKS_APART = 5


def find_move_without_migration(
    actions: Iterable[Action], migrations: Sequence[Migration]
) -> Action | None:
    """Return the newest move that was requested and of which Nova lists no migration, or None.

    Each migration belongs to the newest action before it that no newer one belongs to. Older moves
    do not matter once a migration has taken the server to its destination, where Nova then knew the
    server to be. A revert gives the server back all allocations that it had before.

    migrations: those of the server, newest first.
    """
    moves = [action for action in actions if action.action in MOVING_ACTIONS]
    moves.sort(key=_get_request_time)
    for migration in migrations:
        if moves and not _was_requested_by(moves[-1], migration.created_at):
            return moves[-1]
        if migration.has_arrived:
            return None
        if moves:
            moves.pop()
    return moves[-1] if moves else None


def _get_request_time(action: Action) -> tuple[bool, str]:
    """Return a key that sorts an action without a time behind all others, as it may be newer."""
    return (action.start_time is None, action.start_time or "")


def _was_requested_by(action: Action, moment: str | None) -> bool:
    """Return whether the action is known to have been requested by that time."""
    seconds = seconds_between(moment, action.start_time)
    return seconds is not None and seconds <= _CLOCKS_APART


def find_placement_after_unshelve(view: ServerView, root: str) -> Action | None:
    """Return the newest action that gave the server a host, if an unshelve is older; None if not.

    Actions from before the server left the tree `root` by a migration do not count: while the
    server was there, its host had emptied its queue.
    """
    placements = _list_placements(view, root)
    if any(action.action == UNSHELVE_ACTION for action in placements[:-1]):
        return placements[-1]
    return None


def _list_placements(view: ServerView, root: str) -> list[Action]:
    """Return what gave the server a host since it left the tree `root`, oldest first."""
    left_at = None
    for move in view.server_migrations:
        if move.has_arrived and view.is_source(root, move):
            left_at = move.created_at
            break
    placements = []
    for action in view.subject.actions.value or ():
        can_place = action.action in (UNSHELVE_ACTION, REBUILD_ACTION)
        if can_place and not is_earlier(action.start_time, left_at):
            placements.append(action)
    placements.sort(key=lambda action: action.start_time or "")
    return placements


def list_repeated_unshelves(view: ServerView, root: str) -> list[Action]:
    """Return the unshelves that the newest placement repeats, newest first.

    No shelve came between them. Each may have left a guest on the host that began it: the last
    write of an unshelve is outside of what Nova cleans up after (nova/compute/manager.py,
    _unshelve_instance).
    """
    placements = _list_placements(view, root)
    if not placements:
        return []
    shelved_at = None
    for action in view.subject.actions.value or ():
        is_shelve = action.action in SHELVING_ACTIONS
        if is_shelve and is_earlier(action.start_time, placements[-1].start_time):
            shelved_at = max(shelved_at or "", action.start_time or "")
    repeated = []
    for action in reversed(placements[:-1]):
        if action.action == UNSHELVE_ACTION and not is_earlier(action.start_time, shelved_at):
            repeated.append(action)
    return repeated


def is_where_placed(view: ServerView, placement: Action) -> bool:
    """Return whether the server is where its newest `placement` or a later move took it."""
    if view.server is None:
        return False
    placed_on: frozenset[str | None] = frozenset()
    for answer in view.subject.last_actions:
        action = answer.value
        if action is not None and action.request_id == placement.request_id:
            placed_on = action.successful_placing_hosts
    if view.server.host in placed_on:
        return True
    # The first move since then began where Nova had the server, which a late unshelve may have
    # changed. Where a later move ended is compared with the host of the server in any case.
    first_move = None
    for move in view.server_migrations:
        has_ended = move.status in ARRIVED_MIGRATION_STATUSES
        if has_ended and is_earlier(placement.start_time, move.created_at):
            first_move = move
    return first_move is not None and first_move.source_compute in placed_on


def explain_possible_guest_of_unshelve(
    view: ServerView, roots: Iterable[str | None]
) -> Reason | None:
    """Return why the guest may be in one of the trees `roots`, not where Nova has it; or None.

    A host that began an unshelve may have made the guest, whether the unshelve ended well or not.
    A host that does an unshelve late becomes the server's host, while the guest runs where a later
    one placed it.
    """
    for root in roots:
        if not root:
            continue
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
    for answer in view.subject.last_actions:
        read = answer.value
        if read is not None and read.request_id == action.request_id:
            # A None hides which host it was.
            return any(host is None or _may_be_at(view, root, host) for host in read.placing_hosts)
    return True


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
    found = []
    for root in roots:
        if root and root != view.own_tree and not view.is_source(root, migration):
            found.append(root)
    return found
