"""Writes the tables of a comparison into its page. Pure but for the file."""

from __future__ import annotations

import collections
import typing as t

from compare.results import AUDIT, CLEANUP, DETECT, HEAL, NAMES, NRPE, SCRIPT, SERVERS

if t.TYPE_CHECKING:
    from pathlib import Path

    from compare.results import Results, Row

_BEGIN = "<!-- compare: begin -->\n"
_END = "<!-- compare: end -->\n"

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
    before, _begin, rest = path.read_text(encoding="utf-8").partition(_BEGIN)
    _tables, _end, after = rest.partition(_END)
    path.write_text(f"{before}{_BEGIN}\n{render(results)}\n{_END}{after}", encoding="utf-8")


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
    lines = [
        f"Measured on {results.date}: {orphans} orphaned allocations, {results.needed} needed ones "
        f"and {results.cloud[0].drifts} live servers with wrong allocations; medians of "
        f"{results.rounds} runs.{busy}",
        "",
        *_render_rows(results.cloud),
        "",
        "The same cloud while a cell with one live server does not answer, one run each:",
        "",
        *_render_rows(results.dead_cell),
        "",
        "The needed allocations that a tool named as orphaned, by the situation of their server:",
        "",
    ]
    for row, dead in zip(results.cloud, results.dead_cell, strict=True):
        if row.wrong:
            wrong, more = collections.Counter(row.wrong), collections.Counter(dead.wrong)
            also = f"; with the dead cell also {_count(more - wrong)}" if more - wrong else ""
            lines.append(f"* {_NAMES[row.tool]}: {_count(wrong)}{also}")
    return "\n".join(lines) + "\n"


def _render_rows(rows: tuple[Row, ...]) -> list[str]:
    lines = [
        "| tool | found | missed | wrong | wrong allocations of live servers found | seconds | "
        "requests |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        searches_orphans = row.tool != HEAL
        cells = [
            _NAMES[row.tool],
            str(row.found) if searches_orphans else "–",
            str(row.missed) if searches_orphans else "–",
            f"**{len(row.wrong)}**" if row.wrong else "0",
            f"{len(row.drifted)} of {row.drifts}",
            f"{row.seconds:.1f}",
            str(row.requests),
        ]
        if row.failure:
            cells[1:5] = ["fails", "–", "–", "–"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _count(counts: collections.Counter[str]) -> str:
    return ", ".join(
        f"`{name}`" if count == 1 else f"`{name}` ({count})" for name, count in counts.items()
    )
