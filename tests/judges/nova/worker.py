"""Runs tests of Nova in this process, and writes a result for each.

A test that does not pass runs once more without the collection, to see whose fault it is.
"""

# ruff: noqa: I001
from __future__ import annotations

# It replaces parts of the standard library, so it comes before everything else.
import nova.tests.functional  # noqa: F401

import faulthandler
import gc
import importlib
import json
import pathlib
import pkgutil
import sys
import time
import traceback
import typing as t
import unittest
import warnings

import testtools

# An old Nova uses it without importing it.
import webob.dec  # noqa: F401

from . import clock, planted, wraps
from .trial import Trial

# In seconds. Then the process ends, with the place where each thread is.
_LONGEST_RUN = 900


class Recorder(testtools.TestResult):
    """Keeps the outcome of one test, and why it failed or was skipped."""

    def __init__(self) -> None:
        super().__init__()
        self.outcome = "passed"
        self.text = ""

    def _note(self, outcome: str, error: t.Any = None, details: t.Any = None) -> None:
        if self.outcome != "passed":
            return
        self.outcome = outcome
        if error:
            self.text = "".join(traceback.format_exception(*error))
        for name, content in (details or {}).items():
            if name.startswith(("traceback", "reason")):
                self.text += content.as_text()

    def addFailure(self, test: t.Any, err: t.Any = None, details: t.Any = None) -> None:
        self._note("failed", err, details)

    addError = addFailure

    def addSkip(self, test: t.Any, reason: str | None = None, details: t.Any = None) -> None:
        self._note("skipped", details=details)
        self.text = self.text or str(reason)

    def addUnexpectedSuccess(self, test: t.Any, details: t.Any = None) -> None:
        self._note("failed", details=details)


def _run(name: str, trial: Trial | None) -> dict[str, t.Any]:
    [test] = unittest.defaultTestLoader.loadTestsFromName(name)
    clock.replace_time()
    recorder = Recorder()
    wraps.running = trial
    started = time.monotonic()
    faulthandler.dump_traceback_later(_LONGEST_RUN, exit=True)
    try:
        test.run(recorder)
    finally:
        faulthandler.cancel_dump_traceback_later()
        wraps.running = None
    gc.collect()
    return {
        "outcome": recorder.outcome,
        "seconds": round(time.monotonic() - started, 1),
        "text": recorder.text[-4000:],
    }


def _judge(name: str, mode: str, folder: pathlib.Path) -> dict[str, t.Any]:
    trial = Trial(mode, folder / f"{name}.passes")
    result: dict[str, t.Any] = {"test": name, "mode": mode}
    result["with"] = {**_run(name, trial), **trial.as_dict()}
    if result["with"]["outcome"] != "passed":
        result["alone"] = _run(name, None)
    return result


def _list_tests(name: str) -> list[str]:
    """Return the tests of a module, or of all modules of a package."""
    module = importlib.import_module(name)
    names = []
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        names += _list_tests(f"{name}.{found.name}")
    suites = [unittest.defaultTestLoader.loadTestsFromModule(module)]
    while suites:
        for item in suites.pop():
            if isinstance(item, unittest.TestSuite):
                suites.append(item)
            # Another module may only import it.
            elif item.id().startswith(f"{name}."):
                names.append(item.id())
    return sorted(names)


def main() -> None:
    """Do what the driver asks for, as JSON on stdin."""
    order = json.load(sys.stdin)
    warnings.simplefilter("ignore")
    if "list" in order:
        print(json.dumps([name for module in order["list"] for name in _list_tests(module)]))
        return
    if order["fault"]:
        planted.FAULTS[order["fault"]]()
    wraps.install()
    clock.watch_hub()
    # What was imported is never garbage.
    gc.collect()
    gc.freeze()
    folder = pathlib.Path(order["folder"])
    for name, mode in order["tests"].items():
        result = _judge(name, mode, folder)
        path = folder / f"{name}.json"
        path.with_suffix(".new").write_text(json.dumps(result, indent=1, default=str))
        path.with_suffix(".new").rename(path)


if __name__ == "__main__":
    main()
