# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A resource request as a search in the tree of a host. Pure."""

from __future__ import annotations

import dataclasses as d
from collections.abc import Callable, Container, Iterable, Mapping

from ..models.other_services import HostTree, RequestGroup, ResourceRequest, TreeProvider
from ..models.placement import Inventory, Resources, sum_amounts
from .search import Key, Problem, Unit


@d.dataclass(frozen=True)
class _Part:
    """What has to be of one provider: a group with a name, or one class of the group without."""

    group: RequestGroup
    resources: Resources


def build_exact_problem(
    request: ResourceRequest,
    tree: HostTree,
    present: Mapping[Key, int],
    ignored: frozenset[Key] = frozenset(),
) -> Problem:
    """Return the search for a placement that is just what is present.

    Traits and inventories may have changed since it was allocated. A provider that an answer names
    may also have been chosen later than the others, when a port was attached: it need not be
    isolated.

    ignored: what is in doubt. Then only amounts count, and not which groups have them.
    """
    strict = not ignored
    limits = dict(present)
    # What is not compared may be any amount.
    limits.update(dict.fromkeys(ignored, sum(sum_request(request).values())))
    units = []
    for part in _list_parts(request):
        providers = [one for one in tree.providers if _has_all(part.resources, one, limits)]
        if strict and part.group.provider is not None:
            providers = [one for one in providers if one == part.group.provider]
        isolated = strict and request.isolate and part.group.provider is None
        units.append(_build_unit(part, request, providers, isolated))
    return Problem(
        units=tuple(units),
        present=present,
        limits=limits,
        ignored=ignored,
        accept=_build_subtree_test(request, tree) if strict else lambda _chosen: True,
        largest_distance=0,
    )


def build_problem(request: ResourceRequest, tree: HostTree, present: Mapping[Key, int]) -> Problem:
    """Return the search for the placements that Placement may give, or has given before."""
    parts = list(_list_parts(request))
    allowed = _leave_out_equal_providers(parts, request, tree, present)
    units = []
    for part in parts:
        candidates = tree.providers if _is_in_subtree(part.group, request) else allowed
        providers = [one for one in candidates if _fits(part, tree.providers[one], present)]
        # What is there already is tried first.
        providers.sort(key=lambda provider: not _has_some(part.resources, provider, present))
        units.append(_build_unit(part, request, providers, request.isolate))
    return Problem(
        units=tuple(units),
        present=present,
        limits=_collect_limits(tree, present),
        ignored=frozenset(),
        accept=_build_test(units, request, tree),
    )


def list_unplaceable_classes(problem: Problem) -> list[str]:
    """Return the classes that no provider can have as they are requested."""
    return sorted({cls for unit in problem.units if not unit.providers for cls in unit.resources})


def sum_request(request: ResourceRequest) -> dict[str, int]:
    """Return the sum of the requested amounts of each class."""
    return sum_amounts(group.resources for group in request.groups.values())


def _list_parts(request: ResourceRequest) -> Iterable[_Part]:
    for group in request.groups.values():
        if not group.name:
            for cls, amount in group.resources.items():
                yield _Part(group, {cls: amount})
        elif group.resources:
            yield _Part(group, group.resources)


def _build_unit(
    part: _Part, request: ResourceRequest, providers: Iterable[str], isolated: bool
) -> Unit:
    return Unit(
        name=part.group.name,
        resources=part.resources,
        providers=tuple(providers),
        isolated=isolated and bool(part.group.name),
        swappable=not _is_in_subtree(part.group, request),
    )


def _is_in_subtree(group: RequestGroup, request: ResourceRequest) -> bool:
    return any(group.name in names for names in request.same_subtree)


def _has_all(resources: Resources, provider: str, amounts: Mapping[Key, int]) -> bool:
    return all(amounts.get((provider, cls), 0) >= amount for cls, amount in resources.items())


def _has_some(resources: Resources, provider: str, amounts: Mapping[Key, int]) -> bool:
    return all((provider, cls) in amounts for cls in resources)


def _fits(part: _Part, provider: TreeProvider, present: Mapping[Key, int]) -> bool:
    """Return whether a provider has or can have the resources."""
    group = part.group
    if group.provider not in (None, provider.uuid):
        return False
    if _has_some(part.resources, provider.uuid, present):
        return True
    if group.provider is None:
        if group.forbidden & provider.traits:
            return False
        # Several providers may have the traits of the group without a suffix together.
        if group.name and not group.required <= provider.traits:
            return False
    return all(
        cls in provider.inventories and _is_valid_amount(amount, provider.inventories[cls])
        for cls, amount in part.resources.items()
    )


def _is_valid_amount(amount: int, inventory: Inventory) -> bool:
    is_in_bounds = inventory.min_unit <= amount <= _get_limit(inventory)
    return is_in_bounds and amount % inventory.step_size == 0


def _get_limit(inventory: Inventory) -> int:
    # What is reserved changes, and so does a ratio that is lowered: neither decides where a server
    # once was placed.
    return min(inventory.max_unit, int(inventory.total * max(inventory.allocation_ratio, 1)))


def _collect_limits(tree: HostTree, present: Mapping[Key, int]) -> dict[Key, int]:
    limits = dict(present)
    for provider in tree.providers.values():
        for cls, inventory in provider.inventories.items():
            key = (provider.uuid, cls)
            limits[key] = max(_get_limit(inventory), present.get(key, 0))
    return limits


def _leave_out_equal_providers(
    parts: list[_Part], request: ResourceRequest, tree: HostTree, present: Mapping[Key, int]
) -> list[str]:
    """Return the providers without any that are like enough others.

    Of equal providers without allocations of the server, one more than there are parts decides
    everything: each part can have its own, and another one shows that it is not the only one.
    """
    classes = sum_request(request).keys()
    named = {part.group.provider for part in parts}
    traits: set[str] = set()
    for group in request.groups.values():
        traits |= group.required | group.forbidden
    counts: dict[object, int] = {}
    allowed = []
    for provider in tree.providers.values():
        touched = any((provider.uuid, cls) in present for cls in classes)
        if not touched and provider.uuid not in named:
            likeness = (_describe_inventories(provider, classes), provider.traits & traits)
            counts[likeness] = counts.get(likeness, 0) + 1
            if counts[likeness] > len(parts) + 1:
                continue
        allowed.append(provider.uuid)
    return allowed


def _describe_inventories(provider: TreeProvider, classes: Container[str]) -> tuple[object, ...]:
    return tuple(
        (cls, row.min_unit, row.step_size, _get_limit(row))
        for cls, row in sorted(provider.inventories.items())
        if cls in classes
    )


def _build_test(
    units: list[Unit], request: ResourceRequest, tree: HostTree
) -> Callable[[tuple[str, ...]], bool]:
    """Return the test of same_subtree and of the traits of the group without a suffix."""
    test_subtrees = _build_subtree_test(request, tree)
    main = request.groups.get("")
    unnamed = [unit for unit in units if not unit.name]
    available = _collect_traits((one for unit in unnamed for one in unit.providers), tree)
    # A trait that no provider has any more decides nothing.
    required = main.required & available if main else frozenset()

    def test(chosen: tuple[str, ...]) -> bool:
        pairs = zip(units, chosen, strict=True)
        traits = _collect_traits((provider for unit, provider in pairs if not unit.name), tree)
        return required <= traits and test_subtrees(chosen)

    return test


def _collect_traits(providers: Iterable[str], tree: HostTree) -> frozenset[str]:
    return frozenset().union(*(tree.providers[provider].traits for provider in providers))


def _build_subtree_test(
    request: ResourceRequest, tree: HostTree
) -> Callable[[tuple[str, ...]], bool]:
    names = [part.group.name for part in _list_parts(request)]

    def test(chosen: tuple[str, ...]) -> bool:
        for subtree in request.same_subtree:
            pairs = zip(names, chosen, strict=True)
            providers = {provider for name, provider in pairs if name in subtree}
            if providers and not _have_common_root(providers, tree):
                return False
        return True

    return test


def _have_common_root(providers: set[str], tree: HostTree) -> bool:
    """Return whether one of the providers is above all the others, as same_subtree demands."""
    return bool(providers.intersection(*(_list_ancestors(one, tree) for one in providers)))


def _list_ancestors(provider: str, tree: HostTree) -> set[str]:
    ancestors: set[str] = set()
    current: str | None = provider
    # An answer that names a provider as its own ancestor must not end in a loop.
    while current is not None and current not in ancestors:
        ancestors.add(current)
        known = tree.providers.get(current)
        current = known.parent if known else None
    return ancestors
