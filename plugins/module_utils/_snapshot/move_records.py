# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""Whether Nova still lists a migration for each move of a server that was requested. Pure.

Nova records an instance action for each move, and then creates its migration before it chooses a
host (nova/compute/api.py, evacuate; nova/conductor/manager.py, _live_migrate; and
nova/conductor/tasks/migrate.py, _preallocate_migration). An operator can delete a migration that is
stuck, or hide it; the action remains.
"""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.times import seconds_between
from ansible_collections.osops.placement.plugins.module_utils._models.nova import MOVING_ACTIONS

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Sequence

    from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
        Action,
        Migration,
    )

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
