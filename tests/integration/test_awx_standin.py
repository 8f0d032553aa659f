# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stand-in for AWX refuses what a real AWX 24.6 refuses."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.osops.placement.tests.integration.awx.api import TOKEN, Awx
from ansible_collections.osops.placement.tests.integration.awx.prepare import (
    Jobs,
    create,
    create_template,
    finish,
    prepare,
    set_survey,
)
from ansible_collections.osops.placement.tests.integration.awx.rights import User

if t.TYPE_CHECKING:
    from ansible_collections.osops.placement.tests.integration.awx.kinds import Entry

CHOICE = {
    "question_name": "When",
    "type": "multiplechoice",
    "variable": "when",
    "required": True,
    "default": "now",
    "choices": ["now", "later"],
}
TEXT = {**CHOICE, "type": "text", "variable": "hosts", "required": False, "default": ""}
MANY = {**CHOICE, "type": "multiselect", "variable": "kinds", "required": False}
NUMBER = {**TEXT, "type": "integer", "variable": "count", "default": 1, "min": 1, "max": 10}
RRULE = "DTSTART;TZID=UTC:20260101T030000 RRULE:FREQ=DAILY;INTERVAL=1"


@pytest.fixture
def jobs() -> Jobs:
    return Jobs()


@pytest.fixture
def awx(jobs: Jobs) -> Awx:
    return prepare(jobs)


@pytest.fixture
def tokens(awx: Awx) -> dict[str, str]:
    """Tokens of several users, by what they may do."""
    users = {
        "organization": User(administers=frozenset({awx.default["id"]})),
        "reader": User(system_administrator=True, scope="read"),
        "nobody": User(),
    }
    awx.users |= users
    return {name: name for name in users}


@pytest.mark.parametrize(
    ("question", "error"),
    [
        ({**CHOICE, "choices": ["later"]}, "Default choice must be answered"),
        ({**MANY, "default": ["now"]}, "expected to be multiselect"),
        ({**MANY, "default": "now\nlater\nnever"}, "Default choice must be answered"),
        ({**NUMBER, "default": "1"}, "expected to be integer"),
        ({**NUMBER, "max": "10"}, "The max limit"),
        ({**TEXT, "type": "date"}, "not one of the allowed question types"),
        ({**TEXT, "required": "no"}, "'required' in survey question 0 expected to be bool"),
        ({key: TEXT[key] for key in ("type", "variable", "required")}, "'question_name' missing"),
        ({key: MANY[key] for key in MANY if key != "choices"}, "must specify choices"),
    ],
)
def test_survey_with_a_mistake_is_refused(awx: Awx, question: Entry, error: str) -> None:
    status, body = set_survey(awx, create_template(awx, "plan"), question)

    assert status == 400 and error in body["error"]


def test_survey_without_a_name_is_accepted_and_one_with_a_variable_twice_is_not(awx: Awx) -> None:
    template = create_template(awx, "plan")

    assert set_survey(awx, template, CHOICE, {**MANY, "default": "now\nlater"})[0] == 200
    status, body = set_survey(awx, template, TEXT, TEXT)
    assert status == 400 and "duplicated" in body["error"]


def test_required_question_needs_an_answer_although_it_has_a_default(awx: Awx, jobs: Jobs) -> None:
    template = create_template(awx, "plan", survey_enabled=True)
    set_survey(awx, template, CHOICE, TEXT, MANY, NUMBER)
    schedule = {"name": "nightly", "unified_job_template": template["id"], "rrule": RRULE}
    missing = {"variables_needed_to_start": ["'when' value missing"]}

    assert awx.ask("POST", f"job_templates/{template['id']}/launch/") == (400, missing)
    assert awx.ask("POST", "schedules/", schedule) == (400, missing)
    answered = {**schedule, "extra_data": {"when": "later"}}
    assert awx.ask("POST", "schedules/", answered)[0] == 201

    awx.run_schedule("nightly")

    # The default of a multiselect is text, and so never an answer.
    assert jobs.ran == [("plan.yml", {"when": "later", "hosts": "", "count": 1}, False)]


def test_disabled_survey_asks_nothing(awx: Awx, jobs: Jobs) -> None:
    template = create_template(awx, "plan")
    set_survey(awx, template, CHOICE)

    assert awx.ask("POST", f"job_templates/{template['id']}/launch/")[0] == 201
    assert jobs.ran == [("plan.yml", {}, False)]


def test_schedule_may_not_give_a_variable_that_the_template_does_not_ask_for(awx: Awx) -> None:
    template = create_template(awx, "plan", extra_vars=json.dumps({"own": 1}))
    schedule = {"name": "nightly", "unified_job_template": template["id"], "rrule": RRULE}

    status, body = awx.ask("POST", "schedules/", {**schedule, "extra_data": {"other": 1}})

    assert status == 400 and "other" in body["extra_data"][0]
    assert awx.ask("POST", "schedules/", {**schedule, "extra_data": {"own": 1}})[0] == 201
    launch = f"job_templates/{template['id']}/launch/"
    status, body = awx.ask("POST", launch, {"extra_vars": {"other": 1}})
    assert (status, body["ignored_fields"]) == (201, {"extra_vars": {"other": 1}})


def test_project_syncs_when_it_is_created_or_its_source_changes_or_on_demand(awx: Awx) -> None:
    project = awx.named("projects", "Placement")
    path = f"projects/{project['id']}/"
    assert project["status"] == "successful"

    assert awx.ask("PATCH", path, {"description": "other"})[1]["status"] == "successful"
    assert awx.ask("PATCH", path, {"scm_branch": "wrong"})[1]["status"] == "pending"
    assert finish(awx) == "failed"
    failed = awx.ask("GET", path)[1]["summary_fields"]["last_job"]
    update = awx.ask("GET", f"project_updates/{failed['id']}/")[1]
    output = awx.ask("GET", f"project_updates/{failed['id']}/stdout/?format=json")[1]
    assert update["status"] == "failed" and "'wrong' did not match" in output["content"]

    awx.ask("PATCH", path, {"scm_branch": "main"})
    assert finish(awx) == "successful"
    awx.projects.repository.branches["main"] = "newer"
    assert finish(awx) == "successful" and project["scm_revision"] != "newer"
    assert awx.ask("POST", f"{path}update/")[0] == 202
    assert finish(awx) == "successful" and project["scm_revision"] == "newer"


def test_job_of_a_project_whose_sync_failed_does_not_start(awx: Awx) -> None:
    template = create_template(awx, "plan")
    awx.projects.repository.failures = [{"stdout": "no network"}]
    awx.ask("POST", f"projects/{awx.named('projects', 'Placement')['id']}/update/")
    finish(awx)

    status, body = awx.ask("POST", f"job_templates/{template['id']}/launch/")

    assert status == 400 and "failed project update" in body["playbook"][0]


def test_names_are_unique_within_the_organization_of_the_project(awx: Awx) -> None:
    create_template(awx, "plan")
    elsewhere = awx.store.add("organizations", {"name": "Elsewhere"})
    project = create(
        awx, "projects", name="Placement", scm_type="git", organization=elsewhere["id"]
    )
    for _step in range(3):
        awx.ask("GET", f"projects/{project['id']}/")
    fields = {
        "name": "plan",
        "playbook": "plan.yml",
        "inventory": awx.named("inventories", "Placement")["id"],
        # AWX ignores it.
        "organization": awx.default["id"],
    }

    status, body = awx.ask("POST", "job_templates/", {**fields, "project": project["id"]})

    assert status == 201 and body["organization"] == elsewhere["id"]
    mine = awx.named("projects", "Placement", awx.default)["id"]
    status, body = awx.ask("POST", "job_templates/", {**fields, "project": mine})
    assert status == 400 and "(name, organization)" in body["__all__"][0]
    environment = {"name": "one", "image": "example.org/one", "organization": awx.default["id"]}
    create(awx, "execution_environments", **environment)
    again = {**environment, "organization": elsewhere["id"]}
    assert awx.ask("POST", "execution_environments/", again)[0] == 400


def test_template_has_one_credential_of_each_type(awx: Awx) -> None:
    template = create_template(awx, "plan")
    old, new = awx.named("credentials", "OpenStack admin"), awx.add_credential("new", awx.default)
    vault = awx.store.add("credential_types", {"name": "Vault"})
    other = awx.add_credential("secret", awx.default, vault)
    path = f"job_templates/{template['id']}/credentials/"

    assert awx.ask("POST", path, {"id": old["id"]}) == (204, None)
    assert awx.ask("POST", path, {"id": other["id"]}) == (204, None)
    refused = {"error": "Cannot assign multiple OpenStack credentials."}
    assert awx.ask("POST", path, {"id": new["id"]}) == (400, refused)
    assert awx.ask("POST", path, {"id": old["id"], "disassociate": True}) == (204, None)
    assert awx.ask("POST", path, {"id": new["id"]}) == (204, None)
    assert awx.linked("job_templates", "plan", "credentials") == ["secret", "new"]


def test_webhook_comes_back_with_more_than_was_sent(awx: Awx) -> None:
    sent = {"url": "http://127.0.0.1/", "headers": {}, "http_method": "POST"}
    made = create(
        awx,
        "notification_templates",
        name="hook",
        organization=awx.default["id"],
        notification_type="webhook",
        notification_configuration=sent,
    )

    more = {"username": "", "password": "$encrypted$", "disable_ssl_verification": False}
    assert made["notification_configuration"] == {**sent, **more}


def test_long_list_comes_in_pages(awx: Awx) -> None:
    for number in range(30):
        create(awx, "inventories", name=f"inventory {number}", organization=awx.default["id"])

    first = awx.ask("GET", "inventories/?page_size=20")[1]
    second = awx.ask("GET", first["next"].removeprefix("/api/v2/"))[1]

    assert (first["count"], len(first["results"]), len(second["results"])) == (31, 20, 11)
    assert second["next"] is None
    assert awx.ask("GET", "inventories/?nme=x")[0] == 400


def test_organization_administrator_needs_an_organization_for_everything(
    awx: Awx, tokens: dict[str, str]
) -> None:
    environment = {"name": "one", "image": "example.org/one"}
    own = {**environment, "organization": awx.default["id"]}
    path = "execution_environments/"

    assert awx.ask("POST", path, environment, tokens["organization"])[0] == 403
    assert awx.ask("POST", path, own, tokens["nobody"])[0] == 403
    assert awx.ask("POST", path, own, tokens["organization"])[0] == 201
    assert awx.ask("POST", path, {**environment, "name": "other"}, TOKEN)[0] == 201


def test_token_that_may_only_read_writes_nothing(awx: Awx, tokens: dict[str, str]) -> None:
    assert awx.ask("GET", "projects/", token=tokens["reader"])[1]["count"] == 1
    assert awx.ask("POST", "inventories/", {"name": "new"}, tokens["reader"])[0] == 403
    assert awx.ask("GET", "projects/", token=tokens["nobody"])[1]["count"] == 0
    assert awx.ask("GET", "projects/", token="wrong")[0] == 401


def test_deletion_may_have_the_body_null(awx: Awx) -> None:
    """Ansible's uri module sends it where a task names no body."""
    path = f"/api/v2/projects/{awx.named('projects', 'Placement')['id']}/"

    assert awx.answer(TOKEN, "DELETE", path, {}, None) == (204, None)
    assert not awx.objects["projects"]


def test_objects_have_an_address_with_their_name(awx: Awx, jobs: Jobs) -> None:
    create_template(awx, "plan: first")

    assert awx.ask("POST", "job_templates/plan%3A%20first++Default/launch/")[0] == 201
    assert awx.ask("POST", "job_templates/plan%3A%20first++Elsewhere/launch/")[0] == 404
    found = awx.ask("GET", "unified_job_templates/?name=plan: first")[1]["results"]
    assert [entry["type"] for entry in found] == ["job_template"]
    assert found[0]["summary_fields"]["organization"]["name"] == "Default"
    assert found[0]["related"]["launch"] == f"/api/v2/job_templates/{found[0]['id']}/launch/"


def test_credential_of_another_kind_is_refused(awx: Awx) -> None:
    project = awx.named("projects", "Placement")["id"]
    fields = {"name": "one", "image": "example.org/one", "organization": awx.default["id"]}
    openstack = awx.named("credentials", "OpenStack admin")["id"]
    git = awx.add_credential("git", awx.default, awx.source_control)["id"]
    registry = awx.add_credential("registry", awx.default, awx.registry)["id"]

    for wrong in (openstack, registry):
        body = {"credential": ["Credential kind must be 'scm'."]}
        assert awx.ask("PATCH", f"projects/{project}/", {"credential": wrong}) == (400, body)
    changed = awx.ask("PATCH", f"projects/{project}/", {"credential": git})
    assert changed[0] == 200 and changed[1]["status"] == "successful", "this starts no sync"
    for wrong in (openstack, git):
        given = {**fields, "credential": wrong}
        status, body = awx.ask("POST", "execution_environments/", given)
        assert status == 400 and "Only Container Registry" in body["credential"][0]
    assert awx.ask("POST", "execution_environments/", {**fields, "credential": registry})[0] == 201
    found = awx.ask("GET", "credentials/?name=git&credential_type__namespace=scm")[1]["results"]
    assert [(entry["id"], entry["kind"]) for entry in found] == [(git, "scm")]


def test_instance_groups_keep_their_order_and_need_a_role_of_their_own(
    awx: Awx, tokens: dict[str, str]
) -> None:
    template = create_template(awx, "plan")["id"]
    groups = [awx.store.add("instance_groups", {"name": name})["id"] for name in ("b", "a")]
    path = f"job_templates/{template}/instance_groups/"

    assert awx.ask("POST", path, {"id": groups[0]}, tokens["organization"])[0] == 403
    assert awx.ask("GET", "instance_groups/", token=tokens["organization"])[1]["count"] == 0
    uses = frozenset((key, "use") for key in groups)
    awx.users["uses"] = User(administers=frozenset({awx.default["id"]}), roles=uses)
    awx.users["only uses"] = User(roles=uses)
    assert awx.ask("POST", path, {"id": groups[0]}, "only uses")[0] == 403
    for key in (*groups, groups[0]):
        assert awx.ask("POST", path, {"id": key}, "uses") == (204, None)
    shown = awx.ask("GET", path)[1]["results"]
    assert [entry["name"] for entry in shown] == ["b", "a"]


@pytest.mark.parametrize(
    "rrule",
    [
        "DTSTART:20260101T030000 RRULE:FREQ=DAILY;INTERVAL=1",
        "DTSTART:20260101T030000Z RRULE:FREQ=DAILY",
        "DTSTART:20260101T030000Z RRULE:FREQ=SECONDLY;INTERVAL=1",
        "DTSTART:20260101T030000Z RRULE:FREQ=DAILY;INTERVAL=1;COUNT=1;UNTIL=20270101T000000Z",
        "every night",
    ],
)
def test_schedule_with_another_rule_is_refused(awx: Awx, rrule: str) -> None:
    template = create_template(awx, "plan")["id"]
    schedule = {"name": "nightly", "unified_job_template": template}

    assert awx.ask("POST", "schedules/", {**schedule, "rrule": rrule})[0] == 400
    right = "DTSTART:20260101T030000Z RRULE:FREQ=MINUTELY;INTERVAL=10"
    assert awx.ask("POST", "schedules/", {**schedule, "rrule": right})[0] == 201
