# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a journal restores, as it is shown before it is restored."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ......plugins.module_utils._core.changes.journal import read_journal
from ......plugins.module_utils._core.changes.restore import find_restore_steps
from ......plugins.plugin_utils._terminal.changes import format_journal

JOURNAL = Path(__file__).parents[4] / "fixtures" / "journal" / "1.0.0.jsonl"


def test_every_change_of_a_journal_has_a_line_with_the_names_that_are_known() -> None:
    records, _torn = read_journal(str(JOURNAL))
    steps = find_restore_steps(records, records[0]["placement_endpoint"], [], [])
    first = next(step for step in steps if step.kind == "unknown_consumer")
    (provider,) = next(
        record["frees"] for record in records if record.get("finding") == first.finding
    )
    named: t.Any = {
        "id": first.finding,
        "consumer": first.subject,
        "server": None,
        "providers": [{"uuid": provider, "name": "compute-1", "root_name": "compute-1"}],
    }

    bare = format_journal(steps, None, 160)
    findings: t.Any = {"findings": [named]}
    with_names = format_journal(steps, findings, 160)

    count = len(steps)
    assert bare[1].startswith(f"{count} changes to restore") and len(bare) == count + 4
    assert any(provider[:8] in line for line in bare)
    (row,) = [line for line in with_names if first.subject in line]
    assert row.startswith("unknown_consumer") and "  compute-1  " in row
