# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t
from collections.abc import Iterable

from ansible import context

from ..plugin_utils._stage.action import Result, StageAction, TaskVars
from ..plugin_utils._terminal.lines import measure_terminal, print_lines


class ActionModule(StageAction):
    """Drains or returns a host, shows what became of it, and exports the moves."""

    def run(self, tmp: str | None = None, task_vars: TaskVars = None) -> Result:
        result = super().run(tmp, task_vars)
        show = self._task.args.get("show", "nothing")
        if show != "nothing":
            print_lines(self._draw(result, show, measure_terminal()))
        if self._is_asked_to("export"):
            from ..plugin_utils._hosts.drain import build_drain_artifact

            args, check_mode = self._task.args, self._task.check_mode
            data = build_drain_artifact(result, args["host"], check_mode)
            # Each host that is drained adds its own entry.
            result["ansible_stats"] = {"data": data, "per_host": False, "aggregate": True}
            # It moves: AWX drops a result from the log of a job that has it twice.
            result["packed"] = ""
        return result

    def _draw(self, result: dict[str, t.Any], show: str, width: int) -> Iterable[str]:
        # Not above: the main process of Ansible reads this file too.
        from ..plugin_utils._hosts import drain
        from ..plugin_utils._terminal import changes, lines

        # A run that was refused has nothing but its message.
        if "tally" not in result:
            # Ansible itself shows the message of a task that fails; here nothing else would.
            if show == "plan" and self._task.failed_when:
                return changes.format_failure(result.get("msg", ""), lines.get_prose_width(width))
            return []
        host = str(self._task.args["host"])
        if not self._task.check_mode and show == "result":
            drawn = drain.format_drain_result(result, host, width)
        elif "plan" in result:
            drawn = drain.format_drain_plan(result["plan"], width)
        else:
            drawn = drain.format_departures(result, host, width)
        if show == "result":
            wants_check = bool(context.CLIARGS.get("check"))
            drawn = [*drawn, *drain.format_drain_ending(result, host, wants_check)]
        return drawn
