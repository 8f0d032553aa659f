# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of files that contain the time at which the files were made.

This runs on hypervisors, with any Python from 3.9 on.
"""

from __future__ import annotations

import calendar
import os
import time
import typing as t

from ..._common.errors import HostError

TIMESTAMP_PATTERN = r"\d{8}T\d{6}Z"
_FORMAT = "%Y%m%dT%H%M%SZ"
_MAX_TRIES = 60


def find_free_name(before: str, after: str, folder: int, earliest: int = 0) -> str:
    """Return a name that is not used in the open `folder`: `before`, the time and `after`.

    earliest: a time that another machine knows to have come, in seconds since the epoch.

    When the name with the current second is used, that with the next second is returned.

    Raises HostError when the names of a whole minute are used.
    """
    start = max(int(time.time()), earliest)
    for moment in range(start, start + _MAX_TRIES):
        name = f"{before}.{time.strftime(_FORMAT, time.gmtime(moment))}{after}"
        try:
            os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return name
    raise HostError(f"{_MAX_TRIES} names such as {name} already exist: find out what creates them.")


def parse_timestamp(stamp: str) -> int | None:
    """Return the time that `stamp` stands for, in seconds since the epoch.

    None when there is no such time, such as that of a 13th month.
    """
    try:
        return calendar.timegm(time.strptime(stamp, _FORMAT))
    except ValueError:
        return None


def calculate_age(seconds: float) -> int:
    """Return the seconds that have passed since a time; 0 for a time in the future.

    seconds: the time, in seconds since the epoch.
    """
    return max(0, int(time.time() - seconds))


def describe_os_error(error: OSError) -> str:
    """Return the system's words for an error, for the middle of a sentence."""
    # An OSError that Python itself raises may have no words.
    return t.cast("str", error.strerror) or type(error).__name__
