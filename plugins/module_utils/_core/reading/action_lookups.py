# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lookups of what was done to a server: its instance actions, as far as a rule needs them.

Nothing here draws a conclusion: `judging.engine` does.
"""

from __future__ import annotations

import dataclasses as d
from collections.abc import Iterable

from ..clients.nova import NovaReader
from ..facts.guest_location import list_relevant_request_ids
from ..facts.listings_index import ListingsIndex
from ..facts.move_records import find_placement_after_unshelve, list_repeated_unshelves
from ..facts.port_leaks import MAX_PORT_ACTIONS, list_port_actions, may_have_leak
from ..facts.server import build_server_view
from ..models.nova import (
    COLD_MIGRATION_TYPES,
    PLACING_ACTIONS,
    UNHOSTED_STATUSES,
    UNSHELVE_ACTION,
    Action,
    Migration,
    Server,
)
from ..models.snapshot import NOT_ASKED, Answer, Evidence

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
