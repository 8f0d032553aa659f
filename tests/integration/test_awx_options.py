"""What `apply.yml` sets up only when its variables name it.

These are answers of schedules, credentials, instance groups and roles of teams. Nothing here needs
a cloud.
"""

import json
import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest

from .automation import NEWEST, OLDEST, ROOT
from .awx.api import Awx
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
    Setup,
)
from .awx.store import Entry
from .support import Ansible

RRULE = "DTSTART;TZID=UTC:20260101T030000 RRULE:FREQ=DAILY;INTERVAL=1"
TEN_MINUTES = "DTSTART;TZID=UTC:20260101T000000 RRULE:FREQ=MINUTELY;INTERVAL=10"
OFTEN = "Placement: find new orphans"
TEAMS = ("awx_teams_launch", "awx_teams_read", "awx_teams_approve")
INCREMENTAL = {"orphan_cleanup_mode": "incremental", "orphan_cleanup_full_every": "2d"}
NO_MODE = {"orphan_cleanup_mode": "none"}


@pytest.fixture(params=[NEWEST, OLDEST])
def rich(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Setup]:
    """An AWX with teams, credentials and instance groups, and variables that name all of them."""
    awx = Awx(PLAYBOOKS)
    for name in ("operators", "auditors", "approvers"):
        awx.store.add("teams", {"name": name, "organization": awx.default["id"]})
    groups = [awx.store.add("instance_groups", {"name": name}) for name in ("near", "far", "mine")]
    uses = frozenset(group["id"] for group in groups[:2])
    awx.users[ADMINISTRATOR] = User(administers=frozenset({awx.default["id"]}), uses=uses)
    # Names are unique for each type only.
    awx.add_credential("robot", awx.default, awx.source_control)
    awx.add_credential("robot", awx.default, awx.registry)
    awx.add_credential("OpenStack auditor", awx.default)
    options = {
        "awx_reading_credential": "OpenStack auditor",
        "awx_scm_credential": "robot",
        "awx_registry_credential": "robot",
        "awx_instance_groups": ["near", "far"],
        "awx_teams_launch": ["operators"],
        "awx_teams_read": ["auditors", "operators"],
        "awx_teams_approve": ["approvers"],
        "awx_schedules": [
            {"name": NIGHTLY, "rrule": RRULE, "answers": {"orphan_cleanup_fail_on": "findings"}},
            {"name": OFTEN, "rrule": TEN_MINUTES, "answers": INCREMENTAL},
        ],
    }
    with served(awx):
        ansible = Ansible(ROOT, tmp_path, {})
        yield Setup(ansible, awx, core=request.param, awx_output_dir="/placement", **options)


def roles_of(awx: Awx, team: str) -> set[tuple[str, str]]:
    """Return the roles of a team, by the names of the object and of the role."""
    found = set()
    for key in awx.store.linked(awx.named("teams", team)["id"], "roles"):
        role = awx.store.get(key)
        found.add((awx.store.get(role["content"])["name"], role["name"]))
    return found


@pytest.mark.long
def test_organization_administrator_sets_up_everything_that_is_optional(rich: Setup) -> None:
    awx = rich.awx

    predicted = rich.apply("--check", token=ADMINISTRATOR)
    done = rich.apply(token=ADMINISTRATOR)
    kept = awx.ask("POST", "schedules/", create_schedule(awx))[1]["id"]
    again = rich.apply(token=ADMINISTRATOR)

    assert done.status == 0, done.output
    assert predicted.status == 0, predicted.output
    assert predicted.written == []
    assert [line.replace("Would ", "", 1) for line in predicted.changes] == done.changes
    assert (again.status, again.changes) == (0, []), again.output
    check_options(awx)
    assert kept in awx.objects["schedules"], "a schedule that is not in the list stays"
    jobs = {name: awx.run_schedule(name) for name in (NIGHTLY, OFTEN)}
    variables = {name: json.loads(job["extra_vars"]) for name, job in jobs.items()}
    assert variables[NIGHTLY]["orphan_cleanup_fail_on"] == "findings"
    assert variables[NIGHTLY]["orphan_cleanup_mode"] == "full"
    assert variables[OFTEN].items() >= INCREMENTAL.items()


def create_schedule(awx: Awx) -> Entry:
    """Return the fields of a schedule that the list does not name."""
    template = awx.named("job_templates", FIND)["id"]
    return {"name": "an old one", "unified_job_template": template, "rrule": RRULE}


def check_options(awx: Awx) -> None:
    """Check that AWX has exactly what the options of `rich` name."""
    types = {"projects": awx.source_control, "execution_environments": awx.registry}
    for kind, of_type in types.items():
        (entry,) = awx.objects[kind].values()
        assert awx.store.get(entry["credential"])["credential_type"] == of_type["id"]
    for entry in awx.objects["job_templates"].values():
        groups = awx.linked("job_templates", entry["name"], "instance_groups")
        assert groups == ["near", "far"]
    reading, writing = ["OpenStack auditor"], ["OpenStack admin"]
    credentials = {
        name: awx.linked("job_templates", name, "credentials")
        for name in (FIND, PLAN, APPLY, DRAIN, DECOMMISSION, RESTORE)
    }
    assert credentials == {
        **dict.fromkeys((FIND, PLAN), reading),
        **dict.fromkeys((APPLY, DRAIN, DECOMMISSION, RESTORE), writing),
    }
    jobs_of_workflow = {(name, "Read") for name in (PLAN, APPLY, EXPLAIN, DRAIN, DECOMMISSION)}
    launch = {(FIND, "Execute"), (WORKFLOW, "Execute")}
    read = {(name, "Read") for name in (FIND, RESTORE, WORKFLOW, RETIRE)}
    assert roles_of(awx, "operators") >= launch | jobs_of_workflow
    assert roles_of(awx, "auditors") >= read | jobs_of_workflow
    approve = {(name, "Approval") for name in (WORKFLOW, RETIRE)}
    assert roles_of(awx, "approvers") == approve | jobs_of_workflow
    for team in ("operators", "auditors", "approvers"):
        for name in (APPLY, DRAIN, DECOMMISSION, RETIRE):
            assert (name, "Execute") not in roles_of(awx, team)
    answers = {entry["name"]: entry["extra_data"] for entry in awx.objects["schedules"].values()}
    assert answers[NIGHTLY] == {"orphan_cleanup_fail_on": "findings"}
    assert answers[OFTEN] == INCREMENTAL


@pytest.mark.long
def test_what_is_optional_is_corrected_and_left_alone_when_it_is_no_longer_named(
    rich: Setup,
) -> None:
    awx = rich.awx
    assert rich.apply().status == 0
    awx.named("schedules", NIGHTLY)["extra_data"] = {"orphan_cleanup_mode": "full"}
    awx.named("projects", "osops.placement")["credential"] = None
    awx.store.linked(awx.named("job_templates", FIND)["id"], "instance_groups").reverse()
    mine = awx.named("instance_groups", "mine")["id"]
    awx.store.linked(awx.named("job_templates", PLAN)["id"], "instance_groups").append(mine)
    approvers = awx.store.linked(awx.named("teams", "approvers")["id"], "roles")
    approvers.clear()
    auditors = awx.store.linked(awx.named("teams", "auditors")["id"], "roles")
    execute = awx.store.shown(awx.named("job_templates", RESTORE)["id"])["summary_fields"]
    auditors.append(execute["object_roles"]["execute_role"]["id"])

    predicted = rich.apply("--check")
    right = rich.apply()

    assert right.status == 0, right.output
    assert [line.replace("Would ", "", 1) for line in predicted.changes] == right.changes
    check_options(awx)
    assert (RESTORE, "Execute") in roles_of(awx, "auditors"), "what others have granted stays"

    plain = dict.fromkeys(("awx_scm_credential", "awx_registry_credential"), "")
    lists = ("awx_instance_groups", "awx_schedules", *TEAMS)
    without = rich.apply(**plain, **{name: [] for name in lists})

    assert (without.status, without.changes) == (0, []), without.output
    check_options(awx)

    gone = rich.apply(awx_state="absent")

    assert gone.status == 0, gone.output
    assert not awx.objects["schedules"] and not awx.objects["roles"]
    assert len(awx.objects["teams"]) == 3


@pytest.mark.long
@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"awx_teams_read": ["nobody"]}, "AWX has 0 teams named nobody"),
        ({"awx_instance_groups": ["mine"]}, "AWX has 0 instance groups named mine"),
        (
            {"awx_scm_credential": "OpenStack admin"},
            "AWX has 0 credentials of the type Source Control named OpenStack admin",
        ),
        (
            {"awx_schedules": [{"name": "x", "rrule": RRULE, "answers": {"answer": 42}}]},
            "Variables answer are not allowed on launch.",
        ),
        (
            {"awx_schedules": [{"name": "x", "rrule": RRULE, "answers": NO_MODE}]},
            "Value none for 'orphan_cleanup_mode' expected to be one of",
        ),
    ],
)
def test_wrong_option_ends_the_set_up_with_a_sentence(
    rich: Setup, variables: dict[str, t.Any], said: str
) -> None:
    wrong = rich.apply(token=ADMINISTRATOR, **variables)

    assert wrong.status != 0 and said in wrong.said.replace("\\", "")
