# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
import typing as t

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.vars import load_extra_vars

from ansible_collections.osops.placement.plugins.module_utils._common.text import make_printable
from ansible_collections.osops.placement.plugins.plugin_utils._controller import is_on_controller
from ansible_collections.osops.placement.plugins.plugin_utils._role_variables import (
    find_faults,
    format_faults,
    list_options,
)
from ansible_collections.osops.placement.plugins.plugin_utils._variable_bounds import (
    SCOPE_LISTS,
    Run,
)
from ansible_collections.osops.placement.plugins.plugin_utils._variable_names import ROLES
from ansible_collections.osops.placement.plugins.plugin_utils._variable_values import SECRETS

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping

ARGUMENT_SPEC = {
    "role": {"type": "str", "choices": list(ROLES), "required": True},
    "entry_point": {"type": "str", "default": "main"},
    "extra_only": {"type": "bool", "default": False},
}

_UNDEFINED = re.compile(r"'([^']+)' is undefined")
_MAX_ERROR = 400
_EMPTIED = (
    "has no entry that is not omitted, and an empty list would mean all. If you mean all, write []."
)


class ActionModule(ActionBase):
    """Validates variables on the controller. Its options are in the module of the same name."""

    _requires_connection = False

    def run(
        self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None
    ) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        _result, options = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        role, variables = options["role"], task_vars or {}
        extra = load_extra_vars(self._loader)
        values, faults = self._evaluate(role, list_options(role, variables), variables)
        if options["extra_only"]:
            # A template may need a variable that another host has.
            faults = []
        run = self._describe_run(options["entry_point"], variables, options["extra_only"])
        faults += find_faults(role, variables, extra, values, run)
        if faults:
            return {"failed": True, "msg": format_faults(faults)}
        return {"changed": False}

    def _describe_run(self, entry_point: str, variables: Mapping[str, t.Any], is_play: bool) -> Run:
        host = variables["inventory_hostname"]
        # The playbooks for several clouds set it. Elsewhere it is a template of the role.
        is_one_of_many = variables.get("_orphan_cleanup_one_of_many") is True
        return Run(
            entry_point=entry_point,
            host=host,
            has_files=is_on_controller(self),
            is_check=bool(self._task.check_mode),
            is_one_cloud=host == "localhost" and not is_play and not is_one_of_many,
            is_play=is_play,
            play_hosts=len(variables["ansible_play_hosts_all"]),
        )

    def _evaluate(
        self, role: str, names: t.Iterable[str], variables: Mapping[str, t.Any]
    ) -> tuple[dict[str, t.Any], list[str]]:
        """Return the values of the variables, and a sentence for each that has none."""
        templar: t.Any = self._templar
        values: dict[str, t.Any] = {}
        faults: list[str] = []
        # The placeholder of ansible-core 2.18.
        omitted = variables.get("omit")
        for name in names:
            try:
                # In a dictionary, because a variable that is to be omitted is left out of one.
                evaluated = templar.template({name: variables[name]})
            except AnsibleError as error:
                faults.append(f"{name} {_explain(name, error)}")
                continue
            is_scope = name.removeprefix(f"{role}_") in SCOPE_LISTS
            if is_scope and _is_emptied(variables[name], evaluated.get(name), omitted):
                faults.append(f"{name} {_EMPTIED}")
            else:
                values.update(evaluated)
        kept = {name: value for name, value in values.items() if not _is_same(value, omitted)}
        return kept, faults


def _is_same(value: t.Any, omitted: t.Any) -> bool:
    return isinstance(value, str) and value == omitted


def _is_emptied(raw: t.Any, value: t.Any, omitted: t.Any) -> bool:
    """Return whether a list has entries, all of which are to be omitted."""
    if not isinstance(raw, list) or not raw or not isinstance(value, list):
        return False
    return all(_is_same(entry, omitted) for entry in value)


def _explain(name: str, error: AnsibleError) -> str:
    """Return the end of a sentence about a variable whose template cannot be evaluated."""
    undefined = _UNDEFINED.search(str(error))
    if undefined:
        return f"uses {make_printable(undefined[1])}, which is not defined."
    if name.endswith(SECRETS):
        return "has a template that cannot be evaluated."
    # From ansible-core 2.19 on, the error is only about the plugin that failed.
    cause: BaseException = error
    while cause.__cause__:
        cause = cause.__cause__
    reason = " ".join(str(getattr(cause, "message", cause)).split())
    shown = make_printable(reason, _MAX_ERROR).rstrip(".")
    return f"has a template that cannot be evaluated: {shown}."
