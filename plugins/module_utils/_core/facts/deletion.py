# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What shows that Nova has deleted a server. Pure."""

from __future__ import annotations

from ..models.nova import Server
from ..models.snapshot import Evidence
from .consumer import ConsumerView
from .server import find_deletion


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


def is_unknown_to_nova(view: ConsumerView) -> bool:
    """Return whether Nova, asked in every way, has no record of a server or migration like it."""
    subject = view.subject
    return (
        view.migration is None
        and is_unlisted(subject)
        and subject.actions.status == 404
        # 400 is Nova's answer to a marker that is not a migration's, and every worker must give it.
        and all(answer.status == 400 for answer in (subject.marker, *subject.markers))
        and not view.contradiction
        # A migration that names it as its server shows that Nova had that server.
        and not view.server_migrations
    )
