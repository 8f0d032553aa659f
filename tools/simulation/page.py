"""Writes the table of the simulated cloud into the page about large clouds."""

from __future__ import annotations

import typing as t

from markup import format_table, renew_sections

from simulation.results import CELL_DOWN, CHANGED, FULL, INCREMENTAL, REMEDIATION, SHARD, SHARDS

if t.TYPE_CHECKING:
    from pathlib import Path

    from simulation.results import Result, Results

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
    text = renew_sections(path, {"simulation": lambda: render(results)})
    path.write_text(text, encoding="utf-8")


def render(results: Results) -> str:
    """Return the table as Markdown."""
    rows = []
    for name, title in _NAMES.items():
        if name in results.runs:
            text = title.format(shards=results.shards, cells=results.cells)
            rows.append(_format_run(text, results.runs[name]))
    columns = ["run", "minutes", "requests", "memory of the largest process", "what it wrote"]
    return format_table(columns, rows)


def _format_run(title: str, result: Result) -> list[str]:
    requests = f"{sum(result.requests.values()):,}".replace(",", " ")
    sizes = [f"`{name}` {size:.1f} MiB" for name, size in result.files.items() if size >= 1]
    written = ", ".join(sizes) or "less than 1 MiB"
    return [title, f"{result.seconds / 60:.1f}", requests, f"{result.memory} MiB", written]
