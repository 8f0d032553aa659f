"""What a run came to, and what of it must not be."""

import json
import pathlib
import typing as t

import pytest
import yaml

from ....judges.nova import page
from ....judges.nova.results import count_made, find_problems, sum_figures, summarize

CHOICES = yaml.safe_load((pathlib.Path(page.__file__).parent / "tests.yml").read_text())
VIOLATION = {
    "label": "GET /servers",
    "ages": "0",
    "kind": "ended_migration",
    "stage": "written",
    "wrong": ["takes it"],
}


def make_result(
    outcome: str = "passed", mode: str = "deep", alone: str = "passed", **found: t.Any
) -> dict[str, t.Any]:
    counts = {"steps": 10, "unseen_steps": 0, "passes": 5, "requests": 50, "checked": 7}
    removals = {"deleted_server removed": 2, "extra_host skipped": 1}
    lists = {name: [] for name in ("violations", "conflicts", "missed", "errors", "faults")}
    run = {"outcome": outcome, **counts, "removals": removals, **lists}
    result = {"test": "test", "mode": mode, "with": {**run, **found}}
    if outcome != "passed":
        result["alone"] = {"outcome": alone}
    return result


def make_summary(
    result: t.Mapping[str, t.Any], excused: t.Mapping[str, str] | None = None, **planted: t.Any
) -> dict[str, t.Any]:
    summary = summarize([result], planted, {}, excused or {})
    versions = {"nova": "34.0.0", "placement": "16.0.0", "python": "3.11.9"}
    summary["about"] = {**versions, "date": "2026-11-26", "minutes": 20, "all": False}
    return summary


def test_good_run_has_no_problem() -> None:
    assert find_problems(make_summary(make_result())) == []


@pytest.mark.parametrize(
    "result",
    [
        make_result(violations=[VIOLATION]),
        make_result(mode="aged", conflicts=[{"consumer": "c"}]),
        make_result(faults=["Traceback"]),
        make_result("failed"),
        make_result(passes=0),
        make_result("failed", alone="failed"),
        {"test": "test", "mode": "steps", "alone": {"outcome": "ended its process"}},
    ],
    ids=["violation", "conflict", "error", "failure", "no pass", "failure alone", "end"],
)
def test_problem_is_named(result: dict[str, t.Any]) -> None:
    [problem] = find_problems(make_summary(result))

    assert problem.startswith("test: ")


def test_excused_test_may_fail_but_not_violate() -> None:
    excused = {"test": "it counts what was left"}

    assert find_problems(make_summary(make_result("failed"), excused)) == []
    assert find_problems(make_summary(make_result("failed", violations=[VIOLATION]), excused))


def test_conflict_at_age_0_is_counted_only() -> None:
    summary = make_summary(make_result(conflicts=[{"consumer": "c"}]))

    assert find_problems(summary) == []
    assert sum_figures(summary)["conflicts"] == 1


def test_planted_fault_must_be_found() -> None:
    found = make_result(violations=[VIOLATION])

    assert find_problems(make_summary(make_result(), fault=make_result()))
    assert find_problems(make_summary(make_result(), fault=found)) == []


def test_only_changes_that_were_made_count() -> None:
    assert count_made(make_result()["with"]["removals"]) == 2


def test_section_shows_figures_causes_and_names(tmp_path: pathlib.Path) -> None:
    missed = [{"said": "protected error_with_host", "why": "on another host"}]
    summary = make_summary(
        make_result("failed", missed=missed),
        {"test": "it counts what was left"},
        fault=make_result(violations=[VIOLATION]),
    )
    (tmp_path / "nova-34.0.0.json").write_text(json.dumps(summary))

    section = page.format_nova(tmp_path)

    assert "|  | Nova 34.0.0 |" in section
    assert "| missed: protected error_with_host: on another host | 1 |" in section
    assert "| `fault` | Nova 34.0.0 | `test` | 1 |" in section
    assert "* `test`: it counts what was left" in section


def test_selection_is_large_and_deep_enough() -> None:
    modes = list(CHOICES["selection"].values())

    assert set(modes) == {"aged", "deep", "steps"}
    assert len(modes) >= 100
    assert modes.count("deep") >= 40
