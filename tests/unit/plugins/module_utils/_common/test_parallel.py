"""Many calls at once: their results in order, and the first error."""

from __future__ import annotations

import threading
import time
from unittest import mock

import pytest

from ......plugins.module_utils._common import parallel
from ......plugins.module_utils._common.parallel import WORKERS, Pace, map_parallel


def test_results_keep_the_order_of_the_items() -> None:
    others_done = threading.Event()

    def first_is_last(number: int) -> int:
        if number == 0:
            assert others_done.wait(10)
        elif number == 29:
            others_done.set()
        return number * 10

    assert map_parallel(first_is_last, range(30)) == [number * 10 for number in range(30)]


def test_empty_list_gives_an_empty_list() -> None:
    assert map_parallel(str, []) == []


@pytest.mark.parametrize(("count", "workers"), [(1, WORKERS), (3, 1)])
def test_calls_one_after_the_other_stay_in_the_same_thread(count: int, workers: int) -> None:
    """An interrupt would not end a request that hangs in another thread."""
    threads = map_parallel(lambda _item: threading.get_ident(), range(count), workers)

    assert threads == [threading.get_ident()] * count


def test_calls_run_at_the_same_time() -> None:
    """Each waits until all have started: one after the other they would never end."""
    all_there = threading.Barrier(WORKERS, timeout=10)

    assert sorted(map_parallel(lambda _item: all_there.wait(), range(WORKERS))) == list(
        range(WORKERS)
    )


def test_error_of_the_earliest_item_is_raised_even_if_a_later_one_failed_first() -> None:
    later_failed = threading.Event()

    def fail(number: int) -> None:
        if number == 0:
            assert later_failed.wait(10)
        later_failed.set()
        raise ValueError(f"item {number}")

    with pytest.raises(ValueError, match="item 0"):
        map_parallel(fail, range(2))


def test_no_call_starts_after_an_error() -> None:
    begun = []

    def fail_at_first(number: int) -> None:
        begun.append(number)
        if number == 0:
            raise ValueError("refused")
        # As a request takes some time. Calls that take none could all end before the error is seen.
        time.sleep(0.005)

    with pytest.raises(ValueError, match="refused"):
        map_parallel(fail_at_first, range(1000))
    assert len(begun) < 500


def test_no_call_is_running_when_an_error_is_raised() -> None:
    running = set()

    def fail_at_first(number: int) -> None:
        if number == 0:
            raise ValueError("refused")
        running.add(number)
        # Long enough for the main thread to see the error while this call is running.
        time.sleep(0.05)
        running.discard(number)

    with pytest.raises(ValueError, match="refused"):
        map_parallel(fail_at_first, range(WORKERS))
    assert running == set()


class Calls:
    """Counts calls, and how many of them run at once."""

    def __init__(self) -> None:
        self.begun = 0
        self.most = 0
        self._running = 0
        self._lock = threading.Lock()

    def __call__(self, number: int) -> int:
        with self._lock:
            self.begun += 1
            self._running += 1
            self.most = max(self.most, self._running)
        time.sleep(0.005)
        with self._lock:
            self._running -= 1
        return number


@pytest.mark.parametrize(("together", "at_once"), [(4.0, 1), (3.5, 4)])
def test_many_calls_run_at_once_only_if_a_trial_was_faster(together: float, at_once: int) -> None:
    """A call takes a second, and one ends at once; four in parallel take `together` seconds."""
    pace = Pace(few=1, many=4, sample=1, default=2)
    times = iter([0.0, 1.0, 1.0, 1.1, 1.1, 1.1 + together])
    rest = Calls()

    def call(number: int) -> int:
        assert pace.undisturbed.is_set() == (number >= pace.trial)
        return rest(number) if number >= pace.trial else number

    with mock.patch.object(parallel, "read_monotonic_clock", lambda: next(times)):
        assert pace.map(call, range(40)) == list(range(40))
    assert (rest.begun, rest.most) == (40 - pace.trial, at_once)
    assert (pace.workers, pace.prefers_few) == (at_once, at_once == 1)


def test_few_items_need_no_trial() -> None:
    pace, calls = Pace(few=1, many=4, sample=1, default=2), Calls()

    assert pace.map(calls, range(pace.trial)) == list(range(pace.trial))
    assert pace.map(calls, []) == []
    assert (calls.most, pace.prefers_few, pace.undisturbed.is_set()) == (2, False, True)


def test_pace_is_found_out_once() -> None:
    pace, calls = Pace(few=1, many=4, sample=1, default=2), Calls()
    pace.choose_few()

    assert pace.map(calls, range(20)) == list(range(20))
    assert (calls.most, pace.prefers_few) == (1, True)


def test_error_in_a_trial_ends_the_map() -> None:
    pace, calls = Pace(few=1, many=4, sample=1, default=2), Calls()

    def fail(number: int) -> int:
        if number == 4:
            raise ValueError("refused")
        return calls(number)

    with pytest.raises(ValueError, match="refused"):
        pace.map(fail, range(40))
    assert calls.begun < pace.trial
