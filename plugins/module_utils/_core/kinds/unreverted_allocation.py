# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An ended migration still has the allocation that its server needs.

Before a resize, cold migration or live migration, Nova moves the server's allocation on the source
to the migration. It moves it back when the move fails or is reverted (nova/compute/manager.py,
_revert_allocation). An interruption in between leaves the migration with it.
"""

from __future__ import annotations

import dataclasses as d
import typing as t

from ..._common.errors import Reason
from ..expected.corrections import choose_owner
from ..facts.consumer import ConsumerView, format_providers, is_settled_without_own_tree
from ..facts.index import group_by_tree
from ..facts.moves import explain_possible_guest_of_unshelve, find_source_doubt
from ..facts.protections import protect_excluded, protect_foreign_type, protect_too_young
from ..models.change import build_change
from ..models.finding import Decision, drifted, protected, undecided
from ..models.kind import DRIFT, REMEDIATE, define_kind
from ..models.nova import COLD_MIGRATION_TYPES, SUCCESSFUL_MIGRATION_STATUSES, Migration
from ..models.placement import Allocation
from ..models.snapshot import ACTIONS, LAST_ACTIONS, Answer
from ..options.policy import Policy

KIND = define_kind(
    __name__, __doc__, DRIFT, REMEDIATE, needs=(ACTIONS, LAST_ACTIONS), was="swapped_claim"
)


def prove(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether an ended migration still has the allocation that its server needs.

    Proof: The server is settled on its host but has no allocation there. Exactly one ended
    migration of it has an allocation on that host, and on no other. That migration is a resize or
    cold migration away from that host that failed or was reverted, and no later move succeeded. The
    records of the hosts prove for this move, and for every later attempt, that the guest is on that
    host. Either the move was given up before the source was asked for the guest, or while the
    source copied its disks; or a revert destroyed the guest on the destination; or the host has
    started the guest since. No evacuation or live migration failed to a host on which the server
    has an allocation. After a live migration that conductor did not refuse, the hypervisors may
    have finished the move without Nova, so the finding only reports where to check.

    Needs: The cells of the hosts on which the server and its migration have allocations, and of the
    hosts that its migrations name. The server, its migrations and its actions are read from its own
    cell.

    Change: The migration's allocation becomes the server's in one request, which also removes the
    server's allocations on other hosts. After a live migration that asked its source: none.
    """
    own = view.own_tree
    if not is_settled_without_own_tree(view) or own is None:
        return None
    allocations = _list_migration_allocations_of(view, own)
    if not allocations:
        return None
    evidence = (
        *view.server_answers,
        *(view.index.snapshot.evidence[uuid].allocation for uuid in allocations),
    )
    uuid, allocation = next(iter(allocations.items()))
    if ambiguity := _explain_ambiguity(view, allocations, own):
        reason = ambiguity.reword(
            f"Server {view.consumer} is settled on {view.node_name} but has no allocation there, "
            f"and {ambiguity}, so it is not certain what the server needs."
        )
        return undecided(reason, *evidence)
    migration = next(move for move in view.server_migrations if move.uuid == uuid)
    # The migration's allocation changes too, so its own protections hold as well.
    if protection := _find_protection(view, allocation, migration, policy):
        reason = protection.reword(
            f"Migration {uuid} has the allocation that server {view.consumer} needs. {protection}"
        )
        return protected(reason, *evidence)
    # The server has left this host and come back since, perhaps with another flavor.
    if migration.status in SUCCESSFUL_MIGRATION_STATUSES:
        reason = Reason(
            "flavor_may_be_older",
            f"Server {view.consumer} is settled on {view.node_name}, and migration {uuid}, which "
            "left that host, still has an allocation there: its amounts may be those of an older "
            "flavor.",
        )
        return undecided(reason, *evidence)
    return _decide_unreverted(view, own, migration, allocation, evidence)


def _list_migration_allocations_of(view: ConsumerView, root: str) -> dict[str, Allocation]:
    """Return the allocations of the server's ended migrations on the tree `root`, by migration."""
    return {
        uuid: allocation
        for uuid, allocation in view.migration_allocations.items()
        if root in group_by_tree(allocation.resources, view.index)
    }


def _explain_ambiguity(
    view: ConsumerView, allocations: dict[str, Allocation], own: str
) -> Reason | None:
    """Return why the `allocations` of migrations do not show which one the server needs, or None.

    There must be one, and only on the tree `own` of the server's host.
    """
    names = ", ".join(sorted(allocations))
    if len(allocations) > 1:
        return Reason(
            "several_migrations_allocated", f"migrations {names} each have an allocation there"
        )
    if not all(_is_of_tree_only(view, allocation, own) for allocation in allocations.values()):
        return Reason(
            "migration_allocated_elsewhere_too",
            f"the allocation of migration {names} is not on that host alone",
        )
    return None


def _is_of_tree_only(view: ConsumerView, allocation: Allocation, root: str) -> bool:
    """Return whether an allocation is of the tree `root`, of its root too, and of no other tree."""
    if set(group_by_tree(allocation.resources, view.index)) != {root}:
        return False
    # Without a generation nothing guards the write.
    return bool(allocation.resources.get(root)) and allocation.generation is not None


def _find_protection(
    view: ConsumerView, allocation: Allocation, migration: Migration, policy: Policy
) -> Reason | None:
    """Return why the allocation of a `migration` must not be changed, as for any other consumer."""
    migration_view = d.replace(view, allocation=allocation, migration=migration)
    protections = (protect_excluded, protect_foreign_type, protect_too_young)
    reasons = (protect(migration_view, policy) for protect in protections)
    return next(filter(None, reasons), None)


def _decide_unreverted(
    view: ConsumerView,
    own: str,
    migration: Migration,
    allocation: Allocation,
    evidence: tuple[Answer[t.Any], ...],
) -> Decision:
    """Decide on the `allocation` of a failed or reverted `migration` that its server needs."""
    reason = Reason(
        "migration_has_needed_allocation",
        f"Server {view.consumer} is settled on {view.node_name}, but migration {migration.uuid}, "
        "which has ended, still has the allocation there; the server itself has an allocation on "
        f"{format_providers(view)}.",
    )
    is_refused = migration.uuid in view.refused_live_migrations
    if migration.type not in COLD_MIGRATION_TYPES and not is_refused:
        # The hypervisors may have gone on without Nova: the guest is then where the server's own
        # allocation is.
        doubt = Reason(
            "guest_may_have_moved",
            f"Its guest may have reached {migration.dest_compute} without Nova: "
            "check there with virsh list before you change either allocation.",
        )
        return drifted(doubt.reword(f"{reason} {doubt}"), *evidence, migration=migration)
    evidence = (*evidence, *view.subject.last_actions)
    if unproven := _explain_uncertain_guest_location(view, own, migration):
        return undecided(reason.but(unproven), *evidence)
    change = build_change(
        view.allocation,
        # In one request, so that the host is never allocated twice.
        partner=build_change(allocation, resources={}),
        resources=allocation.resources,
        **choose_owner(view),
    )
    return drifted(reason, *evidence, change=change, migration=migration)


def _explain_uncertain_guest_location(
    view: ConsumerView, own: str, migration: Migration
) -> Reason | None:
    """Return why the guest may not be on the tree `own`, which a `migration` was to leave."""
    # A live migration that was refused has no compute node.
    own_host = view.server.host if view.server and migration.is_without_nodes else None
    if not view.is_source(own, migration) and own_host != migration.source_compute:
        return Reason(
            "migration_left_other_host",
            f"that migration did not leave {view.node_name} but {migration.source_compute}",
        )
    return (
        view.explain_failed_move_to(view.other_trees)
        or explain_possible_guest_of_unshelve(view, view.other_trees)
        or find_source_doubt(view, migration)
    )
