"""Child processes, for tests of waiting, stopping and killing."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import typing as t
from collections.abc import Iterator

# No test waits this long: one that would hang fails instead.
LONG = 30


@contextlib.contextmanager
def child(
    code: str, *arguments: str, hangup: str = "default", **options: t.Any
) -> Iterator[subprocess.Popen[str]]:
    """Run `code` in a Python of its own.

    It is killed at the end, or after `LONG` seconds, if it still runs.

    hangup: the default action on SIGHUP; `ignore` is that of nohup, under which the tests may run
    themselves.
    """
    wrapper = ["env", f"--{hangup}-signal=HUP"]
    environment = {
        **os.environ,
        **options.pop("env", {}),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    pipes = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        **options,
    }
    with subprocess.Popen(
        [*wrapper, sys.executable, "-c", code, *arguments], env=environment, text=True, **pipes
    ) as process:
        watchdog = threading.Timer(LONG, process.kill)
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            process.kill()


def said(process: subprocess.Popen[str]) -> str:
    """Return the next line of the child's output."""
    assert process.stdout
    return process.stdout.readline().rstrip("\n")
