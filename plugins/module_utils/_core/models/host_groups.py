# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Groups of hosts in words. Pure."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence

from ..._common.text import make_printable, summarize_names


def describe_groups(groups: Mapping[str, t.Any]) -> str:
    """Return the groups for people, such as `aggregate rack-7 within availability zone az1`.

    Empty if none is named.
    groups: a HostGroups as a dictionary.
    """
    parts = [
        _describe("aggregate", "aggregates", groups["aggregate_names"] or groups["aggregates"]),
        _describe("availability zone", "availability zones", groups["availability_zones"]),
        _describe("cell", "cells", groups["cells"]),
    ]
    return " within ".join(part for part in parts if part)


def _describe(one: str, many: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    shown = summarize_names(make_printable(name, 100) for name in names)
    if len(names) == 1:
        return f"{one} {shown}"
    return f"{many} {shown}"
