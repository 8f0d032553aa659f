# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A server is on the host that it was evacuated from, and nova-compute there destroys it at its
next start.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..._common.errors import Reason
from ..facts.index import SnapshotIndex, list_migrations_in_scope
from ..models.finding import Finding, report
from ..models.kind import CONDITION, REPORT, define_kind
from ..models.nova import Migration, Server
from ..models.snapshot import EVACUATED
from ..options.policy import Policy

KIND = define_kind(__name__, __doc__, CONDITION, REPORT, needs=(EVACUATED,))


def check(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the servers on the source of their own evacuation that Nova has not completed.

    Proof: A direct lookup, after the listing of migrations, shows the server on the host or node
    that one of its evacuations names as its source. That evacuation is `done`, or it is `accepted`
    or `pre-migrating` and the server has no task. At its next start, nova-compute there destroys
    the server and takes its allocation: a host that was decommissioned and deployed again does not
    complete the evacuations from it at its first start.

    Needs: The cell of the server, which lists the migration.

    Change: None. Move the server to another host before anybody restarts nova-compute. Then restart
    it until Nova lists each evacuation from there as completed, then move the server back. If the
    host or its compute node has another name than in the evacuation, no start completes it: the
    server must stay away, or somebody sets the status in the table migrations to completed.
    """
    listing = index.snapshot.migrations
    lookups = index.snapshot.surroundings.evacuated
    for migration in list_migrations_in_scope(index):
        lookup = lookups.get(migration.server)
        if lookup is None or lookup.value is None or not migration.is_unfinished_evacuation:
            continue
        server = lookup.value
        is_over = migration.ended or (server.task_known and server.task_state is None)
        if not is_over or not migration.has_source((server.host, server.node)):
            continue
        reason = Reason(
            "on_source_of_evacuation",
            f"Server {server.uuid} is on {server.host}, and its evacuation from there "
            f"({migration.uuid}) is still {migration.status}: at its next start, nova-compute on "
            f"{server.host} destroys the server and removes its allocation. Do not restart it. "
            f"Move the server to another host first. {_advise_on_return(migration, server)}",
        )
        yield report(
            KIND, migration.uuid, reason, listing, lookup, server=server, migration=migration
        )


def _advise_on_return(evacuation: Migration, server: Server) -> str:
    if evacuation.is_completed_at(server.host, [server.node]):
        return (
            "Move it back only when Nova lists each of its evacuations from there as completed: a "
            "restart of nova-compute completes one of each server."
        )
    return (
        "Do not move it back: no start of nova-compute there completes the evacuation, which names "
        f"the source {evacuation.source_compute} with compute node {evacuation.source_node}, "
        "unless its status is set to completed in the table migrations of the cell's database."
    )
