"""The end of a remediation and of a restoration: outcomes, tally, file and errors."""

import dataclasses as d
import json
import pathlib
import types
import typing as t

import pytest

from .......plugins.module_utils._common.errors import (
    NO_REASON,
    CloudError,
    JournalError,
    Reason,
    UnsoundReading,
)
from .......plugins.module_utils._common.progress import Stage
from .......plugins.module_utils._core.changes.outcomes import conclude_run, run_steps
from .......plugins.module_utils._core.findings.entries import MAX_RETURNED
from .......plugins.module_utils._core.plan.limits import explain_abort

NAMES = ("made", "skipped", "failed")


@d.dataclass(frozen=True)
class Done:
    """An outcome of a step that is only a name."""

    step: str
    outcome: str
    reason: Reason = NO_REASON
    partly: bool = False

    @property
    def changed(self) -> bool:
        return self.outcome == "made"

    @property
    def failed(self) -> bool:
        return self.outcome == "failed"

    def as_dict(self) -> t.Any:
        return {"step": self.step, "outcome": self.outcome, "reason": self.reason}


def journal(written: bool = True, broken: bool = False) -> t.Any:
    return types.SimpleNamespace(path="/j.jsonl", written=written, broken=broken)


def conclude(
    folder: pathlib.Path, *outcomes: Done, of: t.Any = None, why: Reason = NO_REASON
) -> tuple[dict[str, t.Any], t.Any]:
    """Return the result, and the contents of the file."""
    path = folder / "outcomes.json"
    result = conclude_run(outcomes, NAMES, of, why, str(path), "made")
    return result, json.loads(path.read_text())


def test_what_was_made_is_counted_and_written(tmp_path: pathlib.Path) -> None:
    result, document = conclude(
        tmp_path, Done("a", "made"), Done("b", "skipped", Reason("told", "It moved.")), of=journal()
    )

    assert result == {
        "changed": True,
        "tally": {"made": 1, "skipped": 1, "failed": 0},
        "outcomes": [
            {"step": "a", "outcome": "made", "reason": ""},
            {"step": "b", "outcome": "skipped", "reason": "It moved."},
        ],
        "stopped": "",
        "journal": "/j.jsonl",
    }
    assert document == {
        "format": 1,
        "check_mode": False,
        "tally": result["tally"],
        "journal": "/j.jsonl",
        "outcomes": result["outcomes"],
    }


@pytest.mark.parametrize(
    ("of", "check_mode"), [(None, True), (journal(written=False), False)], ids=["none", "unwritten"]
)
@pytest.mark.parametrize("outcome", ["made", "skipped"])
def test_a_journal_without_a_record_has_no_file(
    tmp_path: pathlib.Path, of: t.Any, check_mode: bool, outcome: str
) -> None:
    result, document = conclude(tmp_path, Done("a", outcome), of=of)

    assert result["changed"] is (outcome == "made")
    assert result["journal"] is document["journal"] is None
    assert document["check_mode"] is check_mode


NO = Reason("told", "No.")


def test_what_was_made_in_part_is_a_change(tmp_path: pathlib.Path) -> None:
    result, _document = conclude(tmp_path, Done("a", "failed", NO, partly=True), of=journal())

    assert result["changed"] is True and result["failed"] is True
    assert result["msg"].startswith("1 of 1 ") and result["msg"].endswith(": No.")
    assert "tried" not in result["msg"]


def test_changes_that_were_not_tried_are_counted(tmp_path: pathlib.Path) -> None:
    untried = [Done(name, "skipped", explain_abort(1, 1)) for name in "bc"]
    result, _document = conclude(tmp_path, Done("a", "failed", NO), *untried, of=journal())

    assert result["msg"].startswith("1 of 3 ") and " 2 were not" in result["msg"]


def test_a_long_reason_is_shown_in_part_and_kept_in_the_outcome(tmp_path: pathlib.Path) -> None:
    reason = "x" * 400
    result, document = conclude(tmp_path, Done("a", "failed", Reason("told", reason)), of=journal())

    assert len(result["msg"]) == 400 and result["msg"].endswith("x…")
    assert document["outcomes"][0]["reason"] == reason


def test_a_run_that_was_stopped_fails_and_says_how_far_it_came(tmp_path: pathlib.Path) -> None:
    stopped = Reason("told", "Stopped.")
    done = [Done("a", "made"), Done("b", "skipped", stopped)]
    result, _document = conclude(tmp_path, *done, of=journal(), why=stopped)

    assert result["failed"] is True and result["stopped"] == "Stopped."
    assert result["msg"].startswith("Stopped. 1 of 2 ")


def test_a_broken_journal_fails(tmp_path: pathlib.Path) -> None:
    result, _document = conclude(tmp_path, Done("a", "made"), of=journal(broken=True))

    assert result["failed"] is True and "/j.jsonl" in result["msg"]


def test_a_file_that_cannot_be_written_hides_no_outcome(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    path = str(tmp_path / "file" / "outcomes.json")
    result = conclude_run([Done("a", "made")], NAMES, journal(), "", path, "made")

    assert result["changed"] is True and result["tally"]["made"] == 1
    assert result["failed"] is True and path in result["msg"]


def test_the_file_has_more_outcomes_than_the_result(tmp_path: pathlib.Path) -> None:
    many = [Done(str(number), "made") for number in range(MAX_RETURNED + 1)]
    result, document = conclude(tmp_path, *many, of=journal())

    assert len(result["outcomes"]) == MAX_RETURNED
    assert len(document["outcomes"]) == result["tally"]["made"] == MAX_RETURNED + 1


def _run(
    errors: dict[str, Exception], end_after: int = 99, max_failures: int = 99, before: int = 0
) -> list[Done]:
    """Return the outcomes of five steps, of which some raise an error."""
    made: list[str] = []

    def run_step(step: str) -> Done:
        if step in errors:
            raise errors[step]
        made.append(step)
        return Done(step, "made")

    def explain_stop() -> str:
        return "Enough." if len(made) >= end_after else ""

    return run_steps("abcde", run_step, Done, explain_stop, max_failures, before)


@pytest.mark.parametrize(("before", "tried"), [(0, 2), (1, 1), (2, 0), (3, 0)])
def test_after_too_many_failures_no_step_is_tried(before: int, tried: int) -> None:
    errors = dict.fromkeys("abcde", CloudError("No."))
    done = _run(errors, max_failures=2, before=before)

    assert [outcome.outcome for outcome in done] == ["failed"] * tried + ["skipped"] * (5 - tried)
    assert {outcome.reason.id for outcome in done[tried:]} == {"too_many_failures"}


def test_a_step_that_fails_does_not_keep_the_others_from_being_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[int] = []
    monkeypatch.setattr(Stage, "show_done", lambda _stage, count: shown.append(count))
    done = _run({"b": CloudError("Placement is down."), "d": RuntimeError("a fault")})

    assert [outcome.outcome for outcome in done] == ["made", "failed", "made", "failed", "made"]
    assert done[1].reason.id == "cloud_error"
    assert done[3].reason.id == "unexpected_error" and "RuntimeError: a fault" in done[3].reason
    assert shown[-5:] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("error", [UnsoundReading("unsound"), JournalError("no journal")])
def test_after_an_error_of_the_whole_run_no_step_is_tried(error: Exception) -> None:
    done = _run({"c": error})

    assert [outcome.step for outcome in done] == list("abcde")
    assert [outcome.outcome for outcome in done] == ["made", "made", "failed", "failed", "failed"]
    assert {outcome.reason for outcome in done[2:]} == {str(error)}


@pytest.mark.parametrize("made", range(6))
def test_a_run_that_ends_early_skips_the_rest(made: int) -> None:
    done = _run({}, end_after=made)

    assert [outcome.outcome for outcome in done] == ["made"] * made + ["skipped"] * (5 - made)
    assert {outcome.reason for outcome in done[made:]} <= {"Enough."}
