"""Jobs as AWX runs them.

A job receives only what the previous one exports, and makes exactly that or nothing.
"""

import json
import re
import typing as t
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from ...plugins.action.validate_variables import ROLES
from ...plugins.module_utils._core.run.pack import pack_files, unpack_files
from ..unit.plugins.module_utils._core.plan.signed import sign
from .automation import NEWEST, OLDEST, PATTERN, Job, job
from .strays import CLAIM, Strays
from .support import Ansible, Minicloud, Placement, has_detected, long

YOUNG = {"orphan_cleanup_min_age": "0", "orphan_cleanup_unknown_min_age": "0"}
FORGOTTEN = {**YOUNG, "orphan_cleanup_remediate_kinds": ["unknown_consumer"]}


@pytest.fixture(params=[long(OLDEST), NEWEST])
def core(request: pytest.FixtureRequest) -> str:
    """The ansible-core that runs the jobs."""
    return request.param


@pytest.fixture
def run(ansible: Ansible, tmp_path: Path, core: str) -> Callable[..., Job]:
    """Run one job after another, each in a folder of its own."""

    def one(playbook: str, variables: dict[str, t.Any], check: bool = False) -> Job:
        folder = tmp_path / str(uuid.uuid4())
        done = job(ansible, folder, playbook, variables, check, core)
        # What a worker of Ansible prints itself is shown as a warning, and not as text.
        assert "errantly sent data" not in done.output
        return done

    return one


def unpacked(text: str) -> dict[str, t.Any]:
    """Return the plan in an exported pack."""
    (files,) = unpack_files([text])
    assert list(files) == ["plan"]
    return files["plan"]


def packed(plan: dict[str, t.Any]) -> str:
    """Return a plan as the pack that a job exports, as a forger would write it."""
    return pack_files({"plan": sign(plan)})


def types_of(value: t.Any) -> t.Any:
    """Return the types of all parts of a value that JSON can have."""
    if isinstance(value, dict):
        return {key: types_of(part) for key, part in value.items()}
    if isinstance(value, list):
        return [types_of(part) for part in value]
    return type(value)


@pytest.fixture
def approved(ansible: Ansible, strays: Strays, tmp_path: Path) -> str:
    """The pack with the plan that removes the strays."""
    (tmp_path / "full.json").write_text(json.dumps(strays.plan))
    return ansible.direct("orphan_plan", plan=str(tmp_path / "full.json"))["packed"]


def answers(survey: str) -> dict[str, t.Any]:
    """Return the variables of a survey whose defaults were all accepted, as AWX builds them."""
    spec = yaml.safe_load((PATTERN / "template_surveys" / f"{survey}.yml").read_text())["spec"]
    return {
        question["variable"]: question["default"].splitlines()
        if question["type"] == "multiselect"
        else question["default"]
        for question in spec
    }


def test_job_applies_exactly_what_another_job_planned(
    run: Callable[..., Job], placement: Placement, strays: Strays, minicloud: Minicloud
) -> None:
    # AWX gives the answers to every job of the workflow.
    survey = {**answers("clean_up_orphans"), **FORGOTTEN, "placement_hosts": "compute-1"}
    before = placement.everything()

    planned = run("clean_up_orphans.yml", survey, check=True)

    assert planned.status == 0, planned.output
    assert placement.everything() == before
    told = planned.artifacts["orphan_cleanup_run"]
    plan = unpacked(planned.artifacts["orphan_cleanup_plan"])
    assert told["changes"] == [change["finding"] for change in plan["changes"]]
    assert (told["check_mode"], told["complete"], told["planned"], told["outcomes"]["removed"]) == (
        True,
        True,
        3,
        3,
    )
    assert told["kinds"]["unknown_consumer"] == 3 and told["verdicts"]["orphaned"] >= 3
    assert told["stranded"]["VCPU"] >= 3 * CLAIM["VCPU"]
    assert sorted(change["consumer"] for change in plan["changes"]) == strays.consumers
    assert len(json.dumps(planned.artifacts)) < 4096
    assert "password" not in json.dumps(planned.artifacts).lower()

    late = str(uuid.uuid4())
    strays.put(late, CLAIM, None)
    try:
        applied = run("apply_approved.yml", {**survey, **planned.artifacts})

        assert applied.status == 0, applied.output
        assert strays.held == []
        assert placement.held(late), "nobody approved that"
        assert applied.artifacts["orphan_cleanup_run"]["outcomes"]["removed"] == 3
        assert Path(applied.artifacts["orphan_cleanup_run"]["journal"]).is_file()
        (part,) = applied.artifacts.pop("orphan_cleanup_journal")
        assert isinstance(part, str)
        for artifacts in (planned.artifacts, applied.artifacts):
            assert types_of(artifacts) == {
                "orphan_cleanup_plan": str,
                "orphan_cleanup_run": {
                    "versions": dict.fromkeys(("collection", "ansible_core", "openstacksdk"), str),
                    "outcome": str,
                    "check_mode": bool,
                    "complete": bool,
                    "verdicts": dict.fromkeys(artifacts["orphan_cleanup_run"]["verdicts"], int),
                    "kinds": dict.fromkeys(artifacts["orphan_cleanup_run"]["kinds"], int),
                    "stranded": dict.fromkeys(artifacts["orphan_cleanup_run"]["stranded"], int),
                    "planned": int,
                    "changes": [str] * 3,
                    "outcomes": dict.fromkeys(told["outcomes"], int),
                    "output_dir": str,
                    "output_lost": str,
                    "journal": str,
                },
            }
            assert all(artifacts["orphan_cleanup_run"]["versions"].values())

        again = run("apply_approved.yml", {**survey, **planned.artifacts})

        assert again.status == 0, again.output
        done = again.artifacts["orphan_cleanup_run"]["outcomes"]
        assert sum(done.values()) == done["skipped"] == 3
        assert placement.held(late)
    finally:
        strays.put(late, {}, 1)


@pytest.mark.long
def test_detection_exports_its_findings_even_when_it_fails(
    run: Callable[..., Job], placement: Placement, strays: Strays
) -> None:
    before = placement.everything()

    found = run(
        "find_orphans.yml",
        {**answers("find_orphans"), **FORGOTTEN, "orphan_cleanup_fail_on": "findings"},
    )

    assert found.status != 0 and "findings are left" in found.output
    plan = unpacked(found.artifacts["orphan_cleanup_plan"])
    assert sorted(change["consumer"] for change in plan["changes"]) == strays.consumers
    assert found.artifacts["orphan_cleanup_run"]["verdicts"]["orphaned"] >= 3
    assert placement.everything() == before


@pytest.mark.long
def test_plan_above_the_limit_is_exported_and_never_applied(
    run: Callable[..., Job], placement: Placement, strays: Strays
) -> None:
    before = placement.everything()
    few = {**FORGOTTEN, "orphan_cleanup_max_changes": 2}

    planned = run("clean_up_orphans.yml", few)
    applied = run("apply_approved.yml", {**few, **planned.artifacts})

    assert planned.status != 0 and applied.status != 0
    assert len(unpacked(planned.artifacts["orphan_cleanup_plan"])["changes"]) == 3
    assert "max_changes is 2" in applied.told
    assert placement.everything() == before


@pytest.mark.long
def test_survey_hosts_are_split_and_only_they_are_read(
    run: Callable[..., Job], strays: Strays
) -> None:
    elsewhere = run("find_orphans.yml", {**FORGOTTEN, "placement_hosts": "compute-2, compute-3,"})
    there = run("find_orphans.yml", {**FORGOTTEN, "placement_hosts": "compute-1"})

    assert elsewhere.artifacts["orphan_cleanup_run"]["changes"] == []
    plan = unpacked(there.artifacts["orphan_cleanup_plan"])
    assert sorted(change["consumer"] for change in plan["changes"]) == strays.consumers


@pytest.mark.long
@pytest.mark.parametrize(
    ("playbook", "variable", "name"),
    [
        ("find_orphans.yml", "placement_hosts", "12345"),
        ("decommission_host.yml", "host_decommission_target", "no"),
        ("decommission_host.yml", "host_decommission_target", "012345"),
    ],
)
def test_survey_host_is_that_which_was_typed_or_refused(
    run: Callable[..., Job],
    core: str,
    placement: Placement,
    playbook: str,
    variable: str,
    name: str,
) -> None:
    """No host has the name, and a message says what was looked for."""
    is_detection = playbook == "find_orphans.yml"
    checking = {} if is_detection else {"host_decommission_stages": ["check"]}
    before = placement.everything()

    plain = run(playbook, {**checking, variable: name})
    quoted = run(playbook, {**checking, variable: f"'{name}'"})

    for done in (quoted, plain) if core == OLDEST else (quoted,):
        assert re.search(rf"(knows |\n){name}(\.|: neither)", done.output)
    if core != OLDEST:
        assert plain.status != 0 and "in quotes," in plain.output
    assert placement.everything() == before


@pytest.mark.long
@pytest.mark.parametrize("region", ["NO", "1", ""])
def test_plan_of_another_region_is_refused_by_the_name_of_the_region(
    run: Callable[..., Job], placement: Placement, strays: Strays, approved: str, region: str
) -> None:
    before = placement.everything()
    forged = packed({**unpacked(approved), "region": region})

    refused = run("apply_approved.yml", {**FORGOTTEN, "orphan_cleanup_plan": forged})

    assert refused.status != 0
    assert f"its region is {region}, and" in refused.told
    assert placement.everything() == before


@pytest.mark.long
def test_job_leaves_out_what_has_changed_since_the_approval(
    ansible: Ansible, placement: Placement, strays: Strays, approved: str
) -> None:
    moved, recreated, kept = strays.consumers
    strays.move(moved)
    strays.put(recreated, {}, 1)
    strays.put(recreated, {**CLAIM, "VCPU": 2}, None)
    before = placement.everything()

    excluded = {"orphan_cleanup_exclude_consumers": [kept]}
    none = ansible.playbook(
        "cleanup_orphans", variables={**FORGOTTEN, **excluded, "orphan_cleanup_plan": approved}
    )

    assert none.read("remediation.json")["tally"]["skipped"] == 3, none.output
    assert placement.everything() == before

    made = ansible.playbook(
        "cleanup_orphans", variables={**FORGOTTEN, "orphan_cleanup_plan": approved}
    )

    assert made.read("remediation.json")["tally"]["removed"] == 1, made.output
    assert not placement.held(kept) and placement.held(moved) and placement.held(recreated)


@pytest.mark.long
def test_plan_can_be_a_pack_for_each_inventory_host(
    ansible: Ansible, strays: Strays, approved: str
) -> None:
    own = {"by_host": {"host localhost": approved}}
    made = ansible.playbook("cleanup_orphans", variables={**FORGOTTEN, "orphan_cleanup_plan": own})

    assert (made.status, strays.held) == (0, []), made.output


@pytest.mark.long
def test_job_reads_no_consumer_when_nothing_is_approved(
    ansible: Ansible, placement: Placement, strays: Strays, approved: str
) -> None:
    """Elsewhere an empty list of consumers means all of them."""
    before = placement.everything()
    empty = packed({**unpacked(approved), "changes": []})

    done = ansible.playbook(
        "cleanup_orphans", variables={**FORGOTTEN, "orphan_cleanup_plan": empty}
    )

    assert (done.status, done.changed) == (0, 0), done.output
    assert not has_detected(done)
    assert placement.everything() == before


def test_job_without_a_plan_changes_nothing(
    run: Callable[..., Job], placement: Placement, strays: Strays
) -> None:
    before = placement.everything()

    alone = run("apply_approved.yml", FORGOTTEN)

    assert alone.status != 0 and "there is none" in alone.told
    assert placement.everything() == before


def test_awx_lists_only_the_playbooks_of_the_pattern() -> None:
    """Checked with the lines that AWX looks for, and the folders that it skips."""
    line = re.compile(
        r"^\s*?-?\s*?(?:hosts|(ansible\.builtin\.)?include|(ansible\.builtin\.)?import_playbook):",
        re.MULTILINE,
    )
    listed = {
        path.relative_to(PATTERN)
        for path in PATTERN.rglob("*.yml")
        if line.search(path.read_text())
    }

    assert listed == {
        *(
            path.relative_to(PATTERN)
            for path in (PATTERN / "playbooks").glob("*.yml")
            if not path.name.endswith(".meta.yml")
        ),
        Path("apply.yml"),
        Path("awx_modules.yml"),
    }
    assert {path.name for path in (PATTERN / "playbooks").iterdir()} >= {
        "find_orphans.yml",
        "apply_approved.yml",
        "decommission_host.yml",
    }


def test_surveys_ask_for_existing_variables() -> None:
    # The playbooks of the pattern read these two.
    known = {"placement_hosts", "placement_outcome"}
    for role in ("orphan_cleanup", "host_decommission"):
        known |= set(ROLES[role].options)
    options = ROLES["orphan_cleanup"].options

    surveys = list((PATTERN / "template_surveys").glob("*.yml"))

    assert surveys
    for path in surveys:
        for question in yaml.safe_load(path.read_text())["spec"]:
            assert question["variable"] in known, (path.name, question["variable"])
            if question["variable"] == "orphan_cleanup_remediate_kinds":
                assert question["choices"] == options[question["variable"]].choices
                assert question["default"].splitlines() == options[question["variable"]].default
