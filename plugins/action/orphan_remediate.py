# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible.module_utils.parsing.convert_bool import boolean

from ..plugin_utils._report.status import build_journal_artifact
from ..plugin_utils._stage.progress import ProgressActionModule


class ActionModule(ProgressActionModule):
    """Runs the module of the same name, which has the documentation, and shows how far it is.

    It also adds names to the diff, and exports the journal, which a module cannot do.
    """

    def run(
        self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None
    ) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        if result.get("diff"):
            # Not above: the main process of Ansible reads this file too.
            from ..plugin_utils._terminal.changes import add_names

            add_names(self, result)
        args = self._task.args
        if not boolean(args.get("export_journal", False), strict=False):
            return result
        # It moves: AWX drops a result from the log of a job that has it twice.
        packed = result.get("packed")
        if packed:
            result["packed"] = ""
            result["ansible_stats"] = {
                "data": build_journal_artifact(packed, str(args.get("export_host") or "")),
                "per_host": False,
                # Another run in the same play adds its own journal.
                "aggregate": True,
            }
        return result
