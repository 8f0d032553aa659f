"""A journal whose folder is deleted after the job, as that of a container is.

What the job exports is enough to restore everything, and the job says that the folder is lost.
"""

import json
import os
import shutil
import subprocess
import typing as t
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from .automation import NEWEST, OLDEST, Job, dump_extra_variables, find_ansible_playbook
from .strays import Strays
from .support import Ansible, Placement, Run, assert_nothing_changed, long

LOST = "[WARNING]: The journal in "
CLEANUP = {
    "orphan_cleanup_min_age": "0",
    "orphan_cleanup_unknown_min_age": "0",
    "orphan_cleanup_remediate_kinds": ["unknown_consumer"],
    "orphan_cleanup_max_share": 1.0,
}


class Jobs:
    """Runs playbooks, each in a folder of its own that is deleted when the playbook has ended."""

    def __init__(self, ansible: Ansible, folder: Path, core: str) -> None:
        self._ansible = ansible
        self._folder = folder
        self._program = find_ansible_playbook(ansible, core)

    def run(
        self, name: str, *arguments: str, artifacts: dict[str, t.Any] | None = None, **more: t.Any
    ) -> Job:
        """Run `osops.placement.NAME` with the artifacts of another job, and with more variables."""
        folder = self._folder / str(uuid.uuid4())
        folder.mkdir()
        variables = {"orphan_cleanup_output_dir": str(folder / "out"), **CLEANUP, **more}
        (folder / "variables.yml").write_text(dump_extra_variables(artifacts or {}, variables))
        done = self._ansible.command(
            self._program,
            f"osops.placement.{name}",
            "-e",
            "@variables.yml",
            *arguments,
            folder=folder,
            ANSIBLE_SHOW_CUSTOM_STATS="1",
        )
        shutil.rmtree(folder)
        return Job(done.status, done.output, _find_artifacts(done.output))


def _find_artifacts(output: str) -> dict[str, t.Any]:
    for line in output.splitlines():
        if line.startswith("\tRUN: "):
            return json.loads(line.removeprefix("\tRUN: "))
    return {}


@pytest.fixture(params=[NEWEST, long(OLDEST)])
def jobs(ansible: Ansible, tmp_path: Path, request: pytest.FixtureRequest) -> Jobs:
    return Jobs(ansible, tmp_path, request.param)


@pytest.fixture
def newest(ansible: Ansible, tmp_path: Path) -> Jobs:
    return Jobs(ansible, tmp_path, NEWEST)


@pytest.mark.long
def test_everything_is_restored_from_the_artifacts_alone(
    jobs: Jobs, placement: Placement, strays: Strays
) -> None:
    before = placement.everything()

    removed = jobs.run("cleanup_orphans")

    assert removed.status == 0 and strays.held == [], removed.output
    assert not Path(removed.artifacts["orphan_cleanup_run"]["journal"]).exists()
    journal = {"orphan_cleanup_journal": removed.artifacts["orphan_cleanup_journal"]}

    predicted = jobs.run("restore_allocations", "--check", artifacts=journal)

    assert predicted.status == 0 and "mode: 3 restored." in predicted.told
    assert strays.held == []
    # The artifacts of all earlier jobs arrive together.
    restored = jobs.run("restore_allocations", artifacts=removed.artifacts)

    assert restored.status == 0 and "Outcome: 3 restored." in restored.told, restored.output
    assert strays.held == strays.consumers
    assert set(placement.everything()) == set(before)

    again = jobs.run("restore_allocations", artifacts=journal)

    assert again.status == 0 and "Outcome: 3 skipped." in again.told, again.output
    assert "orphan_cleanup_journal" not in restored.artifacts | again.artifacts


@pytest.mark.long
def test_run_that_changes_nothing_exports_no_journal(newest: Jobs, strays: Strays) -> None:
    predicted = newest.run("cleanup_orphans", "--check")
    strays.release()
    empty = newest.run("cleanup_orphans")

    assert (predicted.status, empty.status) == (0, 0)
    assert predicted.artifacts["orphan_cleanup_run"]["planned"] == 3
    for done in (predicted, empty):
        assert "orphan_cleanup_journal" not in done.artifacts


@pytest.mark.long
def test_journal_that_was_pasted_by_hand_is_restored(newest: Jobs, strays: Strays) -> None:
    artifacts = newest.run("cleanup_orphans").artifacts
    packs = artifacts["orphan_cleanup_journal"]
    forms: list[t.Any] = [
        packs[0],
        "\n".join(packs) + "\n",
        {"by_host": {"localhost": packs}},
        # The plan of the same changes is among them.
        json.dumps(artifacts, indent=1),
    ]
    for pasted in forms:
        strays.release()
        restored = newest.run("restore_allocations", orphan_cleanup_journal=pasted)

        assert restored.status == 0 and strays.held == strays.consumers, restored.output


@pytest.mark.long
def test_two_runs_in_one_play_export_both_journals(ansible: Ansible, strays: Strays) -> None:
    first, *others = strays.consumers
    ansible.environment["ANSIBLE_SHOW_CUSTOM_STATS"] = "1"

    def clean_up(consumers: list[str]) -> dict[str, t.Any]:
        variables = {**CLEANUP, "orphan_cleanup_consumers": consumers}
        role = {"name": "osops.placement.orphan_cleanup"}
        return {"ansible.builtin.include_role": role, "vars": variables}

    done = ansible.play({"tasks": [clean_up([first]), clean_up(others)]})

    assert done.status == 0 and strays.held == [], done.output
    packs = _find_artifacts(done.output)["orphan_cleanup_journal"]
    assert len(packs) == 2
    restored = ansible.direct("orphan_restore", journal=packs, output_dir=str(ansible.folder))
    assert restored["tally"]["restored"] == 3 and strays.held == strays.consumers


# A folder that is lost


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory, which no machine and no container keeps."""
    folder = Path("/dev/shm") / f"orphan-cleanup-{uuid.uuid4()}"
    if not os.path.ismount("/dev/shm"):
        pytest.skip("/dev/shm is not there")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _clean_up(ansible: Ansible, folder: Path, *arguments: str, **variables: t.Any) -> Run:
    every = {**CLEANUP, "orphan_cleanup_output_dir": str(folder), **variables}
    return ansible.playbook("cleanup_orphans", *arguments, variables=every)


@pytest.mark.long
def test_run_says_before_it_writes_that_its_folder_is_lost(
    ansible: Ansible, strays: Strays, memory: Path
) -> None:
    variables = json.dumps({**CLEANUP, "orphan_cleanup_output_dir": str(memory)})
    done = subprocess.run(
        [ansible.program("ansible-playbook"), "osops.placement.cleanup_orphans", "-e", variables],
        # Warnings go to the other stream, and their place among the tasks is what matters.
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=ansible.folder,
        env=ansible.environment,
    )
    told = " ".join(done.stdout.split())

    assert done.returncode == 0 and strays.held == [], done.stdout
    assert told.count(LOST) == 1
    assert told.index(LOST) < told.index(": Make the changes]")
    assert f"{LOST}{memory} is lost" in told and "(tmpfs)" in told


@pytest.mark.long
def test_check_mode_and_a_run_without_changes_do_not_say_it(
    ansible: Ansible, placement: Placement, strays: Strays, memory: Path
) -> None:
    before = placement.everything()

    predicted = _clean_up(ansible, memory, "--check")

    assert predicted.status == 0 and LOST not in predicted.told, predicted.output
    assert_nothing_changed(predicted, before, placement)
    strays.release()
    empty = _clean_up(ansible, memory)

    assert empty.status == 0 and LOST not in empty.told, empty.output


# A large cloud
