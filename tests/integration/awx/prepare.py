# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tests of the stand-in prepare in it, and jobs that only end in some way."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.tests.integration.awx.api import TOKEN, Awx

if t.TYPE_CHECKING:
    from ansible_collections.osops.placement.tests.integration.awx.kinds import Entry


@d.dataclass
class Done:
    status: int = 0
    output: str = ""
    artifacts: dict[str, t.Any] = d.field(default_factory=dict)


class Jobs:
    """Runs jobs for the stand-in, and keeps the playbooks and variables of each."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, dict[str, t.Any], bool]] = []
        self.ends: dict[str, Done] = {}

    def run(self, playbook: str, variables: dict[str, t.Any], check: bool) -> Done:
        self.ran.append((playbook, variables, check))
        return self.ends.get(playbook, Done())

    @property
    def playbooks(self) -> list[str]:
        return [playbook for playbook, _variables, _check in self.ran]


def prepare(jobs: Jobs) -> Awx:
    """Return an AWX with a project and an inventory."""
    awx = Awx(["plan.yml", "apply.yml"], jobs.run)
    create(awx, "projects", name="Placement", scm_type="git", organization=awx.default["id"])
    create(awx, "inventories", name="Placement", organization=awx.default["id"])
    finish(awx)
    return awx


def create(awx: Awx, kind: str, **fields: t.Any) -> Entry:
    status, body = awx.ask("POST", f"{kind}/", fields)
    assert status == 201, body
    return t.cast("Entry", body)


def finish(awx: Awx) -> str:
    """Let all syncs finish, and return the status of the project."""
    project = awx.named("projects", "Placement")
    for _step in range(3):
        status = awx.ask("GET", f"projects/{project['id']}/")[1]["status"]
    return str(status)


def create_template(awx: Awx, name: str, playbook: str = "plan.yml", **fields: t.Any) -> Entry:
    project, inventory = awx.named("projects", "Placement"), awx.named("inventories", "Placement")
    return create(
        awx,
        "job_templates",
        name=name,
        playbook=playbook,
        project=project["id"],
        inventory=inventory["id"],
        **fields,
    )


def set_survey(awx: Awx, template: Entry, *questions: Entry) -> tuple[int, t.Any]:
    spec = {"name": "", "description": "", "spec": list(questions)}
    return awx.ask("POST", f"job_templates/{template['id']}/survey_spec/", spec)


def create_nodes(awx: Awx, *identifiers: str) -> list[int]:
    create(awx, "workflow_job_templates", name="workflow", organization=awx.default["id"])
    return add_nodes(awx, *identifiers)


def add_nodes(awx: Awx, *identifiers: str) -> list[int]:
    """Add nodes to the workflow that `create_nodes` has created."""
    workflow = awx.named("workflow_job_templates", "workflow")["id"]
    return [
        create(
            awx,
            "workflow_job_template_nodes",
            identifier=identifier,
            workflow_job_template=workflow,
        )["id"]
        for identifier in identifiers
    ]


def set_up_workflow(awx: Awx) -> dict[str, int]:
    """Create a workflow of a job, an approval and another job; return the ids of its nodes."""
    nodes = dict(
        zip(
            ("plan", "approve", "apply"), create_nodes(awx, "plan", "approve", "apply"), strict=True
        )
    )
    for name in ("plan", "apply"):
        template = create_template(awx, name, f"{name}.yml")
        awx.objects["workflow_job_template_nodes"][nodes[name]]["unified_job_template"] = template[
            "id"
        ]
    path = "workflow_job_template_nodes"
    awx.ask("POST", f"{path}/{nodes['approve']}/create_approval_template/", {"name": "Really?"})
    awx.ask("POST", f"{path}/{nodes['plan']}/success_nodes/", {"id": nodes["approve"]})
    awx.ask("POST", f"{path}/{nodes['approve']}/success_nodes/", {"id": nodes["apply"]})
    return nodes


def launch(awx: Awx, **variables: t.Any) -> Entry:
    workflow = awx.named("workflow_job_templates", "workflow")
    path = f"workflow_job_templates/{workflow['id']}/launch/"
    status, body = awx.ask("POST", path, {"extra_vars": variables})
    assert status == 201, body
    return awx.objects["workflow_jobs"][body["workflow_job"]]


def decide(awx: Awx, how: str, token: str = TOKEN) -> int:
    (approval,) = awx.ask("GET", "workflow_approvals/?status=pending")[1]["results"]
    return awx.ask("POST", f"workflow_approvals/{approval['id']}/{how}/", token=token)[0]
