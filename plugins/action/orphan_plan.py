# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.osops.placement.plugins.modules.orphan_plan import (
    REQUIRED_ONE_OF,
    build_argument_spec,
    work,
)
from ansible_collections.osops.placement.plugins.plugin_utils._controller import (
    is_on_controller,
    run_module_function,
)


class ActionModule(ActionBase):
    """Plans in this process if the files are on the controller; otherwise it runs the module.

    Its options are in the module of the same name.
    """

    _supports_check_mode = True
    _supports_async = True

    def run(
        self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None
    ) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
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
