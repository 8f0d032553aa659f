"""What a run of the judge came to: figures for the page, and everything that is wrong."""

from __future__ import annotations

import collections
import typing as t

from ....plugins.module_utils._core.models.change import OUTCOME_BY_ACTION

PLANTED = "planted"
WITH = "with the collection only"

Result = t.Mapping[str, t.Any]


def summarize(
    tests: t.Iterable[Result],
    planted: t.Mapping[str, Result],
    left_out: t.Mapping[str, str],
    excused: t.Mapping[str, str],
) -> dict[str, t.Any]:
    """Return the figures of each test, and what is known of those that do not pass.

    planted: the results with a fault in the collection, by its name.
    left_out: why tests fail without the collection. excused: why others fail only with it.
    """
    rows = [_summarize_test(result) for result in tests]
    failing = {row["test"] for row in rows if row["outcome"] == f"failed {WITH}"}
    return {
        "tests": rows,
        "planted": {fault: _summarize_test(result) for fault, result in planted.items()},
        "left_out": dict(left_out),
        "excused": {name: excused[name] for name in sorted(failing & excused.keys())},
    }


def _summarize_test(result: Result) -> dict[str, t.Any]:
    row = {"test": result["test"], "mode": result["mode"], "outcome": "passed"}
    alone = result.get("alone", {}).get("outcome")
    if alone == "passed":
        row["outcome"] = f"{result['with']['outcome']} {WITH}"
    elif "with" in result and alone:
        row["outcome"] = f"{alone} without the collection too"
    elif alone:
        row["outcome"] = alone
    if "with" not in result:
        return row
    run = result["with"]
    for name in ("steps", "unseen_steps", "passes", "requests", "checked", "removals"):
        row[name] = run[name]
    row["violations"] = [_describe(violation) for violation in run["violations"]]
    row["conflicts"] = len(run["conflicts"])
    row["missed"] = dict(collections.Counter(f"{e['said']}: {e['why']}" for e in run["missed"]))
    row["errors"], row["faults"] = len(run["errors"]), len(run["faults"])
    return row


def _describe(violation: Result) -> str:
    return (
        f"{violation['label']}, ages {violation['ages']}: {violation['kind']} "
        f"{violation['stage']}: {'; '.join(violation['wrong'])}"
    )


def sum_figures(summary: Result) -> dict[str, t.Any]:
    """Return the figures of all tests together."""
    rows = [row for row in summary["tests"] if "passes" in row]
    sums: dict[str, t.Any] = {
        "tests": len(rows),
        "unrun": len(summary["tests"]) - len(rows),
        "deep": sum(row["mode"] == "deep" for row in rows),
        "aged": sum(row["mode"] == "aged" for row in rows),
        "conflicts": sum(row["conflicts"] for row in rows if row["mode"] != "aged"),
        "conflicts_aged": sum(row["conflicts"] for row in rows if row["mode"] == "aged"),
        "violations": sum(len(row["violations"]) for row in rows),
        "removals": _add(row["removals"] for row in rows),
        "missed": _add(row["missed"] for row in rows),
    }
    for name in ("steps", "unseen_steps", "passes", "requests", "checked", "errors"):
        sums[name] = sum(row[name] for row in rows)
    return sums


def _add(counts: t.Iterable[t.Mapping[str, int]]) -> dict[str, int]:
    added: collections.Counter[str] = collections.Counter()
    for count in counts:
        added.update(count)
    return dict(added.most_common())


def count_made(removals: t.Mapping[str, int]) -> int:
    """Return how many changes were made; the names are `KIND OUTCOME`."""
    made = OUTCOME_BY_ACTION.values()
    return sum(count for name, count in removals.items() if name.split()[1] in made)


def count_tests(summary: Result) -> str:
    """Return the figures as a line."""
    sums = sum_figures(summary)
    made = count_made(sums["removals"])
    return (
        f"{sums['tests']} tests, {sums['deep']} deep and {sums['aged']} aged; "
        f"{sums['steps']} steps, {sums['passes']} passes, {made} changes; "
        f"{sums['checked']} needed allocations checked; {sums['violations']} violations; "
        f"{sum(sums['missed'].values())} missed."
    )


def find_problems(summary: Result) -> list[str]:
    """Return a line for everything that must not be."""
    problems = []
    for row in summary["tests"]:
        name = row["test"]
        for violation in row.get("violations", ()):
            problems.append(f"{name}: VIOLATION: {violation}")
        if row["mode"] == "aged" and row.get("conflicts"):
            problems.append(f"{name}: Nova got a conflict at the default ages")
        if row.get("faults"):
            problems.append(f"{name}: {row['faults']} passes ended with an error of Python")
        if row["outcome"] != "passed" and name not in summary["excused"]:
            problems.append(f"{name}: {row['outcome']}")
        # Of all tests, some have no server.
        if row["outcome"] == "passed" and not row["passes"] and not summary["about"]["all"]:
            problems.append(f"{name}: no pass ran")
    for fault, row in summary[PLANTED].items():
        if not row.get("violations"):
            problems.append(f"the planted fault {fault} was not found in {row['test']}")
    return problems
