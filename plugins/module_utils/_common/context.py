# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a module does, and what it is asked for: the same as a module and in the process of a task.

Modules that run on hypervisors need this file too: it runs with any Python from 3.9 on.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Callable

from .errors import PlacementToolsError

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible.module_utils.basic import AnsibleModule


@d.dataclass
class Context:
    """What is asked for, with the function that shows a warning.

    options: after their validation.
    core: the version of ansible-core; empty if it is not known.
    module: for commands on its host; None in the process of a task, which runs none.
    """

    options: dict[str, t.Any]
    check_mode: bool
    diff: bool
    warn: Callable[[str], None]
    core: str = ""
    module: t.Any = None


class Task:
    """A function with its options: all that a module has beside its documentation."""

    context: type[Context] = Context

    def __init__(
        self,
        work: Callable[[t.Any], dict[str, t.Any]],
        spec: dict[str, dict[str, t.Any]],
        **rules: t.Any,
    ) -> None:
        """Describe a task.

        work: called with the context. A result with `failed` in it fails the task, and still
        returns what was done.
        rules: what several options have to do with each other, such as `required_one_of`.
        """
        self.spec, self.rules = spec, rules
        self._work = work

    def run(self, context: Context) -> dict[str, t.Any]:
        """Return the result: this is the one place where errors become failures."""
        try:
            result = self._work(context)
        except PlacementToolsError as error:
            return {"failed": True, "msg": str(error), "reason_id": error.reason.id}
        if not context.diff:
            result.pop("diff", None)
        return result

    def run_module(self) -> t.NoReturn:
        """Run as a module of Ansible, and exit with the result."""
        # The tests on the Python of hypervisors do without Ansible.
        from ansible.module_utils.basic import AnsibleModule

        module = AnsibleModule(self.spec, supports_check_mode=True, **self.rules)
        self.prepare(module)
        # AnsibleModule gets the attribute from its arguments.
        core = str(getattr(module, "ansible_version", ""))
        # A module that Ansible did not start has this one.
        core = "" if core == "0.0" else core
        given = (module.params, module.check_mode, module._diff, module.warn)
        result = self.run(self.context(*given, core, module))
        if result.get("failed"):
            module.fail_json(**result)
        module.exit_json(**result)

    def prepare(self, module: AnsibleModule) -> None:
        """Fail before anything is done if the module cannot run here."""
