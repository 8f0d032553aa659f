"""The lines that show the progress of a module, and when they are shown."""

import json
import threading
import typing as t
from pathlib import Path

import pytest
from ansible import constants
from ansible.plugins.action import ActionBase

from ......plugins.action import orphan_detect, orphan_remediate, orphan_restore
from ......plugins.plugin_utils._stage import progress as _progress
from ......plugins.plugin_utils._stage.controller import read_running_version
from ......plugins.plugin_utils._stage.progress import (
    describe_stage,
    follow_progress,
    read_progress,
)
from ..actions import make_action


def make_stage(
    name: str = "allocations",
    done: int = 0,
    total: int | None = 1000,
    unit: str = "providers",
    seconds: float = 0.0,
) -> dict[str, t.Any]:
    return {"name": name, "done": done, "total": total, "unit": unit, "seconds": seconds}


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        (make_stage(), "allocations 0/1000 providers"),
        (make_stage(done=640, seconds=21.4), "allocations 640/1000 providers, about 12 s left"),
        # Too early, by the clock and by what is done.
        (make_stage(done=640, seconds=1.9), "allocations 640/1000 providers"),
        (make_stage(done=49, seconds=21.4), "allocations 49/1000 providers"),
        (make_stage(seconds=21.4), "allocations 0/1000 providers"),
        (make_stage(done=50, seconds=21.4), "allocations 50/1000 providers, about 7 min left"),
        (make_stage("lookups", 9, 10, "candidates", 21.4), "lookups 9/10 candidates"),
        # Nearly and quite at the end.
        (make_stage(done=999, seconds=21.4), "allocations 999/1000 providers, about 1 s left"),
        (make_stage(done=1000, seconds=21.4), "allocations 1000/1000 providers"),
        # The end is not known, or was expected too early.
        (make_stage("migrations", 3000, None, "", 21.4), "migrations 3000"),
        (make_stage("compute nodes", 1010, 1000, "", 21.4), "compute nodes 1010"),
    ],
)
def test_estimate_is_only_made_from_what_is_known(stage: dict[str, t.Any], text: str) -> None:
    assert describe_stage(stage) == text


def test_text_has_all_stages(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    stages = [make_stage(done=500, seconds=5), make_stage("migrations", 100, None, "", 5)]
    path.write_text(json.dumps({"stages": stages}))

    text = "allocations 500/1000 providers, about 5 s left; migrations 100"
    assert read_progress(str(path)) == text


@pytest.mark.parametrize("contents", [None, "", "{", '{"stages"', '{"stages": []}'])
def test_file_without_stages_has_no_text(tmp_path: Path, contents: str | None) -> None:
    path = tmp_path / "progress.json"
    if contents is not None:
        path.write_text(contents)
    assert read_progress(str(path)) == ""


def test_each_change_is_reported_once(tmp_path: Path) -> None:
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

    with follow_progress(str(path), 0.01, report):
        assert changed.wait(30)
    assert reports == ["allocations 1/1000 providers", "allocations 2/1000 providers"]


def test_each_line_is_reported_once_and_none_is_lost_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    path.write_text(json.dumps({"stages": [], "lines": ["1 of 3"]}))
    reports: list[str] = []
    reported = threading.Event()

    def report(text: str) -> None:
        reports.append(text)
        reported.set()

    with follow_progress(str(path), 0.01, report):
        assert reported.wait(30)
        # The module ends before anybody looks again.
        path.write_text(json.dumps({"stages": [], "lines": ["1 of 3", "2 of 3", "3 of 3"]}))
    assert reports == ["1 of 3", "2 of 3", "3 of 3"]


def test_thread_ends_with_the_task_even_if_it_fails(tmp_path: Path) -> None:
    before = threading.active_count()
    with (
        pytest.raises(ZeroDivisionError),
        follow_progress(str(tmp_path / "none"), 3600, pytest.fail),
    ):
        assert threading.active_count() == before + 1
        raise ZeroDivisionError
    assert threading.active_count() == before


def test_thread_ends_quietly_without_a_main_process(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    path.write_text(json.dumps({"stages": [make_stage(done=1)]}))
    reported = threading.Event()

    def report(_text: str) -> None:
        reported.set()
        raise BrokenPipeError

    with follow_progress(str(path), 0.01, report):
        assert reported.wait(30)


class FakeModule:
    """Stands for the module that Ansible would run.

    If it gets a path of progress in `folder`, it ends when the progress is shown.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.shown = threading.Event()
        self.options: dict[str, t.Any] = {}
        self.error: Exception | None = None

    def run(self, options: dict[str, t.Any]) -> dict[str, t.Any]:
        self.options = options
        path = Path(options.get("progress_path", ""))
        if path.is_relative_to(self._folder):
            path.write_text(json.dumps({"stages": [make_stage(done=1)]}))
            assert self.shown.wait(30)
        if self.error:
            raise self.error
        return {"changed": False}


@pytest.fixture
def lines() -> list[tuple[str, bool]]:
    """The lines that were shown, and whether on the standard error."""
    return []


@pytest.fixture
def fake(
    lines: list[tuple[str, bool]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> FakeModule:
    fake = FakeModule(tmp_path)

    def show(text: str, stderr: bool = False) -> None:
        lines.append((text, stderr))
        fake.shown.set()

    def execute_module(action: t.Any, **_arguments: t.Any) -> dict[str, t.Any]:
        return fake.run(action._task.args)

    monkeypatch.setattr(_progress.display, "display", show)
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path))
    monkeypatch.setattr(ActionBase, "_execute_module", execute_module)
    return fake


HOST = {"inventory_hostname": "north"}


def make_module_action(module: t.Any = orphan_detect, **fields: t.Any) -> t.Any:
    """With become, detection runs as a module too, and not in the process of the task."""
    return make_action(module, become=True, **fields)


@pytest.mark.parametrize("action", [orphan_detect, orphan_remediate, orphan_restore])
def test_line_names_the_module_and_the_host(
    fake: FakeModule, lines: list[tuple[str, bool]], tmp_path: Path, action: t.Any
) -> None:
    options = {"cloud": "admin", "progress_every": "1"}
    plugin = make_module_action(action, args=options)

    assert plugin.run(task_vars=HOST)["changed"] is False

    module = action.__name__.rpartition(".")[2]
    assert lines == [(f"{module} [north]: allocations 1/1000 providers", True)]
    assert fake.options.keys() - {"collection_version"} == {*options, "progress_path"}
    # The task can be tried again.
    assert plugin._task.args == options
    assert list(tmp_path.iterdir()) == []


def test_nothing_stays_after_a_failure(
    fake: FakeModule, lines: list[tuple[str, bool]], tmp_path: Path
) -> None:
    fake.error = ConnectionError()
    before = threading.active_count()
    plugin = make_module_action(args={"progress_every": 1})

    with pytest.raises(ConnectionError):
        plugin.run(task_vars=HOST)

    assert len(lines) == 1
    assert list(tmp_path.iterdir()) == []
    assert plugin._task.args == {"progress_every": 1}
    assert threading.active_count() == before


@pytest.mark.parametrize(
    "silent",
    [
        {"transport": "ssh"},
        {"no_log": True},
        {"async_val": 60},
        {"args": {"progress_every": 0}},
        {"args": {"progress_every": -1}},
        {"args": {"progress_every": None}},
        # The module refuses these.
        {"args": {"progress_every": "often"}},
        {"args": {"progress_every": "nan"}},
        {"args": {"progress_path": "/tmp/progress.json"}},
    ],
)
def test_module_runs_as_without_an_action_plugin(
    fake: FakeModule, lines: list[tuple[str, bool]], silent: dict[str, t.Any]
) -> None:
    assert make_module_action(**silent).run(task_vars=HOST)["changed"] is False
    version = {"collection_version": read_running_version()}
    assert fake.options == {**silent.get("args", {}), **version}
    assert lines == []
