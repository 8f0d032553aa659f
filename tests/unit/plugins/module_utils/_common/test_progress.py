"""The file with the progress of a module."""

from __future__ import annotations

import json
import threading
import typing as t
from pathlib import Path

import pytest

from ......plugins.module_utils._common import progress as module
from ......plugins.module_utils._common.parallel import map_parallel
from ......plugins.module_utils._common.progress import PROGRESS, Progress


@pytest.fixture(autouse=True)
def write_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WRITE_EVERY", 0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "progress.json"


@pytest.fixture
def progress(path: Path) -> Progress:
    kept = Progress()
    kept.keep_in(str(path))
    return kept


def read_stages(path: Path) -> list[tuple[str, int, int | None, str]]:
    return [
        (stage["name"], stage["done"], stage["total"], stage["unit"])
        for stage in json.loads(path.read_text())["stages"]
    ]


def test_file_has_the_stages_of_all_threads(progress: Progress, path: Path) -> None:
    begun, seen = threading.Event(), threading.Event()

    def list_servers() -> None:
        with progress.run_stage("servers") as servers:
            servers.advance(2)
            begun.set()
            assert seen.wait(10)

    thread = threading.Thread(target=list_servers)
    with progress.run_stage("allocations", 3, "providers") as allocations:
        thread.start()
        assert begun.wait(10)
        allocations.advance()
        stages = read_stages(path)
        seen.set()
        thread.join()
        assert stages == [("allocations", 1, 3, "providers"), ("servers", 2, None, "")]
        assert read_stages(path) == [("allocations", 1, 3, "providers")]
    assert read_stages(path) == []


def test_stage_within_another_is_a_part_of_it(progress: Progress, path: Path) -> None:
    with progress.run_stage("changes", 3) as changes:
        with progress.run_stage("lookups", 8, "candidates") as lookups:
            lookups.advance(8)
            assert read_stages(path) == [("changes", 0, 3, "")]
        changes.show_done(2)
        assert read_stages(path) == [("changes", 2, 3, "")]


@pytest.mark.parametrize(("name", "total"), [("", 3), ("lookups", 0)])
def test_stage_without_a_name_or_items_is_not_shown(
    progress: Progress, path: Path, name: str, total: int
) -> None:
    with progress.run_stage(name, total) as stage:
        stage.advance()
        # It hides no other stage.
        with progress.run_stage("allocations", 1):
            assert read_stages(path) == [("allocations", 0, 1, "")]


def test_stage_ends_with_an_error_too(progress: Progress, path: Path) -> None:
    with pytest.raises(ZeroDivisionError), progress.run_stage("allocations", 1, "providers"):
        raise ZeroDivisionError
    assert read_stages(path) == []


def test_lines_stay_after_their_stage(progress: Progress, path: Path) -> None:
    with progress.run_stage("moves", 2, "servers"):
        progress.add_line("1 of 2  web-1")
    progress.add_line("2 of 2  web-2")

    document = json.loads(path.read_text())
    assert document == {"stages": [], "lines": ["1 of 2  web-1", "2 of 2  web-2"]}


def test_nothing_is_written_without_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Progress().run_stage("allocations", 1, "providers") as stage:
        stage.advance()
    assert list(tmp_path.iterdir()) == []


def test_work_goes_on_if_the_file_cannot_be_written(progress: Progress, tmp_path: Path) -> None:
    progress.keep_in(str(tmp_path / "missing" / "file"))
    with progress.run_stage("allocations", 1, "providers") as stage:
        stage.advance()
    assert list(tmp_path.iterdir()) == []


def test_counting_does_not_write_the_file_each_time(
    progress: Progress, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_WRITE_EVERY", 0.5)
    now = [100.0]
    monkeypatch.setattr(module, "read_monotonic_clock", lambda: now[0])
    with progress.run_stage("allocations", 3, "providers") as stage:
        stage.advance()
        assert read_stages(path) == [("allocations", 0, 3, "providers")]
        now[0] += 0.6
        stage.advance()
        assert read_stages(path) == [("allocations", 2, 3, "providers")]
        (entry,) = json.loads(path.read_text())["stages"]
        assert entry["seconds"] == 0.6


def test_parallel_calls_are_counted(path: Path) -> None:
    seen: list[t.Any] = []

    def look_up(number: int) -> int:
        seen.append(read_stages(path))
        return number

    PROGRESS.keep_in(str(path))
    try:
        map_parallel(look_up, range(3), 1, stage="lookups", unit="candidates")
        map_parallel(look_up, range(1))
    finally:
        PROGRESS.keep_in(None)

    counts = [[("lookups", done, 3, "candidates")] for done in range(3)]
    assert seen == [*counts, []]
