# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Times and durations as users and the two APIs write them.

Modules that run on hypervisors need this file too: it runs with any Python from 3.9 on.
"""

from __future__ import annotations

import datetime
import email.utils
import re

from .errors import InvalidInput

# datetime.timezone.utc is of Python 3.11.
UTC = datetime.timezone.utc

_SECONDS_PER_UNIT = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
# Without leading zeros: YAML takes 010 for 8.
_DURATION = re.compile(r"\s*(0|[1-9][0-9]*)\s*([smhd]?)\s*")


def parse_duration(text: str | int, option: str = "") -> int:
    """Return the number of seconds that `text` stands for, such as 900 for `15m`.

    option: the name of the option that has the text.
    Raises InvalidInput when `text` is not a duration.
    """
    match = _DURATION.fullmatch(str(text))
    if match is None:
        name = f"{option}: " if option else ""
        raise InvalidInput(
            f"{name}{str(text)!r} is not a valid duration: "
            "write seconds or a number with s, m, h or d, such as 90s, 15m, 24h or 7d."
        )
    number, unit = match.groups()
    return int(number) * _SECONDS_PER_UNIT[unit]


def format_duration(total: int) -> str:
    """Return `total` seconds in its two largest units, such as `3d 4h`."""
    parts = []
    for unit in ("d", "h", "m", "s"):
        count, total = divmod(total, _SECONDS_PER_UNIT[unit])
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2]) or "0s"


def seconds_between(earlier: str | None, later: str | None) -> int | None:
    """Return the seconds from one time in UTC to another; None where either is unknown.

    The result is 0 if the later time is before the earlier one, because two clocks can differ.
    """
    start = _parse_time(earlier)
    end = _parse_time(later)
    if start is None or end is None:
        return None
    return max(0, int((end - start).total_seconds()))


def _parse_time(text: str | None) -> datetime.datetime | None:
    if not text:
        return None
    try:
        # Before Python 3.11, fromisoformat refuses a Z.
        moment = datetime.datetime.fromisoformat(text.removesuffix("Z"))
        return moment.replace(tzinfo=UTC)
    except ValueError:
        return None


def is_earlier(first: str | None, second: str | None) -> bool:
    """Return whether one time in UTC is known to be before another.

    The answer is False for equal times and when either is unknown.
    """
    start = _parse_time(first)
    end = _parse_time(second)
    return start is not None and end is not None and start < end


def shift_time(moment: str, seconds: int) -> str:
    """Return the time that is `seconds` after `moment` in UTC, to the second.

    Raises InvalidInput when `moment` is not a time.
    """
    start = _parse_time(moment)
    if start is None:
        raise InvalidInput(f"{moment!r} is not a time.")
    return format_time(start + datetime.timedelta(seconds=seconds))


def read_http_clock(header: str | None) -> float | None:
    """Return the time in a header such as `Date`, in seconds since the epoch; None without one."""
    parsed = email.utils.parsedate_tz(header) if header else None
    if parsed is None:
        return None
    try:
        seconds = float(email.utils.mktime_tz(parsed))
        format_timestamp(seconds)
    except (ValueError, OverflowError, OSError):
        return None
    return seconds


def format_timestamp(seconds_since_epoch: float) -> str:
    """Return a time, which is in seconds since the epoch, as `format_time` does."""
    return format_time(datetime.datetime.fromtimestamp(seconds_since_epoch, UTC))


def format_time(moment: datetime.datetime) -> str:
    """Return a moment in UTC as both APIs write it, to the second."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
