# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ..plugin_utils._stage.action import Result, StageAction, TaskVars
from ..plugin_utils._stage.controller import (
    explain_other_copy,
    prepare_to_fork,
    read_running_version,
)

# Not in `run`, which is called in the process of one task.
prepare_to_fork()


class ActionModule(StageAction):
    """Detects, and warns of another copy of the collection."""

    def run(self, tmp: str | None = None, task_vars: TaskVars = None) -> Result:
        options = self._task.args
        # A module has no file that it could read its version from.
        self._task.args = {**options, "collection_version": read_running_version()}
        try:
            result = super().run(tmp, task_vars)
        finally:
            # The same task may be tried again.
            self._task.args = options
        other_copy = explain_other_copy(self._loader.get_basedir())
        if other_copy:
            result["warnings"] = [*result.get("warnings", ()), other_copy]
        return result
