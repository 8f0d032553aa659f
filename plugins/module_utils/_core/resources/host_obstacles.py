# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why Placement does not offer a host: the amounts, traits and aggregates in the way. Pure."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Collection, Mapping

from ..models.placement import Inventory, Provider, ProviderDetails
from .candidate_requests import DISABLED_TRAIT, ResourceRequest, format_resources

_INVENTORY_FIELDS = (*(field.name for field in d.fields(Inventory)), "capacity", "used", "free")


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
    reasons = list(_explain_shortages(obstacles.shortages, host.root))
    for trait in sorted(missing):
        reasons.append(f"trait {trait} is missing")
    for trait in sorted(obstacles.forbidden):
        reasons.append(f"trait {trait} is forbidden, but set")
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
        able = _list_able_providers(inventories)
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


def _list_able_providers(inventories: list[dict[str, t.Any]]) -> list[str]:
    return [entry["uuid"] for entry in inventories if not entry["violates"]]


def _list_providers_with(cls: str, host: HostTree) -> list[str]:
    return [uuid for uuid, details in host.details.items() if cls in details.inventories]


def _describe_inventories(cls: str, amount: int, host: HostTree) -> list[dict[str, t.Any]]:
    """Return an entry for each inventory of the class, or one entry for a missing inventory."""
    entries = []
    for uuid in _list_providers_with(cls, host):
        entries.append(_describe_inventory(cls, amount, host.providers[uuid], host.details[uuid]))
    return entries or [_describe_inventory(cls, amount)]


def _describe_inventory(
    cls: str, amount: int, provider: Provider | None = None, details: ProviderDetails | None = None
) -> dict[str, t.Any]:
    """Return the inventory of a class, with the limits that the requested amount violates."""
    entry: dict[str, t.Any] = {
        "resource_class": cls,
        "asked": amount,
        "uuid": None,
        "name": None,
        "violates": ["inventory"],
    }
    if provider is None or details is None:
        # Every entry has the same fields, so that users can make a table of them.
        return {**entry, **dict.fromkeys(_INVENTORY_FIELDS)}
    inventory, used = details.inventories[cls], details.usages.get(cls, 0)
    free = inventory.capacity - used
    return {
        **entry,
        "uuid": provider.uuid,
        "name": provider.name,
        "violates": _list_violations(amount, free, inventory),
        **d.asdict(inventory),
        "capacity": inventory.capacity,
        "used": used,
        "free": free,
    }


def _list_violations(amount: int, free: int, inventory: Inventory) -> list[str]:
    violations = []
    if amount > free:
        violations.append("free")
    if amount < inventory.min_unit:
        violations.append("min_unit")
    if amount > inventory.max_unit:
        violations.append("max_unit")
    if amount % inventory.step_size != 0:
        violations.append("step_size")
    return violations


def _has_member(uuids: Collection[str], request: ResourceRequest, host: HostTree) -> bool:
    """Return whether one of the providers is in a requested aggregate, or none is requested."""
    if not request.member_of:
        return True
    return any(_is_member(uuid, request, host) for uuid in uuids)


def _is_member(uuid: str, request: ResourceRequest, host: HostTree) -> bool:
    # Placement counts the aggregates of a root for its whole tree.
    root = host.details.get(host.providers[uuid].root, ProviderDetails())
    return bool((host.details[uuid].aggregates | root.aggregates) & request.member_of)


def _explain_shortages(shortages: list[dict[str, t.Any]], root: Provider) -> t.Iterator[str]:
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
    where = ""
    if entry["uuid"] not in (root.uuid, None):
        where = f" on {entry['name']}"
    among = ""
    if count > 1:
        among = f", the most on any of {count} providers"
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
