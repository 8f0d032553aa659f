# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!
"""One run at a time.

Two runs on the same machine wait for each other; on different machines the generations of
consumers keep them apart.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import tempfile
import time
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable

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
    path = get_lock_path(placement_endpoint)
    file = _open_lock(path)
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


def get_lock_path(placement_endpoint: str) -> str:
    """Return the path of the file whose lock stands for an endpoint.

    The file is left behind: after its removal two runs could lock two files.
    """
    digest = hashlib.sha256(placement_endpoint.rstrip("/").encode()).hexdigest()[:16]
    return os.path.join(tempfile.gettempdir(), f"osops-placement-{digest}.lock")


def _open_lock(path: str) -> int:
    try:
        # A file that is open for reading only can be locked by every user of the machine,
        # whatever its owner and the umask.
        with contextlib.suppress(FileExistsError):
            created = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o644)
            os.fchmod(created, 0o644)
            os.close(created)
        # Another user may have put a pipe there, and to open one would wait for a writer.
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise InvalidInput(
            f"The lock {path} cannot be opened: {error.strerror}. "
            "Remove it or set TMPDIR to another directory."
        ) from error


def _try_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
