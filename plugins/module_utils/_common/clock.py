# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The current time.

The pure rooms do not import this: two runs of a rule on the same snapshot give the same verdict.
"""

from __future__ import annotations

import datetime
import time

from .times import UTC, format_time


def read_monotonic_clock() -> float:
    """Return the seconds of a clock that is never set; only the difference of two calls matters."""
    # CLOCK_MONOTONIC stops while the machine sleeps.
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


def get_utc_now() -> str:
    """Return the current time in UTC and to the second, as both APIs write it."""
    return format_time(datetime.datetime.now(UTC))
