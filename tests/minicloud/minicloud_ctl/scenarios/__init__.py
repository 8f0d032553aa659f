# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Real situations, each made by a function in a registry.

The modules by theme register themselves when they are imported.
"""

from __future__ import annotations

from minicloud_ctl.scenarios import (
    deleted,
    drift,
    evacuations,
    failed_moves,
    foreign,
    live,
    moves,
    nodes,
    others,
)
from minicloud_ctl.scenarios.registry import REGISTRY

__all__ = [
    "REGISTRY",
    "deleted",
    "drift",
    "evacuations",
    "failed_moves",
    "foreign",
    "live",
    "moves",
    "nodes",
    "others",
]
