"""The summary of several clouds on a terminal."""

import typing as t

import pytest

from ......plugins.plugin_utils._terminal.clouds import format_summary
from ......plugins.plugin_utils._terminal.lines import CHANGED, ERROR, OK, WARNING, measure_width

TALLY = {"removed": 2, "reduced": 1, "skipped": 1, "failed": 4}
NONE = {"orphaned": 0, "drifted": 0, "protected": 0, "undecided": 0}


def _run(name: str = "north", **parts: t.Any) -> dict[str, t.Any]:
    return {
        "name": name,
        "error": "",
        "complete": True,
        "failed_checks": [],
        "partial": False,
        "unjudged_hosts": [],
        "verdicts": NONE,
        "tally": {},
        "check_mode": None,
        **parts,
    }


def _summary(*runs: dict[str, t.Any], **parts: t.Any) -> dict[str, t.Any]:
    totals = {"verdicts": {**NONE, "orphaned": 2}, "tally": TALLY}
    return {"complete": True, "runs": list(runs), "totals": totals, "missing_shards": [], **parts}


def _draw(*runs: dict[str, t.Any], width: int = 100, **parts: t.Any) -> list[str]:
    return format_summary(_summary(*runs, **parts), "/out/summary.json", width)


def test_there_is_a_row_for_each_run_and_one_for_all() -> None:
    lines = _draw(
        _run(verdicts={**NONE, "orphaned": 2}, tally=TALLY),
        _run("the south", verdicts={}, complete=False, error="It\ncannot\x1b[31m"),
    )

    assert [line.split() for line in lines if line] == [
        ["Orphaned", "allocations", "of", "2", "runs"],
        ["orphaned", "drifted", "protected", "undecided", "changed"],
        ["north", "2", "0", "0", "0", "3"],
        ["the", "south", "-", "-", "-", "-", "-"],
        ["error", "It", "cannot\\x1b[31m"],
        ["all", "2", "0", "0", "0", "3"],
        ["Summary:", "/out/summary.json"],
    ]
    rows = [line for line in lines if line.startswith(("north", "the south", "all"))]
    assert len({len(row) for row in rows}) == 1


@pytest.mark.parametrize(
    ("parts", "tone"),
    [
        ({}, OK),
        ({"verdicts": {**NONE, "protected": 1}}, OK),
        ({"verdicts": {**NONE, "orphaned": 1}}, CHANGED),
        ({"verdicts": {**NONE, "drifted": 1}}, CHANGED),
        ({"complete": False, "verdicts": {**NONE, "orphaned": 1}}, WARNING),
        ({"error": "No.", "complete": False, "verdicts": {}}, ERROR),
        ({"error": "No.", "verdicts": {**NONE, "orphaned": 1}}, ERROR),
    ],
)
def test_the_tone_of_a_row_is_its_worst(parts: dict[str, t.Any], tone: str) -> None:
    (row,) = (line for line in _draw(_run(**parts)) if line.startswith("north"))

    assert getattr(row, "tone", None) == tone


@pytest.mark.parametrize(
    ("parts", "remark"),
    [
        ({"failed_checks": ["Wrong region."]}, "why Wrong region."),
        ({"unjudged_hosts": ["a"]}, "why 1 host was not judged"),
        ({"partial": True}, "why Part of the cloud was not judged"),
        ({"check_mode": True}, "note check mode: nothing was changed"),
        ({"error": "It broke."}, "error It broke."),
    ],
)
def test_what_is_to_be_known_of_a_run_is_below_its_row(
    parts: dict[str, t.Any], remark: str
) -> None:
    lines = _draw(_run(**parts))
    (row,) = (number for number, line in enumerate(lines) if line.startswith("north"))

    assert " ".join(lines[row + 1].split()).startswith(remark)


def test_a_run_that_failed_has_no_other_remark() -> None:
    run = _run(error="It broke.", failed_checks=["Wrong region."], check_mode=True)

    assert not any("Wrong region" in line or "check mode" in line for line in _draw(run))


def test_a_run_with_nothing_to_say_has_no_remark() -> None:
    lines = _draw(_run(check_mode=False))

    assert [line.split()[0] for line in lines if line][2:4] == ["north", "all"]


@pytest.mark.parametrize(
    ("shards", "sentence"),
    [
        (["2/4"], "Shard 2/4 of http://placement is not among these runs."),
        (["2/4", "4/4"], "Shards 2/4, 4/4 of http://placement are not among these runs."),
    ],
)
def test_missing_shards_are_named(shards: list[str], sentence: str) -> None:
    missing = [{"placement_endpoint": "http://placement", "shards": shards}]

    assert sentence in _draw(_run(), missing_shards=missing)


def test_a_narrow_terminal_gets_shorter_names() -> None:
    run = _run("a-region-with-a-very-long-name-indeed", failed_checks=["It is wrong. " * 30])
    for width in range(79, 200):
        assert max(map(len, _draw(run, width=width))) <= width


@pytest.mark.parametrize("name", ["北京", "north"])
def test_counts_stand_below_the_end_of_their_headings(name: str) -> None:
    """A wide character takes two columns, and a count can be longer than its heading."""
    head, first, second = _draw(_run(name, verdicts={**NONE, "orphaned": 10**10}), _run())[3:6]

    assert first.startswith(f"{name}  ")
    for row, count in ((first, str(10**10)), (second, "0")):
        before, _count, _after = row.partition(count)
        assert measure_width(before + count) == head.index("orphaned") + len("orphaned")
