# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ..plugin_utils._report.status import build_journal_artifact
from ..plugin_utils._stage.action import Result, StageAction, TaskVars
from ..plugin_utils._terminal.changes import add_names


class ActionModule(StageAction):
    """Remediates, adds names to the diff, and exports the journal, which a module cannot do."""

    def run(self, tmp: str | None = None, task_vars: TaskVars = None) -> Result:
        result = super().run(tmp, task_vars)
        add_names(self, result)
        # It moves: AWX drops a result from the log of a job that has it twice.
        if self._is_asked_to("export_journal") and result.get("packed"):
            host = str(self._task.args.get("export_host") or "")
            result["ansible_stats"] = {
                "data": build_journal_artifact(result["packed"], host),
                "per_host": False,
                # Another run in the same play adds its own journal.
                "aggregate": True,
            }
            result["packed"] = ""
        return result
