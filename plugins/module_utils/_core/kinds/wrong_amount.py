# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The amounts of the server's allocation differ from its flavor."""

from __future__ import annotations

import dataclasses as d

from ..._common.errors import Reason
from ..._common.text import summarize_names
from ..expected.amounts import (
    compare_amounts,
    find_host_tree,
    fits_all_that_is_known,
    get_host_tree,
)
from ..expected.corrections import (
    IMAGE_CLASSES,
    VOLUME_MAY_HAVE_CHANGED,
    correct_amounts,
    decide_change,
    decide_without_change,
    format_allocations,
    format_rules,
    list_amount_evidence,
)
from ..expected.inputs import list_image_classes
from ..expected.placing import Expectation
from ..facts.consumer import ConsumerView, has_wrong_owner, is_settled_and_healthy
from ..models.finding import Decision, drifted, undecided
from ..models.kind import DRIFT, EVERY, OPT_IN, define_kind
from ..models.nova import Migration
from ..models.placement import sum_amounts
from ..models.snapshot import ACTIONS, AMOUNTS, FLAVORS, USAGE
from ..options.policy import Policy

KIND = define_kind(
    __name__,
    __doc__,
    DRIFT,
    OPT_IN,
    needs=(ACTIONS, AMOUNTS, USAGE),
    named_needs=(FLAVORS,),
    cells=EVERY,
)


def prove(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the server has other amounts than Nova would have allocated for it.

    Proof: The server is settled on its host and has an allocation there and on no other host. It
    differs from everything that Nova would have allocated for its flavor, image, ports and devices
    on the providers of its host, and exactly one such allocation is nearest to it. No resize failed
    on this host, or on one from which live migrations took the server to this host. Or it has a
    resource class on a provider without an inventory of it, and another provider of the same tree
    has one: this is only reported.

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
    if expectation is None:
        return None
    if misplaced := _explain_wrong_provider(view):
        return drifted(misplaced, *list_amount_evidence(view))
    if expectation.matches:
        return None
    if expectation.matches is None:
        return _decide_unknown_amounts(view, policy, expectation)
    if doubt := _find_volume_doubt(view, expectation):
        return _decide_unknown_amounts(view, policy, d.replace(expectation, why=doubt))
    difference = "which Nova would not allocate for it"
    if expectation.rules:
        difference = f"but needs {format_rules(expectation.rules)}"
    reason = Reason(
        "amounts_differ",
        f"Server {view.consumer} has {format_allocations(present, view)} allocated, {difference}.",
    )
    if failed := _find_failed_resize_of_guest(view):
        why = Reason(
            "resize_failed_at_host",
            f"resize {failed.uuid} to {failed.dest_compute} failed after the server had reached "
            "that host, and its guest may have the new size",
        )
        return decide_without_change(reason, view, why)
    if expectation.allocations is None:
        return decide_without_change(reason, view, expectation.why)
    correction = correct_amounts(present, expectation.allocations, get_host_tree(view))
    if correction.why:
        return decide_without_change(reason, view, correction.why)
    # A surplus on child providers alone is a finding of its own.
    if correction.allocations == present:
        return None
    return decide_change(reason, view, correction.allocations)


def _explain_wrong_provider(view: ConsumerView) -> Reason | None:
    """Return which class the server has on the wrong provider of its own tree; None if none.

    nova-compute moves classes to child providers, such as memory encryption (a reshape). Placement
    refuses to move one away from its allocations, so somebody has changed its database.
    """
    tree = find_host_tree(view).value
    own = [one for one in tree.providers.values() if not one.sharing] if tree else []
    for provider in own:
        for cls in sorted(view.allocation.resources.get(provider.uuid, {})):
            others = sorted(one.name for one in own if cls in one.inventories)
            if others and cls not in provider.inventories:
                return Reason(
                    "class_of_other_provider",
                    f"Server {view.consumer} has {cls} on {provider.name}, which has no inventory "
                    f"of it. In the same tree, {summarize_names(others)} has: the class was moved "
                    "there, and this allocation was left behind.",
                )
    return None


def _find_volume_doubt(view: ConsumerView, expectation: Expectation) -> Reason | None:
    """Return why the image properties of a volume may not be those of the server; None if so.

    Nova keeps those that the volume had when the server was created, and shows them to nobody.
    """
    shape = view.subject.shape.value
    if shape is None or shape.image:
        return None
    present = sum_amounts(view.allocation.resources.values())
    expected = sum_amounts({rule.resource_class: rule.amount} for rule in expectation.rules)
    differing = {cls for cls in IMAGE_CLASSES if (cls in expected) != (cls in present)}
    # A mask or a policy of the image also decides how many of the CPUs are dedicated.
    flavor = view.server.flavor if view.server else None
    by_image = IMAGE_CLASSES & list_image_classes((flavor.extra_specs if flavor else None) or {})
    differing |= {cls for cls in by_image if expected.get(cls) != present.get(cls)}
    return VOLUME_MAY_HAVE_CHANGED if differing else None


def _decide_unknown_amounts(
    view: ConsumerView, policy: Policy, expectation: Expectation
) -> Decision | None:
    """Decide about amounts of which it cannot be known whether they are right.

    It is not a finding where they are right as far as that could be read.
    """
    if fits_all_that_is_known(view, policy, view.allocation.resources):
        return None
    # That the owner is wrong is certain.
    if has_wrong_owner(view):
        return None
    why = expectation.why
    reason = why.reword(
        f"Server {view.consumer} has {format_allocations(view.allocation.resources, view)} "
        f"allocated, and whether that is right cannot be known, because {why}."
    )
    return undecided(reason, *list_amount_evidence(view))


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
