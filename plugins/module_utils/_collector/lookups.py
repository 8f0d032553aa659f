# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at
# any time.
# Do not use this from other collections or standalone plugins/modules!

"""The lookups of one consumer: what it is, what is allocated to it, and where it is.

Nothing here draws a conclusion: `_rules.engine` does.
"""

from __future__ import annotations

import dataclasses as d
import threading
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._clients.accelerators import (
    DeviceProfiles,
)
from ansible_collections.osops.placement.plugins.module_utils._collector.amount_lookups import (
    AmountLookups,
)
from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
    COLD_MIGRATION_TYPES,
    PLACING_ACTIONS,
    UNHOSTED_STATUSES,
    UNSHELVE_ACTION,
)
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import (
    NOT_ASKED,
    Evidence,
    ListedAmounts,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.guest_location import (
    list_relevant_request_ids,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.listings_index import (
    group_by_tree,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.port_leaks import (
    MAX_PORT_ACTIONS,
    list_port_actions,
    may_have_leak,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.server import (
    ServerView,
    find_deletion,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Iterable, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._clients.accelerators import (
        CyborgReader,
    )
    from ansible_collections.osops.placement.plugins.module_utils._clients.block_storage import (
        VolumeReader,
    )
    from ansible_collections.osops.placement.plugins.module_utils._clients.neutron import (
        NeutronReader,
    )
    from ansible_collections.osops.placement.plugins.module_utils._clients.nova import NovaReader
    from ansible_collections.osops.placement.plugins.module_utils._clients.placement import (
        PlacementReader,
    )
    from ansible_collections.osops.placement.plugins.module_utils._collector.former_trees import (
        FormerTrees,
    )
    from ansible_collections.osops.placement.plugins.module_utils._collector.host_trees import (
        HostTrees,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
        Action,
        Migration,
        Server,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
        Allocation,
        Allocations,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.resource_request import (
        PciAlias,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import (
        Answer,
        Scope,
    )
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.listings_index import (
        ListingsIndex,
    )

# How far back the action that placed or shelved a server is searched; beyond that it stays
# undecided.
_MAX_ACTIONS = 10

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
    host_trees, device_profiles: what is read once for all servers.
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
    former_trees: FormerTrees
    host_trees: HostTrees
    device_profiles: DeviceProfiles
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
        self._amounts = AmountLookups(nova, neutron, volumes, cyborg)

    def start_device_profiles(self) -> DeviceProfiles:
        """Return the device profiles of a new reading."""
        return DeviceProfiles(self._cyborg)

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
        evidence = self._add_revert_evidence(evidence, context.index)
        evidence = self._add_leak_evidence(evidence, context)
        evidence = self._add_former_tree_evidence(evidence, context)
        evidence = self._add_guest_location_evidence(evidence, migration_evidence, context.index)
        return [evidence, *migration_evidence]

    def _collect_migration_evidence(self, consumer: str, context: LookupContext) -> list[Evidence]:
        """Look up the server of a migration that is a consumer of its own."""
        migration = context.index.migrations[consumer]
        subject = self._collect_server_evidence(migration.server, context)
        view = _build_view(subject, context.index)
        # The actions of a server where a failed move ended say whether it was to be reverted.
        if view is not None and view.is_at_failed_destination(migration):
            actions = self._nova.list_instance_actions(migration.server)
            subject = d.replace(subject, actions=actions)
        return [Evidence(consumer, context.allocations[consumer]), subject]

    def _collect_server_evidence(self, uuid: str, context: LookupContext) -> Evidence:
        """Look up a uuid in Nova: its migrations, then the server or what is left of it."""
        allocation = context.allocations[uuid]
        migrations = context.migrations_of(uuid)
        server = self._nova.get_server(uuid)
        if server.status != 404:
            evidence = self._collect_live_evidence(Evidence(uuid, allocation, migrations, server))
            return self._add_unshelve_action(evidence, context.index)
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

    def _collect_live_evidence(self, evidence: Evidence) -> Evidence:
        """Add the actions of a server for which a direct lookup was not a 404."""
        server = evidence.server.value
        actions, last_actions = self._read_last_actions(server)
        if server is not None and server.host and not evidence.migrations.value:
            # No migration may also be the answer of an API worker that does not know the server's
            # cell. Actions are asked there.
            actions = self._nova.list_instance_actions(evidence.uuid)
        return d.replace(evidence, actions=actions, last_actions=last_actions)

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
        # Whether a server on its hosts may need the allocation of a migration without a record.
        if marker.status == 200:
            for root in group_by_tree(resources, context.index):
                if root in context.index.nodes:
                    context.host_trees.read_allocations(root, context.index)
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
        scope = context.scope
        # The listing of every host's servers has shown all rows already.
        if not context.fresh and context.index.has_servers_of_every_host:
            return ()
        if scope.mode != "full" or not scope.includes_any("unknown_consumer"):
            return ()
        times = WORKERS_ASKED
        if context.fresh:
            times = WORKERS_ASKED_BEFORE_A_WRITE
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
            times = WORKERS_ASKED
            if context.fresh:
                times = WORKERS_ASKED_BEFORE_A_WRITE
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
        view = _build_view(evidence, context.index)
        if view is None:
            return evidence
        return self._amounts.add_evidence(view, context)

    def _add_revert_evidence(self, evidence: Evidence, index: ListingsIndex) -> Evidence:
        """Look up whether a failed move may have been reverted to a host with an allocation.

        Only the actions of the server say so.
        """
        view = _build_view(evidence, index)
        if view is None or evidence.actions != NOT_ASKED or not view.settled:
            return evidence
        others = [root for root in view.server_trees if root and root != view.own_tree]
        # Without the actions, every such move may have been reverted.
        if not view.find_possible_revert_to(others):
            return evidence
        return d.replace(evidence, actions=self._nova.list_instance_actions(evidence.uuid))

    def _add_leak_evidence(self, evidence: Evidence, context: LookupContext) -> Evidence:
        """Look up what was done to the ports of a server that may have too much of a child.

        This comes after its ports were read: what Nova is doing to one of them was recorded before.
        """
        view = _build_view(evidence, context.index)
        if view is None or evidence.shape == NOT_ASKED or not may_have_leak(view):
            return evidence
        actions = self._nova.list_instance_actions(evidence.uuid)
        port_actions = []
        for action in list_port_actions(actions.value or ())[:MAX_PORT_ACTIONS]:
            port_actions.append(self._nova.get_instance_action(evidence.uuid, action.request_id))
        return d.replace(evidence, actions=actions, port_actions=tuple(port_actions))

    def _add_former_tree_evidence(self, evidence: Evidence, context: LookupContext) -> Evidence:
        """Look up the tree of a server's allocation, if it may be its host's former provider."""
        view = _build_view(evidence, context.index)
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
        former = context.former_trees.read(root, view.own_tree, host, context.index)
        return d.replace(
            evidence,
            former_tree=former.tree,
            own_usages=former.usages,
            host_servers=former.servers,
        )

    def _collect_migration_allocations(
        self, evidence: Evidence, context: LookupContext
    ) -> list[Evidence]:
        """Look up the allocations of the ended migrations of a server without one on its host."""
        view = _build_view(evidence, context.index)
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

    def _add_unshelve_action(self, evidence: Evidence, index: ListingsIndex) -> Evidence:
        """Look up whether a server that is not where its newest move ended was unshelved since.

        Nova creates no migration for an unshelve.
        """
        view = _build_view(evidence, index)
        if view is None or not view.settled or view.arrived:
            return evidence
        actions = self._nova.list_instance_actions(evidence.uuid)
        for action in actions.value or ():
            if action.action == UNSHELVE_ACTION:
                newest = self._nova.get_instance_action(evidence.uuid, action.request_id)
                return d.replace(evidence, actions=actions, last_actions=(newest,))
        return d.replace(evidence, actions=actions, last_actions=())

    def _add_guest_location_evidence(
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
        """List the actions of a server without a host, and read each back to the newest placement.

        Actions before a shelve that its host has finished are not read: they were over by then.
        """
        if server is None or server.host or server.status not in UNHOSTED_STATUSES:
            return NOT_ASKED, ()
        actions = self._nova.list_instance_actions(server.uuid)
        listed = actions.value or ()
        answers: list[Answer[Action]] = []
        for number, action in enumerate(listed[:_MAX_ACTIONS]):
            answer = self._nova.get_instance_action(server.uuid, action.request_id)
            answers.append(answer)
            if action.action in PLACING_ACTIONS:
                break
            if answer.value and answer.value.shelving_hosts:
                placing = _find_placing_action(listed[number:])
                if placing is not None:
                    answers.append(self._nova.get_instance_action(server.uuid, placing.request_id))
                break
        return actions, tuple(answers)


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


def _build_view(evidence: Evidence, index: ListingsIndex) -> ServerView | None:
    """Return the view of a live server whose allocation was read, None without one."""
    if evidence.allocation.value is None or evidence.server.value is None:
        return None
    return ServerView(index=index, subject=evidence)


def _get_project(evidence: Evidence) -> str | None:
    server = evidence.server.value
    if server is None:
        return None
    return server.project


def _find_placing_action(actions: Iterable[Action]) -> Action | None:
    """Return the first of the actions that can give a host to a server."""
    for action in actions:
        if action.action in PLACING_ACTIONS:
            return action
    return None


def _list_cold_migrations_with_host(
    evidence: Evidence, migration_evidence: Iterable[Evidence], index: ListingsIndex
) -> list[Migration]:
    """Return the cold migrations with an allocation on the host of their server, newest first."""
    view = _build_view(evidence, index)
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
