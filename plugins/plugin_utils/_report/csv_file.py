# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings as CSV (RFC 4180), one row each. No spreadsheet takes a cell of it for a formula.

The rows are in the order of the terminal, and each names its cloud: files can be put together.
"""

from __future__ import annotations

import csv
import io
import typing as t

from ...module_utils._common.text import make_printable
from ...module_utils._core.models.codec import Json
from .phrases import COMMON_CLASSES, format_others
from .view import Item, Report, list_items

_HEADER = (
    "cloud,region,verdict,kind,new,first_seen,subject,server,server_name,server_status,hosts,"
    "project,user,age_seconds,frees_vcpu,frees_pcpu,frees_memory_mb,frees_disk_gb,frees_others,"
    "change,selected,waiting,outcome,reason_id,reason"
)
COLUMNS = tuple(_HEADER.split(","))

_YES_OR_NO = {True: "yes", False: "no"}

# What begins a formula, in East Asian spreadsheets its wide form as well.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def render(report: Report) -> str:
    """Return a header and a row for each finding, each undecided and each protected entry."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    cloud = report.findings["cloud"]
    for item in list_items(report):
        row = _build_row(item, cloud)
        writer.writerow([_escape_cell(row.get(column)) for column in COLUMNS])
    return text.getvalue()


def _build_row(item: Item, cloud: Json) -> dict[str, t.Any]:
    entry, frees = item.entry, item.frees
    server, change = entry["server"], entry["change"]
    return {
        # Some columns are fields of the entry itself.
        **entry,
        "cloud": cloud["placement_endpoint"],
        "region": cloud["region"],
        "new": _YES_OR_NO[entry["new"]],
        "subject": item.subject,
        "server": server["uuid"] if server else None,
        "server_name": item.server,
        "server_status": server["status"] if server else None,
        "hosts": ", ".join(item.hosts),
        **{f"frees_{cls.lower()}": frees.get(cls, 0) for cls in COMMON_CLASSES},
        # Which other classes there are differs from cloud to cloud.
        "frees_others": format_others(frees, COMMON_CLASSES),
        "change": change["action"] if change else None,
        # Only findings can be selected.
        "selected": _YES_OR_NO[entry["selected"]] if "selected" in entry else None,
        "outcome": item.outcome,
    }


def _escape_cell(value: str | int | None) -> str:
    """Return a cell as text that no spreadsheet calculates: an apostrophe precedes a formula."""
    text = "" if value is None else str(value)
    shown = make_printable(text)
    return f"'{shown}" if text.lstrip(" ").startswith(_FORMULA_STARTS) else shown
