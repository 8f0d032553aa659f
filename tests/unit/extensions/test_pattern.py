"""The pattern for Automation Platform.

It matches the data for AWX, and nothing in it can write.
"""

from __future__ import annotations

import json
import re
import typing as t
from pathlib import Path

import pytest
import yaml

from ....tools.pages.options import NOT_OF_PATTERN

ROOT = Path(__file__).parents[3]
PATTERN = ROOT / "extensions" / "patterns" / "orphan_cleanup"

# What follows is from version 1.0.0 of the specification and of its schema, and from the service
# that creates the objects: https://github.com/ansible/pattern-service

# The keys that an object must have, and those that the schema knows besides.
_NAMED = {"name", "description"}
REQUIRED = {
    "pattern": _NAMED | {"schema_version", "title", "short_description", "aap_resources"},
    "aap_resources": {"controller_project", "controller_job_templates"},
    "controller_project": _NAMED,
    "controller_execution_environment": _NAMED | {"image_name"},
    "job": _NAMED | {"playbook"},
    "survey": _NAMED | {"spec"},
}
_ASKED_ON_LAUNCH = {f"ask_{name}_on_launch" for name in ("credential", "inventory", "verbosity")}
OPTIONAL: dict[str, set[str]] = {
    "pattern": {"tags"},
    # The service creates both without asking whether they are there.
    "aap_resources": {"controller_execution_environment", "controller_labels"},
    "controller_project": set(),
    "controller_execution_environment": {"pull"},
    # The schema has no `survey_enabled`, and does not forbid it: the service sends it to the
    # controller.
    "job": {"execution_environment", "primary", "labels", "survey", "survey_enabled"}
    | _ASKED_ON_LAUNCH,
    "survey": set(),
}
ASKED = ("type", "question_name", "question_description", "variable", "required")
QUESTION_TYPES = {"text", "textarea", "password", "integer", "float"}
QUESTION_TYPES |= {"multiplechoice", "multiselect"}
MAX_TITLE = MAX_PATTERN_NAME = MAX_VARIABLE = 64
MAX_NAME = 200
APPLIED = "Placement: apply what was approved"
PULL = {"always", "missing", "never"}

OWN_INPUT = {"placement_hosts", "placement_mounted_dir"}


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


@pytest.fixture(name="options")
def _options(job: t.Any) -> t.Any:
    """The arguments that the playbook describes."""
    path = (PATTERN / "playbooks" / job["playbook"]).with_suffix(".meta.yml")
    return yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"][path.stem[:-5]][
        "options"
    ]


def test_pattern_has_the_name_of_its_folder_and_the_required_files(pattern: t.Any) -> None:
    assert pattern["name"] == PATTERN.name
    assert re.fullmatch(r"[a-z0-9_]+", PATTERN.name) and len(PATTERN.name) <= MAX_PATTERN_NAME
    assert PATTERN.parent == ROOT / "extensions" / "patterns"
    assert [path.name for path in (PATTERN / "meta").iterdir()] == ["pattern.json"]
    assert (PATTERN / "README.md").exists()


def test_pattern_has_the_parts_of_the_schema_and_no_others(pattern: t.Any, job: t.Any) -> None:
    resources = pattern["aap_resources"]
    parts = {"pattern": pattern, "aap_resources": resources, "job": job, "survey": job["survey"]}
    for name in ("controller_project", "controller_execution_environment"):
        parts[name] = resources[name]

    for name, part in parts.items():
        assert REQUIRED[name] <= set(part) <= REQUIRED[name] | OPTIONAL[name], name


def test_pattern_texts_are_as_short_as_the_schema_wants_them(pattern: t.Any, job: t.Any) -> None:
    resources = pattern["aap_resources"]

    assert pattern["schema_version"] == "1.0"
    assert len(pattern["title"]) <= MAX_TITLE
    assert (
        not pattern["short_description"].endswith(".") and "\n" not in pattern["short_description"]
    )
    parts = (resources[f"controller_{name}"] for name in ("project", "execution_environment"))
    assert all(0 < len(named["name"]) <= MAX_NAME for named in (job, *parts))
    for tags in (pattern["tags"], resources["controller_labels"], job["labels"]):
        assert tags and len(set(tags)) == len(tags)


def test_pattern_job_uses_only_what_the_pattern_creates(pattern: t.Any, job: t.Any) -> None:
    resources = pattern["aap_resources"]
    environment = resources["controller_execution_environment"]

    assert job["execution_environment"] == environment["name"]
    # The image in the private automation hub, whose host the service puts before it.
    assert re.fullmatch(r"[a-z0-9_.-]+/[a-z0-9_.-]+", environment["image_name"])
    assert environment["pull"] in PULL
    assert set(job["labels"]) <= set(resources["controller_labels"])
    assert (PATTERN / "playbooks" / job["playbook"]).is_file()


def test_pattern_job_asks_for_what_is_no_variable(job: t.Any) -> None:
    assert job["ask_credential_on_launch"] is True and job["ask_inventory_on_launch"] is True


def test_pattern_questions_have_the_form_of_the_schema(job: t.Any) -> None:
    questions = job["survey"]["spec"]

    assert questions
    for question in questions:
        assert set(ASKED) <= set(question) <= {*ASKED, "choices", "default"}
        assert question["type"] in QUESTION_TYPES and isinstance(question["required"], bool)
        assert re.fullmatch(r"[a-z0-9_]+", question["variable"])
        assert len(question["variable"]) <= MAX_VARIABLE
        assert isinstance(question.get("default", ""), str)
        assert question["type"] != "multiplechoice" or "choices" in question
        assert all(isinstance(choice, str) for choice in question.get("choices", ()))


def test_pattern_describes_the_variables_of_its_survey_as_arguments(
    job: t.Any, options: t.Any
) -> None:
    for question in job["survey"]["spec"]:
        option = options[question["variable"]]
        assert option.get("default") == question.get("default")
        assert set(question.get("choices", ())) <= set(option.get("choices", ()))


def test_pattern_describes_every_input_variable_as_the_role_does(options: t.Any) -> None:
    """All required and optional variables must be described, not only those of the survey."""
    path = ROOT / "roles" / "orphan_cleanup" / "meta" / "argument_specs.yml"
    role = yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]["main"]["options"]

    assert set(options) == (set(role) - set(NOT_OF_PATTERN)) | OWN_INPUT
    for name in set(role) - set(NOT_OF_PATTERN):
        described = {key: value for key, value in options[name].items() if key != "description"}
        keys = ("type", "elements", "choices", "default", "required")
        assert described == {key: role[name][key] for key in keys if key in role[name]}, name
    assert all(isinstance(option["description"], str) for option in options.values())


def test_pattern_survey_is_enabled(job: t.Any) -> None:
    """Without this the controller creates the survey, and never asks it."""
    assert job["survey_enabled"] is True


def test_pattern_job_only_reads(job: t.Any) -> None:
    first, last = yaml.safe_load(
        (PATTERN / "playbooks" / job["playbook"]).read_text(encoding="utf-8")
    )

    assert last["ansible.builtin.import_playbook"] == "osops.placement.detect_orphans"
    tasks = [task["ansible.builtin.import_tasks"] for task in first["tasks"]]
    assert tasks == ["tasks/require_mounted_dir.yml"]


def test_pattern_job_is_one_of_the_awx_jobs(job: t.Any) -> None:
    known = yaml.safe_load((PATTERN / "setup.yml").read_text(encoding="utf-8"))["awx_objects"]

    assert [entry["survey"] for entry in known if entry["name"] == job["name"]] == [job["playbook"]]


def test_pattern_survey_matches_the_awx_survey(job: t.Any) -> None:
    survey, ours = read(PATTERN / "template_surveys" / job["playbook"]), job["survey"]

    assert [ours[key] for key in ("name", "description")] == [survey["name"], survey["description"]]
    for question, other in zip(ours["spec"], survey["spec"], strict=True):
        assert [question[key] for key in ASKED] == [other[key] for key in ASKED]
        assert question["default"] == other["default"]
        assert question.get("choices", "") == other["choices"]


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

    assert len(asked) == 5
    for description in asked:
        assert description.endswith(" in quotes.")


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

    assert len(ways) == len(set(ways)) == 8
    assert ways.count("workflow_job_template_nodes/apply") == 1
    assert ways.count("workflow_job_template_nodes/decommission") == 1


def test_only_an_approval_leads_from_a_drained_host_to_its_deletion() -> None:
    nodes = {
        entry["name"]: entry
        for entry in read(PATTERN / "setup.yml")["awx_objects"]
        if entry["in"] == "workflow_job_template_nodes"
    }

    # A drain that leaves servers has failed, and nobody is asked then.
    assert nodes["drain"]["edges"] == {
        "success_nodes": ["workflow_job_template_nodes/approve_decommission"]
    }
    assert "approval" in nodes["approve_decommission"]
    assert nodes["approve_decommission"]["edges"] == {
        "success_nodes": ["workflow_job_template_nodes/decommission"]
    }
    assert nodes["decommission"]["edges"] == {}


def test_no_team_may_launch_what_was_approved() -> None:
    templates = {
        entry["name"]: entry.get("roles", {})
        for entry in read(PATTERN / "setup.yml")["awx_objects"]
        if entry["in"] in ("job_templates", "workflow_job_templates")
    }

    assert set(templates[APPLIED]) == {"read_role"}
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


def test_every_playbook_imports_one_of_the_collection_by_its_full_name() -> None:
    """By a path it would import that of the checkout, and not that of the image."""
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

        namespace, _dot, name = imported.rpartition(".")
        assert namespace == "osops.placement"
        assert (ROOT / "playbooks" / f"{name}.yml").exists()
