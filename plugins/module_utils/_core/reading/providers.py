# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the inventories and traits that a rule needs."""

from __future__ import annotations

import dataclasses as d
from collections.abc import Collection, Iterable, Mapping, Sequence

from ..clients.placement import PlacementReader
from ..facts.index import ListingsIndex, find_nova_roots
from ..models.placement import Allocations, ProviderDetails
from ..models.snapshot import FORMER_ROOTS, INVENTORIES
from ..options.scope import is_needed

# The inventories of at most so many providers are read only because candidates name them.
_MAX_DETAILED_PROVIDERS = 100


def list_covered_roots_without_node(index: ListingsIndex) -> set[str]:
    """Return the root providers in the scope that are not a compute node's.

    There are none where no kind that is asked for is about them.
    """
    if not is_needed(FORMER_ROOTS, index.listings.scope):
        return set()
    return _list_covered_roots(index) - set(index.nodes)


def read_details(
    placement: PlacementReader, index: ListingsIndex, without_node: Collection[str]
) -> dict[str, ProviderDetails]:
    """Read the inventories and traits that a rule has to know, by provider.

    These are root providers `without_node`, and compute nodes whose capacity was asked for.
    """
    scope = index.listings.scope
    wanted: set[str] = set()
    if scope.is_narrow or is_needed(INVENTORIES, scope):
        wanted = _list_covered_roots(index) & set(index.nodes) & set(index.providers)
    return {
        **placement.get_details(sorted(wanted), ("inventories",)),
        **placement.get_details(sorted(without_node), ("inventories", "traits")),
    }


def add_inventories(
    placement: PlacementReader,
    index: ListingsIndex,
    candidates: Iterable[str],
    details: Mapping[str, ProviderDetails],
) -> dict[str, ProviderDetails]:
    """Return `details`, with the inventories of the providers of the candidates.

    They only show how full these providers are, and cost a request each, so they are read only if
    they are few.
    """
    allocated = _list_allocated_providers(index, candidates)
    if len(allocated) > _MAX_DETAILED_PROVIDERS:
        return dict(details)
    known = {uuid for uuid in details if details[uuid].inventories}
    wanted = sorted((allocated & set(index.providers)) - known)
    return _add_part(placement, details, wanted, "inventories")


def read_missing_traits(
    placement: PlacementReader,
    index: ListingsIndex,
    allocations_by_consumer: Iterable[Allocations],
    details: Mapping[str, ProviderDetails],
) -> dict[str, ProviderDetails]:
    """Return `details`, with the traits of the allocated roots that are not a compute node's.

    They say whether a root was a compute node's.
    """
    known = find_nova_roots(details)
    allocated = index.providers.keys() & set().union(*allocations_by_consumer)
    providers = [index.providers[uuid] for uuid in allocated]
    roots = {provider.root for provider in providers if not provider.sharing}
    wanted = sorted(roots.difference(index.nodes, known))
    return _add_part(placement, details, wanted, "traits")


def _add_part(
    placement: PlacementReader,
    details: Mapping[str, ProviderDetails],
    providers: Sequence[str],
    part: str,
) -> dict[str, ProviderDetails]:
    """Return `details`, with one more part of some providers, a field of ProviderDetails."""
    completed = dict(details)
    if not providers:
        return completed
    for uuid, read in placement.get_details(providers, (part,)).items():
        # What was read of it before stays.
        before = details.get(uuid, ProviderDetails())
        completed[uuid] = d.replace(before, **{part: getattr(read, part)})
    return completed


def _list_covered_roots(index: ListingsIndex) -> set[str]:
    return {root.uuid for root in index.roots if index.covers(root.uuid)}


def _list_allocated_providers(index: ListingsIndex, candidates: Iterable[str]) -> set[str]:
    """Return the providers in the allocations of the candidates, of a shard only those in it."""
    held = index.listings.allocations
    providers: set[str] = set().union(*(held.get(uuid, ()) for uuid in candidates))
    if not index.listings.scope.shard:
        return providers
    return {uuid for uuid in providers if index.covers(index.providers[uuid].root)}
