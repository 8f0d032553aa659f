# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Many small requests in parallel, in threads."""

from __future__ import annotations

import concurrent.futures
import threading
import typing as t
from collections.abc import Callable, Sequence

from .clock import read_monotonic_clock
from .progress import PROGRESS

# The connection pool of a session keeps ten connections.
WORKERS = 8

# Many requests at once are worth it if they take at most this part of the time that few take.
_WORTHWHILE = 0.95

A = t.TypeVar("A")
B = t.TypeVar("B")


def map_parallel(
    function: Callable[[A], B],
    items: Sequence[A],
    workers: int = WORKERS,
    stage: str = "",
    unit: str = "",
) -> list[B]:
    """Return `function` of each item, in their order.

    The first error is raised, and calls that have not begun by then are cancelled.

    stage, unit: the name of the stage of the progress in which the items are counted, and what they
        are; without a name they are not shown.
    """
    with PROGRESS.run_stage(stage, len(items), unit) as counted:
        call = counted.count_calls(function)
        if workers == 1 or len(items) == 1:
            # In this thread, where an interrupt ends a request that hangs.
            return [call(item) for item in items]
        return _map_in_threads(call, items, workers)


def look_up_each(
    look_up: Callable[[A], B], keys: Sequence[A], workers: int = WORKERS
) -> dict[A, B]:
    """Return what `look_up` returns for each key, by these keys, as `map_parallel` does."""
    return dict(zip(keys, map_parallel(look_up, keys, workers), strict=True))


def _map_in_threads(call: Callable[[A], B], items: Sequence[A], workers: int) -> list[B]:
    with concurrent.futures.ThreadPoolExecutor(max_workers=workers) as pool:
        futures = [pool.submit(call, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            # Without waiting: a request that hangs would keep an interrupted run from ending.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class ReadOnce(t.Generic[A, B]):
    """What a function reads for each key: once, however many threads ask for it."""

    def __init__(self, read: Callable[[A], B]) -> None:
        self._read = read
        self._lock = threading.Lock()
        # Each key with a lock of its own, so that nobody waits for the answers about others.
        self._locks: dict[A, threading.Lock] = {}
        self._answers: dict[A, B] = {}

    @property
    def answers(self) -> dict[A, B]:
        """All that was read so far, by its key."""
        return dict(self._answers)

    def get(self, key: A) -> B:
        """Return what belongs to one key."""
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._answers:
                self._answers[key] = self._read(key)
            return self._answers[key]


class Pace:
    """How many requests at once a service answers fastest.

    One process that handles requests in threads answers many at once more slowly than a few.
    Several processes do not. The first `map` with enough items finds out which it is, for all that
    follows.
    """

    def __init__(self, few: int, many: int, sample: int, default: int) -> None:
        """Begin with `default` requests at once.

        few, many: the numbers of requests at once that are compared.
        sample: with how many items `few` is timed, twice.
        """
        self._few = few
        self._many = many
        self._sample = sample
        self._measured = False
        self.workers = default
        # Set once no measurement is to come that other work would disturb.
        self.undisturbed = threading.Event()

    @property
    def trial(self) -> int:
        """With how many items the pace is found out. They should take about the same time."""
        return 1 + 2 * self._sample + max(self._many, 2 * self._sample)

    @property
    def prefers_few(self) -> bool:
        """Whether the service has shown that it is not faster with many requests at once."""
        return self._measured and self.workers == self._few

    def choose_few(self) -> None:
        """Send few requests at once, as another measurement of the same service suggests."""
        self._measured, self.workers = True, self._few

    def map(
        self, function: Callable[[A], B], items: Sequence[A], stage: str = "", unit: str = ""
    ) -> list[B]:
        """Return `function` of each item, in their order, as `map_parallel` does."""
        with PROGRESS.run_stage(stage, len(items), unit) as counted:
            call = counted.count_calls(function)
            results: list[B] = []
            if not self._measured and len(items) > self.trial:
                results = self._measure(call, items[: self.trial])
            self.undisturbed.set()
            return results + map_parallel(call, items[len(results) :], self.workers)

    def _measure(self, call: Callable[[A], B], items: Sequence[A]) -> list[B]:
        # The first call may have to connect, so it is not timed.
        results = [call(items[0])]
        with_few = 0.0
        for _attempt in range(2):
            sample = items[len(results) :][: self._sample]
            seconds, found = _time_parallel(call, sample, self._few)
            results += found
            # Some of them may end at once, such as a marker that the service refuses.
            with_few = max(with_few, seconds)
        with_many, found = _time_parallel(call, items[len(results) :], self._many)
        results += found
        self._measured, self.workers = True, self._many
        if with_many > with_few * _WORTHWHILE:
            self.workers = self._few
        return results


def _time_parallel(
    call: Callable[[A], B], items: Sequence[A], workers: int
) -> tuple[float, list[B]]:
    """Return how many seconds an item takes on average, and the results."""
    began = read_monotonic_clock()
    results = map_parallel(call, items, workers)
    return (read_monotonic_clock() - began) / len(items), results


def run_parallel(first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
    """Run two functions in parallel, and return both results.

    If one fails, its error is raised as soon as the other has ended.
    """
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as pool:
        future = pool.submit(second)
        return first(), future.result()
