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
        for question in yaml.safe_load(path.read_text(encoding="utf-8"))["spec"]:
            without = question["default"] == "" and question["min"] == 1
            assert question["required"] is without, (path.name, question["variable"])


def test_every_playbook_imports_one_of_the_collection() -> None:
    playbooks = [
        path
        for path in (PATTERN / "playbooks").glob("*.yml")
        if not path.name.endswith(".meta.yml")
    ]

    assert playbooks
    for path in playbooks:
        imported = yaml.safe_load(path.read_text(encoding="utf-8"))[-1][
            "ansible.builtin.import_playbook"
        ]

        assert (path.parent / imported).resolve().parent == PATTERN.parents[2] / "playbooks"
        assert (path.parent / imported).exists()
