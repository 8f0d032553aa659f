# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!
"""Asked to stop: a run ends between two changes when it gets a signal, or when nobody is left to be told of its result."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import typing as t

if t.TYPE_CHECKING:  # pragma: no cover
    import types
    from collections.abc import Callable, Mapping

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

# The commands that fork workers.
_COMMANDS = (b"ansible", b"ansible-playbook", b"ansible-console")

# The number of no process.
_GONE = -1


@contextlib.contextmanager
def watch_for_stop() -> t.Iterator[Callable[[], str]]:
    """Yield a function that says why to stop, and nothing as long as there is no reason."""
    received: list[str] = []

    def note(number: int, _frame: types.FrameType | None) -> None:
        received.append(signal.Signals(number).name)

    # Under nohup the terminal's end is to be survived.
    heard = [
        number
        for number in _SIGNALS
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN
    ]
    before = {number: signal.signal(number, note) for number in heard}
    workers = _find_workers()
    try:
        yield (
            lambda: (
                f"The run was stopped by {received[0]}."
                if received
                else _describe_abandonment(workers)
            )
        )
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _describe_abandonment(workers: Mapping[int, int]) -> str:
    """Say that the task's result would reach nobody: Ansible is gone, or its end of our output."""
    poller = select.poll()
    poller.register(sys.__stdout__.fileno() if sys.__stdout__ else 1, select.POLLERR)
    # A pipe tells it by an error, a socket or a terminal by a hang-up.
    gone = any(
        event & (select.POLLERR | select.POLLHUP | select.POLLNVAL)
        for _file, event in poller.poll(0)
    )
    gone = gone or any(_read_parent_pid(worker) != parent for worker, parent in workers.items())
    return "The run was stopped: Ansible, which started it, is gone." if gone else ""


def _find_workers() -> dict[int, int]:
    """Return those processes above this one with which Ansible runs its tasks, each with the one that it was forked from.

    A worker outlives the `ansible-playbook` that was killed or whose terminal was closed, and waits for us as if nothing had happened.
    One that had lost its `ansible-playbook` before we looked has `_GONE` instead: the process of Ansible that is nearest to a module is
    always a worker, never `ansible-playbook` itself.
    """
    if not _is_proc_reliable():
        return {}
    found, number, nearest = {}, os.getppid(), True
    while number > 1:
        parent, arguments = _read_parent_pid(number), _read_arguments(number)
        commanded = _runs_tasks(arguments)
        if (commanded or _names_ansible(arguments)) and arguments == _read_arguments(parent):
            found[number], nearest = parent, False
        elif commanded and nearest:
            found[number], nearest = _GONE, False
        number = parent
    return found


def _names_ansible(arguments: list[bytes]) -> bool:
    return any(os.path.basename(text).startswith(b"ansible") for text in arguments[:3])


def _runs_tasks(arguments: list[bytes]) -> bool:
    """Tell whether these are the arguments of a Python that runs one of Ansible's commands which run modules."""
    if not os.path.basename(arguments[0] if arguments else b"").startswith(b"python"):
        return False
    script = next((text for text in arguments[1:] if not text.startswith(b"-")), b"")
    return os.path.basename(script) in _COMMANDS


def _is_proc_reliable() -> bool:
    """Tell whether the numbers in /proc are those that this process knows: in a namespace of its own they may be others."""
    with contextlib.suppress(OSError):
        return os.readlink("/proc/self") == str(os.getpid())
    return False


def _read_parent_pid(number: int) -> int:
    """Return the parent of a process, 0 where that cannot be known."""
    with (
        contextlib.suppress(OSError),
        open(f"/proc/{number}/stat", encoding="utf-8", errors="replace") as stream,
    ):
        # The name before it may have blanks and parentheses in it.
        return int(stream.read().rpartition(")")[2].split()[1])
    return 0


def _read_arguments(number: int) -> list[bytes]:
    with contextlib.suppress(OSError), open(f"/proc/{number}/cmdline", "rb") as stream:
        return stream.read().split(b"\0")
    return []
