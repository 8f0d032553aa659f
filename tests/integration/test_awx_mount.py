"""A job of AWX fails before it reads anything when its output directory is not mounted."""

import json
import typing as t
from pathlib import Path

import pytest

from .automation import NEWEST, OLDEST, PATTERN, ROOT, find_ansible_playbook
from .support import Ansible, long

PLAYBOOKS = PATTERN / "playbooks"
# No system has a mount here.
MISSING = "/a directory that no node has/placement"


def run(
    folder: Path, playbook: Path, variables: dict[str, t.Any], core: str = NEWEST
) -> tuple[int, str]:
    """Return the status and the output of a playbook, which reaches no cloud."""
    ansible = Ansible(ROOT, folder, {"OS_CLIENT_CONFIG_FILE": "/dev/null"})
    program = find_ansible_playbook(ansible, core)
    done = ansible.command(program, str(playbook), "-e", json.dumps(variables))
    return done.status, done.told


@pytest.mark.parametrize(
    ("name", "core"),
    [
        ("find_orphans", OLDEST),
        ("apply_approved", NEWEST),
        long("find_orphans", NEWEST),
        long("apply_approved", OLDEST),
        long("clean_up_orphans", NEWEST),
        long("decommission_host", NEWEST),
        long("drain_host", NEWEST),
        long("restore_allocations", NEWEST),
    ],
)
def test_job_without_its_mounted_directory_fails_before_it_reads_anything(
    tmp_path: Path, name: str, core: str
) -> None:
    variables = {"placement_mounted_dir": MISSING, "orphan_cleanup_plan": {"count": 0}}

    status, said = run(tmp_path, PLAYBOOKS / f"{name}.yml", variables, core)

    assert status != 0 and f"{MISSING} is not" in said
    assert "skipped=0" in said and said.count("PLAY [") == 1


@pytest.mark.parametrize("core", [NEWEST, OLDEST])
def test_mount_and_directories_in_it_are_accepted(tmp_path: Path, core: str) -> None:
    tasks = {"ansible.builtin.import_tasks": str(PLAYBOOKS / "tasks" / "require_mounted_dir.yml")}
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [tasks]}
    plays = [
        {**play, "vars": {"placement_mounted_dir": directory}}
        for directory in ("/proc", "/proc/self/../sys", "/dev/shm/region-one")
    ]
    (tmp_path / "play.json").write_text(json.dumps(plays))

    status, said = run(tmp_path, tmp_path / "play.json", {}, core)

    assert status == 0 and "ok=3" in said, said
