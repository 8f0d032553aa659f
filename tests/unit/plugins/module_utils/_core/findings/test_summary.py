"""Several runs summarized as one: totals, failures, and missing shards."""

import typing as t

from .......plugins.module_utils._core.findings.summary import (
    RunResult,
    list_failures,
    summarize_runs,
)
from .......plugins.module_utils._core.models.snapshot import Scope, Shard
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import build_findings
from ...world import World, answer

ERROR = "It cannot be reached."
TALLY = {"removed": 2, "reduced": 0, "rewritten": 0, "created": 0, "skipped": 1, "failed": 0}


def _findings(orphans: int, shard: Shard | None = None, **changes: t.Any) -> dict[str, t.Any]:
    world = World()
    here = world.host("compute-1")
    world.server(here, here)
    for _number in range(orphans):
        world.delete(world.server(here, here))
    return build_findings(world.snapshot(scope=Scope(shard=shard), **changes), Policy(min_age=0))


def _remediation() -> dict[str, t.Any]:
    return {"check_mode": False, "tally": TALLY, "journal": "/journal"}


def test_totals_are_the_sums_of_the_runs() -> None:
    runs = [
        RunResult(name, findings=_findings(orphans), remediation=_remediation())
        for name, orphans in (("north", 2), ("south", 3))
    ]
    totals = summarize_runs([*runs, RunResult("east", error=ERROR)])["totals"]

    assert totals["verdicts"] == {"drifted": 0, "orphaned": 5, "protected": 0, "undecided": 0}
    assert totals["kinds"] == {"deleted_server": 5}
    assert totals["stranded"] == {"DISK_GB": 5, "MEMORY_MB": 5 * 512, "VCPU": 5}
    assert totals["tally"]["removed"] == 4
    assert totals["coverage"]["consumers"] == 7


def test_failed_run_is_named_and_makes_the_summary_incomplete() -> None:
    summary = summarize_runs(
        [
            RunResult("north", findings=_findings(0)),
            RunResult("south", region="RegionTwo", error=ERROR),
        ]
    )

    assert not summary["complete"]
    assert list_failures(summary) == [f"south: {ERROR}"]
    assert (summary["runs"][1]["region"], summary["runs"][1]["verdicts"]) == ("RegionTwo", {})


def test_unsound_reading_makes_the_summary_incomplete() -> None:
    summary = summarize_runs(
        [RunResult("north", findings=_findings(1, services=answer("GET /os-services", 500)))]
    )

    assert not summary["complete"] and list_failures(summary) == []
    assert summary["runs"][0]["failed_checks"]


def test_sound_runs_are_complete_and_zero_runs_are_not() -> None:
    assert summarize_runs([RunResult("north", findings=_findings(1))])["complete"]
    assert not summarize_runs([])["complete"]


def _read_shards(*numbers: int) -> list[RunResult]:
    return [RunResult(f"{number}", findings=_findings(0, Shard(number, 4))) for number in numbers]


def test_missing_shards_are_named() -> None:
    (missing,) = summarize_runs(_read_shards(1, 3))["missing_shards"]

    assert missing["shards"] == ["2/4", "4/4"]
    assert summarize_runs(_read_shards(1, 2, 3, 4))["missing_shards"] == []


def test_failed_shard_is_not_missing() -> None:
    failed = RunResult("part-2", shard="2/2", error="No.")
    summary = summarize_runs([RunResult("part-1", findings=_findings(0, Shard(1, 2))), failed])

    assert [known["shards"] for known in summary["missing_shards"]] == [["2/2"]]


def test_findings_without_a_shard_have_none_even_if_one_was_requested() -> None:
    (row,) = summarize_runs([RunResult("north", shard="north", findings=_findings(0))])["runs"]
    assert row["shard"] is None
