# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When an action plugin does the work of a module itself, and how."""

from __future__ import annotations

import os
import subprocess
import sys
import types
import typing as t
from pathlib import Path

import pytest

from ......plugins.module_utils._common.errors import InvalidInput
from ......plugins.plugin_utils._stage.cloud_module import can_run_in_process
from ......plugins.plugin_utils._stage.controller import (
    find_path,
    is_on_controller,
    run_module_function,
)

SAME_PYTHON = {"ansible_python_interpreter": sys.executable}


def _action(
    args: dict[str, t.Any] | None = None,
    transport: str = "local",
    become: bool = False,
    async_val: int = 0,
    environment: t.Any = None,
    basedir: str = "/plays",
) -> t.Any:
    """Return what the functions use of an action plugin."""
    task = types.SimpleNamespace(
        args=args or {}, async_val=async_val, environment=environment, check_mode=True, diff=False
    )
    return types.SimpleNamespace(
        _task=task,
        _connection=types.SimpleNamespace(transport=transport),
        _play_context=types.SimpleNamespace(become=become),
        _loader=types.SimpleNamespace(get_basedir=lambda: basedir),
        _templar=types.SimpleNamespace(template=lambda value: value),
    )


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

    assert can_run_in_process(_action(args), variables) is expected


def test_a_module_runs_where_a_fork_cannot_use_the_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    assert not can_run_in_process(_action(), SAME_PYTHON)


def test_a_host_elsewhere_is_sent_the_module() -> None:
    assert not can_run_in_process(_action(transport="ssh"), SAME_PYTHON)


def test_paths_begin_where_those_of_a_module_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")

    assert find_path(_action(), "out/findings.json") == "/plays/out/findings.json"
    assert find_path(_action(), "/out/findings.json") == "/out/findings.json"
    assert find_path(_action(), "~/findings.json") == "/home/me/findings.json"


def test_function_runs_in_the_directory_of_a_module_with_its_warnings(tmp_path: Path) -> None:
    before = os.getcwd()

    def work(module: t.Any) -> dict[str, t.Any]:
        module.warn("Look out.")
        return {"params": module.params, "check": module.check_mode, "cwd": os.getcwd()}

    assert run_module_function(_action(basedir=str(tmp_path)), {"a": 1}, work) == {
        "params": {"a": 1},
        "check": True,
        "cwd": str(tmp_path),
        "warnings": ["Look out."],
    }
    assert os.getcwd() == before


def test_error_becomes_a_failure_that_keeps_the_warnings(tmp_path: Path) -> None:
    def work(module: t.Any) -> dict[str, t.Any]:
        module.warn("Look out.")
        raise InvalidInput("No.")

    assert run_module_function(_action(basedir=str(tmp_path)), {}, work) == {
        "failed": True,
        "msg": "No.",
        "reason_id": "invalid_input",
        "warnings": ["Look out."],
    }


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
