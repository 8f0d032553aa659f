# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""What shows whether Nova lists the migration of every server that is being moved."""

from __future__ import annotations

import dataclasses as d
import threading
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._models.nova import MOVING_STATUSES
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import NOT_ASKED

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable

    from ansible_collections.osops.placement.plugins.module_utils._clients.nova import NovaReader
    from ansible_collections.osops.placement.plugins.module_utils._models.nova import Migration
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Answer
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.listings_index import (
        ListingsIndex,
    )

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

    def read(self, index: ListingsIndex) -> None:
        """Compare the servers that are being moved with the migrations that Nova lists."""
        with self._lock:
            if self._answer == NOT_ASKED:
                self._answer = self._read(index)

    def _read(self, index: ListingsIndex) -> Answer[tuple[str, ...]]:
        answer: Answer[tuple[str, ...]] = NOT_ASKED
        unlisted: list[str] = []
        for status in MOVING_STATUSES:
            answer = self._nova.list_server_uuids_in_status(status)
            if answer.value is None:
                return answer
            for server in answer.value:
                if not _has_move(index.get_listed_migrations(server).value or ()):
                    unlisted.append(server)
        # A move that has begun since the listing of migrations was read is found now.
        for server in sorted(unlisted)[:_MAX_SERVERS]:
            migrations = self._nova.list_migrations_of_server(server).value
            if migrations is not None and _has_move(migrations):
                unlisted.remove(server)
        return d.replace(answer, value=tuple(sorted(unlisted)))


def _has_move(migrations: Iterable[Migration]) -> bool:
    """Return whether the newest migration of a server can be the one under way.

    One with the status `error` does not count: the resource tracker gives that status to a
    migration that it calls stale (nova/compute/resource_tracker.py), also while its server waits
    for a confirmation, but the record may as well be that of an earlier move that failed.
    """
    newest = max(migrations, key=lambda migration: migration.created_at or "", default=None)
    return newest is not None and not newest.ended
