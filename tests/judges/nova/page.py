"""The section of docs/judges.md about Nova's own tests, from the figures of the last runs."""

from __future__ import annotations

import json
import pathlib
import typing as t

from .results import PLANTED, count_made, sum_figures

RESULTS = pathlib.Path(__file__).parent.parent / "results"

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
    lines = [
        f"| | {' | '.join(map(_name, runs))} |",
        f"|---|{'---|' * len(runs)}",
        _format_row("date", [run["about"]["date"] for run in runs]),
        _format_row("Placement", [run["about"]["placement"] for run in runs]),
        _format_row("Python", [run["about"]["python"] for run in runs]),
        _format_row("minutes", [run["about"]["minutes"] for run in runs]),
    ]
    for title, key in _ROWS:
        lines.append(_format_row(title, [figures[key] for figures in sums]))
    lines.append(_format_row("changes made", [count_made(figures["removals"]) for figures in sums]))
    lines.append(_format_row("missed", [sum(figures["missed"].values()) for figures in sums]))
    for cause in sorted({cause for figures in sums for cause in figures["missed"]}):
        counts = [figures["missed"].get(cause, 0) for figures in sums]
        lines.append(_format_row(f"missed: {cause}", counts))
    return "\n".join(lines) + "\n"


def _format_row(title: str, values: t.Iterable[t.Any]) -> str:
    cells = []
    for value in values:
        cells.append(f"{value:_}".replace("_", " ") if isinstance(value, int) else value)
    return f"| {title} | {' | '.join(cells)} |"


def _format_planted(runs: list[t.Any]) -> str:
    lines = ["| planted fault | run | test | violations found |", "|---|---|---|---|"]
    for run in runs:
        for fault, row in run[PLANTED].items():
            count = len(row.get("violations", ()))
            lines.append(f"| `{fault}` | {_name(run)} | `{row['test']}` | {count} |")
    return "\n".join(lines) + "\n"


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
