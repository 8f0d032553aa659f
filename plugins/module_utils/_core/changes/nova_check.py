# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether Nova bears out what a journal says: anybody can write one, with a fitting digest."""

from __future__ import annotations

import functools
import typing as t
from collections.abc import Iterable, Mapping, Sequence

from ..clients.nova import NovaReader
from ..models.change import Change
from ..models.nova import (
    COLD_MIGRATION_TYPES,
    FAILED_MIGRATION_STATUSES,
    MOVING_STATUSES,
    SUCCESSFUL_MIGRATION_STATUSES,
    Migration,
    Server,
)
from ..models.placement import Provider
from ..models.snapshot import Answer
from ..options.policy import Policy

# The kinds of findings about consumers that Nova does not have, or not as a server.
_OF_ABSENT_SERVERS = ("deleted_server", "unknown_consumer")
_OF_MIGRATIONS = ("ended_migration", "deleted_migration")

# After these, a migration has taken its server nowhere.
_HARMLESS_STATUSES = FAILED_MIGRATION_STATUSES | {"cancelled"}


class RestoreCheck:
    """Asks Nova about each consumer that a restoration would give to or take from."""

    def __init__(self, nova: NovaReader, policy: Policy) -> None:
        self._nova = nova
        self._policy = policy

    def explain_exclusion(
        self, providers: Mapping[str, Provider], consumers: Iterable[str], named: Iterable[str]
    ) -> str:
        """Return which exclusion forbids to restore something; empty if none does.

        named: providers by UUID or name.
        """
        excluded = self._excluded_consumers.intersection(consumers)
        if excluded:
            note = self._policy.get_exclusion_note(excluded)
            return f"Consumer {min(excluded)}, or its server, is excluded by name{note}."
        names = set(named)
        # Excluding one provider of a tree excludes the whole tree.
        trees = {known.root for known in providers.values() if {known.uuid, known.name} & names}
        for known in providers.values():
            if known.root in trees:
                names |= {known.uuid, known.name}
        return self._policy.explain_exclusion(names) or ""

    @functools.cached_property
    def _excluded_consumers(self) -> set[str]:
        """The consumers that are excluded by name, and the migrations of those that are servers."""
        excluded = set(self._policy.exclude_consumers)
        for server in self._policy.exclude_consumers:
            migrations = self._nova.list_migrations_of_server(server).value or ()
            excluded.update(migration.uuid for migration in migrations)
        return excluded

    def explain_refusal(self, kind: str, inverse: Change, providers: Mapping[str, Provider]) -> str:
        """Return why `inverse`, which restores a finding of a kind, is not right; empty if it is.

        Raises CloudError where Nova refuses or gives no answer.
        """
        consumer = inverse.consumer
        answer = self._nova.get_server(consumer)
        if answer.value is None and answer.status != 404:
            return f"{_describe_answer(answer)}, so it is not known what {consumer} needs."
        if inverse.partner is not None:
            return self._explain_pair(kind, inverse, inverse.partner, answer.value, providers)
        if answer.value is None:
            return self._explain_absence(kind, consumer)
        if kind in _OF_MIGRATIONS:
            return f"The journal has {consumer} as a migration, and Nova has it as a server."
        _migrations, why = self._read_migrations(answer.value)
        why = why or _explain_presence(kind, inverse, answer.value, providers)
        return why or _explain_owner(inverse, answer.value)

    def _explain_absence(self, kind: str, consumer: str) -> str:
        if kind in _OF_ABSENT_SERVERS:
            return ""
        if kind in _OF_MIGRATIONS and self._nova.probe_migration_marker(consumer).status == 200:
            return ""
        return f"Nova does not know {consumer}, for which the journal has a finding {kind}."

    def _read_migrations(self, server: Server) -> tuple[Sequence[Migration], str]:
        """Return the migrations of a server, and what Nova is doing with it; empty for nothing."""
        why = f"Nova is changing server {server.uuid}: restore again when it has finished."
        if server.task_state or not server.task_known:
            return (), why
        if server.status in (*MOVING_STATUSES, "BUILD", "UNKNOWN"):
            return (), why
        answer = self._nova.list_migrations_of_server(server.uuid)
        if answer.value is None:
            return (), f"{_describe_answer(answer)}, so its migrations are not known."
        if not all(migration.ended for migration in answer.value):
            return (), why
        return answer.value, ""

    def _explain_pair(
        self,
        kind: str,
        inverse: Change,
        partner: Change,
        server: Server | None,
        providers: Mapping[str, Provider],
    ) -> str:
        """Return why a server must not give its allocation to its failed migration."""
        if server is None:
            return f"Nova does not have server {inverse.consumer}."
        migrations, why = self._read_migrations(server)
        if why:
            return why
        move = next((move for move in migrations if move.uuid == partner.consumer), None)
        if move is None or kind != "unreverted_allocation":
            return f"Nova lists no migration {partner.consumer} of server {server.uuid}."
        if move.type not in COLD_MIGRATION_TYPES or move.status in SUCCESSFUL_MIGRATION_STATUSES:
            return f"Migration {move.uuid} did not fail: it is a {move.type} and {move.status}."
        later = self._find_later_move(server, move, migrations)
        if later:
            return f"Server {server.uuid} was moved again since ({later})."
        if not inverse.after["allocations"]:
            return f"Server {server.uuid} would be left without an allocation."
        lost = _name_hosts(inverse.before["allocations"], inverse.after["allocations"], providers)
        gained = _name_hosts(inverse.after["allocations"], inverse.before["allocations"], providers)
        if lost != {move.source_node} or gained != {move.dest_node} or server.node not in lost:
            return (
                f"Migration {move.uuid} was from {move.source_node} to {move.dest_node}, "
                f"and server {server.uuid} is on {server.node}: the journal has other hosts."
            )
        if any(_name_hosts({uuid: 0}, {}, providers) <= lost for uuid in inverse.allocates):
            return f"Migration {move.uuid} would get more than server {server.uuid} has."
        return ""

    def _find_later_move(
        self, server: Server, move: Migration, migrations: Iterable[Migration]
    ) -> str:
        """Return what has moved a server since `move`, by Nova; empty for nothing."""
        for other in migrations:
            is_later = not (other.created_at and move.created_at)
            is_later = is_later or str(other.created_at) >= str(move.created_at)
            if other != move and is_later and other.status not in _HARMLESS_STATUSES:
                return f"{other.type} {other.uuid}"
        # An unshelve claims anew, and is no migration.
        answer = self._nova.list_instance_actions(server.uuid)
        if answer.value is None:
            return f"{_describe_answer(answer)}"
        for action in answer.value:
            if action.action == "unshelve" and str(action.start_time) >= str(move.created_at):
                return "unshelve"
        return ""


def _describe_answer(answer: Answer[t.Any]) -> str:
    return f"Nova answered {answer.status} to {answer.request}"


def _explain_owner(inverse: Change, server: Server) -> str:
    """Return why the owner is not that of a live server; empty if it is, or is to stay."""
    owner = (inverse.after["project_id"], inverse.after["user_id"])
    known = [(server.project, server.user)]
    if inverse.generation is not None:
        known.append((inverse.before["project_id"], inverse.before["user_id"]))
    # Also for `wrong_owner`: anybody can write down whose allocation it was.
    if owner in known:
        return ""
    return f"The journal has another project or user than server {server.uuid} has."


def _explain_presence(
    kind: str, inverse: Change, server: Server, providers: Mapping[str, Provider]
) -> str:
    """Return why a kind about absent servers does not fit to a live one; empty if it does."""
    allocations = inverse.after["allocations"].items()
    hosts = {uuid: share for uuid, share in allocations if not providers[uuid].sharing}
    # What was removed in error is on its own host.
    if kind not in _OF_ABSENT_SERVERS or _name_hosts(hosts, (), providers) == {server.node}:
        return ""
    return f"The journal has {server.uuid} as {kind}, and Nova has it on {server.node}."


def _name_hosts(
    allocations: Mapping[str, t.Any], others: Iterable[str], providers: Mapping[str, Provider]
) -> set[str | None]:
    """Return the names of the roots that only `allocations` are on, and not `others`."""
    roots = {providers[uuid].root for uuid in set(allocations) - set(others)}
    return {providers[root].name for root in roots}
