# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Finds variables that were meant to limit a run and do not limit it.

Ansible ignores `-e hosts=compute-1`, and `orphan_cleanup_hosts` does not limit a restore. Such a
run would examine, change or restore everything. Except for a plan, only extra variables are judged:
those of an inventory may be for other plays as well.
"""

from __future__ import annotations

import re
import typing as t
from collections.abc import Mapping

from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.osops.placement.plugins.plugin_utils._variable_bounds import SCOPE_LISTS
from ansible_collections.osops.placement.plugins.plugin_utils._variable_names import (
    ROLES,
    unify_name,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Sequence

    from ansible_collections.osops.placement.plugins.plugin_utils._variable_bounds import Run

# What says which allocations are restored, and what a detection is about.
_OF_RESTORE = ("restore_consumers", "restore_providers")
_OF_DETECTION = (*(name for name in SCOPE_LISTS if name not in _OF_RESTORE), "shard")

# What chooses a cloud.
_OF_CLOUD = ("cloud", "region_name")

# What limits a run, in the roles that have it.
_LIMITS = (
    *_OF_DETECTION,
    *_OF_RESTORE,
    *_OF_CLOUD,
    "delete_agents",
    "exclude_consumers",
    "exclude_providers",
    "ignore_allocators",
    "max_changes",
    "max_failures",
    "max_hosts",
    "max_share",
    "min_age",
    "min_sightings",
    "plan",
    "purge_age",
    "remediate_kinds",
    "return",
    "select",
    "stages",
    "stale_min_age",
    "stuck_min_age",
    "target",
    "unconfirmed_min_age",
    "unknown_min_age",
)

# Other words for them. A plural is the same as a singular.
_SYNONYMS: Mapping[str, str] = {
    "ansible_limit": "hosts",
    "compute_hosts": "hosts",
    "hypervisors": "hosts",
    "azs": "availability_zones",
    "instances": "consumers",
    "limit": "hosts",
    "nodes": "hosts",
    "os_cloud": "cloud",
    "os_region_name": "region_name",
    "project_ids": "projects",
    "providers": "hosts",
    "region": "region_name",
    "server_ids": "consumers",
    "servers": "consumers",
    "targets": "hosts",
    "zones": "availability_zones",
}

# The words in the prefixes of the roles. Somebody who leaves one out means a variable of a role.
# `placement` is not among them: the playbooks for AWX have variables that begin with it.
_WORDS = frozenset(word for role in ROLES for word in role.split("_"))

# What a user of several roles wants to be the same in all of them. The kinds of
# `hypervisor_cleanup` are others.
_COMMON = (*_OF_CLOUD, "exclude_consumers", "exclude_providers")
_WITH_SAME_KINDS = ("orphan_cleanup", "host_decommission")

# What to write for a restore, and what to write elsewhere.
_FOR_RESTORE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_OF_DETECTION, _OF_RESTORE),
    **{name: (name,) for name in (*_OF_RESTORE, *_OF_CLOUD)},
    "consumers": ("restore_consumers",),
    "hosts": ("restore_providers",),
}
_ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "restore_consumers": ("consumers",),
    "restore_providers": ("hosts",),
}

# What a playbook takes its hosts from. The role does not read it.
_OF_PLAY: Mapping[str, str] = {"orphan_cleanup": "clouds", "hypervisor_cleanup": "hosts"}

_DRY_RUNS = ("ansible_check_mode", "check", "check_mode", "dry_run", "dryrun", "noop")

# The entry points that change nothing.
_READING = ("check", "detect", "report", "verify")

# The entry points that apply a plan.
_APPLIES_PLANS = ("main", "remediate")
_PLAN = "orphan_cleanup_plan"

_TEMPLATE = re.compile(r"\{[{%]")


def find_narrowed_plan(values: Mapping[str, t.Any], run: Run) -> list[str]:
    """Return a sentence for each variable that was meant to leave out a part of a reviewed plan."""
    if _PLAN not in values or run.entry_point not in _APPLIES_PLANS:
        return []
    scope = [f"orphan_cleanup_{short}" for short in _OF_DETECTION]
    return [
        f"{name} and {_PLAN} are both set, and a reviewed plan is applied as a whole: "
        f"leave out {name}, or detect and plan again with it."
        for name in scope
        if values.get(name)
    ]


class Limits:
    """The variables that limit a run of a role.

    role: the role that runs.
    names: the names of its variables.
    defined: all variables, with templates.
    values: the variables of the role that are defined, without templates.
    """

    def __init__(
        self,
        role: str,
        names: Collection[str],
        defined: Mapping[t.Any, t.Any],
        values: Mapping[str, t.Any],
        run: Run,
    ) -> None:
        self._role = role
        self._names = names
        self._defined = defined
        self._values = values
        self._run = run

    def find_ineffective(self, extra: Mapping[str, t.Any]) -> list[str]:
        """Return a sentence for each extra variable that was meant to limit the run and does not.

        extra: the variables that were given on the command line or by AWX.
        """
        sentences = []
        for name in extra:
            if name in self._names:
                sentence = self._judge_own(name)
            elif unify_name(name) in _DRY_RUNS:
                sentence = self._judge_dry_run(name, extra)
            else:
                sentence = self._judge_other(name, extra)
            # Only now, because a value may be in a vault whose password is missing. An empty value
            # is the answer to a question of a survey.
            if sentence and not _is_empty(extra[name]):
                sentences.append(sentence)
        return sentences

    def _judge_own(self, name: str) -> str:
        """Return why a variable of the role does not limit this run, empty if it does."""
        short = name.removeprefix(f"{self._role}_")
        entry_point = self._run.entry_point
        if entry_point == "restore" and short in _OF_DETECTION:
            return f"{name} does not limit a restore: write {self._join(_FOR_RESTORE[short])}."
        if entry_point != "restore" and short in _OF_RESTORE:
            return f"{name} limits only a restore: write {self._join(_ELSEWHERE[short])}."
        if entry_point == "heal" and short == "kinds":
            return f"{name} does not limit heal, which is about missing_allocation: leave it out."
        if short == "stages" and entry_point != "main":
            return (
                f"{name} does not limit {entry_point}: leave it out. For check mode, give --check."
            )
        if short == "clouds" and self._run.is_one_cloud:
            return (
                f"{name} chooses the hosts of the playbooks cleanup_clouds and detect_clouds, and "
                "does not limit this one: write orphan_cleanup_cloud."
            )
        if name == "hypervisor_cleanup_host" and self._run.play_hosts > 1:
            return (
                f"{name} would be the same on all {self._run.play_hosts} hosts: to choose hosts, "
                "write hypervisor_cleanup_hosts."
            )
        return ""

    def _judge_dry_run(self, name: str, extra: Mapping[str, t.Any]) -> str:
        stages = _list_texts(self._values.get("host_decommission_stages"))
        if self._run.is_check or self._run.entry_point in _READING or stages == ["check"]:
            return ""
        # Ansible has its own ansible_check_mode, and ignores the given one.
        if not _is_true(extra[name]):
            return ""
        return (
            f"{name} does not make this a run in check mode: give --check to ansible-playbook, or "
            "choose the type Check for the job."
        )

    def _judge_other(self, name: str, extra: Mapping[str, t.Any]) -> str:
        """Return what to write instead of a variable that is not one of the role."""
        ours = self._translate(name)
        if not ours or any(self._is_set(variable, name, extra) for variable in ours):
            return ""
        advice = f"{name} does not limit this run: write {' or '.join(ours)}."
        if self._is_of_another_role(name):
            return advice
        return f"{advice} In a playbook of your own, set that variable from {name}, or rename it."

    def _translate(self, name: str) -> list[str]:
        """Return the variables that a name may have been meant for, those that limit this run."""
        short = self._find_limit(unify_name(name))
        if not short or (self._is_of_another_role(name) and not self._is_common(name, short)):
            return []
        if short == "cloud" and self._role == "orphan_cleanup" and not self._run.is_one_cloud:
            # The inventory says which cloud a host is.
            short = "clouds"
        if short == _OF_PLAY.get(self._role):
            # The role does not read it.
            return [f"{self._role}_{short}"] if self._run.is_play else []
        if self._run.entry_point == "restore":
            shorts = _FOR_RESTORE.get(short, ())
        elif short in _OF_DETECTION and self._is_by_plan():
            # The plan limits the run.
            shorts = ()
        else:
            shorts = _ELSEWHERE.get(short, (short,))
        return [f"{self._role}_{word}" for word in shorts]

    def _is_by_plan(self) -> bool:
        return self._run.entry_point in _APPLIES_PLANS and bool(self._values.get(_PLAN))

    def _find_limit(self, name: str) -> str:
        """Return what a name is about without the words of a prefix, empty if it limits nothing."""
        words = name.split("_")
        while words:
            rest = "_".join(words)
            for form in (rest, f"{rest}s", rest.removesuffix("s")):
                short = self._recognize(form)
                if short:
                    return short
            if words.pop(0) not in _WORDS:
                break
        return ""

    def _recognize(self, word: str) -> str:
        """Return the limit of the role that a word or its synonym names, empty if it names none."""
        synonym = _SYNONYMS.get(word, word)
        # A role that works host by host calls it the target.
        target = "target" if synonym == "hosts" else ""
        for short in (word, synonym, target):
            if short in _LIMITS and f"{self._role}_{short}" in self._names:
                return short
        return ""

    def _is_of_another_role(self, name: str) -> bool:
        return any(name.startswith(f"{role}_") for role in ROLES if role != self._role)

    def _is_common(self, name: str, short: str) -> bool:
        """Return whether a limit of another role should be the same in this role."""
        if short == "remediate_kinds":
            return self._role in _WITH_SAME_KINDS and name.startswith(_WITH_SAME_KINDS)
        return short in _COMMON

    def _is_set(self, ours: str, name: str, extra: Mapping[str, t.Any]) -> bool:
        """Return whether a variable of the role was set for this run, perhaps from another one.

        A value of the inventory does not count, unless it is the same.
        """
        if ours in extra:
            return True
        mention = re.compile(rf"\b{re.escape(name)}\b")
        for short in _LIMITS:
            variable = f"{self._role}_{short}"
            text = str(self._defined.get(variable, ""))
            is_template = _TEMPLATE.search(text) is not None
            if is_template and (variable == ours or mention.search(text)):
                return True
        return ours in self._values and _is_same(self._values[ours], extra[name])

    def _join(self, shorts: Sequence[str]) -> str:
        return " or ".join(f"{self._role}_{short}" for short in shorts)


def _is_empty(value: t.Any) -> bool:
    return value is None or value in ([], {}) or (isinstance(value, str) and not value.strip())


def _is_true(value: t.Any) -> bool:
    return isinstance(value, (bool, int, str)) and boolean(value, strict=False) is True


def _is_same(ours: t.Any, given: t.Any) -> bool:
    """Return whether two values mean the same: the command line gives a text for everything."""
    return _list_texts(ours) == _list_texts(given)


def _list_texts(value: t.Any) -> list[str]:
    elements = value if isinstance(value, list) else str(value).split(",")
    return [str(element).strip().lower() for element in elements]
