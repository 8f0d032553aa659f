# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Shows in the terminal how far a module is while it runs."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import threading
import typing as t

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Iterator, Mapping

# In seconds, as the modules document it.
DEFAULT_INTERVAL = 10

# In seconds. An estimate from the first few items is a guess.
_MIN_SECONDS_TO_ESTIMATE = 2


def describe_progress(progress: Mapping[str, t.Any]) -> str:
    """Return the contents of a progress file as text; "" when no stage is under way.

    progress: as `module_utils/_common/progress.py` writes it.
    """
    # Of a stage without items there is nothing to show.
    stages = [stage for stage in progress["stages"] if stage["total"]]
    if not stages:
        return ""
    parts = []
    for stage in stages:
        parts.append(f"{stage['name']} {stage['done']} of {stage['total']} {stage['unit']}")
    text = ", ".join(parts)
    estimates = [_estimate_seconds_left(stage) for stage in stages]
    known = [seconds for seconds in estimates if seconds is not None]
    # Stages run side by side: the slowest decides, and it may be one that cannot be estimated.
    if len(known) == len(estimates):
        text += f", about {max(known):.0f} s left"
    return text


def _estimate_seconds_left(stage: Mapping[str, t.Any]) -> float | None:
    """Return how long a stage goes on at its speed so far; None when that is uncertain."""
    if not stage["done"] or stage["seconds"] < _MIN_SECONDS_TO_ESTIMATE:
        return None
    left = max(stage["total"] - stage["done"], 0)
    return float(stage["seconds"] / stage["done"] * left)


def read_progress(path: str) -> str:
    """Return the text of the progress file `path`; "" while there is none."""
    try:
        with open(path, encoding="utf-8") as stream:
            return describe_progress(json.load(stream))
    except (OSError, ValueError):
        return ""


class ProgressWatcher:
    """Reports what a progress file says every `every` seconds, if that has changed.

    report: called with each text, in a thread of this class.
    """

    def __init__(self, path: str, every: float, report: Callable[[str], None]) -> None:
        self._path = path
        self._every = every
        self._report = report
        self._ended = threading.Event()

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        """Watch the file for as long as the context lasts."""
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _run(self) -> None:
        last = ""
        while not self._ended.wait(self._every):
            text = read_progress(self._path)
            if text and text != last:
                self._report(text)
            last = text


class ProgressActionModule(ActionBase):
    """Runs the module of the same name, and shows how far it is where both run on the controller.

    The text goes to the standard error: what callbacks and `ansible --one-line` print on the
    standard output stays theirs.
    """

    _supports_check_mode = True
    _supports_async = True

    def run(
        self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None
    ) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        every = self._get_interval()
        if not every or not self._is_on_controller():
            return {**result, **self._run_module(self._task.args, task_vars)}
        # Several inventory hosts may run the same task side by side.
        heading = (
            f"{self._task.action.rpartition('.')[2]} [{(task_vars or {})['inventory_hostname']}]"
        )

        def show(text: str) -> None:
            Display().display(f"{heading}: {text}", stderr=True)

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "progress.json")
            arguments = {**self._task.args, "progress_path": path}
            with ProgressWatcher(path, every, show).watch():
                return {**result, **self._run_module(arguments, task_vars)}

    def _get_interval(self) -> float:
        """Return the seconds between two lines; 0, which shows none, where the value is refused."""
        try:
            # The module reports a wrong value.
            return max(float(self._task.args.get("progress_every", DEFAULT_INTERVAL)), 0)
        except (TypeError, ValueError):
            return 0

    def _is_on_controller(self) -> bool:
        """Return whether this process can read what the module writes."""
        if "progress_path" in self._task.args or self._task.async_val:
            return False
        return self._connection.transport == "local" and not self._play_context.become

    def _run_module(
        self, arguments: dict[str, t.Any], task_vars: dict[str, t.Any] | None
    ) -> dict[str, t.Any]:
        result: dict[str, t.Any] = self._execute_module(
            module_args=arguments, task_vars=task_vars, wrap_async=self._task.async_val
        )
        return result
