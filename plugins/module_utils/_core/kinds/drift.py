# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The proofs of the kinds of drift: live servers whose allocation is wrong, but not an orphan.

One function for each kind, with the name of the kind; `unreverted_allocation` has its own file.
Where the right allocation is certain, the finding has a change. Where it is not, the finding says
who can correct it.
"""

from __future__ import annotations

import dataclasses as d
import typing as t

from ..expected.amounts import (
    compare_amounts,
    find_device_doubt,
    find_host_tree,
    fits_all_that_is_known,
)
from ..expected.corrections import correct_amounts, format_rules
from ..expected.missing import list_image_classes
from ..expected.placing import Expectation
from ..facts.consumer import ConsumerView, format_providers
from ..facts.move_records import explain_possible_guest_of_unshelve
from ..models.change import build_change
from ..models.nova import Migration
from ..models.placement import Allocations, Resources, sum_amounts
from ..models.snapshot import Answer
from ..models.verdict import Decision, drifted, undecided
from ..options.policy import Policy

# The classes that a server has or has not by the properties of its image alone.
_IMAGE_CLASSES = frozenset({"PCPU", "MEM_ENCRYPTION_CONTEXT"})


def misplaced_allocation(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the server has allocations only on hosts where it is not.

    Proof: The server is settled on its host and has no allocation there, but has allocations on
    other hosts. No evacuation or live migration to one of these hosts failed, and no evacuation can
    have left its guest there, also under another name. No earlier unshelve can have begun on one of
    these hosts without a shelve since, or have taken it to its host after a later one. Its flavor,
    image, ports and devices, and the providers of its host, leave exactly one allocation that Nova
    would have made.

    Needs: Every cell: the new allocation is on a compute node, and only the complete listing of
    compute nodes shows which provider is that node's.

    Change: That allocation is made on its host, and its allocations on other hosts are removed.
    """
    if not is_settled_without_own_tree(view) or not view.trees:
        return None
    reason = (
        f"Server {view.consumer} is settled on {view.node_name}, but has allocations only on "
        f"{format_providers(view)}."
    )
    failed = view.explain_failed_move_to([root for root in view.trees if root])
    doubt = failed or explain_possible_guest_of_unshelve(view, view.trees)
    if doubt:
        return _decide_without_change(reason, view, doubt)
    remaining_guest = view.explain_possible_guest_of_evacuation(view.trees)
    if remaining_guest:
        return drifted(f"{reason} But {remaining_guest}", *list_amount_evidence(view))
    return _decide_new_allocation(reason, view, policy)


def missing_allocation(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the server has no allocation at all.

    Proof: The server is settled on its host and has no allocation. Its flavor, image, ports and
    devices, and the providers of its host, leave exactly one allocation that Nova would have made.

    Needs: Every cell: the new allocation is on a compute node, and only the complete listing of
    compute nodes shows which provider is that node's.

    Change: That allocation is made on its host.
    """
    if not is_settled_without_own_tree(view) or view.allocation.resources:
        return None
    reason = f"Server {view.consumer} is settled on {view.node_name}, but has no allocation."
    return _decide_new_allocation(reason, view, policy)


def wrong_amount(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the server has other amounts than Nova would have allocated for it.

    Proof: The server is settled on its host and has an allocation there and on no other host. It
    differs from everything that Nova would have allocated for its flavor, image, ports and devices
    on the providers of its host, and exactly one such allocation is nearest to it. No resize failed
    on this host, or on one from which live migrations took the server to this host.

    Needs: Every cell: the new allocation is on a compute node, and only the complete listing of
    compute nodes shows which provider is that node's.

    Change: The amounts become those that Nova would have allocated. Any excess on a child provider
    stays.
    """
    if not is_settled_and_healthy(view):
        return None
    present = view.allocation.resources
    expectation = compare_amounts(view, policy, present)
    # What the listings show to be in order was not looked up.
    if expectation is None or expectation.matches:
        return None
    if expectation.matches is None:
        return _decide_unknown_amounts(view, policy, expectation)
    doubt = _find_volume_doubt(view, expectation)
    if doubt:
        return _decide_unknown_amounts(view, policy, d.replace(expectation, why=doubt))
    reason = f"Server {view.consumer} has {format_allocations(present, view)} allocated"
    if expectation.rules:
        reason += f", but needs {format_rules(expectation.rules)}."
    else:
        reason += ", which Nova would not allocate for it."
    failed = _find_failed_resize_of_guest(view)
    if failed:
        why = (
            f"resize {failed.uuid} to {failed.dest_compute} failed after the server had reached "
            "that host, and its guest may have the new size"
        )
        return _decide_without_change(reason, view, why)
    if expectation.allocations is None:
        return _decide_without_change(reason, view, expectation.why)
    correction = correct_amounts(present, expectation.allocations, find_host_tree(view).value)
    if correction.why:
        return _decide_without_change(reason, view, correction.why)
    # A surplus on child providers alone is a finding of its own.
    if correction.allocations == present:
        return None
    return _decide_change(reason, view, correction.allocations)


def _find_volume_doubt(view: ConsumerView, expectation: Expectation) -> str:
    """Return why the image properties of a volume may not be those of the server; empty if not.

    Nova keeps those that the volume had when the server was created, and shows them to nobody.
    """
    shape = view.subject.shape.value
    if shape is None or shape.image:
        return ""
    present = sum_amounts(view.allocation.resources.values())
    expected = sum_amounts({rule.resource_class: rule.amount} for rule in expectation.rules)
    differing = {cls for cls in _IMAGE_CLASSES if (cls in expected) != (cls in present)}
    # A mask or a policy of the image also decides how many of the CPUs are dedicated.
    for cls in _IMAGE_CLASSES & _list_image_classes(view):
        if expected.get(cls) != present.get(cls):
            differing.add(cls)
    if not differing:
        return ""
    return "the image properties of its volume may have changed since it was created"


def _list_image_classes(view: ConsumerView) -> frozenset[str]:
    if view.server is None or view.server.flavor is None:
        return frozenset()
    return list_image_classes(view.server.flavor.extra_specs or {})


def _decide_unknown_amounts(
    view: ConsumerView, policy: Policy, expectation: Expectation
) -> Decision | None:
    """Decide about amounts of which it cannot be known whether they are right.

    It is not a finding where they are right as far as that could be read.
    """
    if fits_all_that_is_known(view, policy, view.allocation.resources):
        return None
    # That the owner is wrong is certain.
    if wrong_owner(view, policy) is not None:
        return None
    return undecided(
        f"Server {view.consumer} has {format_allocations(view.allocation.resources, view)} "
        f"allocated, and whether that is right cannot be known, because {expectation.why}.",
        *list_amount_evidence(view),
    )


def _find_failed_resize_of_guest(view: ConsumerView) -> Migration | None:
    """Return the newest resize that failed after the guest had reached its destination.

    A later live migration takes the guest along as it is; it is still found.
    """
    hosts: set[str | None] = {view.server.host} if view.server else set()
    for migration in view.server_migrations:
        dest = migration.dest_compute
        # A host that no listing has may be this one, with another name now.
        is_listed = not dest or view.index.lists_node(dest, migration.dest_node)
        if dest not in hosts and is_listed:
            continue
        if migration.type == "resize" and migration.is_inconclusive:
            return migration
        if migration.type == "live-migration" and migration.has_arrived:
            hosts.add(migration.source_compute)
    return None


def wrong_owner(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the allocation is recorded for another project or user than the server's.

    Proof: The server is settled on its host, and has an allocation on that host and on no other.
    Placement records another project or user for the allocation than Nova for the server.

    Needs: The cells of the hosts on which the server is or has allocations, and of the hosts that
    its migrations name. The server is read from its own cell.

    Change: The project and user of the allocation become the server's; the amounts stay.
    """
    server, allocation = view.server, view.allocation
    if not is_settled_and_healthy(view) or server is None or not (server.project and server.user):
        return None
    if (allocation.project, allocation.user) == (server.project, server.user):
        return None
    # Nova can count quota usage from Placement (nova/quota.py, count_usage_from_placement), so the
    # wrong project is charged.
    return drifted(
        f"The allocation of server {view.consumer} is recorded for project {allocation.project} "
        f"and user {allocation.user}, but the server belongs to project {server.project} "
        f"and user {server.user}.",
        *view.server_answers,
        change=build_change(allocation, project=server.project, user=server.user),
    )


def is_settled_without_own_tree(view: ConsumerView) -> bool:
    """Return whether the server is settled on a host on which it has no allocation.

    Its allocations, if any, are all on other hosts: any other provider may be another service's.
    """
    return (
        view.is_settled_in_place
        and view.own_tree is not None
        and view.own_tree not in view.trees
        and set(view.trees) == set(view.other_trees)
    )


def choose_owner(view: ConsumerView) -> dict[str, t.Any]:
    """Return the project and user to write: those in Placement, or else those of the server."""
    project, user, server = view.allocation.project, view.allocation.user, view.server
    if server is None:
        return {"project": project or None, "user": user or None}
    # A consumer without an allocation has neither in Placement.
    return {"project": project or server.project, "user": user or server.user}


def is_settled_and_healthy(view: ConsumerView) -> bool:
    """Return whether the server is settled on its host, and has allocations there only."""
    return view.is_settled_in_place and view.healthy


def _decide_new_allocation(reason: str, view: ConsumerView, policy: Policy) -> Decision:
    """Decide that a server without an allocation on its host should have one there."""
    # What it has of providers that share with its host may be right.
    kept = {}
    for provider, amounts in view.allocation.resources.items():
        if view.index.is_sharing(provider):
            kept[provider] = amounts
    expectation = compare_amounts(view, policy, kept)
    if expectation is None:
        return _decide_without_change(reason, view, "what it needs was not looked up")
    if expectation.rules and expectation.allocations is not None:
        reason += f" It needs {format_rules(expectation.rules)}."
    allocations = expectation.allocations
    if allocations is None:
        return _decide_without_change(reason, view, expectation.why)
    doubt = find_device_doubt(view, policy) or _find_volume_doubt_of_new(view)
    if doubt:
        return _decide_without_change(reason, view, doubt)
    # What it was given elsewhere says what it needed there.
    strange = sorted(_list_classes(view.allocation.resources) - _list_classes(allocations))
    if strange:
        why = f"it has {', '.join(strange)}, which it would not get on its host"
        return _decide_without_change(reason, view, why)
    for provider in kept:
        if provider not in allocations:
            name = view.index.get_name(provider)
            why = f"it has an allocation on {name}, which hosts share, and does not need it"
            return _decide_without_change(reason, view, why)
    return _decide_change(reason, view, allocations)


def _find_volume_doubt_of_new(view: ConsumerView) -> str:
    """Return why the properties of a volume do not say what a server without allocation needs.

    Empty if they do, or do not matter on its host. A user may change them at any time (Cinder,
    `os-set_image_metadata`), and no allocation shows what they were when the server was created.
    """
    shape, tree = view.subject.shape.value, find_host_tree(view).value
    if shape is None or shape.image or tree is None:
        return ""
    for provider in tree.providers.values():
        if not _IMAGE_CLASSES.isdisjoint(provider.inventories):
            return "the image properties of its volume may have changed since it was created"
    return ""


def _decide_without_change(reason: str, view: ConsumerView, why: str) -> Decision:
    """Decide that an allocation is wrong, where the right one is not certain.

    why: why it is not, as a part of a sentence.
    """
    advice = (
        f"The right allocation cannot be calculated here, because {why}: "
        "use nova-manage placement heal_allocations."
    )
    return drifted(f"{reason} {advice}", *list_amount_evidence(view))


def _decide_change(reason: str, view: ConsumerView, allocations: Allocations) -> Decision:
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
