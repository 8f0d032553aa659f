# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes text files on the controller."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator


def write_text(path: str, text: str, mode: int) -> None:
    """Write `text` to `path`, and create its folder if it does not exist.

    A reader sees the old file or the whole new one.

    mode: of the file. The folder can be entered by the users who can read the file.
    Raises OSError when the file cannot be written.
    """
    folder, name = os.path.split(path)
    with _umask(0o022 if mode & 0o044 else 0o077):
        os.makedirs(folder or ".", exist_ok=True)
    # In the same folder, because a file cannot be renamed to another file system.
    file, unfinished = tempfile.mkstemp(dir=folder or ".", prefix=f".{name}-")
    try:
        # A lone surrogate, which a name from the cloud can have, is not UTF-8.
        with open(file, "w", encoding="utf-8", errors="backslashreplace", newline="") as stream:
            stream.write(text)
        os.chmod(unfinished, mode)
        os.replace(unfinished, path)
    except BaseException:
        # Also when the run is stopped: the file names projects and users.
        os.unlink(unfinished)
        raise


@contextlib.contextmanager
def _umask(mask: int) -> Iterator[None]:
    """Create files with `mask` in place of the user's own, which may hide the metrics."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
