# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The current time.

The pure rooms do not import this: two runs of a rule on the same snapshot give the same verdict.
"""

from __future__ import annotations

import datetime
import time
import typing as t
from collections.abc import Callable

from .times import UTC, format_time

_Read = t.TypeVar("_Read")

# How long a service may still show what was there before a write, and the pause between two looks.
_LAG, _PAUSE = 5.0, 0.5


def read_monotonic_clock() -> float:
    """Return the seconds of a clock that is never set; only the difference of two calls matters."""
    # CLOCK_MONOTONIC stops while the machine sleeps.
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


def get_utc_now() -> str:
    """Return the current time in UTC and to the second, as both APIs write it."""
    return format_time(datetime.datetime.now(UTC))


def read_back(
    read: Callable[[], _Read], is_as_written: Callable[[_Read], bool], is_accepted: bool = True
) -> _Read:
    """Return what `read` returns after a write, once it is as written or a few seconds later.

    The workers of one API can read from different nodes of its database. With Galera, the others
    show a write a moment later than the one that took it (`wsrep_sync_wait`).

    is_accepted: whether the service accepted the write. Otherwise one look is enough.
    """
    until = read_monotonic_clock() + _LAG
    found = read()
    while is_accepted and not is_as_written(found) and read_monotonic_clock() < until:
        time.sleep(_PAUSE)
        found = read()
    return found
