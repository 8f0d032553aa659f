# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds everything that is wrong with the variables of a run of a role.

Of extra variables, also those without an effect on the run are found: with `-e hosts=compute-1`
instead of `orphan_cleanup_hosts`, it would examine, change or restore everything. The variables of
an inventory may be for other plays as well.
"""

from __future__ import annotations

import dataclasses as d
import difflib
import fnmatch
import re
import typing as t
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from ansible import constants
from ansible.plugins import loader

from ...module_utils._common.options import Option, Role
from ...module_utils._common.text import make_printable, show_value
from ...module_utils._core.options.scope import SCOPE_NAMES
from .checks import Run, find_misread_numbers, find_wrong_values
from .texts import explain_broken_text
from .unknown import VERY_SIMILAR, Roles, find_unknown_variables, unify_name

_MAX_FAULTS = 5

_NOTHING_CHANGED = "Nothing was changed."

# Names that are for other tools, whatever the role.
IGNORED = "orphan_cleanup_ignore_variables"

# The entry points that apply a plan.
_APPLIES_PLANS = ("main", "remediate")
_PLAN = "orphan_cleanup_plan"

# What says which allocations are restored, and what says the same elsewhere.
_OF_RESTORE: Mapping[str, str] = {"restore_consumers": "consumers", "restore_providers": "hosts"}
# What a detection is about.
_OF_DETECTION = (*SCOPE_NAMES, "shard", "select")

# In a workflow, AWX gives these results of earlier jobs to each job, whatever its role.
_ARTIFACTS = re.compile("host_decommission_drained|orphan_cleanup_(journal|plan|run)")
_WORKFLOW = "awx_workflow_job_id"

# Words that are not similar to what they mean, without the s of a plural. A role that works host by
# host calls them the target.
_HOSTS = ("host", "target")
_MEANINGS: Mapping[str, tuple[str, ...]] = {
    "exclude_host": ("exclude_provider",),
    "exclude_server": ("exclude_consumer",),
    **dict.fromkeys(("host", "hostname", "limit", "node", "target"), _HOSTS),
    "region": ("region_name",),
    "server": ("consumer",),
    "uuid": ("consumer",),
    "zone": ("availability_zone",),
}
_DRY_RUN = re.compile(r"(ansible_)?(check(_mode)?|dry(_?run)?|noop|simulate)")

# What a role takes a host or cloud from, and what a playbook takes all of them from.
_OF_PLAY: Mapping[str, tuple[str, str]] = {
    "orphan_cleanup": ("cloud", "clouds"),
    "hypervisor_cleanup": ("host", "hosts"),
}

# Ansible sets them itself, and ignores those that are given.
_OF_ANSIBLE = {"ansible_check_mode", *constants.INTERNAL_STATIC_VARS}
# AWX gives them to each of its jobs.
_OF_AWX = re.compile(
    r"(awx|tower)_((job|project|(parent_job_)?schedule|workflow_job|inventory)_(id|name)"
    r"|(workflow_)?job_(launch_type|template_(id|name))|(job|project)_scm_branch|project_revision"
    r"|user_(id|name|email|first_name|last_name)|execution_node"
    r"|webhook_(event_(type|guid|ref)|status_api|payload))"
)


@d.dataclass(frozen=True)
class Variables:
    """The variables of a run.

    role: the role that runs; roles: all roles.
    defined: all variables, with templates.
    extra: those that were given on the command line or by AWX. Before a play over several hosts,
      only they may be wrong.
    values: those of the role that are defined, without templates.
    find_used: returns those of some names that the play or the inventory use.
    read_texts: returns the texts in which variables are set.
    """

    role: Role
    roles: Roles
    run: Run
    defined: Mapping[t.Any, t.Any]
    extra: Mapping[t.Any, t.Any]
    values: Mapping[str, t.Any]
    find_used: Callable[[Collection[str]], Collection[str]]
    read_texts: Callable[[], list[str]]

    def find_faults(self) -> list[str]:
        """Return a sentence for everything that is wrong with the variables of a run."""
        odd = [name for name in self.extra if not self._is_ignored(name)]
        broken = explain_broken_text(odd, self.extra, self.roles)
        if broken:
            # What Ansible takes for variables are parts of that text, such as a password.
            return [broken]
        is_play, extra = self.run.is_play, self.extra
        values = {name: self.values[name] for name in self.values if name in extra or not is_play}
        options: Mapping[str, Option] = {
            name: option
            for name, option in self.role.options.items()
            if name in values or not is_play
        }
        suspects = odd if is_play else [n for n in self.defined if not self._is_ignored(n)]
        unknown = find_unknown_variables(suspects, extra, self.roles)
        known = [name for name in extra if isinstance(name, str) and name not in unknown]
        return [
            *unknown.values(),
            *find_wrong_values(options, values, self.run),
            *find_misread_numbers(options, values, self.read_texts),
            *self._find_narrowed_plan(values),
            *self._find_unsearched_kinds(values),
            *self._judge_limit(),
            *self._find_ineffective(known),
        ]

    def _is_ignored(self, name: t.Any) -> bool:
        """Return whether the user has a variable for something else, by name or pattern."""
        # A name of another type than text is possible in a file.
        patterns = _list_elements(self.values.get(IGNORED))
        return any(fnmatch.fnmatchcase(str(name), pattern) for pattern in patterns)

    def _find_narrowed_plan(self, values: Mapping[str, t.Any]) -> Iterator[str]:
        """Yield a sentence for each variable that was to leave out a part of a reviewed plan."""
        if _PLAN not in values or self.run.entry_point not in _APPLIES_PLANS:
            return
        for short in _OF_DETECTION:
            name = f"orphan_cleanup_{short}"
            # In an inventory or a workflow it is also that of the run that made the plan.
            is_meant = short != "select" or (name in self.extra and _WORKFLOW not in self.extra)
            if values.get(name) and is_meant:
                yield (
                    f"{name} and {_PLAN} are both set, and a reviewed plan is applied as a whole: "
                    f"leave out {name}, or detect and plan again with it."
                )

    def _find_unsearched_kinds(self, values: Mapping[str, t.Any]) -> Iterator[str]:
        """Yield a sentence if none of the kinds that the user wants to change is searched."""
        kinds, changed = "orphan_cleanup_kinds", "orphan_cleanup_remediate_kinds"
        searched, wanted = _list_elements(values.get(kinds)), _list_elements(values.get(changed))
        is_meant = self.run.entry_point == "main" and changed in self.extra
        if is_meant and any(searched) and any(wanted) and set(searched).isdisjoint(wanted):
            yield (
                f"{changed} has no kind of {kinds}, so nothing could be found that may be changed: "
                f"add {wanted[0]} to {kinds}, or leave that out."
            )

    def _judge_limit(self) -> Iterator[str]:
        """Yield why `--limit` does not limit this run, nothing if it does or is not there."""
        # A hypervisor is a host of the play.
        is_of_play = not self.run.is_one_cloud or self.role.name == "hypervisor_cleanup"
        if not is_of_play and not set(re.split("[,:]", self.run.limit)) <= {"", "all", "localhost"}:
            yield (
                f"--limit {show_value(self.run.limit)} does not limit this run, which is on "
                f"localhost: leave it out, and {_advise(self._find_meant('hosts'))}."
            )

    def _find_ineffective(self, names: Iterable[str]) -> list[str]:
        """Return a sentence for each of the extra variables that has no effect on this run."""
        sentences = {name: self._judge_extra(name) for name in names}
        suspects = {name: sentence for name, sentence in sentences.items() if sentence}
        others = suspects.keys() - self.role.names - _OF_ANSIBLE
        used = self.find_used(others) if others else ()
        return [sentence for name, sentence in suspects.items() if name not in used]

    def _judge_extra(self, name: str) -> str:
        """Return what is wrong with an extra variable unless something uses it."""
        if name in self.role.names:
            advice = self._judge_own(name.removeprefix(self.role.prefix))
            # An empty value is the answer to a question of a survey. It is read only now, because a
            # value may be in a vault whose password is missing.
            is_meant = advice and not _is_empty(self.extra[name])
            return f"{name} does not limit this run: {advice}." if is_meant else ""
        if self._is_ignored(name) or _OF_AWX.fullmatch(name):
            return ""
        for other in self.roles.values():
            if name.startswith(other.prefix):
                return self._judge_foreign(name, other)
        return "" if _is_of_ansible(name) else self._refuse(name)

    def _judge_own(self, short: str) -> str:
        """Return what to do instead of giving a variable of the role, empty if that limits it."""
        prefix, run, ours = self.role.prefix, self.run, self._translate(short)
        if short in (*_OF_DETECTION, *_OF_RESTORE) and f"{prefix}{short}" not in ours:
            return _advise(ours)
        cases = {
            "kinds": (run.entry_point == "heal", _advise([])),
            "stages": (run.entry_point != "main", "leave it out, and give --check for check mode"),
            "clouds": (run.is_one_cloud, _advise([f"{prefix}cloud"])),
            "host": (run.play_hosts > 1, _advise([f"{prefix}hosts"])),
        }
        is_without_effect, advice = cases.get(short, (False, ""))
        return advice if is_without_effect else ""

    def _judge_foreign(self, name: str, other: Role) -> str:
        """Return what to write instead of a variable of another role, empty if it may stay."""
        short, value = name.removeprefix(other.prefix), self.extra[name]
        # The kinds and the journals of that role are others.
        others = {"journal"}
        if "hypervisor_cleanup" in (other.name, self.role.name):
            others.add("remediate_kinds")
        ours = [] if short in others else self._find_meant(short)
        # The answers to a survey are for all jobs of a workflow, too.
        if _WORKFLOW in self.extra and (_ARTIFACTS.fullmatch(name) or _is_empty(value)):
            return ""
        for own in ours:
            # The same value in the inventory is enough.
            if own in self.extra or (own in self.values and _is_same(self.values[own], value)):
                return ""
        return f"{name} does not limit this run: {_advise(ours)}."

    def _refuse(self, name: str) -> str:
        """Return that nothing uses a variable, and what to write instead."""
        shown, unified = make_printable(name, 60), unify_name(name)
        advice = f"{_advise(self._find_meant(unified))}, or add"
        advice += f" {shown if 'write' in advice else 'it'} to {IGNORED} if it is for another tool"
        if _DRY_RUN.fullmatch(unified):
            advice = (
                "for check mode, give --check to ansible-playbook, or choose the type Check for "
                "the job"
            )
        return f"Nothing in this run uses the variable {shown}: {advice}."

    def _find_meant(self, name: str) -> list[str]:
        """Return the variables that a name without the prefix of the role may stand for."""
        own = {own.removeprefix(self.role.prefix) for own in self.role.names}
        # In a play over clouds the inventory says which cloud a host is.
        own.discard(_OF_PLAY.get(self.role.name, ("", ""))[not self.run.is_play])
        # The opposite of what was meant would be a bad hint.
        is_exclusion = name.startswith("exclude")
        shorts = {
            short.removesuffix("s"): short
            for short in sorted(own)
            if short.startswith("exclude") == is_exclusion
        }
        words = name.split("_")
        # The longest end of the name that is one of them: cleanup_orphans_hosts is about hosts.
        ends = ["_".join(words[at:]).removesuffix("s") for at in range(len(words))]
        stems = [stem for end in ends for stem in (end, *_MEANINGS.get(end, ()))]
        stems += difflib.get_close_matches(name, shorts, 1, VERY_SIMILAR)
        found = next((shorts[stem] for stem in stems if stem in shorts), None)
        return self._translate(found) if found else []

    def _translate(self, short: str) -> list[str]:
        """Return what limits this run as a variable does elsewhere: itself, if that is the same."""
        shorts = [_OF_RESTORE.get(short, short)]
        if self.run.entry_point == "restore":
            same = [own for own, other in _OF_RESTORE.items() if other == short]
            shorts = same or ([*_OF_RESTORE] if short in _OF_DETECTION else [short])
        return [f"{self.role.prefix}{short}" for short in shorts]


def format_faults(faults: Sequence[str]) -> str:
    """Return the message with which a run fails."""
    sentences = list(faults[:_MAX_FAULTS])
    if faults[_MAX_FAULTS:]:
        sentences.append(f"And {len(faults) - _MAX_FAULTS} more.")
    return " ".join([*sentences, _NOTHING_CHANGED])


def _advise(variables: list[str]) -> str:
    return f"write {' or '.join(variables)}" if variables else "leave it out"


def _is_of_ansible(name: str) -> bool:
    """Return whether Ansible, or a plugin that is a part of it, reads a variable."""
    if name in _OF_ANSIBLE or not name.startswith("ansible_"):
        return False
    named: t.Any = constants.MAGIC_VARIABLE_MAPPING
    # ansible-rulebook sets one.
    if name == "ansible_eda" or any(name in names for names in named.values()):
        return True
    config = constants.config
    definitions = [config.get_configuration_definitions()]
    for kind in ("connection", "become", "shell"):
        # Loading a plugin makes its options known.
        for plugin in getattr(loader, f"{kind}_loader").all(class_only=True):
            definitions.append(config.get_configuration_definitions(kind, plugin._load_name))
    options = (option for known in definitions for option in known.values())
    return any(name == read["name"] for option in options for read in option.get("vars") or ())


def _is_empty(value: t.Any) -> bool:
    return value is None or value in ([], {}) or (isinstance(value, str) and not value.strip())


def _is_same(ours: t.Any, given: t.Any) -> bool:
    """Return whether two values mean the same: the command line gives a text for everything."""
    one, other = _list_elements(ours), _list_elements(given)
    return [name.lower() for name in one] == [name.lower() for name in other]


def _list_elements(value: t.Any) -> list[str]:
    """Return the elements of a list, or of a text with commas between them."""
    elements = value if isinstance(value, (list, tuple)) else str(value or "").split(",")
    return [str(element).strip() for element in elements]
