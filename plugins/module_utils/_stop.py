# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!
"""Asked to stop: a run ends between two changes when it gets a signal, or when nobody is left to be told of its result."""

from __future__ import annotations

import contextlib
import select
import signal
import sys
import typing as t

if t.TYPE_CHECKING:  # pragma: no cover
    import types
    from collections.abc import Callable

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
    try:
        yield lambda: f"The run was stopped by {received[0]}." if received else _abandoned()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _abandoned() -> str:
    """Say that the task's result would reach nobody: Ansible is gone, and its end of our output with it."""
    poller = select.poll()
    poller.register(sys.__stdout__.fileno() if sys.__stdout__ else 1, select.POLLERR)
    # A pipe tells it by an error, a socket or a terminal by a hang-up.
    gone = any(event & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _file, event in poller.poll(0))
    return "The run was stopped: Ansible, which started it, is gone." if gone else ""
