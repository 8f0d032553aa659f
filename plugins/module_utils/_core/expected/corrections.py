# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How amounts become what they should be, or why they stay. Pure."""

from __future__ import annotations

import collections
import dataclasses as d
import typing as t
from collections.abc import Iterable

from ..._common.errors import Reason
from ..facts.consumer import ConsumerView
from ..models.change import build_change
from ..models.finding import Decision, drifted
from ..models.other_services import AmountRule, HostTree
from ..models.placement import Allocations, Resources, subtract_amounts, sum_amounts_by_key
from ..models.snapshot import Answer
from ..options.policy import Policy
from .amounts import compare_amounts, find_device_doubt, find_host_tree, get_host_tree

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
        reason = Reason("has_other_devices", "it has other devices of its host than it should have")
        return Correction(present, reason)
    for provider in (tree.providers[uuid] for uuid in present):
        unneeded = present[provider.uuid].keys() - expected.get(provider.uuid, {}).keys()
        if provider.sharing and unneeded:
            reason = Reason(
                "unneeded_on_shared_provider",
                f"it has {', '.join(sorted(unneeded))} on {provider.name}, which hosts share, and "
                "does not need it",
            )
            return Correction(present, reason)
    on_root = present.get(tree.root, {}).keys() - expected.get(tree.root, {}).keys()
    unrequested = ", ".join(sorted(on_root - _ORDINARY_CLASSES))
    if unrequested:
        # Some drivers report devices on the root provider, such as vGPUs before Stein.
        reason = Reason(
            "unrequested_device_in_use",
            f"its guest may use the {unrequested} that it does not need",
        )
        return Correction(present, reason)
    return Correction(sum_amounts_by_key((*expected.items(), *surplus.items())))


def find_surplus_on_children(
    present: Allocations, expected: Allocations, tree: HostTree
) -> dict[str, Resources]:
    """Return what is `present` beyond what is `expected` on the child providers of a host."""
    return {
        provider: more
        for provider, more in subtract_amounts(present, expected).items()
        if provider != tree.root and not tree.providers[provider].sharing
    }


def format_rules(rules: Iterable[AmountRule]) -> str:
    """Return the amounts of a request as text, each with where it comes from."""
    sums: collections.Counter[tuple[str, str]] = collections.Counter()
    for rule in rules:
        sums[rule.resource_class, rule.source] += rule.amount
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
    present = view.allocation.resources
    kept = {one: present[one] for one in present if view.index.is_sharing(one)}
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
    strange = sorted(_list_classes(present) - _list_classes(allocations))
    if strange:
        why = Reason(
            "needed_other_classes",
            f"it has {', '.join(strange)}, which it would not get on its host",
        )
        return decide_without_change(reason, view, why)
    unneeded = next((view.index.get_name(one) for one in kept if one not in allocations), None)
    if unneeded:
        why = Reason(
            "unneeded_shared_provider",
            f"it has an allocation on {unneeded}, which hosts share, and does not need it",
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
    classes = {cls for one in get_host_tree(view).providers.values() for cls in one.inventories}
    return None if IMAGE_CLASSES.isdisjoint(classes) else VOLUME_MAY_HAVE_CHANGED


def decide_without_change(reason: Reason, view: ConsumerView, why: Reason) -> Decision:
    """Decide that an allocation is wrong, where the right one is not certain.

    why: why it is not, as a part of a sentence.
    """
    advice = f"use nova-manage placement heal_allocations --instance {view.consumer}."
    # Nova heals nothing of a server that has any allocation, and allocates anew for one that moves.
    if view.allocation.resources:
        advice = (
            f"have Nova allocate anew (openstack server migrate {view.consumer}, and when it has "
            f"moved, openstack server migrate confirm {view.consumer})."
        )
    text = f"{reason} The right allocation cannot be calculated here, because {why}: {advice}"
    return drifted(why.reword(text), *list_amount_evidence(view))


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
    name = view.index.get_name
    parts = [f"{format_amounts(amounts)} on {name(one)}" for one, amounts in allocations.items()]
    return "; ".join(sorted(parts))


def format_amounts(resources: Resources) -> str:
    """Return the amounts as text, by resource class."""
    return ", ".join(f"{amount} {cls}" for cls, amount in sorted(resources.items()))
