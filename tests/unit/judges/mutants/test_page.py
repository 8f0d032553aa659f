# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The section about mutants has every figure and every survivor."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.osops.placement.tests.judges.mutants.page import format_mutants

if t.TYPE_CHECKING:
    from pathlib import Path

COUNTS = {"mirrored": 5, "room": 2, "other rooms": 1, "time-out": 1, "survived": 1}
SURVIVOR = {
    "id": "_core/plan/plan.py digest NumberReplacer 1",
    "file": "plugins/module_utils/_core/plan/plan.py",
    "line": 7,
    "before": "a | b",
    "after": "a & b",
    "reason": "equivalent: neither is read",
}
RESULTS = {
    "tool": "cosmic-ray 8.7.0",
    "seed": 43,
    "mutants": 10,
    "killed": 9,
    "rooms": {"_core/plan": COUNTS},
    "survivors": [SURVIVOR],
}


def _format(folder: Path, **changes: t.Any) -> list[str]:
    path = folder / "mutants.json"
    path.write_text(json.dumps({**RESULTS, **changes}))
    return format_mutants(path).splitlines()


def test_section_counts_the_mutants_of_each_room(tmp_path: Path) -> None:
    lines = _format(tmp_path)

    assert lines[0] == "cosmic-ray 8.7.0, seed 43: 9 of 10 mutants killed (90.0%)."
    assert "| `_core/plan` | 10 | 5 | 2 | 1 | 1 | 1 |" in lines


def test_every_survivor_is_named_with_its_reason(tmp_path: Path) -> None:
    assert _format(tmp_path)[-1] == (
        r"| `_core/plan/plan.py`: `a \| b` | `a & b` | equivalent: neither is read |"
    )


def test_section_without_survivors_says_so(tmp_path: Path) -> None:
    assert _format(tmp_path, survivors=[])[-1] == "None survived."


def test_section_says_that_nothing_was_measured(tmp_path: Path) -> None:
    assert format_mutants(tmp_path / "none.json") == "`make mutants` has not run yet.\n"
