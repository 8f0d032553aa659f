# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import typing as t

from ansible.errors import AnsibleActionFail

from ..plugin_utils._stage.action import Result, StageAction, TaskVars, is_plan_of_findings
from ..plugin_utils._stage.controller import import_task
from ..plugin_utils._terminal.changes import format_plan, name_diff
from ..plugin_utils._terminal.lines import measure_terminal, print_lines

# Not in `run`, which is called in a process for each host: the main process reads this file.
import_task("orphan_plan")


class ActionModule(StageAction):
    """Plans, shows the plan, and adds names to the diff."""

    _shows_progress = False

    def run(self, tmp: str | None = None, task_vars: TaskVars = None) -> Result:
        result = super().run(tmp, task_vars)
        # Also one whose failure is recorded in the folder of its run has a message.
        if result.get("failed") or "msg" in result or not result.get("plan"):
            return result
        is_shown = result.get("changes") and self._is_asked_to("show")
        if is_shown or result.get("diff"):
            plan = self._read_document("plan", result["plan"])
            # The findings of the plan have the names.
            findings = self._find_findings(plan)
            if is_shown:
                print_lines(format_plan(plan, findings, measure_terminal()))
            if findings and result.get("diff"):
                result["diff"] = name_diff(result["diff"], findings)
        return result

    def _find_findings(self, plan: t.Any) -> t.Any:
        """Return the findings that the plan was made of, None if they are not there."""
        args = self._task.args
        path = args.get("findings") or os.path.join(args.get("output_dir") or "", "findings.json")
        try:
            findings = self._read_document("findings", path)
        except AnsibleActionFail:
            return None
        return findings if is_plan_of_findings(plan, findings) else None
