# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Moves many servers, a few at a time.

A run ends between two requests when it is asked to stop. What Nova is then at, it finishes without
us, and the next run finds it.
"""

from __future__ import annotations

import dataclasses as d
import math
import time
from collections import deque
from collections.abc import Callable, Iterable

from .._common.clock import read_monotonic_clock
from .._common.errors import CloudError, JournalError, PlacementToolsError
from .._common.progress import PROGRESS, Stage
from .._common.text import make_printable
from .draining import FAILED, MOVED, SKIPPED, UNDER_WAY, MoveOutcomeDocument
from .move_progress import Attempt, MoveTask
from .server_move import ActiveMove, MoveEnd, Mover, end_open

# In seconds: the first pause between two looks at Nova, the longest, and how much longer each is
# than the one before.
_FIRST_PAUSE, _LONGEST_PAUSE, _GROWTH = 1.0, 10.0, 1.3

# In seconds: a pause is cut into pieces, so that a request to stop is heeded soon.
_PIECE = 0.5

# The longest name that is shown while servers move.
_MAX_NAME = 40

# In seconds: for how long a request whose answer was lost may still reach Nova.
_LOST_AFTER = 20.0

# In seconds: for how long a move may be hindered before it is no longer waited for. Nova has waited
# before it calls a service down, and a restart of one takes seconds.
_PATIENCE = 20.0


@d.dataclass(frozen=True)
class RunLimits:
    """parallel: how many moves at once. retries: how many more attempts after the first.

    max_failures: after how many servers that could not be moved no other one is begun.
    timeout: for how many seconds to wait for one move.
    """

    parallel: int
    retries: int
    max_failures: int
    timeout: int


@d.dataclass
class _Turn:
    task: MoveTask
    attempts: int = 0
    # When the first attempt began; the outcome counts from there.
    first_began: float = math.inf


@d.dataclass
class _Active:
    turn: _Turn
    move: ActiveMove
    began: float
    trouble: str = ""
    # Since when Nova may never end it.
    hindered_since: float | None = None


@d.dataclass
class MoveRun:
    """Moves the servers of its tasks, in their order.

    halted: why no other move is begun; empty while there is no reason.
    """

    mover: Mover
    limits: RunLimits
    stopped: Callable[[], str]
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = read_monotonic_clock
    halted: str = ""
    _queue: deque[_Turn] = d.field(default_factory=deque)
    _active: list[_Active] = d.field(default_factory=list)
    _outcomes: list[MoveOutcomeDocument] = d.field(default_factory=list)
    _total: int = 0
    _failures: int = 0

    def run(
        self, tasks: Iterable[MoveTask], begun: Iterable[Attempt] = ()
    ) -> list[MoveOutcomeDocument]:
        """Move the servers, and return what became of each.

        begun: moves that Nova may be at since before this run; they are followed to their end.
        """
        self._outcomes = []
        now = self.clock()
        for attempt in begun:
            task = MoveTask(attempt.server, attempt.name, attempt.source, attempt.target)
            # Its request was that of another run, and does not count as an attempt of this one.
            self._active.append(_Active(_Turn(task, 0, now), ActiveMove(attempt), now))
        self._queue.extend(map(_Turn, tasks))
        self._total = len(self._active) + len(self._queue)
        with PROGRESS.run_stage("moves", self._total, "servers") as stage:
            self._work(stage)
        return self._outcomes

    def _work(self, stage: Stage) -> None:
        pause = _FIRST_PAUSE
        while self._queue or self._active:
            why = self.stopped()
            if why:
                self._abandon(why)
                return
            if self.halted:
                self._skip_queue(self.halted)
            before = self._get_state()
            self._begin_next()
            for active in list(self._active):
                self._follow(active)
            self._show(stage)
            if self._get_state() != before:
                pause = _FIRST_PAUSE
            elif self._active:
                self._wait(pause)
                pause = min(pause * _GROWTH, _LONGEST_PAUSE)

    def _get_state(self) -> tuple[int, int, int]:
        return len(self._queue), len(self._active), len(self._outcomes)

    def _wait(self, seconds: float) -> None:
        deadline = self.clock() + seconds
        while self.clock() < deadline and not self.stopped():
            self.sleep(min(_PIECE, seconds))

    def _begin_next(self) -> None:
        while self._queue and len(self._active) < self.limits.parallel and not self.halted:
            if self.stopped():
                return
            self._begin(self._queue.popleft())

    def _begin(self, turn: _Turn) -> None:
        now = self.clock()
        turn.attempts += 1
        turn.first_began = min(now, turn.first_began)
        try:
            begun = self.mover.begin(turn.task)
        except JournalError as error:
            self.halted = str(error)
            begun = MoveEnd(FAILED, str(error))
        except PlacementToolsError as error:
            # Whatever cannot be read, the outcomes of the others count.
            begun = MoveEnd(FAILED, str(error), may_retry=True)
        if isinstance(begun, MoveEnd):
            self._end(turn, begun)
        else:
            self._active.append(_Active(turn, begun, now))

    def _follow(self, active: _Active) -> None:
        elapsed = self.clock() - active.began
        try:
            end = self.mover.follow(active.move)
            active.trouble = ""
            if end is None and elapsed > _LOST_AFTER:
                end = self._give_up(active)
        except CloudError as error:
            # Nova may answer again: it goes on with the move meanwhile.
            active.trouble = str(error)
            end = None
        except JournalError as error:
            self.halted = str(error)
            end = MoveEnd(FAILED, str(error), how=active.move.attempt.how)
        if end is None and elapsed > self.limits.timeout:
            end = self._end_late(active)
        if end is not None:
            self._active.remove(active)
            self._end(active.turn, end)

    def _give_up(self, active: _Active) -> MoveEnd | None:
        """Return the end of a move that Nova has not begun, or may never end; None otherwise."""
        end = self.mover.give_up(active.move)
        if end is None:
            active.hindered_since = None
        elif end.outcome == UNDER_WAY:
            active.hindered_since = active.hindered_since or self.clock()
            if self.clock() - active.hindered_since < _PATIENCE:
                return None
        return end

    def _end_late(self, active: _Active) -> MoveEnd:
        waits_for = active.trouble or f"It is waiting for {active.move.waits_for}."
        reason = (
            f"the move has not ended within {self.limits.timeout} seconds (move_timeout). "
            f"{waits_for} Nova goes on with it; run again to follow it"
        )
        return end_open(UNDER_WAY, active.move, reason)

    def _end(self, turn: _Turn, end: MoveEnd) -> None:
        """Record an outcome, or put the server back into the queue for another attempt."""
        may_retry = end.may_retry and turn.attempts <= self.limits.retries and not self.halted
        if end.outcome == FAILED and may_retry:
            # At the end of the queue: what was in the way may be gone by then.
            self._queue.append(turn)
            return
        outcome = self._add_outcome(turn, end)
        PROGRESS.add_line(describe_end(outcome, len(self._outcomes), self._total))
        if end.outcome in (FAILED, UNDER_WAY):
            self._failures += 1
        if self._failures >= self.limits.max_failures and not self.halted:
            self.halted = (
                f"{self._failures} servers could not be moved before it, and max_failures is "
                f"{self.limits.max_failures}"
            )

    def _add_outcome(self, turn: _Turn, end: MoveEnd) -> MoveOutcomeDocument:
        seconds = 0 if end.outcome == SKIPPED else round(self.clock() - turn.first_began)
        outcome = build_outcome(turn.task, end, turn.attempts, seconds)
        self._outcomes.append(outcome)
        return outcome

    def _skip_queue(self, reason: str) -> None:
        while self._queue:
            self._add_outcome(self._queue.popleft(), MoveEnd(SKIPPED, reason))

    def _abandon(self, why: str) -> None:
        """End a run that is asked to stop: Nova goes on with what it is at."""
        reason = f"{why} Nova goes on with this move; run again to follow it"
        for active in self._active:
            how = active.move.attempt.how
            self._add_outcome(active.turn, MoveEnd(UNDER_WAY, reason, how=how))
        self._active.clear()
        self._skip_queue(why)

    def _show(self, stage: Stage) -> None:
        """Show which servers are moving, from where and for how long."""
        moving = []
        for active in self._active:
            task, migration = active.turn.task, active.move.migration
            seconds = round(self.clock() - active.turn.first_began)
            target = (migration and migration.dest_compute) or task.target or "?"
            # The name is text of a user, and goes to a terminal.
            name = make_printable(task.name, _MAX_NAME)
            moving.append(f"{name} {task.source} -> {target} {seconds} s")
        stage.rename(f"moves ({', '.join(moving)})" if moving else "moves")
        stage.show_done(len(self._outcomes))


def describe_end(outcome: MoveOutcomeDocument, done: int, total: int) -> str:
    """Return what became of a server as a line of progress.

    done, total: how many servers have an outcome, and how many there are.
    """
    name = make_printable(outcome["name"], _MAX_NAME)
    text = f"{done} of {total}  {name}"
    if outcome["outcome"] == MOVED:
        return f"{text}  {outcome['source']} -> {outcome['to']}  {outcome['seconds']} s"
    reason = make_printable(outcome["reason"])
    return f"{text}  {outcome['outcome']} on {outcome['to'] or outcome['source']}: {reason}"


def build_outcome(
    task: MoveTask, end: MoveEnd, attempts: int = 0, seconds: int = 0
) -> MoveOutcomeDocument:
    """Return what became of a server, as the module returns it."""
    return {
        "uuid": task.server,
        "name": task.name,
        "outcome": end.outcome,
        "how": end.how,
        "source": task.source,
        "to": end.to,
        "may_be_on": list(end.may_be_on),
        "seconds": seconds,
        "attempts": attempts,
        "reason": end.reason,
    }
