"""The first process of a hypervisor: it starts its programs, and ends them when it is told to.

It is run by the system's Python inside new namespaces, as ``machine.py NAME FOLDER``. The folder
has the machine's own ``etc`` and ``var``. When this process dies, the kernel ends all others of
the machine at once, as in a power cut.

``/etc/machine.json`` has each unit, with its argv and environment. What somebody wants of a unit
is the word in ``/run/units/UNIT``: on, off (SIGTERM) or killed (SIGKILL); while it runs, there is
``/run/units/UNIT.pid``. A unit that ends by itself is started again.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

UNITS = Path("/run/units")
SIGNALS = {"off": signal.SIGTERM, "killed": signal.SIGKILL}
# How often it looks, and how long a unit that has ended waits for its next start.
INTERVAL, PAUSE = 0.1, 1.0


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def enter(name: str, folder: str) -> None:
    mount("--make-rprivate", "/")
    mount("-t", "proc", "proc", "/proc")
    for part in ("etc", "var"):
        mount("--bind", f"{folder}/{part}", f"/{part}")
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    for made in ("lock", "sshd", "libvirt", "sudo", "units"):
        os.makedirs(f"/run/{made}")
    socket.sethostname(name)


class Machine:
    def __init__(self, units: dict[str, dict]) -> None:
        self._units = units
        self._running: dict[int, str] = {}
        self._told: dict[str, str] = {}
        self._not_before = dict.fromkeys(units, 0.0)

    def run(self) -> None:
        for unit in self._units:
            if not (UNITS / unit).exists():
                (UNITS / unit).write_text("on")
        while True:
            self._reap()
            for unit in self._units:
                self._obey(unit, (UNITS / unit).read_text().strip())
            time.sleep(INTERVAL)

    def _reap(self) -> None:
        """Collect all processes that have ended, also those whose parents were not units."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                unit = self._running.pop(ended, None)
                if unit:
                    (UNITS / f"{unit}.pid").unlink()
                    self._told.pop(unit, None)
                    self._not_before[unit] = time.monotonic() + PAUSE

    def _obey(self, unit: str, word: str) -> None:
        number = next((pid for pid, running in self._running.items() if running == unit), None)
        if word == "on" and number is None and time.monotonic() >= self._not_before[unit]:
            self._start(unit)
        elif word in SIGNALS and number is not None and self._told.get(unit) != word:
            self._told[unit] = word
            os.killpg(number, SIGNALS[word])
        if word in SIGNALS:
            self._not_before[unit] = 0.0

    def _start(self, unit: str) -> None:
        argv, environment = self._units[unit]["argv"], self._units[unit]["environment"]
        log = f"/var/log/{unit}.log"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, flags, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        number = os.posix_spawn(argv[0], argv, environment, file_actions=actions, setsid=True)
        self._running[number] = unit
        (UNITS / f"{unit}.pid").write_text(str(number))


if __name__ == "__main__":
    enter(sys.argv[1], sys.argv[2])
    Machine(json.loads(Path("/etc/machine.json").read_text())).run()
