# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which consumers are candidates, by the listings alone. Pure.

A listing only names candidates; only direct answers about a candidate prove anything.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..facts.listings_index import ListingsIndex, group_by_tree
from ..facts.port_leaks import list_network_amounts
from ..facts.soundness import list_down_cell_hosts, list_failed_checks
from ..models.nova import Server
from ..models.placement import Allocations
from .amounts import AmountNominator
from .hosts_to_ask import HostChoice
from .server_locations import ServerLocations
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
