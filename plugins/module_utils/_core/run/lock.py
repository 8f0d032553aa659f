# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One run at a time.

Two runs of a user on the same machine wait for each other; the generations of consumers keep those
of others, and on other machines, apart.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import tempfile
import time
import typing as t
from collections.abc import Callable

from ..._common.errors import InvalidInput
from ..._common.json_files import belongs_to_others

_PAUSE = 0.2


@contextlib.contextmanager
def acquire_lock(
    placement_endpoint: str, patience: int, stopped: Callable[[], str], writing: bool = True
) -> t.Iterator[None]:
    """Wait for another run that changes this Placement, and keep the next one waiting.

    A run that is not `writing`, as in check mode, neither waits nor keeps others waiting.
    The lock ends with the process that has it, however that process ends.
    Raises InvalidInput when the other run is not over in time, or when `stopped` says to stop.

    patience: for how many seconds to wait.
    stopped: returns why to stop, or an empty text.
    """
    if not writing:
        yield
        return
    path, file = _open_lock(placement_endpoint)
    try:
        deadline = time.monotonic() + patience
        while not _try_lock(file):
            if why := stopped():
                raise InvalidInput(
                    f"{why} It was waiting for another run to end: nothing was changed."
                )
            if time.monotonic() >= deadline:
                raise InvalidInput(
                    f"Another run is changing {placement_endpoint} and did not end within "
                    f"{patience} seconds (lock {path}): nothing was changed. "
                    "Wait until it has ended, or raise lock_timeout."
                )
            time.sleep(_PAUSE)
        yield
    finally:
        os.close(file)


def list_lock_paths(placement_endpoint: str) -> list[str]:
    """Return the paths of the files whose lock can stand for an endpoint; the first that can is it.

    They are in folders of the user, where nobody else can keep a lock. The home folder may be read
    only, or on NFS without a lock service, which then holds for each run on this machine.
    The file is left behind: after its removal two runs could lock two files.
    """
    digest = hashlib.sha256(placement_endpoint.rstrip("/").encode()).hexdigest()[:16]
    folders = (
        os.path.join(os.path.expanduser("~"), ".ansible", "osops-placement"),
        os.path.join(tempfile.gettempdir(), f"osops-placement-{os.geteuid()}"),
    )
    return [os.path.join(folder, f"{digest}.lock") for folder in folders]


def _open_lock(placement_endpoint: str) -> tuple[str, int]:
    """Return the path and the open file of the first lock that its file system can take."""
    problems = []
    for path in list_lock_paths(placement_endpoint):
        try:
            return path, _open_lock_file(path)
        except OSError as error:
            problems.append(f"{path} ({error.strerror})")
    raise InvalidInput(
        f"Nothing was changed, because no lock can be taken: {', '.join(problems)}. "
        "Set HOME or TMPDIR to a folder of yours that supports locks."
    )


def _open_lock_file(path: str) -> int:
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.path.islink(folder) or belongs_to_others(folder):
        raise PermissionError(errno.EPERM, "its folder can be changed by other users")
    # NFS locks only what is open for writing.
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        os.fchmod(file, 0o600)
        # Whether or not another run has it: this fails where the file system has no locks.
        _try_lock(file)
    except OSError:
        os.close(file)
        raise
    return file


def _try_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
