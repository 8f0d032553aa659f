# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What tests say about reasons: their IDs, and not their words."""

from __future__ import annotations

import typing as t
from collections.abc import Callable


def has_id(identity: str) -> Callable[[t.Any], bool]:
    """Return the `check` of `pytest.raises` for an error that has the reason with this ID."""
    return lambda error: error.reason.id == identity
