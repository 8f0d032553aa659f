"""The section of docs/judges.md about Nova's own tests, from the figures of the last runs."""

from __future__ import annotations

import json
import pathlib
import typing as t

from ....tools.markup import format_table
from .results import PLANTED, count_made, sum_figures

RESULTS = pathlib.Path(__file__).parent.parent / "results"

_ABOUT = ("date", "Placement", "Python", "minutes")
_ROWS = (
    ("tests", "tests"),
    ("chosen tests that did not run", "unrun"),
    ("tests in the mode `deep`", "deep"),
    ("tests in the mode `aged`", "aged"),
    ("steps", "steps"),
    ("steps without a look, because a pass ran", "unseen_steps"),
    ("passes", "passes"),
    ("requests of the passes", "requests"),
    ("passes that ended with an error of the cloud", "errors"),
    ("needed allocations checked", "checked"),
    ("**violations**", "violations"),
    ("**conflicts of Nova** at the default ages", "conflicts_aged"),
    ("conflicts of Nova at ages 0", "conflicts"),
)


def format_nova(results: pathlib.Path = RESULTS) -> str:
    """Return the section as Markdown."""
    runs = [json.loads(path.read_bytes()) for path in sorted(results.glob("nova-*.json"))]
    # The newest Nova first, and the selection before all.
    runs.sort(key=lambda run: (-_get_major(run), run["about"]["all"]))
    if not runs:
        return "`make test-nova` has not run yet.\n"
    parts = [_format_figures(runs), _format_planted(runs), *map(_format_names, runs)]
    return "\n".join(filter(None, parts))


def _get_major(run: t.Mapping[str, t.Any]) -> int:
    return int(run["about"]["nova"].partition(".")[0])


def _name(run: t.Mapping[str, t.Any]) -> str:
    about = run["about"]
    return f"Nova {about['nova']}{', all' if about['all'] else ''}"


def _format_figures(runs: list[t.Any]) -> str:
    sums = [sum_figures(run) for run in runs]
    rows = [
        *([name, *(run["about"][name.lower()] for run in runs)] for name in _ABOUT),
        *([title, *(figures[key] for figures in sums)] for title, key in _ROWS),
        ["changes made", *(count_made(figures["removals"]) for figures in sums)],
        ["missed", *(sum(figures["missed"].values()) for figures in sums)],
    ]
    for cause in sorted({cause for figures in sums for cause in figures["missed"]}):
        counts = [figures["missed"].get(cause, 0) for figures in sums]
        rows.append([f"missed: {cause}", *counts])
    return format_table(["", *map(_name, runs)], [map(_format_value, row) for row in rows])


def _format_value(value: t.Any) -> str:
    return f"{value:_}".replace("_", " ") if isinstance(value, int) else value


def _format_planted(runs: list[t.Any]) -> str:
    rows = []
    for run in runs:
        for fault, row in run[PLANTED].items():
            count = len(row.get("violations", ()))
            rows.append([f"`{fault}`", _name(run), f"`{row['test']}`", count])
    return format_table(["planted fault", "run", "test", "violations found"], rows)


def _format_names(run: t.Mapping[str, t.Any]) -> str:
    lines = []
    for title, reasons in (
        ("left out, because it fails without the collection too", run["left_out"]),
        ("fails only with the collection", run["excused"]),
    ):
        if reasons:
            lines += [f"{_name(run)}: {title}:", ""]
            lines += [f"* `{name}`: {reason}" for name, reason in sorted(reasons.items())]
            lines.append("")
    return "\n".join(lines)
