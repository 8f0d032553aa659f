# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What action plugins have in common: they do what a module does, and read files from the host."""

from __future__ import annotations

import base64
import contextlib
import json
import typing as t
from collections.abc import Iterable, Mapping

import yaml
from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.plugins.action.normal import ActionModule as NormalActionModule

from ...module_utils._common.errors import InvalidInput
from ...module_utils._common.json_files import read_bytes
from ...module_utils._core.findings.entries import DocumentName, validate_document
from .controller import can_run_here, find_path, is_on_controller, run_here
from .progress import show_progress

# What Ansible passes to an action plugin, and what that returns.
TaskVars = dict[str, t.Any] | None
Result = dict[str, t.Any]

# What an option has in the documentation of a module, and in an argument specification.
_FIELDS = ("type", "required", "default", "choices", "elements")


def read_argument_spec(documentation: str) -> dict[str, dict[str, t.Any]]:
    """Return the argument specification of the options that a module documents."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return _specify(yaml.load(documentation, loader)["options"])


def _specify(options: Mapping[str, t.Any]) -> dict[str, dict[str, t.Any]]:
    spec = {}
    for name, option in options.items():
        spec[name] = {field: option[field] for field in _FIELDS if field in option}
        if "suboptions" in option:
            spec[name]["options"] = _specify(option["suboptions"])
    return spec


class FileActionModule(ActionBase):
    """An action plugin that reads files which other modules wrote to the host."""

    _supports_check_mode = True
    _requires_connection = True
    _task_vars: dict[str, t.Any] | None = None

    def _read_documents(
        self, names: Iterable[DocumentName], options: Mapping[str, t.Any]
    ) -> dict[str, t.Any]:
        """Return the contents of the files in the options of these names, None for no file."""
        documents: dict[str, t.Any] = {}
        for name in names:
            path = options[name]
            documents[name] = self._read_document(name, path) if path else None
        return documents

    def _read_document(self, name: DocumentName, path: str) -> t.Any:
        try:
            return validate_document(name, self._read_json(path), path)
        except InvalidInput as error:
            raise AnsibleActionFail(str(error)) from None

    def _read_json(self, path: str) -> t.Any:
        try:
            return self._parse_json(self._read_bytes(path), path)
        except InvalidInput as error:
            raise AnsibleActionFail(str(error)) from None

    @staticmethod
    def _parse_json(text: str | bytes, path: str) -> t.Any:
        try:
            return json.loads(text)
        except ValueError as error:
            raise AnsibleActionFail(
                f"{path} is not JSON ({error}): it was cut short or is another file."
            ) from None

    def _read_text(self, path: str) -> str | None:
        """Return the contents of a file, None where there is none."""
        try:
            return self._read_bytes(path).decode(errors="replace")
        except InvalidInput:
            return None

    def _run_action(self, name: str, task: t.Any) -> dict[str, t.Any]:
        """Return the result of another action plugin, which runs a task on the same host."""
        action = self._shared_loader_obj.action_loader.get(
            name,
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        result: dict[str, t.Any] = action.run(task_vars=self._task_vars)
        return result

    def _read_bytes(self, path: str) -> bytes:
        """Return the contents of a file of the host.

        Raises InvalidInput when it cannot be read.
        """
        if is_on_controller(self):
            return read_bytes(find_path(self, path))
        slurped: dict[str, t.Any] = self._execute_module(
            module_name="ansible.builtin.slurp",
            module_args={"src": path},
            task_vars=self._task_vars,
        )
        if slurped.get("failed"):
            raise InvalidInput(f"{path} cannot be read: {slurped.get('msg')}")
        return base64.b64decode(slurped["content"])


class StageAction(FileActionModule, NormalActionModule):
    """An action plugin that does what the module of the same name does, wherever that is.

    The module has the documentation, and the options.
    """

    _shows_progress = True

    def run(self, tmp: str | None = None, task_vars: TaskVars = None) -> Result:
        self._task_vars = task_vars
        with contextlib.ExitStack() as stack:
            if self._shows_progress:
                stack.enter_context(show_progress(self, task_vars or {}))
            if can_run_here(self, task_vars):
                return run_here(self)
            result: dict[str, t.Any] = super().run(tmp, task_vars)
        return result

    def _is_asked_to(self, option: str) -> bool:
        """Return whether an option is set that this plugin does itself."""
        return bool(boolean(self._task.args.get(option, False), strict=False))


def is_plan_of_findings(plan: t.Any, findings: t.Any) -> bool:
    """Return whether the plan, if there is one, was made of these findings.

    The outcomes of a plan cannot be reported with other findings.
    """
    if not plan or not findings:
        return True
    return bool(plan["detected_at"] == findings["finished_at"])
