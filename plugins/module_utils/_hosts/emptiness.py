# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a host is empty: the one place that decides it. Pure.

A build has an allocation before it has a host, a soft-deleted server is in no listing of servers,
and a cell that is silent for one request has an empty one. So a host is empty only if none of the
consumers on its trees, of Nova's servers and migrations there, and of the outcomes of this run is
left, in a reading of which every cell has answered (`find_blockers`).
"""

from __future__ import annotations

from collections.abc import Iterable

from .._common.text import make_printable
from .blockers import Blocker
from .draining import GONE, MOVED, MoveOutcomeDocument

# The kinds of blockers that are, or may become, a guest; the other kinds block an empty host.
_OCCUPYING = frozenset(
    {"server", "migration", "resize", "claim", "hidden_allocation", "unsound_reading", "enabled"}
)

# How many occupants a message has in full.
_MAX_REASONS = 3


def list_occupants(
    blockers: Iterable[Blocker], outcomes: Iterable[MoveOutcomeDocument] = ()
) -> list[Blocker]:
    """Return what is on a host or may yet come to it; a host is empty if there is nothing.

    blockers: what blocks its decommissioning, from one sound reading.
    outcomes: what became of its servers in this run. One that was neither moved nor is gone is
        there, whatever the listings say.
    """
    occupants = [blocker for blocker in blockers if blocker.kind in _OCCUPYING]
    listed = {blocker.subject for blocker in occupants}
    for entry in outcomes:
        if entry["outcome"] not in (MOVED, GONE) and entry["uuid"] not in listed:
            reason = f"Server {entry['uuid']} was not moved, and no listing has it: run again."
            occupants.append(Blocker("server", entry["uuid"], entry["name"], reason))
    return occupants


def describe_others(occupants: Iterable[Blocker]) -> str:
    """Return sentences about the first occupants that are no servers; empty without any."""
    others = [make_printable(entry.reason) for entry in occupants if entry.kind != "server"]
    if len(others) > _MAX_REASONS:
        others[_MAX_REASONS:] = [f"And {len(others) - _MAX_REASONS} more."]
    return " ".join(others)
