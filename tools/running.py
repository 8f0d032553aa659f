"""What several tools do with commands: whole playbooks, and the minicloud."""

import json
import os
import signal
import subprocess
import sys
import typing as t
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]


def inherit() -> dict[str, str]:
    """Return our own environment without the settings of OpenStack, Ansible and Python."""
    ours = ("OS_", "ANSIBLE_", "PYTHON")
    return {key: value for key, value in os.environ.items() if not key.startswith(ours)}


def end_when_terminated() -> None:
    """Let a terminated run stop its cloud like an interrupted one."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def build_playbook_command(name: str, variables: t.Mapping[str, t.Any], *flags: str) -> list[str]:
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    return [program, f"osops.placement.{name}", "-e", json.dumps(variables), *flags]


def build_playbook_environment(folder: Path) -> dict[str, str]:
    """Return what a playbook of this repository needs; Ansible keeps its files in the folder."""
    return {
        "ANSIBLE_COLLECTIONS_PATH": str(REPOSITORY / "collections"),
        "ANSIBLE_HOME": str(folder / ".ansible"),
        "ANSIBLE_NOCOLOR": "1",
    }


def run_minicloud(home: Path, venv: Path, *arguments: str) -> None:
    """Run a command of the minicloud with the Python of the minicloud, which may differ from ours.

    In this process, it would install for our Python, and replace an environment that other clouds
    may use too.
    """
    command = [str(REPOSITORY / "tests/minicloud/minicloud"), "--home", str(home), *arguments]
    environment = {**inherit(), "MINICLOUD_VENV": str(venv)}
    subprocess.run(command, env=environment, stdout=sys.stderr, check=True)
