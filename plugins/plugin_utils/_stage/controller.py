# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the work of a module is done: in the process of its task, or as a module; by which copy.

For a module, Ansible builds a payload, transfers it and starts another Python. On the controller
this takes longer than to read a small cloud, or most of what our modules do with files.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import logging
import os
import re
import sys
import typing as t
import warnings
from pathlib import Path

from ansible.errors import AnsibleError
from ansible.plugins.loader import filter_loader, test_loader
from ansible.release import __version__ as ANSIBLE_VERSION

from ...module_utils._common.json_files import replace_file

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible.plugins.action import ActionBase

# What only reads or computes, and whether it needs a cloud. Whatever else changes something always
# runs as a module: in a process of its own, with its own signals.
READERS = {"compute_host_info": True, "orphan_detect": True, "orphan_plan": False}

_PLUGINS = "ansible_collections.osops.placement.plugins."
# It imports all models, and the other rooms that the plan and the reports need.
_SHARED = f"{_PLUGINS}module_utils._core.findings.document"

# The options with secrets, by all their names.
_SECRETS = frozenset({"auth", "client_key", "key"})
# Options that may be data. The cloud can be a dictionary with a password, and Ansible converts a
# plan on its way to a module.
_TEXTS = ("cloud", "plan")

# What these libraries write to the standard error is not shown when a module runs.
_LIBRARIES = ("keystoneauth", "openstack", "urllib3")
_SILENT = logging.NullHandler()

# Without links: in a clone, Ansible reads the collection through one.
ROOT = Path(__file__).resolve().parents[3]
NAME = "osops.placement"

# In the manifest of an installed collection, and in the YAML file of a clone.
_FIELD = re.compile(
    r"(?:^|[{,])\s*\"?(namespace|name|version)\"?:\s*['\"]?(?!null)([\w.+-]+)", re.MULTILINE
)


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


def is_on_controller(action: ActionBase) -> bool:
    """Return whether the host of the task is this machine, and its user the user of this process.

    In the background, and with an environment of its own, only a module can run.
    """
    task: t.Any = action._task
    if task.async_val or any(task.environment or ()):
        return False
    return action._connection.transport == "local" and not action._play_context.become


def find_path(action: ActionBase, path: str) -> str:
    """Return the path that a module on the controller would open."""
    return os.path.join(action._loader.get_basedir(), os.path.expanduser(path))


def write_text(path: str, text: str, mode: int) -> None:
    """Write `text` to `path`, and create its folder if it does not exist.

    mode: of the file. The folder can be entered by the users who can read the file.
    Raises OSError when the file cannot be written.
    """
    # In place of the user's own mask, which may hide the metrics.
    before = os.umask(0o022 if mode & 0o044 else 0o077)
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    finally:
        os.umask(before)
    replace_file(path, text, mode)


def can_run_here(action: ActionBase, task_vars: dict[str, t.Any] | None) -> bool:
    """Return whether this process can do what the module would do, and in the same way."""
    name, args = get_module_name(action), action._task.args
    return (
        name in READERS
        and is_on_controller(action)
        # Only a module hides the secrets in its options wherever its result has them.
        and _SECRETS.isdisjoint(args)
        and all(isinstance(args.get(option, ""), str) for option in _TEXTS)
        and (not READERS[name] or _can_connect(action, task_vars or {}))
    )


def get_module_name(action: ActionBase) -> str:
    """Return the name of the module of a task, without that of the collection."""
    name: str = action._task.action
    return name.rpartition(".")[2]


def _can_connect(action: ActionBase, task_vars: dict[str, t.Any]) -> bool:
    """Return whether this process can connect to a cloud as a module would."""
    # A module would run with another Python, and its packages.
    interpreter = action._templar.template(task_vars.get("ansible_python_interpreter"))
    # A process that was forked without exec cannot look for proxies on macOS.
    if interpreter != sys.executable or sys.platform == "darwin":
        return False
    # Not above: this takes half a second, which the main process is to do without.
    from ...module_utils._core.clients.login_errors import OPENSTACKSDK_IMPORT_ERROR

    # Without openstacksdk the module says what to install.
    return OPENSTACKSDK_IMPORT_ERROR is None


def import_task(name: str) -> t.Any:
    """Return the task of a module, `_common.context.Task`."""
    return importlib.import_module(f"{_PLUGINS}modules.{name}").TASK


def run_here(action: t.Any) -> dict[str, t.Any]:
    """Return the result of the task of a module, which is run in this process."""
    task = import_task(get_module_name(action))
    _result, options = action.validate_argument_spec(argument_spec=task.spec, **task.rules)
    sentences: list[str] = []
    check_mode, diff = action._task.check_mode, action._task.diff
    context = task.context(options, check_mode, diff, sentences.append, ANSIBLE_VERSION)
    # The current directory of a module on the controller.
    with _silence_libraries(), contextlib.chdir(action._loader.get_basedir()):
        result: dict[str, t.Any] = task.run(context)
    return {**result, "warnings": sentences} if sentences else result


def _silence_libraries() -> warnings.catch_warnings[None]:
    for name in _LIBRARIES:
        logger = logging.getLogger(name)
        logger.propagate = False
        # Without any handler, Python writes warnings to the standard error after all.
        logger.addHandler(_SILENT)
    return warnings.catch_warnings(action="ignore")


# --- the version of the collection that runs, and copies of another version


@functools.cache
def read_running_version() -> str:
    """Return the version of the collection that this file belongs to, empty if no file has it."""
    return read_version(ROOT)


def read_version(folder: Path) -> str:
    """Return the version of the copy of this collection in `folder`, empty if there is none."""
    for file in ("MANIFEST.json", "galaxy.yml"):
        fields: dict[str, str] = {}
        with contextlib.suppress(OSError, ValueError):
            # A YAML parser would take longer than everything else here.
            for name, value in _FIELD.findall((folder / file).read_text(encoding="utf-8")):
                fields.setdefault(name, value)
        if f"{fields.get('namespace')}.{fields.get('name')}" == NAME:
            return fields.get("version", "")
    return ""


def explain_other_copy(playbook_folder: str) -> str:
    """Return a sentence if the job is in a copy of another version, else an empty text.

    AWX runs the playbooks of a checkout with the collection of the image.

    playbook_folder: the folder of the playbook that was started.
    """
    running = read_running_version()
    for folder in _list_parents(playbook_folder):
        version = read_version(folder)
        if version and running and version != running:
            return (
                f"Version {running} of {NAME} runs, from {ROOT}, and not version {version}, which "
                f"is in {folder}."
            )
    return ""


def _list_parents(playbook_folder: str) -> list[Path]:
    """Return the folders that the playbook and the current directory are in."""
    folders = [Path(playbook_folder)]
    # The current directory may have been removed.
    with contextlib.suppress(OSError):
        folders.append(Path.cwd())
    return [parent for folder in folders for parent in (folder, *folder.parents)]
