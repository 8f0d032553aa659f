# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

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
        ProviderSummary,
        Resources,
    )

# Nova forbids it in every request of its own.
_DISABLED = "COMPUTE_STATUS_DISABLED"
_INVENTORY_FIELDS = (*(field.name for field in d.fields(Inventory)), "capacity", "used", "free")

RequestGroups = t.Mapping[str, frozenset[str]]
"""The required traits that another tree has, by the resource class that is asked of it."""


@d.dataclass(frozen=True)
class ResourceRequest:
    """What is asked of Placement.

    member_of: each provider must be in one of these aggregates, if there are any.
    """

    resources: Resources
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    member_of: frozenset[str] = frozenset()
    limit: int | None = None


@d.dataclass(frozen=True)
class HostTree:
    """The tree of a host by its root, with the providers that share what they have with it.

    details: what all of these providers have.
    """

    root: Provider
    providers: Mapping[str, Provider]
    details: Mapping[str, ProviderDetails]


@d.dataclass
class _Obstacles:
    """What keeps a host from taking an allocation, collected class by class.

    judged: the providers whose traits count. is_outside: no such provider of some class is in an
    aggregate that was asked for.
    """

    shortages: list[dict[str, t.Any]] = d.field(default_factory=list)
    judged: set[str] = d.field(default_factory=set)
    forbidden: set[str] = d.field(default_factory=set)
    is_outside: bool = False


def parse_request(options: Mapping[str, t.Any]) -> ResourceRequest:
    """Return what the module's options ask for.

    Raises InvalidInput for options that Placement would not take.
    """
    resources = parse_amounts("resources", options["resources"])
    if not resources:
        raise InvalidInput("resources names no resource class.")
    if options["limit"] is not None and options["limit"] < 1:
        raise InvalidInput(f"limit must be 1 or more, and is {options['limit']}.")
    required: set[str] = set()
    forbidden: set[str] = set()
    for trait in options["required"] or ():
        if trait.startswith("!"):
            forbidden.add(trait.removeprefix("!"))
        else:
            required.add(trait)
    aggregates = options["member_of"] or ()
    return ResourceRequest(
        resources=resources,
        required=frozenset(required),
        forbidden=frozenset(forbidden),
        member_of=frozenset(require_uuid(aggregate, "member_of") for aggregate in aggregates),
        limit=options["limit"],
    )


def find_candidates(
    placement: PlacementReader, wanted: ResourceRequest, name: str | None
) -> dict[str, t.Any]:
    """Return Placement's answer for any host, or for one.

    name: name or uuid of any provider in the tree of that one. Raises InvalidInput when Placement
    does not have it.
    """
    if name is None:
        candidates = placement.list_allocation_candidates(build_query(wanted))
        return describe_all_hosts(wanted, candidates, placement.list_providers())
    tree = placement.list_providers_in_trees([name])
    if not tree:
        raise InvalidInput(f"Placement has no resource provider with the name or UUID {name!r}.")
    root = next(provider for provider in tree.values() if provider.parent is None)
    candidates = placement.list_allocation_candidates(build_query(wanted, root))
    if candidates.allocations:
        return describe_fitting_host(wanted, root, candidates, tree)
    return _find_candidates_with_lenders(placement, wanted, root, tree)


def _find_candidates_with_lenders(
    placement: PlacementReader,
    wanted: ResourceRequest,
    root: Provider,
    tree: Mapping[str, Provider],
) -> dict[str, t.Any]:
    """Return Placement's answer for a host that needs what other trees share with it."""
    details = placement.get_details(tree)
    aggregates: set[str] = set()
    for provider_details in details.values():
        aggregates.update(provider_details.aggregates)
    sharing = placement.list_sharing_providers(aggregates)
    elsewhere = placement.get_details(sorted(sharing.keys() - tree.keys()))
    providers = {**sharing, **tree}
    groupings = list_groupings(wanted, details.values(), elsewhere.values())
    for groups in groupings:
        candidates = placement.list_allocation_candidates(build_query(wanted, root, groups))
        if candidates.allocations:
            return describe_fitting_host(wanted, root, candidates, providers)
    # Where nothing can come of other trees, what they have is not a reason.
    if groupings:
        details = {**details, **elsewhere}
    return describe_unfit_host(wanted, HostTree(root, providers, details))


def build_query(
    wanted: ResourceRequest, root: Provider | None = None, groups: RequestGroups | None = None
) -> dict[str, str]:
    """Return the parameters of `GET /allocation_candidates`.

    With a `root`, everything must come of its tree but the classes of `groups`: each of these is a
    request group of its own, which Placement ties to the tree only as far as to the providers that
    share with it.
    """
    groups = groups or {}
    own: dict[str, int] = {}
    for cls, amount in wanted.resources.items():
        if cls not in groups:
            own[cls] = amount
    query = _build_group("", own, wanted.required.difference(*groups.values()), wanted)
    for number, (cls, traits) in enumerate(sorted(groups.items()), 1):
        query |= _build_group(str(number), {cls: wanted.resources[cls]}, traits, wanted)
    if root is not None:
        query["in_tree"] = root.uuid
    # Placement asks for a policy when there are several groups; theirs may share a provider.
    if len(groups) > 1:
        query["group_policy"] = "none"
    if wanted.limit is not None:
        query["limit"] = str(wanted.limit)
    return query


def list_groupings(
    wanted: ResourceRequest,
    own: Collection[ProviderDetails],
    elsewhere: Collection[ProviderDetails],
) -> list[RequestGroups]:
    """Return the groups to ask for, one way after the other, when other trees share with a tree.

    own: what the tree has. elsewhere: what the providers of other trees have that share with it.
    """
    lent: dict[str, frozenset[str]] = {}
    for cls in wanted.resources:
        traits = _collect_traits(cls, elsewhere)
        if traits is not None:
            lent[cls] = traits
    only_elsewhere = wanted.required.difference(*(details.traits for details in own))
    groupings: list[RequestGroups] = []
    for kept_class in _list_kept_classes(wanted, lent, own):
        # A trait is asked of the others when they alone have it, and in another way when they have
        # it too.
        for required_there in (only_elsewhere, wanted.required):
            groups = _build_groups(lent, kept_class, required_there)
            if groups and groups not in groupings:
                groupings.append(groups)
    return groupings


def _list_kept_classes(
    wanted: ResourceRequest, lent: Collection[str], own: Collection[ProviderDetails]
) -> list[str | None]:
    """Return the classes that may stay with the tree itself, None where none has to."""
    # Something must always be left for the tree, for else nothing would tie the request to it.
    if len(lent) < len(wanted.resources):
        return [None]
    kept_classes: list[str | None] = []
    for cls in lent:
        if _collect_traits(cls, own) is not None:
            kept_classes.append(cls)
    return kept_classes


def _build_groups(
    lent: Mapping[str, frozenset[str]], kept_class: str | None, required: frozenset[str]
) -> RequestGroups:
    groups: dict[str, frozenset[str]] = {}
    for cls, traits in lent.items():
        if cls != kept_class:
            groups[cls] = required & traits
    return groups


def describe_all_hosts(
    wanted: ResourceRequest, candidates: AllocationCandidates, providers: Mapping[str, Provider]
) -> dict[str, t.Any]:
    """Return the answer for all hosts."""
    described = _describe_candidates(candidates, providers)
    disabled = sum(candidate["disabled"] for candidate in described)
    reason = (
        f"Placement offers {len(described)} candidate{'' if len(described) == 1 else 's'} "
        f"for {_format_resources(wanted.resources)}"
    )
    if not described:
        reason = (
            f"Placement offers no candidate for {_format_resources(wanted.resources)}: "
            "name a host as resource_provider to learn what it lacks"
        )
    elif disabled:
        reason += (
            f", but Nova passes over {disabled} of them, where the compute service is disabled"
        )
    return {"fits": bool(described), "reason": f"{reason}.", "candidates": described}


def describe_fitting_host(
    wanted: ResourceRequest,
    root: Provider,
    candidates: AllocationCandidates,
    providers: Mapping[str, Provider],
) -> dict[str, t.Any]:
    """Return the answer for a host that Placement offers."""
    described = _describe_candidates(candidates, providers)
    disabled = _DISABLED in candidates.summaries[root.uuid].traits
    lenders = [_collect_lenders(candidate, root) for candidate in described]
    reason = f"{root.name} has room for {_format_resources(wanted.resources)}"
    # One candidate that comes of the host alone is enough for Nova.
    if all(lenders):
        names = ", ".join(sorted(set().union(*lenders)))
        reason += (
            f" with what it is lent by {names}, "
            "which Nova does not look at when a server is sent to a named host"
        )
    if disabled:
        reason += ", but Nova passes over it, for its compute service is disabled"
    return {
        "fits": True,
        "reason": f"{reason}.",
        "candidates": described,
        "disabled": disabled,
        "lacking": [],
        "missing_traits": [],
        "forbidden_traits": [],
    }


def _collect_lenders(candidate: Mapping[str, t.Any], root: Provider) -> set[str]:
    """Return the names of the providers of a candidate that are not in the tree of `root`."""
    lenders: set[str] = set()
    for provider in candidate["providers"]:
        if provider["root"] != root.uuid:
            lenders.add(provider["name"] or provider["uuid"])
    return lenders


def describe_unfit_host(wanted: ResourceRequest, host: HostTree) -> dict[str, t.Any]:
    """Return the answer for a host that Placement does not offer, with every reason.

    Each amount, trait and aggregate that keeps the host from taking the allocation is one.
    """
    obstacles = _collect_obstacles(wanted, host)
    missing = wanted.required.difference(*(host.details[uuid].traits for uuid in obstacles.judged))
    disabled = _DISABLED in host.details.get(host.root.uuid, ProviderDetails()).traits
    reasons = list(_explain_shortages(obstacles.shortages, host.root))
    for trait in sorted(missing):
        reasons.append(f"trait {trait} is missing")
    for trait in sorted(obstacles.forbidden):
        reasons.append(f"trait {trait} is set and forbidden")
    if obstacles.is_outside:
        reasons.append("it is in none of the aggregates asked for")
    if not reasons:
        reasons.append(
            "each amount, trait and aggregate is there, but not together in any combination of its "
            "providers, or it changed meanwhile"
        )
    if disabled and _DISABLED not in obstacles.forbidden:
        reasons.append("Nova would pass over it anyway, for its compute service is disabled")
    request = _format_resources(wanted.resources)
    return {
        "fits": False,
        "reason": f"{host.root.name} cannot take {request}: {'; '.join(reasons)}.",
        "candidates": [],
        "disabled": disabled,
        "lacking": obstacles.shortages,
        "missing_traits": sorted(missing),
        "forbidden_traits": sorted(obstacles.forbidden),
    }


def _collect_obstacles(wanted: ResourceRequest, host: HostTree) -> _Obstacles:
    obstacles = _Obstacles()
    for cls, asked in wanted.resources.items():
        inventories = _describe_inventories(cls, asked, host)
        able = _list_able_providers(inventories)
        if not able:
            obstacles.shortages += inventories
        # The traits and aggregates of what is too small for the amount count as well, so that all
        # reasons come at once.
        judged = able or _list_providers_with(cls, host)
        obstacles.judged.update(judged)
        allowed = [uuid for uuid in judged if not host.details[uuid].traits & wanted.forbidden]
        if not allowed:
            for uuid in judged:
                obstacles.forbidden.update(host.details[uuid].traits & wanted.forbidden)
        if judged and not _has_member(allowed or judged, wanted, host):
            obstacles.is_outside = True
    return obstacles


def _list_able_providers(inventories: list[dict[str, t.Any]]) -> list[str]:
    able = []
    for entry in inventories:
        if not entry["violates"]:
            able.append(entry["uuid"])
    return able


def _list_providers_with(cls: str, host: HostTree) -> list[str]:
    return [uuid for uuid, details in host.details.items() if cls in details.inventories]


def _describe_inventories(cls: str, asked: int, host: HostTree) -> list[dict[str, t.Any]]:
    """Return an entry for each inventory of the class, or one that says that there is none."""
    entries = []
    for uuid in _list_providers_with(cls, host):
        entries.append(_describe_inventory(cls, asked, host.providers[uuid], host.details[uuid]))
    return entries or [_describe_inventory(cls, asked)]


def _collect_traits(cls: str, details: Collection[ProviderDetails]) -> frozenset[str] | None:
    """Return the traits of all providers that have the class, or None when there are none."""
    having = [entry.traits for entry in details if cls in entry.inventories]
    if not having:
        return None
    return frozenset[str]().union(*having)


def _build_group(
    suffix: str, resources: Resources, traits: frozenset[str], wanted: ResourceRequest
) -> dict[str, str]:
    """Return the parameters of one request group, those without a value left out."""
    required = sorted(traits)
    for trait in sorted(wanted.forbidden):
        required.append(f"!{trait}")
    parameters = {
        "resources": ",".join(f"{cls}:{amount}" for cls, amount in resources.items()),
        "required": ",".join(required),
    }
    if wanted.member_of:
        parameters["member_of"] = f"in:{','.join(sorted(wanted.member_of))}"
    group: dict[str, str] = {}
    for name, value in parameters.items():
        # Placement refuses a parameter without a value.
        if value:
            group[f"{name}{suffix}"] = value
    return group


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
        "disabled": _DISABLED in candidates.summaries[root].traits,
        "providers": described,
    }


def _find_own_root(
    allocations: Allocations, candidates: AllocationCandidates, providers: Mapping[str, Provider]
) -> str:
    """Return the root of the tree that a candidate is of."""
    # All allocations are of one tree but those on providers that share with it.
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


def _describe_inventory(
    cls: str, asked: int, provider: Provider | None = None, details: ProviderDetails | None = None
) -> dict[str, t.Any]:
    """Return what a provider has of a class, with the limits that the amount asked for violates."""
    entry: dict[str, t.Any] = {
        "resource_class": cls,
        "asked": asked,
        "uuid": None,
        "name": None,
        "violates": ["inventory"],
    }
    if provider is None or details is None:
        # Every entry has the same fields, so that a table can be made of them.
        return {**entry, **dict.fromkeys(_INVENTORY_FIELDS)}
    inventory, used = details.inventories[cls], details.usages.get(cls, 0)
    free = inventory.capacity - used
    return {
        **entry,
        "uuid": provider.uuid,
        "name": provider.name,
        "violates": _list_violations(asked, free, inventory),
        **d.asdict(inventory),
        "capacity": inventory.capacity,
        "used": used,
        "free": free,
    }


def _list_violations(asked: int, free: int, inventory: Inventory) -> list[str]:
    violations = []
    if asked > free:
        violations.append("free")
    if asked < inventory.min_unit:
        violations.append("min_unit")
    if asked > inventory.max_unit:
        violations.append("max_unit")
    if asked % inventory.step_size != 0:
        violations.append("step_size")
    return violations


def _has_member(uuids: Collection[str], wanted: ResourceRequest, host: HostTree) -> bool:
    """Return whether one of the providers is in an aggregate that was asked for, if any was."""
    if not wanted.member_of:
        return True
    return any(_is_member(uuid, wanted, host) for uuid in uuids)


def _is_member(uuid: str, wanted: ResourceRequest, host: HostTree) -> bool:
    # The aggregates of a root are those of its whole tree.
    root = host.details.get(host.providers[uuid].root, ProviderDetails())
    return bool((host.details[uuid].aggregates | root.aggregates) & wanted.member_of)


def _explain_shortages(shortages: list[dict[str, t.Any]], root: Provider) -> t.Iterator[str]:
    """Yield what keeps the host from giving each class."""
    by_class: dict[str, list[dict[str, t.Any]]] = {}
    for entry in shortages:
        by_class.setdefault(entry["resource_class"], []).append(entry)
    for cls, entries in by_class.items():
        # One provider is enough to say why: the one that comes closest.
        best = max(entries, key=lambda entry: entry["free"] or 0)
        sentences = _build_sentences(cls, best, len(entries), root)
        for violation in best["violates"]:
            yield sentences[violation]


def _build_sentences(
    cls: str, entry: Mapping[str, t.Any], count: int, root: Provider
) -> dict[str, str]:
    """Return the sentence for each violation of an entry, the best of `count` for its class."""
    where = ""
    if entry["uuid"] not in (root.uuid, None):
        where = f" on {entry['name']}"
    among = ""
    if count > 1:
        among = f", the most of {count} providers"
    # More can be in use than there is, and a negative number would only confuse.
    free = max(entry["free"] or 0, 0)
    return {
        "inventory": f"it has no {cls}",
        "free": f"{free} of {entry['capacity']} {cls} are free{where}{among}",
        "min_unit": f"one allocation has {entry['min_unit']} {cls} or more{where} (min_unit)",
        "max_unit": f"one allocation has {entry['max_unit']} {cls} or less{where} (max_unit)",
        "step_size": (
            f"one allocation has a multiple of {entry['step_size']} {cls}{where} (step_size)"
        ),
    }


def _format_resources(resources: Resources) -> str:
    return ", ".join(f"{amount} {cls}" for cls, amount in resources.items())
