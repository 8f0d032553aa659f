# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""One reading of a cloud: first Placement, then Nova, then a closer look at what the listings nominate.

The order is what makes a reading safe: what appears after Placement was read is not in it, and Nova, asked later, knows
everything that Placement's answers can stem from. The two long listings are read side by side, for they only nominate: each
nominated consumer is read again, in that order. Nothing here concludes anything: `_judge` does.
"""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._case import Case, Landscape
from ansible_collections.osops.placement.plugins.module_utils._clock import now
from ansible_collections.osops.placement.plugins.module_utils._concurrent import each, together
from ansible_collections.osops.placement.plugins.module_utils._gates import closed_gates
from ansible_collections.osops.placement.plugins.module_utils._kinds import deletion_in
from ansible_collections.osops.placement.plugins.module_utils._model import (
    NOT_ASKED,
    PLACING_ACTIONS,
    UNHOSTED_STATUS,
    Dossier,
    Scope,
    Server,
    Snapshot,
)
from ansible_collections.osops.placement.plugins.module_utils._neutron import NeutronReader
from ansible_collections.osops.placement.plugins.module_utils._nominate import nominate, odd_nodes, worth_a_glance
from ansible_collections.osops.placement.plugins.module_utils._nova import NovaReader
from ansible_collections.osops.placement.plugins.module_utils._placement import PlacementReader
from ansible_collections.osops.placement.plugins.module_utils._plain import worth_asking
from ansible_collections.osops.placement.plugins.module_utils._scope import roots_of

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from ansible_collections.osops.placement.plugins.module_utils._model import Action, Allocation, Answer, Holding, Hypervisor, Provider
    from ansible_collections.osops.placement.plugins.module_utils._session import Session

_SAMPLES = 3
_SAMPLED_FROM = 20
# How far back the action that placed a server is looked for; beyond that it stays undecided.
_ACTIONS = 10
# With the wrong region everybody is nominated, and nothing may be changed whatever is found: enough to show what it looks like.
_LOOKED_AT_WHEN_CLOSED = 100


class Reading:
    """Reads snapshots from one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._placement = PlacementReader(session.placement)
        self._nova = NovaReader(session.compute)
        self._neutron = NeutronReader(session.network)

    def of(self, scope: Scope) -> Snapshot:
        """Read what `scope` names, and look closely at each consumer that the listings nominate."""
        listed = self._listed(scope)
        listed = self._with_servers(listed, self._hosts_of_interest(listed))
        glances = {server.uuid: server for servers in each(self._nova.servers_at, worth_a_glance(listed)) for server in servers}
        known = self._nova.server_uuids() if listed.hypervisors.value is None else ()
        nominated = nominate(listed, glances, known)
        if closed_gates(listed):
            looked_at = nominated[:_LOOKED_AT_WHEN_CLOSED]
            listed = d.replace(listed, left_out=len(nominated) - len(looked_at))
            nominated = looked_at
        return self._looked_at(self._with_details(d.replace(listed, nominated=tuple(nominated))), nominated)

    def listings(self, with_servers: bool) -> Snapshot:
        """Read what concerns the cloud as a whole, and no consumer; if wanted with the servers of every host."""
        return self._listed(Scope(), nobody=True, with_servers=with_servers)

    def again(self, listings: Snapshot, consumer: str) -> Snapshot:
        """Ask every direct question about one consumer anew, and whether all cells still answer; keep the listings."""
        return self._looked_at(d.replace(listings, started_at=now()), [consumer], fresh=True)

    def _listed(self, scope: Scope, nobody: bool = False, with_servers: bool = True) -> Snapshot:
        started = now()
        services = self._nova.services()
        providers = self._placement.providers()
        roots = [uuid for uuid, provider in providers.items() if provider.root == uuid and not provider.sharing]
        if nobody or scope.narrow:
            hypervisors = self._nova.hypervisors(nobody and with_servers, roots)
            holdings: Mapping[str, Holding] = {} if nobody else self._named(scope, hypervisors.value or (), providers)
        else:
            holdings, hypervisors = together(
                lambda: self._placement.holdings(providers), lambda: self._nova.hypervisors(scope.mode == "full", roots)
            )
        migrations = self._nova.migrations()
        samples = self._samples()
        live = next((sample.value for sample in samples if sample.value), None)
        return Snapshot(
            cloud=self._session.cloud,
            scope=scope,
            started_at=started,
            finished_at=now(),
            providers=providers,
            holdings=holdings,
            services=services,
            hypervisors=hypervisors,
            migrations=migrations,
            samples=samples,
            control=self._nova.deleted_listing(live.uuid) if live else None,
            nominated=(),
            dossiers={},
            services_after=services,
        )

    def _named(self, scope: Scope, nodes: Iterable[Hypervisor], providers: Mapping[str, Provider]) -> dict[str, Holding]:
        """Return what the consumers in a narrow scope hold, as far as the hosts and consumers that it names show it."""
        roots = roots_of(scope.hosts, nodes, providers)
        held = self._placement.holdings(uuid for uuid, provider in providers.items() if provider.root in roots)
        moves = each(self._nova.migrations_of, scope.consumers)
        consumers = {*scope.consumers, *(move.uuid for answer in moves for move in answer.value or ())}
        return {**held, **{allocation.consumer: allocation.resources for allocation in self._placement.allocations(consumers)}}

    @staticmethod
    def _hosts_of_interest(listed: Snapshot) -> Collection[str]:
        """Return the compute nodes that are to be asked for their servers one by one, where not all were listed with them."""
        land = Landscape(listed)
        if listed.scope.narrow:
            named = roots_of(listed.scope.hosts, land.nodes.values(), listed.providers)
            return {*named, *filter(None, (land.root(provider) for holding in listed.holdings.values() for provider in holding))}
        return odd_nodes(land, listed.holdings.items()) if listed.scope.mode == "triage" else ()

    def _with_servers(self, snapshot: Snapshot, nodes: Collection[str]) -> Snapshot:
        """Ask for the servers of those compute nodes that were not yet asked for them."""
        listed = snapshot.hypervisors.value or ()
        wanted = [node.uuid for node in listed if node.servers is None and node.uuid in nodes]
        found = dict(zip(wanted, each(self._nova.servers_on, wanted), strict=True))
        asked = tuple(d.replace(node, servers=found[node.uuid]) if node.uuid in found else node for node in listed)
        return d.replace(snapshot, hypervisors=d.replace(snapshot.hypervisors, value=asked)) if wanted else snapshot

    def _looked_at(self, snapshot: Snapshot, consumers: Sequence[str], fresh: bool = False) -> Snapshot:
        """Add the dossiers of `consumers`, and whether all cells still answer after that."""
        land = Landscape(snapshot)
        asked = each(lambda consumer: self._dossiers(consumer, land, fresh), consumers)
        dossiers = {dossier.uuid: dossier for some in asked for dossier in some}
        looked_at = d.replace(snapshot, nominated=tuple(uuid for uuid in consumers if uuid in dossiers), dossiers=dossiers)
        looked_at = self._with_servers(looked_at, _where_to_be_sighted(looked_at))
        return d.replace(looked_at, services_after=self._nova.services(), finished_at=now())

    def _with_details(self, snapshot: Snapshot) -> Snapshot:
        """Add what those providers have that are no compute node, that a nominated consumer holds, or whose capacity was asked for."""
        if snapshot.hypervisors.value is None:
            return snapshot
        land, scope = Landscape(snapshot), snapshot.scope
        roots = {root.uuid for root in land.roots}
        named = roots_of(scope.hosts, land.nodes.values(), snapshot.providers) if scope.narrow else roots
        strangers = named - set(land.nodes) if scope.wants("ghost_provider") else set()
        asked_for = named & set(land.nodes) if scope.narrow or "capacity_drift" in scope.kinds else set()
        held = {provider for uuid in snapshot.nominated for provider in snapshot.holdings.get(uuid, ())}
        details = self._placement.details(sorted((asked_for | held) & set(snapshot.providers)), ("inventories",))
        return d.replace(snapshot, details={**details, **self._placement.details(sorted(strangers & roots), ("inventories", "traits"))})

    def _dossiers(self, consumer: str, land: Landscape, fresh: bool) -> list[Dossier]:
        """Ask about one consumer, and about the server whose migration it is, if it is one; nothing when it is out of scope.

        fresh: whether nothing that a listing said may stand for a direct answer.
        """
        allocation = self._placement.allocation(consumer)
        projects = land.snapshot.scope.projects
        if projects and allocation.value and allocation.value.resources and allocation.value.project not in projects:
            return []
        if consumer in land.migrations:
            move = land.migrations[consumer]
            subject = self._asked_as_server(move.server, self._placement.allocation(move.server), land, fresh)
            case = _case(subject, land)
            if case is not None and case.at_failed_destination(move):
                subject = d.replace(subject, actions=self._nova.actions(move.server))
            return [Dossier(consumer, allocation), subject]
        dossier = self._asked_as_server(consumer, allocation, land, fresh)
        if projects and dossier.server.value and dossier.server.value.project not in projects:
            return []
        return [self._asked_closer(dossier, land), *self._claims_of_migrations(dossier, land, fresh)]

    def _asked_as_server(self, uuid: str, allocation: Answer[Allocation], land: Landscape, fresh: bool) -> Dossier:
        # Placement, then migrations, then the server: an evacuation finishes in this order, and read the other way round
        # it shows the old host together with a finished evacuation. Whoever is on no host is most likely gone, and of a
        # server that is gone the listing of migrations, which also came after Placement, says enough to find it by.
        migrations = self._nova.migrations_of(uuid) if fresh or land.seen_on(uuid) else NOT_ASKED
        server = self._nova.server(uuid)
        if server.status != 404:
            if migrations == NOT_ASKED:
                migrations, server = self._nova.migrations_of(uuid), self._nova.server(uuid)
            actions, last_actions = self._last_actions(server.value)
            return Dossier(uuid, allocation, migrations, server, actions=actions, last_actions=last_actions)
        if migrations == NOT_ASKED:
            migrations = land.listed_migrations_of(uuid)
        actions = self._nova.actions(uuid)
        deleted = self._nova.deleted_listing(uuid, brief=deletion_in(actions) is not None)
        if deleted.value:
            return Dossier(uuid, allocation, migrations, server, deleted, actions)
        # Nova leaves a cell out of a listing when its database is too slow, and says nothing of it. That a migration is in
        # no listing is therefore asked again with a filter that has an index.
        hosts = land.hosts_of(allocation.value.resources if allocation.value else ())
        at_hosts = tuple(map(self._nova.migrations_at, hosts))
        marker = self._nova.marker(uuid)
        return Dossier(uuid, allocation, migrations, server, deleted, actions, marker, host_migrations=at_hosts)

    def _asked_closer(self, dossier: Dossier, land: Landscape) -> Dossier:
        """Ask what a server was given besides its flavor, if its claim may have to be written anew."""
        case = _case(dossier, land)
        if case is None or case.own_tree is None or not worth_asking(case):
            return dossier
        return d.replace(
            dossier,
            shape=self._nova.shape(dossier.uuid),
            ports=self._neutron.ports_of(dossier.uuid),
            stock=self._placement.stock(case.own_tree),
        )

    def _claims_of_migrations(self, dossier: Dossier, land: Landscape, fresh: bool) -> list[Dossier]:
        """Ask what the ended migrations of a server hold that has nothing of its own host."""
        case = _case(dossier, land)
        if case is None or not case.settled or case.own_tree in case.trees:
            return []
        partly = fresh or land.snapshot.scope.narrow
        ended = [known.uuid for known in case.server_migrations if known.ended and (partly or known.uuid in land.snapshot.holdings)]
        return [Dossier(uuid, self._placement.allocation(uuid)) for uuid in ended]

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


def _case(dossier: Dossier, land: Landscape) -> Case | None:
    allocation = dossier.allocation.value
    """The case of a live server."""
    return Case(land, allocation, dossier, dossier, None) if allocation and dossier.server.value else None


def _where_to_be_sighted(snapshot: Snapshot) -> Collection[str]:
    """Return the compute nodes that must be asked for their servers before anybody is said to be on none of them.

    That Nova has no memory of a consumer at all counts only when no host shows it; triage does without that kind.
    """
    land = Landscape(snapshot)
    nowhere = [dossier for dossier in snapshot.dossiers.values() if dossier.server.status == 404 or _has_no_host(dossier.server.value)]
    if (
        snapshot.scope.mode == "full"
        and snapshot.scope.wants("forgotten_consumer")
        and any(dossier.marker.status == 400 for dossier in nowhere)
    ):
        return land.nodes
    held = (dossier.allocation.value.resources for dossier in nowhere if dossier.allocation.value)
    return {root for holding in held for provider in holding if (root := land.root(provider))}


def _has_no_host(server: Server | None) -> bool:
    return server is not None and not server.host
