"""The folder of a run: what a stage records, what the next one finds, and what is refused."""

import contextlib
import json
import signal
import subprocess
import sys
import types
import typing as t
from pathlib import Path

import pytest

from .......plugins.module_utils._common.errors import InvalidInput
from .......plugins.module_utils._core.run.folder import (
    DETECTED,
    FILE,
    PLANNED,
    REMEDIATED,
    RESTORED,
    Run,
    RunFolder,
    find_plan,
    format_state,
    has_ended,
    has_failed,
    note,
    parse_state,
    record_result,
    require_detection,
    stage_of_run,
    start_state,
)

SUMMARY = {"changed": False, "summary": {}, "dest": "/f", "findings": [1]}
PLAN = {"changed": False, "plan": "/p", "changes": 2, "frees": {}}
DONE = {"changed": True, "tally": {"removed": 2}, "journal": "/j", "outcomes": [1, 2]}


def _run(folder: Path, identity: str = "2", **fields: t.Any) -> Run:
    run = {"id": identity, "host": "", "folder": str(folder), "check_mode": False}
    flags = {"detects": True, "remediates": True, "continues": False}
    return t.cast("Run", {**run, **flags, **fields})


def _module(run: Run | None, **options: t.Any) -> t.Any:
    return types.SimpleNamespace(options={"run": run, **options})


def _do(run: Run | None, stage: str, result: t.Any) -> dict[str, t.Any]:
    """Run a stage of a module, whose function returns or raises the result."""

    def work(module: t.Any) -> dict[str, t.Any]:
        if isinstance(result, Exception):
            raise result
        return dict(result)

    return stage_of_run(stage)(work)(_module(run))


def _state(folder: Path) -> dict[str, t.Any]:
    state: dict[str, t.Any] = json.loads((folder / FILE).read_text())
    for stage in state.values():
        if isinstance(stage, dict):
            stage.pop("begun", None)
    return state


def test_a_module_outside_of_a_run_records_nothing(tmp_path: Path) -> None:
    assert _do(None, DETECTED, SUMMARY) == SUMMARY
    with pytest.raises(InvalidInput):
        _do(None, DETECTED, InvalidInput("No."))
    note(types.SimpleNamespace(options={}), DETECTED, journal="/j")
    assert list(tmp_path.iterdir()) == []


def test_each_stage_adds_what_later_ones_use(tmp_path: Path) -> None:
    run = _run(tmp_path / "new")

    assert _do(run, DETECTED, SUMMARY) == {**SUMMARY, "failed": False}
    assert _do(run, PLANNED, PLAN) == {**PLAN, "failed": False}
    assert find_plan(_module(run)) == "/p"
    assert _do(run, REMEDIATED, DONE) == {**DONE, "failed": False}

    assert _state(tmp_path / "new") == {
        "format": 1,
        **{name: run[name] for name in ("id", "host", "check_mode", "detects", "remediates")},
        DETECTED: {"failed": False, "summary": {}, "dest": "/f"},
        PLANNED: {"failed": False, "plan": "/p", "changes": 2},
        REMEDIATED: {"failed": False, "tally": {"removed": 2}, "journal": "/j"},
    }
    assert (tmp_path / "new" / FILE).stat().st_mode & 0o777 == 0o600


FAILURES: dict[str, tuple[t.Any, dict[str, t.Any]]] = {
    "an error": (InvalidInput("No."), {"failed": True, "msg": "No."}),
    "a result": (
        {**PLAN, "failed": True, "msg": "3 are too many."},
        {"failed": True, "msg": "3 are too many.", "plan": "/p", "changes": 2},
    ),
    "no message": ({"failed": True}, {"failed": True, "msg": "A task failed."}),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_recorded_and_ends_the_run_but_not_the_task(tmp_path: Path, name: str) -> None:
    result, recorded = FAILURES[name]
    run = _run(tmp_path)
    _do(run, DETECTED, SUMMARY)

    ended = _do(run, PLANNED, result)
    assert not ended["failed"] and not ended.get("changed")
    assert _state(tmp_path)[PLANNED] == recorded
    assert _do(run, REMEDIATED, AssertionError()) == {"changed": False, "skipped": True}
    assert REMEDIATED not in _state(tmp_path)


def test_a_failure_of_ours_is_not_taken_for_one_of_the_run(tmp_path: Path) -> None:
    run = _run(tmp_path)

    with pytest.raises(ZeroDivisionError):
        _do(run, DETECTED, ZeroDivisionError())

    # The stage has not ended, so nothing follows.
    assert not has_ended(_state(tmp_path), DETECTED) and has_failed(_state(tmp_path))
    assert _do(run, PLANNED, AssertionError())["skipped"]


def test_a_stage_that_was_left_out_is_followed_by_none(tmp_path: Path) -> None:
    run = _run(tmp_path)

    assert _do(run, PLANNED, AssertionError())["skipped"]
    assert list(tmp_path.iterdir()) == []
    _do(run, DETECTED, SUMMARY)
    assert _do(run, REMEDIATED, AssertionError())["skipped"]
    _do(run, PLANNED, {**PLAN, "plan": None, "changes": 0})
    assert _do(run, REMEDIATED, AssertionError())["skipped"]


def test_a_run_by_a_plan_has_no_detection_of_an_earlier_one(tmp_path: Path) -> None:
    _do(_run(tmp_path, "1"), DETECTED, SUMMARY)
    run = _run(tmp_path, detects=False)

    _do(run, PLANNED, PLAN)

    assert DETECTED not in _state(tmp_path)
    assert _do(run, REMEDIATED, DONE)["tally"] == {"removed": 2}


def test_a_run_continues_with_the_detection_in_its_folder(tmp_path: Path) -> None:
    earlier = _run(tmp_path, "1", remediates=False)
    _do(earlier, DETECTED, SUMMARY)
    _do(earlier, PLANNED, {"failed": True, "msg": "3 are too many."})
    run = _run(tmp_path, detects=False, continues=True)

    _do(run, PLANNED, PLAN)

    state = _state(tmp_path)
    assert (state["id"], state[DETECTED]["dest"], state["detects"]) == ("2", "/f", False)
    assert state[PLANNED]["failed"] is False


def test_a_run_continues_with_no_failed_detection_but_without_any(tmp_path: Path) -> None:
    run = _run(tmp_path, detects=False, continues=True)
    _do(_run(tmp_path, "1"), DETECTED, InvalidInput("No."))
    assert _do(run, PLANNED, AssertionError())["skipped"]
    (tmp_path / FILE).unlink()
    assert _do(run, PLANNED, PLAN)["plan"] == "/p"


@pytest.mark.parametrize("stage", [DETECTED, RESTORED])
@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 99}'])
def test_a_run_replaces_what_another_one_left(tmp_path: Path, text: str, stage: str) -> None:
    (tmp_path / FILE).write_text(text)

    _do(_run(tmp_path, detects=stage == DETECTED), stage, {**SUMMARY, **DONE})

    assert has_ended(_state(tmp_path), stage)


def test_a_run_is_refused_once_another_one_uses_its_folder(tmp_path: Path) -> None:
    run = _run(tmp_path)
    _do(run, DETECTED, SUMMARY)
    _do(_run(tmp_path, "3"), DETECTED, SUMMARY)

    with pytest.raises(InvalidInput, match="began later"):
        _do(run, PLANNED, AssertionError())

    assert _state(tmp_path)["id"] == "3"


def test_what_was_changed_is_returned_although_it_cannot_be_recorded(tmp_path: Path) -> None:
    run = _run(tmp_path)
    _do(run, DETECTED, SUMMARY)
    _do(run, PLANNED, PLAN)

    def work(module: t.Any) -> dict[str, t.Any]:
        (tmp_path / FILE).write_text("{")
        return {**DONE, "failed": True, "msg": "1 failed."}

    result = stage_of_run(REMEDIATED)(work)(_module(run))

    assert result["failed"] and result["tally"] == DONE["tally"]
    assert result["msg"].startswith("1 failed. ") and "is not JSON" in result["msg"]


KILLED = """
import json, os, signal, sys, types
from ansible_collections.osops.placement.plugins.module_utils._core.run import folder
module = types.SimpleNamespace(options={"run": json.loads(sys.argv[1])})
@folder.stage_of_run(sys.argv[2])
def work(module):
    folder.note(module, sys.argv[2], journal="/j")
    os.kill(os.getpid(), signal.SIGKILL)
work(module)
"""


def test_a_killed_stage_leaves_what_is_known_of_it(tmp_path: Path) -> None:
    run = _run(tmp_path)
    _do(run, DETECTED, SUMMARY)
    _do(run, PLANNED, PLAN)

    command = [sys.executable, "-c", KILLED, json.dumps(run), REMEDIATED]
    environment = {"PYTHONPATH": ":".join(sys.path)}
    ended = subprocess.run(command, env=environment, check=False)

    assert ended.returncode == -signal.SIGKILL
    state = _state(tmp_path)
    assert state[REMEDIATED] == {"journal": "/j"} and not has_ended(state, REMEDIATED)
    assert has_failed(state) and not has_failed(state, [DETECTED, PLANNED])


FLAGS = {"check_mode": False, "detects": True, "remediates": True}
WHOLE = {"format": 1, "id": "2", "host": "", **FLAGS}


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (None, "not a mapping"),
        ([], "not a mapping"),
        ({}, "its format is None"),
        ({**WHOLE, "format": 2}, "its format is 2"),
        ({**WHOLE, "id": 2}, "it has no id"),
        ({**WHOLE, "detects": "yes"}, "it has no detects"),
        ({**WHOLE, PLANNED: ["/p"]}, "its planned is not a mapping"),
        ({**WHOLE, "host": "north"}, "for the inventory host north"),
        ({**WHOLE, "id": "3"}, "began later"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, document: t.Any, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        parse_state(document, "/run.json", _run(tmp_path))


def test_a_report_shows_whichever_run_is_in_its_folder(tmp_path: Path) -> None:
    run = _run(tmp_path, detects=False, remediates=False, continues=True)

    for identity in "123":
        document = {**WHOLE, "id": identity, DETECTED: {"failed": False}}
        assert parse_state(document, "/run.json", run) == document


def test_a_state_is_read_as_it_was_written_unless_it_is_that_of_an_earlier_run(
    tmp_path: Path,
) -> None:
    run = _run(tmp_path)
    state = record_result(start_state(run), DETECTED, SUMMARY)

    assert parse_state(json.loads(format_state(state)), "/run.json", run) == state
    (tmp_path / FILE).write_text(format_state(state))
    assert RunFolder(run).read() == state
    assert parse_state({**WHOLE, "id": "1"}, "/run.json", run) is None


TORN = {"torn": "{", "of another host": json.dumps(start_state(_run(Path("f"), "1", host="a")))}


@pytest.mark.parametrize("name", TORN)
def test_a_run_that_goes_on_does_not_replace_what_it_goes_on_from(
    tmp_path: Path, name: str
) -> None:
    """The detection that the file has may have failed."""
    (tmp_path / FILE).write_text(TORN[name])
    run = _run(tmp_path, detects=False, continues=True)

    with pytest.raises(InvalidInput):
        RunFolder(run).begin(PLANNED)

    assert (tmp_path / FILE).read_text() == TORN[name]


@pytest.mark.parametrize(
    ("detected", "findings", "is_in_run", "is_refused"),
    [
        ({"finished_at": "t1"}, {"finished_at": "t1"}, True, False),
        ({"finished_at": "t1"}, {"finished_at": "t2"}, True, True),
        ({"finished_at": "t1"}, {}, True, True),
        # Without a time, it is a detection of an earlier version.
        ({}, {"finished_at": "t2"}, True, False),
        ({"finished_at": "t1"}, {"finished_at": "t2"}, False, False),
        # What these findings are is said by whoever reads them.
        ({"finished_at": "t1"}, ["t2"], True, False),
    ],
)
def test_a_run_goes_on_only_with_the_findings_of_its_detection(
    tmp_path: Path, detected: dict[str, str], findings: t.Any, is_in_run: bool, is_refused: bool
) -> None:
    _do(_run(tmp_path, "1"), DETECTED, {**SUMMARY, **detected})
    run = _run(tmp_path, detects=False, continues=True)
    module = _module(run if is_in_run else None, findings="findings.json")

    with pytest.raises(InvalidInput) if is_refused else contextlib.nullcontext():
        require_detection(module, findings)


def test_a_stage_keeps_everything_that_it_notes(tmp_path: Path) -> None:
    run = _run(tmp_path)
    _do(run, DETECTED, SUMMARY)

    note(_module(run), PLANNED, plan="/p")
    note(_module(run), PLANNED, packed="text")

    assert _state(tmp_path)[PLANNED] == {"plan": "/p", "packed": "text"}
    assert _state(tmp_path)[DETECTED]["dest"] == "/f"


@pytest.mark.parametrize("earlier", [None, {}, {"id": "1"}, {DETECTED: {"dest": "/f"}}])
@pytest.mark.parametrize("continues", [True, False])
def test_a_run_begins_with_the_detection_that_it_goes_on_from(
    tmp_path: Path, earlier: dict[str, t.Any] | None, continues: bool
) -> None:
    state = start_state(_run(tmp_path, continues=continues), earlier)

    assert state.get(DETECTED) == ((earlier or {}).get(DETECTED) if continues else None)
