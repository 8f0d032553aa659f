# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t
from collections.abc import Iterable

from ansible import context
from ansible.module_utils.parsing.convert_bool import boolean

from ..plugin_utils._stage.progress import ProgressActionModule
from ..plugin_utils._terminal.lines import measure_terminal, print_lines


class ActionModule(ProgressActionModule):
    """Runs the module of the same name, which has the documentation.

    It shows how far the module is, and then what it returned.
    """

    def run(
        self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None
    ) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        show = self._task.args.get("show", "nothing")
        if show != "nothing":
            print_lines(self._draw(result, show, measure_terminal()))
        if boolean(self._task.args.get("export", False), strict=False):
            result["ansible_stats"] = self._build_stats(result)
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
        drawn: list[str] = []
        if self._task.check_mode or show == "plan":
            drawn += self._draw_prediction(result, host, width)
        else:
            drawn += drain.format_drain_result(result, host, width)
        if show == "result":
            wants_check = bool(context.CLIARGS.get("check"))
            drawn += drain.format_drain_ending(result, host, wants_check)
        return drawn

    def _draw_prediction(self, result: dict[str, t.Any], host: str, width: int) -> list[str]:
        from ..plugin_utils._hosts import drain

        if "plan" in result:
            return drain.format_drain_plan(result["plan"], width)
        return drain.format_departures(result, host, width)

    def _build_stats(self, result: dict[str, t.Any]) -> dict[str, t.Any]:
        from ..plugin_utils._hosts import drain

        data = drain.build_drain_artifact(result, self._task.args["host"], self._task.check_mode)
        # Each host that is drained adds its own entry.
        return {"data": data, "per_host": False, "aggregate": True}
