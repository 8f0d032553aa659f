# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Where Placement would put an allocation, and why it would not put it on a certain host.

Whether it fits is Placement's answer; why not is worked out here, from what the host's tree has.
"""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._common.uuids import require_uuid
from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
    Inventory,
    ProviderDetails,
)
from ansible_collections.osops.placement.plugins.module_utils._resources.allocations import (
    parse_amounts,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._clients.placement import (
        PlacementReader,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
        AllocationCandidates,
        Allocations,
        Provider,
        Resources,
    )

# Nova forbids it in every request of its own.
_DISABLED = "COMPUTE_STATUS_DISABLED"
_INVENTORY_FIELDS = (*(field.name for field in d.fields(Inventory)), "capacity", "used", "free")

RequestGroups = t.Mapping[str, frozenset[str]]
"""The required traits that another tree has, by the resource class that is asked of it."""


@d.dataclass(frozen=True)
class ResourceRequest:
    """What is asked of Placement; providers must be in one of the `member_of` aggregates, if there are any."""

    resources: Resources
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    member_of: frozenset[str] = frozenset()
    limit: int | None = None


@d.dataclass(frozen=True)
class HostTree:
    """A tree by its root, with the providers that share what they have with it, and what all of these have."""

    root: Provider
    providers: Mapping[str, Provider]
    details: Mapping[str, ProviderDetails]


def parse_request(options: Mapping[str, t.Any]) -> ResourceRequest:
    """Return what the module's options ask for."""
    resources = parse_amounts("resources", options["resources"])
    if not resources:
        raise InvalidInput("resources names no resource class.")
    if options["limit"] is not None and options["limit"] < 1:
        raise InvalidInput(f"limit must be 1 or more, and is {options['limit']}.")
    traits = options["required"] or ()
    return ResourceRequest(
        resources=resources,
        required=frozenset(trait for trait in traits if not trait.startswith("!")),
        forbidden=frozenset(trait.removeprefix("!") for trait in traits if trait.startswith("!")),
        member_of=frozenset(
            require_uuid(aggregate, "member_of") for aggregate in options["member_of"] or ()
        ),
        limit=options["limit"],
    )


def find_candidates(
    placement: PlacementReader, wanted: ResourceRequest, name: str | None
) -> dict[str, t.Any]:
    """Return Placement's answer for any host, or for the one with a provider of that name or uuid in its tree."""
    if name is None:
        return describe_all_hosts(
            wanted,
            placement.list_allocation_candidates(build_query(wanted)),
            placement.list_providers(),
        )
    tree = placement.list_providers_in_trees([name])
    if not tree:
        raise InvalidInput(f"Placement has no resource provider with the name or UUID {name!r}.")
    root = next(provider for provider in tree.values() if provider.parent is None)
    offered = placement.list_allocation_candidates(build_query(wanted, root))
    if offered.allocations:
        return describe_fitting_host(wanted, root, offered, tree)
    details = placement.get_details(tree)
    sharing = placement.list_sharing_providers(
        {aggregate for known in details.values() for aggregate in known.aggregates}
    )
    elsewhere = placement.get_details(sorted(sharing.keys() - tree.keys()))
    ways = list_groupings(wanted, details.values(), elsewhere.values())
    for groups in ways:
        offered = placement.list_allocation_candidates(build_query(wanted, root, groups))
        if offered.allocations:
            return describe_fitting_host(wanted, root, offered, {**sharing, **tree})
    return describe_unfit_host(
        wanted, HostTree(root, {**sharing, **tree}, {**details, **elsewhere} if ways else details)
    )


def build_query(
    wanted: ResourceRequest, root: Provider | None = None, groups: RequestGroups | None = None
) -> dict[str, str]:
    """Return the parameters of `GET /allocation_candidates`.

    With a `root`, everything must come of its tree but the classes of `groups`: each of these is a request group of its own, which
    Placement ties to the tree only as far as to the providers that share with it.
    """
    groups = groups or {}
    own = {cls: amount for cls, amount in wanted.resources.items() if cls not in groups}
    asked = _build_group("", own, wanted.required.difference(*groups.values()), wanted)
    for number, (cls, traits) in enumerate(sorted(groups.items()), 1):
        asked |= _build_group(str(number), {cls: wanted.resources[cls]}, traits, wanted)
    if root is not None:
        asked["in_tree"] = root.uuid
    if len(groups) > 1:
        asked["group_policy"] = "none"
    if wanted.limit is not None:
        asked["limit"] = str(wanted.limit)
    return asked


def list_groupings(
    wanted: ResourceRequest,
    own: Collection[ProviderDetails],
    elsewhere: Collection[ProviderDetails],
) -> list[RequestGroups]:
    """Return the groups to ask for, one way after the other, when providers `elsewhere` share with a tree that has its `own`.

    Something must always be left for the tree itself, for else nothing would tie the request to it. A trait is asked of the others
    when they alone have it, and in another way when they have it too.
    """
    lent = {
        cls: traits
        for cls in wanted.resources
        if (traits := _collect_traits(cls, elsewhere)) is not None
    }
    stays = (
        [cls for cls in lent if _collect_traits(cls, own) is not None]
        if len(lent) == len(wanted.resources)
        else [None]
    )
    alone = wanted.required.difference(*(known.traits for known in own))
    ways: list[RequestGroups] = []
    for stay in stays:
        for required_there in (alone, wanted.required):
            groups = {cls: required_there & traits for cls, traits in lent.items() if cls != stay}
            if groups and groups not in ways:
                ways.append(groups)
    return ways


def describe_all_hosts(
    wanted: ResourceRequest, candidates: AllocationCandidates, providers: Mapping[str, Provider]
) -> dict[str, t.Any]:
    """Return the answer for all hosts."""
    found = _describe_candidates(candidates, providers)
    disabled = sum(candidate["disabled"] for candidate in found)
    reason = f"Placement offers {len(found)} candidate{'' if len(found) == 1 else 's'} for {_format_resources(wanted.resources)}"
    if not found:
        reason = f"Placement offers no candidate for {_format_resources(wanted.resources)}: name a host as resource_provider to learn what it lacks"
    elif disabled:
        reason += (
            f", but Nova passes over {disabled} of them, where the compute service is disabled"
        )
    return {"fits": bool(found), "reason": f"{reason}.", "candidates": found}


def describe_fitting_host(
    wanted: ResourceRequest,
    root: Provider,
    candidates: AllocationCandidates,
    providers: Mapping[str, Provider],
) -> dict[str, t.Any]:
    """Return the answer for a host that Placement offers."""
    found = _describe_candidates(candidates, providers)
    disabled = _DISABLED in candidates.summaries[root.uuid].traits
    lenders = [
        {
            share["name"] or share["uuid"]
            for share in candidate["providers"]
            if share["root"] != root.uuid
        }
        for candidate in found
    ]
    reason = f"{root.name} has room for {_format_resources(wanted.resources)}"
    if all(lenders):
        names = ", ".join(sorted(set().union(*lenders)))
        reason += f" with what it is lent by {names}, which Nova does not look at when a server is sent to a named host"
    if disabled:
        reason += ", but Nova passes over it, for its compute service is disabled"
    nothing: dict[str, list[t.Any]] = {"lacking": [], "missing_traits": [], "forbidden_traits": []}
    return {
        "fits": True,
        "reason": f"{reason}.",
        "candidates": found,
        "disabled": disabled,
        **nothing,
    }


def describe_unfit_host(wanted: ResourceRequest, host: HostTree) -> dict[str, t.Any]:
    """Return the answer for a host that Placement does not offer: each amount, trait and aggregate that stands against it."""
    short: list[dict[str, t.Any]] = []
    counted: set[str] = set()
    forbidden: set[str] = set()
    outside = False
    for cls, asked in wanted.resources.items():
        having = [uuid for uuid, known in host.details.items() if cls in known.inventories]
        entries = [
            _describe_inventory(cls, asked, host.providers[uuid], host.details[uuid])
            for uuid in having
        ] or [_describe_inventory(cls, asked)]
        able = [entry["uuid"] for entry in entries if not entry["violates"]]
        if not able:
            short += entries
        # What is too small for the amount is still told by its traits and aggregates, so that all reasons come at once.
        counting = able or having
        counted.update(counting)
        clean = [uuid for uuid in counting if not host.details[uuid].traits & wanted.forbidden]
        if not clean:
            forbidden.update(*(host.details[uuid].traits & wanted.forbidden for uuid in counting))
        outside = outside or bool(
            counting
            and wanted.member_of
            and not any(_is_member(uuid, wanted, host) for uuid in clean or counting)
        )
    missing = wanted.required.difference(*(host.details[uuid].traits for uuid in counted))
    disabled = _DISABLED in host.details.get(host.root.uuid, ProviderDetails()).traits
    causes = [
        *_explain_shortages(short, host.root),
        *(f"trait {trait} is missing" for trait in sorted(missing)),
        *(f"trait {trait} is set and forbidden" for trait in sorted(forbidden)),
        *(["it is in none of the aggregates asked for"] if outside else []),
    ] or [
        "each amount, trait and aggregate is there, but not together in any combination of its providers, or it changed meanwhile"
    ]
    if disabled and _DISABLED not in forbidden:
        causes.append("Nova would pass over it anyway, for its compute service is disabled")
    return {
        "fits": False,
        "reason": f"{host.root.name} cannot take {_format_resources(wanted.resources)}: {'; '.join(causes)}.",
        "candidates": [],
        "disabled": disabled,
        "lacking": short,
        "missing_traits": sorted(missing),
        "forbidden_traits": sorted(forbidden),
    }


def _collect_traits(cls: str, details: Collection[ProviderDetails]) -> frozenset[str] | None:
    """Return the traits of all that have the class, or None when nobody has it."""
    having = [known.traits for known in details if cls in known.inventories]
    return frozenset[str]().union(*having) if having else None


def _build_group(
    suffix: str, resources: Resources, traits: frozenset[str], wanted: ResourceRequest
) -> dict[str, str]:
    asked = {
        "resources": ",".join(f"{cls}:{amount}" for cls, amount in resources.items()),
        "required": ",".join(
            [*sorted(traits), *(f"!{trait}" for trait in sorted(wanted.forbidden))]
        ),
        "member_of": f"in:{','.join(sorted(wanted.member_of))}" if wanted.member_of else "",
    }
    return {f"{name}{suffix}": value for name, value in asked.items() if value}


def _describe_candidates(
    candidates: AllocationCandidates, providers: Mapping[str, Provider]
) -> list[dict[str, t.Any]]:
    found = [
        _describe_candidate(allocations, candidates, providers)
        for allocations in candidates.allocations
    ]
    return sorted(
        found,
        key=lambda found: (
            found["root_name"] or "",
            found["root"],
            [share["uuid"] for share in found["providers"]],
        ),
    )


def _describe_candidate(
    allocations: Allocations, candidates: AllocationCandidates, providers: Mapping[str, Provider]
) -> dict[str, t.Any]:
    # All shares are of one tree but those of providers that share with it.
    roots = sorted({candidates.summaries[uuid].root for uuid in allocations})
    root = next(
        (root for root in roots if not (root in providers and providers[root].sharing)), roots[0]
    )
    shares = [
        {
            "uuid": uuid,
            "name": providers[uuid].name if uuid in providers else None,
            "root": candidates.summaries[uuid].root,
            "resources": dict(share),
            "capacity": {cls: candidates.summaries[uuid].capacity[cls] for cls in share},
            "used": {cls: candidates.summaries[uuid].used[cls] for cls in share},
        }
        for uuid, share in sorted(allocations.items())
    ]
    return {
        "root": root,
        "root_name": providers[root].name if root in providers else None,
        "disabled": _DISABLED in candidates.summaries[root].traits,
        "providers": shares,
    }


def _describe_inventory(
    cls: str, asked: int, provider: Provider | None = None, details: ProviderDetails | None = None
) -> dict[str, t.Any]:
    told: dict[str, t.Any] = {
        "resource_class": cls,
        "asked": asked,
        "uuid": None,
        "name": None,
        "violates": ["inventory"],
    }
    if provider is None or details is None:
        return {**told, **dict.fromkeys(_INVENTORY_FIELDS)}
    inventory, used = details.inventories[cls], details.usages.get(cls, 0)
    free = inventory.capacity - used
    violations = {
        "free": asked > free,
        "min_unit": asked < inventory.min_unit,
        "max_unit": asked > inventory.max_unit,
        "step_size": asked % inventory.step_size != 0,
    }
    return {
        **told,
        "uuid": provider.uuid,
        "name": provider.name,
        "violates": [name for name, violated in violations.items() if violated],
        **d.asdict(inventory),
        "capacity": inventory.capacity,
        "used": used,
        "free": free,
    }


def _is_member(uuid: str, wanted: ResourceRequest, host: HostTree) -> bool:
    # The aggregates of a root are those of its whole tree.
    root = host.details.get(host.providers[uuid].root, ProviderDetails())
    return bool((host.details[uuid].aggregates | root.aggregates) & wanted.member_of)


def _explain_shortages(short: list[dict[str, t.Any]], root: Provider) -> t.Iterator[str]:
    """Yield what stands against each class: of the provider with the most free of it, when there are several."""
    for cls in dict.fromkeys(entry["resource_class"] for entry in short):
        entries = [entry for entry in short if entry["resource_class"] == cls]
        best = max(entries, key=lambda entry: entry["free"] or 0)
        where = "" if best["uuid"] in (root.uuid, None) else f" on {best['name']}"
        among = f", the most of {len(entries)} providers" if len(entries) > 1 else ""
        said = {
            "inventory": f"it has no {cls}",
            "free": f"{max(best['free'] or 0, 0)} of {best['capacity']} {cls} are free{where}{among}",
            "min_unit": f"one allocation has {best['min_unit']} {cls} or more{where} (min_unit)",
            "max_unit": f"one allocation has {best['max_unit']} {cls} or less{where} (max_unit)",
            "step_size": f"one allocation has a multiple of {best['step_size']} {cls}{where} (step_size)",
        }
        yield from (said[violation] for violation in best["violates"])


def _format_resources(resources: Resources) -> str:
    return ", ".join(f"{amount} {cls}" for cls, amount in resources.items())
