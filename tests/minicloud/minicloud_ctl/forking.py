"""Starts Nova's services as forks of one process that has imported Nova.

That process is ``minicloud_venv.forker``.

Releases whose Nova needs eventlet start them as programs: eventlet replaces parts of Python while
Nova is imported, and its threads do not survive a fork.
"""

import contextlib
import json
import os
import socket

from minicloud_ctl import files, processes, services
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import Paths
from minicloud_ctl.services import Service
from minicloud_ctl.waiting import wait_for

NAME = "nova-forker"
KINDS = frozenset({"nova-api", "nova-compute", "nova-conductor", "nova-scheduler"})
SOCKET = "nova-forker.socket"
# The first answer comes after Nova's imports.
ANSWER_SECONDS = 120.0


def can_fork(paths: Paths, service: Service) -> bool:
    """Return whether the service needs nothing but what the one process has imported."""
    own_path = "PYTHONPATH" in service.environment
    own_program = not service.argv[0].startswith(f"{paths.venv}/")
    return service.kind in KINDS and not (paths.release.green or own_path or own_program)


def prepare(paths: Paths) -> None:
    """Start the one process, unless it runs; it imports Nova while others start."""
    if processes.alive(paths, NAME):
        return
    # One that was killed leaves its socket.
    (paths.run / SOCKET).unlink(missing_ok=True)
    # The path of a socket has at most 107 characters, and that of a folder can have more.
    relative = os.path.join(paths.run.name, SOCKET)
    argv = [paths.program("python"), "-m", "minicloud_venv.forker", relative]
    processes.start(paths, NAME, argv, services.environment(paths, services.UNPATCHED))


def start(paths: Paths, name: str, argv: list[str], environment: dict[str, str]) -> None:
    """Do the same as ``processes.start``."""
    request = {
        "argv": argv,
        "environment": {**environment, "MINICLOUD_HOME": str(paths.home)},
        "log": str(paths.logs / f"{name}.log"),
    }
    with _connect(paths) as connection:
        connection.settimeout(ANSWER_SECONDS)
        connection.sendall((json.dumps(request) + "\n").encode())
        try:
            answer = connection.makefile("r", encoding="ascii").readline()
        except OSError:
            answer = ""
    if not answer:
        raise MinicloudError(
            f"{NAME} did not start {name}.", files.tail(paths.logs / f"{NAME}.log")
        )
    processes.record(paths, name, int(answer))


def _connect(paths: Paths) -> socket.socket:
    """Connect through an open folder, whose path is always short."""

    def connected() -> socket.socket | None:
        processes.must_live(paths, [NAME])
        connection = socket.socket(socket.AF_UNIX)
        folder = os.open(paths.run, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with contextlib.suppress(OSError):
                connection.connect(f"/proc/self/fd/{folder}/{SOCKET}")
                return connection
        finally:
            os.close(folder)
        connection.close()
        return None

    return wait_for(f"{NAME} to listen", connected, interval=0.05)
