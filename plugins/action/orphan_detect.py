# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ..plugin_utils._stage.cloud_module import can_run_in_process, run_in_process
from ..plugin_utils._stage.controller import prepare_to_fork
from ..plugin_utils._stage.progress import ProgressActionModule, show_progress
from ..plugin_utils._stage.versions import explain_other_copy, read_running_version

# Not in `run`, which is called in the process of one task.
prepare_to_fork()


class ActionModule(ProgressActionModule):
    """Detects in this process where that is possible, otherwise runs the module.

    Either way it shows how far detection is.

    Its options are in the module of the same name.
    """

    def run(
        self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None
    ) -> dict[str, t.Any]:
        options = self._task.args
        # A module has no file that it could read its version from.
        self._task.args = {**options, "collection_version": read_running_version()}
        try:
            result = self._detect(tmp, task_vars)
        finally:
            # The same task may be tried again.
            self._task.args = options
        other_copy = explain_other_copy(self._loader.get_basedir())
        if other_copy:
            result["warnings"] = [*result.get("warnings", ()), other_copy]
        return result

    def _detect(self, tmp: str | None, task_vars: dict[str, t.Any] | None) -> dict[str, t.Any]:
        if not can_run_in_process(self, task_vars):
            return super().run(tmp, task_vars)
        # Not at the top of the file: the main process reads it too, for half a second.
        from ..modules import orphan_detect

        with show_progress(self, task_vars or {}):
            return run_in_process(self, orphan_detect)
