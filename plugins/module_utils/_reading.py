# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""One reading of a cloud: first Placement, then Nova, then a closer look at what the listings nominate.

The order is what makes a reading safe: what appears after Placement was read is not in it, and Nova, asked later, knows
everything that Placement's answers can stem from. Nothing here concludes anything: `_judge` does.
"""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._concurrent import each
from ansible_collections.osops.placement.plugins.module_utils._judge import nominate
from ansible_collections.osops.placement.plugins.module_utils._model import Dossier, Server, Snapshot
from ansible_collections.osops.placement.plugins.module_utils._nova import NovaReader
from ansible_collections.osops.placement.plugins.module_utils._placement import PlacementReader
from ansible_collections.osops.placement.plugins.module_utils._session import now

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._model import Answer, Holding, Migration, Provider
    from ansible_collections.osops.placement.plugins.module_utils._session import Session

_SAMPLES = 3
_SAMPLED_FROM = 100


class Reading:
    """Reads snapshots from one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._placement = PlacementReader(session.placement)
        self._nova = NovaReader(session.compute)

    def whole_cloud(self) -> Snapshot:
        """Read every provider, and look closely at each consumer that `nominate` names."""
        started = now()
        services = self._nova.services()
        providers = self._placement.providers()
        return self._snapshot(started, services, providers, self._placement.holdings(providers))

    def listings(self) -> Snapshot:
        """Read what concerns the cloud as a whole, and no consumer."""
        started = now()
        services = self._nova.services()
        return self._snapshot(started, services, self._placement.providers(), {})

    def again(self, snapshot: Snapshot, consumer: str) -> Snapshot:
        """Ask every direct question about one consumer anew, and whether all cells still answer; keep the listings."""
        started = now()
        dossiers = self._dossiers([consumer], {migration.uuid: migration for migration in snapshot.migrations.value or ()})
        held = dossiers[consumer].allocation.value
        return Snapshot(
            cloud=snapshot.cloud,
            started_at=started,
            finished_at=now(),
            providers=snapshot.providers,
            holdings={consumer: held.resources} if held and held.resources else {},
            services=snapshot.services,
            hypervisors=snapshot.hypervisors,
            migrations=snapshot.migrations,
            samples=snapshot.samples,
            dossiers=dossiers,
            services_after=self._nova.services(),
        )

    def _snapshot(
        self,
        started: str,
        services: Answer[t.Any],
        providers: Mapping[str, Provider],
        holdings: Mapping[str, Holding],
    ) -> Snapshot:
        hypervisors = self._nova.hypervisors()
        migrations = self._nova.migrations()
        nominated = nominate(holdings, providers, hypervisors.value or ())
        return Snapshot(
            cloud=self._session.cloud,
            started_at=started,
            providers=providers,
            holdings=holdings,
            services=services,
            hypervisors=hypervisors,
            migrations=migrations,
            samples=self._samples(),
            dossiers=self._dossiers(nominated, {migration.uuid: migration for migration in migrations.value or ()}),
            services_after=self._nova.services(),
            finished_at=now(),
        )

    def _dossiers(self, consumers: Iterable[str], migrations: Mapping[str, Migration]) -> dict[str, Dossier]:
        dossiers = each(lambda consumer: self._dossier(consumer, migrations), list(consumers))
        return {dossier.uuid: dossier for pair in dossiers for dossier in pair}

    def _dossier(self, consumer: str, migrations: Mapping[str, Migration]) -> tuple[Dossier, ...]:
        """Ask about one consumer, and about the server whose migration it is, if it is one."""
        if consumer not in migrations:
            return (self._asked_as_server(consumer),)
        return Dossier(consumer, self._placement.allocation(consumer)), self._asked_as_server(migrations[consumer].server)

    def _asked_as_server(self, uuid: str) -> Dossier:
        # Placement, then migrations, then the server: an evacuation finishes in this order, and read the other way round
        # it shows the old host together with a finished evacuation.
        allocation = self._placement.allocation(uuid)
        migrations = self._nova.migrations_of(uuid)
        server = self._nova.server(uuid)
        if server.status != 404:
            return Dossier(uuid, allocation, migrations, server)
        deleted = self._nova.deleted_listing(uuid)
        actions = self._nova.actions(uuid)
        marker = self._nova.marker(uuid) if not deleted.value else None
        return Dossier(uuid, allocation, migrations, server, deleted, actions, marker)

    def _samples(self) -> tuple[Answer[Server], ...]:
        """Look directly at some live servers, those of other projects first."""
        placed = [server for server in self._nova.some_servers(_SAMPLED_FROM) if server.host]
        placed.sort(key=lambda server: server.project == self._session.project)
        return tuple(each(lambda server: self._nova.server(server.uuid), placed[:_SAMPLES]))
