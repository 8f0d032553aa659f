# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stranded amounts, what the same providers have in total, and over-committed hosts. Pure.

No request is made for it: the listings have what is allocated and what nova-compute reports. An
allocation ratio above 1 allows more than a host has, so that is a figure, and not a finding for
each host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..facts.groups import find_project
from ..facts.index import SnapshotIndex
from ..models.codec import Json
from ..models.finding import Finding
from ..models.nova import Hypervisor
from ..models.placement import ProviderDetails, Resources, sum_amounts, sum_amounts_by_key
from .entries import Stranded


def summarize_stranded(findings: Iterable[Finding], index: SnapshotIndex) -> Stranded:
    """Return the stranded amounts, and which fraction of all allocated amounts they are.

    The allocated amounts and the fractions (`share_of_claimed`, from 0 to 1) are only there after a
    reading of the whole cloud.
    """
    by_provider: list[tuple[str, Resources]] = []
    by_owner: list[tuple[str, Resources]] = []
    # Placement counts for a quota by the project that it has, also where Nova has another one.
    by_charged: list[tuple[str, Resources]] = []
    consumers: dict[str, set[str]] = {}
    for finding in findings:
        charged = (finding.allocation.project or "") if finding.allocation else ""
        for provider, amounts in finding.frees.items():
            by_provider.append((index.get_name(provider), amounts))
            by_owner.append((finding.owner or "", amounts))
            by_charged.append((charged, amounts))
            consumers.setdefault(charged, set()).add(finding.subject)
    stranded = sum_amounts(amounts for _project, amounts in by_owner)
    allocated = _sum_allocated(stranded, index)
    projects, given_back = _sum_and_sort(by_owner), _sum_and_sort(by_charged)
    quota = {
        project: _summarize_quota(
            project, given_back.get(project, {}), len(consumers.get(project, ())), index
        )
        for project in sorted({*projects, *given_back})
    }
    return {
        "resource_classes": stranded,
        "allocated": allocated,
        "share_of_claimed": _compute_fractions(stranded, allocated),
        "providers": _sum_and_sort(by_provider),
        "projects": projects,
        "quota": quota,
    }


def _summarize_quota(
    project: str, amounts: Mapping[str, int], consumers: int, index: SnapshotIndex
) -> Json:
    """Return what a project gets back of its quota.

    Nova counts cores and RAM in Placement, but servers in its own database (nova/quota.py,
    _cores_ram_count_placement): an orphan takes nothing of the quota for servers. With unified
    limits it counts each resource class by itself (nova/limit/placement.py, _get_usage).
    """
    name, exists = find_project(project, index.snapshot)
    return {
        "name": name,
        "exists": exists,
        "consumers": consumers,
        "cores": amounts.get("VCPU", 0) + amounts.get("PCPU", 0),
        "ram_mib": amounts.get("MEMORY_MB", 0),
        "resource_classes": dict(amounts),
    }


def _sum_allocated(classes: Iterable[str], index: SnapshotIndex) -> dict[str, int]:
    """Return what is allocated of each of the resource classes in the whole cloud."""
    # Of a part of the cloud the allocated amounts are not all there: a fraction would mislead.
    if index.snapshot.trees is not None:
        return {}
    allocated = sum_amounts(index.used.values())
    return {cls: allocated[cls] for cls in sorted(classes) if allocated.get(cls)}


def _compute_fractions(
    stranded: Mapping[str, int], allocated: Mapping[str, int]
) -> dict[str, float]:
    """Return by resource class which fraction of the allocated amounts is stranded."""
    return {cls: round(stranded[cls] / amount, 4) for cls, amount in allocated.items()}


def _sum_and_sort(amounts: Iterable[tuple[str, Resources]]) -> dict[str, dict[str, int]]:
    """Return the sums of the amounts for each name, sorted by name and resource class."""
    sums = sum_amounts_by_key(amounts)
    return {name: dict(sorted(sums[name].items())) for name in sorted(sums)}


def summarize_capacity(findings: Iterable[Finding], index: SnapshotIndex) -> Json:
    """Return by resource class what the providers have, and how much is allocated and stranded.

    Only the providers whose inventory was read count, in each of the sums.
    """
    stranded = sum_amounts_by_key(pair for each in findings for pair in each.frees.items())
    rows: list[tuple[str, Resources]] = []
    for uuid, details in index.snapshot.details.items():
        if not index.covers(index.get_root(uuid) or uuid):
            continue
        for cls, inventory in details.inventories.items():
            row = {
                "total": inventory.total,
                "reserved": inventory.reserved,
                "capacity": inventory.capacity,
                "used": index.used.get(uuid, {}).get(cls, 0),
                "stranded": stranded.get(uuid, {}).get(cls, 0),
                "providers": 1,
            }
            rows.append((cls, row))
    return dict(sorted(sum_amounts_by_key(rows).items()))


def describe_providers(findings: Iterable[Finding], index: SnapshotIndex) -> list[Json]:
    """Return what each provider has that a finding is about, sorted by the providers' names.

    By resource class: its inventory, the amounts that are used and stranded, and what Nova reports
    for the compute node.
    """
    freed_amounts: list[tuple[str, Resources]] = []
    for finding in findings:
        freed_amounts += finding.frees.items()
        # A provider is described even if nothing of it is freed.
        freed_amounts += [(provider, {}) for provider in finding.providers]
    sums = sum_amounts_by_key(freed_amounts)
    return [
        _describe_provider(uuid, sums[uuid], index) for uuid in sorted(sums, key=index.get_name)
    ]


def _describe_provider(uuid: str, stranded: Mapping[str, int], index: SnapshotIndex) -> Json:
    details = index.snapshot.details.get(uuid, ProviderDetails())
    used, node = index.used.get(uuid, {}), index.nodes.get(uuid)
    # A shard does not read all allocations of a provider that belongs to another one.
    knows_used = index.covers(index.get_root(uuid) or uuid)
    figures = ("total", "reserved", "allocation_ratio", "capacity")
    classes: Json = {}
    for cls in sorted({*details.inventories, *used, *stranded}):
        inventory = details.inventories.get(cls)
        classes[cls] = {
            **{figure: getattr(inventory, figure, None) for figure in figures},
            "used": used.get(cls, 0) if knows_used else None,
            "stranded": stranded.get(cls, 0),
            "hypervisor_total": node.has.get(cls) if node else None,
            "hypervisor_used": node.used.get(cls) if node else None,
        }
    return {"uuid": uuid, "name": index.get_name(uuid), "resource_classes": classes}


def summarize_overcommit(index: SnapshotIndex) -> dict[str, Json]:
    """Return by resource class how many hosts are over-committed, and how much at most.

    A class is left out of which no host reports a figure, such as that of dedicated CPUs.
    """
    ratios: dict[str, list[tuple[float, str]]] = {}
    for uuid, node in sorted(index.nodes.items()):
        # What is allocated on a host out of scope was not read.
        if uuid not in index.providers or not index.covers(uuid):
            continue
        for cls in node.has:
            ratio = _compute_ratio(index, node, cls)
            if ratio is not None:
                ratios.setdefault(cls, []).append((ratio, node.host))
    return {cls: _summarize_ratios(rows) for cls, rows in sorted(ratios.items())}


def _summarize_ratios(ratios: Sequence[tuple[float, str]]) -> Json:
    highest, host = max(((round(ratio, 2), host) for ratio, host in ratios), key=lambda row: row[0])
    return {
        "hosts": len(ratios),
        "overcommitted": sum(ratio > 1 for ratio, _host in ratios),
        "highest": highest,
        "highest_host": host if highest else "",
    }


def _compute_ratio(index: SnapshotIndex, node: Hypervisor, cls: str) -> float | None:
    """Return how many times what a host has is allocated; None where that is not known.

    What the host reserves for itself is taken off where the inventory was read.
    """
    details = index.snapshot.details.get(node.uuid)
    stock = details.inventories if details else {}
    physical = node.has[cls] - (stock[cls].reserved if cls in stock else 0)
    if physical <= 0:
        return None
    return index.used.get(node.uuid, {}).get(cls, 0) / physical
