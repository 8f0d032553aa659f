# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file that says how far a task is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.osops.placement.plugins.module_utils._common import progress as module
from ansible_collections.osops.placement.plugins.module_utils._common.progress import Progress


@pytest.fixture(autouse=True)
def write_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WRITE_EVERY", 0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "progress.json"


def read_stages(path: Path) -> list[tuple[str, int, int, str]]:
    return [
        (stage["name"], stage["done"], stage["total"], stage["unit"])
        for stage in json.loads(path.read_text())["stages"]
    ]


def test_the_file_has_the_stages_under_way(path: Path) -> None:
    progress = Progress(str(path))
    with (
        progress.run_stage("allocations", 3, "providers") as allocations,
        progress.run_stage("servers", 2, "hosts") as servers,
    ):
        allocations.advance()
        servers.advance(2)
        assert read_stages(path) == [("allocations", 1, 3, "providers"), ("servers", 2, 2, "hosts")]
    with progress.run_stage("lookups", 1, "consumers"):
        assert read_stages(path) == [("lookups", 0, 1, "consumers")]


def test_a_stage_ends_with_an_error_too(path: Path) -> None:
    progress = Progress(str(path))
    with pytest.raises(ZeroDivisionError), progress.run_stage("allocations", 1, "providers"):
        raise ZeroDivisionError
    with progress.run_stage("lookups", 1, "consumers"):
        assert read_stages(path) == [("lookups", 0, 1, "consumers")]


def test_no_file_is_written_without_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Progress().run_stage("allocations", 1, "providers") as stage:
        stage.advance()
    assert list(tmp_path.iterdir()) == []


def test_work_goes_on_when_the_file_cannot_be_written(tmp_path: Path) -> None:
    with Progress(str(tmp_path / "missing" / "file")).run_stage(
        "allocations", 1, "providers"
    ) as stage:
        stage.advance()
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_not_written_more_often_than_it_is_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_WRITE_EVERY", 0.5)
    now = [100.0]
    monkeypatch.setattr(module, "read_monotonic_clock", lambda: now[0])
    with Progress(str(path)).run_stage("allocations", 3, "providers") as stage:
        stage.advance()
        assert read_stages(path) == [("allocations", 0, 3, "providers")]
        now[0] += 0.6
        stage.advance()
        assert read_stages(path) == [("allocations", 2, 3, "providers")]
