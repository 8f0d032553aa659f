"""What `make bench` keeps of its runs, its bars, and the page that it writes."""

from pathlib import Path

import pytest
from benchmark import bars, page, results
from benchmark import stages as s
from benchmark.results import Observation, Results, StageResult
from benchmark.scoring import Score
from benchmark.stages import list_stages

CLEANUP_BAR = "clean up in check mode / audit"
FAULTS = "orphaned allocations missed, wrongly reported or undecided, in all rounds and modes"


def _make_result(
    name: str, processes: int, runs: dict[str, list[float] | list[Observation]]
) -> StageResult:
    """Return the result of a stage; runs of which only the time matters are given by it."""
    result = StageResult(name, processes, "10 hosts", "2026-11-22", "2 cores", 4, 8)
    for command, values in runs.items():
        for value in values:
            result.add(command, value if isinstance(value, Observation) else Observation(value))
    return result


def _collect(*found: StageResult) -> Results:
    collected = Results()
    for result in found:
        collected.add(result)
    return collected


def _judge(found: Results, what: str, processes: int = 1) -> bars.Verdict:
    return next(
        verdict
        for verdict in bars.judge(found)
        if (verdict.what, verdict.processes) == (what, processes)
    )


def test_ratio_is_the_median_within_rounds() -> None:
    found = _collect(
        _make_result(s.MAIN, 1, {s.CLEANUP: [10.0, 30.0, 9.0], s.AUDIT: [10.0, 10.0, 10.0]})
    )

    verdict = _judge(found, CLEANUP_BAR)

    assert verdict.value == 1.0
    assert not verdict.missed


def test_limit_depends_on_the_number_of_processes() -> None:
    found = _collect(_make_result(s.MAIN, 2, {s.CLEANUP: [8.0], s.AUDIT: [10.0]}))

    assert _judge(found, CLEANUP_BAR, 2).missed
    assert _judge(found, CLEANUP_BAR, 1).value is None


def test_bar_that_was_not_measured_is_not_missed() -> None:
    assert not any(verdict.missed for verdict in bars.judge(Results()))


def test_sizes_are_compared_with_the_same_number_of_processes() -> None:
    found = _collect(
        _make_result(s.MAIN, 1, {s.CHANGED: [10.0]}),
        _make_result(s.TWICE, 1, {s.CHANGED: [14.0]}),
        _make_result(s.TWICE, 2, {s.CHANGED: [1.0]}),
    )
    what = "incremental detection, twice the hosts with the same changes / the hosts"

    assert _judge(found, what).value == pytest.approx(1.4)
    assert _judge(found, what, 2).value is None


def test_requests_count_at_any_size() -> None:
    found = _collect(
        _make_result(s.MAIN, 1, {s.UNCHANGED: [Observation(1, requests=20)]}),
        _make_result(s.TWICE, 1, {s.UNCHANGED: [Observation(1, requests=26)]}),
        # Its orphans are looked up again.
        _make_result(s.WORST, 1, {s.UNCHANGED: [Observation(1, requests=900)]}),
    )

    verdict = _judge(found, "requests of incremental detection, nothing changed, at any size")

    assert verdict.value == 26
    assert verdict.missed


def test_memory_is_that_of_the_stage_with_many_servers() -> None:
    found = _collect(
        _make_result(s.MEMORY, 2, {s.FULL: [Observation(1, peak_mib=280)]}),
        _make_result(s.MAIN, 2, {s.FULL: [Observation(1, peak_mib=999)]}),
    )

    verdict = _judge(found, "peak memory of a module with five times the servers", 2)

    assert (verdict.value, verdict.missed) == (280, False)


@pytest.mark.parametrize(
    ("score", "faults"),
    [
        (Score(8, 8, 0), 0),
        (Score(8, 7, 0), 1),
        (Score(8, 8, 2), 2),
        (Score(8, 8, 0, "one is undecided"), 1),
    ],
)
def test_one_fault_in_any_round_is_enough(score: Score, faults: int) -> None:
    good = Observation(1, score=Score(8, 8, 0))
    found = _collect(
        _make_result(s.MAIN, 1, {s.CHANGED: [good, Observation(1, score=score), good]})
    )

    verdict = _judge(found, FAULTS)

    assert (verdict.value, verdict.missed) == (faults, bool(faults))


def test_faults_of_the_audit_are_not_ours() -> None:
    wrong = Observation(1, score=Score(8, 0, 99))
    right = Observation(1, score=Score(8, 8, 0))
    found = _collect(_make_result(s.MAIN, 1, {s.AUDIT: [wrong], s.CLEANUP: [right]}))

    assert _judge(found, FAULTS).value == 0


def test_kept_results_are_read_as_they_were(tmp_path: Path) -> None:
    full = Observation(1.5, 0.5, 0.1, 20, 80, {"orphan_detect": 1.2}, Score(8, 8, 0))
    found = _collect(_make_result(s.MAIN, 1, {s.FULL: [full], s.AUDIT: [3.0]}))
    found.stages[s.MAIN][1].endpoints[s.FULL] = [("nova-api: GET /", 3)]
    found.save(tmp_path / "results.json")

    assert results.load(tmp_path / "results.json") == found


def test_partial_run_keeps_the_other_stages() -> None:
    found = _collect(
        _make_result(s.MAIN, 1, {s.FULL: [1.0]}), _make_result(s.WORST, 1, {s.FULL: [1.0]})
    )

    found.replace(_collect(_make_result(s.WORST, 1, {s.FULL: [2.0]})))

    assert found.stages[s.MAIN][1].find_median(s.FULL) == 1
    assert found.stages[s.WORST][1].find_median(s.FULL) == 2


def test_page_states_each_bar_with_its_fraction_of_the_limit() -> None:
    text = page.render(_collect(_make_result(s.MAIN, 1, {s.CLEANUP: [15.0], s.AUDIT: [10.0]})))

    assert f"| {CLEANUP_BAR} | 1 | 1.5x | 1x | **1.50, missed** |" in text
    assert f"| {CLEANUP_BAR} | 2 | not measured | 0.75x | - |" in text


def test_page_shows_the_worst_case_beside_the_best() -> None:
    few, many = Score(40, 40, 0), Score(400, 400, 0)
    runs = [Observation(10, score=few), Observation(12, score=few)]
    best = _make_result(s.MAIN, 2, {s.CLEANUP: runs})
    worst = _make_result(s.WORST, 1, {s.CLEANUP: [Observation(70, score=many)]})

    text = page.render(_collect(best, worst))

    assert (
        "| clean up, check mode | 10.0 s (40 orphans, API processes: 2) "
        "| 70.0 s (400 orphans, API processes: 1) |"
    ) in text


def test_page_has_a_row_for_each_command_and_number_of_processes() -> None:
    score = Score(8, 8, 0)
    run = Observation(20, 3, 0, 100, 80, {"orphan_detect": 7, "orphan_plan": 1}, score)
    text = page.render(
        _collect(
            _make_result(s.MAIN, 1, {s.CLEANUP: [run], s.AUDIT: [10.0]}),
            _make_result(s.MAIN, 2, {s.CLEANUP: [run], s.AUDIT: [20.0]}),
        )
    )

    row = (
        "| clean up, check mode | {} | 20.00 s | 20.00 | {} | 8.0 s | 3.0 s | 100 | 80 MiB "
        "| 8 of 8 | 0 |"
    )
    assert row.format(1, "2.00") in text
    assert row.format(2, "1.00") in text


def test_page_extrapolates_what_is_done_by_hand() -> None:
    text = page.render(
        _collect(
            _make_result(s.REMEDIATION, 2, {s.BY_HAND: [0.5, 0.5, 0.5], s.REPLAY: [2.0, 2.0, 2.0]})
        )
    )

    assert "| by hand | 2 | 4 s | 0.50 each | 2.00 |" in text


def test_page_warns_of_a_busy_machine() -> None:
    text = page.render(_collect(_make_result(s.MAIN, 1, {s.FULL: [Observation(1, foreign=0.4)]})))

    assert "Other processes used up to 40% of the machine" in text


def test_every_stage_has_a_title_and_every_command_an_explanation() -> None:
    stages = list_stages(1000, 20, 3)

    assert [stage.name for stage in stages] == list(s.ALL)
    for stage in stages:
        assert page.TITLES[stage.name]
        for step in stage.steps:
            assert step == "change" or page.COMMANDS[step]


def test_changes_are_as_many_at_twice_the_hosts() -> None:
    stages = {stage.name: stage for stage in list_stages(1000, 20, 3)}

    assert (stages[s.MAIN].changed, stages[s.MAIN].orphans) == (200, 40)
    assert (stages[s.TWICE].changed, stages[s.TWICE].orphans) == (200, 40)
    assert stages[s.MEMORY].scale.total == 100_000
