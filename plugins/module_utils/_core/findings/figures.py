# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stranded amounts, and hosts that have more allocated than they have. Pure.

Also what the same providers have in total. Pure.

No request is made for it: the listings have what is allocated and what nova-compute reports. An
allocation ratio above 1 allows it, so it is a figure, and not a finding for each host.

For everything that reads `summary.coverage` of `findings.json`.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping, Sequence

from ..facts.groups import find_project
from ..facts.index import SnapshotIndex
from ..models.documents import Amounts
from ..models.nova import Hypervisor
from ..models.placement import Inventory, Resources, sum_amounts, sum_amounts_by_key
from ..models.verdict import Finding
from .entries import Capacity, Overcommit, ProjectQuota, ProviderCapacity, ProviderClass, Stranded

if t.TYPE_CHECKING:  # pragma: no cover
    pass


def get_freed_amounts(finding: Finding) -> Amounts:
    """Return the amounts that the change of `finding` would free, by provider and resource class.

    Empty for a finding without a change.
    """
    if finding.change is None:
        return {}
    return finding.change.frees


def summarize_stranded(findings: Iterable[Finding], index: SnapshotIndex) -> Stranded:
    """Return the stranded amounts, and which fraction of all allocated amounts they are.

    The allocated amounts and the fractions (`share_of_claimed`, from 0 to 1) are only there after a
    reading of the whole cloud.
    """
    by_provider: list[tuple[str, Resources]] = []
    by_project: list[tuple[str, Resources]] = []
    consumers: dict[str, set[str]] = {}
    for finding in findings:
        project = ""
        if finding.allocation:
            project = finding.allocation.project or ""
        for provider, amounts in get_freed_amounts(finding).items():
            by_provider.append((index.get_name(provider), amounts))
            by_project.append((project, amounts))
            consumers.setdefault(project, set()).add(finding.subject)
    stranded = sum_amounts(amounts for _project, amounts in by_project)
    allocated = _sum_allocated(stranded, index)
    projects = _sum_and_sort(by_project)
    quota = {}
    for project, amounts in projects.items():
        quota[project] = _summarize_quota(project, amounts, len(consumers[project]), index)
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
) -> ProjectQuota:
    """Return what a project gets back of its quota.

    Nova counts cores and RAM in Placement, but servers in its own database (nova/quota.py,
    _cores_ram_count_placement): an orphan takes nothing of the quota for servers.
    """
    name, exists = find_project(project, index.snapshot)
    return {
        "name": name,
        "exists": exists,
        "consumers": consumers,
        "cores": amounts.get("VCPU", 0) + amounts.get("PCPU", 0),
        "ram_mib": amounts.get("MEMORY_MB", 0),
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


def summarize_capacity(findings: Iterable[Finding], index: SnapshotIndex) -> dict[str, Capacity]:
    """Return by resource class what the providers have, and how much is allocated and stranded.

    Only the providers whose inventory was read count, in each of the sums.
    """
    freed_amounts: list[tuple[str, Resources]] = []
    for finding in findings:
        freed_amounts += get_freed_amounts(finding).items()
    stranded = sum_amounts_by_key(freed_amounts)
    sums: dict[str, Capacity] = {}
    for uuid, details in index.snapshot.details.items():
        if not index.covers(index.get_root(uuid) or uuid):
            continue
        for cls, inventory in details.inventories.items():
            of_class = sums.setdefault(cls, _create_capacity())
            of_class["total"] += inventory.total
            of_class["reserved"] += inventory.reserved
            of_class["capacity"] += inventory.capacity
            of_class["used"] += index.used.get(uuid, {}).get(cls, 0)
            of_class["stranded"] += stranded.get(uuid, {}).get(cls, 0)
            of_class["providers"] += 1
    return dict(sorted(sums.items()))


def _create_capacity() -> Capacity:
    return {
        "total": 0,
        "reserved": 0,
        "capacity": 0,
        "used": 0,
        "stranded": 0,
        "providers": 0,
    }


def describe_providers(findings: Iterable[Finding], index: SnapshotIndex) -> list[ProviderCapacity]:
    """Return what each provider has that a finding is about, sorted by the providers' names.

    By resource class: its inventory, the amounts that are used and stranded, and what Nova reports
    for the compute node.
    """
    freed_amounts: list[tuple[str, Resources]] = []
    for finding in findings:
        freed_amounts += get_freed_amounts(finding).items()
        # A provider is described even if nothing of it is freed.
        freed_amounts += [(provider, {}) for provider in finding.providers]
    sums = sum_amounts_by_key(freed_amounts)
    return [
        _describe_provider(uuid, sums[uuid], index) for uuid in sorted(sums, key=index.get_name)
    ]


def _describe_provider(
    uuid: str, stranded: Mapping[str, int], index: SnapshotIndex
) -> ProviderCapacity:
    inventories: Mapping[str, Inventory] = {}
    details = index.snapshot.details.get(uuid)
    if details:
        inventories = details.inventories
    used = index.used.get(uuid, {})
    resource_classes = {}
    for cls in sorted({*inventories, *used, *stranded}):
        resource_classes[cls] = _describe_class(uuid, cls, stranded.get(cls, 0), index)
    return {"uuid": uuid, "name": index.get_name(uuid), "resource_classes": resource_classes}


def _describe_class(uuid: str, cls: str, stranded: int, index: SnapshotIndex) -> ProviderClass:
    described: ProviderClass = {
        "total": None,
        "reserved": None,
        "allocation_ratio": None,
        "capacity": None,
        "used": None,
        "stranded": stranded,
        "hypervisor_total": None,
        "hypervisor_used": None,
    }
    details = index.snapshot.details.get(uuid)
    if details and cls in details.inventories:
        inventory = details.inventories[cls]
        described["total"] = inventory.total
        described["reserved"] = inventory.reserved
        described["allocation_ratio"] = inventory.allocation_ratio
        described["capacity"] = inventory.capacity
    # A shard does not read all allocations of a provider that belongs to another one.
    if index.covers(index.get_root(uuid) or uuid):
        described["used"] = index.used.get(uuid, {}).get(cls, 0)
    node = index.nodes.get(uuid)
    if node:
        described["hypervisor_total"] = node.has.get(cls)
        described["hypervisor_used"] = node.used.get(cls)
    return described


def summarize_overcommit(index: SnapshotIndex) -> dict[str, Overcommit]:
    """Return by resource class how many hosts are over-committed, and how much at most.

    The processors of a host are its VCPU and PCPU together. A class is left out of which no host
    reports a figure.
    """
    sums: dict[str, Overcommit] = {}
    for uuid, node in sorted(index.nodes.items()):
        # What is allocated on a host out of scope was not read.
        if uuid not in index.providers or not index.covers(uuid):
            continue
        for cls, members in node.PLACEMENT_CLASSES.items():
            ratio = _compute_ratio(index, node, cls, members)
            if ratio is None:
                continue
            of_class = sums.setdefault(cls, _create_overcommit())
            of_class["hosts"] += 1
            of_class["overcommitted"] += int(ratio > 1)
            rounded = round(ratio, 2)
            if rounded > of_class["highest"]:
                of_class["highest"] = rounded
                of_class["highest_host"] = node.host
    return dict(sorted(sums.items()))


def _create_overcommit() -> Overcommit:
    return {"hosts": 0, "overcommitted": 0, "highest": 0.0, "highest_host": ""}


def _compute_ratio(
    index: SnapshotIndex, node: Hypervisor, cls: str, members: Sequence[str]
) -> float | None:
    """Return how many times what a host has is allocated; None where that is not known.

    What the host reserves for itself is taken off where the inventory was read.
    """
    physical = node.has.get(cls, 0)
    details = index.snapshot.details.get(node.uuid)
    if details is not None:
        for member in members:
            if member in details.inventories:
                physical -= details.inventories[member].reserved
    if physical <= 0:
        return None
    used = index.used.get(node.uuid, {})
    return sum(used.get(member, 0) for member in members) / physical
