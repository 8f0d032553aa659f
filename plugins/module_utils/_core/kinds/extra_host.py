# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The server has an allocation on its own host and on another one as well."""

from __future__ import annotations

from ..._common.errors import Reason
from ..facts.consumer import (
    ConsumerView,
    has_compute_allocation,
    has_own_and_other_trees_allocated,
    has_own_tree_allocated,
)
from ..facts.moves import explain_possible_move_without_migration
from ..models.finding import Decision, orphaned, undecided
from ..models.kind import ORPHAN, REMEDIATE, define_kind
from ..models.snapshot import ACTIONS, LAST_ACTIONS
from ..options.policy import Policy

KIND = define_kind(
    __name__, __doc__, ORPHAN, REMEDIATE, needs=(ACTIONS, LAST_ACTIONS), was="wrong_host"
)


def prove(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the server has allocations on its own host and on another one as well.

    Proof: The server is settled on the host where its newest move or a later unshelve took it, has
    an allocation there, and has no move under way. On the other host it has one of the resource
    classes that it also has on its own host, not counting disk. No evacuation or live migration to
    the other host has failed since the server last left it, so its guest cannot be running there; a
    live migration that conductor refused before it asked the source does not count.
    An evacuation has also failed if it is `completed` and the next migration began elsewhere, or
    the server is elsewhere without one. No revert to the other host can have failed halfway, so its
    disk cannot be there. If the server was evacuated from there, nova-compute there does not run
    or has started since. A migration that names a host which Nova does not list may mean any host
    that Nova lists: hosts are renamed. nova-compute on the server's own host is up, unless both are
    nodes of one host. No earlier unshelve can wait for nova-compute on the other host, have begun
    there without a shelve since, or have taken the server to its own host after a later one. The
    other host may be gone: then its provider has the trait `COMPUTE_NODE` or `OWNER_NOVA`, no
    compute node or compute service is behind the provider, and the server has every resource class
    that it has there also on its own host or on a sharing provider.

    Needs: The cells of the hosts on which the server is or has allocations, and of the hosts that
    its migrations name. The instance actions of the server, which are read from its own cell, show
    that Nova lists a migration for each move that was requested since the server last arrived.

    Change: The allocations on the other hosts are removed; the rest stays.
    """
    if has_own_tree_allocated(view) and view.doubtful_trees:
        return undecided(_describe_doubtful_trees(view), *view.server_answers)
    if not has_own_and_other_trees_allocated(view):
        return None
    others = ", ".join(sorted(map(view.index.get_name, view.other_trees)))
    if doubt := _explain_possible_use_of_other_hosts(view, others):
        reason = doubt.reword(
            f"Server {view.consumer} is settled on {view.node_name} and also has {doubt}"
        )
        return undecided(reason, *view.server_answers)
    reason = Reason(
        "extra_allocation",
        f"Server {view.consumer} is settled on {view.node_name} with no move under way, "
        f"and also has an allocation on {others}.",
    )
    return orphaned(
        reason,
        *view.server_answers,
        freed_providers=frozenset().union(*view.other_trees.values()),
        migration=next(filter(None, map(view.find_migration_from, view.other_trees)), None),
    )


def _describe_doubtful_trees(view: ConsumerView) -> Reason:
    """Return which former compute nodes' providers a server has, and why they may be in use."""
    doubts = "; ".join(
        f"{view.index.get_name(root)}: {view.index.find_possible_host(root)}"
        for root in sorted(view.doubtful_trees)
    )
    return Reason(
        "providers_of_unlisted_nodes",
        f"Server {view.consumer} is settled on {view.node_name} and also has allocations on "
        f"providers that belonged to compute nodes which Nova does not list ({doubts}).",
    )


def _explain_possible_use_of_other_hosts(view: ConsumerView, others: str) -> Reason | None:
    """Return what the server has on the `others` and why it may need that, or None."""
    doubtful = [root for root in view.other_trees if not has_compute_allocation(view, root)]
    if doubtful:
        names = ", ".join(sorted(map(view.index.get_name, doubtful)))
        return Reason(
            "may_share_resources",
            f"resources of {names}, but none of the classes that a server has on its host, apart "
            "from disk: that host may share them.",
        )
    if missing := _list_classes_only_on_gone_hosts(view):
        return Reason(
            "classes_only_on_gone_hosts",
            f"an allocation on {others}, with {', '.join(missing)} that it does not have on its "
            "own host, whose allocation may be incomplete.",
        )
    # The hypervisors can finish a move that Nova gave up.
    doubt = view.explain_failed_move_to(
        view.other_trees
    ) or view.explain_possible_guest_of_evacuation(view.other_trees)
    if doubt:
        return doubt.reword(f"an allocation on {others}, but {doubt.removesuffix('.')}.")
    if reverted := view.find_possible_revert_to(view.other_trees):
        return Reason(
            "may_be_reverted_halfway",
            f"an allocation on {others}, the source of {reverted.type} {reverted.uuid}, which "
            "failed and may have been reverted halfway: its only disk may be there.",
        )
    if unrecorded := explain_possible_move_without_migration(view):
        return unrecorded.reword(f"an allocation on {others}, but {unrecorded}")
    return None


def _list_classes_only_on_gone_hosts(view: ConsumerView) -> list[str]:
    """Return the resource classes that a server has only on hosts that are gone.

    Classes that it also has on its own host or on a sharing provider are left out.
    """
    resources, index = view.allocation.resources, view.index
    gone = [tree for root, tree in view.other_trees.items() if index.is_gone(root)]
    on_gone_hosts = {cls for tree in gone for provider in tree for cls in resources[provider]}
    usable = (
        amounts
        for provider, amounts in resources.items()
        if index.get_root(provider) == view.own_tree or index.is_sharing(provider)
    )
    return sorted(on_gone_hosts.difference(*usable))
