# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads what is about no allocation in doubt: Ironic's nodes, owners, and deletions.

This comes after everything else of a reading. No service but Nova and Placement is necessary: what
another one does not answer is said in the coverage, and is not searched.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Callable

from ..._common.clock import get_utc_now
from ..._common.errors import CloudError
from ..._common.parallel import map_parallel
from ..._common.text import format_count
from ..clients.bare_metal import BareMetalReader
from ..clients.nova import NovaReader
from ..clients.placement import PlacementReader
from ..clients.projects import ProjectReader
from ..clients.session import Session
from ..facts.index import SnapshotIndex
from ..models.nova import Migration, Server
from ..models.snapshot import Answer, BareMetal, Deletions, Projects, Snapshot, Surroundings
from .bare_metal import read_bare_metal
from .deletions import STUCK_DELETION, read_deletions
from .owners import MISSING_PROJECT, read_projects

BARE_METAL_MISMATCH = "bare_metal_mismatch"
UNFINISHED_EVACUATION = "unfinished_evacuation"

T = t.TypeVar("T")


def add_surroundings(session: Session, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with its surroundings, as far as kinds that are asked for need them."""
    index = SnapshotIndex(snapshot)
    # In a reading that is not sound, the candidates stand for a cloud that may not be this one.
    if index.failed_checks:
        return snapshot
    reader = _SurroundingsReader(session, index)
    surroundings = Surroundings(
        bare_metal=reader.read_bare_metal(),
        projects=reader.read_projects(),
        deletions=reader.read_deletions(),
        evacuated=reader.read_evacuated(),
        unread=tuple(reader.unread),
    )
    return d.replace(snapshot, surroundings=surroundings, finished_at=get_utc_now())


class _SurroundingsReader:
    def __init__(self, session: Session, index: SnapshotIndex) -> None:
        self._session = session
        self._index = index
        self._placement = PlacementReader(session.placement)
        self._nova = NovaReader(session.compute)
        self.unread: list[str] = []

    def read_bare_metal(self) -> BareMetal:
        api = self._session.bare_metal
        if api is None or not self._is_asked_for(BARE_METAL_MISMATCH):
            return BareMetal()
        reader = BareMetalReader(api)
        reading = self._try(
            "Bare metal nodes were not compared with their providers",
            lambda: read_bare_metal(reader, self._placement, self._nova, self._index),
            BareMetal(),
        )
        if reading.nodes.status not in (0, 200):
            self.unread.append(
                "Bare metal nodes were not compared with their providers: Ironic answered "
                f"{reading.nodes.status} when asked for its nodes."
            )
        if reading.unseen:
            self.unread.append(
                f"{format_count(reading.unseen, 'bare metal node was', 'bare metal nodes were')} "
                "not compared with their providers, because Ironic does not show these credentials "
                "the nodes of all projects: use a role that may list all of them "
                "(baremetal:node:list_all)."
            )
        if reading.left_out:
            self.unread.append(
                f"{reading.left_out} bare metal nodes that may not match their providers were not "
                "looked up, because there are too many: fix those that are reported first."
            )
        return reading

    def read_projects(self) -> Projects:
        # Their names are for all findings.
        keystone = ProjectReader(self._session.identity)
        reading = self._try(
            "It was not searched for owners whose project no longer exists",
            lambda: read_projects(keystone, self._nova, self._index.snapshot),
            Projects(),
        )
        refused = [answer for answer in reading.lookups.values() if answer.status not in (200, 404)]
        if refused and self._is_asked_for(MISSING_PROJECT):
            self.unread.append(
                "It was not searched for owners whose project no longer exists: Keystone answered "
                f"{refused[0].status} when asked for a project."
            )
        return reading

    def read_deletions(self) -> Deletions:
        if not self._is_asked_for(STUCK_DELETION):
            return Deletions()
        reading = self._try(
            "It was not searched for servers that cannot be deleted",
            lambda: read_deletions(self._nova, self._index),
            Deletions(),
        )
        if reading.left_out:
            self.unread.append(
                f"{reading.left_out} servers that may be stuck in their deletion were not looked "
                "up, because there are too many: fix those that are reported first."
            )
        return reading

    def read_evacuated(self) -> dict[str, Answer[Server]]:
        """Look up the servers with an unfinished evacuation that the listings do not show away.

        After the listing of migrations: a server is still on the source for a moment after its
        evacuation is done.
        """
        if not self._is_asked_for(UNFINISHED_EVACUATION):
            return {}
        servers = set()
        for migration in self._index.migrations.values():
            if migration.is_unfinished_evacuation and self._may_be_on_source(migration):
                servers.add(migration.server)
        chosen = sorted(servers)
        return self._try(
            "It was not searched for servers on the source of their own evacuation",
            lambda: dict(zip(chosen, map_parallel(self._nova.get_server, chosen), strict=True)),
            {},
        )

    def _may_be_on_source(self, migration: Migration) -> bool:
        nodes = self._index.nodes.values()
        sources = [node for node in nodes if migration.has_source((node.host, node.name))]
        # Not every host was asked for its servers.
        return any(node.servers is None or migration.server in node.servers for node in sources)

    def _is_asked_for(self, kind: str) -> bool:
        return self._index.snapshot.scope.includes_any(kind)

    def _try(self, what: str, read: Callable[[], T], nothing: T) -> T:
        """Return what `read` returns, or `nothing` with a sentence where a service fails."""
        try:
            return read()
        except CloudError as error:
            self.unread.append(f"{what}: {error}")
            return nothing
