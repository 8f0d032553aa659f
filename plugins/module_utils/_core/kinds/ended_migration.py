# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The migration has ended, and its server does not need its allocation."""

from __future__ import annotations

from collections.abc import Collection

from ..._common.errors import Reason
from ..facts.consumer import ConsumerView
from ..facts.deletion import describe_deletion, find_deleted_server, is_deleted
from ..facts.moves import (
    explain_possible_placement,
    find_placement_after_unshelve,
    list_taken_over_roots,
)
from ..models.finding import Decision, orphaned, undecided
from ..models.kind import ORPHAN, REMEDIATE, define_kind
from ..models.nova import Migration
from ..models.placement import Allocations, Resources, list_compute_classes
from ..models.snapshot import ACTIONS, DELETED, HOST_MIGRATIONS, LAST_ACTIONS
from ..options.policy import Policy

KIND = define_kind(
    __name__, __doc__, ORPHAN, REMEDIATE, needs=(DELETED, ACTIONS, LAST_ACTIONS, HOST_MIGRATIONS)
)


def prove(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the migration has ended and its server does not need its allocation.

    Proof: Nova lists the migration with a final status, or as `finished` although the state of its
    server was reset since: then nobody can confirm or revert it, and nobody has requested that.
    Either its server is deleted, as for `deleted_server`. Or the migration is confirmed, has an
    allocation only on its source, and the server was shelved and offloaded since, as for
    `unhosted_server`. Or all of this holds: The server is settled where its newest move took it. No
    revert of this migration can have left the server's disk on the source, also not before the
    server was evacuated from the destination. No evacuation or live migration, and no unshelve that
    a host did late, can have left its guest on a host on which the migration has an allocation; a
    move to a host which Nova does not list may have been to any host that Nova lists, unless this
    migration left that host later. The server's own allocation covers the migration's: the server
    has an allocation on its own host, and on every provider except those of other hosts at least
    the same amounts as the migration. After a confirmed move any amount is enough.

    Needs: The cells of the hosts on which the migration and its server have allocations, and of
    the hosts that the server's migrations name. The cell that has the server also has its
    migrations, and an API worker whose answer lists the migration knows this cell.

    Change: All allocations of the migration are removed.
    """
    if view.migration is None:
        return None
    evidence = (view.index.snapshot.migrations, *view.server_answers)
    # The listing of all migrations is older than the answers about the server itself.
    rows = view.subject.migrations.value or ()
    current = next((row for row in rows if row.uuid == view.consumer), None)
    if current is None:
        reason = Reason(
            "migration_no_longer_listed",
            f"Nova listed migration {view.consumer}, but a later answer no longer lists it: its "
            "server is changing.",
        )
        return undecided(reason, *evidence)
    ending = f"Migration {current.uuid} ({current.type}) "
    if current.ended:
        ending += f"ended with status {current.status} at {current.changed_at}."
    else:
        ending += f"is {current.status} for ever: the state of its server was reset."
    if is_deleted(view.subject) and not view.contradiction:
        return orphaned(
            Reason("migration_of_deleted_server", f"{ending} {describe_deletion(view.subject)}"),
            *evidence,
            server=find_deleted_server(view.subject),
        )
    # Its server is alive, so the allocation may be the server's own after a failed move.
    if need := _explain_possible_need(view, current):
        return undecided(need.reword(f"{ending} {need}"), *evidence)
    if view.server is not None and not view.server.host:
        reason = Reason(
            "server_offloaded_since",
            f"{ending} Its server {current.server} was shelved and offloaded since: an unshelve "
            "allocates again.",
        )
        return orphaned(reason, *evidence, *view.subject.last_actions)
    reason = Reason(
        "migration_ended",
        f"{ending} Its server {current.server} is settled on {view.node_name} and has its own "
        "allocation there.",
    )
    return orphaned(reason, *evidence)


def _explain_possible_need(view: ConsumerView, migration: Migration) -> Reason | None:
    """Return why the server may need the allocation of its ended `migration`, or None."""
    if view.unknown_move is not None:
        return Reason(
            "server_has_unknown_move",
            f"Its server {migration.server} has migration {view.unknown_move.uuid} of the type "
            f"{view.unknown_move.type}, which this version does not know, so it may still need "
            "this allocation.",
        )
    if _is_offloaded_since(view, migration):
        doubt = (
            view.explain_possible_guest_of_evacuation(view.trees)
            or view.explain_failed_move_to(list(filter(None, view.trees)))
            or view.contradiction
            or explain_possible_placement(view)
        )
        return doubt and doubt.reword(f"Its server {migration.server} is offloaded, but {doubt}.")
    if not view.settled or not view.arrived:
        return Reason(
            "server_not_settled",
            f"Its server {migration.server} is not settled on a host, so it may still need this "
            "allocation.",
        )
    # A cold migration takes over all that its server has, also what a failed move left.
    others = [root for root in view.trees if root and root != view.own_tree]
    doubt = (
        view.explain_possible_guest_of_evacuation(view.trees)
        or view.explain_failed_move_to(others)
        or _explain_possible_unshelve(view, migration)
    )
    if doubt:
        settled = f"Its server {migration.server} is settled on {view.node_name}"
        return doubt.reword(f"{settled}, but {doubt.removesuffix('.')}.")
    reverted = view.explain_possible_revert(migration, view.trees)
    missing = _describe_missing_resources(view, migration)
    if reverted or not missing:
        return reverted
    return Reason(
        "server_has_less_than_migration",
        f"Its server {migration.server} does not itself have {missing}, "
        "so it may need this allocation.",
    )


def _is_offloaded_since(view: ConsumerView, migration: Migration) -> bool:
    """Return whether the server has no host, and the migration only what a confirmed move left."""
    server = view.server
    if server is None or server.host or server.node or migration.status != "confirmed":
        return False
    if server.status != "SHELVED_OFFLOADED":
        return False
    was_read = server.task_known and server.host_known and view.subject.migrations.value is not None
    return was_read and all(root and view.is_source(root, migration) for root in view.trees)


def _explain_possible_unshelve(view: ConsumerView, migration: Migration) -> Reason | None:
    """Return why the guest may be where an unshelve placed it, on a host that was taken over; None.

    A move since then says nothing: it began where Nova had the server.
    """
    taken_over = list_taken_over_roots(view, migration, view.trees)
    if taken_over and view.subject.actions.value is None:
        return Reason(
            "unshelve_actions_unread",
            "its instance actions, which would show an unshelve, could not be read.",
        )
    for root in taken_over:
        if find_placement_after_unshelve(view, root) is not None:
            return Reason(
                "guest_may_be_at_unshelved_host",
                f"was placed again after an unshelve: its guest may run on "
                f"{view.index.get_name(root)}, on which the migration has an allocation.",
            )
    return None


def _describe_missing_resources(view: ConsumerView, migration: Migration) -> str:
    """Return what the migration has and its server may need but does not have; '' if nothing.

    Nova can fail to give an allocation back after a failed or reverted move and only log it
    (nova/compute/manager.py, _revert_allocation): the server then has less than it needs, and the
    migration has the rest. After a confirmed move the server's own allocation is the right one.
    """
    of_server = view.subject.allocation.value
    server_resources: Allocations = of_server.resources if of_server else {}
    confirmed = migration.status == "confirmed"
    own_classes = list_compute_classes(server_resources, view.own_tree)
    if not own_classes:
        return f"an allocation on its own host {view.node_name}"
    for provider, amounts in view.allocation.resources.items():
        if _is_of_left_host(view, provider, own_classes):
            continue
        # After a confirmed move the server's own allocation is right, whatever its amounts.
        if confirmed and view.index.get_root(provider) == view.own_tree:
            continue
        missing = _list_missing_classes(amounts, server_resources.get(provider, {}), confirmed)
        if missing:
            return f"as much {', '.join(missing)} on {view.index.get_name(provider)}"
    return ""


def _is_of_left_host(view: ConsumerView, provider: str, own_classes: Collection[str]) -> bool:
    """Return whether `provider` is of a host that the server left, or on which it is not.

    own_classes: the classes that the server has on its own host; on the other host the migration
        must have one of them, unless a migration names that host as its source.
    """
    root = view.index.get_root(provider)
    if root is None or root == view.own_tree or view.index.is_sharing(provider):
        return False
    if view.find_migration_from(root):
        return True
    # Without such a migration, only a compute node that Nova lists is certainly another host.
    if root not in view.index.nodes:
        return False
    return bool(list_compute_classes(view.allocation.resources, root).intersection(own_classes))


def _list_missing_classes(needed: Resources, present: Resources, confirmed: bool) -> list[str]:
    """Return the sorted classes of which `present` has less than `needed`.

    confirmed: whether any amount is enough, because the server's own allocation is the right one
        after a confirmed move.
    """
    lacks = (
        cls for cls, amount in needed.items() if present.get(cls, 0) < (1 if confirmed else amount)
    )
    return sorted(lacks)
