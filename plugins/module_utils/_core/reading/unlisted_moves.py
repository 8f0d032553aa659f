# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What shows whether Nova lists the migration of every server that is being moved."""

from __future__ import annotations

import dataclasses as d
import itertools
import threading
from collections.abc import Container, Iterable, Sequence

from ..._common.parallel import map_parallel
from ..._common.times import is_earlier, seconds_between
from ..clients.nova import NovaReader
from ..facts.listings_index import ListingsIndex
from ..models.nova import MOVING_ACTIONS, MOVING_STATUSES, Action, Migration
from ..models.snapshot import NOT_ASKED, Answer
from .lookups import WORKERS_ASKED

# The migrations of so many servers are looked up one by one.
_MAX_SERVERS = 20


class UnlistedMovesReader:
    """Reads once which servers are being moved although Nova lists no such migration."""

    def __init__(self, nova: NovaReader) -> None:
        self._nova = nova
        self._lock = threading.Lock()
        self._answer: Answer[tuple[str, ...]] = NOT_ASKED

    @property
    def answer(self) -> Answer[tuple[str, ...]]:
        """The uuids of these servers, with the last listing of servers as the request."""
        return self._answer

    def read(self, index: ListingsIndex, consumers: Container[str]) -> None:
        """Compare the servers that are being moved with the migrations that Nova lists.

        consumers: all candidates of the reading.
        """
        with self._lock:
            if self._answer == NOT_ASKED:
                self._answer = self._read(index, consumers)

    def _read(self, index: ListingsIndex, consumers: Container[str]) -> Answer[tuple[str, ...]]:
        answer: Answer[tuple[str, ...]] = NOT_ASKED
        moving: set[str] = set()
        # An API worker that does not know the cell of a server leaves it out.
        for status, attempt in itertools.product(MOVING_STATUSES, range(WORKERS_ASKED)):
            answer = self._nova.list_server_uuids_in_status(status, attempt)
            if answer.value is None:
                return answer
            moving.update(answer.value)
        listed: list[str] = []
        unlisted: list[str] = []
        for server in sorted(moving):
            if _has_move(index.get_listed_migrations(server).value or ()):
                listed.append(server)
            else:
                unlisted.append(server)
        # A move that has begun since the listing of migrations was read is found now.
        for server in unlisted[:_MAX_SERVERS]:
            migrations = self._nova.list_migrations_of_server(server).value
            # A candidate that no listing has as a migration was deleted: the answer is an old one.
            if not migrations or _has_unlisted_candidate(migrations, index, consumers):
                continue
            if self._is_under_way(server, migrations):
                unlisted.remove(server)
        unlisted += self._find_later_moves(listed, index)
        return d.replace(answer, value=tuple(sorted(unlisted)))

    def _find_later_moves(self, servers: Sequence[str], index: ListingsIndex) -> list[str]:
        """Return those of `servers` that have begun another move than the listed one.

        A move that was interrupted can keep its status for ever.
        """

        def is_under_way(server: str) -> bool:
            return self._is_under_way(server, index.get_listed_migrations(server).value or ())

        if not servers:
            return []
        answers = map_parallel(is_under_way, servers, self._nova.workers)
        return [server for server, yes in zip(servers, answers, strict=True) if not yes]

    def _is_under_way(self, server: str, migrations: tuple[Migration, ...]) -> bool:
        """Return whether the newest of the migrations is the move under way.

        The resource tracker of a host gives the status `error` to a migration that it calls stale
        (nova/compute/resource_tracker.py), also while its server waits for a confirmation.
        """
        newest = _get_newest(migrations)
        if newest.ended and newest.status != "error":
            return False
        actions = self._nova.list_instance_actions(server).value
        if actions is None:
            return False
        if newest.ended:
            return _is_of_last_action(migrations, actions)
        return not _has_later_action(migrations, actions)


def _has_unlisted_candidate(
    migrations: Iterable[Migration], index: ListingsIndex, consumers: Container[str]
) -> bool:
    """Return whether one of `migrations` is a candidate, and is not listed as a migration."""
    for migration in migrations:
        if migration.uuid in consumers and migration.uuid not in index.migrations:
            return True
    return False


def _has_move(migrations: tuple[Migration, ...]) -> bool:
    """Return whether the newest migration of a server is not over."""
    return bool(migrations) and not _get_newest(migrations).ended


def _get_newest(migrations: tuple[Migration, ...]) -> Migration:
    return max(migrations, key=lambda migration: migration.created_at or "")


def _is_of_last_action(migrations: tuple[Migration, ...], actions: Iterable[Action]) -> bool:
    """Return whether no record is missing, and the newest one is of the last action that moved.

    Nova makes at most one record for each action, after the action. If that of the last action is
    missing, the newest one is older than the action, and there are fewer records than actions.
    """
    starts = _list_starts(actions)
    if not starts or len(migrations) < len(starts):
        return False
    return _is_since(migrations, max(starts))


def _has_later_action(migrations: tuple[Migration, ...], actions: Iterable[Action]) -> bool:
    """Return whether the record of the last action that moved is missing.

    There are fewer records than actions also where an action was given up before it had one, and
    the newest one is older than its action also where two clocks differ: only both show it.
    """
    starts = _list_starts(actions)
    return len(migrations) < len(starts) and not _is_since(migrations, max(starts))


def _list_starts(actions: Iterable[Action]) -> list[str]:
    """Return when the actions that move a server were requested."""
    return [action.start_time or "" for action in actions if action.action in MOVING_ACTIONS]


def _is_since(migrations: tuple[Migration, ...], start: str) -> bool:
    """Return whether the newest migration was made at `start` or later."""
    created_at = _get_newest(migrations).created_at
    are_known = seconds_between(start, created_at) is not None
    return are_known and not is_earlier(created_at, start)
