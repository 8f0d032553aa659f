# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at
# any time.
# Do not use this from other collections or standalone plugins/modules!

"""The questions that are asked about one consumer: what it is, what it holds, and where it lives.

Nothing here concludes anything: `_rules.engine` does.
"""

from __future__ import annotations

import dataclasses as d
import threading
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
    COLD_MIGRATION_TYPES,
    PLACING_ACTIONS,
    UNHOSTED_STATUSES,
    UNSHELVE_ACTION,
)
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import (
    NOT_ASKED,
    Evidence,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.consumer import (
    ConsumerView,
    find_deletion,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.flavor import (
    needs_resource_lookups,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.guest_location import (
    list_relevant_request_ids,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._clients.neutron import (
        NeutronReader,
    )
    from ansible_collections.osops.placement.plugins.module_utils._clients.nova import NovaReader
    from ansible_collections.osops.placement.plugins.module_utils._clients.placement import (
        PlacementReader,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
        Action,
        Migration,
        Server,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
        Allocation,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Answer
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.index import (
        SnapshotIndex,
    )

# How far back the action that placed or shelved a server is looked for; beyond that it stays
# undecided.
_MAX_ACTIONS = 10


# How often Nova is asked, each time over another connection and at another address, what one API
# worker that lacks a cell would answer wrongly: at detection, and right before a write.
# docs/safety.md says how likely it is that all of these answers are wrong.
WORKERS_ASKED = 4
WORKERS_ASKED_BEFORE_A_WRITE = 10


class MigrationsAtHosts:
    """The listings of migrations by host; each host's is asked for once for all who hold something
    there.
    """

    def __init__(self, nova: NovaReader) -> None:
        self._nova = nova
        self._lock = threading.Lock()
        self._answers: dict[str, list[Answer[tuple[Migration, ...]]]] = {}

    def list_answers(self, host: str, times: int) -> tuple[Answer[tuple[Migration, ...]], ...]:
        """Return at least `times` answers."""
        with self._lock:
            answers = self._answers.setdefault(host, [])
            while len(answers) < times:
                answers.append(self._nova.list_migrations_of_host(host, len(answers)))
            return tuple(answers)


@d.dataclass(frozen=True)
class LookupContext:
    """What is at hand when consumers are looked at: allocations by consumer, all read before the
    first of its questions is asked.
    """

    index: SnapshotIndex
    allocations: Mapping[str, Answer[Allocation]]
    migrations_of: Callable[[str], Answer[tuple[Migration, ...]]]
    fresh: bool
    at_hosts: MigrationsAtHosts


class Lookups:
    """Asks the three services about single consumers."""

    def __init__(
        self, placement: PlacementReader, nova: NovaReader, neutron: NeutronReader
    ) -> None:
        self._placement = placement
        self._nova = nova
        self._neutron = neutron

    def collect_evidence(self, consumer: str, look: LookupContext) -> list[Evidence]:
        """Ask about one consumer first, then about the server whose migration it is; nothing when
        it is out of scope.
        """
        index, allocation = look.index, look.allocations[consumer]
        holds = allocation.value is not None and bool(allocation.value.resources)
        projects = index.snapshot.scope.projects
        if projects and holds and allocation.value and allocation.value.project not in projects:
            return []
        if consumer in index.migrations:
            if not holds:
                return []
            move = index.migrations[consumer]
            subject = self._collect_server_evidence(move.server, look)
            view = _build_view(subject, index)
            if view is not None and view.is_at_failed_destination(move):
                subject = d.replace(subject, actions=self._nova.list_instance_actions(move.server))
            return [Evidence(consumer, allocation), subject]
        evidence = self._collect_server_evidence(consumer, look)
        if (
            projects
            and not holds
            and (evidence.server.value is None or evidence.server.value.project not in projects)
        ):
            return []
        claims = self._collect_migration_allocations(evidence, look)
        return [
            self._add_guest_location_evidence(
                self._add_flavor_evidence(evidence, index), claims, index
            ),
            *claims,
        ]

    def _collect_server_evidence(self, uuid: str, context: LookupContext) -> Evidence:
        allocation = context.allocations[uuid]
        migrations = context.migrations_of(uuid)
        server = self._nova.get_server(uuid)
        if server.status != 404:
            actions, last_actions = self._read_last_actions(server.value)
            if server.value is not None and server.value.host and not migrations.value:
                # No migration may also be the answer of an API worker that does not know the
                # server's cell. Actions are asked there.
                actions = self._nova.list_instance_actions(uuid)
            evidence = Evidence(
                uuid, allocation, migrations, server, actions=actions, last_actions=last_actions
            )
            return self._add_unshelve_action(evidence, context.index)
        actions = self._nova.list_instance_actions(uuid)
        deleted = self._nova.find_deleted_server(uuid, brief=find_deletion(actions) is not None)
        if deleted.value:
            return Evidence(uuid, allocation, migrations, server, deleted, actions)
        if actions.value:
            # Only these say that its row is marked as deleted; so that it was not made or brought
            # back meanwhile, it is looked for again.
            server = self._nova.get_server(uuid)
        # Nova leaves a cell out of a listing when its database is too slow, and says nothing of it.
        # That a migration is in no listing is therefore asked again with a filter that has an
        # index.
        marker = self._nova.probe_migration_marker(uuid)
        markers, times = self._ask_more_workers(uuid, marker, context)
        hosts = context.index.list_host_names_of(
            allocation.value.resources if allocation.value else ()
        )
        at_hosts = [
            answer for host in hosts for answer in context.at_hosts.list_answers(host, times)
        ]
        return Evidence(
            uuid,
            allocation,
            migrations,
            server,
            deleted,
            actions,
            marker,
            markers,
            host_migrations=tuple(at_hosts),
        )

    def _ask_more_workers(
        self, uuid: str, marker: Answer[bool], context: LookupContext
    ) -> tuple[tuple[Answer[bool], ...], int]:
        """Ask again whether `uuid` is a migration's; return the answers, and how often the listings
        of its hosts are to be asked.

        One API worker may know the uuid as a migration's and another, which does not know its cell,
        list no such migration: together they look like a migration that is deleted.
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
        answers: list[Answer[bool]] = []
        while len(answers) < times - 1 and all(
            answer.status == marker.status for answer in answers
        ):
            answers.append(self._nova.probe_migration_marker(uuid, 1 + len(answers)))
        return tuple(answers)

    def _add_flavor_evidence(self, evidence: Evidence, index: SnapshotIndex) -> Evidence:
        """Ask what a server was given besides its flavor, if its claim may have to be written anew."""
        view = _build_view(evidence, index)
        if view is None or view.own_tree is None or not needs_resource_lookups(view):
            return evidence
        return d.replace(
            evidence,
            shape=self._nova.get_server_with_image_properties(evidence.uuid),
            interfaces=self._nova.list_attached_port_uuids(evidence.uuid),
            ports=self._neutron.list_ports(evidence.uuid),
            stock=self._placement.query_inventories(view.own_tree),
        )

    def _collect_migration_allocations(
        self, evidence: Evidence, context: LookupContext
    ) -> list[Evidence]:
        """Ask what the ended migrations of a server hold that has nothing of its own host."""
        view = _build_view(evidence, context.index)
        if view is None or not view.settled or view.own_tree in view.trees:
            return []
        snapshot = context.index.snapshot
        partly = context.fresh or snapshot.trees is not None
        ended = [
            known.uuid
            for known in view.server_migrations
            if known.ended and (partly or known.uuid in snapshot.allocations)
        ]
        return [Evidence(uuid, self._placement.get_allocation(uuid)) for uuid in ended]

    def _add_unshelve_action(self, evidence: Evidence, index: SnapshotIndex) -> Evidence:
        """Ask whether a server that is not where its newest move ended was unshelved there since,
        which no migration tells.
        """
        view = _build_view(evidence, index)
        if view is None or not view.settled or view.arrived:
            return evidence
        actions = self._nova.list_instance_actions(evidence.uuid)
        newest = next(
            (action for action in actions.value or () if action.action == UNSHELVE_ACTION), None
        )
        told = (self._nova.get_instance_action(evidence.uuid, newest.request_id),) if newest else ()
        return d.replace(evidence, actions=actions, last_actions=told)

    def _add_guest_location_evidence(
        self, evidence: Evidence, migration_evidence: list[Evidence], index: SnapshotIndex
    ) -> Evidence:
        """Ask what was done to a server since a cold migration failed that holds its host: that
        tells where its guest is.
        """
        view = _build_view(evidence, index)
        allocations = {
            claim.uuid
            for claim in migration_evidence
            if claim.allocation.value and view and view.own_tree in claim.allocation.value.resources
        }
        failed = (
            [
                known
                for known in view.server_migrations
                if known.uuid in allocations and known.type in COLD_MIGRATION_TYPES
            ]
            if view
            else []
        )
        if not failed:
            return evidence
        actions = self._nova.list_instance_actions(evidence.uuid)
        known = {
            answer.value.request_id: answer for answer in evidence.last_actions if answer.value
        }
        wanted = {*list_relevant_request_ids(actions.value or (), failed[-1].created_at), *known}
        requests = [
            action.request_id for action in actions.value or () if action.request_id in wanted
        ]
        asked = [
            known.get(request) or self._nova.get_instance_action(evidence.uuid, request)
            for request in requests
        ]
        return d.replace(evidence, actions=actions, last_actions=tuple(asked))

    def _read_last_actions(
        self, server: Server | None
    ) -> tuple[Answer[tuple[Action, ...]], tuple[Answer[Action], ...]]:
        """Ask a server without a host for its actions, and for each down to the newest that could
        give it a host.

        What came between that and a shelve that its host has ended is not asked for: it was over
        then.
        """
        if server is None or server.host or server.status not in UNHOSTED_STATUSES:
            return NOT_ASKED, ()
        actions = self._nova.list_instance_actions(server.uuid)
        listed = actions.value or ()
        asked: list[Answer[Action]] = []
        for number, action in enumerate(listed[:_MAX_ACTIONS]):
            told = self._nova.get_instance_action(server.uuid, action.request_id)
            asked.append(told)
            if action.action in PLACING_ACTIONS:
                break
            if told.value and told.value.shelving_hosts:
                placed_by = next(
                    (older for older in listed[number:] if older.action in PLACING_ACTIONS), None
                )
                asked += (
                    [self._nova.get_instance_action(server.uuid, placed_by.request_id)]
                    if placed_by
                    else []
                )
                break
        return actions, tuple(asked)


def merge_evidence(one: Evidence | None, other: Evidence) -> Evidence:
    """Return what was asked about a consumer for its own sake together with what was asked for the
    sake of another.
    """
    if one is None:
        return other
    answered = {
        field.name: value
        for field in d.fields(one)
        if (value := getattr(one, field.name)) not in (NOT_ASKED, ())
    }
    return d.replace(other, **answered)


def _build_view(evidence: Evidence, index: SnapshotIndex) -> ConsumerView | None:
    """Return the case of a live server, None without one."""
    allocation = evidence.allocation.value
    return (
        ConsumerView(index, allocation, evidence, evidence, None)
        if allocation and evidence.server.value
        else None
    )
