"""The shell in which a reader types the commands of a page, on a terminal of a fixed width."""

import codecs
import fcntl
import os
import re
import select
import signal
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
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._half = ""
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
            left = max(end - time.monotonic(), 0)
            if not select.select([self._screen], [], [], left)[0]:
                raise TimeoutError(f"{command} did not end in {_SECONDS} s:\n{output}")
            piece = self._read()
            watch(_STATUS.sub("", piece))
            output += piece
        return int(found[1]), output[: found.start()]

    def _read(self) -> str:
        """Return what was printed, without a half character or a half end of a line."""
        text = self._half + self._decoder.decode(os.read(self._screen, 65536))
        self._half = "\r" if text.endswith("\r") else ""
        return text.removesuffix(self._half).replace("\r\n", "\n")

    def close(self) -> None:
        """End the shell, and a command that has not ended in time."""
        os.close(self._typed)
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._screen)
