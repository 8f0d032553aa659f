"""Starts and ends processes so that none is left behind.

Other people's processes are never killed.

Each process leads its own session and group. ``run/<name>.json`` holds {"pid": ..., "start_time":
...}; the start time is field 22 of /proc/PID/stat (proc(5)), which distinguishes our process from a
later one with the same number.
"""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from minicloud_ctl import files
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import Paths
from minicloud_ctl.waiting import wait_for

STOP_SECONDS = 8.0


def start(paths: Paths, name: str, argv: list[str], environment: dict[str, str]) -> None:
    """Start ``argv`` in a session of its own, with its output appended to ``logs/<name>.log``."""
    paths.logs.mkdir(parents=True, exist_ok=True)
    # This mark identifies members of the group as ours once their leader is gone.
    environment = {**environment, "MINICLOUD_HOME": str(paths.home)}
    with open(paths.logs / f"{name}.log", "ab") as log:
        process = subprocess.Popen(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=paths.home,
            start_new_session=True,
        )
    record(paths, name, process.pid)


def record(paths: Paths, name: str, number: int) -> None:
    """Remember a process that was just started, and that leads its group."""
    stat = _stat(number)
    if stat is None:
        raise MinicloudError(
            f"The service {name} ended at its start.", files.tail(paths.logs / f"{name}.log")
        )
    written = {"pid": number, "start_time": stat["start_time"]}
    files.write(_record(paths, name), json.dumps(written) + "\n")


def names(paths: Paths) -> list[str]:
    """Return every service that was started and not stopped since, in the order of the names."""
    return sorted(path.stem for path in paths.run.glob("*.json"))


def pid(paths: Paths, name: str) -> int | None:
    """Return the recorded number, whether or not the process lives."""
    record = _read(paths, name)
    return record["pid"] if record else None


def alive(paths: Paths, name: str) -> bool:
    """Return whether the recorded process itself (not one that inherited its number) runs."""
    record = _read(paths, name)
    if record is None:
        return False
    _reap(record["pid"])
    stat = _stat(record["pid"])
    return stat is not None and stat["start_time"] == record["start_time"]


def must_live(paths: Paths, names: list[str]) -> None:
    """Fail with the end of the log as soon as one of the services has died."""
    for name in names:
        if not alive(paths, name):
            raise MinicloudError(
                f"The service {name} ended while it was starting.",
                files.tail(paths.logs / f"{name}.log"),
            )


@contextlib.contextmanager
def paused(paths: Paths, name: str) -> Iterator[Callable[[], None]]:
    """Stop a service with its workers, in the middle of its work.

    Yields a function that lets it continue.
    """
    number = pid(paths, name)
    assert number is not None and alive(paths, name), name
    os.killpg(number, signal.SIGSTOP)
    try:
        yield lambda: os.killpg(number, signal.SIGCONT)
    finally:
        os.killpg(number, signal.SIGCONT)


def stop(paths: Paths, wanted: list[str], now: bool = False) -> None:
    """End the process groups: SIGTERM, and SIGKILL for the rest after some seconds.

    ``now`` sends SIGKILL at once.
    """
    groups = {name: _read(paths, name) for name in wanted}
    if not now:
        _signal_all(paths, groups, signal.SIGTERM)
        # The rest is killed below. This is not an error: some services finish a long call first.
        with contextlib.suppress(Exception):
            wait_for(
                "the services to end",
                lambda: not any(_members(paths, record) for record in groups.values()),
                STOP_SECONDS,
                0.1,
            )
    _signal_all(paths, groups, signal.SIGKILL)
    wait_for(
        "killed services to vanish",
        lambda: not any(_members(paths, record) for record in groups.values()),
        10,
        0.05,
    )
    for name in wanted:
        _record(paths, name).unlink(missing_ok=True)


def _signal_all(paths: Paths, groups: dict[str, dict | None], number: signal.Signals) -> None:
    for record in groups.values():
        for member in _members(paths, record):
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, number)


def _members(paths: Paths, record: dict | None) -> list[int]:
    """Return the living processes of the group.

    The leader is recognized by its start time, the others by our mark in their environment.
    """
    if record is None:
        return []
    _reap(record["pid"])
    found = []
    for entry in os.listdir("/proc"):
        stat = _stat(int(entry)) if entry.isdigit() else None
        if stat is None or stat["group"] != record["pid"]:
            continue
        is_ours = _is_marked(paths, int(entry))
        if int(entry) == record["pid"]:
            is_ours = stat["start_time"] == record["start_time"]
        if is_ours:
            found.append(int(entry))
    return found


def _is_marked(paths: Paths, number: int) -> bool:
    try:
        return f"MINICLOUD_HOME={paths.home}".encode() in Path(
            f"/proc/{number}/environ"
        ).read_bytes().split(b"\0")
    except OSError:
        return False


def _stat(number: int) -> dict | None:
    """Return {"group": ..., "start_time": ...} of a process with at least one living thread."""
    try:
        text = Path(f"/proc/{number}/stat").read_text(encoding="ascii", errors="replace")
        # The second field is the command in brackets, which can contain anything, including blanks
        # and brackets.
        fields = text.rpartition(")")[2].split()
        if fields[0] in "ZX" and len(os.listdir(f"/proc/{number}/task")) <= 1:
            return None
    except OSError:
        return None
    return {"group": int(fields[2]), "start_time": int(fields[19])}


def _reap(number: int) -> None:
    """Remove a zombie that is a child of this very command.

    Others are not our children.
    """
    with contextlib.suppress(ChildProcessError):
        os.waitpid(number, os.WNOHANG)


def _record(paths: Paths, name: str) -> Path:
    return paths.run / f"{name}.json"


def _read(paths: Paths, name: str) -> dict | None:
    try:
        return json.loads(_record(paths, name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
