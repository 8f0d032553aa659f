# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What proves that a guest is at the source of a resize or cold migration that failed. Pure.

That Nova says so is not enough. `resize_instance` saves the destination as the server's host only after the driver has copied the
disks (nova/compute/manager.py, _resize_instance), and what fails between the two leaves a disk on the destination and the source in
the API. What does prove it is what hosts have recorded in the server's instance actions: how far the move came, or that the
source has started the guest since.
"""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.times import is_earlier
from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
    COLD_MIGRATION_TYPES,
    COLD_MOVING_ACTIONS,
    FAILED_MIGRATION_STATUSES,
    REVERT_ACTION,
    STARTING_ACTIONS,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Iterator

    from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
        Action,
        ActionEvent,
        Migration,
    )
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.consumer import (
        ConsumerView,
    )

# The event around the part of conductor in which it creates the migration, so that one process wrote both times.
_SCHEDULED = "conductor_migrate_server"
# What happens before the source is asked for anything; all of it can fail and has touched no guest.
_BEFORE_THE_SOURCE = frozenset({_SCHEDULED, "cold_migrate", "compute_prep_resize"})
_AT_THE_SOURCE = "compute_resize_instance"
_DESTROYED_AT_THE_DESTINATION = "compute_revert_resize"

# Beyond so many that concern a move nothing more is asked, and it stays unproven.
_MAX_ACTIONS = 20


def list_relevant_request_ids(actions: Iterable[Action], since: str | None) -> list[str]:
    """Return the requests of those `actions` (newest first) that can tell where the guest is after a migration that began at `since`.

    The last of them is the newest request to move the server that is surely older than the migration, so that the one that began it is
    among them, although two machines wrote the two times.
    """
    found: list[str] = []
    for action in actions:
        if action.action not in COLD_MOVING_ACTIONS | STARTING_ACTIONS.keys() | {REVERT_ACTION}:
            continue
        found.append(action.request_id)
        if len(found) == _MAX_ACTIONS or (
            action.action in COLD_MOVING_ACTIONS and not _is_later(action.start_time, since)
        ):
            break
    return found


def find_source_doubt(view: ConsumerView, migration: Migration) -> str | None:
    """Say why the guest of a server may be elsewhere than at the source of a failed cold `migration`; nothing where it is proven.

    Every move that was tried since is to be proven likewise.
    """
    actions = [answer.value for answer in view.subject.last_actions]
    if view.subject.actions.value is None or None in actions:
        return "what was done to it since could not be read"
    known = [action for action in actions if action is not None]
    for move in _list_moves_since(view, migration):
        if move.type not in COLD_MIGRATION_TYPES or move.status not in FAILED_MIGRATION_STATUSES | {
            "reverted"
        }:
            return f"{move.type} {move.uuid}, which came after that, is {move.status}"
        if not _has_stayed(view, move, known):
            return (
                f"nothing proves that {move.type} {move.uuid} to {move.dest_compute} left no guest there: start the server, or reboot it hard, "
                f"on {view.node_name}, and it is proven"
            )
    return None


def _list_moves_since(view: ConsumerView, migration: Migration) -> Iterator[Migration]:
    """Yield `migration` and all of the server that are newer."""
    for move in view.server_migrations:
        yield move
        if move.uuid == migration.uuid:
            return


def _has_stayed(view: ConsumerView, move: Migration, actions: list[Action]) -> bool:
    """Tell whether the guest is proven to be at the source of `move`, or back there."""
    # Nova calls a move reverted when the guest at the destination is destroyed (nova/compute/resource_tracker.py, drop_move_claim_at_dest).
    if move.status == "reverted" or _was_destroyed_at_destination(move, actions):
        return True
    began = [
        action
        for action in actions
        if action.action in COLD_MOVING_ACTIONS and _has_begun(action, move)
    ]
    if began and all(_has_never_left(action, move) for action in began):
        return True
    return _was_started_since(view, move, actions[: _find_move_index(actions, began)])


def _was_destroyed_at_destination(move: Migration, actions: list[Action]) -> bool:
    return any(
        event.event == _DESTROYED_AT_THE_DESTINATION
        and event.result == "Success"
        and event.host == move.dest_compute
        and _is_later(event.start_time, move.created_at)
        for action in actions
        if action.action == REVERT_ACTION
        for event in action.events
    )


def _has_begun(action: Action, move: Migration) -> bool:
    """Tell whether conductor created `move` on behalf of `action`."""
    rows = [event for event in action.events if event.event == _SCHEDULED]
    begin = min((_normalize_time(row.start_time) for row in rows if row.start_time), default="")
    end = max((_normalize_time(row.finish_time) for row in rows if row.finish_time), default="")
    return (
        bool(begin and end and move.created_at) and begin <= _normalize_time(move.created_at) <= end
    )


def _has_never_left(action: Action, move: Migration) -> bool:
    """Tell whether a move was given up before the source was asked for the guest, or by the source's driver while it copied the disks."""
    at_the_source = [event for event in action.events if event.event == _AT_THE_SOURCE]
    others = {event.event for event in action.events} - {_AT_THE_SOURCE}
    return (
        action.is_finished
        and others <= _BEFORE_THE_SOURCE
        and all(_has_failed_in_copy(event, move) for event in at_the_source)
    )


def _has_failed_in_copy(event: ActionEvent, move: Migration) -> bool:
    return event.result == "Error" and event.failed_in_copy and event.host == move.source_compute


def _find_move_index(actions: list[Action], began: list[Action]) -> int:
    """Return the place in `actions` of the request that began a move, or of the newest that may be it."""
    places = (
        place
        for place, action in enumerate(actions)
        if (action in began if began else action.action in COLD_MOVING_ACTIONS)
    )
    return next(places, 0)


def _was_started_since(view: ConsumerView, move: Migration, newer: list[Action]) -> bool:
    """Tell whether the host where the server is said to be has started its guest after the end of `move`."""
    ended_at = move.updated_at or move.created_at
    return any(
        event.event == STARTING_ACTIONS.get(action.action)
        and event.result == "Success"
        and view.server is not None
        and event.host == view.server.host
        and _is_later(event.start_time, ended_at)
        for action in newer
        for event in action.events
    )


def _is_later(one: str | None, other: str | None) -> bool:
    """Tell whether a time is later than another; where one of them is not known, it is not."""
    return is_earlier(other, one)


def _normalize_time(time: str | None) -> str:
    """Return a time of Nova's in a form in which it can be compared: some answers end it with a Z."""
    return (time or "").removesuffix("Z")
