# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at
# any time.
# Do not use this from other collections or standalone plugins/modules!

"""The proof of each kind of drift: live servers whose claim is not what it should be, though it is
no orphan.

One function a kind, named as the kind, as in `_rules.orphans`. Where the right claim is known for
certain there is a change; where it is not, the finding says who can put it right.
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
from ansible_collections.osops.placement.plugins.module_utils._snapshot.index import group_by_tree

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
    swapped = {
        uuid: claim
        for uuid, claim in view.migration_allocations.items()
        if own in group_by_tree(claim.resources, view.index)
    }
    if not swapped:
        return None
    names = ", ".join(sorted(swapped))
    evidence = (
        *view.server_answers,
        *(view.index.snapshot.evidence[uuid].allocation for uuid in swapped),
    )
    uuid, claim = next(iter(swapped.items()))
    whole = (
        set(group_by_tree(claim.resources, view.index)) == {own}
        and claim.resources.get(own)
        and claim.generation is not None
    )
    if len(swapped) > 1 or not whole:
        return undecided(
            f"Server {view.consumer} rests on {view.node_name} and holds nothing of it, while "
            f"migration {names} holds that and more.",
            *evidence,
        )
    migration = next(known for known in view.server_migrations if known.uuid == uuid)
    if spared := _find_protection(view, claim, migration, policy):
        return protected(
            f"Migration {uuid} holds what server {view.consumer} needs. {spared}", *evidence
        )
    if migration.status in SUCCESSFUL_MIGRATION_STATUSES:
        return undecided(
            f"Server {view.consumer} rests on {view.node_name}, and migration {uuid}, which left "
            "that host, still holds it: "
            "its amounts may be those of an older flavor.",
            *evidence,
        )
    reason = (
        f"Server {view.consumer} rests on {view.node_name}, but its claim on that host is still "
        f"held by migration {uuid}, which is over; "
        f"the server itself holds {format_providers(view)}."
    )
    if migration.type not in COLD_MIGRATION_TYPES:
        # The hypervisors may have gone on without Nova: the guest is then where the server's own
        # claim is.
        doubt = (
            f"Its guest may have reached {migration.dest_compute} without Nova: look there (virsh "
            "list) before either claim is changed."
        )
        return drifted(f"{reason} {doubt}", *evidence, migration=migration)
    evidence = (*evidence, *view.subject.last_actions)
    if unproven := _explain_uncertain_guest_location(view, own, migration):
        return undecided(f"{reason} But {unproven}.", *evidence)
    change = build_change(
        view.allocation,
        partner=build_change(claim, resources={}),
        resources=claim.resources,
        **_choose_owner(view),
    )
    return drifted(reason, *evidence, change=change, migration=migration)


def _explain_uncertain_guest_location(
    view: ConsumerView, own: str, migration: Migration
) -> str | None:
    """Say why the guest may be elsewhere than on the host of the tree `own`, which a cold
    `migration` was to leave.
    """
    if not view.is_source(own, migration):
        return f"that migration did not leave {view.node_name} but {migration.source_compute}"
    if failed := view.find_failed_move_to(view.other_trees):
        return (
            f"{failed.type} {failed.uuid} to where it holds something failed, and its guest may "
            "run there"
        )
    return find_source_doubt(view, migration)


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
    claim, why = calculate_plain_resources(view)
    if failed := view.find_failed_move_to([root for root in view.trees if root]):
        claim, why = (
            None,
            f"{failed.type} {failed.uuid} to where it holds something failed, and its guest may "
            "run there",
        )
    elif set(view.allocation.resources) != set(view.trees):
        claim, why = None, "it also holds shares of other providers than the root of a host"
    return _decide_rewrite(
        f"Server {view.consumer} rests on {view.node_name} and holds only "
        f"{format_providers(view)}.",
        view,
        claim,
        why,
    )


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
    return _decide_rewrite(
        f"Server {view.consumer} rests on {view.node_name} and holds nothing at all.",
        view,
        *calculate_plain_resources(view),
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
    claim, why = calculate_plain_resources(view)
    if claim is None or claim == held[own]:
        return None
    if failed := next(
        (
            known
            for known in view.server_migrations
            if known.type == "resize" and view.is_at_failed_destination(known)
        ),
        None,
    ):
        claim, why = (
            None,
            f"resize {failed.uuid} failed when it had reached this host, and its guest may have "
            "the new size",
        )
        return _decide_rewrite(
            f"Server {view.consumer} does not hold what its flavor says.", view, claim, why
        )
    reason = (
        f"Server {view.consumer} holds {_format_amounts(held[own])} of {view.node_name}, and by "
        f"its flavor it should hold {_format_amounts(claim)}."
    )
    return _decide_rewrite(reason, view, claim, "")


def wrong_owner(view: ConsumerView, policy: Policy) -> Decision | None:
    """The claim counts for another project or user than the server's.

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
        f"The claim of server {view.consumer} counts for project {held.project} and user "
        f"{held.user}; "
        f"the server belongs to project {server.project} and user {server.user}.",
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
    if (
        not _is_settled_and_healthy(view)
        or own is None
        or view.server is None
        or may_explain_children(view.server, view)
    ):
        return None
    children = view.trees[own] - {own}
    if not children:
        return None
    names = ", ".join(sorted(map(view.index.get_name, children)))
    return drifted(
        f"Server {view.consumer} holds a share of {names} on its host {view.node_name}, and "
        "nothing in its flavor, image or ports asks for one. "
        "Look on the host whether its guest uses such a device before anything is taken away.",
        *_list_flavor_evidence(view),
    )


def _is_settled_and_healthy(view: ConsumerView) -> bool:
    return view.is_settled_in_place and view.healthy


def _is_settled_without_own_tree(view: ConsumerView) -> bool:
    """The server rests on a host of which it holds nothing, and holds nothing but other hosts, if
    anything.
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
    own = view.own_tree
    if resources is None or own is None:
        left = (
            f"What it should hold cannot be told from here, for {why}: this is left to "
            "nova-manage placement heal_allocations."
        )
        return drifted(f"{reason} {left}", *_list_flavor_evidence(view))
    change = build_change(view.allocation, resources={own: resources}, **_choose_owner(view))
    return drifted(reason, *_list_flavor_evidence(view), change=change)


def _choose_owner(view: ConsumerView) -> dict[str, t.Any]:
    """Return whom the claim is to count for: whom it counts for now, and the server's owner where
    it holds nothing.
    """
    held, server = view.allocation, view.server
    return {
        "project": held.project or (server and server.project),
        "user": held.user or (server and server.user),
    }


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
    """Say why a migration's claim is to be left alone, as it would be for its own sake."""
    own = d.replace(view, allocation=allocation, migration=migration)
    return next(
        (
            reason
            for spare in (protect_excluded, protect_foreign_type, protect_too_young)
            if (reason := spare(own, policy))
        ),
        None,
    )


def _format_amounts(resources: Resources) -> str:
    return ", ".join(f"{amount} {cls}" for cls, amount in sorted(resources.items()))
