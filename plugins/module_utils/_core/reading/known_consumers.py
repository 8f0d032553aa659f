# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the consumers that the scope names exist at all, or are most likely misspelt. Pure."""

from __future__ import annotations

from collections.abc import Collection

from ..._common.errors import InvalidInput
from ..._common.text import summarize_names
from ..models.snapshot import Evidence, Snapshot


def check_named_consumers(snapshot: Snapshot, seen_before: Collection[str]) -> None:
    """Raise InvalidInput for a named consumer that neither Placement nor Nova knows.

    seen_before: the consumers that an earlier run reported, which it may have removed.
    """
    unknown = []
    for uuid in snapshot.scope.consumers:
        evidence = snapshot.evidence.get(uuid)
        if evidence is not None and uuid not in seen_before and _is_unknown(evidence, snapshot):
            unknown.append(uuid)
    if unknown:
        raise InvalidInput(
            f"consumers: neither Placement nor Nova knows {summarize_names(unknown)}. "
            "Give the UUIDs of servers, migrations or other consumers of this cloud."
        )


def _is_unknown(evidence: Evidence, snapshot: Snapshot) -> bool:
    """Return whether every answer about a uuid says that there is nothing of it.

    An answer that says nothing, such as that of a cell that is down, does not count.
    """
    allocation = evidence.allocation.value
    if allocation is None or allocation.resources:
        return False
    if evidence.uuid in snapshot.allocations:
        return False
    if evidence.server.status != 404 or evidence.marker.status != 400:
        return False
    if evidence.migrations.value != () or evidence.deleted_listing.value != ():
        return False
    has_rows = any(answer.value != () for answer in evidence.rows)
    return not has_rows and not evidence.actions.value
