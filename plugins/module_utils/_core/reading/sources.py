# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whom the table in `order` asks, and what concerns several consumers, which is read once."""

from __future__ import annotations

import dataclasses as d
import functools
import itertools
import threading
import typing as t
from collections.abc import Callable, Container, Iterable, Sequence

from ..._common.parallel import ReadOnce, map_parallel
from ..._common.times import is_earlier, seconds_between
from ..clients.nova import NovaReader
from ..clients.other_services import CyborgReader, NeutronReader, VolumeReader
from ..clients.placement import PlacementReader
from ..facts.index import ListingsIndex
from ..models.nova import MOVING_ACTIONS, MOVING_STATUSES, Action, Migration
from ..models.placement import Totals
from ..models.snapshot import (
    FORMER_TREE,
    HOST_SERVERS,
    NOT_ASKED,
    OWN_USAGES,
    Answer,
    HostAllocations,
)

# Of so many servers without an allocation on a host the actions are read; any other may have been
# moved.
_MAX_LACKING = 10
# The migrations of so many servers are looked up one by one.
_MAX_MOVING = 20


@d.dataclass(frozen=True)
class Clients:
    """The services that are asked about consumers, and whether another Nova is beside this one."""

    placement: PlacementReader
    nova: NovaReader
    neutron: NeutronReader
    volumes: VolumeReader
    cyborg: CyborgReader
    query_other_novas: Callable[[], Answer[tuple[str, ...]]]


class Sources:
    """The clients of one reading, with what concerns several consumers and is therefore read once.

    list_migrations: returns the migrations of a server, from a listing or by a request of its own;
        chosen once all allocations were read.
    """

    list_migrations: Callable[[str], Answer[tuple[Migration, ...]]]

    def __init__(self, clients: Clients, index: ListingsIndex, consumers: Container[str]) -> None:
        """Ask nothing yet. consumers: all that are looked up, with the servers of migrations."""
        self.clients = clients
        placement, nova = clients.placement, clients.nova
        self.at_hosts = MigrationsAtHosts(nova)
        self.host_trees = ReadOnce(placement.query_host_tree)
        self.host_allocations = ReadOnce(
            functools.partial(read_host_allocations, placement, nova, index)
        )
        self.host_totals = ReadOnce(functools.partial(read_host_totals, placement, index))
        self.former_trees = ReadOnce(functools.partial(read_former_tree, placement, nova, index))
        self.unlisted_moves = ReadOnce(
            functools.partial(read_unlisted_moves, nova, index, consumers)
        )
        self.device_profiles = ReadOnce(clients.cyborg.get_device_profile)


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


def read_host_allocations(
    placement: PlacementReader, nova: NovaReader, index: ListingsIndex, root: str
) -> HostAllocations:
    """Return what shows whether a server on the compute node `root` lacks an allocation.

    Placement is read before Nova, so that a server that has just arrived seems to lack one.
    """
    tree = [known.uuid for known in index.providers.values() if known.root == root]
    host = HostAllocations(
        tree=placement.query_tree_allocations(root, tree),
        servers=nova.list_server_uuids_on_host(index.nodes[root].host),
    )
    listed = index.nodes[root].servers or ()
    lacking = host.list_servers_without(root, listed, index.get_listed_migrations)
    actions = {uuid: nova.list_instance_actions(uuid) for uuid in lacking[:_MAX_LACKING]}
    lookups = {
        uuid: nova.get_server(uuid)
        for uuid in actions
        if host.list_left_behind(index.get_listed_migrations(uuid).value or ())
    }
    return d.replace(host, actions=actions, lookups=lookups)


def read_host_totals(placement: PlacementReader, index: ListingsIndex, root: str) -> Answer[Totals]:
    """Return the first answer of a tree's providers that does not show that all is listed."""
    answer: Answer[Totals] = NOT_ASKED
    for provider in sorted(index.providers):
        if index.get_root(provider) == root:
            answer = placement.query_totals(provider)
            if answer.value is None or answer.value.hidden:
                break
    return answer


def read_former_tree(
    placement: PlacementReader, nova: NovaReader, index: ListingsIndex, key: tuple[str, str, str]
) -> dict[str, t.Any]:
    """Return the answers about a former provider and the host that it was of.

    Placement is read before Nova, so that a server that has just moved is seen on its new host.

    key: the root of the former tree, that of the tree which the host has now, and the host.
    """
    root, own, host = key
    tree = [provider.uuid for provider in index.providers.values() if provider.root == root]
    return {
        FORMER_TREE: placement.query_tree_allocations(root, tree),
        OWN_USAGES: placement.query_usages(own),
        HOST_SERVERS: nova.list_server_uuids_on_host(host),
    }


def read_unlisted_moves(
    nova: NovaReader, index: ListingsIndex, consumers: Container[str], times: int
) -> Answer[tuple[str, ...]]:
    """Return which servers are being moved although Nova lists no such migration.

    consumers: all candidates of the reading.
    times: how often each listing is asked for.
    """
    answer: Answer[tuple[str, ...]] = NOT_ASKED
    moving: set[str] = set()
    # An API worker that does not know the cell of a server leaves it out.
    for status, attempt in itertools.product(MOVING_STATUSES, range(times)):
        answer = nova.list_server_uuids_in_status(status, attempt)
        if answer.value is None:
            return answer
        moving.update(answer.value)
    listed = [
        server
        for server in sorted(moving)
        if _has_move(index.get_listed_migrations(server).value or ())
    ]
    unlisted = sorted(moving.difference(listed))
    # A move that has begun since the listing of migrations was read is found now.
    for server in unlisted[:_MAX_MOVING]:
        migrations = nova.list_migrations_of_server(server).value
        # A candidate that no listing has as a migration was deleted: the answer is an old one.
        if not migrations or _has_unlisted_candidate(migrations, index, consumers):
            continue
        if _is_under_way(nova, server, migrations):
            unlisted.remove(server)
    unlisted += _find_later_moves(nova, listed, index)
    return d.replace(answer, value=tuple(sorted(unlisted)))


def _find_later_moves(nova: NovaReader, servers: Sequence[str], index: ListingsIndex) -> list[str]:
    """Return those of `servers` that have begun another move than the listed one.

    A move that was interrupted can keep its status for ever.
    """

    def is_under_way(server: str) -> bool:
        return _is_under_way(nova, server, index.get_listed_migrations(server).value or ())

    if not servers:
        return []
    answers = map_parallel(is_under_way, servers, nova.workers)
    return [server for server, yes in zip(servers, answers, strict=True) if not yes]


def _is_under_way(nova: NovaReader, server: str, migrations: tuple[Migration, ...]) -> bool:
    """Return whether the newest of the migrations is the move under way.

    The resource tracker of a host gives the status `error` to a migration that it calls stale
    (nova/compute/resource_tracker.py), also while its server waits for a confirmation.
    """
    newest = _get_newest(migrations)
    if newest.ended and newest.status != "error":
        return False
    actions = nova.list_instance_actions(server).value
    if actions is None:
        return False
    if newest.ended:
        return _is_of_last_action(migrations, actions)
    return not _has_later_action(migrations, actions)


def _has_unlisted_candidate(
    migrations: Iterable[Migration], index: ListingsIndex, consumers: Container[str]
) -> bool:
    """Return whether one of `migrations` is a candidate, and is not listed as a migration."""
    uuids = [migration.uuid for migration in migrations]
    return any(uuid in consumers and uuid not in index.migrations for uuid in uuids)


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
