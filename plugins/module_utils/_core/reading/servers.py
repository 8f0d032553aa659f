# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The requests about one consumer, in their order.

Nothing here draws a conclusion: `judging.engine` does.
"""

from __future__ import annotations

import dataclasses as d
import threading
import typing as t
from collections.abc import Callable, Iterable, Mapping

from ..._common.parallel import ReadOnce
from ..clients.neutron import NeutronReader
from ..clients.nova import NovaReader
from ..clients.other_services import CyborgReader, VolumeReader
from ..clients.placement import PlacementReader
from ..expected.amounts import compare_listed
from ..expected.inputs import find_root_volume, list_device_profiles
from ..facts.devices import MAX_PORT_ACTIONS, list_port_actions, may_have_leak
from ..facts.guest_location import list_relevant_request_ids
from ..facts.listings_index import ListingsIndex, group_by_tree
from ..facts.move_records import (
    find_placement_after_unshelve,
    list_repeated_unshelves,
    list_taken_over_roots,
)
from ..facts.server import ServerView, build_server_view, find_deletion
from ..models.nova import (
    COLD_MIGRATION_TYPES,
    PLACING_ACTIONS,
    UNHOSTED_STATUSES,
    UNSHELVE_ACTION,
    Action,
    Migration,
    Server,
)
from ..models.placement import Allocation, Allocations
from ..models.resource_request import DeviceProfile, HostTree, PciAlias
from ..models.snapshot import NOT_ASKED, Answer, Evidence, HostAllocations, ListedAmounts, Scope

if t.TYPE_CHECKING:  # pragma: no cover
    from .candidates import UnlistedMovesReader


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


# How far back the action that placed or shelved a server is searched; beyond that it stays
# undecided.
_MAX_ACTIONS = 10


class ActionLookups:
    """Asks Nova what was done to servers."""

    def __init__(self, nova: NovaReader) -> None:
        self._nova = nova

    def add_actions(self, evidence: Evidence) -> Evidence:
        """Add the actions of a server for which a direct lookup was not a 404."""
        server = evidence.server.value
        actions, last_actions = self._read_last_actions(server)
        if server is not None and server.host and not evidence.migrations.value:
            # No migration may also be the answer of an API worker that does not know the server's
            # cell. Actions are asked there.
            actions = self._nova.list_instance_actions(evidence.uuid)
        return d.replace(evidence, actions=actions, last_actions=last_actions)

    def add_move_actions(self, evidence: Evidence, index: ListingsIndex) -> Evidence:
        """Look up what was done to a server that has an allocation on another host than its own.

        Only its actions show a move whose migration was deleted, whether a failed move may have
        been reverted, and which host made the guest after more than one unshelve.
        """
        view = build_server_view(evidence, index)
        if view is None or not view.seems_settled or not view.other_roots:
            return evidence
        evidence = self.add_all_actions(evidence)
        view = d.replace(view, subject=evidence)
        for root in view.other_roots:
            placement = find_placement_after_unshelve(view, root)
            if placement is None:
                continue
            for action in (placement, *list_repeated_unshelves(view, root)):
                evidence = self._add_last_action(evidence, action)
        return evidence

    def add_unshelve_action(self, evidence: Evidence, index: ListingsIndex) -> Evidence:
        """Look up whether a server that is not where its newest move ended was unshelved since.

        Nova creates no migration for an unshelve.
        """
        view = build_server_view(evidence, index)
        if view is None or not view.settled or view.arrived:
            return evidence
        evidence = self.add_all_actions(evidence)
        for action in evidence.actions.value or ():
            if action.action == UNSHELVE_ACTION:
                return self._add_last_action(evidence, action)
        return evidence

    def _add_last_action(self, evidence: Evidence, action: Action) -> Evidence:
        """Add the events of an action, unless they were read already."""
        for answer in evidence.last_actions:
            if answer.value is not None and answer.value.request_id == action.request_id:
                return evidence
        found = self._nova.get_instance_action(evidence.uuid, action.request_id)
        return d.replace(evidence, last_actions=(*evidence.last_actions, found))

    def add_all_actions(self, evidence: Evidence) -> Evidence:
        """Add the actions of a server, unless they were read already."""
        if evidence.actions != NOT_ASKED:
            return evidence
        return d.replace(evidence, actions=self._nova.list_instance_actions(evidence.uuid))

    def add_port_actions(self, evidence: Evidence, index: ListingsIndex) -> Evidence:
        """Look up what was done to the ports of a server that may have too much of a child.

        This comes after its ports were read: what Nova is doing to one of them was recorded before.
        """
        view = build_server_view(evidence, index)
        if view is None or evidence.shape == NOT_ASKED or not may_have_leak(view):
            return evidence
        actions = self._nova.list_instance_actions(evidence.uuid)
        port_actions = []
        for action in list_port_actions(actions.value or ())[:MAX_PORT_ACTIONS]:
            port_actions.append(self._nova.get_instance_action(evidence.uuid, action.request_id))
        return d.replace(evidence, actions=actions, port_actions=tuple(port_actions))

    def add_guest_location(
        self, evidence: Evidence, migration_evidence: list[Evidence], index: ListingsIndex
    ) -> Evidence:
        """Look up what was done to a server since a cold migration failed that has its allocation.

        The actions since then show where its guest is.
        """
        failed = _list_cold_migrations_with_host(evidence, migration_evidence, index)
        if not failed:
            return evidence
        actions = self._nova.list_instance_actions(evidence.uuid)
        already_read = {
            answer.value.request_id: answer for answer in evidence.last_actions if answer.value
        }
        wanted = set(list_relevant_request_ids(actions.value or (), failed[-1].created_at))
        wanted.update(already_read)
        last_actions = []
        for action in actions.value or ():
            request_id = action.request_id
            if request_id in already_read:
                last_actions.append(already_read[request_id])
            elif request_id in wanted:
                last_actions.append(self._nova.get_instance_action(evidence.uuid, request_id))
        return d.replace(evidence, actions=actions, last_actions=tuple(last_actions))

    def _read_last_actions(
        self, server: Server | None
    ) -> tuple[Answer[tuple[Action, ...]], tuple[Answer[Action], ...]]:
        """List the actions of a server without a host, and read each back to one on a host.

        That is the newest placing action that a host began: one for which conductor found no host
        says nothing about those before it. Actions before a shelve that its host has finished are
        not read: they were over by then.
        """
        if server is None or server.host or server.status not in UNHOSTED_STATUSES:
            return NOT_ASKED, ()
        actions = self._nova.list_instance_actions(server.uuid)
        listed = actions.value or ()
        answers: list[Answer[Action]] = []
        for number, action in enumerate(listed[:_MAX_ACTIONS]):
            answer = self._nova.get_instance_action(server.uuid, action.request_id)
            answers.append(answer)
            if answer.value is None or answer.value.placing_hosts:
                break
            if answer.value.shelving_hosts:
                placing = _find_placing_action(listed[number:])
                if placing is not None:
                    answers.append(self._nova.get_instance_action(server.uuid, placing.request_id))
                break
        return actions, tuple(answers)


def _find_placing_action(actions: Iterable[Action]) -> Action | None:
    """Return the first of the actions that can give a host to a server."""
    return next((action for action in actions if action.action in PLACING_ACTIONS), None)


def _list_cold_migrations_with_host(
    evidence: Evidence, migration_evidence: Iterable[Evidence], index: ListingsIndex
) -> list[Migration]:
    """Return the cold migrations with an allocation on the host of their server, newest first."""
    view = build_server_view(evidence, index)
    if view is None:
        return []
    with_host = set()
    for of_migration in migration_evidence:
        allocation = of_migration.allocation.value
        if allocation and view.own_tree in allocation.resources:
            with_host.add(of_migration.uuid)
    migrations = []
    for migration in view.server_migrations:
        if migration.uuid in with_host and migration.type in COLD_MIGRATION_TYPES:
            migrations.append(migration)
    return migrations


@d.dataclass(frozen=True)
class AmountLookups:
    """Asks Nova, Neutron, Cinder and Cyborg what a server requests."""

    nova: NovaReader
    neutron: NeutronReader
    volumes: VolumeReader
    cyborg: CyborgReader

    def add_evidence(self, view: ServerView, context: LookupContext) -> Evidence:
        """Return the evidence about a server, with the answers about its amounts if needed."""
        evidence = view.subject
        if view.own_tree is None or not _needs_amounts(view, context):
            return evidence
        uuid = evidence.uuid
        # Placement is read before Nova, so that a server that was just resized is seen resized.
        context.host_trees.get(view.own_tree)
        shape = self.nova.get_server_with_image_properties(uuid)
        evidence = d.replace(
            evidence,
            shape=shape,
            interfaces=self.nova.list_attached_port_uuids(uuid),
            server_ports=self.neutron.list_ports(uuid),
        )
        if shape.value is not None and (shape.value.volumes or not shape.value.image):
            evidence = self._add_volume_evidence(evidence, shape.value)
        return self._add_device_evidence(evidence, context)

    def _add_volume_evidence(self, evidence: Evidence, server: Server) -> Evidence:
        """Look up from which volume a server boots, if from any."""
        uuid = evidence.uuid
        evidence = d.replace(evidence, attachments=self.nova.list_attachments(uuid))
        # Of a server with an image Nova itself shows the properties.
        if server.image:
            return evidence
        if evidence.actions == NOT_ASKED:
            evidence = d.replace(evidence, actions=self.nova.list_instance_actions(uuid))
        volume = find_root_volume(server, evidence.attachments.value)
        if volume is None:
            return evidence
        return d.replace(evidence, root_volume=self.volumes.get_root_volume(volume))

    def _add_device_evidence(self, evidence: Evidence, context: LookupContext) -> Evidence:
        """Look up the device profiles that the flavor and the ports of a server name."""
        server = evidence.server.value
        specs = None
        if server is not None and server.flavor is not None:
            specs = server.flavor.extra_specs
        names = list_device_profiles(specs, evidence.server_ports.value or ())
        if not names:
            return evidence
        return d.replace(
            evidence,
            device_profiles=tuple(map(context.device_profiles.get, names)),
            accelerators=self.cyborg.list_accelerator_requests(evidence.uuid),
        )


def _needs_amounts(view: ServerView, context: LookupContext) -> bool:
    """Return whether more has to be read about a server to decide on its allocation.

    That is so for a settled server whose allocation on its host is not just what its flavor says.
    """
    server, own, allocation = view.server, view.own_tree, view.subject.allocation.value
    if server is None or own is None or allocation is None or not view.settled:
        return False
    if own not in view.server_trees:
        return True
    if not view.has_only_own_tree(context.nova_roots):
        return False
    listed = context.listed_amounts
    # The listing has the properties of its image, which the direct lookup lacks.
    if not context.fresh and listed.candidates.get(server.uuid) == "":
        return False
    is_named = not context.fresh and server.uuid in context.scope.consumers
    if context.with_amounts or is_named or server.uuid in listed.differing:
        return True
    # On which of several providers the amounts have to be, only the tree of the host shows.
    if view.server_trees[own] != {own}:
        return True
    return not compare_listed(server, allocation.resources, context.pci_aliases).fits
