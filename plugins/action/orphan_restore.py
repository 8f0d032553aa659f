# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ..plugin_utils._stage.action import Result, StageAction, TaskVars
from ..plugin_utils._stage.controller import find_path, is_on_controller
from ..plugin_utils._terminal.changes import add_names, find_findings


class ActionModule(StageAction):
    """Restores, shows before what the journal has, and adds names to the diff."""

    def run(self, tmp: str | None = None, task_vars: TaskVars = None) -> Result:
        if self._is_asked_to("show") and not self._task.no_log:
            self._show_journal()
        result = super().run(tmp, task_vars)
        add_names(self, result)
        return result

    def _show_journal(self) -> None:
        """Show what is restored. The module itself reports a journal that cannot be restored."""
        # Not above: the main process of Ansible reads this file too.
        from ..module_utils._common.errors import InvalidInput
        from ..module_utils._core.changes import records as recorded
        from ..module_utils._core.changes import restore
        from ..plugin_utils._terminal.changes import format_journal
        from ..plugin_utils._terminal.lines import measure_terminal, print_lines

        args = self._task.args
        given = args.get("journal")
        if isinstance(given, str):
            if not is_on_controller(self):
                return
            given = find_path(self, given)
        try:
            records, _torn = recorded.read_restorable(given)
            steps = restore.find_restore_steps(
                records,
                # The module compares it with that of the connection.
                str(records[0].get("placement_endpoint")) if records else "",
                args.get("consumers") or [],
                args.get("providers") or [],
            )
        except InvalidInput:
            return
        if steps:
            print_lines(format_journal(steps, find_findings(self), measure_terminal()))
