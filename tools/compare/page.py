"""Writes the tables of a comparison into its page. Pure but for the file."""

from __future__ import annotations

import collections
import typing as t

from markup import format_table, renew_sections

from compare.results import AUDIT, CLEANUP, DETECT, HEAL, NAMES, NRPE, SCRIPT, SERVERS

if t.TYPE_CHECKING:
    from pathlib import Path

    from compare.results import Results, Row

# Less of the machine for other processes does not change the seconds noticeably.
_MUCH = 0.05

_NAMES = {
    AUDIT: "`nova-manage placement audit --verbose`",
    HEAL: "`nova-manage placement heal_allocations --dry-run`",
    NRPE: "Canonical's check for Nagios",
    NAMES: "Canonical's check for Nagios, reimplemented",
    SCRIPT: "a script: `orphan_allocations.py`",
    SERVERS: "a script: `orphan_allocations.py`, reimplemented",
    DETECT: "this collection, `detect_orphans`",
    CLEANUP: "this collection, `cleanup_orphans --check`",
}


def write(path: Path, results: Results) -> None:
    """Replace the tables in the page."""
    text = renew_sections(path, {"compare": lambda: render(results)})
    path.write_text(text, encoding="utf-8")


def render(results: Results) -> str:
    """Return the tables as Markdown."""
    orphans = results.cloud[0].found + results.cloud[0].missed
    foreign = max(row.foreign for row in (*results.cloud, *results.dead_cell))
    busy = ""
    if foreign > _MUCH:
        busy = (
            f" Other processes used up to {foreign:.0%} of the machine meanwhile, so the seconds "
            "are too many and say little about small differences."
        )
    named = "The needed allocations that a tool named as orphaned, by the situation of their server"
    lines = [
        f"Measured on {results.date}: {orphans} orphaned allocations, {results.needed} needed ones "
        f"and {results.cloud[0].drifts} live servers with wrong allocations; medians of "
        f"{results.rounds} runs.{busy}",
        "",
        _format_rows(results.cloud),
        "The same cloud while a cell with one live server does not answer, one run each:",
        "",
        _format_rows(results.dead_cell),
        f"{named}:",
        "",
    ]
    for row, dead in zip(results.cloud, results.dead_cell, strict=True):
        if row.wrong:
            wrong, more = collections.Counter(row.wrong), collections.Counter(dead.wrong)
            also = f"; with the dead cell also {_count(more - wrong)}" if more - wrong else ""
            lines.append(f"* {_NAMES[row.tool]}: {_count(wrong)}{also}")
    return "\n".join(lines) + "\n"


def _format_rows(rows: tuple[Row, ...]) -> str:
    columns = ["tool", "found", "missed", "wrong", "wrong allocations of live servers found"]
    return format_table([*columns, "seconds", "requests"], map(_list_cells, rows))


def _list_cells(row: Row) -> list[object]:
    cells = [
        *((row.found, row.missed) if row.tool != HEAL else ("–", "–")),
        f"**{len(row.wrong)}**" if row.wrong else "0",
        f"{len(row.drifted)} of {row.drifts}",
    ]
    if row.failure:
        cells = ["fails", "–", "–", "–"]
    return [_NAMES[row.tool], *cells, f"{row.seconds:.1f}", row.requests]


def _count(counts: collections.Counter[str]) -> str:
    return ", ".join(
        f"`{name}`" if count == 1 else f"`{name}` ({count})" for name, count in counts.items()
    )
