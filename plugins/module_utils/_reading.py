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

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._case import Landscape
from ansible_collections.osops.placement.plugins.module_utils._clock import now
from ansible_collections.osops.placement.plugins.module_utils._concurrent import each
from ansible_collections.osops.placement.plugins.module_utils._judge import nominate
from ansible_collections.osops.placement.plugins.module_utils._model import (
    NOT_ASKED,
    PLACING_ACTIONS,
    UNHOSTED_STATUS,
    Dossier,
    Server,
    Snapshot,
)
from ansible_collections.osops.placement.plugins.module_utils._nova import NovaReader
from ansible_collections.osops.placement.plugins.module_utils._placement import PlacementReader

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Sequence

    from ansible_collections.osops.placement.plugins.module_utils._model import Action, Answer
    from ansible_collections.osops.placement.plugins.module_utils._session import Session

_SAMPLES = 3
# How far back the action that placed a server is looked for; beyond that it stays undecided.
_ACTIONS = 10
_SAMPLED_FROM = 100


class Reading:
    """Reads snapshots from one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._placement = PlacementReader(session.placement)
        self._nova = NovaReader(session.compute)

    def whole_cloud(self) -> Snapshot:
        """Read every provider, and look closely at each consumer that `nominate` names."""
        listed = self._listed(with_holdings=True)
        return self._looked_at(listed, nominate(listed))

    def listings(self) -> Snapshot:
        """Read what concerns the cloud as a whole, and no consumer."""
        return self._listed(with_holdings=False)

    def again(self, listings: Snapshot, consumer: str) -> Snapshot:
        """Ask every direct question about one consumer anew, and whether all cells still answer; keep the listings."""
        looked_at = self._looked_at(d.replace(listings, started_at=now()), [consumer])
        held = looked_at.dossiers[consumer].allocation.value
        return d.replace(looked_at, holdings={consumer: held.resources} if held and held.resources else {})

    def _listed(self, with_holdings: bool) -> Snapshot:
        started = now()
        services = self._nova.services()
        providers = self._placement.providers()
        holdings = self._placement.holdings(providers) if with_holdings else {}
        hypervisors = self._nova.hypervisors()
        migrations = self._nova.migrations()
        samples = self._samples()
        live = next((sample.value for sample in samples if sample.value), None)
        return Snapshot(
            cloud=self._session.cloud,
            started_at=started,
            finished_at=now(),
            providers=providers,
            holdings=holdings,
            services=services,
            hypervisors=hypervisors,
            migrations=migrations,
            samples=samples,
            control=self._nova.deleted_listing(live.uuid) if live else None,
            dossiers={},
            services_after=self._nova.services(),
        )

    def _looked_at(self, snapshot: Snapshot, consumers: Sequence[str]) -> Snapshot:
        """Add the dossiers of `consumers`, and whether all cells still answer after that."""
        land = Landscape(snapshot)
        dossiers = [dossier for some in each(lambda consumer: self._dossiers(consumer, land), consumers) for dossier in some]
        return d.replace(
            snapshot,
            dossiers={dossier.uuid: dossier for dossier in dossiers},
            services_after=self._nova.services(),
            finished_at=now(),
        )

    def _dossiers(self, consumer: str, land: Landscape) -> tuple[Dossier, ...]:
        """Ask about one consumer, and about the server whose migration it is, if it is one."""
        if consumer not in land.migrations:
            return (self._asked_as_server(consumer, land),)
        return Dossier(consumer, self._placement.allocation(consumer)), self._asked_as_server(land.migrations[consumer].server, land)

    def _asked_as_server(self, uuid: str, land: Landscape) -> Dossier:
        # Placement, then migrations, then the server: an evacuation finishes in this order, and read the other way round
        # it shows the old host together with a finished evacuation.
        allocation = self._placement.allocation(uuid)
        migrations = self._nova.migrations_of(uuid)
        server = self._nova.server(uuid)
        if server.status != 404:
            actions, last_actions = self._last_actions(server.value)
            return Dossier(uuid, allocation, migrations, server, actions=actions, last_actions=last_actions)
        deleted = self._nova.deleted_listing(uuid)
        actions = self._nova.actions(uuid)
        if deleted.value:
            return Dossier(uuid, allocation, migrations, server, deleted, actions)
        # Nova leaves a cell out of a listing when its database is too slow, and says nothing of it. That a migration is in
        # no listing is therefore asked again with a filter that has an index.
        hosts = land.hosts_of(allocation.value.resources if allocation.value else ())
        at_hosts = tuple(map(self._nova.migrations_at, hosts))
        marker = self._nova.marker(uuid)
        return Dossier(uuid, allocation, migrations, server, deleted, actions, marker, host_migrations=at_hosts)

    def _last_actions(self, server: Server | None) -> tuple[Answer[tuple[Action, ...]], tuple[Answer[Action], ...]]:
        """Ask a server without a host for its actions, and for each down to the newest that could give it a host."""
        if server is None or server.host or server.status not in UNHOSTED_STATUS:
            return NOT_ASKED, ()
        actions = self._nova.actions(server.uuid)
        wanted: list[str] = []
        for action in (actions.value or ())[:_ACTIONS]:
            wanted.append(action.request_id)
            if action.action in PLACING_ACTIONS:
                break
        return actions, tuple(self._nova.action(server.uuid, request_id) for request_id in wanted)

    def _samples(self) -> tuple[Answer[Server], ...]:
        """Look directly at some live servers, those of other projects first."""
        placed = [server for server in self._nova.some_servers(_SAMPLED_FROM) if server.host]
        placed.sort(key=lambda server: server.project == self._session.project)
        return tuple(each(lambda server: self._nova.server(server.uuid), placed[:_SAMPLES]))
