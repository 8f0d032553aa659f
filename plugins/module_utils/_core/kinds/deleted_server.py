# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova deleted the server, but its allocation remains."""

from __future__ import annotations

from ..._common.errors import Reason
from ..facts.consumer import ConsumerView
from ..facts.deletion import describe_deletion, find_deleted_server, is_deleted
from ..models.finding import Decision, orphaned, undecided
from ..models.kind import ORPHAN, REMEDIATE, define_kind
from ..models.snapshot import ACTIONS, DELETED, HOST_MIGRATIONS, Evidence
from ..options.policy import Policy

KIND = define_kind(__name__, __doc__, ORPHAN, REMEDIATE, needs=(DELETED, ACTIONS, HOST_MIGRATIONS))


def prove(view: ConsumerView, policy: Policy) -> Decision | None:
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
    if doubt := view.contradiction or _explain_marker_conflict(subject):
        return undecided(
            doubt.reword(f"Nova reports server {subject.uuid} as deleted, but {doubt}."),
            *view.server_answers,
        )
    return orphaned(
        Reason("server_deleted", f"{describe_deletion(subject)} Its allocation remains."),
        *view.server_answers,
        server=find_deleted_server(subject),
    )


def _explain_marker_conflict(subject: Evidence) -> Reason | None:
    """Return that Nova also knows the UUID of a server with actions as a migration's, if so."""
    # For a server in the listing of deleted servers the marker is not needed as proof.
    if find_deleted_server(subject) or subject.marker.status != 200:
        return None
    return Reason("also_a_migration", "also identifies its UUID as a migration's")
