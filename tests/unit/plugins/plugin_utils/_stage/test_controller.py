"""When an action plugin does the work of a module itself, and how."""

import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest

from ......plugins.action import orphan_detect
from ......plugins.module_utils._common.context import Task
from ......plugins.module_utils._common.errors import InvalidInput
from ......plugins.plugin_utils._stage import controller
from ......plugins.plugin_utils._stage.controller import (
    can_run_here,
    find_path,
    is_on_controller,
    run_here,
    write_text,
)
from ..actions import make_action

SAME_PYTHON = {"ansible_python_interpreter": sys.executable}


def _action(args: dict[str, t.Any] | None = None, **fields: t.Any) -> t.Any:
    action = make_action(orphan_detect, args=args or {}, check_mode=True, **fields)
    action.validate_argument_spec = lambda argument_spec: (None, args or {})
    return action


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"environment": [{}]}, True),
        ({"transport": "ssh"}, False),
        ({"become": True}, False),
        ({"async_val": 60}, False),
        ({"environment": [{"OS_CLOUD": "other"}]}, False),
    ],
)
def test_only_a_plain_task_on_the_controller_needs_no_module(
    options: dict[str, t.Any], expected: bool
) -> None:
    assert is_on_controller(_action(**options)) is expected


@pytest.mark.parametrize(
    ("args", "variables", "expected"),
    [
        ({"cloud": "admin", "client_cert": "/c"}, SAME_PYTHON, True),
        ({}, SAME_PYTHON, True),
        ({}, {"ansible_python_interpreter": "/usr/bin/python3"}, False),
        ({}, {}, False),
        ({}, None, False),
        ({"auth": {"password": "secret"}}, SAME_PYTHON, False),
        ({"cloud": {"auth": {"password": "secret"}}}, SAME_PYTHON, False),
        ({"client_key": "/k"}, SAME_PYTHON, False),
        ({"key": "/k"}, SAME_PYTHON, False),
    ],
)
def test_a_module_runs_for_secrets_and_for_another_python(
    args: dict[str, t.Any],
    variables: dict[str, t.Any] | None,
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")

    assert can_run_here(_action(args), variables) is expected


def test_a_module_runs_where_a_fork_cannot_use_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    assert not can_run_here(_action(), SAME_PYTHON)


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("orphan_plan", {"plan": "plan.json"}, True),
        # Ansible converts it on its way to a module.
        ("orphan_plan", {"plan": {"changes": []}}, False),
        ("compute_host", {}, False),
        ("orphan_remediate", {}, False),
        ("orphan_restore", {}, False),
        ("host_drain", {}, False),
    ],
)
def test_only_what_changes_nothing_does_without_a_module(
    name: str, args: dict[str, t.Any], expected: bool
) -> None:
    """A plan needs no cloud, and so no Python that has openstacksdk."""
    assert can_run_here(_action(args, action=name), {}) is expected


def test_paths_begin_where_those_of_a_module_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")

    assert find_path(_action(), "out/findings.json") == "/plays/out/findings.json"
    assert find_path(_action(), "/out/findings.json") == "/out/findings.json"
    assert find_path(_action(), "~/findings.json") == "/home/me/findings.json"


def _run_here(
    work: t.Callable[[t.Any], dict[str, t.Any]], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, t.Any]:
    monkeypatch.setattr(controller, "import_task", lambda _name: Task(work, {}))
    return run_here(_action({"a": 1}, basedir=str(folder)))


def test_work_is_done_in_the_directory_of_a_module_with_its_warnings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.getcwd()

    def work(context: t.Any) -> dict[str, t.Any]:
        context.warn("Look out.")
        result = {"options": context.options, "check": context.check_mode, "cwd": os.getcwd()}
        return {**result, "diff": {}}

    # Nobody asked for the difference.
    assert _run_here(work, tmp_path, monkeypatch) == {
        "options": {"a": 1},
        "check": True,
        "cwd": str(tmp_path),
        "warnings": ["Look out."],
    }
    assert os.getcwd() == before


def test_error_becomes_a_failure_that_keeps_the_warnings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(context: t.Any) -> dict[str, t.Any]:
        context.warn("Look out.")
        raise InvalidInput("No.")

    assert _run_here(work, tmp_path, monkeypatch) == {
        "failed": True,
        "msg": "No.",
        "reason_id": "invalid_input",
        "warnings": ["Look out."],
    }


@pytest.mark.parametrize(("mode", "of_folder"), [(0o600, 0o700), (0o644, 0o755)])
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_new_folder_can_be_entered_by_readers_of_the_file(
    tmp_path: Path, mode: int, of_folder: int, mask: int
) -> None:
    path = tmp_path / "one" / "two" / "report.txt"
    before = os.umask(mask)
    try:
        write_text(str(path), "text\r\n", mode)
        assert os.umask(mask) == mask
    finally:
        os.umask(before)

    assert path.read_bytes() == b"text\r\n"
    assert path.stat().st_mode & 0o777 == mode
    assert path.parent.stat().st_mode & 0o777 == of_folder
    assert path.parent.parent.stat().st_mode & 0o777 == of_folder


def test_existing_file_is_replaced_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.write_text("old")
    path.chmod(0o644)

    # A lone surrogate is escaped.
    write_text(str(path), "a\ud800b", 0o600)

    assert (path.read_text(), path.stat().st_mode & 0o777) == ("a\\ud800b", 0o600)
    assert list(tmp_path.iterdir()) == [path]


def test_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("untouched")
    link.symlink_to(target)

    write_text(str(link), "new", 0o600)

    assert (target.read_text(), link.read_text(), link.is_symlink()) == ("untouched", "new", False)


def test_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.mkdir()

    with pytest.raises(OSError):
        write_text(str(path), "new", 0o600)

    assert list(tmp_path.iterdir()) == [path]


# Run in a process of their own, because this one has imported everything.
_READ_FILTERS = """
import sys
from ansible.plugins.loader import filter_loader, init_plugin_loader
init_plugin_loader()
filter_loader.get("osops.placement.host_path")
prefix = "ansible_collections.osops.placement.plugins."
for name, module in sorted(sys.modules.items()):
    if name.startswith(prefix) and not hasattr(module, "__path__"):
        print(name.removeprefix(prefix))
"""
_READ_ACTION_PLUGIN = """
import gc
import sys
from ansible.plugins.loader import action_loader, init_plugin_loader
init_plugin_loader()
action_loader.get("osops.placement.orphan_detect", class_only=True)
for ending in ("plugins.filter.roles", "openstack"):
    print(any(name.endswith(ending) for name in sys.modules))
print(gc.get_freeze_count() > 0)
"""


def _run_python(code: str) -> list[str]:
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_filters_import_little_because_each_task_reads_them() -> None:
    read = [name for name in _run_python(_READ_FILTERS) if not name.startswith("filter.")]

    assert read == [
        "module_utils._common.errors",
        "module_utils._core.run.pack",
        "plugin_utils._variables.values",
    ]


def test_main_process_reads_filters_for_all_tasks_but_not_openstacksdk() -> None:
    has_filters, has_openstacksdk, is_frozen = _run_python(_READ_ACTION_PLUGIN)

    assert (has_filters, has_openstacksdk, is_frozen) == ("True", "False", "True")
