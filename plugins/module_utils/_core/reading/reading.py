# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One reading of a cloud, from the first request to the finished snapshot.

`reading.order` says in which order it asks, and why. Nothing here draws a conclusion:
`judging.engine` does.
"""

from __future__ import annotations

import dataclasses as d
from collections.abc import Collection, Mapping, Sequence

from ..._common.clock import get_utc_now
from ..._common.errors import CloudError
from ..._common.parallel import map_parallel
from ..clients.groups import ProviderGroupReader
from ..clients.nova import NovaReader
from ..clients.other_services import CyborgReader, NeutronReader, VolumeReader
from ..clients.placement import PlacementReader
from ..clients.session import Session
from ..facts.index import ListingsIndex
from ..facts.soundness import list_failed_checks
from ..models.nova import Server
from ..models.other_services import PciAlias
from ..models.snapshot import FLAVORS, UNOWNED, Listings, Scope, Snapshot, Surroundings
from ..options.scope import is_needed, needs_every_lookup
from . import compute_nodes
from .allocations import find_unowned
from .candidates import (
    AmountNominator,
    choose_hosts_for_server_details,
    find_candidates,
    limit_candidates,
)
from .evidence import EvidenceReader
from .listings import ListingReader
from .others import MirrorReader
from .servers import Context
from .sources import Clients

# In the wrong region every consumer is a candidate, and nothing may be changed: so many are enough
# to show what such a reading looks like.
_MAX_CANDIDATES_WHEN_UNSOUND = 100


class Collector:
    """Reads snapshots of a cloud through one session.

    A detection needs `collect` alone. A run that changes something uses `reading.renewal`.
    """

    def __init__(self, session: Session, pci_aliases: Mapping[str, PciAlias] | None = None) -> None:
        """Prepare the readers of all services, and read the time.

        pci_aliases: as in the policy.
        Raises CloudError when the servers of Placement are known to have different times.
        """
        session.require_one_clock()
        self._pci_aliases = pci_aliases or {}
        self._cloud = session.cloud
        self._placement = PlacementReader(session.placement)
        self._nova = NovaReader(session.compute)
        self._clients = Clients(
            self._placement,
            self._nova,
            NeutronReader(session.network, session.project, session.roles),
            VolumeReader(session.block_storage),
            CyborgReader(session.accelerator),
            session.query_other_novas,
        )
        self._mirror = MirrorReader(ProviderGroupReader(session.placement), self._nova)
        self._listings = ListingReader(session, self._placement, self._nova, self._mirror)

    def collect(self, scope: Scope) -> Snapshot:
        """Read what `scope` names (steps 1 to 8), with evidence about each candidate.

        Raises CloudError when the listings cannot be read, and InvalidInput when the scope names a
        host that does not exist.
        """
        index = ListingsIndex(self._listings.read(scope, scope.needs_servers_of_every_host))
        choice = choose_hosts_for_server_details(index)
        server_details = self._read_server_details(choice.hosts)
        living: Collection[str] = ()
        if index.listings.hypervisors.value is None:
            living = self._nova.list_server_uuids()
        amounts = AmountNominator(index, server_details, choice, self._pci_aliases)
        candidates = find_candidates(index, server_details, living, amounts)
        unowned, unread = self._find_unowned(index, candidates)
        candidates = sorted({*candidates, *unowned}) if unowned else candidates
        kept = limit_candidates(candidates, index, _MAX_CANDIDATES_WHEN_UNSOUND)
        reader = self._make_evidence_reader(index, index.listings.started_at, scope, fresh=False)
        reader.read_providers()
        snapshot = reader.finish(
            kept,
            server_details,
            left_out=len(candidates) - len(kept),
            listed_amounts=amounts.summarize(candidates),
        )
        return d.replace(snapshot, surroundings=Surroundings(unread=unread))

    def _find_unowned(
        self, index: ListingsIndex, candidates: Collection[str]
    ) -> tuple[list[str], tuple[str, ...]]:
        """Return the consumers of no project, and a sentence for what could not be found of them.

        They seem to be in order, because no listing of Placement has the owners.
        """
        listings = index.listings
        is_wanted = is_needed(UNOWNED, listings.scope) and not needs_every_lookup(listings.scope)
        if not is_wanted or not index.nodes or list_failed_checks(listings):
            return [], ()
        others = listings.allocations.keys() - set(candidates)
        try:
            unowned, left = find_unowned(self._placement, others)
        except CloudError as error:
            return [], (f"It was not searched for allocations of no project: {error}",)
        if not left:
            return unowned, ()
        amounts = ", ".join(f"{amount} {cls}" for cls, amount in sorted(left.items()))
        return unowned, (
            f"Not all consumers of no project were found: others have up to {amounts}. Name the "
            "kind wrong_owner to look up every consumer.",
        )

    def collect_cloud(self) -> Snapshot:
        """Read the cloud as a whole (steps 1 to 5), without allocations.

        The snapshot has no candidates. It is enough to judge a host that has no provider, because
        nothing can be allocated there.
        """
        listings = self.collect_listings(with_servers=False)
        return Snapshot(
            **vars(listings),
            candidates=(),
            evidence={},
            retried=self._placement.retried + self._nova.retried,
            finished_at=get_utc_now(),
        )

    def collect_listings(self, with_servers: bool) -> Listings:
        """Read the listings (steps 1 to 5), without allocations.

        Call it once in a run, before the first `refresh_evidence`.

        with_servers: whether the compute nodes come with the servers of their hosts.
        Raises CloudError when the listings cannot be read.
        """
        return self._listings.read(None, with_servers)

    def add_servers(self, listings: Listings, nodes: Collection[str]) -> Listings:
        """Return the listings with the servers of `nodes`, which are read once.

        This belongs to step 3, and comes before `refresh_evidence`.

        nodes: compute nodes by uuid.
        """
        hypervisors = compute_nodes.add_servers(self._nova, listings.hypervisors, nodes)
        return d.replace(listings, hypervisors=hypervisors)

    def refresh_evidence(
        self, index: ListingsIndex, consumers: Sequence[str], with_amounts: bool = False
    ) -> Snapshot:
        """Look up `consumers` again (steps 7 and 8), and return a snapshot with these candidates.

        No listing replaces a direct lookup here. The listings stay as `collect_listings` read them,
        and the services, listed again at the end, show whether every cell still answers.

        index: the index of the listings, made once for all calls of a run.
        with_amounts: whether the amounts of every server are compared; otherwise only where they
            differ from its flavor.
        """
        # A consumer that is asked for by uuid is named, as in a detection whose scope names
        # consumers.
        scope = Scope(consumers=tuple(consumers))
        reader = self._make_evidence_reader(
            index, get_utc_now(), scope, fresh=True, with_amounts=with_amounts
        )
        return reader.finish(consumers)

    def _make_evidence_reader(
        self,
        index: ListingsIndex,
        started_at: str,
        scope: Scope,
        fresh: bool,
        with_amounts: bool = False,
    ) -> EvidenceReader:
        with_amounts = with_amounts or is_needed(FLAVORS, scope)
        context = Context(
            index, scope, fresh, with_amounts=with_amounts, pci_aliases=self._pci_aliases
        )
        return EvidenceReader(self._clients, self._mirror, context, started_at)

    def _read_server_details(self, hosts: Sequence[str]) -> dict[str, Server]:
        """Return the servers, by uuid, of the hosts where the listings alone do not settle them."""
        nova = self._nova
        servers_of_hosts = map_parallel(
            nova.list_servers_on_host, hosts, nova.workers, stage="servers", unit="hosts"
        )
        return {server.uuid: server for servers in servers_of_hosts for server in servers}
