# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an action plugin does itself when its host is the controller.

For a module, Ansible builds a payload, transfers it and starts another Python. On the controller
this takes longer than most of what our modules do with files.
"""

from __future__ import annotations

import contextlib
import dataclasses as d
import gc
import importlib
import os
import sys
import typing as t
from collections.abc import Callable

from ansible.errors import AnsibleError
from ansible.plugins.loader import filter_loader, test_loader
from ansible.release import __version__ as ANSIBLE_VERSION

from ...module_utils._common.errors import PlacementToolsError

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible.plugins.action import ActionBase


# It imports all models, and the other rooms that the plan and the reports need.
_SHARED = "ansible_collections.osops.placement.plugins.module_utils._core.findings.document"


def prepare_to_fork() -> None:
    """Read in this process what several tasks of a run need, and keep it in shared memory.

    Ansible reads an action plugin in its main process, which then forks one process for each task.
    What the main process has not read before, each of these processes reads again, and compiles:
    Ansible keeps no bytecode of a collection.
    """
    importlib.import_module(_SHARED)
    # A filter that cannot be read is reported by the task that uses it.
    with contextlib.suppress(AnsibleError, KeyError):
        # One filter of a collection is enough: Ansible always reads all of them.
        filter_loader.get("osops.placement.host_path")
        test_loader.get("ansible.builtin.success")
    # Each garbage collection in a forked process would search all objects of Ansible, and copy the
    # memory that they are in.
    gc.freeze()


@d.dataclass(frozen=True)
class LocalModule:
    """What the function of a module needs of its AnsibleModule."""

    params: dict[str, t.Any]
    check_mode: bool
    _diff: bool
    warnings: list[str] = d.field(default_factory=list)
    ansible_version: str = ANSIBLE_VERSION

    def warn(self, warning: str) -> None:
        self.warnings.append(str(warning))


def is_on_controller(action: ActionBase) -> bool:
    """Return whether the host of the task is this machine, and its user the user of this process.

    In the background, and with an environment of its own, only a module can run.
    """
    task: t.Any = action._task
    if task.async_val or any(task.environment or ()):
        return False
    return action._connection.transport == "local" and not action._play_context.become


def has_same_python(action: ActionBase, task_vars: dict[str, t.Any] | None) -> bool:
    """Return whether a module would run with the Python of this process, and its packages."""
    interpreter = (task_vars or {}).get("ansible_python_interpreter")
    return bool(action._templar.template(interpreter) == sys.executable)


def find_path(action: ActionBase, path: str) -> str:
    """Return the path that a module on the controller would open."""
    return os.path.join(action._loader.get_basedir(), os.path.expanduser(path))


def run_module_function(
    action: ActionBase, options: dict[str, t.Any], work: Callable[[t.Any], dict[str, t.Any]]
) -> dict[str, t.Any]:
    """Return the result of the function of a module, which is called with a LocalModule.

    options: the options of the module, after their validation.
    """
    module = LocalModule(options, action._task.check_mode, action._task.diff)
    try:
        # The current directory of a module on the controller.
        with contextlib.chdir(action._loader.get_basedir()):
            result = work(module)
    except PlacementToolsError as error:
        result = {"failed": True, "msg": str(error), "reason_id": error.reason.id}
    if module.warnings:
        result["warnings"] = module.warnings
    return result
