"""A plan is only reported with the findings that it was made of."""

import json
import typing as t
from pathlib import Path

import pytest
from ansible.errors import AnsibleActionFail

from ......plugins.action import orphan_plan, orphan_report
from ......plugins.module_utils._core.plan.plan import Plan
from ......plugins.module_utils._core.run.folder import format_state, start_state
from ......plugins.plugin_utils._stage.action import is_plan_of_findings
from ...module_utils.judging import NO_MINIMUM_AGE, build_findings
from ...module_utils.situations import build_world_of_every_action
from ..actions import make_action

KINDS = ["deleted_server", "extra_host"]
EARLIER = "2026-11-19T12:00:00Z"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of one run, and the plan of an earlier one."""
    world, changes = build_world_of_every_action()
    findings = build_findings(world.snapshot(**changes), NO_MINIMUM_AGE)
    earlier = {**findings, "finished_at": EARLIER}
    plans = {
        "plan": Plan.from_findings(findings, KINDS),
        "earlier": Plan.from_findings(earlier, KINDS),
    }
    (tmp_path / "findings.json").write_text(json.dumps(findings))
    for name, plan in plans.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(plan.as_dict()))
    return tmp_path


def run_action(module: t.Any, folder: Path, **options: t.Any) -> dict[str, t.Any]:
    """Run an action plugin on the controller, as a task without a role does."""
    for name in ("findings", "plan"):
        if name in options:
            options[name] = str(folder / options[name])
    plugin = make_action(module, basedir=str(folder), args=options, check_mode=True, diff=True)
    result: dict[str, t.Any] = plugin.run(task_vars={})
    assert not result.get("failed"), result
    return result


def start_run(folder: Path, run_id: str) -> dict[str, t.Any]:
    """Return a run that detects and remediates in a folder."""
    run = {"id": run_id, "host": "", "folder": str(folder), "check_mode": True, "detects": True}
    return run | {"remediates": True, "continues": False}


def test_plan_belongs_to_the_findings_that_were_complete_when_it_was_made() -> None:
    findings = {"finished_at": "2026-11-20T12:00:00Z"}

    assert is_plan_of_findings({"detected_at": "2026-11-20T12:00:00Z"}, findings) is True
    assert is_plan_of_findings({"detected_at": EARLIER}, findings) is False


@pytest.mark.parametrize(
    ("plan", "findings"),
    [(None, {"finished_at": EARLIER}), ({"detected_at": EARLIER}, None), (None, None)],
)
def test_file_that_is_not_there_contradicts_nothing(plan: t.Any, findings: t.Any) -> None:
    assert is_plan_of_findings(plan, findings) is True


def test_report_has_no_plan_of_other_findings(folder: Path) -> None:
    options = {"findings": "findings.json", "formats": ["csv"], "output_dir": str(folder)}
    options["terminal"] = False
    own = run_action(orphan_report, folder, plan="plan.json", **options)
    (folder / "findings.csv").unlink()
    other = run_action(orphan_report, folder, plan="earlier.json", **options)

    assert own["reports"] == {"csv": str(folder / "findings.csv")}
    assert "reports" not in other
    assert not (folder / "findings.csv").exists()


def test_difference_of_a_plan_has_no_names_of_other_findings(folder: Path) -> None:
    own = run_action(orphan_plan, folder, plan="plan.json", output_dir=str(folder))
    other = run_action(orphan_plan, folder, plan="earlier.json", output_dir=str(folder))

    assert "compute-1" in json.dumps(own["diff"])
    assert "compute-1" not in json.dumps(other["diff"])


def test_run_has_no_plan_of_other_findings(folder: Path) -> None:
    findings = json.loads((folder / "findings.json").read_text())
    run = start_run(folder, "1")
    detected = {"dest": str(folder / "findings.json"), "summary": findings["summary"]}
    state: dict[str, t.Any] = start_state(t.cast("t.Any", run))
    state["detected"] = {**detected, "failed": False, "finished_at": findings["finished_at"]}

    def report(plan: str) -> t.Any:
        state["planned"] = {"plan": str(folder / plan), "changes": 1, "failed": False}
        state["remediated"] = {"tally": {}, "failed": False}
        (folder / "run.json").write_text(format_state(state))
        return run_action(orphan_report, folder, run=run, formats=["csv"])

    assert list(report("plan.json")["reports"]) == ["csv"]
    assert report("earlier.json")["reports"] == {}
    # That of the run is there, and says what the run has come to.
    assert json.loads((folder / "run.json").read_text())["reported"]["outcome"] == "findings"
    state["detected"]["finished_at"] = EARLIER
    assert "findings.json" in report("plan.json")["failure"]


@pytest.mark.parametrize(("run_id", "is_recorded"), [("1", False), ("2", True), ("3", True)])
def test_interruption_is_not_recorded_in_the_state_of_a_later_run(
    folder: Path, run_id: str, is_recorded: bool
) -> None:
    run = start_run(folder, "2")
    (folder / "run.json").write_text(format_state(start_state(t.cast("t.Any", run))))

    result = run_action(orphan_report, folder, run={**run, "id": run_id}, failure="It broke.")

    state = json.loads((folder / "run.json").read_text())
    assert not result["changed"]
    assert state["id"] == (run_id if is_recorded else "2")
    assert ("interrupted" in state) is is_recorded


@pytest.mark.parametrize("contents", ["{", "{}"])
def test_mistake_in_a_file_is_told_once(folder: Path, contents: str) -> None:
    """Ansible adds the message of each exception that is the cause of another one."""
    (folder / "findings.json").write_text(contents)

    with pytest.raises(AnsibleActionFail) as failure:
        run_action(orphan_report, folder, findings="findings.json")

    assert failure.value.__cause__ is None
    assert failure.value.message.count("findings.json") == 1
