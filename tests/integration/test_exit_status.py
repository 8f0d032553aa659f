"""A run that found something and a run that could not read the cloud can be told apart.

By the exit status with `orphan_cleanup_fail_on`, by the artifacts, and by the check for Nagios.
`docs/scheduled-runs.md` describes all three.
"""

import subprocess
import sys
import typing as t
from pathlib import Path

import pytest

from .support import Ansible, Minicloud, Run
from .world import World

CHECK = Path(__file__).parents[2] / "extensions" / "monitoring" / "check_placement_orphans.py"
OK, WARNING, CRITICAL, UNKNOWN = range(4)


@pytest.fixture
def variables(minicloud: Minicloud, world: World, ansible: Ansible) -> dict[str, t.Any]:
    """One orphan, which the run is about and may remove."""
    minicloud.scenario("healthy")
    # As AWX does, show what a run exports.
    ansible.environment["ANSIBLE_SHOW_CUSTOM_STATS"] = "true"
    return {
        "orphan_cleanup_consumers": [world.claim("compute-1")],
        "orphan_cleanup_remediate_kinds": ["unknown_consumer"],
    }


def _check(run: Run, *options: str) -> tuple[int, str]:
    path = run.folder / "orphan-cleanup" / "findings.json"
    done = subprocess.run(
        [sys.executable, "-I", str(CHECK), "--any-scope", *options, str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.mark.long
def test_a_run_that_may_not_fail_still_fails_when_it_could_do_nothing(
    ansible: Ansible, variables: dict[str, t.Any]
) -> None:
    variables["orphan_cleanup_fail_on"] = "never"
    garbage = ansible.folder / "garbage.json"
    garbage.write_text("garbage")

    # A limit is no such reason: the plan is there, and says what exceeds it.
    limited = ansible.playbook(
        "cleanup_orphans", variables={**variables, "orphan_cleanup_max_changes": 0}
    )
    assert limited.status == 0 and "max_changes is 0" in limited.told, limited.output
    no_plan = ansible.playbook(
        "cleanup_orphans",
        variables={"orphan_cleanup_fail_on": "never", "orphan_cleanup_plan": str(garbage)},
    )
    assert no_plan.status == 2 and "Traceback" not in no_plan.output, no_plan.output
    no_journal = ansible.playbook(
        "restore_allocations",
        variables={"orphan_cleanup_fail_on": "never", "orphan_cleanup_journal": str(garbage)},
    )
    assert no_journal.status == 2 and "Traceback" not in no_journal.output, no_journal.output
    shown = ansible.playbook("cleanup_orphans", "--check", variables=variables)
    assert shown.status == 0, shown.output
    plan = shown.folder / "orphan-cleanup" / "plan.json"
    ansible.environment.update(
        OS_CLOUD="nonesuch", OS_CLIENT_CONFIG_FILE=str(ansible.folder / "nonesuch.yaml")
    )
    no_cloud = ansible.playbook(
        "cleanup_orphans",
        variables={"orphan_cleanup_fail_on": "never", "orphan_cleanup_plan": str(plan)},
    )
    assert no_cloud.status == 2 and "nonesuch" in no_cloud.told, no_cloud.output


def test_findings_failures_and_cleanups_have_different_ends(
    ansible: Ansible, variables: dict[str, t.Any]
) -> None:
    # Findings alone are no failure unless they are asked to be one.
    found = ansible.playbook("detect_orphans", variables=variables)
    assert found.status == 0 and "orphan_cleanup_run" in found.output, found.output
    assert _check(found)[0] == WARNING
    assert _check(found, "-c", "unknown_consumer=0")[0] == CRITICAL

    # Asked to be one, they fail a run that has read the cloud: it exports what it found.
    strict = {**variables, "orphan_cleanup_fail_on": "findings"}
    left = ansible.playbook("detect_orphans", variables=strict)
    assert left.status == 2 and "1 finding" in left.told, left.output
    assert "orphan_cleanup_run" in left.output
    assert _check(left)[0] == WARNING

    # What a cleanup has removed is no longer an orphan to the check.
    removed = ansible.playbook("cleanup_orphans", variables=strict)
    assert removed.status == 0, removed.output
    assert removed.read("findings.json")["summary"]["verdicts"]["orphaned"] == 1
    status, line = _check(removed)
    assert status == OK and " 0 orphaned, 0 drifted" in line, line

    # A run that cannot read the cloud exports nothing, and the file gets old.
    written = (removed.folder / "orphan-cleanup" / "findings.json").read_bytes()
    ansible.environment.update(
        OS_CLOUD="nonesuch", OS_CLIENT_CONFIG_FILE=str(ansible.folder / "nonesuch.yaml")
    )
    unread = ansible.playbook("detect_orphans", variables=variables)
    assert unread.status == 2 and "orphan_cleanup_run" not in unread.output, unread.output
    assert (removed.folder / "orphan-cleanup" / "findings.json").read_bytes() == written
    status, line = _check(unread, "--max-age", "0")
    assert status == UNKNOWN, line
