# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Many small requests in parallel, in threads."""

from __future__ import annotations

import concurrent.futures
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.clock import (
    read_monotonic_clock,
)
from ansible_collections.osops.placement.plugins.module_utils._common.progress import PROGRESS

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Sequence

# The connection pool of a session keeps ten connections.
WORKERS = 8

# How many calls in parallel `map_at_best_pace` tries. They must take this part of the time of as
# many calls one after the other to be worth it.
_TRIED_WORKERS = 4
_WORTHWHILE = 0.75
# With how many items it finds that out.
TRIAL = 3 + _TRIED_WORKERS

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
    with (
        PROGRESS.run_stage(stage, len(items), unit) as counted,
        concurrent.futures.ThreadPoolExecutor(max_workers=workers) as pool,
    ):
        call = counted.count_calls(function)
        futures = [pool.submit(call, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            # Without waiting: a request that hangs would keep an interrupted run from ending.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def map_at_best_pace(
    function: Callable[[A], B], items: Sequence[A], chosen: Callable[[], object]
) -> list[B]:
    """Return `function` of each item, in their order, in parallel only where that is faster.

    A service with one process answers long requests more slowly in parallel than one after the
    other, a service with several does not. So two items are timed alone and the next few together,
    and the rest follows the faster way. The first `TRIAL` items should take about the same time.

    chosen: called once the faster way is known, and other work no longer disturbs the measurement.
    """
    if len(items) <= TRIAL:
        chosen()
        return [function(item) for item in items]
    # The first call may have to connect, so it is not timed.
    results = [function(items[0])]
    alone = 0.0
    for item in items[1:3]:
        began = read_monotonic_clock()
        results.append(function(item))
        # One of them may end at once, such as a marker that the service refuses.
        alone = max(alone, read_monotonic_clock() - began)
    began = read_monotonic_clock()
    results += map_parallel(function, items[3:TRIAL], _TRIED_WORKERS)
    together = (read_monotonic_clock() - began) / _TRIED_WORKERS
    chosen()
    workers = 1
    if together < alone * _WORTHWHILE:
        workers = _TRIED_WORKERS
    return results + map_parallel(function, items[TRIAL:], workers)


def run_parallel(first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
    """Run two functions in parallel, and return both results.

    If one fails, its error is raised as soon as the other has ended.
    """
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as pool:
        future = pool.submit(second)
        return first(), future.result()
