# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The workflow as `apply.yml` sets it up, with jobs that really run against the small OpenStack."""

from __future__ import annotations

import json
import typing as t
import uuid

import pytest

from ansible_collections.osops.placement.tests.integration.automation import job
from ansible_collections.osops.placement.tests.integration.awx.api import Awx
from ansible_collections.osops.placement.tests.integration.awx.server import served
from ansible_collections.osops.placement.tests.integration.awx.setup import (
    NIGHTLY,
    PLAYBOOKS,
    WORKFLOW,
    Setup,
)
from ansible_collections.osops.placement.tests.integration.strays import CLAIM

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.osops.placement.tests.integration.automation import Job
    from ansible_collections.osops.placement.tests.integration.awx.kinds import Entry
    from ansible_collections.osops.placement.tests.integration.strays import Strays
    from ansible_collections.osops.placement.tests.integration.support import Ansible, Placement

ANSWERS = {
    "orphan_cleanup_min_age": "0",
    "orphan_cleanup_remediate_kinds": ["unknown_consumer"],
}


@pytest.fixture
def awx(ansible: Ansible, tmp_path: Path) -> Awx:
    """An AWX that was set up, and whose jobs run."""

    def run(playbook: str, variables: dict[str, t.Any], check: bool) -> Job:
        # What the tests create is young, and no survey asks for this.
        young = {"orphan_cleanup_unknown_min_age": "0", **variables}
        return job(ansible, tmp_path / str(uuid.uuid4()), playbook, young, check)

    awx = Awx(PLAYBOOKS, run)
    with served(awx):
        done = Setup(ansible, awx, awx_cloud="minicloud").apply()
    assert done.status == 0, done.output
    return awx


def launch(awx: Awx) -> Entry:
    workflow = awx.named("workflow_job_templates", WORKFLOW)["id"]
    path = f"workflow_job_templates/{workflow}/launch/"
    status, body = awx.ask("POST", path, {"extra_vars": ANSWERS})
    assert status == 201, body
    return awx.objects["workflow_jobs"][body["id"]]


def decide(awx: Awx, workflow: Entry, how: str) -> None:
    approval = awx.engine.jobs_of(workflow)["approve"]
    assert awx.ask("POST", f"workflow_approvals/{approval['id']}/{how}/") == (204, None)


@pytest.mark.long
def test_workflow_removes_what_was_approved_and_nothing_when_it_was_denied(
    awx: Awx, few: Strays, placement: Placement
) -> None:
    few.release()
    few.claim()
    before = placement.everything()

    denied = launch(awx)
    decide(awx, denied, "deny")

    assert denied["status"] == "failed" and set(awx.engine.jobs_of(denied)) == {"plan", "approve"}
    assert placement.everything() == before

    approved = launch(awx)
    late = str(uuid.uuid4())
    few.put(late, CLAIM, None)
    try:
        decide(awx, approved, "approve")

        jobs = awx.engine.jobs_of(approved)
        assert approved["status"] == "successful", jobs["apply"]["stdout"]
        assert few.held == []
        assert placement.held(late), "nobody approved that"
        run = jobs["apply"]["artifacts"]["orphan_cleanup_run"]
        assert run["outcomes"]["removed"] == len(few.consumers)
    finally:
        few.put(late, {}, 1)

    nightly = awx.run_schedule(NIGHTLY)

    assert nightly["status"] == "successful", nightly["stdout"]
    assert json.loads(nightly["extra_vars"])["orphan_cleanup_fail_on"] == "error"
    assert nightly["artifacts"]["orphan_cleanup_run"]["complete"] is True
