# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each way through the workflow of AWX ends with a job that says what happened.

The workflow is red where something failed, and green where somebody denied. Nothing here needs a
cloud: the jobs before the last one only end in some way.
"""

from __future__ import annotations

import copy
import typing as t

import pytest

from ansible_collections.osops.placement.tests.integration.automation import (
    NEWEST,
    OLDEST,
    ROOT,
    job,
)
from ansible_collections.osops.placement.tests.integration.awx.api import Awx
from ansible_collections.osops.placement.tests.integration.awx.prepare import Done
from ansible_collections.osops.placement.tests.integration.awx.server import served
from ansible_collections.osops.placement.tests.integration.awx.setup import (
    PLAYBOOKS,
    WORKFLOW,
    Setup,
)
from ansible_collections.osops.placement.tests.integration.support import Ansible

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.osops.placement.tests.integration.automation import Job
    from ansible_collections.osops.placement.tests.integration.awx.kinds import Entry

PLAN, APPLY, EXPLAIN = "clean_up_orphans.yml", "apply_approved.yml", "explain_outcome.yml"
RED = ("apply_failed", "plan_failed")


class Jobs:
    """Ends each job as a test wants it, and the last one as it ends in AWX."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.ends: dict[str, Done] = {}

    def run(self, playbook: str, variables: dict[str, t.Any], check: bool) -> Done:
        if playbook == EXPLAIN:
            outcome = variables["placement_outcome"]
            self.ran.append(outcome)
            return Done(2 if outcome in RED else 0)
        self.ran.append(playbook)
        return self.ends.get(playbook, Done())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Awx:
    awx = Awx(PLAYBOOKS)
    with served(awx):
        done = Setup(Ansible(ROOT, tmp_path_factory.mktemp("awx"), {}), awx).apply()
    assert done.status == 0, done.output
    return awx


@pytest.fixture
def jobs() -> Jobs:
    return Jobs()


@pytest.fixture
def awx(made: Awx, jobs: Jobs) -> Awx:
    awx = copy.deepcopy(made)
    awx.engine.runner = jobs.run
    return awx


def launch(awx: Awx) -> Entry:
    workflow = awx.named("workflow_job_templates", WORKFLOW)["id"]
    status, body = awx.ask("POST", f"workflow_job_templates/{workflow}/launch/")
    assert status == 201, body
    return awx.objects["workflow_jobs"][body["id"]]


def decide(awx: Awx, workflow: Entry, status: str, *, timed_out: bool = False) -> None:
    awx.engine.decide(awx.engine.jobs_of(workflow)["approve"], status, timed_out=timed_out)


def test_failed_plan_asks_nobody_and_is_explained(awx: Awx, jobs: Jobs) -> None:
    jobs.ends[PLAN] = Done(2)

    workflow = launch(awx)

    assert (jobs.ran, workflow["status"]) == ([PLAN, "plan_failed"], "failed")
    assert "approve" not in awx.engine.jobs_of(workflow)


@pytest.mark.parametrize("changed", ["", "plan", "approve", "apply", "not_approved"])
@pytest.mark.parametrize("how", ["deny", "expire", "cancel"])
def test_denial_never_reaches_the_job_that_applies(
    awx: Awx, jobs: Jobs, how: str, changed: str
) -> None:
    """Not even if somebody lets a node wait for all of its parents."""
    if changed:
        node = awx.named("workflow_job_template_nodes", changed)
        node["all_parents_must_converge"] = True
    workflow = launch(awx)

    status = "canceled" if how == "cancel" else "failed"
    decide(awx, workflow, status, timed_out=how == "expire")

    assert jobs.ran == [PLAN, "not_approved"]
    waits = how == "cancel" and changed == "apply"
    assert workflow["status"] == ("running" if waits else "successful")


def test_applied_plan_is_explained(awx: Awx, jobs: Jobs) -> None:
    workflow = launch(awx)

    decide(awx, workflow, "successful")

    assert (jobs.ran, workflow["status"]) == ([PLAN, APPLY, "applied"], "successful")


def test_failed_application_is_explained_and_fails_the_workflow(awx: Awx, jobs: Jobs) -> None:
    jobs.ends[APPLY] = Done(2)
    workflow = launch(awx)

    decide(awx, workflow, "successful")

    assert (jobs.ran, workflow["status"]) == ([PLAN, APPLY, "apply_failed"], "failed")


PLANNED = {"check_mode": True, "planned": 3, "outcomes": {"removed": 3, "skipped": 0, "failed": 0}}
PLANNED |= {"output_dir": "/placement", "journal": ""}
DONE = {**PLANNED, "check_mode": False, "journal": "/placement/journal-1.jsonl"}
SOME = {**DONE, "outcomes": {"removed": 2, "skipped": 1, "failed": 0}}
FAILED = {**DONE, "outcomes": {"removed": 1, "skipped": 1, "failed": 1}}
LOST = {"output_lost": "The journal in /runner is lost after this job."}
RESTORED_FROM = 'To undo them, launch "Placement: restore allocations" with'
RESTORE = f"{RESTORED_FROM} the journal"
# Only its path is known.
LONG = "/runner/journal-of-many-changes.jsonl"
AGAIN = 'Launch "Placement: clean up after approval" again for a new plan.'


@pytest.mark.parametrize("core", [OLDEST, pytest.param(NEWEST, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("outcome", "run", "expected"),
    [
        ("applied", DONE, ["has made 3 of 3 changes.", f"{RESTORE} /placement/journal-1.jsonl."]),
        ("applied", SOME, ["has made 2 of 3 changes.", "why it left out the others.", AGAIN]),
        ("not_approved", PLANNED, ["Nothing was changed: the plan was denied, or", AGAIN]),
        ("plan_failed", None, ['changed: the job "Placement: plan the cleanup" failed', AGAIN]),
        ("apply_failed", FAILED, ["It had made 1 changes.", RESTORE, AGAIN]),
        ("apply_failed", PLANNED, ["look for its journal in /placement.", AGAIN]),
        # Nobody can use the path of a file that is deleted with its container.
        ("applied", {**DONE, **LOST}, [f"{RESTORED_FROM} the artifact orphan_cleanup_journal"]),
        ("apply_failed", {**FAILED, **LOST, "journal": LONG}, ["cannot be undone from a journal"]),
        ("apply_failed", {**PLANNED, **LOST}, ["its journal is deleted with its container", AGAIN]),
    ],
)
def test_last_job_says_what_happened_and_what_to_do_next(
    tmp_path: Path, core: str, outcome: str, run: dict[str, t.Any] | None, expected: list[str]
) -> None:
    variables: dict[str, t.Any] = {"placement_outcome": outcome}
    if run is not None:
        variables["orphan_cleanup_run"] = run
        if run["journal"] not in ("", LONG):
            variables["orphan_cleanup_journal"] = ["osops.placement.journal:1:1/1:00:ab"]

    done: Job = job(Ansible(ROOT, tmp_path, {}), tmp_path / "job", EXPLAIN, variables, core=core)

    said = " ".join(done.output.replace("\\", "").split())
    assert (done.status != 0) is (outcome in RED), done.output
    for part in expected:
        assert part in said
    if run is DONE:
        assert AGAIN not in said
