# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder of a run: `run.json` is the state of the run, which each stage reads and adds to.

A stage is recorded before it begins and after it ended, so that a run which was killed leaves what
is known of it.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import typing as t
from collections.abc import Callable, Iterable, Mapping

from ..._common.clock import get_utc_now
from ..._common.context import Context
from ..._common.errors import InvalidInput, PlacementToolsError
from ..._common.json_files import read_json, write_json
from ..models.codec import Unchecked

FILE = "run.json"
_FORMAT = 1

DETECTED, PLANNED, REMEDIATED, RESTORED = "detected", "planned", "remediated", "restored"
INTERRUPTED, REPORTED = "interrupted", "reported"

# The keys of each stage's result that later stages use. The rest is in files: copied from task to
# task, the findings and the records of a large cloud would take seconds and fill the logs.
_STAGE_KEYS: Mapping[str, tuple[str, ...]] = {
    DETECTED: ("dest", "summary", "versions", "finished_at"),
    PLANNED: ("plan", "changes", "packed", "output_lost"),
    REMEDIATED: ("remediation", "journal", "tally", "versions"),
    RESTORED: ("restoration", "journal", "tally"),
    # An error that no stage could report itself, such as a variable that cannot be templated.
    INTERRUPTED: (),
    REPORTED: ("failure", "outcome", "reports"),
}
STAGES = tuple(_STAGE_KEYS)

# What `run.json` has of the run beside its stages, with the types.
_FIELDS = {"id": str, "host": str, "check_mode": bool, "detects": bool, "remediates": bool}

# The fields of a run, and what each stage has recorded, by its name.
State = dict[str, t.Any]


class Run(t.TypedDict):
    """The run that a stage belongs to, as `validate_variables` begins it.

    id: a later run has a greater one.
    host: the inventory host; empty if there is only one.
    folder: the path of the folder.
    check_mode: whether it changes nothing.
    detects: whether the run detects its findings itself.
    remediates: whether it changes something.
    continues: whether it goes on from the detection in the folder, or only shows what is there.
    """

    id: str
    host: str
    folder: str
    check_mode: bool
    detects: bool
    remediates: bool
    continues: bool


_Work = t.TypeVar("_Work", bound=Callable[..., dict[str, t.Any]])


def start_state(run: Run, earlier: Unchecked | None = None) -> State:
    """Return the state of a run of which no stage has begun.

    earlier: the state of the run that it goes on from.
    """
    fields: Unchecked = {**run}
    state: State = {"format": _FORMAT, **{name: fields[name] for name in _FIELDS}}
    if run["continues"] and earlier and DETECTED in earlier:
        state[DETECTED] = earlier[DETECTED]
    return state


def parse_state(document: t.Any, path: str, run: Run) -> State | None:
    """Return what `run.json` has of a run; None if it is that of an earlier run.

    Raises InvalidInput if it is another file, or that of another inventory host or of a later run.
    """
    mistake = _find_mistake(document)
    if mistake:
        raise InvalidInput(
            f"{path} is no file that a run of this version of the collection wrote, or not all of "
            f"it ({mistake}): give each run a folder of its own, or remove the file."
        )
    state: State = document
    if state["host"] != run["host"]:
        raise InvalidInput(
            f"{path} is that of a run for the inventory host {state['host'] or 'localhost'}: give "
            "each inventory host a folder of its own."
        )
    if state["id"] == run["id"] or not (run["detects"] or run["remediates"]):
        return state
    if state["id"] > run["id"]:
        raise InvalidInput(
            f"{path} is that of a run that began later: two runs at a time need two folders."
        )
    return start_state(run, state) if run["continues"] else None


def _find_mistake(document: t.Any) -> str:
    if not isinstance(document, dict):
        return "it is not a mapping"
    if document.get("format") != _FORMAT:
        return f"its format is {document.get('format')!r}, and this version reads {_FORMAT}"
    for name, kind in _FIELDS.items():
        if not isinstance(document.get(name), kind):
            return f"it has no {name}"
    for stage in STAGES:
        if not isinstance(document.get(stage, {}), dict):
            return f"its {stage} is not a mapping"
    return ""


def record_result(state: State, stage: str, result: Unchecked) -> State:
    """Return the state of a run with the result of a stage."""
    kept: dict[str, t.Any] = {**state.get(stage, {}), "failed": bool(result.get("failed"))}
    if kept["failed"]:
        kept["msg"] = str(result.get("msg") or "A task failed.")
    for key in _STAGE_KEYS[stage]:
        if key in result:
            kept[key] = result[key]
    return {**state, stage: kept}


def format_state(state: State) -> str:
    """Return the text of `run.json`."""
    return f"{json.dumps(state, indent=2, sort_keys=True)}\n"


def has_ended(state: State, stage: str) -> bool:
    """Return whether a stage of the run has a result: it was neither left out nor killed."""
    return "failed" in state.get(stage, {})


def has_failed(state: State, stages: Iterable[str] = STAGES) -> bool:
    """Return whether one of the stages has failed, or was killed."""
    begun = (state[stage] for stage in stages if stage in state)
    return any(stage.get("failed", True) for stage in begun)


def stage_of_run(name: str) -> Callable[[_Work], _Work]:
    """Return a decorator for the function of a task that is a stage of a run.

    With the option `run`, the function is called only if nothing before it has failed. Its failure
    is recorded for the last task of the run, and does not fail this one: Ansible prints everything
    that a failed task returns.
    """

    def decorate(work: _Work) -> _Work:
        @functools.wraps(work)
        def run_stage(context: Context) -> dict[str, t.Any]:
            if not context.options.get("run"):
                return work(context)
            folder = RunFolder(context.options["run"])
            if not folder.begin(name):
                return {"changed": False, "skipped": True}
            try:
                result = work(context)
            except PlacementToolsError as error:
                result = {"changed": False, "failed": True, "msg": str(error)}
            return folder.end(name, result)

        return t.cast("_Work", run_stage)

    return decorate


class RunFolder:
    """Reads and writes the state of a run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._path = os.path.join(run["folder"], FILE)

    def begin(self, stage: str) -> bool:
        """Record that a stage begins, and return whether it may.

        Raises InvalidInput if the file is not that of this run.
        """
        first = DETECTED if self._run["detects"] else PLANNED
        is_first = stage in (first, RESTORED) and not self._run["continues"]
        state = self.read(is_first=is_first)
        if has_failed(state) or not self._has_what_it_needs(state, stage):
            return False
        write_json(self._path, {**state, stage: {"begun": get_utc_now()}})
        return True

    def _has_what_it_needs(self, state: State, stage: str) -> bool:
        """Return whether no stage before was left out, as --step can do, or had nothing to do."""
        if stage == REMEDIATED:
            return bool(state.get(PLANNED, {}).get("plan"))
        return stage == DETECTED or not self._run["detects"] or DETECTED in state

    def read(self, is_first: bool = False) -> State:
        """Return the state of the run.

        Raises InvalidInput if the file is not that of this run, unless the first stage replaces it.
        """
        state = None
        with contextlib.suppress(InvalidInput) if is_first else contextlib.nullcontext():
            if os.path.lexists(self._path):
                state = parse_state(read_json(self._path), self._path, self._run)
        return state or start_state(self._run)

    def note(self, stage: str, facts: Unchecked) -> None:
        """Record what is known of a stage before it ends, such as the path of its journal."""
        state = self.read()
        write_json(self._path, {**state, stage: {**state.get(stage, {}), **facts}})

    def end(self, stage: str, result: dict[str, t.Any]) -> dict[str, t.Any]:
        """Record the result of a stage, and return the result of its task."""
        try:
            write_json(self._path, record_result(self.read(), stage, result))
        except InvalidInput as error:
            # It must not hide what was changed.
            message = " ".join(filter(None, (result.get("msg"), str(error))))
            return {**result, "failed": True, "msg": message}
        return {**result, "failed": False}


def note(context: Context, stage: str, **facts: t.Any) -> None:
    """Record what is known of a stage before it ends, if its task is a stage."""
    if context.options.get("run"):
        RunFolder(context.options["run"]).note(stage, facts)


def find_plan(context: Context) -> str:
    """Return the path of the plan of the run, which a stage before has made."""
    path: str = RunFolder(context.options["run"]).read()[PLANNED]["plan"]
    return path


def require_detection(context: Context, findings: t.Any) -> None:
    """Raise InvalidInput if findings are not those of the detection that the run goes on from."""
    if not context.options.get("run") or not isinstance(findings, dict):
        return
    detected = RunFolder(context.options["run"]).read().get(DETECTED, {})
    if "finished_at" in detected and detected["finished_at"] != findings.get("finished_at"):
        raise InvalidInput(
            f"{context.options['findings']} is not of the detection that the run in its folder has "
            "recorded: detect again."
        )
