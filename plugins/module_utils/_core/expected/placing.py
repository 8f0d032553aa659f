# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the resources of a request can be in the tree of a host. Pure.

The rules are those of `GET /allocation_candidates` (placement/objects/allocation_candidate.py),
except that usages say nothing here: what others have is not what this server has.
"""

from __future__ import annotations

import dataclasses as d
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ..._common.errors import NO_REASON, Reason
from ..._common.text import make_printable, summarize_names
from ..models.other_services import (
    AmountRule,
    HostTree,
    MissingInput,
    ResourceRequest,
    TreeProvider,
)
from ..models.placement import Allocations, sum_amounts
from .problems import build_exact_problem, build_problem, list_unplaceable_classes, sum_request
from .search import (
    TOO_MANY,
    Amounts,
    Key,
    collect_allocations,
    collect_amounts,
    find_closest,
    find_nearest,
    is_nearer,
)


@d.dataclass(frozen=True)
class Expectation:
    """What a server should have, compared with what it has.

    matches: whether `present` is what one of the requests can have got; None where that cannot be
        known.
    allocations: the one allocation that the server should have; None where there is not exactly
        one, or where it cannot be known.
    why: why `matches` or `allocations` is None, as a part of a sentence; empty if neither is.
    rules: where each amount comes from.
    missing: what would have to be read to know more.
    """

    matches: bool | None
    allocations: Allocations | None
    why: Reason
    rules: tuple[AmountRule, ...]
    missing: tuple[MissingInput, ...]


def explain_missing(missing: Iterable[MissingInput]) -> Reason:
    """Return what is missing, as a part of a sentence."""
    sentence = "; ".join(dict.fromkeys(item.reason for item in missing))
    return Reason("input_missing", sentence)


def compare(
    requests: Sequence[ResourceRequest], tree: HostTree, present: Allocations
) -> Expectation:
    """Compare what a server has with what Nova would have allocated on this host.

    present: all allocations of the server. What of it can be right is kept: the expected
        allocations are certain only if they are as near to it as any other placement in each
        resource class, and all others are farther from it in some class. The distance is the sum
        of the amounts by which both differ.

    A present allocation is right although the traits or inventories of its provider changed since.
    The search is bounded; what it does not find in time is not certain.
    """
    amounts = collect_amounts(present)
    fitted = [_fit_to_host(request, tree) for request in requests]
    doubts = _collect_doubts(fitted, tree, amounts)
    # Placement refuses to look for nothing, so that Nova has not placed the server by any of them.
    if not doubts and not any(map(sum_request, fitted)):
        why = Reason(
            "flavor_requests_nothing",
            "its flavor requests nothing at all, and Nova places no such server",
        )
        return Expectation(None, None, why, (), ())
    # What may only have added something explains nothing where nothing is too much.
    if all(missing.pci for missing, _doubt in doubts):
        exact = _find_exact(fitted, tree, amounts)
        if exact is not None:
            return exact
    if doubts:
        return _compare_in_doubt(fitted, tree, amounts, doubts)
    contradiction = _find_contradiction(fitted, tree, amounts)
    if contradiction:
        return Expectation(None, None, contradiction, fitted[0].rules, ())
    return _find_expected(fitted, tree, amounts)


def _find_exact(
    requests: Sequence[ResourceRequest], tree: HostTree, present: Amounts
) -> Expectation | None:
    """Return that all is right, or that this is unknown; None if it is wrong."""
    complete = True
    for request in requests:
        solution = find_closest(build_exact_problem(request, tree, present))
        if solution.placements:
            return Expectation(True, collect_allocations(present), NO_REASON, request.rules, ())
        complete = complete and solution.complete
    if complete:
        return None
    return Expectation(None, None, TOO_MANY, requests[0].rules, ())


def _collect_doubts(
    requests: Sequence[ResourceRequest], tree: HostTree, present: Amounts
) -> list[tuple[MissingInput, _Doubt]]:
    """Return what is missing and can change something on this host, each once."""
    missing = dict.fromkeys(part for request in requests for part in request.missing)
    doubts = [(part, _find_doubt(part, tree, present)) for part in missing]
    return [(part, doubt) for part, doubt in doubts if doubt is not None]


def _compare_in_doubt(
    requests: Sequence[ResourceRequest],
    tree: HostTree,
    present: Amounts,
    doubts: Sequence[tuple[MissingInput, _Doubt]],
) -> Expectation:
    """Compare only those amounts that nothing can change that is missing."""
    missing = tuple(item for item, _doubt in doubts)
    why = explain_missing(missing)
    if any(doubt.everything for _item, doubt in doubts):
        return Expectation(None, None, why, requests[0].rules, missing)
    for request in requests:
        ignored = _list_doubted_keys(request, tree, present, [doubt for _item, doubt in doubts])
        solution = find_closest(build_exact_problem(request, tree, present, ignored))
        if solution.placements or not solution.complete:
            return Expectation(None, None, why, request.rules, missing)
    return Expectation(False, None, why, requests[0].rules, missing)


def _list_doubted_keys(
    request: ResourceRequest, tree: HostTree, present: Amounts, doubts: Sequence[_Doubt]
) -> frozenset[Key]:
    classes = {cls for _provider, cls in present} | sum_request(request).keys()
    keys = set()
    for provider, cls in itertools.product(tree.providers.values(), classes):
        key = (provider.uuid, cls)
        possible = cls in provider.inventories or key in present
        if any(doubt.covers(key, possible) for doubt in doubts):
            keys.add(key)
    return frozenset(keys)


def _find_expected(
    requests: Sequence[ResourceRequest], tree: HostTree, present: Amounts
) -> Expectation:
    """Return the only placement that is nearest to what is present, if there is one."""
    nearest: list[tuple[ResourceRequest, Amounts]] = []
    lacking: list[str] = []
    for request in requests:
        problem = build_problem(request, tree, present)
        lacking = lacking or list_unplaceable_classes(problem)
        placements, doubt = find_nearest(problem)
        if doubt:
            return Expectation(False, None, doubt, request.rules, ())
        if len(placements) > 1:
            why = _describe_choice(placements, tree)
            # Cyborg may know which it is.
            missing = tuple(item for item in request.missing if item.name == "accelerators")
            return Expectation(False, None, why, request.rules, missing)
        if placements:
            nearest.append((request, placements[0]))
    if not nearest:
        what = ", ".join(lacking) or "all that it requests"
        why = Reason(
            "no_provider_fits", f"no provider of its host can have {what} as Nova requests it"
        )
        return Expectation(None, None, why, requests[0].rules, ())
    # Only the usual request has PCPU, and people who repair an allocation write VCPU.
    cpus = _list_cpu_classes(present)
    if "PCPU" in cpus:
        nearest = [pair for pair in nearest if _list_cpu_classes(pair[1]) == cpus] or nearest
    request, placement = nearest[0]
    for other_request, other in nearest[1:]:
        if is_nearer(other, placement, present):
            request, placement = other_request, other
        elif not is_nearer(placement, other, present) and cpus:
            why = Reason("cpu_class_ambiguous", "it can have dedicated CPUs as PCPU or as VCPU")
            return Expectation(False, None, why, request.rules, ())
    return Expectation(False, collect_allocations(placement), NO_REASON, request.rules, ())


def _list_cpu_classes(amounts: Mapping[Key, int]) -> set[str]:
    return {cls for _provider, cls in amounts} & {"VCPU", "PCPU"}


def _describe_choice(placements: Sequence[Mapping[Key, int]], tree: HostTree) -> Reason:
    first, second = placements[:2]
    differing = sorted({key for key, _amount in first.items() ^ second.items()})
    classes = dict.fromkeys(cls for _provider, cls in differing)
    providers = dict.fromkeys(tree.providers[provider].name for provider, _cls in differing)
    names = summarize_names(make_printable(name, 100) for name in providers)
    return Reason(
        "several_placements",
        f"its {', '.join(classes)} can be of more than one provider, such as {names}",
    )


# Nova gives it to each provider of a PCI device (nova/compute/pci_placement_translator.py).
PCI_TRAIT = "COMPUTE_MANAGED_PCI_DEVICE"
# These decide only on which provider has something, not on amounts.
_WITHOUT_AMOUNTS = ("accelerators",)


@d.dataclass(frozen=True)
class _Doubt:
    """What a missing input may change on a host.

    everything: whether it may change any amount. providers, classes: else the providers and the
        resource classes of which it may change the amounts.
    """

    everything: bool = False
    providers: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()

    def covers(self, key: Key, possible: bool) -> bool:
        """Return whether it may change the amount of this class on this provider.

        possible: whether the provider has an inventory or an allocation of the class. An amount
            that may not be requested at all need not be possible anywhere.
        """
        if self.everything or key[1] in self.classes:
            return True
        return possible and key[0] in self.providers


def _find_doubt(missing: MissingInput, tree: HostTree, present: Collection[Key]) -> _Doubt | None:
    """Return what a missing input may change on this host; None if it changes nothing there.

    What no provider has an inventory of, nothing can have requested: the server is on this host.
    """
    if missing.name in _WITHOUT_AMOUNTS:
        return None
    if missing.classes is not None:
        here = {cls for _provider, cls in present}.union(
            *(provider.inventories for provider in tree.providers.values())
        )
        if missing.classes.isdisjoint(here - {"VCPU"}):
            return None
        return _Doubt(classes=missing.classes)
    if missing.pci or missing.name == "pci_alias":
        doubt = _doubt_providers(tree, lambda one: PCI_TRAIT in one.traits)
        # Where no device is allocated, none has been added.
        allocated = {provider for provider, _cls in present}
        if missing.pci and doubt and doubt.providers.isdisjoint(allocated):
            return None
        return doubt
    if missing.name in ("ports", "device_profile"):
        return _doubt_providers(tree, lambda one: one.parent is not None and not one.sharing)
    return _Doubt(everything=True)


def _doubt_providers(tree: HostTree, test: Callable[[TreeProvider], bool]) -> _Doubt | None:
    rows = [one for one in tree.providers.values() if one.inventories and test(one)]
    return _Doubt(providers=frozenset(one.uuid for one in rows)) if rows else None


def _fit_to_host(request: ResourceRequest, tree: HostTree) -> ResourceRequest:
    """Return the request without the PCI devices that Nova does not have in Placement.

    No API shows `[pci]report_in_placement`, but a host where it is set has a provider for each
    device (nova/compute/pci_placement_translator.py). Where such providers exist and none has the
    class of an alias, the alias is not that of Nova: then `pci_alias` is missing.
    """
    devices = [one for one in tree.providers.values() if PCI_TRAIT in one.traits]
    reported = {cls for device in devices for cls in device.inventories}
    absent = {
        name: group.resources
        for name, group in request.groups.items()
        if group.pci and reported.isdisjoint(group.resources)
    }
    strange = {cls for resources in absent.values() for cls in resources}
    if not strange:
        return request
    missing = request.missing
    if devices:
        reason = f"no PCI device of its host has {', '.join(sorted(strange))}, as the alias says"
        missing = (*missing, MissingInput("pci_alias", reason))
    groups = {name: group for name, group in request.groups.items() if name not in absent}
    rules = tuple(rule for rule in request.rules if rule.group in groups)
    return d.replace(request, groups=groups, rules=rules, missing=missing)


def _find_contradiction(
    requests: Sequence[ResourceRequest], tree: HostTree, present: Mapping[Key, int]
) -> Reason | None:
    """Return what contradicts what, so that no change can be certain; None if nothing does."""
    doubts = (_find_provider_doubt(request, tree, present) for request in requests)
    doubt = next(filter(None, doubts), None)
    if doubt or any(provider not in tree.providers for provider, _cls in present):
        return doubt
    if sum_amounts(collect_allocations(present).values()) not in map(sum_request, requests):
        return None
    return Reason(
        "right_amounts_on_other_providers",
        "its amounts are right, but not on the providers on which Nova would request them",
    )


def _find_provider_doubt(
    request: ResourceRequest, tree: HostTree, present: Mapping[Key, int]
) -> Reason | None:
    for group in request.groups.values():
        if group.provider is None or not group.resources:
            continue
        if group.provider not in tree.providers:
            return Reason(
                "group_provider_of_other_host",
                f"provider {group.provider} of request group {group.name} is not of its host",
            )
        if any((group.provider, cls) in present for cls in group.resources):
            continue
        for provider in tree.providers:
            if all((provider, cls) in present for cls in group.resources):
                return Reason(
                    "group_provider_contradicted",
                    f"request group {group.name} has provider {group.provider} according to "
                    f"another service and {provider} according to Placement",
                )
    return None
