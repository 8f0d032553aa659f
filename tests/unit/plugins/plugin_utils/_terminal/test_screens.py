# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole screens at three widths, compared with text files.

`WRITE_SCREENS=1` writes the files instead: read their differences before you commit them.
"""

from __future__ import annotations

import json
import os
import typing as t
from pathlib import Path

import pytest
from ansible import context
from ansible.module_utils.common.collections import ImmutableDict

from ansible_collections.osops.placement.plugins.plugin_utils._terminal.changes import (
    format_plan,
    format_remediation,
)
from ansible_collections.osops.placement.plugins.plugin_utils._terminal.ending import (
    Ending,
    format_ending,
)
from ansible_collections.osops.placement.plugins.plugin_utils._terminal.lines import measure_width
from ansible_collections.osops.placement.plugins.plugin_utils._terminal.terminal import (
    format_findings,
)

FIXTURES = Path(__file__).parents[4] / "fixtures"
WIDTHS = (80, 120, 160)
FINDINGS, JOURNAL = "/out/findings.json", "/out/journal-1.jsonl"
REPORTS = {"html": "/out/report.html"}


@pytest.fixture(autouse=True)
def _started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start every run as a user does, by the name of the playbook."""
    monkeypatch.delenv("AWX_PRIVATE_DATA_DIR", raising=False)
    options = ImmutableDict(args=("osops.placement.cleanup_orphans",), extra_vars=())
    monkeypatch.setattr(context, "CLIARGS", options)


def _read(name: str) -> t.Any:
    return json.loads((FIXTURES / "report" / name).read_text())


def _draw_check(width: int) -> list[str]:
    findings = _read("findings.json")
    ending = Ending(REPORTS, FINDINGS, plan="/out/plan.json", check_mode=True)
    return [*format_findings(findings, FINDINGS, None, width), *format_ending(ending)]


def _draw_verbose(width: int) -> list[str]:
    return format_findings(_read("findings.json"), FINDINGS, None, width, verbose=True)


def _draw_unsound(width: int) -> list[str]:
    ending = Ending(REPORTS, FINDINGS, check_mode=True, failed=True)
    drawn = format_findings(_read("closed.json"), FINDINGS, None, width)
    return [*drawn, *format_ending(ending)]


def _draw_changes(width: int) -> list[str]:
    findings = _read("findings.json")
    ending = Ending(REPORTS, FINDINGS, journal=JOURNAL)
    drawn = format_plan(_read("plan.json"), findings, width)
    drawn += format_remediation(_read("remediation.json"), None, width, findings)
    return [*drawn, *format_ending(ending)]


def _draw_failed_write(width: int) -> list[str]:
    """Return the screen of a run whose first write failed."""
    remediation = _read("remediation.json")
    outcome = remediation["outcomes"][0]
    remediation["tally"][outcome["outcome"]] -= 1
    remediation["tally"]["failed"] += 1
    outcome |= {"outcome": "failed", "reason": "Placement answered 503: Service Unavailable."}
    ending = Ending(REPORTS, FINDINGS, journal=JOURNAL, failed=True)
    drawn = format_remediation(remediation, None, width, _read("findings.json"))
    return [*drawn, *format_ending(ending)]


SCREENS = {
    "check": _draw_check,
    "verbose": _draw_verbose,
    "unsound": _draw_unsound,
    "changes": _draw_changes,
    "failed_write": _draw_failed_write,
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SCREENS)
def test_screen_is_that_of_its_file(name: str, width: int) -> None:
    shown = "".join(f"{line}\n" for line in SCREENS[name](width))
    path = FIXTURES / "terminal" / f"{name}-{width}.txt"
    if os.environ.get("WRITE_SCREENS"):
        path.write_text(shown)

    assert shown == path.read_text()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SCREENS)
def test_only_what_is_copied_is_wider_than_the_screen(name: str, width: int) -> None:
    lines = SCREENS[name](width)
    wide = [line for line in lines if measure_width(line) > width]

    assert all(line.startswith(("Next: ", "Undo: ")) for line in wide), wide


def test_last_lines_of_an_unsound_reading_say_why_nothing_may_be_changed() -> None:
    last = "\n".join(_draw_unsound(120)[-10:])

    assert "NOTHING MAY BE CHANGED: " in last
    assert "Report:  /out/report.html" in last and "Next:    read the message below" in last
    assert "orphan_cleanup_plan=" not in last


def test_last_lines_of_a_failed_write_have_the_journal_and_the_undo() -> None:
    last = "\n".join(_draw_failed_write(120)[-10:])

    assert "1 failed" in last and f"Journal: {JOURNAL}" in last
    assert f"restore_allocations -e orphan_cleanup_journal={JOURNAL}" in last
    assert "Next:    read the message below" in last
