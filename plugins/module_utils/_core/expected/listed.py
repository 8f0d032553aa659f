# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a listing of servers says of their amounts, without any lookup. Pure.

A listing shows flavors and images, and neither ports nor the tree of a host. It is therefore the
sums over all providers that are compared.
"""

from __future__ import annotations

import dataclasses as d
from collections.abc import Mapping

from ..models.nova import Server
from ..models.placement import Allocations, Resources, sum_amounts
from ..models.resource_request import MissingInput, PciAlias, ResourceRequest, ServerInputs
from .inputs import build_listed_inputs
from .request import build_requests

# What is missing, by the name of the input, of a server whose flavor is not known at all.
NO_FLAVOR = "flavor"

# The properties of the image of a volume, which Cinder shows and not Nova.
VOLUME_IMAGE = "volume_image"

# What could explain that a server has more than its flavor and image request.
_EXPLAINING = frozenset({"pci_alias", "device_profile", "accelerators"})


@d.dataclass(frozen=True)
class ListedComparison:
    """What a listing says of the amounts of one server.

    fits: whether their sums are what its flavor and image request.
    missing: what would have to be read to know that, as names of `MissingInput`.
    explained: whether something that is missing may explain that they do not fit.
    """

    fits: bool
    missing: tuple[str, ...]
    explained: bool = False


def compare_listed(
    server: Server, allocations: Allocations, pci_aliases: Mapping[str, PciAlias]
) -> ListedComparison:
    """Compare the sums of the allocations of a server with its flavor and image.

    allocations: all that the server has, on whatever provider.
    """
    if server.flavor is None:
        return ListedComparison(fits=True, missing=(NO_FLAVOR,))
    inputs = build_listed_inputs(server.flavor, server, pci_aliases)
    totals = sum_amounts(allocations.values())
    requests = _build_all_requests(inputs)
    missing = tuple(dict.fromkeys(name_missing(row, server) for row in requests[0].missing))
    sums = [_sum_request(request) for request in requests]
    # PCI devices are in Placement only where Nova is configured so.
    sums.extend(_sum_request(request, with_pci=False) for request in requests)
    explained = not _EXPLAINING.isdisjoint(missing) and any(
        _has_all_of(totals, amounts) for amounts in sums
    )
    return ListedComparison(fits=totals in sums, missing=missing, explained=explained)


def name_missing(missing: MissingInput, server: Server) -> str:
    """Return the name under which the summary counts the servers of which something is missing."""
    if missing.name == "image" and not server.image:
        return VOLUME_IMAGE
    return missing.name


def _build_all_requests(inputs: ServerInputs) -> list[ResourceRequest]:
    requests = list(build_requests(inputs))
    # Either amount of disk may be right while it is unknown whether the root disk is a volume.
    if inputs.volume_backed is None:
        requests.extend(build_requests(d.replace(inputs, volume_backed=True)))
    return requests


def _sum_request(request: ResourceRequest, with_pci: bool = True) -> dict[str, int]:
    groups = request.groups.values()
    return sum_amounts(group.resources for group in groups if with_pci or not group.pci)


def _has_all_of(totals: Resources, amounts: Resources) -> bool:
    return all(totals.get(cls, 0) == amount for cls, amount in amounts.items())
