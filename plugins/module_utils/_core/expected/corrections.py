# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How amounts become what they should be, and what is never taken from a live server. Pure."""

from __future__ import annotations

import dataclasses as d
from collections.abc import Iterable

from ..models.placement import Allocations, Resources, subtract_amounts
from ..models.resource_request import AmountRule, HostTree

# Of these a guest has what its flavor says, whatever is allocated.
_ORDINARY_CLASSES = frozenset({"VCPU", "PCPU", "MEMORY_MB", "DISK_GB"})


@d.dataclass(frozen=True)
class Correction:
    """What a server should have, or why that may not be written.

    why: a part of a sentence; empty where `allocations` may be written.
    """

    allocations: Allocations
    why: str = ""


def correct_amounts(
    present: Allocations, expected: Allocations, tree: HostTree | None
) -> Correction:
    """Return what a server should have after a correction of what is `present`.

    A surplus on a child provider stays, because its guest may use the device.
    """
    surplus = find_surplus_on_children(present, expected, tree)
    lacking = find_surplus_on_children(present=expected, expected=present, tree=tree)
    if surplus and lacking:
        # Its guest may use the device that it has, in place of the one that it should have.
        return Correction(present, "it has other devices of its host than it should have")
    for provider, amounts in present.items():
        if tree is None or not tree.providers[provider].sharing:
            continue
        unneeded = sorted(amounts.keys() - expected.get(provider, {}).keys())
        if unneeded:
            name = tree.providers[provider].name
            return Correction(
                present,
                f"it has {', '.join(unneeded)} on {name}, which hosts share, and does not need it",
            )
    unrequested = _find_unrequested_devices(present, expected, tree)
    if unrequested:
        # Some drivers report devices on the root provider, such as vGPUs before Stein.
        return Correction(present, f"its guest may use the {unrequested} that it does not need")
    corrected: dict[str, dict[str, int]] = {}
    for provider, amounts in (*expected.items(), *surplus.items()):
        corrected.setdefault(provider, {})
        for cls, amount in amounts.items():
            corrected[provider][cls] = corrected[provider].get(cls, 0) + amount
    # A type checker does not take one mapping for the other.
    return Correction(dict(corrected))


def find_surplus_on_children(
    present: Allocations, expected: Allocations, tree: HostTree | None
) -> dict[str, Resources]:
    """Return what is `present` beyond what is `expected` on the child providers of a host."""
    surplus: dict[str, Resources] = {}
    if tree is None:
        return surplus
    for provider, more in subtract_amounts(present, expected).items():
        if provider != tree.root and not tree.providers[provider].sharing:
            surplus[provider] = more
    return surplus


def _find_unrequested_devices(
    present: Allocations, expected: Allocations, tree: HostTree | None
) -> str:
    """Return the classes on the root provider that may be devices and that nothing requests."""
    if tree is None:
        return ""
    on_root = present.get(tree.root, {}).keys() - expected.get(tree.root, {}).keys()
    return ", ".join(sorted(on_root - _ORDINARY_CLASSES))


def format_rules(rules: Iterable[AmountRule]) -> str:
    """Return the amounts of a request as text, each with where it comes from."""
    sums: dict[tuple[str, str], int] = {}
    for rule in rules:
        key = (rule.resource_class, rule.source)
        sums[key] = sums.get(key, 0) + rule.amount
    return ", ".join(f"{amount} {cls} ({source})" for (cls, source), amount in sums.items())
