"""`apply.yml` sets up AWX, corrects what others have changed, and removes it again.

Nothing here needs a cloud: the stand-in for AWX runs no jobs of ours. The ways through the workflow
are in this file too, because a set-up takes almost a minute.
"""

import copy
import dataclasses as d
import json
import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest

from .automation import NEWEST, OLDEST, ROOT
from .awx.api import TOKEN, Awx
from .awx.projects import VERSION
from .awx.rights import User
from .awx.server import served
from .awx.setup import (
    ADMINISTRATOR,
    APPLY,
    DECOMMISSION,
    DRAIN,
    EXPLAIN,
    FIND,
    NIGHTLY,
    PLAN,
    PLAYBOOKS,
    RESTORE,
    RETIRE,
    WORKFLOW,
    Applied,
    Setup,
)
from .awx.store import Entry
from .support import Ansible

# Setting up one AWX takes a minute and a half.
pytestmark = pytest.mark.long

VARIABLES = {"awx_notification_url": "http://127.0.0.1/hook", "awx_output_dir": "/placement"}
# Every edge of the workflow: what follows the success of each node, and what follows its failure.
EDGES = {
    "plan": ("approve", "plan_failed"),
    "approve": ("apply", "not_approved"),
    "apply": ("applied", "apply_failed"),
    "applied": (),
    "apply_failed": (),
    "not_approved": (),
    "plan_failed": (),
}
# Each run makes this request, which changes no object.
SYNC = "POST /api/v2/projects/{}/update/"


@pytest.fixture(scope="module", params=[NEWEST, OLDEST])
def core(request: pytest.FixtureRequest) -> str:
    """The ansible-core that runs `apply.yml`."""
    return str(request.param)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, core: str) -> tuple[Awx, Applied]:
    """An AWX that an organization administrator has set up, and what that run did."""
    awx = Awx(PLAYBOOKS)
    awx.users[ADMINISTRATOR] = User(administers=frozenset({awx.default["id"]}))
    with served(awx):
        ansible = Ansible(ROOT, tmp_path_factory.mktemp("awx"), {})
        applied = Setup(ansible, awx, core=core, **VARIABLES).apply(token=ADMINISTRATOR)
    assert applied.status == 0, applied.output
    return awx, applied


@pytest.fixture
def ready(made: tuple[Awx, Applied], tmp_path: Path, core: str) -> Iterator[Setup]:
    """A copy of that AWX for one test."""
    with served(copy.deepcopy(made[0])) as awx:
        yield Setup(Ansible(ROOT, tmp_path, {}), awx, core=core, **VARIABLES)


@pytest.fixture
def empty(tmp_path: Path, core: str) -> Iterator[Setup]:
    """An AWX in which nothing is set up."""
    with served(Awx(PLAYBOOKS)) as awx:
        yield Setup(Ansible(ROOT, tmp_path, {}), awx, core=core, **VARIABLES)


def node(awx: Awx, name: str) -> Entry:
    return awx.named("workflow_job_template_nodes", name)


def test_organization_administrator_sets_everything_up(made: tuple[Awx, Applied]) -> None:
    """The graph of the workflow, and that the planning job can only read."""
    awx, applied = made
    plan, apply = (awx.named("job_templates", name) for name in (PLAN, APPLY))
    workflow = awx.named("workflow_job_templates", WORKFLOW)

    assert len(applied.written) == len(applied.changes)
    assert (plan["job_type"], apply["job_type"]) == ("check", "run")
    assert apply["playbook"].endswith("/apply_approved.yml")
    templates = list(awx.objects["job_templates"].values())
    assert len(templates) == 7
    by_hand = (DRAIN, DECOMMISSION, RESTORE)
    for entry in (*templates, workflow, awx.named("workflow_job_templates", RETIRE)):
        assert entry["allow_simultaneous"] is False and entry["survey_enabled"] is True
        asked = {key for key in entry if key.startswith("ask_") and entry[key]}
        expected = {"ask_job_type_on_launch"} if entry["name"] in by_hand else set()
        assert asked == expected
    for entry in templates:
        credentials = [] if entry["name"] == EXPLAIN else ["OpenStack admin"]
        assert awx.linked("job_templates", entry["name"], "credentials") == credentials
    check_graph(awx)
    assert node(awx, "plan")["unified_job_template"] == plan["id"]
    assert node(awx, "apply")["unified_job_template"] == apply["id"]
    shown = awx.store.shown(node(awx, "approve")["id"])
    approval = shown["summary_fields"]["unified_job_template"]
    assert (approval["unified_job_type"], approval["timeout"]) == ("workflow_approval", 86400)
    assert awx.linked("workflow_job_templates", WORKFLOW, "notification_templates_approvals") == [
        "osops.placement"
    ]
    variables = json.loads(apply["extra_vars"])
    assert variables["orphan_cleanup_output_dir"] == "/placement"
    assert variables["placement_mounted_dir"] == "/placement"
    assert awx.named("projects", "osops.placement")["scm_branch"] == VERSION
    timeouts = {entry["name"]: entry["timeout"] for entry in templates}
    assert timeouts == {
        **dict.fromkeys((FIND, PLAN, EXPLAIN), 1800),
        **dict.fromkeys((APPLY, DECOMMISSION, RESTORE), 14400),
        DRAIN: 86400,
    }


def check_graph(awx: Awx) -> None:
    """Check that the workflow has these nodes and edges, and no others."""
    workflow = awx.named("workflow_job_templates", WORKFLOW)["id"]
    explain = awx.named("job_templates", EXPLAIN)["id"]
    nodes = {
        entry["identifier"]: awx.store.shown(entry["id"])
        for entry in awx.objects["workflow_job_template_nodes"].values()
        if entry["workflow_job_template"] == workflow
    }
    assert set(nodes) == set(EDGES)
    for name, following in EDGES.items():
        entry, ids = nodes[name], [[nodes[other]["id"]] for other in following]
        assert [entry["success_nodes"], entry["failure_nodes"]] == (ids or [[], []])
        assert entry["always_nodes"] == [] and entry["all_parents_must_converge"] is False
        if not following:
            assert entry["extra_data"] == {"placement_outcome": name}
            assert entry["unified_job_template"] == explain


def test_address_of_the_webhook_is_where_the_readers_of_jobs_do_not_see_it(
    made: tuple[Awx, Applied],
) -> None:
    awx = made[0]

    host = json.loads(awx.named("hosts", "localhost")["variables"])

    assert host == {
        "ansible_connection": "local",
        "orphan_cleanup_notify_url": VARIABLES["awx_notification_url"],
        "orphan_cleanup_notify_format": "json",
    }
    templates = (*awx.objects["job_templates"].values(), awx.surveys)
    assert VARIABLES["awx_notification_url"] not in json.dumps(templates)
    # The failures that the last job of a workflow explains have been reported before.
    link = "notification_templates_error"
    assert awx.linked("job_templates", EXPLAIN, link) == []
    assert awx.linked("workflow_job_templates", WORKFLOW, link) == []
    assert awx.linked("job_templates", APPLY, link) == ["osops.placement"]


def test_nightly_schedule_starts_a_detection_although_nobody_answers_its_survey(
    made: tuple[Awx, Applied],
) -> None:
    awx = copy.deepcopy(made[0])

    job = awx.run_schedule(NIGHTLY)

    assert job["name"] == FIND
    variables = json.loads(job["extra_vars"])
    assert (variables["placement_hosts"], variables["orphan_cleanup_fail_on"]) == ("", "error")


@pytest.mark.parametrize("name", [FIND, PLAN, APPLY, WORKFLOW])
def test_what_asks_for_an_approval_or_changes_nothing_starts_without_an_answer(
    made: tuple[Awx, Applied], name: str
) -> None:
    awx = copy.deepcopy(made[0])
    kind = "workflow_job_templates" if name == WORKFLOW else "job_templates"

    status, body = awx.ask("POST", f"{kind}/{awx.named(kind, name)['id']}/launch/")

    assert status == 201, body
    needed = {
        DRAIN: "host_decommission_target",
        DECOMMISSION: "host_decommission_target",
        RESTORE: "orphan_cleanup_journal",
        EXPLAIN: "placement_outcome",
    }
    for template, variable in needed.items():
        key = awx.named("job_templates", template)["id"]
        refused = awx.ask("POST", f"job_templates/{key}/launch/")
        missing = [f"'{variable}' value missing"]
        assert refused == (400, {"variables_needed_to_start": missing})


def test_check_mode_shows_what_would_be_created_and_writes_nothing(
    made: tuple[Awx, Applied], empty: Setup
) -> None:
    predicted = empty.apply("--check")

    assert predicted.status == 0, predicted.output
    assert predicted.written == []
    expected = [line.replace("POST", "Would POST", 1) for line in made[1].changes]
    assert predicted.changes == expected != []


def test_second_run_changes_nothing_and_shows_no_token(ready: Setup) -> None:
    project = ready.awx.named("projects", "osops.placement")["id"]

    again = ready.apply("-vvv")

    assert again.status == 0, again.output
    assert (again.written, again.changes) == ([SYNC.format(project)], [])
    assert "changed=0" in again.output and TOKEN not in again.output


def test_ways_around_the_approval_are_closed_and_other_changes_corrected(ready: Setup) -> None:
    """Everything here was possible on a real AWX, and some of it started the job unapproved."""
    awx = ready.awx
    nodes = awx.objects["workflow_job_template_nodes"]
    plan, approve, apply = (node(awx, name)["id"] for name in ("plan", "approve", "apply"))
    workflow = awx.named("workflow_job_templates", WORKFLOW)
    template = awx.named("job_templates", APPLY)
    planning = awx.named("job_templates", PLAN)
    path = "workflow_job_template_nodes"
    # An edge beside the approval, one of another kind, and another node with the same job.
    assert awx.ask("POST", f"{path}/{plan}/success_nodes/", {"id": apply})[0] == 204
    awx.ask("POST", f"{path}/{approve}/success_nodes/", {"id": apply, "disassociate": True})
    assert awx.ask("POST", f"{path}/{approve}/always_nodes/", {"id": apply})[0] == 204
    body = {"workflow_job_template": workflow["id"], "unified_job_template": template["id"]}
    extra = awx.ask("POST", f"{path}/", {**body, "identifier": "extra"})[1]["id"]
    awx.ask("POST", f"{path}/{plan}/success_nodes/", {"id": extra})
    # An approval that expires at once, and says something else.
    approval = awx.objects["workflow_approval_templates"][nodes[approve]["unified_job_template"]]
    approval |= {"name": "Coffee?", "timeout": 1}
    # A launch that brings its own plan, and jobs that do not do what they say.
    # A job that starts only when all of its parents agree, of which one may be an error.
    nodes[apply]["all_parents_must_converge"] = True
    # A denial that leads to the job.
    denied = awx.store.linked(approve, "failure_nodes")
    denied.clear()
    workflow |= {"ask_variables_on_launch": True, "limit": "elsewhere", "extra_vars": "x: 1"}
    template |= {"ask_variables_on_launch": True, "limit": "elsewhere", "verbosity": 5}
    template |= {"job_tags": "never", "skip_tags": "always", "extra_vars": "{}"}
    planning["job_type"] = "run"
    awx.surveys[planning["id"]]["spec"].pop()
    nodes[apply]["extra_data"] = {"orphan_cleanup_max_changes": 1000}

    predicted = ready.apply("--check")
    right = ready.apply()

    assert right.status == 0, right.output
    again = [line.replace("Would ", "", 1) for line in predicted.changes]
    assert predicted.written == [] and again == right.changes
    test_organization_administrator_sets_everything_up((awx, Applied(0, "", [])))
    assert (approval["name"], approval["timeout"]) == ("Apply this plan?", 86400)
    assert extra not in nodes and nodes[apply]["extra_data"] == {}
    assert (workflow["limit"], workflow["extra_vars"]) == ("", "")
    assert (template["limit"], template["verbosity"], template["job_tags"]) == ("", 0, "")
    assert len(awx.surveys[planning["id"]]["spec"]) == 4
    said = (
        f"PATCH job_templates/{APPLY}: ask_variables_on_launch, job_tags, limit, skip_tags, "
        "verbosity, extra_vars"
    )
    assert said in right.changes


def test_approval_that_was_replaced_by_a_job_is_an_approval_again(ready: Setup) -> None:
    awx = ready.awx
    node(awx, "approve")["unified_job_template"] = awx.named("job_templates", FIND)["id"]

    right = ready.apply()

    assert right.status == 0, right.output
    (change,) = right.changes
    assert change.startswith("POST workflow_job_template_nodes/approve: ")
    shown = awx.store.shown(node(awx, "approve")["id"])
    assert (
        shown["summary_fields"]["unified_job_template"]["unified_job_type"] == "workflow_approval"
    )


def test_another_credential_replaces_the_old_one_of_its_type(ready: Setup) -> None:
    awx = ready.awx
    awx.add_credential("OpenStack reader", awx.default)
    vault = awx.store.add("credential_types", {"name": "Vault"})
    secret = awx.add_credential("secret", awx.default, vault)
    awx.store.linked(awx.named("job_templates", PLAN)["id"], "credentials").append(secret["id"])

    right = ready.apply(awx_credential="OpenStack reader")

    assert right.status == 0, right.output
    assert awx.linked("job_templates", FIND, "credentials") == ["OpenStack reader"]
    assert awx.linked("job_templates", PLAN, "credentials") == ["secret", "OpenStack reader"]


def test_second_organization_gets_its_own_and_leaves_the_first_alone(ready: Setup) -> None:
    awx = ready.awx
    elsewhere = awx.store.add("organizations", {"name": "Elsewhere"})
    awx.users["theirs"] = User(administers=frozenset({elsewhere["id"]}))
    awx.add_credential("OpenStack admin", elsewhere)
    before = copy.deepcopy((awx.objects, awx.surveys, awx.store.links))

    other = ready.apply(token="theirs", awx_organization="Elsewhere", awx_timeout=3600)

    assert other.status == 0, other.output
    for kind, entries in before[0].items():
        for key, entry in entries.items():
            assert awx.objects[kind][key] == entry
    for owner, linked in before[2].items():
        assert awx.store.links[owner] == linked
    mine, theirs = (
        awx.named("job_templates", FIND, organization) for organization in (awx.default, elsewhere)
    )
    assert (mine["timeout"], theirs["timeout"]) == (1800, 3600)
    credential = awx.named("credentials", "OpenStack admin", elsewhere)["id"]
    assert awx.store.linked(theirs["id"], "credentials") == [credential]
    assert awx.named("schedules", NIGHTLY, elsewhere)["unified_job_template"] == theirs["id"]

    gone = ready.apply(token="theirs", awx_organization="Elsewhere", awx_state="absent")

    assert gone.status == 0, gone.output
    for kind, entries in before[0].items():
        if kind != "project_updates":
            assert awx.objects[kind] == entries


def test_absent_removes_exactly_what_was_created(ready: Setup) -> None:
    awx = ready.awx
    own = awx.ask("POST", "inventories/", {"name": "Mine", "organization": awx.default["id"]})[1]

    predicted = ready.apply("--check", awx_state="absent")
    gone = ready.apply(awx_state="absent", awx_notification_url="")
    again = ready.apply(awx_state="absent")

    assert predicted.written == []
    assert [line.replace("Would ", "", 1) for line in predicted.changes] == gone.changes
    assert gone.status == 0, gone.output
    left = {kind: list(entries) for kind, entries in awx.objects.items() if entries}
    assert left.pop("inventories") == [own["id"]]
    assert set(left) == {"organizations", "credential_types", "credentials", "project_updates"}
    assert (again.status, again.written) == (0, [])


def test_new_commits_reach_awx_and_a_sync_that_fails_once_is_repeated(ready: Setup) -> None:
    awx = ready.awx
    awx.projects.repository.branches[VERSION] = "newer"
    awx.projects.repository.failures = [{"stdout": "the network is unreachable"}]
    project = awx.named("projects", "osops.placement")

    right = ready.apply()

    assert right.status == 0, right.output
    assert right.written == [SYNC.format(project["id"])] * 2
    assert project["scm_revision"] == "newer"


def test_failed_sync_ends_the_set_up_with_what_the_update_says(empty: Setup) -> None:
    wrong = empty.apply(awx_scm_branch="wrong")

    assert wrong.status != 0
    assert "awx_scm_branch" in wrong.said and "pathspec 'wrong'" in wrong.said
    assert not empty.awx.objects["job_templates"]

    right = empty.apply()

    assert right.status == 0, right.output


def test_broken_sync_is_explained_by_its_traceback(ready: Setup) -> None:
    error = {"status": "error", "job_explanation": "Lost.", "result_traceback": "OSError: disk"}
    ready.awx.projects.repository.failures = [error, error]

    broken = ready.apply()

    assert broken.status != 0 and "Lost. OSError: disk" in broken.said


def test_answers_of_awx_are_reported_without_the_token(empty: Setup) -> None:
    empty.awx.users["reader"] = User(system_administrator=True, scope="read")

    refused = empty.apply("-vvv", token="reader")
    unknown = empty.apply("-vvv", token="a wrong token")
    nobody = empty.apply(awx_credential="none such")

    assert refused.status != 0 and "403 to POST" in refused.said
    assert "not have permission" in refused.said
    assert unknown.status != 0 and "401 to GET" in unknown.said
    assert "a wrong token" not in unknown.output
    assert nobody.status != 0 and "0 credentials named none" in nobody.said
    assert empty.awx.written == []


# Each way through the workflow ends with a job that says what happened. The workflow is red where
# something failed, and green where somebody denied.

PLANNING, APPLYING = "clean_up_orphans.yml", "apply_approved.yml"
EXPLAINING = "explain_outcome.yml"
RED = ("apply_failed", "plan_failed")


@d.dataclass
class Done:
    status: int = 0
    output: str = ""
    artifacts: dict[str, t.Any] = d.field(default_factory=dict)


class Jobs:
    """Ends each job as a test wants it, and the last one as it ends in AWX."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.ends: dict[str, Done] = {}

    def run(self, playbook: str, variables: dict[str, t.Any], check: bool) -> Done:
        if playbook == EXPLAINING:
            outcome = variables["placement_outcome"]
            self.ran.append(outcome)
            return Done(2 if outcome in RED else 0)
        self.ran.append(playbook)
        return self.ends.get(playbook, Done())


@pytest.fixture
def jobs() -> Jobs:
    return Jobs()


@pytest.fixture
def awx(made: tuple[Awx, Applied], jobs: Jobs) -> Awx:
    """A copy of the AWX that was set up, whose jobs only end in some way."""
    awx = copy.deepcopy(made[0])
    awx.engine.runner = jobs.run
    return awx


def launch(awx: Awx) -> Entry:
    workflow = awx.named("workflow_job_templates", WORKFLOW)["id"]
    status, body = awx.ask("POST", f"workflow_job_templates/{workflow}/launch/")
    assert status == 201, body
    return awx.objects["workflow_jobs"][body["id"]]


def decide(awx: Awx, workflow: Entry, status: str) -> None:
    awx.engine.decide(awx.engine.jobs_of(workflow)["approve"], status)


def test_failed_plan_asks_nobody_and_is_explained(awx: Awx, jobs: Jobs) -> None:
    jobs.ends[PLANNING] = Done(2)

    workflow = launch(awx)

    assert (jobs.ran, workflow["status"]) == ([PLANNING, "plan_failed"], "failed")
    assert "approve" not in awx.engine.jobs_of(workflow)


@pytest.mark.parametrize("changed", ["", "plan", "approve", "apply", "not_approved"])
@pytest.mark.parametrize("status", ["failed", "canceled"])
def test_denial_never_reaches_the_job_that_applies(
    awx: Awx, jobs: Jobs, status: str, changed: str
) -> None:
    """Nor does an approval that expired, and not even if a node waits for all of its parents."""
    if changed:
        node = awx.named("workflow_job_template_nodes", changed)
        node["all_parents_must_converge"] = True
    workflow = launch(awx)

    decide(awx, workflow, status)

    assert jobs.ran == [PLANNING, "not_approved"]
    waits = status == "canceled" and changed == "apply"
    assert workflow["status"] == ("running" if waits else "successful")


def test_applied_plan_is_explained(awx: Awx, jobs: Jobs) -> None:
    workflow = launch(awx)

    decide(awx, workflow, "successful")

    assert (jobs.ran, workflow["status"]) == ([PLANNING, APPLYING, "applied"], "successful")


def test_failed_application_is_explained_and_fails_the_workflow(awx: Awx, jobs: Jobs) -> None:
    jobs.ends[APPLYING] = Done(2)
    workflow = launch(awx)

    decide(awx, workflow, "successful")

    assert (jobs.ran, workflow["status"]) == ([PLANNING, APPLYING, "apply_failed"], "failed")
