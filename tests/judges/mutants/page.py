"""The section of docs/judges.md about mutants, from the figures of the last run."""

from __future__ import annotations

import json
import pathlib
import typing as t

RESULTS = pathlib.Path(__file__).parent.parent / "results" / "mutants.json"

# What a mutant can come to, as the columns of the table.
_COLUMNS = {
    "mirrored": "by the tests of its module",
    "room": "by those of its room",
    "other rooms": "by those of other rooms",
    "time-out": "by a time-out",
    "survived": "survived",
}


def format_mutants(path: pathlib.Path = RESULTS) -> str:
    """Return the section as Markdown."""
    if not path.exists():
        return "`make mutants` has not run yet.\n"
    results = json.loads(path.read_bytes())
    share = results["killed"] / results["mutants"]
    lines = [
        f"{results['tool']}, seed {results['seed']}: {results['killed']} of {results['mutants']} "
        f"mutants killed ({share:.1%}).",
        "",
        f"| room | mutants | {' | '.join(_COLUMNS.values())} |",
        f"|---|---|{'---|' * len(_COLUMNS)}",
    ]
    for room, counts in sorted(results["rooms"].items()):
        cells = [str(sum(counts.values())), *(str(counts[name]) for name in _COLUMNS)]
        lines.append(f"| `{room}` | {' | '.join(cells)} |")
    lines += ["", *_list_survivors(results["survivors"])]
    return "\n".join(lines) + "\n"


def _list_survivors(survivors: t.Sequence[t.Mapping[str, t.Any]]) -> list[str]:
    if not survivors:
        return ["None survived."]
    lines = ["| survivor | changed to | reason |", "|---|---|---|"]
    for entry in survivors:
        where = f"`{entry['file'].removeprefix('plugins/module_utils/')}`"
        before, after = _quote(entry["before"]), _quote(entry["after"])
        lines.append(f"| {where}: {before} | {after} | {entry['reason']} |")
    return lines


def _quote(code: str) -> str:
    """Return code for a cell of a table, in which a bar would end the cell."""
    escaped = code.replace("|", "\\|")
    return f"`{escaped}`"
