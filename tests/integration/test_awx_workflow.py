"""The workflow as `apply.yml` sets it up, with jobs that really run against the small OpenStack.

Each test runs with the oldest and with the newest ansible-core, both `apply.yml` and the jobs.
"""

import json
import re
import typing as t
import uuid
from pathlib import Path

import pytest
from minicloud_ctl import servers

from .automation import NEWEST, OLDEST, ROOT, Job, job
from .awx.api import Awx
from .awx.server import served
from .awx.setup import NIGHTLY, PLAYBOOKS, RESTORE, RETIRE, WORKFLOW, Setup
from .awx.store import Entry
from .local_server import Webhook
from .strays import CLAIM, Strays
from .support import Ansible, Placement
from .world import World

PAGE = (ROOT / "docs" / "awx.md").read_text(encoding="utf-8")
# The page shows the output of these jobs in parts, with dots between them.
SCREENS = dict(re.findall(r"<!-- screen (\w+) -->\n```text\n(.*?)```", PAGE, re.DOTALL))
VARYING = {
    "ADDRESS": r"https?://\S+/",
    "JOURNAL": r"/\S+/journal-\S+?\.jsonl",
    "TIME": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "UUID": r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "VERSION": r"(?<=osops\.placement )\d+\.\d+\.\d+",
}
LOST = "the artifact orphan_cleanup_journal of that job, because its files are deleted"
ANSWERS = {"orphan_cleanup_min_age": "0", "orphan_cleanup_remediate_kinds": ["unknown_consumer"]}


@pytest.fixture(params=[NEWEST, OLDEST])
def core(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def awx(ansible: Ansible, tmp_path: Path, webhook: Webhook, core: str) -> Awx:
    """An AWX that was set up, and whose jobs run."""

    def run(playbook: str, variables: dict[str, t.Any], check: bool) -> Job:
        # What the tests create is young, and not every survey asks for both ages.
        is_retirement = "host_decommission_target" in variables
        role = "host_decommission" if is_retirement else "orphan_cleanup"
        ages = (f"{role}_min_age", f"{role}_unknown_min_age")
        young = {**dict.fromkeys(ages, "0"), **variables}
        host = json.loads(awx.named("hosts", "localhost")["variables"])
        folder = tmp_path / str(uuid.uuid4())
        done = job(ansible, folder, playbook, young, check, core, host_variables=host)
        if ran := done.artifacts.get("orphan_cleanup_run"):
            assert ran["versions"]["ansible_core"].startswith("2.18.") is (core == OLDEST)
        return done

    awx = Awx(PLAYBOOKS, run)
    with served(awx):
        variables = {"awx_cloud": "minicloud", "awx_findings_url": webhook.url}
        done = Setup(ansible, awx, core=core, **variables).apply()
    assert done.status == 0, done.output
    return awx


def launch(awx: Awx, name: str = WORKFLOW, answers: t.Mapping[str, t.Any] | None = None) -> Entry:
    workflow = awx.named("workflow_job_templates", name)["id"]
    path = f"workflow_job_templates/{workflow}/launch/"
    status, body = awx.ask("POST", path, {"extra_vars": dict(answers or ANSWERS)})
    assert status == 201, body
    return awx.objects["workflow_jobs"][body["id"]]


def decide(awx: Awx, workflow: Entry, how: str, node: str = "approve") -> None:
    approval = awx.engine.jobs_of(workflow)[node]
    assert awx.ask("POST", f"workflow_approvals/{approval['id']}/{how}/") == (204, None)


def normalize(text: str) -> str:
    """Return an output in one line, without what differs from run to run."""
    for name, pattern in VARYING.items():
        text = re.sub(pattern, name, text)
    # In a container, the job says that its files are deleted.
    return " ".join(text.split()).replace(LOST, "the journal JOURNAL")


def check_screen(name: str, output: str) -> None:
    """Fail unless the page shows what this job prints."""
    rest = normalize(output)
    for part in SCREENS[name].split("…"):
        shown = normalize(part)
        assert shown in rest, f"the page shows {shown}, and the job printed {rest}"
        rest = rest.split(shown, 1)[1]


@pytest.mark.long
def test_workflow_removes_what_was_approved_and_nothing_when_it_was_denied(
    awx: Awx, few: Strays, placement: Placement, webhook: Webhook
) -> None:
    few.release()
    few.claim()
    before = placement.everything()

    denied = launch(awx)
    # The address comes with the variables of the host.
    (body,) = webhook.bodies
    assert {entry["consumer"] for entry in body["new"]} >= set(few.consumers)
    decide(awx, denied, "deny")

    ended = {"plan", "approve", "not_approved"}
    assert denied["status"] == "successful" and set(awx.engine.jobs_of(denied)) == ended
    assert placement.everything() == before

    approved = launch(awx)
    late = str(uuid.uuid4())
    few.put(late, CLAIM, None)
    try:
        decide(awx, approved, "approve")

        jobs = awx.engine.jobs_of(approved)
        assert approved["status"] == "successful", jobs["apply"]["stdout"]
        assert "3 of 3 changes" in " ".join(jobs["applied"]["stdout"].split())
        assert set(SCREENS) == {"plan", "apply", "applied"}
        for name in SCREENS:
            check_screen(name, jobs[name]["stdout"])
        assert few.held == []
        assert placement.held(late), "nobody approved that"
        run = jobs["apply"]["artifacts"]["orphan_cleanup_run"]
        assert run["outcomes"]["removed"] == len(few.consumers)
    finally:
        few.put(late, {}, 1)

    check_nightly_without_findings(awx)

    restored = restore(awx, jobs["apply"]["artifacts"]["orphan_cleanup_journal"])

    assert restored["status"] == "successful", restored["stdout"]
    assert few.held == few.consumers
    few.others_are_unchanged()
    few.release()


def check_nightly_without_findings(awx: Awx) -> None:
    nightly = awx.run_schedule(NIGHTLY)

    assert nightly["status"] == "successful", nightly["stdout"]
    assert json.loads(nightly["extra_vars"])["orphan_cleanup_fail_on"] == "error"
    run = nightly["artifacts"]["orphan_cleanup_run"]
    assert run["complete"] is True and run["verdicts"]["orphaned"] == 0
    assert "orphan_cleanup_notify_url" not in nightly["extra_vars"]


def restore(awx: Awx, parts: list[str]) -> Entry:
    """Launch the job that restores, with all that is left of the job that made the changes."""
    template = awx.named("job_templates", RESTORE)["id"]
    answers = {"extra_vars": {"orphan_cleanup_journal": "\n".join(parts)}}
    status, body = awx.ask("POST", f"job_templates/{template}/launch/", answers)
    assert status == 201, body
    return awx.objects["jobs"][body["id"]]


@pytest.mark.long
def test_nightly_job_reports_findings_and_is_green_unless_the_schedule_says_otherwise(
    awx: Awx, few: Strays, webhook: Webhook
) -> None:
    few.release()
    few.claim()
    try:
        green = awx.run_schedule(NIGHTLY)

        assert green["status"] == "successful", green["stdout"]
        (body,) = webhook.bodies
        assert {entry["consumer"] for entry in body["new"]} >= set(few.consumers)

        awx.named("schedules", NIGHTLY)["extra_data"] = {"orphan_cleanup_fail_on": "findings"}
        assert awx.run_schedule(NIGHTLY)["status"] == "failed"
    finally:
        few.release()


@pytest.mark.long
def test_host_is_drained_and_deleted_only_after_the_approval(awx: Awx, world: World) -> None:
    """A drain that leaves a server fails, and nobody is asked whether to delete the host."""
    host = f"retire-{uuid.uuid4().hex[:8]}"
    world.own_host(host)
    server, stuck = world.boot(host), world.boot(host)
    servers.act(world.cloud, stuck, "suspend")
    servers.settle(world.cloud, stuck, host, "SUSPENDED")
    answers = {"host_decommission_target": host}

    left = launch(awx, RETIRE, answers)

    jobs = awx.engine.jobs_of(left)
    assert left["status"] == "failed" and set(jobs) == {"drain"}
    assert servers.get(world.cloud, server)["OS-EXT-SRV-ATTR:host"] != host

    servers.delete(world.cloud, stuck)
    right = launch(awx, RETIRE, answers)
    assert set(awx.engine.jobs_of(right)) == {"drain", "approve_decommission"}
    assert host in world.cloud.compute_services()
    (drained,) = awx.engine.jobs_of(right)["drain"]["artifacts"]["host_decommission_drained"]
    assert (drained["host"], drained["empty"], drained["remaining"]) == (host, True, [])
    world.kill(host)
    decide(awx, right, "approve", "approve_decommission")

    output = " ".join(awx.engine.jobs_of(right)["decommission"]["stdout"].split())
    # The catalogue of the minicloud has a second region, whose provider it might be.
    assert "another region" in output or f"{host} is gone" in output
    assert host not in world.cloud.compute_services()
