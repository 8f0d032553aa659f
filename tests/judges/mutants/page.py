"""The section of docs/judges.md about mutants, from the figures of the last run."""

from __future__ import annotations

import json
import pathlib
import typing as t

from ....tools.markup import escape, format_table

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
    head = (
        f"{results['tool']}, seed {results['seed']}: {results['killed']} of {results['mutants']} "
        f"mutants killed ({share:.1%}).\n\n"
    )
    rows = []
    for room, counts in sorted(results["rooms"].items()):
        cells = [counts[name] for name in _COLUMNS]
        rows.append([f"`{room}`", sum(counts.values()), *cells])
    table = format_table(["room", "mutants", *_COLUMNS.values()], rows)
    return f"{head}{table}\n{_list_survivors(results['survivors'])}"


def _list_survivors(survivors: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    if not survivors:
        return "None survived.\n"
    rows = []
    for entry in survivors:
        where = entry["file"].removeprefix("plugins/module_utils/")
        before, after = f"`{escape(entry['before'])}`", f"`{escape(entry['after'])}`"
        rows.append([f"`{where}`: {before}", after, entry["reason"]])
    return format_table(["survivor", "changed to", "reason"], rows)
