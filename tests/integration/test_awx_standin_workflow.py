# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stand-in for AWX runs workflows as a real AWX 24.6 does, for those who may run them."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.osops.placement.tests.integration.awx.api import Awx
from ansible_collections.osops.placement.tests.integration.awx.prepare import (
    Done,
    Jobs,
    add_nodes,
    create_nodes,
    create_template,
    decide,
    launch,
    prepare,
    set_up_workflow,
)
from ansible_collections.osops.placement.tests.integration.awx.rights import User

if t.TYPE_CHECKING:
    from ansible_collections.osops.placement.tests.integration.awx.kinds import Entry


@pytest.fixture
def jobs() -> Jobs:
    return Jobs()


@pytest.fixture
def awx(jobs: Jobs) -> Awx:
    return prepare(jobs)


def test_edges_of_two_kinds_and_cycles_are_refused_and_an_edge_that_is_there_is_not(
    awx: Awx,
) -> None:
    one, other = create_nodes(awx, "one", "other")
    path = f"workflow_job_template_nodes/{one}"

    for _time in range(2):
        assert awx.ask("POST", f"{path}/success_nodes/", {"id": other}) == (204, None)
    second = awx.ask("POST", f"{path}/always_nodes/", {"id": other})
    assert second == (400, {"Error": "Relationship not allowed."})
    back = awx.ask("POST", f"workflow_job_template_nodes/{other}/success_nodes/", {"id": one})
    assert back == (400, {"Error": "Cycle detected."})
    assert awx.ask("GET", f"{path}/")[1]["success_nodes"] == [other]


def test_prompts_of_a_workflow_change_together_and_not_with_null(awx: Awx) -> None:
    create_nodes(awx)
    workflow = awx.named("workflow_job_templates", "workflow")
    path = f"workflow_job_templates/{workflow['id']}/"

    awx.ask("PATCH", path, {"limit": "some", "job_tags": "never"})
    assert awx.ask("PATCH", path, {"limit": None})[1]["limit"] == "some"
    changed = awx.ask("PATCH", path, {"limit": ""})[1]
    assert (changed["limit"], changed["job_tags"]) == ("", None)


def test_workflow_waits_for_the_approval_and_hands_on_artifacts(awx: Awx, jobs: Jobs) -> None:
    set_up_workflow(awx)
    jobs.ends["plan.yml"] = Done(artifacts={"plan": [1], "own": "by the job"})

    workflow = launch(awx)

    assert (jobs.playbooks, workflow["status"]) == (["plan.yml"], "running")
    assert decide(awx, "approve") == 204
    assert jobs.ran[1] == ("apply.yml", {"plan": [1], "own": "by the job"}, False)
    assert workflow["status"] == "successful"


def test_variables_of_a_launch_come_before_artifacts_where_they_are_asked_for(
    awx: Awx, jobs: Jobs
) -> None:
    set_up_workflow(awx)
    jobs.ends["plan.yml"] = Done(artifacts={"plan": [1]})

    launch(awx, plan=[2])
    decide(awx, "approve")
    awx.named("workflow_job_templates", "workflow")["ask_variables_on_launch"] = True
    launch(awx, plan=[2])
    decide(awx, "approve")

    applied = [variables for playbook, variables, _check in jobs.ran if playbook == "apply.yml"]
    assert applied == [{"plan": [1]}, {"plan": [2]}]


@pytest.mark.parametrize("how", ["deny", "expire"])
def test_denied_workflow_starts_nothing_more_unless_another_edge_leads_there(
    awx: Awx, jobs: Jobs, how: str
) -> None:
    nodes = set_up_workflow(awx)

    def refuse(workflow: Entry) -> None:
        if how == "deny":
            decide(awx, "deny")
        else:
            approval = awx.engine.jobs_of(workflow)["approve"]
            awx.engine.decide(approval, "failed", timed_out=True)

    denied = launch(awx)
    refuse(denied)
    assert (jobs.playbooks, denied["status"]) == (["plan.yml"], "failed")

    path = f"workflow_job_template_nodes/{nodes['plan']}/success_nodes/"
    awx.ask("POST", path, {"id": nodes["apply"]})
    refuse(launch(awx))
    assert jobs.playbooks == ["plan.yml", "plan.yml", "apply.yml"]


def test_failed_job_ends_the_workflow_unless_an_edge_follows_its_failure(
    awx: Awx, jobs: Jobs
) -> None:
    nodes = set_up_workflow(awx)
    jobs.ends["plan.yml"] = Done(status=2)

    assert launch(awx)["status"] == "failed" and jobs.playbooks == ["plan.yml"]

    path = f"workflow_job_template_nodes/{nodes['plan']}/failure_nodes/"
    awx.ask("POST", path, {"id": nodes["apply"]})
    assert launch(awx)["status"] == "successful"
    assert jobs.playbooks == ["plan.yml", "plan.yml", "apply.yml"]


def test_approver_sees_the_approval_and_not_the_jobs(awx: Awx, jobs: Jobs) -> None:
    set_up_workflow(awx)
    workflow = awx.named("workflow_job_templates", "workflow")
    awx.users["approver"] = User(roles=frozenset({(workflow["id"], "approval")}))
    plan = awx.engine.jobs_of(launch(awx))["plan"]

    assert awx.ask("GET", f"jobs/{plan['id']}/stdout/", token="approver")[0] == 403
    start = f"workflow_job_templates/{workflow['id']}/launch/"
    assert awx.ask("POST", start, token="approver")[0] == 403
    assert decide(awx, "approve", "approver") == 204
    assert jobs.playbooks == ["plan.yml", "apply.yml"]


def test_deleted_workflow_takes_its_nodes_and_approvals_with_it(awx: Awx) -> None:
    set_up_workflow(awx)
    workflow = awx.named("workflow_job_templates", "workflow")["id"]
    inventory = awx.named("inventories", "Placement")["id"]

    assert awx.ask("DELETE", f"workflow_job_templates/{workflow}/") == (204, None)
    assert awx.ask("DELETE", f"inventories/{inventory}/")[0] == 202

    assert not awx.objects["workflow_job_template_nodes"]
    assert not awx.objects["workflow_approval_templates"]
    assert awx.named("job_templates", "plan")["inventory"] is None


@pytest.mark.parametrize("how", ["deny", "cancel"])
@pytest.mark.parametrize("converge", [False, True])
def test_denial_follows_the_failure_edge_alone(
    awx: Awx, jobs: Jobs, how: str, converge: bool
) -> None:
    nodes = set_up_workflow(awx)
    (denied,) = add_nodes(awx, "denied")
    template = create_template(awx, "explain")["id"]
    awx.objects["workflow_job_template_nodes"][denied]["unified_job_template"] = template
    path = f"workflow_job_template_nodes/{nodes['approve']}/failure_nodes/"
    assert awx.ask("POST", path, {"id": denied})[0] == 204
    for node in awx.objects["workflow_job_template_nodes"].values():
        node["all_parents_must_converge"] = converge

    workflow = launch(awx)
    status = {"deny": "failed", "cancel": "canceled"}[how]
    awx.engine.decide(awx.engine.jobs_of(workflow)["approve"], status)

    assert "apply.yml" not in jobs.playbooks and "denied" in awx.engine.jobs_of(workflow)
    # AWX never leaves out a node that waits for all of its parents and whose only one was canceled.
    waits = converge and how == "cancel"
    assert workflow["status"] == ("running" if waits else "successful")


def test_node_that_needs_all_parents_starts_although_one_was_canceled(awx: Awx, jobs: Jobs) -> None:
    """AWX compares only parents that succeeded or failed, so a second way in is dangerous."""
    nodes = set_up_workflow(awx)
    path = f"workflow_job_template_nodes/{nodes['plan']}/success_nodes/"
    awx.ask("POST", path, {"id": nodes["apply"]})
    awx.objects["workflow_job_template_nodes"][nodes["apply"]]["all_parents_must_converge"] = True

    denied = launch(awx)
    awx.engine.decide(awx.engine.jobs_of(denied)["approve"], "failed")
    assert jobs.playbooks == ["plan.yml"]

    canceled = launch(awx)
    awx.engine.decide(awx.engine.jobs_of(canceled)["approve"], "canceled")
    assert jobs.playbooks == ["plan.yml", "plan.yml", "apply.yml"]


def test_team_has_the_roles_that_an_administrator_of_the_object_grants(
    awx: Awx, jobs: Jobs
) -> None:
    set_up_workflow(awx)
    administrator = User(administers=frozenset({awx.default["id"]}))
    awx.users |= {"administrator": administrator, "nobody": User()}
    team = awx.store.add("teams", {"name": "approvers", "organization": awx.default["id"]})["id"]
    awx.users["approver"] = User(teams=frozenset({team}))
    workflow = awx.named("workflow_job_templates", "workflow")["id"]
    plan = awx.named("job_templates", "plan")["id"]
    shown = awx.ask("GET", f"workflow_job_templates/{workflow}/")[1]["summary_fields"]
    assert set(shown["object_roles"]) == {
        "admin_role",
        "execute_role",
        "approval_role",
        "read_role",
    }
    approve = shown["object_roles"]["approval_role"]["id"]
    shown = awx.ask("GET", f"job_templates/{plan}/")[1]["summary_fields"]
    read = shown["object_roles"]["read_role"]["id"]
    path = f"teams/{team}/roles/"

    assert awx.ask("POST", path, {"id": approve}, "nobody")[0] == 403
    assert awx.ask("POST", path, {"id": str(approve)})[0] == 400
    assert awx.ask("POST", path, {})[0] == 400
    for role in (approve, approve, read):
        assert awx.ask("POST", path, {"id": role}, "administrator") == (204, None)
    assert awx.ask("GET", f"{path}?id={approve}")[1]["count"] == 1
    assert awx.ask("GET", path)[1]["count"] == 2

    job = awx.engine.jobs_of(launch(awx))["plan"]
    assert awx.ask("GET", f"jobs/{job['id']}/stdout/", token="approver")[0] == 200
    assert awx.ask("POST", f"job_templates/{plan}/launch/", token="approver")[0] == 403
    assert decide(awx, "approve", "approver") == 204

    awx.ask("DELETE", f"workflow_job_templates/{workflow}/")
    assert awx.ask("GET", path)[1]["count"] == 1
