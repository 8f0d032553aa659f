# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pattern for Automation Platform.

It matches the data for AWX, and nothing in it can write.
"""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
import yaml

PATTERN = Path(__file__).parents[3] / "extensions" / "patterns" / "orphan_cleanup"
# https://github.com/ansible/pattern-service/blob/main/specifications/pattern_specification.json
ASKED = ("type", "question_name", "question_description", "variable", "required")


def read(path: Path) -> t.Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture(name="pattern")
def _pattern() -> t.Any:
    return json.loads((PATTERN / "meta" / "pattern.json").read_text(encoding="utf-8"))


@pytest.fixture(name="job")
def _job(pattern: t.Any) -> t.Any:
    jobs = pattern["aap_resources"]["controller_job_templates"]
    assert len(jobs) == 1 and jobs[0]["primary"]
    return jobs[0]


def test_pattern_has_the_name_of_its_folder_and_the_required_parts(pattern: t.Any) -> None:
    assert pattern["name"] == PATTERN.name
    assert {"schema_version", "title", "description", "short_description"} <= set(pattern) and len(
        pattern["title"]
    ) <= 64
    assert (PATTERN / "README.md").exists()


def test_pattern_describes_the_variables_of_its_survey_as_arguments(job: t.Any) -> None:
    path = (PATTERN / "playbooks" / job["playbook"]).with_suffix(".meta.yml")
    options = yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]["find_orphans"][
        "options"
    ]

    assert job["survey"]["spec"]
    for question in job["survey"]["spec"]:
        option = options[question["variable"]]
        assert option["default"] == question["default"]
        assert set(question.get("choices", ())) <= set(option.get("choices", ()))


def test_pattern_survey_is_enabled(job: t.Any) -> None:
    """Without this the controller creates the survey, and never asks it."""
    assert job["survey_enabled"] is True


def test_pattern_job_only_reads(job: t.Any) -> None:
    first, last = yaml.safe_load(
        (PATTERN / "playbooks" / job["playbook"]).read_text(encoding="utf-8")
    )

    assert Path(last["ansible.builtin.import_playbook"]).name == "detect_orphans.yml"
    tasks = [task["ansible.builtin.import_tasks"] for task in first["tasks"]]
    assert tasks == ["tasks/require_mounted_dir.yml"]


def test_pattern_job_is_one_of_the_awx_jobs(job: t.Any) -> None:
    known = yaml.safe_load((PATTERN / "setup.yml").read_text(encoding="utf-8"))["awx_objects"]

    assert [entry["survey"] for entry in known if entry["name"] == job["name"]] == [job["playbook"]]


def test_pattern_survey_matches_the_awx_survey(job: t.Any) -> None:
    survey = yaml.safe_load(
        (PATTERN / "template_surveys" / job["playbook"]).read_text(encoding="utf-8")
    )

    assert {key: job["survey"][key] for key in ("name", "description")} == {
        key: survey[key] for key in ("name", "description")
    }
    assert [
        [question[key] for key in (*ASKED, "default")] for question in job["survey"]["spec"]
    ] == [[question[key] for key in (*ASKED, "default")] for question in survey["spec"]]
    assert [question.get("choices", "") for question in job["survey"]["spec"]] == [
        question["choices"] for question in survey["spec"]
    ]


def test_only_questions_without_a_default_must_be_answered() -> None:
    """A schedule and a rulebook answer nothing."""
    surveys = list((PATTERN / "template_surveys").glob("*.yml"))

    assert surveys
    for path in surveys:
        for question in read(path)["spec"]:
            without = question["default"] == "" and (question["min"] == 1 or question["choices"])
            assert question["required"] is bool(without), (path.name, question["variable"])


def test_questions_about_hosts_say_how_to_type_a_name_that_is_no_text_to_yaml() -> None:
    hosts = ("placement_hosts", "host_decommission_target")
    asked = [
        question["question_description"]
        for path in (PATTERN / "template_surveys").glob("*.yml")
        for question in read(path)["spec"]
        if question["variable"] in hosts
    ]

    assert len(asked) == 3
    for description in asked:
        assert description.endswith("Put a name such as 12345 or no in quotes.")


def test_each_node_answers_with_a_choice_of_its_survey_and_each_choice_is_explained() -> None:
    (question,) = read(PATTERN / "template_surveys" / "explain_outcome.yml")["spec"]
    answers = []
    for entry in read(PATTERN / "setup.yml")["awx_objects"]:
        answer = entry.get("fields", {})
        if entry["in"] == "workflow_job_template_nodes" and answer["extra_data"]:
            answers.append(answer["extra_data"][question["variable"]])
    (play,) = read(PATTERN / "playbooks" / "explain_outcome.yml")

    assert sorted(answers) == sorted(question["choices"])
    assert sorted(play["vars"]["_placement_messages"]) == sorted(question["choices"])


def test_every_way_into_a_node_of_the_workflow_is_a_single_one() -> None:
    """A second way in could lead around the approval."""
    ways: list[str] = []
    for entry in read(PATTERN / "setup.yml")["awx_objects"]:
        if entry["in"] == "workflow_job_template_nodes":
            assert entry["fields"]["all_parents_must_converge"] is False
            for following in entry["edges"].values():
                ways += following

    assert len(ways) == len(set(ways)) == 6
    assert ways.count("workflow_job_template_nodes/apply") == 1


def test_no_team_may_launch_what_was_approved() -> None:
    templates = {
        entry["name"]: entry.get("roles", {})
        for entry in read(PATTERN / "setup.yml")["awx_objects"]
        if entry["in"] in ("job_templates", "workflow_job_templates")
    }

    assert set(templates["Placement: apply what was approved"]) == {"read_role"}
    launched = [name for name, roles in templates.items() if "execute_role" in roles]
    assert sorted(launched) == ["Placement: clean up after approval", "Placement: find orphans"]
    assert not any("admin_role" in roles for roles in templates.values())


def test_project_is_fetched_at_the_tag_of_the_version() -> None:
    """A collection that was installed has no galaxy.yml, and MANIFEST.json instead."""
    (play,) = read(PATTERN / "apply.yml")
    variables = play["vars"]

    assert variables["awx_scm_branch"] == "{{ awx_version }}"
    assert "/galaxy.yml" in variables["awx_manifest"]
    assert "/MANIFEST.json" in variables["awx_manifest"]


def test_every_playbook_imports_one_of_the_collection() -> None:
    playbooks = [
        path
        for path in (PATTERN / "playbooks").glob("*.yml")
        if not path.name.endswith(".meta.yml")
    ]

    assert playbooks
    # This one only speaks about the jobs before it.
    playbooks.remove(PATTERN / "playbooks" / "explain_outcome.yml")
    for path in playbooks:
        imported = yaml.safe_load(path.read_text(encoding="utf-8"))[-1][
            "ansible.builtin.import_playbook"
        ]

        assert (path.parent / imported).resolve().parent == PATTERN.parents[2] / "playbooks"
        assert (path.parent / imported).exists()
