# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers and migrations that Nova has deleted: what shows it, and the kinds that follow from it.

`deleted_server` and `deleted_migration` are the proofs of the kinds of these names. The other
functions read the evidence about one UUID; other rules and the host stage use them too.
"""

from __future__ import annotations

import typing as t

from ..facts.consumer import ConsumerView
from ..facts.server import find_deletion
from ..models.nova import MOVING_ACTIONS, Server
from ..models.placement import Allocations
from ..models.snapshot import NOT_ASKED, Answer, Evidence
from ..models.verdict import Decision, orphaned, undecided
from ..options.policy import Policy


def deleted_server(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the server is deleted while its allocation remains.

    Proof: `GET /servers/{id}` answers 404, and one of two answers shows the deletion. Either the
    listing of deleted servers has the server, and not as soft-deleted; or Nova still returns its
    instance actions, which means that its row is marked as deleted. Nothing contradicts this: the
    listing of compute nodes does not show the server on a host, and no migration of it is under
    way.

    Needs: The cells of the hosts on which it has allocations, and of the hosts that its migrations
    name. The lookup goes through the server's own mapping to its own cell, and the answer that
    shows the deletion comes from a cell that answered.

    Change: All its allocations are removed.
    """
    subject = view.subject
    if view.migration or not is_deleted(subject):
        return None
    doubt = view.contradiction or _explain_marker_conflict(subject)
    if doubt:
        return undecided(
            f"Nova reports server {subject.uuid} as deleted, but {doubt}.", *view.server_answers
        )
    return orphaned(
        f"{describe_deletion(subject)} Its allocation remains.",
        *view.server_answers,
        server=find_deleted_server(subject),
    )


def deleted_migration(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the migration was deleted with its server while its allocation remains.

    Proof: No listing has the consumer, neither as a server nor as a migration, and Nova has no
    instance actions for its UUID. But Nova accepts the UUID as the marker of a listing of
    migrations, which it does for deleted migrations too, so the UUID is that of a migration. This
    request is repeated over several connections, and all answers agree. Nothing shows a server or
    a migration of this UUID as active. Each server on the hosts where it has an allocation has one
    there too, itself or through a migration under way, or was never moved: none of them needs this
    one. None of its providers is a former one of a host that Nova lists. Nova lists a migration of
    each server that is being moved.

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
    differing = [answer for answer in subject.markers if answer.status != 200]
    if differing:
        return undecided(
            "Nova identified the UUID as a migration's, and then answered "
            f"{differing[0].status} to the same request: its API workers disagree.",
            *view.server_answers,
            *differing,
        )
    evidence = (
        *view.migration_listings,
        *view.server_answers,
        *_list_host_answers(view),
        view.index.snapshot.unlisted_moves,
    )
    need = _explain_possible_need(view)
    if need:
        return undecided(
            "Nova identifies the UUID as a migration's but no longer lists that migration, and "
            f"{need}.",
            *evidence,
        )
    return orphaned(
        "Nova identifies the UUID as a migration's but no longer lists that migration: it was "
        "deleted together with its server.",
        *evidence,
    )


def _list_host_answers(view: ConsumerView) -> list[Answer[t.Any]]:
    """Return the answers about the hosts on which a consumer has an allocation."""
    answers: list[Answer[t.Any]] = []
    for root in sorted(filter(None, view.trees)):
        host = view.index.snapshot.host_allocations.get(root)
        if host is not None:
            answers.extend((host.tree, host.servers, *host.actions.values()))
    return answers


def _explain_possible_need(view: ConsumerView) -> str | None:
    """Return why a live server may need the allocation of a migration without a record, or None.

    Nova deletes the row of a migration only together with its server (nova/db/main/api.py,
    instance_destroy), but an operator can delete it alone, or hide it. An interrupted move can have
    left the allocation that its server needs with that migration (nova/compute/manager.py,
    _reset_live_migration and _revert_allocation): the server then has none on its host. A server
    that was never moved has had no migration. A server that is being moved needs the allocation of
    its migration on the host that it comes from, where it is no longer listed.
    """
    unlisted_moves = view.index.snapshot.unlisted_moves.value
    if unlisted_moves is None:
        return "the servers that are being moved could not be read"
    if unlisted_moves:
        return (
            f"it lists no migration of server {unlisted_moves[0]}, which is being moved and may "
            "need this one. Confirm or revert its resize first, or reset its state if it is stuck"
        )
    for root in sorted(filter(None, view.trees)):
        node = view.index.nodes.get(root)
        if node is None:
            # A host that is gone has no server. But an API worker can leave out a host that runs.
            name = view.index.get_name(root)
            service = view.index.find_possible_service(name)
            if service:
                return f"a server on {name} may need it: {service}"
            if view.index.has_host_named(name):
                return (
                    f"a server on {name} may need it: the provider is a former one of that host, "
                    "whose compute node has another UUID now"
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
            return f"the allocations or the servers on {node.name} could not be read"
        if not _is_listed_as_read(view, root, host.tree.value):
            return (
                f"the listing of the allocations on {node.name} shows other ones of it: they are "
                "changing right now, or a cache has an old answer"
            )
        lacking = host.list_servers_without(root, node.servers, view.index.get_listed_migrations)
        for server in lacking:
            actions = host.actions.get(server, NOT_ASKED).value
            if actions is None or any(action.action in MOVING_ACTIONS for action in actions):
                return (
                    f"server {server} on {node.name} has no allocation there and may have been "
                    "moved, so it may need this one: its record may have been deleted by hand. "
                    "Heal that server first (unreverted_allocation, missing_allocation or "
                    "misplaced_allocation)"
                )
    for subject in view.index.snapshot.evidence.values():
        live = subject.server.value
        if live is not None and live.host and not view.index.list_nodes_at(live.host):
            return (
                f"server {live.uuid} is on {live.host}, which Nova does not list and which may "
                "have been renamed: it may need this one"
            )
    return None


def _is_listed_as_read(view: ConsumerView, root: str, tree: t.Mapping[str, Allocations]) -> bool:
    """Return whether the listing of the tree `root` has what the consumer itself shows there.

    A listing from before the move does not show that the server has lost its allocation.
    """
    present = view.allocation.resources
    return tree.get(view.consumer) == {uuid: present[uuid] for uuid in view.trees[root]}


def is_deleted(subject: Evidence) -> bool:
    """Return whether Nova reports the server as deleted, in its listing or by its actions."""
    return find_deleted_server(subject) is not None or is_marked_deleted(subject)


def is_marked_deleted(subject: Evidence) -> bool:
    """Return whether the row of the server is marked as deleted, but not listed as deleted.

    A repair of the database that sets `deleted` to 1, where Nova sets it to the row's own id,
    leaves such a row. `GET /servers/{id}` selects rows with `deleted = 0`, the listing of deleted
    servers selects `deleted = id` (nova/db/main/api.py, instance_get_all_by_filters_sort), and the
    actions of a server are returned for any value (nova/api/openstack/compute/instance_actions.py,
    _get_instance). All three use the instance mapping to reach the same cell, so without a mapping
    there are no actions either.
    """
    return is_unlisted(subject) and bool(subject.actions.value)


def is_unlisted(subject: Evidence) -> bool:
    """Return whether Nova has no server of this UUID, live or deleted.

    The listings of migrations at its hosts must have been read as well.
    """
    # An answer that could not be read is None, which is not the same as an empty listing.
    has_no_server = subject.server.status == 404 and subject.deleted_listing.value == ()
    return has_no_server and subject.migrations.value is not None and bool(subject.host_migrations)


def find_deleted_server(subject: Evidence) -> Server | None:
    """Return the server that Nova lists as deleted, if a direct lookup of it is a 404."""
    if subject.server.status != 404 or subject.migrations.value is None:
        return None
    rows = subject.deleted_listing.value or ()
    listed = next((server for server in rows if server.uuid == subject.uuid), None)
    # The listing of deleted servers also has soft-deleted ones, which can be restored.
    if listed is None or listed.status == "SOFT_DELETED":
        return None
    # The brief listing has no status, so it counts only together with a recorded delete action.
    if not listed.status and find_deletion(subject.actions) is None:
        return None
    return listed


def describe_deletion(subject: Evidence) -> str:
    """Return a sentence that says who or what deleted a server that Nova reports as deleted."""
    deleted, deletion = find_deleted_server(subject), find_deletion(subject.actions)
    if deleted is None:
        request = "Nova recorded no delete action"
        if deletion:
            request = f"user {deletion.user} requested its deletion at {deletion.start_time}"
        return (
            f"Server {subject.uuid} was marked as deleted in the database by hand, in a way that "
            f"Nova itself does not use; {request}."
        )
    if deletion:
        return f"User {deletion.user} deleted server {deleted.uuid} at {deletion.start_time}."
    changed_at = deleted.terminated_at or deleted.updated
    return (
        f"Server {deleted.uuid} is deleted and was last changed at {changed_at}; "
        "Nova recorded no delete action."
    )


def _explain_marker_conflict(subject: Evidence) -> str | None:
    """Return that Nova also knows the UUID of a server with actions as a migration's, if so."""
    # For a server in the listing of deleted servers the marker is not needed as proof.
    if find_deleted_server(subject) or subject.marker.status != 200:
        return None
    return "also identifies its UUID as a migration's"
