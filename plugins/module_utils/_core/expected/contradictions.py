# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What about a request and a host forbids to conclude anything. Pure."""

from __future__ import annotations

import dataclasses as d
from collections.abc import Mapping, Sequence

from ..models.resource_request import HostTree, MissingInput, ResourceRequest
from .doubts import PCI_TRAIT
from .problems import sum_request
from .search import Key


def fit_to_host(request: ResourceRequest, tree: HostTree) -> ResourceRequest:
    """Return the request without the PCI devices that Nova does not have in Placement.

    No API shows `[pci]report_in_placement`, but a host where it is set has a provider for each
    device (nova/compute/pci_placement_translator.py). Where such providers exist and none has the
    class of an alias, the alias is not that of Nova: then `pci_alias` is missing.
    """
    reported: set[str] = set()
    has_devices = False
    for provider in tree.providers.values():
        if PCI_TRAIT in provider.traits:
            has_devices = True
            reported |= provider.inventories.keys()
    groups = {}
    strange: set[str] = set()
    for name, group in request.groups.items():
        if group.pci and reported.isdisjoint(group.resources):
            strange |= group.resources.keys()
            continue
        groups[name] = group
    if not strange:
        return request
    missing = request.missing
    if has_devices:
        reason = f"no PCI device of its host has {', '.join(sorted(strange))}, as the alias says"
        missing = (*missing, MissingInput("pci_alias", reason))
    rules = tuple(rule for rule in request.rules if rule.group in groups)
    return d.replace(request, groups=groups, rules=rules, missing=missing)


def find_contradiction(
    requests: Sequence[ResourceRequest], tree: HostTree, present: Mapping[Key, int]
) -> str:
    """Return what contradicts what, so that no change can be certain; empty if nothing does."""
    for request in requests:
        doubt = _find_provider_doubt(request, tree, present)
        if doubt:
            return doubt
    sums: dict[str, int] = {}
    for (provider, cls), amount in present.items():
        if provider not in tree.providers:
            return ""
        sums[cls] = sums.get(cls, 0) + amount
    for request in requests:
        if sums == sum_request(request):
            return (
                "its amounts are right, but not on the providers on which Nova would request them"
            )
    return ""


def _find_provider_doubt(
    request: ResourceRequest, tree: HostTree, present: Mapping[Key, int]
) -> str:
    for group in request.groups.values():
        if group.provider is None or not group.resources:
            continue
        if group.provider not in tree.providers:
            return f"provider {group.provider} of request group {group.name} is not of its host"
        if any((group.provider, cls) in present for cls in group.resources):
            continue
        for provider in tree.providers:
            if all((provider, cls) in present for cls in group.resources):
                return (
                    f"request group {group.name} has provider {group.provider} according to "
                    f"another service and {provider} according to Placement"
                )
    return ""
