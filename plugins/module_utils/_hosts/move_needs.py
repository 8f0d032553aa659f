# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a server needs from its next host, as Nova's scheduler asks Placement for it. Pure.

How Nova makes a request of a flavor: nova/scheduler/utils.py, ResourceRequest.from_request_spec;
and what it adds for zones, projects and disabled hosts: nova/scheduler/request_filter.py.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping

from .._core.models.nova import Aggregate
from .._core.models.placement import Allocations, Resources, sum_amounts
from .._core.resources.candidate_requests import DISABLED_TRAIT
from .draining import AFFINITY, ANTI_AFFINITY, DrainServer, MoveNeed, ServerGroup
from .flavor import calculate_resources, list_special_specs

# Nova asks for at most so many candidates (nova/conf/scheduler.py, max_placement_results).
MAX_CANDIDATES = 1000

_TRAIT_PREFIX = "trait:"

# The keys of an aggregate that keep it for some projects (nova/scheduler/request_filter.py).
_PROJECT_KEY = "filter_tenant_id"


def build_need(
    server: DrainServer, allocations: Allocations | None, aggregates: Iterable[Aggregate]
) -> MoveNeed | None:
    """Return what a server needs; None where neither its flavor nor its allocation shows it.

    allocations: what it has now; None where that is not known.
    """
    resources = calculate_amounts(server, allocations)
    if not resources:
        return None
    required, forbidden = list_traits(server)
    return MoveNeed(
        resources=tuple(sorted(resources.items())),
        required=required,
        # Nova never selects a host whose compute service is disabled.
        forbidden=forbidden | {DISABLED_TRAIT},
        member_of=_list_memberships(server, tuple(aggregates)),
    )


def calculate_amounts(server: DrainServer, allocations: Allocations | None) -> Resources:
    """Return the amounts by resource class that the next host has to have.

    A plain flavor says them. For any other flavor the present allocation says more.
    """
    flavor = server.server.flavor
    # Devices, pinned CPUs and NUMA topologies change the resource classes, not only the amounts.
    is_plain = not list_special_specs({**server.extra_specs, **server.image_properties})
    if flavor is not None and flavor.extra_specs is not None and is_plain:
        return calculate_resources(flavor, server.is_volume_backed)
    if allocations:
        return sum_amounts(allocations.values())
    if flavor is not None:
        return calculate_resources(flavor, server.is_volume_backed)
    return {}


def list_traits(server: DrainServer) -> tuple[frozenset[str], frozenset[str]]:
    """Return the traits that a server requires, and those that it forbids."""
    required: set[str] = set()
    forbidden: set[str] = set()
    for name, value in (*server.extra_specs.items(), *server.image_properties.items()):
        if not name.startswith(_TRAIT_PREFIX):
            continue
        trait = name.removeprefix(_TRAIT_PREFIX)
        if value == "required":
            required.add(trait)
        elif value == "forbidden":
            forbidden.add(trait)
    return frozenset(required), frozenset(forbidden)


def _list_memberships(
    server: DrainServer, aggregates: tuple[Aggregate, ...]
) -> tuple[frozenset[str], ...]:
    memberships: list[frozenset[str]] = []
    if server.pinned_zone is not None:
        in_zone = {entry.uuid for entry in aggregates if entry.zone == server.pinned_zone}
        # The zone of hosts without a zone has no aggregate, and Nova then asks for none.
        if in_zone:
            memberships.append(frozenset(in_zone))
    of_project = {
        entry.uuid for entry in aggregates if server.server.project in list_projects(entry)
    }
    if of_project:
        memberships.append(frozenset(of_project))
    return tuple(memberships)


def list_projects(aggregate: Aggregate) -> set[str]:
    """Return the projects for which an aggregate is kept; empty if it is for all of them."""
    projects: set[str] = set()
    for key, value in aggregate.metadata.items():
        if key.startswith(_PROJECT_KEY):
            projects.update(part.strip() for part in value.split(","))
    return projects


def find_isolated_hosts(server: DrainServer, aggregates: Iterable[Aggregate]) -> dict[str, str]:
    """Return the hosts that are kept for other servers, each with the name of its aggregate.

    An aggregate is kept for some projects, or for the flavors and images that require its traits.
    Whether Nova enforces that depends on its configuration, which no API shows: a host that may be
    refused is not promised.
    """
    required, _forbidden = list_traits(server)
    isolated: dict[str, str] = {}
    for aggregate in aggregates:
        projects = list_projects(aggregate)
        is_for_others = bool(projects) and server.server.project not in projects
        if is_for_others or _list_isolating_traits(aggregate) - required:
            for host in aggregate.hosts:
                isolated.setdefault(host, aggregate.name)
    return isolated


def _list_isolating_traits(aggregate: Aggregate) -> set[str]:
    traits = set()
    for key, value in aggregate.metadata.items():
        if key.startswith(_TRAIT_PREFIX) and value == "required":
            traits.add(key.removeprefix(_TRAIT_PREFIX))
    return traits


def allows_group(
    group: ServerGroup, server: str, host: str, places: Mapping[str, str], source: str
) -> bool:
    """Return whether the scheduler would let a member of a group move to a host.

    It refuses only what violates a hard policy (nova/scheduler/filters/affinity_filter.py).

    places: the hosts of the members by uuid, without those that have no host. source: the host that
        the server leaves.
    """
    others = [places[member] for member in group.members if member != server and member in places]
    if group.policy == ANTI_AFFINITY:
        return others.count(host) < group.max_per_host
    if group.policy == AFFINITY:
        # Nova counts the server itself as a member on its present host, so it may only go where
        # another member already is.
        return host in others and host != source
    return True


def build_candidate_query(need: MoveNeed) -> dict[str, t.Any]:
    """Return the parameters of `GET /allocation_candidates`."""
    required = sorted(need.required) + [f"!{trait}" for trait in sorted(need.forbidden)]
    query: dict[str, t.Any] = {
        "resources": ",".join(f"{cls}:{amount}" for cls, amount in need.resources),
        "limit": str(MAX_CANDIDATES),
    }
    if required:
        query["required"] = ",".join(required)
    if need.member_of:
        # The parameter is repeated: the host must be in one aggregate of each set.
        query["member_of"] = [f"in:{','.join(sorted(uuids))}" for uuids in need.member_of]
    return query
