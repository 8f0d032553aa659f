"""What `make matrix` keeps of its runs, and the page that it writes about them."""

import dataclasses as d
from pathlib import Path

import pytest

from .....tools.matrix import page, results
from .....tools.matrix.results import Cell, Results, read_junit

TODAY = "2026-11-21"
REPORT = """\
<testsuites><testsuite>
<testcase classname="tests.integration.test_a" name="test_good"/>
<testcase classname="tests.integration.test_a" name="test_bad"><failure message="no"/></testcase>
<testcase classname="tests.integration.test_a" name="test_broken">\
<error message="no fixture"/></testcase>
<testcase classname="tests.integration.test_b" name="test_left_out">\
<skipped message="too old"/></testcase>
</testsuite></testsuites>
"""


@d.dataclass(frozen=True)
class Controller:
    ansible_core: str
    python: str = "3.11"
    sdk: str = "1.0.0"

    exactly = ""

    def __str__(self) -> str:
        return f"ansible-core {self.ansible_core}"


@pytest.fixture(autouse=True)
def _kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "KEPT", tmp_path / "results.json")


def test_report_is_counted_by_outcome(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").write_text(REPORT)

    cell = read_junit(tmp_path / "junit.xml", TODAY, 7)

    assert cell == Cell(
        TODAY,
        1,
        ["test_a::test_bad", "test_a::test_broken"],
        {"test_b::test_left_out": "too old"},
        7,
    )
    assert not cell.good and str(cell) == "1 passed, 1 skipped, **2 failed**"


def test_partial_run_keeps_the_other_results() -> None:
    whole = Results.load()
    for version in ("2.18", "2.21"):
        whole.add(Controller(version), "train", Cell("2026-01-01", 5))
    whole.save()

    part = Results.load()
    part.add(Controller("2.21"), "train", Cell(TODAY, 6))
    part.save()

    kept = Results.load().cells
    assert (kept["ansible-core 2.18"]["train"], kept["ansible-core 2.21"]["train"]) == (
        Cell("2026-01-01", 5),
        Cell(TODAY, 6),
    )


def test_removed_combinations_are_dropped() -> None:
    kept = Results()
    kept.add(Controller("2.17"), "train", Cell(TODAY, 5))
    kept.add(Controller("2.18"), "train", Cell(TODAY, 5))
    kept.add(Controller("2.18"), "stein", Cell(TODAY, 5))

    kept.keep_only({"ansible-core 2.18"}, {"train"})

    assert kept.cells == {"ansible-core 2.18": {"train": Cell(TODAY, 5)}}


def test_page_shows_failed_skipped_and_missing_runs() -> None:
    kept = Results()
    kept.add(
        Controller("2.18"),
        "train",
        Cell(TODAY, 5, ["test_a::test_bad"], {"test_b::test_old": "it is too old"}),
    )
    kept.add(Controller("2.18"), "2024.2", Cell(TODAY, not_run="no Python 3.11 was found"))

    text = page.render(kept)

    assert (
        "| 2.18 | 3.11 | 1.0.0 | not run yet | not run | not run yet | 5 passed, 1 skipped, "
        "**1 failed** | 2026-11-21 |"
    ) in text
    assert "- ansible-core 2.18, OpenStack train: `test_a::test_bad`" in text
    assert "| Train (2019) | it is too old | `test_b::test_old` |" in text
    assert "- ansible-core 2.18, on OpenStack 2024.2: no Python 3.11 was found." in text
