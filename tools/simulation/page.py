"""Writes the table of the simulated cloud into the page about large clouds."""

from __future__ import annotations

import typing as t

from simulation.results import (
    CELL_DOWN,
    CHANGED,
    FULL,
    INCREMENTAL,
    REMEDIATION,
    SHARD,
    SHARDS,
)

if t.TYPE_CHECKING:
    from pathlib import Path

    from simulation.results import Result, Results

_BEGIN = "<!-- simulation: begin -->\n"
_END = "<!-- simulation: end -->\n"

_NAMES = {
    FULL: "detection of everything",
    INCREMENTAL: "incremental detection, nothing changed",
    CHANGED: "incremental detection, one server of 1 000 changed",
    REMEDIATION: "detection, and removal of all orphans",
    SHARD: "one of {shards} shards alone",
    SHARDS: "all {shards} shards, four at a time on one machine",
    CELL_DOWN: "detection of everything while one of the {cells} cells is down",
}


def write(path: Path, results: Results) -> None:
    """Replace the table in the page."""
    before, _begin, rest = path.read_text(encoding="utf-8").partition(_BEGIN)
    _table, _end, after = rest.partition(_END)
    path.write_text(f"{before}{_BEGIN}\n{render(results)}\n{_END}{after}", encoding="utf-8")


def render(results: Results) -> str:
    """Return the table as Markdown."""
    lines = [
        "| run | minutes | requests | memory of the largest process | what it wrote |",
        "|---|---|---|---|---|",
    ]
    for name, title in _NAMES.items():
        if name in results.runs:
            text = title.format(shards=results.shards, cells=results.cells)
            lines.append(_render_row(text, results.runs[name]))
    return "\n".join(lines) + "\n"


def _render_row(title: str, result: Result) -> str:
    requests = f"{sum(result.requests.values()):,}".replace(",", " ")
    sizes = [f"`{name}` {size:.1f} MiB" for name, size in result.files.items() if size >= 1]
    written = ", ".join(sizes) or "less than 1 MiB"
    return f"| {title} | {result.seconds / 60:.1f} | {requests} | {result.memory} MiB | {written} |"
