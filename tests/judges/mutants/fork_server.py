"""Runs pytest in forks of a process that has already imported everything that is not mutated.

It reads a line with a time-out and the arguments for each run, and writes a line with the status of
pytest, or null after the time-out, which is in seconds of CPU: other work on the machine must not
look like a mutant that never ends. Starting Python and its libraries takes longer than most tests.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import multiprocessing
import os
import resource
import signal
import sys

import pytest

# What the tests and the code import, and nothing of the collection.
LIBRARIES = (
    "_hypothesis_pytestplugin",
    "ansible.module_utils.basic",
    "hypothesis",
    "openstack.connection",
)


# In seconds, for each second of CPU: a mutant may wait for ever, and use none.
WALL = 8


def _run(arguments: list[str], patience: int) -> None:
    # In a session of its own, so that what the tests have started ends with them.
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CPU, (patience, patience))
    silence = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(silence, number)
    os._exit(pytest.main(arguments))


def _end(_number: int, _frame: object) -> None:
    sys.exit(1)


def main() -> None:
    signal.signal(signal.SIGTERM, _end)
    for name in LIBRARIES:
        importlib.import_module(name)
    context = multiprocessing.get_context("fork")
    for line in sys.stdin:
        patience, arguments = json.loads(line)
        process = context.Process(target=_run, args=(arguments, patience))
        process.start()
        try:
            process.join(WALL * patience)
            # Ended by a signal, it has no status of pytest.
            ended = process.exitcode is not None and process.exitcode >= 0
            status = process.exitcode if ended else None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.join()
        print(json.dumps(status), flush=True)


main()
