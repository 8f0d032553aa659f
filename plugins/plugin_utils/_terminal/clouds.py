# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The summary of several clouds, regions or shards, as lines for a terminal."""

from __future__ import annotations

import typing as t

from ...module_utils._common.text import format_count, make_printable
from ...module_utils._core.findings.coverage import describe_unjudged_hosts
from .._report.phrases import MAX_NAME, count_made
from .lines import (
    CHANGED,
    ERROR,
    OK,
    WARNING,
    Column,
    Row,
    format_field,
    format_table,
    paint,
    wrap_path,
    wrap_text,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from ...module_utils._core.models.codec import Json

_VERDICTS = ("orphaned", "drifted", "protected", "undecided")
_COLUMNS = (
    Column("", least=8),
    *(Column(heading, is_number=True) for heading in (*_VERDICTS, "changed")),
)


def format_summary(summary: Json, path: str, width: int) -> list[str]:
    """Return a row for each run, with what went wrong in it, and a row with their sums."""
    runs = summary["runs"]
    rows = [_make_row(run["name"], run, _choose_tone(run)) for run in runs]
    rows.append(_make_row("all", summary["totals"], None))
    head, *drawn, totals = format_table(_COLUMNS, rows, width)
    title = f"Orphaned allocations of {format_count(len(runs), 'run', 'runs')}"
    lines = ["", *wrap_text(title, width), "", head]
    for line, run in zip(drawn, runs, strict=True):
        lines += [line, *_format_remarks(run, width)]
    lines.append(totals)
    for missing in summary["missing_shards"]:
        endpoint = make_printable(missing["placement_endpoint"])
        noun, verb = ("Shard", "is") if len(missing["shards"]) == 1 else ("Shards", "are")
        shards = f"{noun} {', '.join(missing['shards'])} of {endpoint}"
        lines += paint(wrap_text(f"{shards} {verb} not among these runs.", width), WARNING)
    return [*lines, *wrap_path(f"Summary: {make_printable(path)}", width)]


def _make_row(name: str, sums: Json, tone: str | None) -> Row:
    counts = [str(sums["verdicts"].get(verdict, "-")) for verdict in _VERDICTS]
    # No remediation ran without a tally.
    changed = str(count_made(sums["tally"])) if sums["tally"] else "-"
    return Row((make_printable(name, MAX_NAME), *counts, changed), tone)


def _choose_tone(run: Json) -> str:
    if run["error"]:
        return ERROR
    if not run["complete"]:
        return WARNING
    if run["verdicts"].get("orphaned") or run["verdicts"].get("drifted"):
        return CHANGED
    return OK


def _format_remarks(run: Json, width: int) -> list[str]:
    """Return what a run failed with, or else why its reading is not complete."""
    if run["error"]:
        error = " ".join(run["error"].split())
        return paint(format_field("error", error, width), ERROR)
    lines: list[str] = []
    for text in (*run["failed_checks"], describe_unjudged_hosts(run)):
        lines += paint(format_field("why", text, width), WARNING)
    if run["check_mode"]:
        lines += format_field("note", "check mode: nothing was changed", width)
    return lines
