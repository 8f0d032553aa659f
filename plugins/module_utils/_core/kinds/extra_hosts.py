# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The proofs of the kinds `evacuated_source` and `extra_host`.

In both a settled server has allocations on its own host and on other hosts as well.
"""

from __future__ import annotations

from ..facts.consumer import ConsumerView
from ..facts.move_records import explain_possible_guest_of_unshelve, find_placement_after_unshelve
from ..models.nova import Migration
from ..models.placement import list_compute_classes
from ..models.verdict import Decision, orphaned, undecided
from ..options.policy import Policy


def evacuated_source(view: ConsumerView, policy: Policy) -> Decision | None:
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
    if not _has_own_and_other_trees_allocated(view):
        return None
    evacuations = _find_evacuations_from_other_trees(view)
    # A guest can run where an evacuation or a live migration failed late.
    if not evacuations or view.explain_failed_move_to(evacuations):
        return None
    if view.find_possible_revert_to(evacuations):
        return None
    doubt = view.explain_possible_guest_of_evacuation(
        evacuations
    ) or _explain_possible_move_without_migration(view)
    if doubt:
        return undecided(
            f"Server {view.consumer} is settled on {view.node_name} and also has an allocation on "
            f"a host that it left by evacuation, but {doubt}",
            *view.server_answers,
        )
    left_hosts = "; ".join(
        _describe_evacuation_from(view, root, evacuation)
        for root, evacuation in sorted(evacuations.items())
    )
    return orphaned(
        f"Server {view.consumer} is settled on {view.node_name}, but still has an allocation on "
        f"each host that it left: {left_hosts}.",
        *view.server_answers,
        freed_providers=frozenset().union(*view.other_trees.values()),
        migration=next(iter(evacuations.values())),
    )


def extra_host(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the server has allocations on its own host and on another one as well.

    Proof: The server is settled on the host where its newest move or a later unshelve took it, has
    an allocation there, and has no move under way. On the other host it has one of the resource
    classes that it also has on its own host, not counting disk. No evacuation or live migration to
    the other host has failed since the server last left it, so its guest cannot be running there.
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
    if _has_own_tree_allocated(view) and view.doubtful_trees:
        return undecided(_describe_doubtful_trees(view), *view.server_answers)
    if not _has_own_and_other_trees_allocated(view):
        return None
    others = ", ".join(sorted(map(view.index.get_name, view.other_trees)))
    doubt = _explain_possible_use_of_other_hosts(view, others)
    if doubt:
        return undecided(
            f"Server {view.consumer} is settled on {view.node_name} and also has {doubt}",
            *view.server_answers,
        )
    return orphaned(
        f"Server {view.consumer} is settled on {view.node_name} with no move under way, "
        f"and also has an allocation on {others}.",
        *view.server_answers,
        freed_providers=frozenset().union(*view.other_trees.values()),
        migration=_find_migration_from_other_trees(view),
    )


def _has_own_tree_allocated(view: ConsumerView) -> bool:
    """Return whether a settled server has an allocation on its own host, not only of its disk."""
    return (
        view.is_settled_in_place
        and view.own_tree is not None
        and _has_compute_allocation(view, view.own_tree)
    )


def _has_own_and_other_trees_allocated(view: ConsumerView) -> bool:
    return _has_own_tree_allocated(view) and bool(view.other_trees)


def _has_compute_allocation(view: ConsumerView, root: str | None) -> bool:
    """Return whether the server has on `root` a class that it also has on its own host.

    An allocation without such a class is not a leftover of a move.
    """
    resources = view.allocation.resources
    own_classes = list_compute_classes(resources, view.own_tree)
    return bool(list_compute_classes(resources, root) & own_classes)


def _find_evacuations_from_other_trees(view: ConsumerView) -> dict[str, Migration]:
    """Return the evacuation that left each of the other trees, by root; {} unless all were left.

    On each tree the server must have what a server has on its host.
    """
    evacuations: dict[str, Migration] = {}
    for root in view.other_trees:
        evacuation = _find_evacuation_from(view, root)
        # One host that was not left is enough: then none of them is freed by this proof.
        if evacuation is None or not _has_compute_allocation(view, root):
            return {}
        evacuations[root] = evacuation
    return evacuations


def _find_evacuation_from(view: ConsumerView, root: str) -> Migration | None:
    """Return the newest successful evacuation that left the tree `root`."""
    for migration in view.server_migrations:
        # When nova-compute starts on the source again, it saves `completed` even if it failed to
        # remove the allocation there (nova/compute/manager.py, _destroy_evacuated_instances).
        is_evacuation = migration.type == "evacuation" and migration.has_arrived
        if is_evacuation and view.is_source(root, migration):
            return migration
    return None


def _describe_evacuation_from(view: ConsumerView, root: str, evacuation: Migration) -> str:
    changed_at = evacuation.changed_at
    return (
        f"{view.index.get_name(root)}, by evacuation {evacuation.uuid} "
        f"({evacuation.status} at {changed_at})"
    )


def _describe_doubtful_trees(view: ConsumerView) -> str:
    """Return which former compute nodes' providers a server has, and why they may be in use."""
    doubts = "; ".join(
        f"{view.index.get_name(root)}: {view.index.find_possible_host(root)}"
        for root in sorted(view.doubtful_trees)
    )
    return (
        f"Server {view.consumer} is settled on {view.node_name} and also has allocations on "
        f"providers that belonged to compute nodes which Nova does not list ({doubts})."
    )


def _explain_possible_use_of_other_hosts(view: ConsumerView, others: str) -> str | None:
    """Return what the server has on the `others` and why it may need that, or None."""
    doubtful = [root for root in view.other_trees if not _has_compute_allocation(view, root)]
    if doubtful:
        names = ", ".join(sorted(map(view.index.get_name, doubtful)))
        return (
            f"resources of {names}, but none of the classes that a server has on its host, apart "
            "from disk: that host may share them."
        )
    missing = _list_classes_only_on_gone_hosts(view)
    if missing:
        return (
            f"an allocation on {others}, with {', '.join(missing)} that it does not have on its "
            "own host, whose allocation may be incomplete."
        )
    # The hypervisors can finish a move that Nova gave up.
    failed = view.explain_failed_move_to(view.other_trees)
    if failed:
        return f"an allocation on {others}, but {failed}."
    remaining_guest = view.explain_possible_guest_of_evacuation(view.other_trees)
    if remaining_guest:
        return f"an allocation on {others}, but {remaining_guest}"
    reverted = view.find_possible_revert_to(view.other_trees)
    if reverted:
        return (
            f"an allocation on {others}, the source of {reverted.type} {reverted.uuid}, which "
            "failed and may have been reverted halfway: its only disk may be there."
        )
    unrecorded = _explain_possible_move_without_migration(view)
    if unrecorded:
        return f"an allocation on {others}, but {unrecorded}"
    return None


def _explain_possible_move_without_migration(view: ConsumerView) -> str | None:
    """Return why the guest may be on another host, or get there, without a migration; or None.

    Nova has none of an evacuation if its database was restored from before it, and makes none for
    an unshelve.
    """
    own_host = view.server.host if view.server else None
    other_hosts = {_get_host(view, root) for root in view.other_trees}
    # An evacuation is always to another host, not to another node of the same one.
    if other_hosts != {own_host} and view.index.list_compute_states(own_host) != {"up"}:
        return (
            f"nova-compute on {own_host} is not up: if Nova's database was restored from before "
            "an evacuation, its guest may run on another host."
        )
    for root in view.other_trees:
        doubt = _explain_possible_unshelve(view, root)
        if doubt:
            return doubt
    return None


def _get_host(view: ConsumerView, root: str) -> str | None:
    """Return the host of the compute node behind the tree `root`, or None if Nova lists none."""
    node = view.index.nodes.get(root)
    return node.host if node else None


def _explain_possible_unshelve(view: ConsumerView, root: str) -> str | None:
    """Return how an unshelve may still place, or have placed, the server on a host twice; or None.

    root: another tree on which it has an allocation. A host that is up has emptied its queue.
    """
    host = _get_host(view, root)
    placement = find_placement_after_unshelve(view, root)
    if host is None or placement is None:
        return None
    if view.index.list_compute_states(host) != {"up"}:
        return (
            "it was placed again after an unshelve: that one may still wait for nova-compute "
            f"on {host}, which is not up."
        )
    remaining_guest = explain_possible_guest_of_unshelve(view, [root])
    return f"{remaining_guest}." if remaining_guest else None


def _list_classes_only_on_gone_hosts(view: ConsumerView) -> list[str]:
    """Return the resource classes that a server has only on hosts that are gone.

    Classes that it also has on its own host or on a sharing provider are left out.
    """
    resources = view.allocation.resources
    on_gone_hosts: set[str] = set()
    for root, providers in view.other_trees.items():
        if not view.index.is_gone(root):
            continue
        for provider in providers:
            on_gone_hosts.update(resources[provider])
    usable: set[str] = set()
    for provider, amounts in resources.items():
        if view.index.get_root(provider) == view.own_tree or view.index.is_sharing(provider):
            usable.update(amounts)
    return sorted(on_gone_hosts - usable)


def _find_migration_from_other_trees(view: ConsumerView) -> Migration | None:
    """Return the newest ended migration away from the first of the other trees that has one."""
    for root in view.other_trees:
        migration = view.find_migration_from(root)
        if migration is not None:
            return migration
    return None
