# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A resize that has waited very long to be confirmed or reverted."""

from __future__ import annotations

from collections.abc import Iterator

from ..._common.errors import Reason
from ..._common.times import format_duration, seconds_between
from ..facts.index import SnapshotIndex, list_migrations_in_scope
from ..models.finding import Finding, report
from ..models.kind import CONDITION, REPORT, define_kind
from ..models.nova import UNCONFIRMABLE_STATUSES
from ..options.policy import Policy

KIND = define_kind(__name__, __doc__, CONDITION, REPORT, was="parked_resize")


def check(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the resizes that have waited very long to be confirmed or reverted.

    Proof: The migration has had the status `finished` for at least
    `orphan_cleanup_unconfirmed_min_age`, and its server does not rest in another status
    (`stuck_server`).

    Needs: The cell of the server, which lists the migration.

    Change: None. Confirm or revert the resize.
    """
    listing = index.snapshot.migrations
    for migration in list_migrations_in_scope(index):
        # Nova calls a resize that waits for its confirmation `finished`.
        if migration.status != "finished":
            continue
        server = index.get_server_lookup(migration.server).value
        # Nova refuses both after a reset of the server's state: that is of the kind stuck_server.
        if server is not None and server.status in UNCONFIRMABLE_STATUSES:
            continue
        age = seconds_between(migration.changed_at, listing.at)
        if age is None or age < policy.unconfirmed_min_age:
            continue
        reason = Reason(
            "resize_unconfirmed_for_long",
            f"The resize of server {migration.server} from {migration.source_compute} to "
            f"{migration.dest_compute} finished {format_duration(age)} ago and is neither "
            "confirmed nor reverted. Confirm or revert it: until then its allocations on both "
            "hosts remain.",
        )
        yield report(KIND, migration.uuid, reason, listing, migration=migration)
