# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines that say how far a task is, and how often they are shown."""

from __future__ import annotations

import json
import threading
import typing as t
from pathlib import Path

import pytest

from ansible_collections.osops.placement.plugins.plugin_utils._progress import (
    ProgressWatcher,
    describe_progress,
    read_progress,
)


def make_stage(
    name: str = "allocations",
    done: int = 0,
    total: int = 1000,
    unit: str = "providers",
    seconds: float = 0.0,
) -> dict[str, t.Any]:
    return {"name": name, "done": done, "total": total, "unit": unit, "seconds": seconds}


@pytest.mark.parametrize(
    ("stages", "text"),
    [
        ([], ""),
        ([make_stage()], "allocations 0 of 1000 providers"),
        # After less than two seconds no estimate is made.
        ([make_stage(done=640, seconds=1.9)], "allocations 640 of 1000 providers"),
        (
            [make_stage(done=640, seconds=21.4)],
            "allocations 640 of 1000 providers, about 12 s left",
        ),
        # The slower of two stages decides.
        (
            [
                make_stage(done=500, seconds=5),
                make_stage("servers", 100, 1000, "hosts", 5),
            ],
            "allocations 500 of 1000 providers, servers 100 of 1000 hosts, about 45 s left",
        ),
        # It may be the one that cannot be estimated.
        (
            [make_stage(done=500, seconds=5), make_stage("servers", 0, 1000, "hosts", 5)],
            "allocations 500 of 1000 providers, servers 0 of 1000 hosts",
        ),
        # More hosts came than there were at first.
        (
            [make_stage("servers", 1010, 1000, "hosts", 5)],
            "servers 1010 of 1000 hosts, about 0 s left",
        ),
    ],
)
def test_the_text_says_how_far_each_stage_is(stages: list[dict[str, t.Any]], text: str) -> None:
    assert describe_progress({"stages": stages}) == text


@pytest.mark.parametrize("contents", [None, "", "{", '{"stages"'])
def test_a_file_that_cannot_be_read_has_no_text(tmp_path: Path, contents: str | None) -> None:
    path = tmp_path / "progress.json"
    if contents is not None:
        path.write_text(contents)
    assert read_progress(str(path)) == ""


def test_the_watcher_reports_each_change_once(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    path.write_text(json.dumps({"stages": [make_stage(done=1)]}))
    reports: list[str] = []
    changed = threading.Event()

    def report(text: str) -> None:
        reports.append(text)
        if len(reports) == 1:
            path.write_text(json.dumps({"stages": [make_stage(done=2)]}))
        else:
            changed.set()

    with ProgressWatcher(str(path), 0.01, report).watch():
        assert changed.wait(30)
    assert reports == ["allocations 1 of 1000 providers", "allocations 2 of 1000 providers"]


def test_the_watcher_ends_with_the_task(tmp_path: Path) -> None:
    watcher = ProgressWatcher(str(tmp_path / "none"), 3600, pytest.fail)
    before = threading.active_count()
    with watcher.watch():
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
