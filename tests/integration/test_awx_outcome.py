"""The last job of the workflow of AWX says what happened, and what to do next.

Nothing here needs a cloud.
"""

import typing as t
from pathlib import Path

import pytest

from .automation import NEWEST, OLDEST, ROOT, Job, job
from .support import Ansible, long

RED = ("apply_failed", "plan_failed")
PLAYBOOK = "explain_outcome.yml"
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


@pytest.mark.parametrize("core", [OLDEST, long(NEWEST)])
@pytest.mark.parametrize(
    ("outcome", "run", "expected"),
    [
        long("applied", DONE, ["3 of 3 changes.", f"{RESTORE} /placement/journal-1.jsonl."]),
        ("applied", SOME, ["2 of 3 changes.", AGAIN]),
        long("not_approved", PLANNED, ["Nothing was changed:", AGAIN]),
        long("plan_failed", None, ['"Placement: plan the cleanup" failed', AGAIN]),
        long("apply_failed", FAILED, ["made 1 changes.", RESTORE, AGAIN]),
        long("apply_failed", PLANNED, ["journal in /placement.", AGAIN]),
        # Nobody can use the path of a file that is deleted with its container.
        long("applied", {**DONE, **LOST}, [f"{RESTORED_FROM} the artifact orphan_cleanup_journal"]),
        ("apply_failed", {**FAILED, **LOST, "journal": LONG}, ["cannot be undone"]),
        long("apply_failed", {**PLANNED, **LOST}, ["deleted with its container", AGAIN]),
    ],
)
def test_last_job_says_what_happened_and_what_to_do_next(
    tmp_path: Path, core: str, outcome: str, run: dict[str, t.Any] | None, expected: list[str]
) -> None:
    variables: dict[str, t.Any] = {"placement_outcome": outcome}
    if run is not None:
        variables["orphan_cleanup_run"] = run
        if run["journal"] not in ("", LONG):
            variables["orphan_cleanup_journal"] = ["osops.placement.run:1:00:ab"]

    done: Job = job(Ansible(ROOT, tmp_path, {}), tmp_path / "job", PLAYBOOK, variables, core=core)

    said = " ".join(done.output.replace("\\", "").split())
    assert (done.status != 0) is (outcome in RED), done.output
    for part in expected:
        assert part in said
    if run is DONE:
        assert AGAIN not in said
