# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Turn the entries of Placement's answers into objects."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping

from ..._common.times import read_http_clock
from ..._common.uuids import normalize_uuid
from ..models.placement import (
    Allocation,
    AllocationCandidates,
    Inventory,
    Provider,
    ProviderSummary,
    Resources,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from .api import Reply

# The type of a consumer that has none (from 1.38 on).
_NO_TYPE = "unknown"
# The year of the first release of Placement, in seconds since the epoch: no allocation is older.
_FIRST_RELEASE = 1451606400
_PROVIDER_KEYS = frozenset(
    {"uuid", "name", "generation", "root_provider_uuid", "parent_provider_uuid"}
)


def read_provider_entries(reply: Reply) -> list[dict[str, t.Any]]:
    """Return the entries of a listing of providers; ValueError if one is not a provider's."""
    entries: list[dict[str, t.Any]] = reply.body["resource_providers"]
    for entry in entries:
        if _PROVIDER_KEYS - entry.keys() or normalize_uuid(entry["uuid"]) is None:
            raise ValueError("an entry is not that of a provider")
    return entries


def parse_providers(
    entries: Iterable[Mapping[str, t.Any]], sharing: set[str]
) -> dict[str, Provider]:
    """Return providers by uuid; `sharing` are the uuids of those that share their inventory."""
    providers = {}
    for entry in entries:
        uuid = entry["uuid"]
        providers[uuid] = Provider(
            uuid=uuid,
            name=entry["name"],
            generation=entry["generation"],
            root=entry["root_provider_uuid"],
            parent=entry["parent_provider_uuid"],
            sharing=uuid in sharing,
        )
    return providers


def parse_inventories(entries: Mapping[str, Mapping[str, t.Any]]) -> dict[str, Inventory]:
    """Return inventories by resource class; fields of newer versions of Placement are left out."""
    inventories = {}
    for resource_class, entry in entries.items():
        inventories[resource_class] = Inventory(
            total=entry["total"],
            reserved=entry["reserved"],
            min_unit=entry["min_unit"],
            max_unit=entry["max_unit"],
            step_size=entry["step_size"],
            allocation_ratio=entry["allocation_ratio"],
        )
    return inventories


def parse_candidates(body: Mapping[str, t.Any]) -> AllocationCandidates:
    """Return the allocation candidates in a body, with the providers that they name."""
    allocations = []
    for request in body["allocation_requests"]:
        allocations.append(parse_resources(request["allocations"]))
    summaries = {}
    for provider, summary in body["provider_summaries"].items():
        summaries[provider] = _parse_summary(summary)
    return AllocationCandidates(allocations=tuple(allocations), summaries=summaries)


def _parse_summary(summary: Mapping[str, t.Any]) -> ProviderSummary:
    capacity, used = {}, {}
    for resource_class, amounts in summary["resources"].items():
        capacity[resource_class] = amounts["capacity"]
        used[resource_class] = amounts["used"]
    return ProviderSummary(
        root=summary["root_provider_uuid"],
        traits=frozenset(summary["traits"]),
        capacity=capacity,
        used=used,
    )


def parse_allocation(
    consumer: str, reply: Reply, now: float | None, has_generation: bool = True
) -> Allocation:
    """Return the allocation of a consumer in a reply, with its age by the clock of the service.

    now: the time in seconds since the epoch; None if it is unknown.
    has_generation: whether Placement shows the generations of consumers, as it does from 1.28 on.
    """
    body = reply.body
    consumer_type = body.get("consumer_type")
    if consumer_type == _NO_TYPE:
        consumer_type = None
    resources = parse_resources(body["allocations"])
    generation = age_seconds = None
    if resources:
        # The listing of a provider has allocations too, and no generation beside them.
        generation = int(body["consumer_generation"]) if has_generation else None
        age_seconds = _compute_age(reply.headers, now)
    return Allocation(
        consumer=consumer,
        generation=generation,
        project=body.get("project_id"),
        user=body.get("user_id"),
        type=consumer_type,
        resources=resources,
        age_seconds=age_seconds,
    )


def parse_resources(allocations: Mapping[str, t.Any]) -> dict[str, Resources]:
    """Return amounts by resource class, by the provider or the consumer of the entry."""
    return {provider: entry["resources"] for provider, entry in allocations.items()}


def _compute_age(headers: Mapping[str, str], now: float | None) -> int | None:
    # Each write inserts the allocations as new rows, so Last-Modified is the newest write.
    modified = read_http_clock(headers.get("Last-Modified"))
    # Some proxies write a time of their own, such as that of 1970.
    if modified is None or now is None or modified < _FIRST_RELEASE:
        return None
    return max(0, int(now - modified))
