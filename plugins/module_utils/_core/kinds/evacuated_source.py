# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The server was evacuated, but still has an allocation on the host that it left."""

from __future__ import annotations

from ..._common.errors import Reason
from ..facts.consumer import ConsumerView, has_compute_allocation, has_own_and_other_trees_allocated
from ..facts.moves import explain_possible_move_without_migration
from ..models.finding import Decision, orphaned, undecided
from ..models.kind import ORPHAN, REMEDIATE, define_kind
from ..models.nova import Migration
from ..models.snapshot import ACTIONS
from ..options.policy import Policy

KIND = define_kind(__name__, __doc__, ORPHAN, REMEDIATE, needs=(ACTIONS,))


def prove(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the server still has an allocation on hosts that it left by evacuation.

    Proof: The server is settled on the host where its newest move or a later unshelve took it, and
    has an allocation there. It left every other host on which it has an allocation by an evacuation
    with the status `done` or `completed`. While it is `done`, nova-compute on the host that was
    left does not run: if it did, it would not have started since, and the guest may still be there.
    A migration that names a host which Nova does not list may mean any host that Nova lists: hosts
    are renamed. No evacuation or live migration to such a host has failed since the server last
    left it, and no revert to such a host can have failed halfway. nova-compute on the server's own
    host is up. No earlier unshelve can wait for nova-compute on a host that it left, have begun
    there without a shelve since, or have taken it to its own host after a later one.

    Needs: The cells of the hosts on which the server is or has allocations, and of the hosts that
    its migrations name. The instance actions of the server, which are read from its own cell, show
    that Nova lists a migration for each move that was requested since the server last arrived.

    Change: The allocations on the hosts that it left are removed; the rest stays.
    """
    if not has_own_and_other_trees_allocated(view):
        return None
    evacuations = _find_evacuations_from_other_trees(view)
    # A guest can run where an evacuation or a live migration failed late.
    if not evacuations or view.explain_failed_move_to(evacuations):
        return None
    if view.find_possible_revert_to(evacuations):
        return None
    doubt = view.explain_possible_guest_of_evacuation(
        evacuations
    ) or explain_possible_move_without_migration(view)
    if doubt:
        reason = doubt.reword(
            f"Server {view.consumer} is settled on {view.node_name} and also has an "
            f"allocation on a host that it left by evacuation, but {doubt}"
        )
        return undecided(reason, *view.server_answers)
    left_hosts = "; ".join(
        f"{view.index.get_name(root)}, by evacuation {move.uuid} ({move.status} at "
        f"{move.changed_at})"
        for root, move in sorted(evacuations.items())
    )
    reason = Reason(
        "left_by_evacuation",
        f"Server {view.consumer} is settled on {view.node_name}, but still has an allocation on "
        f"each host that it left: {left_hosts}.",
    )
    return orphaned(
        reason,
        *view.server_answers,
        freed_providers=frozenset().union(*view.other_trees.values()),
        migration=next(iter(evacuations.values())),
    )


def _find_evacuations_from_other_trees(view: ConsumerView) -> dict[str, Migration]:
    """Return the evacuation that left each of the other trees, by root; {} unless all were left.

    On each tree the server must have what a server has on its host.
    """
    evacuations: dict[str, Migration] = {}
    for root in view.other_trees:
        evacuation = _find_evacuation_from(view, root)
        # One host that was not left is enough: then none of them is freed by this proof.
        if evacuation is None or not has_compute_allocation(view, root):
            return {}
        evacuations[root] = evacuation
    return evacuations


def _find_evacuation_from(view: ConsumerView, root: str) -> Migration | None:
    """Return the newest successful evacuation that left the tree `root`."""
    # When nova-compute starts on the source again, it saves `completed` even if it failed to
    # remove the allocation there (nova/compute/manager.py, _destroy_evacuated_instances).
    arrived = (
        row for row in view.server_migrations if row.type == "evacuation" and row.has_arrived
    )
    return next((move for move in arrived if view.is_source(root, move)), None)
