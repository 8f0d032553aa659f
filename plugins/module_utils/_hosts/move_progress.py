# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Nova's answers say about a move that was requested. Pure.

A server is read after its migrations, because an evacuation ends in that order: the server has its
new host before the migration is `done`.
"""

from __future__ import annotations

import dataclasses as d
from collections.abc import Sequence

from .._core.models.nova import MOVING_ACTIONS, SUCCESSFUL_MIGRATION_STATUSES, Action, Migration
from .draining import COLD, EVACUATION, LIVE, MIGRATION_TYPES, MOVE_ACTIONS, DrainServer

# WAITING: Nova is at it. CONFIRMABLE: the resize waits to be confirmed.
# ARRIVED: the server is on another host. NOT_BEGUN: nothing shows that Nova got the request.
# ABORTED: Nova gave up, and the server is where it was. BROKEN: the server needs an operator.
# UNCERTAIN: it is over, and Nova's record does not say at which end the guest is.
# AWAY: the server is gone from the host, and not by this move. FOREIGN: somebody else moves it, or
# does not want it moved.
WAITING, CONFIRMABLE, ARRIVED, NOT_BEGUN = "waiting", "confirmable", "arrived", "not_begun"
ABORTED, BROKEN, AWAY, FOREIGN = "aborted", "broken", "away", "foreign"
UNCERTAIN = "uncertain"

# A migration that waits for its resize to be confirmed.
_FINISHED = "finished"
_REVERTED = "reverted"
_STATUSES_BEFORE_COPY = frozenset({"accepted", "queued", "preparing"})
_ENDED_BY_CHOICE = frozenset({"confirmed", _REVERTED})


@d.dataclass(frozen=True)
class MoveTask:
    """A server to move from `source`; to `target`, or wherever the scheduler lets it go."""

    server: str
    name: str
    source: str
    target: str | None = None


@d.dataclass(frozen=True)
class Attempt(MoveTask):
    """A move that was requested, or that may have been.

    known: the migrations of the server from before the request.
    requested_at: when the journal recorded it, by Nova's clock.
    request_id: that of the request; empty where the answer was lost.
    is_accepted: whether Nova is known to have accepted the request.
    is_own: whether a journal says that this collection began it.
    """

    how: str = LIVE
    known: frozenset[str] = frozenset()
    requested_at: str = ""
    request_id: str = ""
    is_accepted: bool = False
    is_own: bool = True


@d.dataclass(frozen=True)
class Sighting:
    """One look at a server: its migrations, newest first, and then the server.

    at: when, by Nova's clock. server: None if Nova has none.
    """

    at: str
    server: DrainServer | None
    migrations: Sequence[Migration]


@d.dataclass(frozen=True)
class Verdict:
    """How far a move is. reason: what it waits for, or why it ended so."""

    state: str
    reason: str = ""
    to: str | None = None
    migration: Migration | None = None


def judge_progress(attempt: Attempt, sighting: Sighting) -> Verdict:
    """Return how far a move is."""
    if sighting.server is None:
        return Verdict(AWAY, "it was deleted meanwhile")
    # Older migrations say nothing about this move.
    fresh = (entry for entry in sighting.migrations if entry.uuid not in attempt.known)
    migration = next(fresh, None)
    return d.replace(_judge(attempt, sighting.server, migration), migration=migration)


def _judge(attempt: Attempt, seen: DrainServer, migration: Migration | None) -> Verdict:
    server = seen.server
    if not server.task_known or not server.host_known:
        return Verdict(WAITING, "Nova to show its task and its host")
    if server.task_state is not None:
        return Verdict(WAITING, f"its task {server.task_state} to end")
    if server.status == "UNKNOWN":
        return Verdict(WAITING, "its cell to answer")
    if migration is not None and migration.type != MIGRATION_TYPES[attempt.how]:
        return _judge_other_migration(attempt, seen, migration)
    if server.status == "VERIFY_RESIZE":
        return _judge_resize(attempt, migration)
    if migration is not None and not migration.ended:
        return Verdict(WAITING, f"its migration, which is {migration.status}, to end")
    if server.status == "ERROR":
        return Verdict(BROKEN, f"it is in ERROR: {seen.fault or ''}".removesuffix(": "))
    return _judge_place(attempt, seen, migration)


def _judge_other_migration(attempt: Attempt, server: DrainServer, migration: Migration) -> Verdict:
    """Return how it stands with a server that somebody else has moved or resized meanwhile."""
    what = f"migration {migration.uuid} ({migration.type}) of somebody else"
    if not migration.ended or server.server.status == "VERIFY_RESIZE":
        return Verdict(FOREIGN, f"{what} is {migration.status}")
    if server.server.host != attempt.source:
        return Verdict(AWAY, f"{what} moved it to {server.server.host}", to=server.server.host)
    return Verdict(ABORTED, f"{what} came in between")


def _judge_resize(attempt: Attempt, migration: Migration | None) -> Verdict:
    if migration is None or attempt.how != COLD:
        return Verdict(FOREIGN, "it waits for a resize of somebody else to be confirmed")
    if migration.status == _FINISHED:
        return Verdict(CONFIRMABLE, "it waits to be confirmed")
    # Nova ends the migration before it changes the status of the server.
    if migration.status in _ENDED_BY_CHOICE:
        return Verdict(WAITING, f"its status to change ({migration.status})")
    if migration.ended:
        return Verdict(
            BROKEN, f"it is VERIFY_RESIZE, but Nova calls its migration {migration.status}"
        )
    return Verdict(WAITING, f"its migration, which is {migration.status}, to end")


def _judge_place(attempt: Attempt, server: DrainServer, migration: Migration | None) -> Verdict:
    """Return how a move without a task and without an open migration has ended."""
    host = server.server.host
    if host is None:
        return Verdict(AWAY, f"it has no host any more ({server.server.status})")
    if host != attempt.source:
        if migration is None:
            return Verdict(AWAY, f"it is on {host}, without a migration of this run", to=host)
        reason = ""
        if migration.status not in SUCCESSFUL_MIGRATION_STATUSES:
            reason = f"Nova calls its migration {migration.status}"
        return Verdict(ARRIVED, reason, to=host)
    if migration is None:
        return Verdict(NOT_BEGUN, "Nova has begun no migration of it")
    if is_uncertain(attempt, migration):
        return Verdict(UNCERTAIN, "Nova does not know where its guest is")
    if migration.status in SUCCESSFUL_MIGRATION_STATUSES:
        return Verdict(
            ABORTED, f"its migration is {migration.status}, but it is still on {attempt.source}"
        )
    # Whoever reverts a move does not want it to be repeated at once.
    if migration.status == _REVERTED:
        return Verdict(FOREIGN, "its migration was reverted by somebody else")
    return Verdict(ABORTED, f"its migration is {migration.status}")


def is_uncertain(attempt: Attempt, migration: Migration) -> bool:
    """Return whether the guest of a migration that is over may be at either end.

    An evacuation is ended by its source when that starts, whatever the destination has done.
    """
    if not may_have_left(migration):
        return False
    return attempt.how == EVACUATION or (attempt.how == LIVE and migration.is_inconclusive)


def may_have_left(migration: Migration) -> bool:
    """Return whether the guest may be on the destination of a migration.

    Conductor saves the node of the destination before it hands the migration over, and the source
    saves a later status before it begins to copy (nova/conductor/tasks/live_migrate.py, _execute;
    nova/compute/manager.py, _do_live_migration).
    """
    return (
        migration.dest_node is not None
        and migration.dest_compute != migration.source_compute
        and migration.status not in _STATUSES_BEFORE_COPY
    )


def is_own_move(attempt: Attempt, migration: Migration, actions: Sequence[Action]) -> bool:
    """Return whether a migration is of the request of this attempt.

    Only what the own request began is confirmed, or counted as moved. Nova records the id of the
    request with the action, and makes the migration in the course of the newest action.

    actions: those of the server, newest first.
    """
    if migration.uuid in attempt.known or migration.source_compute != attempt.source:
        return False
    if migration.type != MIGRATION_TYPES[attempt.how]:
        return False
    moving = [action for action in actions if action.action in MOVING_ACTIONS]
    # If somebody has begun another move since, the newest migration is theirs. Without the id of
    # the request, no action is ours: somebody may have asked for the same.
    return (
        bool(moving and attempt.request_id)
        and moving[0].action == MOVE_ACTIONS[attempt.how]
        and moving[0].request_id == attempt.request_id
    )


def explain_doubt(attempt: Attempt) -> str:
    """Return why it is not certain that this collection began a migration."""
    if not attempt.is_own:
        return "somebody else began it"
    if attempt.request_id:
        return f"request {attempt.request_id} of this run is not the newest that moves the server"
    if attempt.is_accepted:
        return "Nova's response to the request of this run has no x-openstack-request-id"
    return "the response to the request of this run was lost"
