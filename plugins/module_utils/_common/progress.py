# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The progress of the module, in a small file that the controller reads while the module runs.

Like a log, there is one in a process: code that counts its items needs no parameter for it, and
without a file it counts for nothing.

Modules that run on hypervisors need this file too: it runs with any Python from 3.9 on.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import typing as t
from collections.abc import Callable, Iterator

from .clock import read_monotonic_clock

A = t.TypeVar("A")
B = t.TypeVar("B")

# In seconds. A file that is written for each of 100 000 consumers would cost more than it shows.
_WRITE_EVERY = 0.5


class Stage:
    """One part of the work, and how many of its items are done.

    name, unit: what is done and what is counted, such as `allocations` and `providers`.
    total: how many items there are, None where that is not known.
    """

    def __init__(self, progress: Progress, name: str, total: int | None, unit: str) -> None:
        self._progress = progress
        self._name = name
        self._total = total
        self._unit = unit
        self._done = 0
        self._began = read_monotonic_clock()
        self.thread = threading.get_ident()

    @property
    def is_worth_showing(self) -> bool:
        """Whether the stage has a name, and items to count."""
        return bool(self._name) and self._total != 0

    def advance(self, count: int = 1) -> None:
        """Count `count` more items as done. Threads may call this in parallel."""
        with self._progress.lock:
            self._done += count
            self._progress.write_at_times()

    def show_done(self, done: int) -> None:
        """Set how many items are done, and write the file: items that take long are worth it."""
        with self._progress.lock:
            self._done = done
            self._progress.write()

    def rename(self, name: str) -> None:
        """Show another name: what is being done at present, where each item takes long."""
        with self._progress.lock:
            self._name = name
            self._progress.write_at_times()

    def count_calls(self, function: Callable[[A], B]) -> Callable[[A], B]:
        """Return a function that calls `function`, and counts each call as an item."""

        def call(item: A) -> B:
            result = function(item)
            self.advance()
            return result

        return call

    def as_dict(self) -> dict[str, t.Any]:
        """Return what the file has of this stage; `seconds` is how long it has run."""
        return {
            "name": self._name,
            "done": self._done,
            "total": self._total,
            "unit": self._unit,
            "seconds": round(read_monotonic_clock() - self._began, 1),
        }


class Progress:
    """The stages that are running, kept in a file.

    The file is JSON: `{"stages": [{"name": …, "done": …, "total": …, "unit": …, "seconds": …}],
    "lines": […]}`.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._path: str | None = None
        self._stages: list[Stage] = []
        # What was done, a line each: of items that take minutes, each is worth one.
        self._lines: list[str] = []
        self._written_at = 0.0

    def keep_in(self, path: str | None) -> None:
        """Keep the progress in the file `path` from now on; None keeps it nowhere."""
        self._path = path

    @contextlib.contextmanager
    def run_stage(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Stage]:
        """Show a stage for as long as the context lasts. Several stages may run in parallel.

        A stage inside another one of the same thread is a part of that one, and is not shown.
        Neither is a stage without a name.
        """
        stage = Stage(self, name, total, unit)
        with self.lock:
            is_part = any(other.thread == stage.thread for other in self._stages)
            is_shown = stage.is_worth_showing and not is_part
            if is_shown:
                self._stages.append(stage)
                self.write()
        try:
            yield stage
        finally:
            if is_shown:
                with self.lock:
                    self._stages.remove(stage)
                    # Without this, the last count would seem to be the present one.
                    self.write()

    def add_line(self, line: str) -> None:
        """Show a line about an item that is done. It is shown once, and stays on the terminal."""
        with self.lock:
            self._lines.append(line)
            self.write()

    def write_at_times(self) -> None:
        """Write the file, unless it was written just now. The caller holds `lock`."""
        if self._path and read_monotonic_clock() - self._written_at >= _WRITE_EVERY:
            self.write()

    def write(self) -> None:
        """Write the file. The caller holds `lock`."""
        if not self._path:
            return
        self._written_at = read_monotonic_clock()
        stages = [stage.as_dict() for stage in self._stages]
        contents = json.dumps({"stages": stages, "lines": self._lines})
        unfinished = f"{self._path}.unfinished"
        try:
            with open(unfinished, "w", encoding="utf-8") as stream:
                stream.write(contents)
            os.replace(unfinished, self._path)
        except OSError:
            # Work must not fail because its progress cannot be shown.
            self._path = None


PROGRESS = Progress()
