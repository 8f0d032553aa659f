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


@contextlib.contextmanager
def stopping() -> t.Iterator[Callable[[], str]]:
    """Yield a function that says why to stop, and nothing as long as there is no reason."""
    received: list[str] = []

    def note(number: int, _frame: types.FrameType | None) -> None:
        received.append(signal.Signals(number).name)

    # Under nohup the terminal's end is to be survived.
    heard = [number for number in _SIGNALS if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, note) for number in heard}
    workers = _workers()
    try:
        yield lambda: f"The run was stopped by {received[0]}." if received else _abandoned(workers)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _abandoned(workers: Mapping[int, int]) -> str:
    """Say that the task's result would reach nobody: Ansible is gone, or its end of our output."""
    poller = select.poll()
    poller.register(sys.__stdout__.fileno() if sys.__stdout__ else 1, select.POLLERR)
    # A pipe tells it by an error, a socket or a terminal by a hang-up.
    gone = any(event & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _file, event in poller.poll(0))
    gone = gone or any(_parent(worker) != parent for worker, parent in workers.items())
    return "The run was stopped: Ansible, which started it, is gone." if gone else ""


def _workers() -> dict[int, int]:
    """Return those processes above this one with which Ansible runs its tasks, each with the one that it was forked from.

    A worker outlives the `ansible-playbook` that was killed or whose terminal was closed, and waits for us as if nothing had happened.
    """
    found, number = {}, os.getppid()
    while number > 1:
        parent, arguments = _parent(number), _arguments(number)
        if arguments == _arguments(parent) and any(os.path.basename(text).startswith(b"ansible") for text in arguments[:3]):
            found[number] = parent
        number = parent
    return found


def _parent(number: int) -> int:
    """Return the parent of a process, 0 where that cannot be known."""
    with contextlib.suppress(OSError), open(f"/proc/{number}/stat", encoding="utf-8", errors="replace") as stream:
        # The name before it may have blanks and parentheses in it.
        return int(stream.read().rpartition(")")[2].split()[1])
    return 0


def _arguments(number: int) -> list[bytes]:
    with contextlib.suppress(OSError), open(f"/proc/{number}/cmdline", "rb") as stream:
        return stream.read().split(b"\0")
    return []
