# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The programs with which AWX and Event-Driven Ansible run jobs.

They are in an environment of their own (`tests/tools/venv automation`).
"""

from __future__ import annotations

import dataclasses as d
import json
import os
import subprocess
import typing as t
from pathlib import Path

import pytest

if t.TYPE_CHECKING:
    from ansible_collections.osops.placement.tests.integration.support import Ansible

ROOT = Path(__file__).parents[2]
PATTERN = ROOT / "extensions" / "patterns" / "orphan_cleanup"


def program(name: str) -> str:
    """Return the path of a program of the environment, which AUTOMATION_VENV can name.

    Without it the test is skipped.
    """
    path = Path(os.environ.get("AUTOMATION_VENV") or ROOT / ".venv" / "automation") / "bin" / name
    if not path.exists():
        pytest.skip(f"{path} is not there: run make venv-automation")
    return str(path)


def environment(ansible: Ansible) -> dict[str, str]:
    """Return the variables of a job, whose Ansible comes first in PATH."""
    return {
        **ansible.environment,
        "PATH": os.pathsep.join(
            [str(Path(program("ansible-playbook")).parent), ansible.environment["PATH"]]
        ),
    }


@d.dataclass(frozen=True)
class Job:
    """A finished job: its status, its output, and the artifacts that AWX would keep."""

    status: int
    output: str
    artifacts: dict[str, t.Any]


def job(
    ansible: Ansible, folder: Path, playbook: str, variables: dict[str, t.Any], check: bool = False
) -> Job:
    """Run a wrapper playbook of the pattern as AWX does, in a folder like a new container.

    As in AWX, a check is a job type, surveys and the artifacts of the previous job are extra
    variables, and a job passes on what the last event of the play has of `set_stats`.
    """
    runner = program("ansible-runner")
    (folder / "env").mkdir(parents=True)
    (folder / "env" / "extravars").write_text(
        json.dumps({**variables, "orphan_cleanup_output_dir": str(folder / "out")})
    )
    (folder / "env" / "settings").write_text(json.dumps({"suppress_env_files": True}))
    if check:
        (folder / "env" / "cmdline").write_text("--check")
    (folder / "inventory").mkdir()
    (folder / "inventory" / "hosts").write_text("localhost ansible_connection=local\n")
    (folder / "project").symlink_to(PATTERN / "playbooks")
    done = subprocess.run(
        [runner, "run", str(folder), "-p", playbook, "--ident", "1"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(ansible),
        cwd=folder,
    )
    events = [
        json.loads(path.read_text())
        for path in (folder / "artifacts" / "1" / "job_events").glob("*.json")
    ]
    artifacts = [
        event["event_data"].get("artifact_data", {})
        for event in events
        if event["event"] == "playbook_on_stats"
    ]
    return Job(done.returncode, done.stdout + done.stderr, artifacts[0] if artifacts else {})
