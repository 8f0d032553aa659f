# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requests to stop.

A run ends between two changes when it gets a signal, or when no Ansible is left to read its result.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import types
import typing as t
from collections.abc import Callable, Mapping

from ..._common.errors import NO_REASON, Reason

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

# The commands that fork workers.
_COMMANDS = (b"ansible", b"ansible-playbook", b"ansible-console")

# Stands for the parent of a worker that has lost its own; no process has this number.
_GONE = -1


@contextlib.contextmanager
def watch_for_stop() -> t.Iterator[Callable[[], Reason]]:
    """Yield a function that returns why to stop, an empty text as long as there is no reason."""
    received: list[str] = []

    def note(number: int, _frame: types.FrameType | None) -> None:
        received.append(signal.Signals(number).name)

    watched = [number for number in _SIGNALS if not _is_ignored_hangup(number)]
    previous = {number: signal.signal(number, note) for number in watched}
    workers = _find_workers()

    def explain_stop() -> Reason:
        if received:
            return Reason("stopped_by_signal", f"The run was stopped by {received[0]}.")
        return _describe_abandonment(workers)

    try:
        yield explain_stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _is_ignored_hangup(number: signal.Signals) -> bool:
    """Return whether this is SIGHUP under nohup, which is to survive the end of the terminal."""
    return number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN


def _describe_abandonment(workers: Mapping[int, int]) -> Reason:
    """Return why the task's result would not be read: Ansible is gone, or its end of our output."""
    if _is_output_closed() or _have_lost_parent(workers):
        return Reason(
            "ansible_gone", "The run was stopped: Ansible, which started it, is no longer running."
        )
    return NO_REASON


def _is_output_closed() -> bool:
    output = sys.__stdout__.fileno() if sys.__stdout__ else 1
    poller = select.poll()
    poller.register(output, select.POLLERR)
    # A pipe reports it as an error, a socket or a terminal as a hang-up.
    closed = select.POLLERR | select.POLLHUP | select.POLLNVAL
    return any(event & closed for _file, event in poller.poll(0))


def _have_lost_parent(workers: Mapping[int, int]) -> bool:
    return any(_read_parent_pid(worker) != parent for worker, parent in workers.items())


def _find_workers() -> dict[int, int]:
    """Return the workers of Ansible above this process, each with the process that forked it.

    A worker outlives the `ansible-playbook` that was killed or whose terminal was closed, and waits
    for this process as if nothing had happened. A worker that had lost its `ansible-playbook`
    before it was read here has `_GONE` instead: the process of Ansible that is nearest to a module
    is always a worker, never `ansible-playbook` itself.
    """
    if not _is_proc_reliable():
        return {}
    workers: dict[int, int] = {}
    number = os.getppid()
    nearest = True
    while number > 1:
        parent = _read_parent_pid(number)
        arguments = _read_arguments(number)
        runs_tasks = _runs_tasks(arguments)
        is_ansible = runs_tasks or _names_ansible(arguments)
        # A fork has the arguments of its parent.
        if is_ansible and arguments == _read_arguments(parent):
            workers[number] = parent
            nearest = False
        elif runs_tasks and nearest:
            workers[number] = _GONE
            nearest = False
        number = parent
    return workers


def _names_ansible(arguments: list[bytes]) -> bool:
    return any(os.path.basename(text).startswith(b"ansible") for text in arguments[:3])


def _runs_tasks(arguments: list[bytes]) -> bool:
    """Return whether these arguments are a Python's that runs a command of Ansible with workers."""
    if not arguments or not os.path.basename(arguments[0]).startswith(b"python"):
        return False
    for argument in arguments[1:]:
        if not argument.startswith(b"-"):
            return os.path.basename(argument) in _COMMANDS
    return False


def _is_proc_reliable() -> bool:
    """Return whether /proc has the numbers that this process sees.

    In a PID namespace of its own a process may see other numbers.
    """
    with contextlib.suppress(OSError):
        return os.readlink("/proc/self") == str(os.getpid())
    return False


def _read_parent_pid(number: int) -> int:
    """Return the parent of a process, 0 where it cannot be read."""
    with (
        contextlib.suppress(OSError),
        open(f"/proc/{number}/stat", encoding="utf-8", errors="replace") as stream,
    ):
        # The name of the command may have blanks and parentheses in it: what follows does not.
        fields = stream.read().rpartition(")")[2].split()
        return int(fields[1])
    return 0


def _read_arguments(number: int) -> list[bytes]:
    with contextlib.suppress(OSError), open(f"/proc/{number}/cmdline", "rb") as stream:
        return stream.read().split(b"\0")
    return []
