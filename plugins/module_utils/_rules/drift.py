# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at
# any time.
# Do not use this from other collections or standalone plugins/modules!

"""The proof of each kind of drift: live servers whose allocation is wrong, though not an orphan.

One function for each kind, with the name of the kind, as in `_rules.orphans`. Where the right
allocation is certain there is a change; where it is not, the finding says who can correct it.
"""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._models.change import build_change
from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
    COLD_MIGRATION_TYPES,
    SUCCESSFUL_MIGRATION_STATUSES,
)
from ansible_collections.osops.placement.plugins.module_utils._models.verdict import (
    drifted,
    protected,
    undecided,
)
from ansible_collections.osops.placement.plugins.module_utils._rules.protections import (
    protect_excluded,
    protect_foreign_type,
    protect_too_young,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.consumer import (
    format_providers,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.flavor import (
    calculate_plain_resources,
    may_explain_children,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.guest_location import (
    find_source_doubt,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.listings_index import (
    group_by_tree,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._models.nova import Migration
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
        Allocation,
        Resources,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.policy import Policy
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Answer
    from ansible_collections.osops.placement.plugins.module_utils._models.verdict import Decision
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.consumer import (
        ConsumerView,
    )


def unreverted_allocation(view: ConsumerView, policy: Policy) -> Decision | None:
    """An ended migration holds what its server needs.

    Proof: The server is settled on its host and holds nothing of it, and exactly one ended
    migration of it holds just that host. It is a resize or cold migration away from there that
    failed or was reverted, and no move since then took place. That its guest is there is proven,
    for this move and all that were tried since, by what hosts have recorded: the move was given up
    before the source was asked for the guest, or while the source copied its disks; or the guest at
    the destination was destroyed by a revert; or the host has started the guest since. No
    evacuation or live migration failed to where the server holds something. After a live migration
    the hypervisors may have gone on without Nova, so it is only reported, with where to look.

    Needs: The cells of the hosts that the server and its migration hold, and of those that it moved
    between. The server, its migrations and its actions are read from its own cell.

    Change: the migration's claim becomes the server's, in one request, and the other hosts that the
    server held are free. After a live migration: none.
    """
    own = view.own_tree
    if not _is_settled_without_own_tree(view) or own is None:
        return None
    allocations = _list_migration_allocations_of(view, own)
    if not allocations:
        return None
    names = ", ".join(sorted(allocations))
    evidence = (
        *view.server_answers,
        *(view.index.snapshot.evidence[uuid].allocation for uuid in allocations),
    )
    uuid, allocation = next(iter(allocations.items()))
    # Of two of them nothing says which is the server's.
    if len(allocations) > 1 or not _is_of_tree_only(view, allocation, own):
        return undecided(
            f"Server {view.consumer} rests on {view.node_name} and holds nothing of it, "
            f"while migration {names} holds that and more.",
            *evidence,
        )
    migration = next(move for move in view.server_migrations if move.uuid == uuid)
    protection = _find_protection(view, allocation, migration, policy)
    if protection:
        return protected(
            f"Migration {uuid} holds what server {view.consumer} needs. {protection}", *evidence
        )
    if migration.status in SUCCESSFUL_MIGRATION_STATUSES:
        return undecided(
            f"Server {view.consumer} rests on {view.node_name}, and migration {uuid}, which left "
            "that host, still holds it: its amounts may be those of an older flavor.",
            *evidence,
        )
    return _decide_unreverted(view, own, migration, allocation, evidence)


def _list_migration_allocations_of(view: ConsumerView, root: str) -> dict[str, Allocation]:
    """Return the allocations of the server's ended migrations that are of the tree `root`."""
    allocations = {}
    for uuid, allocation in view.migration_allocations.items():
        if root in group_by_tree(allocation.resources, view.index):
            allocations[uuid] = allocation
    return allocations


def _is_of_tree_only(view: ConsumerView, allocation: Allocation, root: str) -> bool:
    """Return whether an allocation is of the tree `root`, of its root too, and of no other tree."""
    if set(group_by_tree(allocation.resources, view.index)) != {root}:
        return False
    # Without a generation nothing guards the write.
    return bool(allocation.resources.get(root)) and allocation.generation is not None


def _decide_unreverted(
    view: ConsumerView,
    own: str,
    migration: Migration,
    allocation: Allocation,
    evidence: tuple[Answer[t.Any], ...],
) -> Decision:
    """Decide on the `allocation` of a failed or reverted `migration` that its server needs."""
    reason = (
        f"Server {view.consumer} rests on {view.node_name}, but its claim on that host is still "
        f"held by migration {migration.uuid}, which is over; the server itself holds "
        f"{format_providers(view)}."
    )
    if migration.type not in COLD_MIGRATION_TYPES:
        # The hypervisors may have gone on without Nova: the guest is then where the server's own
        # allocation is.
        doubt = (
            f"Its guest may have reached {migration.dest_compute} without Nova: "
            "look there (virsh list) before either claim is changed."
        )
        return drifted(f"{reason} {doubt}", *evidence, migration=migration)
    evidence = (*evidence, *view.subject.last_actions)
    unproven = _explain_uncertain_guest_location(view, own, migration)
    if unproven:
        return undecided(f"{reason} But {unproven}.", *evidence)
    change = build_change(
        view.allocation,
        # In one request, so that the host is never allocated twice.
        partner=build_change(allocation, resources={}),
        resources=allocation.resources,
        **_choose_owner(view),
    )
    return drifted(reason, *evidence, change=change, migration=migration)


def _explain_uncertain_guest_location(
    view: ConsumerView, own: str, migration: Migration
) -> str | None:
    """Say why the guest may not be on the tree `own`, which a cold `migration` was to leave."""
    if not view.is_source(own, migration):
        return f"that migration did not leave {view.node_name} but {migration.source_compute}"
    failed = view.find_failed_move_to(view.other_trees)
    if failed:
        return _describe_failed_move(failed)
    return find_source_doubt(view, migration)


def _describe_failed_move(failed: Migration) -> str:
    return (
        f"{failed.type} {failed.uuid} to where it holds something failed, "
        "and its guest may run there"
    )


def misplaced_allocation(view: ConsumerView, policy: Policy) -> Decision | None:
    """The server holds only a host where it is not.

    Proof: It is settled on its host and holds nothing of it but only others', to which no move of
    it failed; its flavor, image and ports say all that it needs.

    Needs: Every cell: an allocation is written onto a compute node, and only Nova's listing of all
    compute nodes says which provider is that node's.

    Change: it is given what its flavor says on its host, instead of what it holds.
    """
    if not _is_settled_without_own_tree(view) or not view.trees:
        return None
    resources, why = calculate_plain_resources(view)
    doubt = _explain_uncertain_misplacement(view)
    if doubt:
        resources, why = None, doubt
    return _decide_rewrite(
        f"Server {view.consumer} rests on {view.node_name} and holds only "
        f"{format_providers(view)}.",
        view,
        resources,
        why,
    )


def _explain_uncertain_misplacement(view: ConsumerView) -> str | None:
    """Say why what the server holds elsewhere may not be replaced; None if it may be."""
    failed = view.find_failed_move_to([root for root in view.trees if root])
    if failed:
        return _describe_failed_move(failed)
    # A flavor does not say what to hold of a child or of a sharing provider.
    if set(view.allocation.resources) != set(view.trees):
        return "it also holds shares of other providers than the root of a host"
    return None


def missing_allocation(view: ConsumerView, policy: Policy) -> Decision | None:
    """The server holds nothing.

    Proof: It is settled on its host and holds nothing; its flavor, image and ports say all that it
    needs.

    Needs: Every cell: an allocation is written onto a compute node, and only Nova's listing of all
    compute nodes says which provider is that node's.

    Change: it is given what its flavor says on its host.
    """
    if not _is_settled_without_own_tree(view) or view.allocation.resources:
        return None
    resources, why = calculate_plain_resources(view)
    return _decide_rewrite(
        f"Server {view.consumer} rests on {view.node_name} and holds nothing at all.",
        view,
        resources,
        why,
    )


def wrong_amount(view: ConsumerView, policy: Policy) -> Decision | None:
    """The server holds more or less than its flavor says.

    Proof: It is settled on its host, holds nothing but that, and in other amounts than its flavor,
    image and ports say. No resize to this host failed.

    Needs: Every cell: an allocation is written onto a compute node, and only Nova's listing of all
    compute nodes says which provider is that node's.

    Change: its claim becomes what its flavor says.
    """
    own, held = view.own_tree, view.allocation.resources
    if not _is_settled_and_healthy(view) or own is None or set(held) != {own}:
        return None
    resources, why = calculate_plain_resources(view)
    if resources is None or resources == held[own]:
        return None
    failed = _find_failed_resize_to_host(view)
    if failed:
        why = (
            f"resize {failed.uuid} failed when it had reached this host, "
            "and its guest may have the new size"
        )
        return _decide_rewrite(
            f"Server {view.consumer} does not hold what its flavor says.", view, None, why
        )
    reason = (
        f"Server {view.consumer} holds {_format_amounts(held[own])} of {view.node_name}, "
        f"and by its flavor it should hold {_format_amounts(resources)}."
    )
    return _decide_rewrite(reason, view, resources, "")


def _find_failed_resize_to_host(view: ConsumerView) -> Migration | None:
    """Return the newest resize that failed when the server had reached the host where it is."""
    for migration in view.server_migrations:
        if migration.type == "resize" and view.is_at_failed_destination(migration):
            return migration
    return None


def wrong_owner(view: ConsumerView, policy: Policy) -> Decision | None:
    """The allocation counts for another project or user than the server's.

    Proof: The server is settled on its host, holds it and no other, and Nova and Placement name
    different owners.

    Needs: The cells of the hosts that the server holds and rests on. The server is read from its
    own cell.

    Change: the claim counts for the server's project and user; the amounts stay.
    """
    server, held = view.server, view.allocation
    if not _is_settled_and_healthy(view) or server is None or not (server.project and server.user):
        return None
    if (held.project, held.user) == (server.project, server.user):
        return None
    return drifted(
        f"The claim of server {view.consumer} counts for project {held.project} "
        f"and user {held.user}; the server belongs to project {server.project} "
        f"and user {server.user}.",
        *view.server_answers,
        change=build_change(held, project=server.project, user=server.user),
    )


def leaked_child(view: ConsumerView, policy: Policy) -> Decision | None:
    """The server holds a child provider of its host that nothing of it explains.

    Proof: It is settled on its host, and nothing in its flavor, image or ports asks for such a
    resource.

    Needs: The cells of the hosts that the server holds and rests on. The server is read from its
    own cell.

    Change: none: look on the host whether its guest uses such a device.
    """
    own = view.own_tree
    if not _is_settled_and_healthy(view) or own is None or view.server is None:
        return None
    if may_explain_children(view.server, view):
        return None
    children = view.trees[own] - {own}
    if not children:
        return None
    names = ", ".join(sorted(map(view.index.get_name, children)))
    # There is no change: only the host can say whether the guest uses the device.
    return drifted(
        f"Server {view.consumer} holds a share of {names} on its host {view.node_name}, "
        "and nothing in its flavor, image or ports asks for one. Look on the host whether its "
        "guest uses such a device before anything is taken away.",
        *_list_flavor_evidence(view),
    )


def _is_settled_and_healthy(view: ConsumerView) -> bool:
    return view.is_settled_in_place and view.healthy


def _is_settled_without_own_tree(view: ConsumerView) -> bool:
    """Return whether the server rests on a host of which it holds nothing.

    All that it may hold is other hosts, for anything else may be another service's.
    """
    return (
        view.is_settled_in_place
        and view.own_tree is not None
        and view.own_tree not in view.trees
        and set(view.trees) == set(view.other_trees)
    )


def _decide_rewrite(
    reason: str, view: ConsumerView, resources: Resources | None, why: str
) -> Decision:
    """Decide that the server should hold `resources` on its host, without a change if None.

    why: why the resources could not be calculated, as a part of a sentence.
    """
    own, evidence = view.own_tree, _list_flavor_evidence(view)
    if resources is None or own is None:
        advice = (
            f"What it should hold cannot be told from here, for {why}: "
            "this is left to nova-manage placement heal_allocations."
        )
        return drifted(f"{reason} {advice}", *evidence)
    change = build_change(view.allocation, resources={own: resources}, **_choose_owner(view))
    return drifted(reason, *evidence, change=change)


def _choose_owner(view: ConsumerView) -> dict[str, t.Any]:
    """Return the project and user to write: those in Placement, or else those of the server."""
    project, user, server = view.allocation.project, view.allocation.user, view.server
    if server is None:
        return {"project": project or None, "user": user or None}
    # A consumer without an allocation has neither in Placement.
    return {"project": project or server.project, "user": user or server.user}


def _list_flavor_evidence(view: ConsumerView) -> tuple[Answer[t.Any], ...]:
    return (
        *view.server_answers,
        view.subject.shape,
        view.subject.interfaces,
        view.subject.ports,
        view.subject.stock,
    )


def _find_protection(
    view: ConsumerView, allocation: Allocation, migration: Migration, policy: Policy
) -> str | None:
    """Say why the allocation of a `migration` must not be changed, as for any other consumer."""
    migration_view = d.replace(view, allocation=allocation, migration=migration)
    for protect in (protect_excluded, protect_foreign_type, protect_too_young):
        reason = protect(migration_view, policy)
        if reason:
            return reason
    return None


def _format_amounts(resources: Resources) -> str:
    return ", ".join(f"{amount} {cls}" for cls, amount in sorted(resources.items()))
