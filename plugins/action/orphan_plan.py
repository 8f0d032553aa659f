# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean

from ..modules.orphan_plan import REQUIRED_ONE_OF, build_argument_spec, work
from ..plugin_utils._stage.action import FileActionModule, is_plan_of_findings
from ..plugin_utils._stage.controller import is_on_controller, run_module_function
from ..plugin_utils._terminal.lines import measure_terminal, print_lines


class ActionModule(FileActionModule):
    """Plans in this process if the files are on the controller; otherwise it runs the module.

    Its options are in the module of the same name.
    """

    _supports_async = True

    def run(
        self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None
    ) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        self._task_vars = task_vars
        result = self._plan(task_vars)
        # Also one whose failure is recorded in the folder of its run.
        if result.get("failed") or "msg" in result:
            return result
        if boolean(self._task.args.get("show", False), strict=False):
            self._show(result)
        if result.get("diff") and result.get("plan"):
            self._name_diff(result)
        return result

    def _plan(self, task_vars: dict[str, t.Any] | None) -> dict[str, t.Any]:
        # Ansible converts a plan that is passed as data on its way to a module.
        if not is_on_controller(self) or not isinstance(self._task.args.get("plan", ""), str):
            executed: dict[str, t.Any] = self._execute_module(
                task_vars=task_vars, wrap_async=self._task.async_val
            )
            return executed
        _result, options = self.validate_argument_spec(
            argument_spec=build_argument_spec(), required_one_of=REQUIRED_ONE_OF
        )
        return run_module_function(self, options, work)

    def _show(self, result: dict[str, t.Any]) -> None:
        """Show the changes of the plan, with names where the findings of the plan are known."""
        if not result.get("plan") or not result.get("changes"):
            return
        # Not here: the main process of Ansible reads this file too.
        from ..plugin_utils._terminal.changes import format_plan

        plan = self._read_document("plan", result["plan"])
        print_lines(format_plan(plan, self._find_findings(plan), measure_terminal()))

    def _name_diff(self, result: dict[str, t.Any]) -> None:
        """Add names to what `--diff` shows, where the findings of the plan are known."""
        from ..plugin_utils._terminal.changes import name_diff

        findings = self._find_findings(self._read_document("plan", result["plan"]))
        if findings:
            result["diff"] = name_diff(result["diff"], findings)

    def _find_findings(self, plan: t.Any) -> t.Any:
        """Return the findings that the plan was made of, None if they are not there."""
        args = self._task.args
        path = args.get("findings") or os.path.join(args.get("output_dir") or "", "findings.json")
        try:
            findings = self._read_document("findings", path)
        except AnsibleActionFail:
            return None
        return findings if is_plan_of_findings(plan, findings) else None
