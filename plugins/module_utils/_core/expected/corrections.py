# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How amounts become what they should be, or why they stay. Pure."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Iterable

from ..._common.errors import Reason
from ..facts.consumer import (
    ConsumerView,
)
from ..models.change import build_change
from ..models.placement import Allocations, Resources, subtract_amounts
from ..models.resource_request import AmountRule, HostTree
from ..models.snapshot import Answer
from ..models.verdict import Decision, drifted
from ..options.policy import Policy
from .amounts import (
    compare_amounts,
    find_device_doubt,
    find_host_tree,
    get_host_tree,
)

# Of these a guest has what its flavor says, whatever is allocated.
_ORDINARY_CLASSES = frozenset({"VCPU", "PCPU", "MEMORY_MB", "DISK_GB"})


@d.dataclass(frozen=True)
class Correction:
    """What a server should have, or why that may not be written.

    why: a part of a sentence; None where `allocations` may be written.
    """

    allocations: Allocations
    why: Reason | None = None


def correct_amounts(present: Allocations, expected: Allocations, tree: HostTree) -> Correction:
    """Return what a server should have after a correction of what is `present`.

    A surplus on a child provider stays, because its guest may use the device.
    """
    surplus = find_surplus_on_children(present, expected, tree)
    lacking = find_surplus_on_children(present=expected, expected=present, tree=tree)
    if surplus and lacking:
        # Its guest may use the device that it has, in place of the one that it should have.
        return Correction(
            present,
            Reason("has_other_devices", "it has other devices of its host than it should have"),
        )
    for provider, amounts in present.items():
        if not tree.providers[provider].sharing:
            continue
        unneeded = sorted(amounts.keys() - expected.get(provider, {}).keys())
        if unneeded:
            name = tree.providers[provider].name
            reason = Reason(
                "unneeded_on_shared_provider",
                f"it has {', '.join(unneeded)} on {name}, which hosts share, and does not need it",
            )
            return Correction(
                present,
                reason,
            )
    unrequested = _find_unrequested_devices(present, expected, tree)
    if unrequested:
        # Some drivers report devices on the root provider, such as vGPUs before Stein.
        reason = Reason(
            "unrequested_device_in_use",
            f"its guest may use the {unrequested} that it does not need",
        )
        return Correction(
            present,
            reason,
        )
    corrected: dict[str, dict[str, int]] = {}
    for provider, amounts in (*expected.items(), *surplus.items()):
        corrected.setdefault(provider, {})
        for cls, amount in amounts.items():
            corrected[provider][cls] = corrected[provider].get(cls, 0) + amount
    # A type checker does not take one mapping for the other.
    return Correction(dict(corrected))


def find_surplus_on_children(
    present: Allocations, expected: Allocations, tree: HostTree
) -> dict[str, Resources]:
    """Return what is `present` beyond what is `expected` on the child providers of a host."""
    surplus: dict[str, Resources] = {}
    for provider, more in subtract_amounts(present, expected).items():
        if provider != tree.root and not tree.providers[provider].sharing:
            surplus[provider] = more
    return surplus


def _find_unrequested_devices(present: Allocations, expected: Allocations, tree: HostTree) -> str:
    """Return the classes on the root provider that may be devices and that nothing requests."""
    on_root = present.get(tree.root, {}).keys() - expected.get(tree.root, {}).keys()
    return ", ".join(sorted(on_root - _ORDINARY_CLASSES))


def format_rules(rules: Iterable[AmountRule]) -> str:
    """Return the amounts of a request as text, each with where it comes from."""
    sums: dict[tuple[str, str], int] = {}
    for rule in rules:
        key = (rule.resource_class, rule.source)
        sums[key] = sums.get(key, 0) + rule.amount
    return ", ".join(f"{amount} {cls} ({source})" for (cls, source), amount in sums.items())


VOLUME_MAY_HAVE_CHANGED = Reason(
    "volume_may_have_changed",
    "the image properties of its volume may have changed since it was created",
)

# The classes that a server has or has not by the properties of its image alone.
IMAGE_CLASSES = frozenset({"PCPU", "MEM_ENCRYPTION_CONTEXT"})


def choose_owner(view: ConsumerView) -> dict[str, t.Any]:
    """Return the project and user to write: those in Placement, or else those of the server."""
    server = view.server
    # A consumer without an allocation has neither in Placement.
    return {
        "project": view.allocation.project or (server.project if server else None),
        "user": view.allocation.user or (server.user if server else None),
    }


def decide_new_allocation(reason: Reason, view: ConsumerView, policy: Policy) -> Decision:
    """Decide that a server without an allocation on its host should have one there."""
    # What it has of providers that share with its host may be right.
    kept = {}
    for provider, amounts in view.allocation.resources.items():
        if view.index.is_sharing(provider):
            kept[provider] = amounts
    expectation = compare_amounts(view, policy, kept)
    if expectation is None:
        return decide_without_change(
            reason, view, Reason("needs_not_looked_up", "what it needs was not looked up")
        )
    allocations = expectation.allocations
    if allocations is None:
        return decide_without_change(reason, view, expectation.why)
    if expectation.rules:
        reason = reason.extend(f"It needs {format_rules(expectation.rules)}.")
    doubt = find_device_doubt(view, policy) or _find_volume_doubt_of_new(view)
    if doubt:
        return decide_without_change(reason, view, doubt)
    # What it was given elsewhere says what it needed there.
    strange = sorted(_list_classes(view.allocation.resources) - _list_classes(allocations))
    if strange:
        why = Reason(
            "needed_other_classes",
            f"it has {', '.join(strange)}, which it would not get on its host",
        )
        return decide_without_change(reason, view, why)
    for provider in kept:
        if provider not in allocations:
            name = view.index.get_name(provider)
            why = Reason(
                "unneeded_shared_provider",
                f"it has an allocation on {name}, which hosts share, and does not need it",
            )
            return decide_without_change(reason, view, why)
    return decide_change(reason, view, allocations)


def _find_volume_doubt_of_new(view: ConsumerView) -> Reason | None:
    """Return why the properties of a volume do not say what a server without allocation needs.

    None if they do, or do not matter on its host. A user may change them at any time (Cinder,
    `os-set_image_metadata`), and no allocation shows what they were when the server was created.
    """
    shape = view.subject.shape.value
    if shape is None or shape.image:
        return None
    for provider in get_host_tree(view).providers.values():
        if not IMAGE_CLASSES.isdisjoint(provider.inventories):
            return VOLUME_MAY_HAVE_CHANGED
    return None


def decide_without_change(reason: Reason, view: ConsumerView, why: Reason) -> Decision:
    """Decide that an allocation is wrong, where the right one is not certain.

    why: why it is not, as a part of a sentence.
    """
    advice = (
        f"The right allocation cannot be calculated here, because {why}: "
        "use nova-manage placement heal_allocations."
    )
    return drifted(why.reword(f"{reason} {advice}"), *list_amount_evidence(view))


def decide_change(reason: Reason, view: ConsumerView, allocations: Allocations) -> Decision:
    change = build_change(view.allocation, resources=allocations, **choose_owner(view))
    return drifted(reason, *list_amount_evidence(view), change=change)


def list_amount_evidence(view: ConsumerView) -> tuple[Answer[t.Any], ...]:
    """Return the answers that say what the server has, and what it requests."""
    subject = view.subject
    return (
        *view.server_answers,
        subject.shape,
        subject.attachments,
        subject.root_volume,
        subject.interfaces,
        subject.server_ports,
        *subject.device_profiles,
        subject.accelerators,
        find_host_tree(view),
    )


def _list_classes(allocations: Allocations) -> set[str]:
    return {cls for amounts in allocations.values() for cls in amounts}


def format_allocations(allocations: Allocations, view: ConsumerView) -> str:
    """Return the amounts on each provider as text, by the names of the providers."""
    parts = []
    for provider, amounts in allocations.items():
        parts.append(f"{format_amounts(amounts)} on {view.index.get_name(provider)}")
    return "; ".join(sorted(parts))


def format_amounts(resources: Resources) -> str:
    """Return the amounts as text, by resource class."""
    return ", ".join(f"{amount} {cls}" for cls, amount in sorted(resources.items()))
