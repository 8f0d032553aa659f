# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The section about the stack on the page of the judges."""

from __future__ import annotations

import json
from pathlib import Path

from ansible_collections.osops.placement.tests.judges.stack.page import format_stack


def test_each_test_has_a_row(tmp_path: Path) -> None:
    results = tmp_path / "stack.json"
    measured = {"outcome": "failed", "files": ["disk", "disk.info"], "minicloud": {"removed": 10}}
    results.write_text(json.dumps({"test_power_is_cut": {**measured, "seconds": 67}}))

    row = "| power is cut | 67 | outcome: failed; files: disk, disk.info; minicloud: removed 10 |"
    assert row in format_stack(results).splitlines()


def test_judge_that_has_not_run_says_so(tmp_path: Path) -> None:
    assert "has not run yet" in format_stack(tmp_path / "stack.json")
