# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Shows the progress of a module while it runs."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import threading
import typing as t
from collections.abc import Callable, Iterator, Mapping

from ansible import constants
from ansible.utils.display import Display

from ...module_utils._core.options.run import ProgressOptions
from .controller import get_module_name

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible.plugins.action import ActionBase

display = Display()

# An estimate from less than all of these would only be a guess: the requests that were sent first
# are answered together, and often more slowly than the others.
_MIN_SECONDS_TO_ESTIMATE = 2
_MIN_ITEMS_TO_ESTIMATE = 10
_MIN_FRACTION_TO_ESTIMATE = 0.05


@contextlib.contextmanager
def show_progress(action: ActionBase, task_vars: Mapping[str, t.Any]) -> Iterator[None]:
    """Show the progress of the module of a task for as long as the context lasts.

    The text goes to the standard error. What callbacks and `ansible --one-line` print to the
    standard output stays as it is.
    """
    task = action._task
    options = task.args
    every = _get_interval(options)
    if not every or not _is_readable_here(action):
        yield
        return
    # Several inventory hosts may run the same task in parallel.
    heading = f"{get_module_name(action)} [{task_vars['inventory_hostname']}]"

    def show(text: str) -> None:
        display.display(f"{heading}: {text}", stderr=True)

    # Ansible removes the parent folder even if this process is killed.
    with tempfile.TemporaryDirectory(
        dir=constants.DEFAULT_LOCAL_TMP, ignore_cleanup_errors=True
    ) as folder:
        path = os.path.join(folder, "progress.json")
        task.args = {**options, "progress_path": path}
        try:
            with follow_progress(path, every, show):
                yield
        finally:
            # The same task may be tried again.
            task.args = options


def _get_interval(options: Mapping[str, t.Any]) -> int:
    """Return the seconds between two lines; 0, which shows none, for a value that is wrong."""
    try:
        # The module reports a wrong value.
        every = int(options.get("progress_every", ProgressOptions.progress_every.default))
    except (TypeError, ValueError):
        return 0
    return min(max(every, 0), int(threading.TIMEOUT_MAX))


def _is_readable_here(action: ActionBase) -> bool:
    """Return whether this process can read what the module writes, and may show it."""
    task = action._task
    if task.args.get("progress_path") or task.no_log:
        return False
    # A task with async only starts the module here.
    return bool(action._connection.transport == "local" and not task.async_val)


@contextlib.contextmanager
def follow_progress(path: str, every: float, report: Callable[[str], None]) -> Iterator[None]:
    """Report the contents of a progress file for as long as the context lasts.

    That is done every `every` seconds, if the contents have changed. Lines that were not reported
    yet are reported at the end.

    report: called with each text, in a thread.
    """
    ended = threading.Event()

    def follow() -> None:
        last, reported = "", 0
        # There is nobody to report to once the main process of Ansible is gone.
        with contextlib.suppress(OSError):
            while not ended.wait(every):
                reported += _report_lines(path, reported, report)
                text = read_progress(path)
                if text and text != last:
                    report(text)
                last = text
            _report_lines(path, reported, report)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _report_lines(path: str, reported: int, report: Callable[[str], None]) -> int:
    """Report the lines of a progress file after the first `reported`, and return how many."""
    lines = _read_file(path).get("lines", [])[reported:]
    for line in lines:
        report(line)
    return len(lines)


def read_progress(path: str) -> str:
    """Return the text of the progress file `path`; "" while there is none."""
    return "; ".join(describe_stage(stage) for stage in _read_file(path).get("stages", ()))


def _read_file(path: str) -> dict[str, t.Any]:
    """Return the contents of a progress file; nothing while there is none."""
    try:
        with open(path, encoding="utf-8") as stream:
            contents: dict[str, t.Any] = json.load(stream)
    except (OSError, ValueError):
        return {}
    return contents


def describe_stage(stage: Mapping[str, t.Any]) -> str:
    """Return how far a stage is, as a text such as `allocations 640/1000 providers`.

    stage: as `module_utils/_common/progress.py` writes it.
    """
    parts = [stage["name"], str(stage["done"])]
    if _has_reliable_total(stage):
        parts[1] += f"/{stage['total']}"
    if stage["unit"]:
        parts.append(stage["unit"])
    text = " ".join(parts)
    seconds = _estimate_seconds_left(stage)
    if seconds is None:
        return text
    return f"{text}, about {_format_duration(seconds)} left"


def _has_reliable_total(stage: Mapping[str, t.Any]) -> bool:
    """Return whether it is known how many items a stage has.

    A listing may have more rows than were expected.
    """
    return stage["total"] is not None and stage["done"] <= stage["total"]


def _estimate_seconds_left(stage: Mapping[str, t.Any]) -> float | None:
    """Return how long a stage goes on at its speed so far; None when that is uncertain."""
    if not _has_reliable_total(stage) or stage["seconds"] < _MIN_SECONDS_TO_ESTIMATE:
        return None
    done, total = stage["done"], stage["total"]
    least = max(_MIN_ITEMS_TO_ESTIMATE, total * _MIN_FRACTION_TO_ESTIMATE)
    # After the last item there may be something else to do.
    if done < least or done == total:
        return None
    return float(stage["seconds"] / done * (total - done))


def _format_duration(seconds: float) -> str:
    # More digits would promise more than an estimate can.
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min"
