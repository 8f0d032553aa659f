# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The migration was deleted with its server, but its allocation remains."""

from __future__ import annotations

import typing as t

from ..._common.errors import Reason
from ..expected.amounts import compare_listed
from ..facts.consumer import ConsumerView
from ..facts.deletion import is_unlisted
from ..facts.server import find_move_without_migration
from ..models.finding import Decision, orphaned, undecided
from ..models.kind import EVERY, ORPHAN, REMEDIATE, define_kind
from ..models.nova import (
    COLD_MIGRATION_TYPES,
    COLD_MOVING_ACTIONS,
    FAILED_MIGRATION_STATUSES,
    MOVING_ACTIONS,
    Hypervisor,
)
from ..models.placement import Allocations, list_compute_classes
from ..models.snapshot import (
    ACTIONS,
    DELETED,
    HOST_ALLOCATIONS,
    HOST_MIGRATIONS,
    MARKER,
    NOT_ASKED,
    UNLISTED_MOVES,
    Answer,
)
from ..options.policy import Policy

KIND = define_kind(
    __name__,
    __doc__,
    ORPHAN,
    REMEDIATE,
    needs=(DELETED, ACTIONS, MARKER, HOST_MIGRATIONS, HOST_ALLOCATIONS, UNLISTED_MOVES),
    cells=EVERY,
    was="forgotten_migration",
)

# After these, the server is where its move began.
_UNDONE = FAILED_MIGRATION_STATUSES | {"reverted"}


def prove(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the migration was deleted with its server while its allocation remains.

    Proof: No listing has the consumer, neither as a server nor as a migration, and Nova has no
    instance actions for its UUID. But Nova accepts the UUID as the marker of a listing of
    migrations, which it does for deleted migrations too, so the UUID is that of a migration. This
    request is repeated over several connections, and all answers agree. Nothing shows a server or a
    migration of this UUID as active. Each server on the hosts where it has an allocation has one
    there too, itself or through a migration under way, or was never moved, or its newest move is a
    cold migration that failed or was reverted and has there just what its flavor requests: none of
    them needs this one. None of its providers is a former one of a host that Nova lists. Nova lists
    a migration of each server that is being moved.

    Needs: Every cell, because the proof is that no listing has the migration.

    Change: All its allocations are removed.
    """
    subject = view.subject
    # Instance actions would show that the UUID is a server's (is_marked_deleted).
    if (
        view.migration
        or not is_unlisted(subject)
        or subject.marker.status != 200
        or subject.actions.status != 404
        or view.contradiction
    ):
        return None
    # Only agreeing API workers prove it: one that lacks the cell answers differently.
    if differing := [answer for answer in subject.markers if answer.status != 200]:
        reason = Reason(
            "marker_answers_differ",
            "Nova identified the UUID as a migration's, and then answered "
            f"{differing[0].status} to the same request: its API workers disagree.",
        )
        return undecided(reason, *view.server_answers, *differing)
    evidence = (
        *view.migration_listings,
        *view.server_answers,
        *_list_host_answers(view),
        view.index.snapshot.unlisted_moves,
    )
    if need := _explain_possible_need(view, policy):
        reason = need.reword(
            "Nova identifies the UUID as a migration's but no longer lists that migration, and "
            f"{need}."
        )
        return undecided(reason, *evidence)
    reason = Reason(
        "migration_deleted_with_server",
        "Nova identifies the UUID as a migration's but no longer lists that migration: it was "
        "deleted together with its server.",
    )
    return orphaned(reason, *evidence)


def _list_host_answers(view: ConsumerView) -> list[Answer[t.Any]]:
    """Return the answers about the hosts on which a consumer has an allocation."""
    answers: list[Answer[t.Any]] = []
    read = view.index.snapshot.host_allocations
    for host in (read[root] for root in sorted(filter(None, view.trees)) if root in read):
        answers += (host.tree, host.servers, *host.actions.values(), *host.lookups.values())
    return answers


def _explain_possible_need(view: ConsumerView, policy: Policy) -> Reason | None:
    """Return why a live server may need the allocation of a migration without a record, or None.

    Nova deletes the row of a migration only together with its server (nova/db/main/api.py,
    instance_destroy), but an operator can delete it alone, or hide it. An interrupted move can have
    left the allocation that its server needs with that migration (nova/compute/manager.py,
    _reset_live_migration and _revert_allocation): the server then has none on its host. A server
    that was never moved has had no migration. A server whose failed move has just what it should
    have there needs no second one. A server that is being
    moved needs the allocation of
    its migration on the host that it comes from, where it is no longer listed.
    """
    unlisted_moves = view.index.snapshot.unlisted_moves.value
    if unlisted_moves is None:
        return Reason("moving_servers_unread", "the servers that are being moved could not be read")
    if unlisted_moves:
        return Reason(
            "server_moving_without_migration",
            f"it lists no migration of server {unlisted_moves[0]}, which is being moved and may "
            "need this one. Confirm or revert its resize first, or reset its state if it is stuck",
        )
    for root in sorted(filter(None, view.trees)):
        node = view.index.nodes.get(root)
        if node is None:
            # A host that is gone has no server. But an API worker can leave out a host that runs.
            name = view.index.get_name(root)
            if service := view.index.find_possible_service(name):
                return service.reword(f"a server on {name} may need it: {service}")
            if view.index.has_host_named(name):
                return Reason(
                    "renamed_host_may_need_it",
                    f"a server on {name} may need it: the provider is a former one of that host, "
                    "whose compute node has another UUID now",
                )
            continue
        host = view.index.snapshot.host_allocations.get(root)
        if (
            host is None
            or host.tree.value is None
            or host.servers.value is None
            # A worker that does not know its cell lists no server there and finds no node.
            or node.servers is None
        ):
            return Reason(
                "host_allocations_unread",
                f"the allocations or the servers on {node.name} could not be read",
            )
        if not _is_listed_as_read(view, root, host.tree.value):
            return Reason(
                "host_allocations_differ",
                f"the listing of the allocations on {node.name} shows other ones of it: they are "
                "changing right now, or a cache has an old answer",
            )
        lacking = host.list_servers_without(root, node.servers, view.index.get_listed_migrations)
        for server in lacking:
            actions = host.actions.get(server, NOT_ASKED).value
            was_moved = actions is None or any(one.action in MOVING_ACTIONS for one in actions)
            if was_moved and not _is_provided_for(view, node, server, policy):
                return Reason(
                    "moved_server_without_allocation",
                    f"server {server} on {node.name} has no allocation there and may have been "
                    "moved, so it may need this one: its record may have been deleted by hand. "
                    "Heal that server first (unreverted_allocation, missing_allocation or "
                    "misplaced_allocation)",
                )
    for subject in view.index.snapshot.evidence.values():
        live = subject.server.value
        if live is not None and live.host and not view.index.list_nodes_at(live.host):
            return Reason(
                "server_on_unlisted_host",
                f"server {live.uuid} is on {live.host}, which Nova does not list and which may "
                "have been renamed: it may need this one",
            )
    return None


def _is_provided_for(view: ConsumerView, node: Hypervisor, server: str, policy: Policy) -> bool:
    """Return whether the newest move of a settled server has what its flavor requests there.

    It must be a cold migration that failed or was reverted: what an earlier move left there may be
    beside what the server needs.
    """
    host = view.index.snapshot.host_allocations[node.uuid]
    live, actions = (of.get(server, NOT_ASKED).value for of in (host.lookups, host.actions))
    if live is None or not live.is_idle or (live.host, live.node) != (node.host, node.name):
        return False
    listed = view.index.get_listed_migrations(server).value or ()
    moves = sorted(listed, key=lambda move: move.created_at or "", reverse=True)
    requests = [one.action for one in actions or () if one.action in MOVING_ACTIONS]
    if not moves or not requests or requests[0] not in COLD_MOVING_ACTIONS:
        return False
    if live.flavor is None or find_move_without_migration(actions or (), moves):
        return False
    has_failed = moves[0].type in COLD_MIGRATION_TYPES and moves[0].status in _UNDONE
    left = host.list_left_behind(moves[:1] if has_failed else ())
    complete = (one for one in left if list_compute_classes(one, node.uuid))
    return any(compare_listed(live, one, policy.pci_aliases).fits for one in complete)


def _is_listed_as_read(view: ConsumerView, root: str, tree: t.Mapping[str, Allocations]) -> bool:
    """Return whether the listing of the tree `root` has what the consumer itself shows there.

    A listing from before the move does not show that the server has lost its allocation.
    """
    present = view.allocation.resources
    return tree.get(view.consumer) == {uuid: present[uuid] for uuid in view.trees[root]}
