# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where Placement would make an allocation: what is asked of it, and what is returned.

Placement decides whether an allocation fits. Why it does not fit a host, which amounts, traits and
aggregates are in the way, is worked out here.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Collection, Iterator, Mapping

from ..._common.errors import InvalidInput
from ..._common.text import format_count, require_uuid
from ..clients.placement import PlacementReader
from ..models.placement import (
    AllocationCandidates,
    Allocations,
    Inventory,
    Provider,
    ProviderDetails,
    ProviderSummary,
    Resources,
)
from .allocations import parse_amounts

# The trait of a host with a disabled compute service. Nova forbids it in its own requests
# (nova/scheduler/request_filter.py, compute_status_filter).
DISABLED_TRAIT = "COMPUTE_STATUS_DISABLED"

RequestGroups = t.Mapping[str, frozenset[str]]
"""The required traits that another tree has, by the resource class that is requested from it."""


@d.dataclass(frozen=True)
class ResourceRequest:
    """What is requested from Placement.

    resources: amounts by resource class.
    required, forbidden: names of traits.
    member_of: UUIDs of aggregates; each provider must be in one of them, if there are any.
    limit: the maximum number of candidates; None for all.
    """

    resources: Resources
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    member_of: frozenset[str] = frozenset()
    limit: int | None = None


def parse_request(options: Mapping[str, t.Any]) -> ResourceRequest:
    """Return the request in the module's options.

    Raises InvalidInput for options that Placement would refuse.
    """
    resources = parse_amounts("resources", options["resources"])
    if not resources:
        raise InvalidInput("resources is empty: name at least one resource class, such as VCPU: 2.")
    if options["limit"] is not None and options["limit"] < 1:
        raise InvalidInput(f"limit must be 1 or more, but is {options['limit']}.")
    traits = options["required"] or ()
    aggregates = options["member_of"] or ()
    return ResourceRequest(
        resources=resources,
        required=frozenset(trait for trait in traits if not trait.startswith("!")),
        forbidden=frozenset(trait[1:] for trait in traits if trait.startswith("!")),
        member_of=frozenset(require_uuid(aggregate, "member_of") for aggregate in aggregates),
        limit=options["limit"],
    )


def build_query(
    request: ResourceRequest, root: Provider | None = None, groups: RequestGroups | None = None
) -> dict[str, str]:
    """Return the parameters of `GET /allocation_candidates`.

    With a `root`, everything must come from its tree except the classes of `groups`: each of these
    is a request group of its own, which Placement supplies from the tree or from sharing providers
    of the tree.
    """
    groups = groups or {}
    own = {cls: amount for cls, amount in request.resources.items() if cls not in groups}
    query = _build_group("", own, request.required.difference(*groups.values()), request)
    for number, (cls, traits) in enumerate(sorted(groups.items()), 1):
        query |= _build_group(str(number), {cls: request.resources[cls]}, traits, request)
    if root is not None:
        query["in_tree"] = root.uuid
    # Placement requires a policy if there are several groups; with `none`, two groups may use the
    # same provider.
    if len(groups) > 1:
        query["group_policy"] = "none"
    if request.limit is not None:
        query["limit"] = str(request.limit)
    return query


def list_groupings(
    request: ResourceRequest, own: Collection[ProviderDetails], shared: Collection[ProviderDetails]
) -> list[RequestGroups]:
    """Return the request groups to try, one after the other, for a tree with sharing providers.

    own: the details of the providers in the tree. shared: those of its sharing providers.
    """
    shared_classes = {
        cls: traits
        for cls in request.resources
        if (traits := _collect_traits(cls, shared)) is not None
    }
    only_shared = request.required.difference(*(details.traits for details in own))
    groupings: list[RequestGroups] = []
    for kept_class in _list_kept_classes(request, shared_classes, own):
        # A trait that only sharing providers have must come from them. A trait that the tree also
        # has is tried both ways.
        for required_traits in (only_shared, request.required):
            groups = {
                cls: required_traits & traits
                for cls, traits in shared_classes.items()
                if cls != kept_class
            }
            if groups and groups not in groupings:
                groupings.append(groups)
    return groupings


def _list_kept_classes(
    request: ResourceRequest, shared_classes: Collection[str], own: Collection[ProviderDetails]
) -> list[str | None]:
    """Return the classes that may stay with the tree itself; None if another class stays anyway."""
    # At least one class must stay: without it, nothing would tie the request to the tree.
    if len(shared_classes) < len(request.resources):
        return [None]
    return [cls for cls in shared_classes if _collect_traits(cls, own) is not None]


def _collect_traits(cls: str, details: Collection[ProviderDetails]) -> frozenset[str] | None:
    """Return the traits of all providers that have the class, or None if no provider has it."""
    having = [entry.traits for entry in details if cls in entry.inventories]
    return frozenset[str]().union(*having) if having else None


def _build_group(
    suffix: str, resources: Resources, traits: frozenset[str], request: ResourceRequest
) -> dict[str, str]:
    """Return the parameters of one request group, those without a value left out."""
    required = [*sorted(traits), *(f"!{trait}" for trait in sorted(request.forbidden))]
    parameters = {
        "resources": ",".join(f"{cls}:{amount}" for cls, amount in resources.items()),
        "required": ",".join(required),
    }
    if request.member_of:
        parameters["member_of"] = f"in:{','.join(sorted(request.member_of))}"
    # Placement refuses a parameter without a value.
    return {f"{name}{suffix}": value for name, value in parameters.items() if value}


def format_resources(resources: Resources) -> str:
    return ", ".join(f"{amount} {cls}" for cls, amount in resources.items())


# What Placement answers, as the module returns it.

_INVENTORY_FIELDS = (*(field.name for field in d.fields(Inventory)), "capacity", "used", "free")


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
    aggregates = {uuid for known in details.values() for uuid in known.aggregates}
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
    offered = format_count(len(described), "candidate", "candidates")
    reason = f"Placement offers {offered} for {format_resources(request.resources)}"
    if not described:
        reason = (
            f"Placement offers no candidate for {format_resources(request.resources)}: "
            "name a host in resource_provider to find out what is in the way"
        )
    elif disabled:
        have, them = ("has", "it") if disabled == 1 else ("have", "them")
        reason += f", but {disabled} of them {have} a disabled compute service"
        reason += f", so Nova does not select {them}"
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
    return {
        provider["name"] or provider["uuid"]
        for provider in candidate["providers"]
        if provider["root"] != root.uuid
    }


def _describe_candidates(
    candidates: AllocationCandidates, providers: Mapping[str, Provider]
) -> list[dict[str, t.Any]]:
    described = [
        _describe_candidate(allocations, candidates, providers)
        for allocations in candidates.allocations
    ]
    return sorted(described, key=_get_sort_key)


def _get_sort_key(candidate: Mapping[str, t.Any]) -> tuple[str, str, list[str]]:
    # Placement may list candidates in any order.
    uuids = [provider["uuid"] for provider in candidate["providers"]]
    return (candidate["root_name"] or "", candidate["root"], uuids)


def _describe_candidate(
    allocations: Allocations, candidates: AllocationCandidates, providers: Mapping[str, Provider]
) -> dict[str, t.Any]:
    root = _find_own_root(allocations, candidates, providers)
    return {
        "root": root,
        "root_name": providers[root].name if root in providers else None,
        "disabled": DISABLED_TRAIT in candidates.summaries[root].traits,
        "providers": [
            _describe_provider(uuid, amounts, candidates.summaries[uuid], providers.get(uuid))
            for uuid, amounts in sorted(allocations.items())
        ],
    }


def _find_own_root(
    allocations: Allocations, candidates: AllocationCandidates, providers: Mapping[str, Provider]
) -> str:
    """Return the root of the tree to which a candidate belongs."""
    # All allocations are on one tree, except those on its sharing providers.
    roots = sorted({candidates.summaries[uuid].root for uuid in allocations})
    own = (root for root in roots if root not in providers or not providers[root].sharing)
    return next(own, roots[0])


def _describe_provider(
    uuid: str, amounts: Resources, summary: ProviderSummary, provider: Provider | None
) -> dict[str, t.Any]:
    return {
        "uuid": uuid,
        "name": provider.name if provider else None,
        "root": summary.root,
        "resources": dict(amounts),
        "capacity": {cls: summary.capacity[cls] for cls in amounts},
        "used": {cls: summary.used[cls] for cls in amounts},
    }


@d.dataclass(frozen=True)
class HostTree:
    """The tree of a host by its root, with the sharing providers that it can use.

    details: the inventories, usages, traits and aggregates of all these providers.
    """

    root: Provider
    providers: Mapping[str, Provider]
    details: Mapping[str, ProviderDetails]


@d.dataclass
class _Obstacles:
    """What is in the way of an allocation on a host, collected class by class.

    judged: the providers whose traits count.
    is_outside: whether no such provider of some class is in a requested aggregate.
    """

    shortages: list[dict[str, t.Any]] = d.field(default_factory=list)
    judged: set[str] = d.field(default_factory=set)
    forbidden: set[str] = d.field(default_factory=set)
    is_outside: bool = False


def describe_unfit_host(request: ResourceRequest, host: HostTree) -> dict[str, t.Any]:
    """Return the answer for a host that Placement does not offer, with every reason.

    Each amount, trait and aggregate that is in the way of the allocation is a reason.
    """
    obstacles = _collect_obstacles(request, host)
    missing = request.required.difference(*(host.details[uuid].traits for uuid in obstacles.judged))
    disabled = DISABLED_TRAIT in host.details.get(host.root.uuid, ProviderDetails()).traits
    reasons = [
        *_explain_shortages(obstacles.shortages, host.root),
        *(f"trait {trait} is missing" for trait in sorted(missing)),
        *(f"trait {trait} is forbidden, but set" for trait in sorted(obstacles.forbidden)),
    ]
    if obstacles.is_outside:
        reasons.append("it is in none of the requested aggregates")
    if not reasons:
        reasons.append(
            "it has each amount, trait and aggregate, but not together in any combination of its "
            "providers, or it has changed meanwhile"
        )
    if disabled and DISABLED_TRAIT not in obstacles.forbidden:
        reasons.append("Nova would not select it anyway, because its compute service is disabled")
    amounts = format_resources(request.resources)
    return {
        "fits": False,
        "reason": f"{host.root.name} has no room for {amounts}: {'; '.join(reasons)}.",
        "candidates": [],
        "disabled": disabled,
        "lacking": obstacles.shortages,
        "missing_traits": sorted(missing),
        "forbidden_traits": sorted(obstacles.forbidden),
    }


def _collect_obstacles(request: ResourceRequest, host: HostTree) -> _Obstacles:
    obstacles = _Obstacles()
    for cls, amount in request.resources.items():
        inventories = _describe_inventories(cls, amount, host)
        able = [entry["uuid"] for entry in inventories if not entry["violates"]]
        if not able:
            obstacles.shortages += inventories
        # The traits and aggregates of providers without room count as well, so that an operator
        # sees all reasons at once.
        judged = able or _list_providers_with(cls, host)
        obstacles.judged.update(judged)
        allowed = [uuid for uuid in judged if not host.details[uuid].traits & request.forbidden]
        if not allowed:
            for uuid in judged:
                obstacles.forbidden.update(host.details[uuid].traits & request.forbidden)
        if judged and not _has_member(allowed or judged, request, host):
            obstacles.is_outside = True
    return obstacles


def _list_providers_with(cls: str, host: HostTree) -> list[str]:
    return [uuid for uuid, details in host.details.items() if cls in details.inventories]


def _describe_inventories(cls: str, amount: int, host: HostTree) -> list[dict[str, t.Any]]:
    """Return an entry for each inventory of the class, or one entry for a missing inventory."""
    return [
        _describe_inventory(cls, amount, host.providers[uuid], host.details[uuid])
        for uuid in _list_providers_with(cls, host)
    ] or [_describe_inventory(cls, amount)]


def _describe_inventory(
    cls: str, amount: int, provider: Provider | None = None, details: ProviderDetails | None = None
) -> dict[str, t.Any]:
    """Return the inventory of a class, with the limits that the requested amount violates."""
    asked = {"resource_class": cls, "asked": amount}
    if provider is None or details is None:
        # Every entry has the same fields, so that users can make a table of them.
        unknown = {"uuid": None, "name": None, "violates": ["inventory"]}
        return {**asked, **unknown, **dict.fromkeys(_INVENTORY_FIELDS)}
    inventory, used = details.inventories[cls], details.usages.get(cls, 0)
    free = inventory.capacity - used
    return {
        **asked,
        "uuid": provider.uuid,
        "name": provider.name,
        "violates": _list_violations(amount, free, inventory),
        **d.asdict(inventory),
        "capacity": inventory.capacity,
        "used": used,
        "free": free,
    }


def _list_violations(amount: int, free: int, inventory: Inventory) -> list[str]:
    violated = {
        "free": amount > free,
        "min_unit": amount < inventory.min_unit,
        "max_unit": amount > inventory.max_unit,
        "step_size": amount % inventory.step_size != 0,
    }
    return [name for name in violated if violated[name]]


def _has_member(uuids: Collection[str], request: ResourceRequest, host: HostTree) -> bool:
    """Return whether one of the providers is in a requested aggregate, or none is requested."""
    if not request.member_of:
        return True
    # Placement counts the aggregates of a root for its whole tree.
    counted = {*uuids, *(host.providers[uuid].root for uuid in uuids)}
    return any(
        details.aggregates & request.member_of
        for uuid, details in host.details.items()
        if uuid in counted
    )


def _explain_shortages(shortages: list[dict[str, t.Any]], root: Provider) -> Iterator[str]:
    """Yield why the host cannot supply each class."""
    by_class: dict[str, list[dict[str, t.Any]]] = {}
    for entry in shortages:
        by_class.setdefault(entry["resource_class"], []).append(entry)
    for cls, entries in by_class.items():
        # The provider that comes closest to the amount is enough to say why.
        best = max(entries, key=lambda entry: entry["free"] or 0)
        sentences = _build_sentences(cls, best, len(entries), root)
        for violation in best["violates"]:
            yield sentences[violation]


def _build_sentences(
    cls: str, entry: Mapping[str, t.Any], count: int, root: Provider
) -> dict[str, str]:
    """Return the sentence for each violation of an entry, the best of `count` for its class."""
    where = "" if entry["uuid"] in (root.uuid, None) else f" on {entry['name']}"
    among = f", the most on any of {count} providers" if count > 1 else ""
    # More can be allocated than the capacity, and a negative number would only confuse.
    free = max(entry["free"] or 0, 0)
    return {
        "inventory": f"it has no {cls}",
        "free": f"{free} of {entry['capacity']} {cls} are free{where}{among}",
        "min_unit": f"an allocation must have at least {entry['min_unit']} {cls}{where} (min_unit)",
        "max_unit": f"an allocation must have at most {entry['max_unit']} {cls}{where} (max_unit)",
        "step_size": (
            f"an allocation must be a multiple of {entry['step_size']} {cls}{where} (step_size)"
        ),
    }
