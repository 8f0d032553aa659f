# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lookups of one consumer: what it is, what is allocated to it, and where it is.

Nothing here draws a conclusion: `judging.engine` does.
"""

from __future__ import annotations

import dataclasses as d
import threading
import typing as t
from collections.abc import Callable, Mapping

from ..._common.parallel import ReadOnce
from ..clients.accelerators import CyborgReader
from ..clients.block_storage import VolumeReader
from ..clients.neutron import NeutronReader
from ..clients.nova import NovaReader
from ..clients.placement import PlacementReader
from ..facts.listings_index import ListingsIndex, group_by_tree
from ..facts.move_records import list_taken_over_roots
from ..facts.server import build_server_view, find_deletion
from ..models.nova import Migration
from ..models.placement import Allocation, Allocations
from ..models.resource_request import DeviceProfile, HostTree, PciAlias
from ..models.snapshot import NOT_ASKED, Answer, Evidence, HostAllocations, ListedAmounts, Scope
from .action_lookups import ActionLookups
from .amount_lookups import AmountLookups

if t.TYPE_CHECKING:  # pragma: no cover
    from .unlisted_moves import UnlistedMovesReader

# How often Nova is asked, each time over another connection and at another address, what one API
# worker that lacks a cell would answer wrongly: at detection, and right before a write.
# docs/safety.md says how likely it is that all of these answers are wrong.
WORKERS_ASKED = 4
WORKERS_ASKED_BEFORE_A_WRITE = 10


class MigrationsAtHosts:
    """The listings of migrations by host, each asked for once for all consumers of that host."""

    def __init__(self, nova: NovaReader) -> None:
        self._nova = nova
        self._lock = threading.Lock()
        # By host, each with a lock of its own, so that nobody waits for the answers of other hosts.
        self._answers: dict[str, tuple[threading.Lock, list[Answer[tuple[Migration, ...]]]]] = {}

    def list_answers(self, host: str, times: int) -> tuple[Answer[tuple[Migration, ...]], ...]:
        """Return at least `times` answers to the listing of one host."""
        with self._lock:
            lock, answers = self._answers.setdefault(host, (threading.Lock(), []))
        with lock:
            while len(answers) < times:
                answers.append(self._nova.list_migrations_of_host(host, len(answers)))
            return tuple(answers)


@d.dataclass(frozen=True)
class LookupContext:
    """What all lookups of a reading have in common.

    scope: what is looked up; it may be narrower than the scope of the listings.
    allocations: the answers by consumer, all read before the first request to Nova.
    migrations_of: returns the migrations of a server, from a listing or by a request of its own.
    nova_roots: the root providers with a trait that only Nova sets.
    host_trees, host_allocations, unlisted_moves, device_profiles: what is read once for all
        consumers.
    fresh: whether nothing that a listing said may replace a direct answer.
    listed_amounts: what the listings say of the amounts of servers.
    with_amounts: whether the amounts of every server are compared.
    pci_aliases: as in the policy.
    """

    index: ListingsIndex
    scope: Scope
    allocations: Mapping[str, Answer[Allocation]]
    migrations_of: Callable[[str], Answer[tuple[Migration, ...]]]
    at_hosts: MigrationsAtHosts
    former_trees: ReadOnce[tuple[str, str, str], dict[str, t.Any]]
    host_trees: ReadOnce[str, Answer[HostTree]]
    host_allocations: ReadOnce[str, HostAllocations]
    unlisted_moves: UnlistedMovesReader
    device_profiles: ReadOnce[str, Answer[DeviceProfile]]
    nova_roots: frozenset[str]
    fresh: bool
    listed_amounts: ListedAmounts = d.field(default_factory=ListedAmounts)
    with_amounts: bool = False
    pci_aliases: Mapping[str, PciAlias] = d.field(default_factory=dict)


class Lookups:
    """Asks the services about single consumers."""

    def __init__(
        self,
        placement: PlacementReader,
        nova: NovaReader,
        neutron: NeutronReader,
        volumes: VolumeReader,
        cyborg: CyborgReader,
    ) -> None:
        self._placement = placement
        self._nova = nova
        self._cyborg = cyborg
        self._actions = ActionLookups(nova)
        self._amounts = AmountLookups(nova, neutron, volumes, cyborg)

    def start_device_profiles(self) -> ReadOnce[str, Answer[DeviceProfile]]:
        """Return the device profiles of a new reading."""
        return ReadOnce(self._cyborg.get_device_profile)

    def collect_evidence(self, consumer: str, context: LookupContext) -> list[Evidence]:
        """Look up one consumer, and the server whose migration it is or its migrations.

        Return the evidence about each of them, that about the consumer first; [] when it is out of
        scope.
        """
        allocation = context.allocations[consumer]
        holds = allocation.value is not None and bool(allocation.value.resources)
        projects = context.scope.projects
        if projects and holds and allocation.value and allocation.value.project not in projects:
            return []
        if consumer in context.index.migrations:
            # A migration without an allocation is not judged.
            if not holds:
                return []
            return self._collect_migration_evidence(consumer, context)
        evidence = self._collect_server_evidence(consumer, context)
        # Placement has no project of a consumer without an allocation: that of the server counts.
        if projects and not holds and _get_project(evidence) not in projects:
            return []
        migration_evidence = self._collect_migration_allocations(evidence, context)
        evidence = self._add_amount_evidence(evidence, context)
        evidence = self._actions.add_port_actions(evidence, context.index)
        evidence = self._add_former_tree_evidence(evidence, context)
        evidence = self._actions.add_guest_location(evidence, migration_evidence, context.index)
        return [evidence, *migration_evidence]

    def _collect_migration_evidence(self, consumer: str, context: LookupContext) -> list[Evidence]:
        """Look up the server of a migration that is a consumer of its own."""
        migration = context.index.migrations[consumer]
        subject = self._collect_server_evidence(migration.server, context)
        view = build_server_view(subject, context.index)
        allocation = context.allocations[consumer].value
        if view is not None and allocation is not None:
            trees = group_by_tree(allocation.resources, context.index)
            # The actions of a server say whether a failed move of it was to be reverted, and which
            # hosts its unshelves may have given to it.
            is_doubtful = view.may_be_reverted_halfway(migration, trees)
            if is_doubtful or list_taken_over_roots(view, migration, trees):
                subject = self._actions.add_all_actions(subject)
        return [Evidence(consumer, context.allocations[consumer]), subject]

    def _collect_server_evidence(self, uuid: str, context: LookupContext) -> Evidence:
        """Look up a uuid in Nova: its migrations, then the server or what is left of it."""
        allocation = context.allocations[uuid]
        migrations = context.migrations_of(uuid)
        server = self._nova.get_server(uuid)
        if server.status != 404:
            evidence = self._actions.add_actions(Evidence(uuid, allocation, migrations, server))
            evidence = self._actions.add_move_actions(evidence, context.index)
            return self._actions.add_unshelve_action(evidence, context.index)
        actions = self._nova.list_instance_actions(uuid)
        deleted = self._nova.find_deleted_server(uuid, brief=find_deletion(actions) is not None)
        evidence = Evidence(uuid, allocation, migrations, server, deleted, actions)
        if deleted.value:
            return evidence
        if actions.value:
            # Only these say that its row is marked as deleted; so that it was not made or brought
            # back meanwhile, it is read again.
            evidence = d.replace(evidence, server=self._nova.get_server(uuid))
        return self._add_marker_evidence(evidence, context)

    def _add_marker_evidence(self, evidence: Evidence, context: LookupContext) -> Evidence:
        """Look up a uuid that is not a server's as a migration's, in every way there is."""
        # Nova leaves a cell out of a listing when its database is too slow, and says nothing of it.
        # That a migration is in no listing is therefore asked again with a filter that has an
        # index.
        marker = self._nova.probe_migration_marker(evidence.uuid)
        markers, times = self._ask_more_workers(evidence.uuid, marker, context)
        resources: Allocations = {}
        if evidence.allocation.value:
            resources = evidence.allocation.value.resources
        host_migrations: list[Answer[tuple[Migration, ...]]] = []
        for host in context.index.list_host_names_of(resources):
            host_migrations.extend(context.at_hosts.list_answers(host, times))
        # Whether a live server may need the allocation of a migration without a record.
        if marker.status == 200:
            context.unlisted_moves.read(context.index, context.allocations)
            for root in group_by_tree(resources, context.index):
                if root in context.index.nodes:
                    context.host_allocations.get(root)
        rows: tuple[Answer[tuple[str, ...]], ...] = ()
        # 400: the uuid is not a migration's either, so that Nova may have no record of it at all.
        if marker.status == 400:
            rows = self._list_rows(evidence.uuid, context)
        return d.replace(
            evidence,
            marker=marker,
            markers=markers,
            rows=rows,
            host_migrations=tuple(host_migrations),
        )

    def _list_rows(self, uuid: str, context: LookupContext) -> tuple[Answer[tuple[str, ...]], ...]:
        """Search all cells for a row of a server that a direct lookup does not find.

        Nova is asked until there are enough answers, or one that has a row.
        """
        # The listing of every host's servers has shown all rows already.
        if not context.fresh and context.index.has_servers_of_every_host:
            return ()
        if not context.scope.includes_any("unknown_consumer"):
            return ()
        times = WORKERS_ASKED_BEFORE_A_WRITE if context.fresh else WORKERS_ASKED
        answers: list[Answer[tuple[str, ...]]] = []
        for attempt in range(times):
            answer = self._nova.list_server_rows(uuid, attempt)
            answers.append(answer)
            if answer.value != ():
                break
        return tuple(answers)

    def _ask_more_workers(
        self, uuid: str, marker: Answer[bool], context: LookupContext
    ) -> tuple[tuple[Answer[bool], ...], int]:
        """Ask again whether `uuid` is a migration's, and return the answers.

        Return also how often the listings of its hosts are to be asked. One API worker may know the
        uuid as a migration's and another, which does not know its cell, list no such migration:
        together they seem to show a migration that is deleted.
        """
        if marker.status == 200:
            times = WORKERS_ASKED_BEFORE_A_WRITE if context.fresh else WORKERS_ASKED
            return self._repeat_marker(uuid, marker, times), times
        if marker.status == 400 and context.fresh:
            return self._repeat_marker(uuid, marker, WORKERS_ASKED_BEFORE_A_WRITE), WORKERS_ASKED
        return (), 1

    def _repeat_marker(
        self, uuid: str, marker: Answer[bool], times: int
    ) -> tuple[Answer[bool], ...]:
        """Ask until there are `times` answers with the first, or one that differs from it."""
        answers: list[Answer[bool]] = []
        for attempt in range(1, times):
            answer = self._nova.probe_migration_marker(uuid, attempt)
            answers.append(answer)
            # Workers that disagree prove nothing, whatever the others say.
            if answer.status != marker.status:
                break
        return tuple(answers)

    def _add_amount_evidence(self, evidence: Evidence, context: LookupContext) -> Evidence:
        """Look up what decides on the amounts of a server, if its allocation may be wrong."""
        view = build_server_view(evidence, context.index)
        if view is None:
            return evidence
        return self._amounts.add_evidence(view, context)

    def _add_former_tree_evidence(self, evidence: Evidence, context: LookupContext) -> Evidence:
        """Look up the tree of a server's allocation, if it may be its host's former provider."""
        view = build_server_view(evidence, context.index)
        if view is None or view.own_tree is None or view.server is None or not view.settled:
            return evidence
        roots = set(view.server_trees)
        if len(roots) != 1:
            return evidence
        (root,) = roots
        # A compute node that was not read may still be behind it: the rule decides.
        if root is None or root == view.own_tree or root in context.index.nodes:
            return evidence
        host = view.server.host or ""
        return d.replace(evidence, **context.former_trees.get((root, view.own_tree, host)))

    def _collect_migration_allocations(
        self, evidence: Evidence, context: LookupContext
    ) -> list[Evidence]:
        """Look up the allocations of the ended migrations of a server without one on its host."""
        view = build_server_view(evidence, context.index)
        if view is None or not view.settled or view.own_tree in view.server_trees:
            return []
        listings = context.index.listings
        # A listing of all allocations already shows which migrations have none.
        is_partial = context.fresh or listings.trees is not None or listings.reading.is_incremental
        evidence_of_migrations = []
        for migration in view.server_migrations:
            if migration.ended and (is_partial or migration.uuid in listings.allocations):
                answer = self._placement.get_allocation(migration.uuid)
                evidence_of_migrations.append(Evidence(migration.uuid, answer))
        return evidence_of_migrations


def merge_evidence(one: Evidence | None, other: Evidence) -> Evidence:
    """Return the evidence about one uuid as a whole: `other`, and what `one` has of answers.

    A uuid may be looked up for its own sake and again for the sake of another.
    """
    if one is None:
        return other
    answered = {}
    for field in d.fields(one):
        value = getattr(one, field.name)
        # These stand for what was not asked.
        if value not in (NOT_ASKED, ()):
            answered[field.name] = value
    return d.replace(other, **answered)


def _get_project(evidence: Evidence) -> str | None:
    server = evidence.server.value
    if server is None:
        return None
    return server.project
