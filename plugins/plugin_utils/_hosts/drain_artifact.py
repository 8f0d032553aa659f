# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a drain hands to the jobs that follow it, as `set_stats` takes it."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

ARTIFACT = "host_decommission_drained"


def build_drain_artifact(
    result: Mapping[str, t.Any], host: str, check_mode: bool
) -> dict[str, t.Any]:
    """Return the artifact of the drain of one host.

    Numbers, UUIDs, paths and the name of the host: no text that somebody in the cloud chose. It is
    a list, because a job over several hosts adds an entry for each.

    result: as host_drain returned it; a drain that was refused has nothing but a message.
    """
    tally = result.get("tally") or {}
    entry: dict[str, t.Any] = {
        "host": str(host),
        "check_mode": bool(check_mode),
        "empty": bool(result.get("empty")),
        "remaining": [str(uuid) for uuid in result.get("remaining") or ()],
        "outcomes": {str(name): int(count) for name, count in tally.items()},
        "journal": str(result.get("journal") or ""),
    }
    return {ARTIFACT: [entry]}
