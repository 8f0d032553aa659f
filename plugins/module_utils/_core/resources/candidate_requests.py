# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is asked of Placement for allocation candidates, from options to query parameters."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Collection, Mapping

from ..._common.errors import InvalidInput
from ..._common.text import require_uuid
from ..models.placement import Provider, ProviderDetails, Resources
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
