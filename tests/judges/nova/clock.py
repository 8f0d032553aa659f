"""Time for Nova's tests that only passes while Nova can work.

The tests poll: ten times, with half a second in between. During a pass, and on a machine that is
busy with other work, Nova gets nothing done meanwhile, and the test gives up. `sleep` therefore
counts only the time in which this process computed without a pass, or had nothing to do.
"""

from __future__ import annotations

import contextlib
import sys
import time
import typing as t

import eventlet
import eventlet.hubs

_idle = 0.0
_excluded = 0.0
_paused_at: float | None = None


def watch_hub() -> None:
    """Count the time in which no green thread has anything to do."""
    hub = eventlet.hubs.get_hub()
    wait = hub.wait

    def count(seconds: float | None = None) -> None:
        global _idle
        if not seconds:
            wait(seconds)
            return
        started = time.monotonic()
        try:
            wait(seconds)
        finally:
            _idle += min(time.monotonic() - started, seconds)

    hub.wait = count


@contextlib.contextmanager
def paused() -> t.Iterator[None]:
    """Stop the time, during a pass."""
    global _paused_at, _excluded
    _paused_at = _measure()
    try:
        yield
    finally:
        _excluded += _measure() - _paused_at
        _paused_at = None


def _measure() -> float:
    return _idle + time.process_time()


def _now() -> float:
    return (_measure() if _paused_at is None else _paused_at) - _excluded


def sleep(seconds: float) -> None:
    """Sleep that long by the time of this module."""
    until = _now() + seconds
    while True:
        eventlet.sleep(min(0.02, max(seconds, 0)))
        if _now() >= until:
            return


class _Time:
    """The module `time`, with the `sleep` of this one."""

    sleep = staticmethod(sleep)

    def __getattr__(self, name: str) -> t.Any:
        return getattr(time, name)


_TIME = _Time()


def replace_time() -> None:
    """Give all modules of tests that were imported so far this time."""
    for name, module in list(sys.modules.items()):
        if name.startswith("nova.tests.functional") and vars(module).get("time") is time:
            module.time = _TIME
