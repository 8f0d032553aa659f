# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The shell in which a reader types the commands of a page, on a terminal of a fixed width."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time
import typing as t

COLUMNS = 100
_LINES = 50
_SECONDS = 300
# The shell prints the status of a command between two of these.
_MARK = "\x1e"
_STATUS = re.compile(f"{_MARK}(\\d+){_MARK}")


class Shell:
    """One bash, from the first command of a page to the last."""

    def __init__(self, folder: str, environment: t.Mapping[str, str]) -> None:
        self._screen, terminal = os.openpty()
        size = struct.pack("HHHH", _LINES, COLUMNS, 0, 0)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
        script, self._typed = os.pipe()
        # A script from a pipe, because a shell that reads from a terminal prints prompts.
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile", f"/dev/fd/{script}"],
            stdin=subprocess.DEVNULL,
            stdout=terminal,
            stderr=terminal,
            cwd=folder,
            env=environment,
            pass_fds=[script],
            start_new_session=True,
        )
        os.close(script)
        os.close(terminal)

    def run(
        self, command: str, watch: t.Callable[[str], None] = lambda printed: None
    ) -> tuple[int, str]:
        """Return the status and the output of a command; `watch` gets each piece at once."""
        os.write(self._typed, f"{command}\nprintf '{_MARK}%s{_MARK}' $?\n".encode())
        output = ""
        end = time.monotonic() + _SECONDS
        while not (found := _STATUS.search(output)):
            ready, _, _ = select.select([self._screen], [], [], max(end - time.monotonic(), 0))
            if not ready:
                raise TimeoutError(f"{command} did not end in {_SECONDS} s:\n{output}")
            piece = os.read(self._screen, 65536).decode(errors="replace").replace("\r\n", "\n")
            watch(_STATUS.sub("", piece))
            output += piece
        return int(found[1]), output[: found.start()]

    def close(self) -> None:
        os.close(self._typed)
        self._process.wait(timeout=_SECONDS)
        os.close(self._screen)
