"""`orphan_plan` with the findings of a cloud in a file."""

from __future__ import annotations

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

    assert result["packed"] == "" and "too long to be passed to other jobs" in warned[0]


def test_more_changes_than_the_limit_fail_and_are_shown(folder: Path, run: Run) -> None:
    result = run(findings="findings.json", max_changes=1, dest="plan.json")

    assert result["failed"] is True
    assert "3 changes are planned and max_changes is 1" in result["msg"]
    assert result["changes"] == 3
    assert "records" not in result
    assert (folder / "plan.json").exists()


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every folder is deleted after the job."""
    monkeypatch.setattr(stage, "find_loss", lambda path: "it is inside the container")


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder is deleted after the job."""
    monkeypatch.setattr(stage, "find_loss", lambda path: "")


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

    assert result["output_lost"].startswith(f"The journal in {folder}/out is lost after this job")
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

    assert "3 changes are planned and max_changes is 1" in result["msg"]
    assert result["output_lost"] == "" and warned == []


@pytest.mark.usefixtures("kept")
def test_a_folder_that_is_kept_is_not_mentioned(run: Run, warned: list[str]) -> None:
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
    findings["summary"]["coverage"]["failed_checks"] = ["A cell does not answer."]
    edit(folder / "findings.json", summary=findings["summary"])

    result = run(findings="findings.json", dest="plan.json")

    assert result["failed"] is True
    assert result["msg"].endswith("A cell does not answer.")
    assert not (folder / "plan.json").exists()


PROJECT = "9f8e7d6c5b4a39281706f5e4d3c2b1a0"
RACK = {
    "aggregates": ["9f8e7d6c-5b4a-3928-1706-f5e4d3c2b1a0"],
    "aggregate_names": ["rack-7"],
    "aggregate_numbers": ["7"],
    "availability_zones": [],
    "cells": [],
    "hosts": ["compute-1"],
}
ZONE = {
    "aggregates": [],
    "aggregate_names": [],
    "aggregate_numbers": [],
    "availability_zones": ["az1"],
    "cells": ["cell1"],
    "hosts": ["compute-1"],
}


@pytest.mark.parametrize(
    ("detected", "named"),
    [
        ({}, {}),
        ({"hosts": ["compute-1"]}, {}),
        ({"hosts": ["compute-1"]}, {"hosts": [], "consumers": []}),
        ({"hosts": ["compute-1"]}, {"hosts": ["compute-1"]}),
        ({"hosts": ["compute-1"]}, {"hosts": ["compute-2", "compute-1"]}),
        ({"projects": [PROJECT], "project_names": ["web"]}, {"projects": ["web"]}),
        ({"projects": [PROJECT], "project_names": ["web"]}, {"projects": [PROJECT.upper()]}),
        ({"projects": [PROJECT]}, {"projects": ["9F8E7D6C-5b4a-3928-1706-f5e4d3c2b1a0"]}),
        ({"kinds": ["deleted_server"]}, {"kinds": ["deleted_server", "extra_host"]}),
        ({"groups": RACK}, {}),
        ({"groups": RACK}, {"aggregates": ["rack-7"]}),
        ({"groups": RACK}, {"aggregates": ["7"]}),
        ({"groups": RACK}, {"aggregates": [PROJECT, "rack-8"]}),
        ({"groups": ZONE}, {"availability_zones": ["az1", "az2"], "cells": ["cell1"]}),
    ],
)
def test_findings_of_what_is_named_are_planned(
    folder: Path, run: Run, detected: dict[str, t.Any], named: dict[str, t.Any]
) -> None:
    scope = json.loads((folder / "findings.json").read_text())["scope"]
    edit(folder / "findings.json", scope={**scope, **detected})

    result = run(findings="findings.json", scope=named)

    assert result["changes"] > 0
    assert "failed" not in result


@pytest.mark.parametrize(
    ("detected", "named"),
    [
        ({}, {"hosts": ["compute-1"]}),
        ({}, {"consumers": ["6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"]}),
        ({}, {"projects": ["web"]}),
        ({}, {"kinds": ["deleted_server"]}),
        ({"hosts": ["compute-1", "compute-2"]}, {"hosts": ["compute-1"]}),
        ({"hosts": ["compute-1"]}, {"hosts": ["compute-1"], "projects": ["web"]}),
        ({"projects": [PROJECT], "project_names": ["web"]}, {"projects": ["shop"]}),
        ({"projects": [PROJECT], "project_names": [""]}, {"projects": ["web"]}),
        ({}, {"aggregates": ["rack-7"]}),
        ({}, {"availability_zones": ["az1"]}),
        ({}, {"cells": ["cell1"]}),
        ({"groups": RACK}, {"aggregates": ["rack-8"]}),
        ({"groups": RACK}, {"availability_zones": ["rack-7"]}),
        ({"groups": RACK}, {"hosts": ["compute-1"]}),
        ({"hosts": ["rack-7"]}, {"aggregates": ["rack-7"]}),
        ({"groups": ZONE}, {"availability_zones": ["az2"], "cells": ["cell1"]}),
        ({"groups": ZONE}, {"availability_zones": ["az1"], "cells": ["cell2"]}),
    ],
)
def test_findings_of_more_than_is_named_are_refused(
    folder: Path, run: Run, detected: dict[str, t.Any], named: dict[str, t.Any]
) -> None:
    """Otherwise an earlier detection of the whole cloud would be changed, and not one host."""
    scope = json.loads((folder / "findings.json").read_text())["scope"]
    edit(folder / "findings.json", scope={**scope, **detected})

    result = run(findings="findings.json", scope=named, dest="plan.json")

    assert result["failed"] is True
    assert "The findings are not only about the" in result["msg"]
    assert not (folder / "plan.json").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "one of the following is required: findings, plan"),
        ({"findings": "nothing.json"}, "nothing.json cannot be read"),
        ({"findings": "other.json"}, "it has no format"),
        ({"plan": "findings.json"}, "The plan does not have the form that orphan_plan writes"),
        ({"plan": {"compact": True}}, "it has no format"),
        ({"plan": {"compact": True, "format": 1}}, "a compact plan of an earlier version"),
        ({"plan": "osops.placement.plan:1:eNq"}, "exported by version 2.0"),
        ({"findings": "findings.json", "kinds": ["stale_service"]}, "value of kinds must be one"),
        (
            {"findings": "findings.json", "plan": {"format": 1}},
            "findings and plan are both set",
        ),
        ({"heal": True, "plan": {"format": 1}}, "heal needs findings"),
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

    assert result["failed"] is True
    assert "its digest does not match" in result["msg"]


def test_a_pack_with_another_kind_is_refused(run: Run) -> None:
    packed = run(findings="findings.json", kinds=KINDS)["packed"]
    result = run(plan=packed, kinds=["deleted_server"])

    assert result["failed"] is True
    assert "nothing was changed" in result["msg"]
