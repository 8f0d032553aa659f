# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import base64
import json
import shutil
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.osops.placement.plugins.module_utils._complaints import records_of
from ansible_collections.osops.placement.plugins.module_utils._errors import InvalidInput
from ansible_collections.osops.placement.plugins.plugin_utils._terminal import findings_lines, guest_lines, host_lines, remediation_lines

WIDEST = 120


class ActionModule(ActionBase):
    """Draws on the controller what the files of `orphan_detect` and `orphan_remediate` say; its options are in the module of the same name."""

    _supports_check_mode = True
    _requires_connection = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        _result, options = self.validate_argument_spec(
            argument_spec={
                "findings": {"type": "path"},
                "kinds": {"type": "list", "elements": "str"},
                "complaints": {"type": "raw"},
                "remediation": {"type": "path"},
                "hosts": {"type": "path"},
                "guests": {"type": "path"},
                "journal": {"type": "path"},
            },
            required_one_of=[("findings", "remediation", "hosts", "guests")],
            required_by={"complaints": ("findings",)},
        )
        width = min(shutil.get_terminal_size().columns, WIDEST)
        lines: list[str] = []
        if path := options["findings"]:
            complaints = self._complaints(options["complaints"], task_vars)
            lines += findings_lines(self._read(path, task_vars), path, options["kinds"], width, complaints)
        if path := options["remediation"]:
            lines += remediation_lines(self._read(path, task_vars), options["journal"], width)
        if path := options["hosts"]:
            for host in self._read(path, task_vars)["hosts"]:
                lines += host_lines(host, width)
        if path := options["guests"]:
            lines += guest_lines(self._read(path, task_vars), path, options["kinds"] or (), width)
        Display().display("\n".join(lines))
        return {"changed": False}

    def _complaints(self, given: t.Any, task_vars: dict[str, t.Any] | None) -> list[t.Any]:
        if given is None:
            return []
        try:
            return records_of(self._read(given, task_vars) if isinstance(given, str) else given)
        except InvalidInput as error:
            raise AnsibleActionFail(f"complaints cannot be used: {error}") from error

    def _read(self, path: str, task_vars: dict[str, t.Any] | None) -> t.Any:
        slurped = self._execute_module(module_name="ansible.builtin.slurp", module_args={"src": path}, task_vars=task_vars)
        if slurped.get("failed"):
            raise AnsibleActionFail(f"{path} cannot be read: {slurped.get('msg')}")
        try:
            return json.loads(base64.b64decode(slurped["content"]))
        except ValueError as error:
            raise AnsibleActionFail(f"{path} is not JSON ({error}): it was cut short or is another file.") from error
