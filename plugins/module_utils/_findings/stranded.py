# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""What stranded claims cost: amounts by resource class, provider and project, and what the providers have besides. Pure."""

from __future__ import annotations

import collections
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._models.placement import totals

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._models.change import Amounts
    from ansible_collections.osops.placement.plugins.module_utils._models.verdict import Finding
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.index import (
        SnapshotIndex,
    )


def get_freed_amounts(finding: Finding) -> Amounts:
    """Return what would be free if the change of `finding` were made, by provider and resource class."""
    return getattr(finding.change, "frees", {})


def summarize_stranded(findings: Iterable[Finding], index: SnapshotIndex) -> dict[str, t.Any]:
    """Return what the findings hold in vain, and which share that is of all that is claimed, if all of that was read."""
    of_provider: dict[str, list[Mapping[str, int]]] = {}
    of_project: dict[str, list[Mapping[str, int]]] = {}
    for finding in findings:
        for provider, amounts in get_freed_amounts(finding).items():
            of_provider.setdefault(index.get_name(provider), []).append(amounts)
            of_project.setdefault(
                (finding.allocation and finding.allocation.project) or "", []
            ).append(amounts)
    sums = totals(amounts for shares in of_provider.values() for amounts in shares)
    scope = index.snapshot.scope
    claimed = {} if scope.is_narrow or scope.shard else totals(index.used.values())
    return {
        "resource_classes": sums,
        "share_of_claimed": {
            cls: round(amount / claimed[cls], 4) for cls, amount in sums.items() if claimed.get(cls)
        },
        "providers": {name: totals(shares) for name, shares in sorted(of_provider.items())},
        "projects": {project: totals(shares) for project, shares in sorted(of_project.items())},
    }


def summarize_capacity(index: SnapshotIndex) -> dict[str, t.Any]:
    """Return by resource class what all providers have whose inventory was read, and how much of it is claimed."""
    sums: dict[str, collections.Counter[str]] = {}
    for uuid, details in index.snapshot.details.items():
        if not index.covers(index.get_root(uuid) or uuid):
            continue
        for cls, stock in details.inventories.items():
            used = index.used.get(uuid, {}).get(cls, 0)
            sums.setdefault(cls, collections.Counter()).update(
                total=stock.total, reserved=stock.reserved, capacity=stock.capacity, used=used
            )
    return {cls: dict(counted) for cls, counted in sorted(sums.items())}


def describe_providers(findings: Iterable[Finding], index: SnapshotIndex) -> list[dict[str, t.Any]]:
    """Return what each provider has that a finding is about: its inventory, what is claimed, stranded, and what Nova reports."""
    in_vain: dict[str, list[Mapping[str, int]]] = {}
    for finding in findings:
        freed = get_freed_amounts(finding)
        for provider in (*freed, *finding.providers):
            in_vain.setdefault(provider, []).append(freed.get(provider, {}))
    return [
        _describe_provider(uuid, totals(shares), index)
        for uuid, shares in sorted(in_vain.items(), key=lambda known: index.get_name(known[0]))
    ]


def _describe_provider(
    uuid: str, stranded_amounts: Mapping[str, int], index: SnapshotIndex
) -> dict[str, t.Any]:
    details, node = index.snapshot.details.get(uuid), index.nodes.get(uuid)
    inventories = details.inventories if details else {}
    used = index.used.get(uuid, {})
    known = index.covers(index.get_root(uuid) or uuid)
    classes = sorted({*inventories, *used, *stranded_amounts})
    return {
        "uuid": uuid,
        "name": index.get_name(uuid),
        "resource_classes": {
            cls: {
                "total": inventories[cls].total if cls in inventories else None,
                "reserved": inventories[cls].reserved if cls in inventories else None,
                "allocation_ratio": inventories[cls].allocation_ratio
                if cls in inventories
                else None,
                "capacity": inventories[cls].capacity if cls in inventories else None,
                "used": used.get(cls, 0) if known else None,
                "stranded": stranded_amounts.get(cls, 0),
                "hypervisor_total": node.has.get(cls) if node else None,
                "hypervisor_used": node.used.get(cls) if node else None,
            }
            for cls in classes
        },
    }
