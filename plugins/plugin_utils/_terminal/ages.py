# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ages as people say them."""

from __future__ import annotations

# The units of an age, from the largest one, each with its seconds.
_AGE_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def describe_age(seconds: int | None) -> str:
    """Return an age as `45s`, `3m`, `5h` or `12d`; a dash where it is not known."""
    if seconds is None:
        return "-"
    for unit, size in _AGE_UNITS:
        # One day and a half is 36h, which says more than 1d.
        if seconds >= 2 * size or size == 1:
            return f"{seconds // size}{unit}"
    return "-"
