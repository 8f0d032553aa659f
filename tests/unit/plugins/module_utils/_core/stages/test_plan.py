"""`orphan_plan` with the findings of a cloud in a file."""

import json
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils import basic

from .......plugins.module_utils._core.changes.records import read_restorable
from .......plugins.module_utils._core.models.kinds import CHANGEABLE_KINDS
from .......plugins.module_utils._core.options.policy import Policy
from .......plugins.module_utils._core.run.pack import find_packs
from .......plugins.module_utils._core.stages import plan as stage
from .......plugins.modules import orphan_plan
from ....module_utils.judging import build_findings
from ....module_utils.situations import build_world_of_every_action

KINDS = [kind.name for kind in CHANGEABLE_KINDS]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a `findings.json` in which there is a change of every action."""
    world, changes = build_world_of_every_action()
    findings = build_findings(world.snapshot(**changes), Policy(min_age=0, unknown_min_age=0))
    (tmp_path / "findings.json").write_text(json.dumps(findings))
    (tmp_path / "other.json").write_text("{}")
    return tmp_path


class Run(t.Protocol):
    def __call__(self, **options: t.Any) -> t.Any: ...


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """A function that runs the module; the paths in its options are those of files in `folder`."""
    # Since ansible-core 2.19 arguments have a profile, and before it there is no such name.
    monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)

    def run_module(**options: t.Any) -> t.Any:
        for name in ("findings", "plan", "dest", "output_dir"):
            if isinstance(options.get(name), str) and not find_packs(options[name]):
                options[name] = str(folder / options[name])
        arguments = json.dumps({"ANSIBLE_MODULE_ARGS": options})
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", arguments.encode())
        with pytest.raises(SystemExit):
            orphan_plan.TASK.run_module()
        return json.loads(capsys.readouterr().out)

    return run_module


def read_records(result: dict[str, t.Any]) -> list[t.Any]:
    """Return the records of the journal that the plan would leave."""
    records, torn = read_restorable(result["packed"])
    assert not torn
    return list(records)


def edit(path: Path, **changes: t.Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_findings_become_a_plan_in_a_file(folder: Path, run: Run) -> None:
    result = run(findings="findings.json", kinds=KINDS, dest="plan.json")
    plan = json.loads((folder / "plan.json").read_text())

    assert result["changed"] is False
    assert result["plan"] == str(folder / "plan.json")
    assert result["changes"] == len(plan["changes"]) == len(read_records(result)) == 9
    assert result["actions"] == {
        "remove": 2,
        "reduce": 1,
        "rewrite": 3,
        "create": 1,
        "delete_providers": 2,
    }


def test_without_kinds_only_those_of_the_default_are_planned(folder: Path, run: Run) -> None:
    result = run(findings="findings.json")

    assert result["plan"] is None
    assert {record["kind"] for record in read_records(result)} == {
        "deleted_server",
        "extra_host",
        "unreverted_allocation",
    }
    assert result["frees"] == {"DISK_GB": 3, "MEMORY_MB": 1536, "VCPU": 3}
    assert result["claims"] == {}


def test_a_plan_is_read_back_as_it_was_written(folder: Path, run: Run) -> None:
    written = run(findings="findings.json", kinds=KINDS, dest="plan.json")
    read = run(plan="plan.json", kinds=KINDS)

    assert read["plan"] == str(folder / "plan.json")
    assert read["packed"] == written["packed"]
    assert read["actions"] == written["actions"]


def test_the_diff_shows_the_documents_of_each_consumer(folder: Path, run: Run) -> None:
    result = run(findings="findings.json", _ansible_diff=True)
    consumers = {record["consumer"] for record in read_records(result)}

    assert consumers <= set(result["diff"]["before"])
    assert set(result["diff"]["before"]) == set(result["diff"]["after"])


def test_a_pack_is_the_plan_and_becomes_a_file_again(folder: Path, run: Run) -> None:
    planned = run(findings="findings.json", kinds=KINDS, dest="plan.json")
    plan = (folder / "plan.json").read_text()
    checked = run(plan=planned["packed"], kinds=KINDS)
    written = run(plan=planned["packed"], kinds=KINDS, dest="again.json")

    assert (checked["changes"], checked["plan"]) == (9, None)
    assert written["plan"] == str(folder / "again.json")
    assert checked["packed"] == written["packed"] == planned["packed"]
    assert (folder / "again.json").read_text() == plan


def test_a_pack_that_was_cut_or_has_no_plan_is_refused(run: Run) -> None:
    packed = run(findings="findings.json", kinds=KINDS)["packed"]
    for wrong in (packed[:-9], f"{packed} {packed}"):
        assert run(plan=wrong, kinds=KINDS)["failed"] is True


def test_a_plan_that_is_too_long_to_be_handed_on_says_so(
    run: Run, warned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "pack_files", lambda files: "")

    result = run(findings="findings.json")

    assert result["packed"] == "" and "too long" in warned[0]


def test_more_changes_than_the_limit_fail_and_are_shown(folder: Path, run: Run) -> None:
    result = run(findings="findings.json", max_changes=1, dest="plan.json")

    assert result["failed"] is True and "max_changes is 1" in result["msg"]
    assert result["changes"] == 3
    assert "records" not in result
    assert (folder / "plan.json").exists()


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every folder is deleted after the job."""
    monkeypatch.setattr(stage, "find_loss", lambda path: "it is inside the container")


@pytest.fixture
def warned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The warnings of the module, which each ansible-core shows in its own way."""
    texts: list[str] = []
    monkeypatch.setattr(basic.AnsibleModule, "warn", lambda module, text: texts.append(text))
    return texts


@pytest.mark.usefixtures("lost")
def test_a_folder_that_is_lost_is_named_with_a_warning(
    folder: Path, run: Run, warned: list[str]
) -> None:
    result = run(findings="findings.json", output_dir="out")
    packed = run(plan=result["packed"], output_dir="out")

    assert f"{folder}/out" in result["output_lost"]
    assert packed["output_lost"] == result["output_lost"]
    assert warned == [result["output_lost"]] * 2
    assert "failed" not in result


@pytest.mark.usefixtures("lost")
def test_a_folder_that_is_lost_is_no_warning_in_check_mode_which_writes_no_journal(
    run: Run, warned: list[str]
) -> None:
    result = run(findings="findings.json", _ansible_check_mode=True, output_dir="out")

    assert "failed" not in result
    assert result["output_lost"] and warned == []


@pytest.mark.usefixtures("lost")
def test_a_lost_folder_does_not_matter_when_nothing_is_changed(
    folder: Path, run: Run, warned: list[str]
) -> None:
    edit(folder / "findings.json", findings=[])

    empty = run(findings="findings.json", output_dir="out")
    unasked = run(findings="findings.json")

    assert (empty["changes"], empty["output_lost"]) == (0, "")
    assert "failed" not in empty and warned == []
    assert "output_lost" not in unasked


@pytest.mark.usefixtures("lost")
def test_a_plan_above_a_limit_fails_for_the_limit_alone(run: Run, warned: list[str]) -> None:
    result = run(findings="findings.json", output_dir="out", max_changes=1)

    assert result["failed"] is True and "max_changes is 1" in result["msg"]
    assert result["output_lost"] == "" and warned == []


def test_a_folder_that_is_kept_is_not_mentioned(
    run: Run, warned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "find_loss", lambda path: "")
    result = run(findings="findings.json", output_dir="out")

    assert result["output_lost"] == ""
    assert "failed" not in result and warned == []


def test_servers_to_heal_are_named(folder: Path, run: Run) -> None:
    result = run(findings="findings.json", heal=True)

    assert result["changes"] == len(result["servers"]) == 1
    assert result["plan"] is None


def test_too_many_servers_to_heal_are_counted_and_not_named(run: Run) -> None:
    """The role goes by the number, and would heal every server that is named."""
    result = run(findings="findings.json", heal=True, max_changes=0)

    assert result["failed"] is True and "max_changes is 0" in result["msg"]
    assert result["changes"] == 1 and "servers" not in result


def test_the_findings_of_an_unsound_reading_are_refused(folder: Path, run: Run) -> None:
    findings = json.loads((folder / "findings.json").read_text())
    findings["summary"]["coverage"]["failed_checks"] = ["Silent."]
    edit(folder / "findings.json", summary=findings["summary"])

    result = run(findings="findings.json", dest="plan.json")

    assert result["failed"] is True and result["msg"].endswith("Silent.")
    assert not (folder / "plan.json").exists()


@pytest.mark.parametrize(("named", "allowed"), [("compute-1", True), ("compute-2", False)])
def test_findings_are_planned_if_they_are_about_what_is_named(
    folder: Path, run: Run, named: str, allowed: bool
) -> None:
    scope = json.loads((folder / "findings.json").read_text())["scope"]
    edit(folder / "findings.json", scope={**scope, "hosts": ["compute-1"]})

    result = run(findings="findings.json", scope={"hosts": [named]}, dest="plan.json")

    assert result.get("failed", False) is not allowed
    assert (folder / "plan.json").exists() is allowed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "required: findings, plan"),
        ({"findings": "nothing.json"}, "nothing.json cannot"),
        ({"findings": "other.json"}, "no format"),
        ({"plan": "findings.json"}, "orphan_plan"),
        ({"plan": {"compact": True}}, "no format"),
        ({"plan": {"compact": True, "format": 1}}, "compact plan"),
        ({"plan": "osops.placement.plan:1:eNq"}, "version 2.0"),
        ({"findings": "findings.json", "kinds": ["stale_service"]}, "value of kinds"),
        ({"findings": "findings.json", "plan": {"format": 1}}, "both set"),
        ({"heal": True, "plan": {"format": 1}}, "heal needs"),
    ],
)
def test_what_cannot_be_planned_is_refused(
    run: Run, options: dict[str, t.Any], message: str
) -> None:
    result = run(**options)

    assert result["failed"] is True
    assert message in result["msg"]


def test_an_edited_plan_is_refused(folder: Path, run: Run) -> None:
    run(findings="findings.json", dest="plan.json")
    plan = json.loads((folder / "plan.json").read_text())
    plan["changes"][0]["frees"] = {}
    edit(folder / "plan.json", changes=plan["changes"])

    result = run(plan="plan.json")

    assert result["failed"] is True and "digest" in result["msg"]


def test_a_pack_with_another_kind_is_refused(run: Run) -> None:
    packed = run(findings="findings.json", kinds=KINDS)["packed"]
    result = run(plan=packed, kinds=["deleted_server"])

    assert result["failed"] is True and "extra_host" in result["msg"]
