# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at
# any time.
# Do not use this from other collections or standalone plugins/modules!

"""The proofs of the kinds of drift: live servers whose allocation is wrong, but not an orphan.

One function for each kind, with the name of the kind; `unreverted_allocation` has its own file.
Where the right allocation is certain, the finding has a change. Where it is not, the finding says
who can correct it.
"""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._models.change import build_change
from ansible_collections.osops.placement.plugins.module_utils._models.verdict import drifted
from ansible_collections.osops.placement.plugins.module_utils._snapshot.consumer import (
    format_providers,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.flavor import (
    calculate_plain_resources,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._models.nova import Migration
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import Resources
    from ansible_collections.osops.placement.plugins.module_utils._models.policy import Policy
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Answer
    from ansible_collections.osops.placement.plugins.module_utils._models.verdict import Decision
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.consumer import (
        ConsumerView,
    )


def misplaced_allocation(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the server has allocations only on hosts where it is not.

    Proof: The server is settled on its host and has no allocation there, but has allocations on
    other hosts. No evacuation or live migration to one of these hosts failed. Its flavor, image and
    ports say everything that it needs.

    Needs: Every cell: the new allocation is on a compute node, and only the complete listing of
    compute nodes shows which provider is that node's.

    Change: What its flavor requires is allocated on its host, and its other allocations are
    removed.
    """
    if not is_settled_without_own_tree(view) or not view.trees:
        return None
    resources, why = calculate_plain_resources(view)
    doubt = _explain_uncertain_misplacement(view)
    if doubt:
        resources, why = None, doubt
    return _decide_rewrite(
        f"Server {view.consumer} is settled on {view.node_name}, but has allocations only on "
        f"{format_providers(view)}.",
        view,
        resources,
        why,
    )


def _explain_uncertain_misplacement(view: ConsumerView) -> str | None:
    """Return why the server's allocations on other hosts may not be replaced; None if they may."""
    failed = view.find_failed_move_to([root for root in view.trees if root])
    if failed:
        return describe_failed_move(failed)
    # A flavor does not say what to allocate on a child or on a sharing provider.
    if set(view.allocation.resources) != set(view.trees):
        return "it also has allocations on child providers or sharing providers"
    return None


def missing_allocation(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the server has no allocation at all.

    Proof: The server is settled on its host and has no allocation. Its flavor, image and ports say
    everything that it needs.

    Needs: Every cell: the new allocation is on a compute node, and only the complete listing of
    compute nodes shows which provider is that node's.

    Change: What its flavor requires is allocated on its host.
    """
    if not is_settled_without_own_tree(view) or view.allocation.resources:
        return None
    resources, why = calculate_plain_resources(view)
    return _decide_rewrite(
        f"Server {view.consumer} is settled on {view.node_name}, but has no allocation.",
        view,
        resources,
        why,
    )


def wrong_amount(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the amounts of the server's allocation differ from its flavor.

    Proof: The server is settled on its host and has an allocation only on the root provider of that
    host. The amounts differ from those that its flavor, image and ports require. No resize to this
    host failed.

    Needs: Every cell: the new allocation is on a compute node, and only the complete listing of
    compute nodes shows which provider is that node's.

    Change: The amounts become those that its flavor requires.
    """
    own, allocated = view.own_tree, view.allocation.resources
    if not _is_settled_and_healthy(view) or own is None or set(allocated) != {own}:
        return None
    resources, why = calculate_plain_resources(view)
    # Without certain resources this is not a finding: the present amounts may be right.
    if resources is None or resources == allocated[own]:
        return None
    failed = _find_failed_resize_to_host(view)
    if failed:
        why = (
            f"resize {failed.uuid} failed after the server had reached this host, "
            "and its guest may have the new size"
        )
        return _decide_rewrite(
            f"The amounts of the allocation of server {view.consumer} differ from its flavor.",
            view,
            None,
            why,
        )
    reason = (
        f"Server {view.consumer} has {_format_amounts(allocated[own])} allocated on "
        f"{view.node_name}, but its flavor requires {_format_amounts(resources)}."
    )
    return _decide_rewrite(reason, view, resources, "")


def _find_failed_resize_to_host(view: ConsumerView) -> Migration | None:
    """Return the newest resize that failed after the server had reached the host where it is."""
    for migration in view.server_migrations:
        if migration.type == "resize" and view.is_at_failed_destination(migration):
            return migration
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
    if not _is_settled_and_healthy(view) or server is None or not (server.project and server.user):
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


def describe_failed_move(failed: Migration) -> str:
    """Return why a failed move to a host with an allocation of the server leaves a doubt."""
    return (
        f"{failed.type} {failed.uuid} to a host on which it has an allocation failed, "
        "and its guest may run there"
    )


def choose_owner(view: ConsumerView) -> dict[str, t.Any]:
    """Return the project and user to write: those in Placement, or else those of the server."""
    project, user, server = view.allocation.project, view.allocation.user, view.server
    if server is None:
        return {"project": project or None, "user": user or None}
    # A consumer without an allocation has neither in Placement.
    return {"project": project or server.project, "user": user or server.user}


def _is_settled_and_healthy(view: ConsumerView) -> bool:
    return view.is_settled_in_place and view.healthy


def _decide_rewrite(
    reason: str, view: ConsumerView, resources: Resources | None, why: str
) -> Decision:
    """Decide that the server should have `resources` on its host, without a change if None.

    why: why the resources could not be calculated, as a part of a sentence.
    """
    own, evidence = view.own_tree, _list_flavor_evidence(view)
    if resources is None or own is None:
        advice = (
            f"The right allocation cannot be calculated here, because {why}: "
            "use nova-manage placement heal_allocations."
        )
        return drifted(f"{reason} {advice}", *evidence)
    change = build_change(view.allocation, resources={own: resources}, **choose_owner(view))
    return drifted(reason, *evidence, change=change)


def _list_flavor_evidence(view: ConsumerView) -> tuple[Answer[t.Any], ...]:
    return (
        *view.server_answers,
        view.subject.shape,
        view.subject.interfaces,
        view.subject.ports,
        view.subject.stock,
    )


def _format_amounts(resources: Resources) -> str:
    return ", ".join(f"{amount} {cls}" for cls, amount in sorted(resources.items()))
