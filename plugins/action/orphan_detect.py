# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.osops.placement.plugins.plugin_utils._cloud_module import (
    can_run_in_process,
    run_in_process,
)


class ActionModule(ActionBase):
    """Detects in this process where that is possible; otherwise it runs the module.

    Its options are in the module of the same name.
    """

    _supports_check_mode = True
    _supports_async = True

    def run(
        self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None
    ) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        if can_run_in_process(self, task_vars):
            # Not at the top of the file: the main process reads it too, for half a second.
            from ansible_collections.osops.placement.plugins.modules import orphan_detect

            return run_in_process(self, orphan_detect)
        executed: dict[str, t.Any] = self._execute_module(
            task_vars=task_vars, wrap_async=self._task.async_val
        )
        return executed
