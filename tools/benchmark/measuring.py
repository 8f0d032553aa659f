"""Runs a command, and measures its time and its load."""

from __future__ import annotations

import dataclasses as d
import os
import subprocess
import time
import typing as t
from pathlib import Path

if t.TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TICK = os.sysconf("SC_CLK_TCK")


class Failed(Exception):
    """A measured command failed."""


@d.dataclass(frozen=True)
class Run:
    """seconds: wall time.

    cpu: the processor time of the command itself in seconds, without its services.
    foreign: the fraction of the machine's processor time that other processes used meanwhile.
    """

    seconds: float
    cpu: float
    foreign: float
    output: str
    status: int = 0


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    good: Sequence[int],
    services: Sequence[int],
    folder: Path,
) -> Run:
    """Run a command in a folder to its end; `services` lead the process groups that answer it."""
    busy, served = _read_busy(), _read_cpu_of_groups(services)
    began = time.perf_counter()
    with subprocess.Popen(
        command,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
    ) as process:
        assert process.stdout
        output = process.stdout.read()
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - began
    if process.returncode not in good:
        raise Failed(
            f"{' '.join(command[:4])} failed with status {process.returncode}:\n{output[-2000:]}"
        )
    cpu = usage.ru_utime + usage.ru_stime
    others = _read_busy() - busy - (_read_cpu_of_groups(services) - served) - cpu
    foreign = max(0.0, others / (seconds * (os.cpu_count() or 1)))
    return Run(seconds, cpu, foreign, output, process.returncode)


def _read_busy() -> float:
    """Return the seconds for which any processor was busy (proc(5))."""
    text = Path("/proc/stat").read_text(encoding="ascii")
    fields = list(map(int, text.splitlines()[0].split()[1:9]))
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) / _TICK


def _read_cpu_of_groups(leaders: Sequence[int]) -> float:
    total = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text(encoding="ascii", errors="replace")
            except OSError:
                continue
            fields = text.rpartition(")")[2].split()
            if int(fields[2]) in leaders:
                total += int(fields[11]) + int(fields[12])
    return total / _TICK
