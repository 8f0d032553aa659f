# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the servers that Nova should have deleted."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ..._common.parallel import map_parallel
from ..clients.nova import NovaReader
from ..facts.index import SnapshotIndex
from ..models.nova import API_ACTIONS, DELETING_ACTIONS, RESET_ACTION
from ..models.snapshot import Answer, Deletions, Scope
from ..models.surroundings import DeletedServer, Deletion

STUCK_DELETION = "stuck_deletion"

# A server leaves these states within seconds, so the listings are empty as a rule.
_STATES = (("task_state", "deleting"), ("task_state", "soft-deleting"), ("vm_state", "deleted"))
# A server whose deletion has failed. The actions of each server in this state have to be read.
_FAILED_STATE = ("status", "ERROR")
# Each of them costs three requests.
_MAX_LOOKUPS = 100
# These leave the server as the action before them has left it.
_FOLLOWERS = API_ACTIONS | {RESET_ACTION}


def read_deletions(nova: NovaReader, index: SnapshotIndex) -> Deletions:
    """Return the servers in scope that Nova should have deleted, each looked up by itself.

    Servers in ERROR are among them only where the scope names the kind or is narrow.
    Raises CloudError when Nova does not list them.
    """
    scope = index.snapshot.scope
    states = list(_STATES)
    if STUCK_DELETION in scope.kinds or scope.is_narrow:
        states.append(_FAILED_STATE)
    listings = tuple(nova.list_servers_in_state(*state) for state in states)
    found: dict[str, DeletedServer] = {}
    for listing, state in zip(listings, states, strict=True):
        for row in listing.value or ():
            # Nova ignores the filter where its policy does not allow these credentials to use it.
            if state in _list_states(row) and _is_in_scope(row, scope, index):
                found[row.server.uuid] = row
    # The longest first: if there are too many, the others have hardly begun.
    uuids = sorted(found, key=lambda uuid: found[uuid].server.updated or "")
    chosen = uuids[:_MAX_LOOKUPS]
    lookups = map_parallel(nova.get_deleted_server, chosen, nova.workers)
    actions = map_parallel(lambda uuid: _read_deletion(nova, uuid), chosen, nova.workers)
    return Deletions(
        listings=listings,
        lookups=dict(zip(chosen, lookups, strict=True)),
        actions=dict(zip(chosen, actions, strict=True)),
        left_out=len(uuids) - len(chosen),
    )


def _list_states(row: DeletedServer) -> tuple[tuple[str, str | None], ...]:
    """Return the states of a server, each with the name of its filter."""
    server = row.server
    return (
        ("task_state", server.task_state),
        ("vm_state", row.vm_state),
        ("status", server.status),
    )


def _is_in_scope(row: DeletedServer, scope: Scope, index: SnapshotIndex) -> bool:
    server = row.server
    if scope.projects and server.project not in scope.projects:
        return False
    if not index.is_in_shard(server.uuid):
        return False
    if not scope.is_narrow or server.uuid in scope.consumers:
        return True
    nodes = index.list_nodes_at(server.host or "")
    return any(index.is_named(node) for node in nodes)


def _read_deletion(nova: NovaReader, server: str) -> Answer[Deletion]:
    """Return the newest delete action of a server; its `value` is None if it cannot be read."""
    listing = nova.list_instance_actions(server)
    if listing.value is None:
        return t.cast("Answer[Deletion]", listing)
    lasting = [action for action in listing.value if action.action not in _FOLLOWERS]
    for number, action in enumerate(lasting):
        if action.action in DELETING_ACTIONS:
            answer = nova.get_instance_action(server, action.request_id)
            value = None
            if answer.value is not None:
                value = Deletion(answer.value, number == 0)
            return d.replace(t.cast("Answer[Deletion]", answer), value=value)
    return d.replace(t.cast("Answer[Deletion]", listing), value=Deletion(None, False))
