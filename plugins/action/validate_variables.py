# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import itertools
import os
import re
import time
import typing as t
from collections.abc import Collection, Mapping
from pathlib import Path

from ansible import context
from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.vars import load_extra_vars

from ..module_utils._common.options import Option, Role
from ..module_utils._common.text import make_printable
from ..module_utils._core.options.orphan_cleanup import ORPHAN_CLEANUP
from ..module_utils._hosts.host_decommission import HOST_DECOMMISSION
from ..module_utils._hypervisors.hypervisor_cleanup import HYPERVISOR_CLEANUP
from ..modules import validate_variables
from ..plugin_utils._stage.action import Result, TaskVars, read_argument_spec
from ..plugin_utils._stage.controller import is_on_controller
from ..plugin_utils._variables.checks import Run, explain_emptied, is_omitted, read_fenced
from ..plugin_utils._variables.roles import IGNORED, Variables, format_faults
from ..plugin_utils._variables.texts import find_lost_texts, find_mentioned, is_import, list_tags

ROLES = {role.name: role for role in (ORPHAN_CLEANUP, HOST_DECOMMISSION, HYPERVISOR_CLEANUP)}

_UNDEFINED = re.compile(r"'([^']+)' is undefined")
_CLOSED_VAULT = re.compile(r"undecryptable|no vault secrets")
_MAX_ERROR = 400

# What Ansible understands as a tag without any task that has it.
_SPECIAL_TAGS = frozenset({"all", "always", "never", "tagged", "untagged"})
_WITHOUT_TAGS = {
    "orphan_cleanup": "to change nothing, run detect_orphans, or give --check",
    "host_decommission": "name the stages that you want in host_decommission_stages",
    "hypervisor_cleanup": "to change nothing, give --check",
}


class ActionModule(ActionBase):
    """Validates variables on the controller. Its options are in the module of the same name."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: TaskVars = None) -> Result:
        super().run(tmp, task_vars)
        spec = read_argument_spec(validate_variables.DOCUMENTATION)
        _result, options = self.validate_argument_spec(argument_spec=spec)
        role, variables = ROLES[options["role"]], task_vars or {}
        # Every YAML file that Ansible has read so far, by its path.
        self._files = getattr(self._loader, "_FILE_CACHE", {})
        unfit = self._find_unfit_tags(variables)
        if unfit:
            fault = (
                f"No stage of this run has a tag, so leave out {unfit}: {_WITHOUT_TAGS[role.name]}."
            )
            return {"failed": True, "msg": format_faults([fault])}
        if not self._is_selected(variables):
            return {"changed": False, "skipped": True}
        extra = load_extra_vars(self._loader)
        values, faults = self._evaluate(role, variables)
        if options["extra_only"]:
            # A template may need a variable that another host has.
            faults = []
        run = self._describe_run(options["entry_point"], variables, options["extra_only"])

        def find_used(names: Collection[str]) -> set[str]:
            """Return those of the names that the play or the inventory use."""
            others = map(variables["hostvars"].raw_get, variables["groups"]["all"])
            return find_mentioned(names, itertools.chain(self._files.values(), [variables], others))

        given = context.CLIARGS.get("extra_vars") or ()
        faults += [*find_lost_texts(given, _read_text, ROLES), *self._find_lost_keywords()]
        faults += Variables(
            role, ROLES, run, variables, extra, values, find_used, self._read_texts
        ).find_faults()
        if faults:
            return {"failed": True, "msg": format_faults(faults)}
        if role is HOST_DECOMMISSION:
            fenced = read_fenced(values.get("host_decommission_fenced"))
            return {"changed": False, "fenced": fenced}
        if role is not ORPHAN_CLEANUP or options["extra_only"]:
            return {"changed": False}
        return {"changed": False, "run": self._begin_run(options["entry_point"], variables)}

    def _begin_run(self, entry_point: str, variables: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Return a new run, for the stages of the role to record themselves in its folder."""
        template = self._templar.template
        # What was found is changed, unless a plan says what is.
        by_findings = "orphan_cleanup_plan" not in variables
        return {
            "id": f"{time.time_ns():020}-{os.getpid()}",
            "host": template(variables["_orphan_cleanup_own_host"]),
            "folder": template(variables["_orphan_cleanup_output_dir"]),
            "check_mode": bool(self._task.check_mode),
            "detects": entry_point == "detect" or (entry_point == "main" and by_findings),
            "remediates": entry_point in ("main", "remediate", "restore"),
            "continues": entry_point == "report" or (entry_point == "remediate" and by_findings),
        }

    def _read_texts(self) -> list[str]:
        """Return what was given with -e, and the YAML files that Ansible has read."""
        return [*(context.CLIARGS.get("extra_vars") or ()), *map(_read_text, self._files)]

    def _is_selected(self, variables: Mapping[str, t.Any]) -> bool:
        """Return whether the tags of the command line select the tasks beside this one."""
        # This one runs always. The others have only the tags of what contains all of them.
        other = self._task.copy()
        other.tags = self._task._get_parent_attribute("tags", omit=True) or []
        only, skip = variables["ansible_run_tags"], variables["ansible_skip_tags"]
        return bool(other.evaluate_tags(only, skip, variables))

    def _is_included(self) -> bool:
        """Return whether the tags selected a task that includes the role, but not the role."""
        include = self._task.get_first_parent_include()
        while include:
            if not include.statically_loaded and "always" not in include.tags:
                return True
            include = include.get_first_parent_include()
        return False

    def _find_lost_keywords(self) -> list[str]:
        """Return a sentence for each way to ask for check mode or a cloud that Ansible ignores."""
        sentences = []
        # Ansible reads the letters after -c as the name of a connection, which our plays replace.
        if "heck" in str(context.CLIARGS.get("connection")):
            sentences.append("-check is -c heck to Ansible, and no check mode: give --check.")
        lists = [entries for entries in self._files.values() if isinstance(entries, list)]
        imports = list(filter(is_import, itertools.chain.from_iterable(lists)))
        reached = {"check_mode": self._task.check_mode, "environment": any(self._task.environment)}
        for keyword, has_effect in reached.items():
            if not has_effect and any(entry.get(keyword) for entry in imports):
                sentences.append(
                    f"{keyword} beside import_playbook has no effect on what that brings in: set "
                    "it in the play."
                )
        return sentences

    def _find_unfit_tags(self, variables: Mapping[str, t.Any]) -> str:
        """Return the options of the command line that would leave out stages, empty if none do.

        A playbook of the user may have tags: those leave the role out as a whole.
        """
        options = {
            "--tags": set(variables["ansible_run_tags"]),
            "--skip-tags": set(variables["ansible_skip_tags"]),
        }
        if options == {"--tags": {"all"}, "--skip-tags": set()}:
            return ""
        known = list_tags(self._files.values()) - _SPECIAL_TAGS
        unknown = set().union(*options.values()) - known - _SPECIAL_TAGS
        is_meant = not known or self._is_included()
        if not unknown and (not is_meant or self._is_selected(variables)):
            return ""
        options["--tags"].discard("all")
        given = (f"{name} {','.join(sorted(tags))}" for name, tags in options.items() if tags)
        return make_printable(" ".join(given))

    def _describe_run(self, entry_point: str, variables: Mapping[str, t.Any], is_play: bool) -> Run:
        host = variables["inventory_hostname"]
        # The playbooks for several clouds set it. Elsewhere it is a template of the role.
        is_one_of_many = variables.get("_orphan_cleanup_one_of_many") is True
        return Run(
            entry_point=entry_point,
            host=host,
            has_files=is_on_controller(self),
            is_one_cloud=host == "localhost" and not is_play and not is_one_of_many,
            is_play=is_play,
            play_hosts=len(variables["ansible_play_hosts_all"]),
            limit=variables.get("ansible_limit") or "",
        )

    def _evaluate(
        self, role: Role, variables: Mapping[str, t.Any]
    ) -> tuple[dict[str, t.Any], list[str]]:
        """Return the values of the variables, and a sentence for each that has none."""
        templar: t.Any = self._templar
        values: dict[str, t.Any] = {}
        faults: list[str] = []
        # The placeholder of ansible-core 2.18.
        omitted = variables.get("omit")
        # A run of any role may have the names that it is to ignore.
        options = {**role.options, IGNORED: ORPHAN_CLEANUP.options[IGNORED]}
        for name, option in options.items():
            if name not in variables:
                continue
            raw = variables[name]
            try:
                # In a dictionary, because a variable that is to be omitted is left out of one.
                evaluated = templar.template({name: raw})
                # ansible-core 2.18 opens a vault only when somebody reads what is in it.
                str(evaluated)
            except AnsibleError as error:
                faults.append(f"{name} {_explain(option, error)}")
                continue
            emptied = explain_emptied(option, raw, evaluated.get(name, raw), omitted)
            if emptied:
                faults.append(f"{name} {emptied}")
            else:
                values.update(evaluated)
        kept = {name: value for name, value in values.items() if not is_omitted(value, omitted)}
        return kept, faults


def _read_text(path: str) -> str:
    """Return the text of a file, empty if it cannot be read."""
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def _explain(option: Option, error: AnsibleError) -> str:
    """Return the end of a sentence about a variable whose template cannot be evaluated."""
    undefined = _UNDEFINED.search(str(error))
    if undefined:
        return f"uses {make_printable(undefined[1])}, which is not defined."
    if _CLOSED_VAULT.search(str(error)):
        return (
            "is in a vault that this run cannot open: give the password with --vault-id or "
            "--ask-vault-pass, or in AWX with a vault credential."
        )
    if option.secret:
        return "has a template that cannot be evaluated."
    # From ansible-core 2.19 on, the error is only about the plugin that failed.
    cause: BaseException = error
    while cause.__cause__:
        cause = cause.__cause__
    reason = " ".join(str(getattr(cause, "message", cause)).split())
    shown = make_printable(reason, _MAX_ERROR).rstrip(".")
    return f"has a template that cannot be evaluated: {shown}."
