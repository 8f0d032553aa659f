# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""How far a long task is, in a small file that the controller reads while the task runs."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.clock import (
    read_monotonic_clock,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Iterator

A = t.TypeVar("A")
B = t.TypeVar("B")

# In seconds. A file that is written for each of 100 000 consumers would cost more than it shows.
_WRITE_EVERY = 0.5


class Stage:
    """One part of a task: how many of its items are done.

    name, unit: what is done and what is counted, such as `allocations` and `providers`.
    """

    def __init__(self, progress: Progress, name: str, total: int, unit: str) -> None:
        self._progress = progress
        self._name = name
        self._total = total
        self._unit = unit
        self._done = 0
        self._began = read_monotonic_clock()

    def advance(self, count: int = 1) -> None:
        """Count `count` more items as done. Threads may call this side by side."""
        with self._progress.lock:
            self._done += count
            self._progress.write_at_times()

    def advance_to(self, done: int) -> None:
        """Set how many items are done."""
        self.advance(done - self._done)

    def count_calls(self, function: Callable[[A], B]) -> Callable[[A], B]:
        """Return a function that calls `function` and counts each call as an item done."""

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
    """The stages that are under way, kept in the file `path`; an empty path keeps them nowhere.

    The file is JSON: `{"stages": [{"name": …, "done": …, "total": …, "unit": …, "seconds": …}]}`.
    """

    def __init__(self, path: str = "") -> None:
        self.lock = threading.Lock()
        self._path = path
        self._stages: list[Stage] = []
        self._written_at = 0.0

    @contextlib.contextmanager
    def run_stage(self, name: str, total: int, unit: str) -> Iterator[Stage]:
        """Show a stage for as long as the context lasts. Stages may run side by side."""
        stage = Stage(self, name, total, unit)
        with self.lock:
            self._stages.append(stage)
            self.write_at_times()
        try:
            yield stage
        finally:
            with self.lock:
                self._stages.remove(stage)

    def write_at_times(self) -> None:
        """Write the file, unless it was written just now. The caller holds `lock`."""
        now = read_monotonic_clock()
        if not self._path or now - self._written_at < _WRITE_EVERY:
            return
        self._written_at = now
        contents = json.dumps({"stages": [stage.as_dict() for stage in self._stages]})
        unfinished = f"{self._path}.unfinished"
        try:
            with open(unfinished, "w", encoding="utf-8") as stream:
                stream.write(contents)
            os.replace(unfinished, self._path)
        except OSError:
            # Work must not fail because its progress cannot be shown.
            self._path = ""


# For work that is not watched.
NO_PROGRESS = Progress()


def progress_options() -> dict[str, dict[str, t.Any]]:
    """Return the options that `doc_fragments/_progress.py` documents."""
    return {
        # The action plugin of the same name reads this option.
        "progress_every": {"type": "int", "default": 10},
        "progress_path": {"type": "path"},
    }


def parse_progress(options: t.Mapping[str, t.Any]) -> Progress:
    """Return the progress that a module keeps with these options."""
    return Progress(options["progress_path"] or "")
