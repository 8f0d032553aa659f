# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A migration that is under way but has not changed for very long."""

from __future__ import annotations

from collections.abc import Iterator

from ..._common.errors import Reason
from ..._common.times import format_duration, seconds_between
from ..facts.index import SnapshotIndex, list_migrations_in_scope
from ..models.finding import Finding, report
from ..models.kind import CONDITION, REPORT, define_kind
from ..options.policy import Policy

KIND = define_kind(__name__, __doc__, CONDITION, REPORT)


def check(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the migrations that are under way but have not changed for very long.

    Proof: The migration has not ended, is not `finished`, and has not changed for at least
    `orphan_cleanup_stuck_min_age`.

    Needs: The cell of the server, which lists the migration.

    Change: None. Check whether the migration still runs; if not, abort it or reset the server's
    state.
    """
    listing = index.snapshot.migrations
    for migration in list_migrations_in_scope(index):
        # A `finished` migration waits for the user, and is of the kind unconfirmed_resize.
        if migration.ended or migration.status == "finished":
            continue
        age = seconds_between(migration.changed_at, listing.at)
        if age is None or age < policy.stuck_min_age:
            continue
        reason = Reason(
            "migration_unchanged_for_long",
            f"Migration {migration.uuid} ({migration.type}) of server {migration.server} from "
            f"{migration.source_compute} to {migration.dest_compute} is {migration.status} and "
            f"has not changed for {format_duration(age)}. Check whether it still runs; if not, "
            "abort it or reset the server's state.",
        )
        yield report(KIND, migration.uuid, reason, listing, migration=migration)
