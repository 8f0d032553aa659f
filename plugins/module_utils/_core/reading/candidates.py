# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Selects the candidates, and the hosts that are asked for their servers.

A listing only names candidates; only direct answers about a candidate prove anything.
"""

from __future__ import annotations

import dataclasses as d
import itertools
import threading
from collections.abc import Collection, Container, Iterable, Mapping, Sequence

from ..._common.errors import InvalidInput
from ..._common.parallel import map_parallel
from ..._common.text import summarize_names
from ..._common.times import is_earlier, seconds_between
from ..clients.nova import NovaReader
from ..facts.devices import list_network_amounts
from ..facts.listings_index import ListingsIndex, group_by_tree
from ..facts.soundness import list_down_cell_hosts, list_failed_checks
from ..models.nova import MOVING_ACTIONS, MOVING_STATUSES, Action, Migration, Server
from ..models.placement import Allocations
from ..models.snapshot import NOT_ASKED, Answer, Evidence, Snapshot
from .amounts import AmountNominator
from .hosts_to_ask import HostChoice, ServerLocations
from .servers import WORKERS_ASKED
from .shards import is_left_to_other_shard


def find_candidates(
    index: ListingsIndex,
    server_details: Mapping[str, Server] | None = None,
    living: Collection[str] = (),
    amounts: AmountNominator | None = None,
) -> list[str]:
    """Return the consumers that the listings do not show to be in order, sorted.

    A server is in order if its allocation is in the tree of its host and nowhere else.

    server_details: servers by uuid whose flavor was read because their host was one of
        `choose_hosts_for_server_details`.
    living: the servers that Nova lists, where it could not list its compute nodes; those are not
        candidates then.
    amounts: what names servers whose amounts have to be looked up, made of `server_details`.
    """
    if not index.nodes:
        return _list_consumers_not_living(index, living)
    scope, without_allocation = index.listings.scope, _list_servers_without_allocation(index)
    allocations_by_consumer = index.listings.allocations
    if scope.shard:
        allocations_by_consumer = {
            consumer: allocations
            for consumer, allocations in allocations_by_consumer.items()
            if not is_left_to_other_shard(consumer, allocations, index)
        }
    if scope.needs_every_lookup:
        return sorted({*allocations_by_consumer, *scope.consumers, *without_allocation})
    locations, details = ServerLocations(index), server_details or {}
    amounts = amounts or AmountNominator(index, details, HostChoice(), {})
    candidates = without_allocation
    for consumer, allocations in allocations_by_consumer.items():
        server = details.get(consumer)
        # On a host with several nodes only the server itself says on which it is.
        at_home = locations.has_only_own_tree(consumer, allocations) or _has_only_tree_of_node(
            server, allocations, index
        )
        has_wrong_amounts = amounts.names(consumer)
        # What its ports request, only a lookup shows. The user has asked for it of every server.
        may_have_leak = scope.seeks("leaked_port") and list_network_amounts(allocations)
        if not at_home or has_wrong_amounts or may_have_leak:
            candidates.add(consumer)
    return sorted(candidates)


def _list_consumers_not_living(index: ListingsIndex, living: Collection[str]) -> list[str]:
    """Return the consumers that are not `living` servers, those on hosts of silent cells last."""
    silent = set(list_down_cell_hosts(index.listings.services))
    first, last = [], []
    for consumer, allocations in index.listings.allocations.items():
        if consumer in living:
            continue
        if silent.isdisjoint(index.list_hosts_of(allocations)):
            first.append(consumer)
        else:
            last.append(consumer)
    return [*sorted(first), *sorted(last)]


def limit_candidates(candidates: list[str], index: ListingsIndex, at_most: int) -> list[str]:
    """Return the `candidates` that can be judged, and `at_most` so many of the others.

    The others are read only as examples.
    """
    if list_failed_checks(index.listings):
        return candidates[:at_most]
    if not index.unjudged_hosts:
        return candidates
    kept, silent = [], 0
    for consumer in candidates:
        if _may_be_in_silent_cell(index.listings.allocations.get(consumer, {}), index):
            silent += 1
            if silent > at_most:
                continue
        kept.append(consumer)
    return kept


def _may_be_in_silent_cell(allocations: Allocations, index: ListingsIndex) -> bool:
    """Return whether an allocation may be of a host in a cell that does not answer."""
    for root in group_by_tree(allocations, index):
        node = index.nodes.get(root or "")
        if node is None or node.host in index.unjudged_hosts:
            return True
    return False


def _list_servers_without_allocation(index: ListingsIndex) -> set[str]:
    """Return the servers on the hosts in scope that have no allocation."""
    servers: set[str] = set()
    for node in index.nodes.values():
        if index.covers(node.uuid):
            servers.update(node.servers or ())
    return servers.difference(index.listings.allocations)


def _has_only_tree_of_node(
    server: Server | None, allocations: Allocations, index: ListingsIndex
) -> bool:
    """Return whether the allocations are of the compute node on which the server says it is."""
    if server is None:
        return False
    tree = index.find_tree_at(server.host, server.node)
    return tree is not None and set(group_by_tree(allocations, index)) == {tree}


# The migrations of so many servers are looked up one by one.
_MAX_SERVERS = 20


class UnlistedMovesReader:
    """Reads once which servers are being moved although Nova lists no such migration."""

    def __init__(self, nova: NovaReader) -> None:
        self._nova = nova
        self._lock = threading.Lock()
        self._answer: Answer[tuple[str, ...]] = NOT_ASKED

    @property
    def answer(self) -> Answer[tuple[str, ...]]:
        """The uuids of these servers, with the last listing of servers as the request."""
        return self._answer

    def read(self, index: ListingsIndex, consumers: Container[str]) -> None:
        """Compare the servers that are being moved with the migrations that Nova lists.

        consumers: all candidates of the reading.
        """
        with self._lock:
            if self._answer == NOT_ASKED:
                self._answer = self._read(index, consumers)

    def _read(self, index: ListingsIndex, consumers: Container[str]) -> Answer[tuple[str, ...]]:
        answer: Answer[tuple[str, ...]] = NOT_ASKED
        moving: set[str] = set()
        # An API worker that does not know the cell of a server leaves it out.
        for status, attempt in itertools.product(MOVING_STATUSES, range(WORKERS_ASKED)):
            answer = self._nova.list_server_uuids_in_status(status, attempt)
            if answer.value is None:
                return answer
            moving.update(answer.value)
        listed: list[str] = []
        unlisted: list[str] = []
        for server in sorted(moving):
            if _has_move(index.get_listed_migrations(server).value or ()):
                listed.append(server)
            else:
                unlisted.append(server)
        # A move that has begun since the listing of migrations was read is found now.
        for server in unlisted[:_MAX_SERVERS]:
            migrations = self._nova.list_migrations_of_server(server).value
            # A candidate that no listing has as a migration was deleted: the answer is an old one.
            if not migrations or _has_unlisted_candidate(migrations, index, consumers):
                continue
            if self._is_under_way(server, migrations):
                unlisted.remove(server)
        unlisted += self._find_later_moves(listed, index)
        return d.replace(answer, value=tuple(sorted(unlisted)))

    def _find_later_moves(self, servers: Sequence[str], index: ListingsIndex) -> list[str]:
        """Return those of `servers` that have begun another move than the listed one.

        A move that was interrupted can keep its status for ever.
        """

        def is_under_way(server: str) -> bool:
            return self._is_under_way(server, index.get_listed_migrations(server).value or ())

        if not servers:
            return []
        answers = map_parallel(is_under_way, servers, self._nova.workers)
        return [server for server, yes in zip(servers, answers, strict=True) if not yes]

    def _is_under_way(self, server: str, migrations: tuple[Migration, ...]) -> bool:
        """Return whether the newest of the migrations is the move under way.

        The resource tracker of a host gives the status `error` to a migration that it calls stale
        (nova/compute/resource_tracker.py), also while its server waits for a confirmation.
        """
        newest = _get_newest(migrations)
        if newest.ended and newest.status != "error":
            return False
        actions = self._nova.list_instance_actions(server).value
        if actions is None:
            return False
        if newest.ended:
            return _is_of_last_action(migrations, actions)
        return not _has_later_action(migrations, actions)


def _has_unlisted_candidate(
    migrations: Iterable[Migration], index: ListingsIndex, consumers: Container[str]
) -> bool:
    """Return whether one of `migrations` is a candidate, and is not listed as a migration."""
    for migration in migrations:
        if migration.uuid in consumers and migration.uuid not in index.migrations:
            return True
    return False


def _has_move(migrations: tuple[Migration, ...]) -> bool:
    """Return whether the newest migration of a server is not over."""
    return bool(migrations) and not _get_newest(migrations).ended


def _get_newest(migrations: tuple[Migration, ...]) -> Migration:
    return max(migrations, key=lambda migration: migration.created_at or "")


def _is_of_last_action(migrations: tuple[Migration, ...], actions: Iterable[Action]) -> bool:
    """Return whether no record is missing, and the newest one is of the last action that moved.

    Nova makes at most one record for each action, after the action. If that of the last action is
    missing, the newest one is older than the action, and there are fewer records than actions.
    """
    starts = _list_starts(actions)
    if not starts or len(migrations) < len(starts):
        return False
    return _is_since(migrations, max(starts))


def _has_later_action(migrations: tuple[Migration, ...], actions: Iterable[Action]) -> bool:
    """Return whether the record of the last action that moved is missing.

    There are fewer records than actions also where an action was given up before it had one, and
    the newest one is older than its action also where two clocks differ: only both show it.
    """
    starts = _list_starts(actions)
    return len(migrations) < len(starts) and not _is_since(migrations, max(starts))


def _list_starts(actions: Iterable[Action]) -> list[str]:
    """Return when the actions that move a server were requested."""
    return [action.start_time or "" for action in actions if action.action in MOVING_ACTIONS]


def _is_since(migrations: tuple[Migration, ...], start: str) -> bool:
    """Return whether the newest migration was made at `start` or later."""
    created_at = _get_newest(migrations).created_at
    are_known = seconds_between(start, created_at) is not None
    return are_known and not is_earlier(created_at, start)


def check_named_consumers(snapshot: Snapshot, seen_before: Collection[str]) -> None:
    """Raise InvalidInput for a named consumer that neither Placement nor Nova knows.

    seen_before: the consumers that an earlier run reported, which it may have removed.
    """
    unknown = []
    for uuid in snapshot.scope.consumers:
        evidence = snapshot.evidence.get(uuid)
        if evidence is not None and uuid not in seen_before and _is_unknown(evidence, snapshot):
            unknown.append(uuid)
    if unknown:
        raise InvalidInput(
            f"consumers: neither Placement nor Nova knows {summarize_names(unknown)}. "
            "Give the UUIDs of servers, migrations or other consumers of this cloud."
        )


def _is_unknown(evidence: Evidence, snapshot: Snapshot) -> bool:
    """Return whether every answer about a uuid says that there is nothing of it.

    An answer that says nothing, such as that of a cell that is down, does not count.
    """
    allocation = evidence.allocation.value
    if allocation is None or allocation.resources:
        return False
    if evidence.uuid in snapshot.allocations:
        return False
    if evidence.server.status != 404 or evidence.marker.status != 400:
        return False
    if evidence.migrations.value != () or evidence.deleted_listing.value != ():
        return False
    has_rows = any(answer.value != () for answer in evidence.rows)
    return not has_rows and not evidence.actions.value
