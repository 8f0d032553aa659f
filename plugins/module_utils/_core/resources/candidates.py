# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where Placement would make an allocation, as `allocation_candidate_info` returns it.

Placement decides whether an allocation fits. Why it does not fit a host is worked out in
`host_obstacles`.
"""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..._common.errors import InvalidInput
from ..clients.placement import PlacementReader
from ..models.placement import (
    AllocationCandidates,
    Allocations,
    Provider,
    ProviderSummary,
    Resources,
)
from .candidate_requests import (
    DISABLED_TRAIT,
    ResourceRequest,
    build_query,
    format_resources,
    list_groupings,
)
from .host_obstacles import HostTree, describe_unfit_host


def find_candidates(
    placement: PlacementReader, request: ResourceRequest, name: str | None
) -> dict[str, t.Any]:
    """Return Placement's answer for all hosts, or for one host.

    name: the name or UUID of any provider in the tree of that host.
    Raises InvalidInput if Placement does not have this provider.
    """
    if name is None:
        candidates = placement.list_allocation_candidates(build_query(request))
        return describe_all_hosts(request, candidates, placement.list_providers())
    tree = placement.list_providers_in_trees([name])
    if not tree:
        raise InvalidInput(
            f"Placement has no resource provider with the name or UUID {name!r}: check "
            "resource_provider and the region."
        )
    root = next(provider for provider in tree.values() if provider.parent is None)
    candidates = placement.list_allocation_candidates(build_query(request, root))
    if candidates.allocations:
        return describe_fitting_host(request, root, candidates, tree)
    return _find_candidates_with_sharing(placement, request, root, tree)


def _find_candidates_with_sharing(
    placement: PlacementReader,
    request: ResourceRequest,
    root: Provider,
    tree: Mapping[str, Provider],
) -> dict[str, t.Any]:
    """Return Placement's answer for a host that may need its sharing providers."""
    details = placement.get_details(tree)
    aggregates: set[str] = set()
    for provider_details in details.values():
        aggregates.update(provider_details.aggregates)
    sharing = placement.list_sharing_providers(aggregates)
    shared = placement.get_details(sorted(sharing.keys() - tree.keys()))
    providers = {**sharing, **tree}
    groupings = list_groupings(request, details.values(), shared.values())
    for groups in groupings:
        candidates = placement.list_allocation_candidates(build_query(request, root, groups))
        if candidates.allocations:
            return describe_fitting_host(request, root, candidates, providers)
    # If nothing can come from sharing providers, their inventories are not a reason.
    if groupings:
        details = {**details, **shared}
    return describe_unfit_host(request, HostTree(root, providers, details))


def describe_all_hosts(
    request: ResourceRequest, candidates: AllocationCandidates, providers: Mapping[str, Provider]
) -> dict[str, t.Any]:
    """Return the answer for all hosts."""
    described = _describe_candidates(candidates, providers)
    disabled = sum(candidate["disabled"] for candidate in described)
    offered = "1 candidate" if len(described) == 1 else f"{len(described)} candidates"
    reason = f"Placement offers {offered} for {format_resources(request.resources)}"
    if not described:
        reason = (
            f"Placement offers no candidate for {format_resources(request.resources)}: "
            "name a host in resource_provider to find out what is in the way"
        )
    elif disabled == 1:
        reason += ", but 1 of them has a disabled compute service, so Nova does not select it"
    elif disabled:
        reason += (
            f", but {disabled} of them have a disabled compute service, so Nova does not select "
            "them"
        )
    return {"fits": bool(described), "reason": f"{reason}.", "candidates": described}


def describe_fitting_host(
    request: ResourceRequest,
    root: Provider,
    candidates: AllocationCandidates,
    providers: Mapping[str, Provider],
) -> dict[str, t.Any]:
    """Return the answer for a host that Placement offers."""
    described = _describe_candidates(candidates, providers)
    disabled = DISABLED_TRAIT in candidates.summaries[root.uuid].traits
    sharing_names = [_collect_sharing_names(candidate, root) for candidate in described]
    reason = f"{root.name} has room for {format_resources(request.resources)}"
    # One candidate that needs no sharing provider is enough for Nova.
    if all(sharing_names):
        names = ", ".join(sorted(set().union(*sharing_names)))
        reason += (
            f" together with sharing provider {names}, "
            "which Nova does not find if the request names the host"
        )
    if disabled:
        reason += ", but Nova does not select it, because its compute service is disabled"
    return {
        "fits": True,
        "reason": f"{reason}.",
        "candidates": described,
        "disabled": disabled,
        "lacking": [],
        "missing_traits": [],
        "forbidden_traits": [],
    }


def _collect_sharing_names(candidate: Mapping[str, t.Any], root: Provider) -> set[str]:
    """Return the names of the providers of a candidate that are not in the tree of `root`."""
    sharing_names: set[str] = set()
    for provider in candidate["providers"]:
        if provider["root"] != root.uuid:
            sharing_names.add(provider["name"] or provider["uuid"])
    return sharing_names


def _describe_candidates(
    candidates: AllocationCandidates, providers: Mapping[str, Provider]
) -> list[dict[str, t.Any]]:
    described = []
    for allocations in candidates.allocations:
        described.append(_describe_candidate(allocations, candidates, providers))
    return sorted(described, key=_get_sort_key)


def _get_sort_key(candidate: Mapping[str, t.Any]) -> tuple[str, str, list[str]]:
    # Placement may list candidates in any order.
    uuids = [provider["uuid"] for provider in candidate["providers"]]
    return (candidate["root_name"] or "", candidate["root"], uuids)


def _describe_candidate(
    allocations: Allocations, candidates: AllocationCandidates, providers: Mapping[str, Provider]
) -> dict[str, t.Any]:
    root = _find_own_root(allocations, candidates, providers)
    root_name = None
    if root in providers:
        root_name = providers[root].name
    described = []
    for uuid, amounts in sorted(allocations.items()):
        entry = _describe_provider(uuid, amounts, candidates.summaries[uuid], providers.get(uuid))
        described.append(entry)
    return {
        "root": root,
        "root_name": root_name,
        "disabled": DISABLED_TRAIT in candidates.summaries[root].traits,
        "providers": described,
    }


def _find_own_root(
    allocations: Allocations, candidates: AllocationCandidates, providers: Mapping[str, Provider]
) -> str:
    """Return the root of the tree to which a candidate belongs."""
    # All allocations are on one tree, except those on its sharing providers.
    roots = sorted({candidates.summaries[uuid].root for uuid in allocations})
    for root in roots:
        if root not in providers or not providers[root].sharing:
            return root
    return roots[0]


def _describe_provider(
    uuid: str, amounts: Resources, summary: ProviderSummary, provider: Provider | None
) -> dict[str, t.Any]:
    capacity: dict[str, int] = {}
    used: dict[str, int] = {}
    for cls in amounts:
        capacity[cls] = summary.capacity[cls]
        used[cls] = summary.used[cls]
    return {
        "uuid": uuid,
        "name": provider.name if provider else None,
        "root": summary.root,
        "resources": dict(amounts),
        "capacity": capacity,
        "used": used,
    }
