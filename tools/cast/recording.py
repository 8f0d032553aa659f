"""Records what a terminal shows while commands run, and when."""

import contextlib
import dataclasses as d
import json
import os
import pathlib
import sys
import tempfile
import time
import typing as t

from ...tests.integration.console_shell import COLUMNS, Shell
from ...tests.integration.support import ROOT, Minicloud, installed
from ..json_text import format_json

FILE = pathlib.Path(__file__).with_name("recording.json")
# Orphans, and servers that only look like orphans, each with a name.
SCENARIOS = {
    "deleted_server": "build-42",
    "evacuated_source": "web-3",
    "ended_migration": "db-1",
    "extra_host": "web-7",
    "booting": "web-8",
    "unconfirmed_resize": "db-2",
}
COMMANDS = (
    "ansible-playbook osops.placement.cleanup_orphans --check",
    "ansible-playbook osops.placement.cleanup_orphans",
)
# What the recording shows in place of a folder of this machine.
_HOME = "/home/operator"


@d.dataclass
class Take:
    """One command with the pieces that it printed, each with the seconds since its start."""

    command: str
    pieces: list[tuple[float, str]] = d.field(default_factory=list)


def record() -> list[Take]:
    """Run the commands on a new cloud, and return what they printed."""
    cloud = Minicloud(ROOT, ROOT / ".minicloud" / "cast", kept=False)
    cloud.forget()
    try:
        cloud.run("up")
        cloud.scenario(*SCENARIOS)
        for scenario, name in SCENARIOS.items():
            cloud.run("rename", scenario, name)
        cloud.run("age", "2")
        with tempfile.TemporaryDirectory(prefix="d", dir="/tmp") as folder:
            return _record(cloud, folder)
    finally:
        cloud.forget()


def _record(cloud: Minicloud, folder: str) -> list[Take]:
    _tarball, collections = installed(pathlib.Path(folder))
    environment = {
        **cloud.environment,
        "HOME": folder,
        "LANG": "C.UTF-8",
        "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
        "TERM": "xterm-256color",
        "ANSIBLE_COLLECTIONS_PATH": str(collections),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
    }
    takes = []
    with contextlib.closing(Shell(folder, environment)) as shell:
        for command in COMMANDS:
            takes.append(Take(command))
            watch = _Watch(takes[-1], folder, cloud.ports)
            status, output = shell.run(command, watch.add)
            assert status == 0, output
    return takes


class _Watch:
    """Adds what a command prints to its take, without the names of this machine."""

    def __init__(self, take: Take, folder: str, ports: t.Mapping[str, int]) -> None:
        self._take = take
        self._began = time.monotonic()
        self._shown = {folder: _HOME}
        for service, port in ports.items():
            self._shown[f"http://127.0.0.1:{port}"] = f"https://{service}.example.org"

    def add(self, piece: str) -> None:
        for real, shown in self._shown.items():
            piece = piece.replace(real, shown)
        self._take.pieces.append((round(time.monotonic() - self._began, 2), piece))


def save(takes: list[Take]) -> None:
    document = {"columns": COLUMNS, "takes": [d.asdict(take) for take in takes]}
    FILE.write_text(format_json(document), encoding="utf-8")


def load() -> list[Take]:
    document = json.loads(FILE.read_text(encoding="utf-8"))
    takes = []
    for take in document["takes"]:
        takes.append(Take(take["command"], take["pieces"]))
    return takes
