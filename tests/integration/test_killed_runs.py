"""Runs that are killed in a stage or between two: the report says what was done, and what not."""

import contextlib
import json
import os
import signal
import typing as t
from pathlib import Path

import pytest

from ..attacks.test_fault_processes import descendants
from .interposer import Fault, Wires
from .strays import Strays
from .support import Ansible, Run

# Kills ansible-playbook, and whatever it has started, when a task begins.
KILLER = """
import os, signal
from ansible.plugins.callback import CallbackBase
class CallbackModule(CallbackBase):
    CALLBACK_VERSION, CALLBACK_NAME = 2.0, "killer"
    def v2_playbook_on_task_start(self, task, is_conditional):
        if task.get_name().endswith(os.environ["KILL_BEFORE"]):
            os.killpg(0, signal.SIGKILL)
"""
FINDINGS = "3 orphaned"


RUNNING: list[int] = []


def _run_and_kill(ansible: Ansible, folder: Path, few: Strays, before: str = "no task") -> None:
    """Run a cleanup that is killed before a task, or by a hook."""
    (folder / "killer.py").write_text(KILLER)
    variables = {
        "orphan_cleanup_min_age": 0,
        "orphan_cleanup_unknown_min_age": 0,
        "orphan_cleanup_remediate_kinds": ["unknown_consumer"],
        "orphan_cleanup_consumers": few.consumers,
    }
    process = ansible.launch(
        "cleanup_orphans",
        variables,
        ANSIBLE_CALLBACK_PLUGINS=str(folder),
        ANSIBLE_CALLBACKS_ENABLED="killer",
        KILL_BEFORE=before,
    )
    RUNNING[:] = [process.pid]
    assert process.wait(timeout=300) == -signal.SIGKILL


def _kill() -> Fault:
    """Kill a run with the process of its task, which is in a session of its own."""
    for known in [*descendants(RUNNING[0]), RUNNING[0]]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(known, signal.SIGKILL)
    return Fault.NO_ANSWER


def _report(ansible: Ansible, **variables: t.Any) -> Run:
    role = {"name": "osops.placement.orphan_cleanup", "tasks_from": "report"}
    return ansible.play({"tasks": [{"ansible.builtin.include_role": role, "vars": variables}]})


# The request or the task at which a run is killed, what the report then says, and how many orphans
# are left.
ENDS: dict[str, tuple[tuple[str, str, str, str] | str, list[str], int]] = {
    "while it detects": (
        ("nova", "before", "GET", "/os-services$"),
        ["The run ended while it read the cloud: nothing was changed."],
        3,
    ),
    "before it plans": (
        "Plan the changes",
        [FINDINGS, "The run ended before it planned: nothing was changed."],
        3,
    ),
    "before it changes": (
        "Make the changes",
        [FINDINGS, "The run ended before it made the changes: nothing was changed."],
        3,
    ),
    "after its first write": (
        ("placement", "after", "POST", "^/allocations$"),
        [FINDINGS, "The run ended while it made the changes: what it has changed is in", "Undo:"],
        0,
    ),
    "before its report": (
        "Write the reports, and export the result",
        [FINDINGS, "The run ended before its report.", "Undo:"],
        0,
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", ENDS)
def test_report_says_what_a_killed_run_has_done(
    ansible: Ansible, wires: Wires, few: Strays, tmp_path: Path, name: str
) -> None:
    few.claim()
    end, sentences, left = ENDS[name]
    if isinstance(end, str):
        _run_and_kill(ansible, tmp_path, few, before=end)
    else:
        service, moment, method, path = end
        hook = getattr(wires, service).on(method, path, **{moment: _kill})
        _run_and_kill(ansible, tmp_path, few)
        assert hook.ran
    assert len(few.held) == left

    told = _report(ansible)

    assert told.status == 0 and (FINDINGS in told.told) is (FINDINGS in sentences), told.output
    for sentence in sentences:
        assert sentence in told.told, told.output
    few.others_are_unchanged()


@pytest.mark.long
def test_state_of_another_run_is_refused(ansible: Ansible, few: Strays) -> None:
    few.claim()
    named = {"orphan_cleanup_consumers": few.consumers}
    found = ansible.playbook("detect_orphans", variables=named)
    assert found.status == 0 and "Failed:" not in _report(ansible).output, found.output
    path = ansible.folder / "orphan-cleanup" / "run.json"
    state = json.loads(path.read_text())

    for damage, sentence in {
        path.read_text()[:-9]: "is not JSON",
        json.dumps({**state, "format": 99}): "its format is 99",
        json.dumps({**state, "host": "north"}): "is that of a run for the inventory host north",
    }.items():
        path.write_text(damage)
        refused = _report(ansible)
        assert refused.status != 0 and sentence in refused.told, refused.output

    # A run of its own replaces the file, and one that began later is not taken for this one.
    again = ansible.playbook("detect_orphans", variables=named)
    assert again.status == 0 and json.loads(path.read_text())["id"] > state["id"], again.output
    findings = ansible.folder / "orphan-cleanup" / "findings.json"
    document = json.loads(findings.read_text())
    findings.write_text(json.dumps({**document, "finished_at": "2026-01-01T00:00:00Z"}))
    other = _report(ansible)
    assert other.status != 0 and "of another run" in other.told, other.output


def test_folder_of_an_older_version_is_still_reported(ansible: Ansible, few: Strays) -> None:
    few.claim()
    done = ansible.playbook("detect_orphans", variables={"orphan_cleanup_consumers": few.consumers})
    assert done.status == 0, done.output
    (ansible.folder / "orphan-cleanup" / "run.json").unlink()

    told = _report(ansible)

    assert told.status == 0 and few.consumers[0][:8] in told.told, told.output
