"""What the jobs of the workflow refuse before they read anything. None reaches a cloud."""

import typing as t
from pathlib import Path

import pytest

from .automation import NEWEST, OLDEST, ROOT, job
from .support import Ansible, long


def run(folder: Path, playbook: str, variables: dict[str, t.Any], core: str) -> tuple[int, str]:
    """Return the status and the output of a planning job or of a job that makes changes."""
    folder.mkdir(exist_ok=True)
    ansible = Ansible(ROOT, folder, {"OS_CLIENT_CONFIG_FILE": "/dev/null"})
    is_plan = playbook == "clean_up_orphans.yml"
    done = job(ansible, folder / "job", playbook, variables, check=is_plan, core=core)
    return done.status, " ".join(done.output.split())


@pytest.mark.parametrize("core", [NEWEST, long(OLDEST)])
@pytest.mark.parametrize("age", ["1:00", long("010"), long("0x10"), long("no")])
def test_age_is_refused_where_it_would_be_another_than_the_one_that_was_typed(
    tmp_path: Path, core: str, age: str
) -> None:
    """YAML takes 1:00 for 60, which would protect only what is younger than a minute."""
    status, said = run(tmp_path, "clean_up_orphans.yml", {"orphan_cleanup_min_age": age}, core)

    assert status != 0 and "with a unit" in said, said
    assert said.count("PLAY [") == 1


@pytest.mark.parametrize("core", [NEWEST, long(OLDEST)])
def test_workflow_refuses_a_plan_that_it_did_not_make(tmp_path: Path, core: str) -> None:
    """An outer workflow gives its artifacts to all jobs, and they come before those of the jobs."""
    given = {"orphan_cleanup_plan": "/placement/plan.json"}

    for playbook in ("clean_up_orphans.yml", "apply_approved.yml"):
        status, said = run(tmp_path / playbook, playbook, given, core)

        assert status != 0 and "Nothing was changed" in said, said
        assert said.count("PLAY [") == 1
