"""One line for each failing test: what differs, and the file with everything else."""

from __future__ import annotations

import os
import re
import shutil
import typing as t
from pathlib import Path

import pytest
from _pytest import pathlib as pytest_paths

from ansible_collections.osops.placement.tests.failures import summarize

if t.TYPE_CHECKING:
    from collections.abc import Generator

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "output" / "failures"
# A file name has at most 255 bytes.
LONGEST_NAME = 150

_name_module = pytest_paths.module_name_from_path


def _name_in_collection(path: Path, root: Path) -> str:
    return f"ansible_collections.osops.placement.{_name_module(path, root)}"


# pytest would call a test module `tests.unit…`. As a part of the collection it imports from the
# collection relatively, like every other file. `ansible-test units` changes pytest to that end too.
pytest_paths.module_name_from_path = _name_in_collection


def pytest_sessionstart() -> None:
    """Delete the files of the last session, once for all workers."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        shutil.rmtree(FOLDER, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    # A worker of xdist sends the report, and with it these properties.
    if report.failed and call.excinfo is not None:
        told = f"{_locate(report)}{summarize(call.excinfo.exconly())}"
        report.user_properties.append(("told", f"{told} (see {_write(item, report)})"))
    return report


def _locate(report: pytest.TestReport) -> str:
    """Return the line that failed, which can be one of a helper."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return f"{Path(crash.path).name}:{crash.lineno}: " if crash else ""


def _write(item: pytest.Item, report: pytest.TestReport) -> str:
    """Write the whole message, with what the test has printed, and return the path of the file."""
    title = f"{item.path.parent.name}-{item.path.stem}-{item.name}"
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", title)[:LONGEST_NAME]
    path = FOLDER / f"{name}-{report.when}.txt"
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    parts = [item.nodeid, f"Its folder, with reports and journals: {folder}" if folder else ""]
    parts += [report.longreprtext]
    parts += [f"--- {title}\n{content}" for title, content in report.sections]
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(parts) + "\n", encoding="utf-8", errors="replace")
    except OSError as error:
        return f"not written: {error}"
    return str(path.relative_to(ROOT))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for key in ("failed", "error") for report in terminalreporter.getreports(key)]
    if not reports:
        return
    terminalreporter.section("what failed, and where to look")
    for report in reports:
        told = dict(getattr(report, "user_properties", ())).get("told")
        if told is None:
            told = summarize(str(report.longrepr).splitlines()[-1])
        terminalreporter.line(f"{report.nodeid}: {told}")
