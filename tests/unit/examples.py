# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many random examples a test tries."""

from __future__ import annotations

import os

FEWEST = 50
_FEW = 5


def count_examples(number: int) -> int:
    """Return the number, or a quarter of it in `make test`, which sets EXAMPLES=some.

    EXAMPLES=few is for the oldest Python, on which the examples of the newest one are not repeated.
    """
    examples = os.environ.get("EXAMPLES")
    if examples == "few":
        return min(_FEW, number)
    if examples == "some":
        return max(FEWEST, number // 4)
    return number
