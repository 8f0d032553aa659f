# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds extra variables that nothing uses, and those that do not limit the run.

Ansible ignores `-e hosts=compute-1`, and `orphan_cleanup_hosts` does not limit a restore. Such a
run would examine, change or restore everything. Except for a plan, only extra variables are judged:
those of an inventory may be for other plays as well.
"""

from __future__ import annotations

import dataclasses as d
import difflib
import fnmatch
import re
import typing as t
from collections.abc import Callable, Collection, Iterable, Mapping

import yaml
from ansible import constants
from ansible.parsing.splitter import split_args
from ansible.plugins import loader

from ...module_utils._common.text import make_printable
from .variable_bounds import SCOPE_LISTS, Run
from .variable_names import ROLES, unify_name
from .variable_text import show_value
from .variable_values import SECRETS

_PREFIXES = tuple(f"{role}_" for role in ROLES)

# Names that are for other tools, whatever the role.
IGNORED = "orphan_cleanup_ignore_variables"

# What says which allocations are restored, and what says the same elsewhere.
_OF_RESTORE: Mapping[str, str] = {"restore_consumers": "consumers", "restore_providers": "hosts"}
# What a detection is about.
OF_DETECTION = (*(name for name in SCOPE_LISTS if name not in _OF_RESTORE), "shard", "select")

# In a workflow, AWX gives these results of earlier jobs to each job, whatever its role.
_ARTIFACTS = re.compile("host_decommission_drained|orphan_cleanup_(journal|plan|run)")
_WORKFLOW = "awx_workflow_job_id"

# Words that are not similar to what they mean, without the s of a plural.
_MEANINGS: Mapping[str, str] = {
    "exclude_host": "exclude_provider",
    "exclude_server": "exclude_consumer",
    "hostname": "host",
    "limit": "host",
    "node": "host",
    "region": "region_name",
    "server": "consumer",
    "target": "host",
    "uuid": "consumer",
    "zone": "availability_zone",
}
_DRY_RUN = re.compile(r"(ansible_)?(check(_mode)?|dry(_?run)?|noop|simulate)")

# What a role takes a host or cloud from, and what a playbook takes all of them from.
_OF_PLAY: Mapping[str, tuple[str, str]] = {
    "orphan_cleanup": ("cloud", "clouds"),
    "hypervisor_cleanup": ("host", "hosts"),
}

# The entry points that apply a plan.
_APPLIES_PLANS = ("main", "remediate")
_PLAN = "orphan_cleanup_plan"

# Ansible sets them itself, and ignores those that are given.
_OF_ANSIBLE = {"ansible_check_mode", *constants.INTERNAL_STATIC_VARS}
# AWX gives them to each of its jobs.
_OF_AWX = re.compile(
    r"(awx|tower)_((job|project|(parent_job_)?schedule|workflow_job|inventory)_(id|name)"
    r"|(workflow_)?job_(launch_type|template_(id|name))|(job|project)_scm_branch|project_revision"
    r"|user_(id|name|email|first_name|last_name)|execution_node"
    r"|webhook_(event_(type|guid|ref)|status_api|payload))"
)

# In this variable Ansible keeps what it does not understand after -e.
_LEFTOVER = "_raw_params"
_ASSIGNMENT = re.compile(r"[\"']?(\w+)[\"']?\s*[:=]+\s*(.*?)\s*", re.DOTALL)
_FILE = re.compile(r"@?(\S+\.(?:ya?ml|json))")
_NO_NAME = re.compile(r"[^\w.-]")
_WORDS = (
    "-e has words that belong to no variable, and Ansible leaves them out: put commas without "
    "spaces between the values of a list, as in -e orphan_cleanup_hosts=ONE,TWO, and quotes around "
    "a value with spaces."
)

_SIMILAR = 0.8


def find_narrowed_plan(
    values: Mapping[str, t.Any], extra: Collection[t.Any], run: Run
) -> list[str]:
    """Return a sentence for each variable that was meant to leave out a part of a reviewed plan."""
    if _PLAN not in values or run.entry_point not in _APPLIES_PLANS:
        return []
    scope = [f"orphan_cleanup_{short}" for short in OF_DETECTION]
    # In an inventory or a workflow it is also that of the run that made the plan.
    if _WORKFLOW in extra or scope[-1] not in extra:
        scope.pop()
    return [
        f"{name} and {_PLAN} are both set, and a reviewed plan is applied as a whole: "
        f"leave out {name}, or detect and plan again with it."
        for name in scope
        if values.get(name)
    ]


def find_unsearched_kinds(
    values: Mapping[str, t.Any], extra: Collection[t.Any], run: Run
) -> list[str]:
    """Return a sentence if none of the kinds that the user wants to change is searched."""
    kinds, changed = "orphan_cleanup_kinds", "orphan_cleanup_remediate_kinds"
    searched, wanted = _as_list(values.get(kinds)), _as_list(values.get(changed))
    if run.entry_point != "main" or changed not in extra or not any(searched) or not any(wanted):
        return []
    if set(searched).intersection(wanted):
        return []
    return [
        f"{changed} has no kind of {kinds}, so nothing could be found that may be changed: add "
        f"{wanted[0]} to {kinds}, or leave that out."
    ]


def find_lost_texts(texts: Iterable[str], read_file: Callable[[str], str]) -> list[str]:
    """Return a sentence for each text after `-e` that has no effect.

    texts: what follows each `-e` of the command line.
    read_file: returns the text of a file.
    """
    given = list(texts)
    sentences = []
    if any(not text.strip() for text in given):
        sentences.append("-e is empty: write -e NAME=VALUE, or leave it out.")
    lost: dict[str, None] = {}
    earlier: set[str] = set()
    for text in given:
        is_file = text.startswith("@")
        names = _list_names(read_file(text[1:]), True) if is_file else _list_names(text)
        lost |= dict.fromkeys(name for name in names if name in earlier or names.count(name) > 1)
        # What follows a file is there to replace something in it.
        earlier |= set() if is_file else set(names)
    return sentences + [
        f"{name} is given more than once, and only the last one would count: give it once, and "
        f"several values as {name}=ONE,TWO."
        for name in lost
        if name.startswith(_PREFIXES)
    ]


def _list_names(text: str, is_yaml: bool = False) -> list[str]:
    """Return the names of the variables in a text, also those that come twice."""
    if not is_yaml and not text.startswith(("{", "[")):
        return [part.partition("=")[0] for part in split_args(text)]
    try:
        # Not loaded: that would keep only the last one, and needs to know the tags of Ansible.
        node = yaml.compose(text, yaml.SafeLoader)
    except yaml.YAMLError:
        return []
    parts = node.value if isinstance(node, yaml.MappingNode) else []
    return [str(key.value) for key, _value in parts]


def explain_broken_text(extra: Mapping[t.Any, t.Any], values: Mapping[str, t.Any]) -> str:
    """Return how to write what Ansible did not understand after `-e`; empty if it did."""
    if _LEFTOVER not in extra:
        odd = [name for name in extra if isinstance(name, str) and _NO_NAME.search(name)]
        return "" if all(is_ignored(name, values) for name in odd) else _WORDS
    text = str(extra[_LEFTOVER])
    start = "Ansible does not understand what follows -e, and leaves it out: write"
    file = _FILE.fullmatch(text)
    if file:
        return f"{start} -e @{make_printable(file[1])} for a file."
    assignment = _ASSIGNMENT.fullmatch(text)
    if not assignment:
        return _WORDS
    name, value = assignment.groups()
    is_plain = re.fullmatch(r"\[?[\w.,: -]+\]?", value) and name.startswith(_PREFIXES)
    if not is_plain or name.endswith(SECRETS):
        value = "VALUE"
    value = re.sub(r"\s*,\s*", ",", value.strip("[] "))
    quote = "'" if " " in value else ""
    return f"{start} -e {name}={quote}{value}{quote}."


def is_ignored(name: str, values: Mapping[str, t.Any]) -> bool:
    """Return whether the user has an extra variable for something else, by name or pattern."""
    patterns = map(str, _as_list(values.get(IGNORED)))
    # A name of another type than text is possible in a file.
    return any(fnmatch.fnmatchcase(str(name), pattern) for pattern in patterns)


@d.dataclass(frozen=True)
class Limits:
    """The variables that limit a run of a role.

    role: the role that runs.
    names: the names of its variables.
    values: the variables of the role that are defined, without templates.
    find_used: returns those of some names that the play or the inventory use.
    """

    role: str
    names: Collection[str]
    values: Mapping[str, t.Any]
    run: Run
    find_used: Callable[[Collection[str]], Collection[str]]

    def find_ineffective(self, extra: Mapping[str, t.Any]) -> list[str]:
        """Return a sentence for each extra variable that has no effect on this run.

        extra: the variables that were given on the command line or by AWX.
        """
        sentences, suspects = [self._judge_limit()], {}
        for name in extra:
            if name in self.names:
                sentence = self._judge_own(name)
                # An empty value is the answer to a question of a survey. It is read only now,
                # because a value may be in a vault whose password is missing.
                sentences.append("" if sentence and _is_empty(extra[name]) else sentence)
            elif is_ignored(name, self.values) or _OF_AWX.fullmatch(name):
                continue
            elif name in _OF_ANSIBLE:
                sentences.append(self._refuse(name))
            elif name.startswith(_PREFIXES):
                suspects[name] = self._judge_foreign(name, extra)
            elif not (name.startswith("ansible_") and _is_of_ansible(name)):
                suspects[name] = self._refuse(name)
        suspects = {name: sentence for name, sentence in suspects.items() if sentence}
        used = self.find_used(suspects.keys()) if suspects else ()
        unused = [sentence for name, sentence in suspects.items() if name not in used]
        return [sentence for sentence in (*sentences, *unused) if sentence]

    def _judge_limit(self) -> str:
        """Return why `--limit` does not limit this run, empty if it does or is not there."""
        # A hypervisor is a host of the play.
        is_of_play = not self.run.is_one_cloud or self.role == "hypervisor_cleanup"
        if is_of_play or set(re.split("[,:]", self.run.limit)) <= {"", "all", "localhost"}:
            return ""
        return (
            f"--limit {show_value(self.run.limit)} does not limit this run, which is on localhost: "
            f"leave it out, and write {' or '.join(self._find_meant('hosts'))}."
        )

    def _judge_own(self, name: str) -> str:
        """Return why a variable of the role does not limit this run, empty if it does."""
        short = name.removeprefix(f"{self.role}_")
        entry_point, ours = self.run.entry_point, self._translate(short)
        if short in (*OF_DETECTION, *_OF_RESTORE) and name not in ours:
            verb = "does not limit" if entry_point == "restore" else "limits only"
            return f"{name} {verb} a restore: write {' or '.join(ours)}."
        if entry_point == "heal" and short == "kinds":
            return f"{name} does not limit heal, which is about missing_allocation: leave it out."
        if short == "stages" and entry_point != "main":
            return (
                f"{name} does not limit {entry_point}: leave it out. For check mode, give --check."
            )
        if short == "clouds" and self.run.is_one_cloud:
            return (
                f"{name} chooses the hosts of the playbooks cleanup_clouds and detect_clouds, and "
                "does not limit this one: write orphan_cleanup_cloud."
            )
        if name == "hypervisor_cleanup_host" and self.run.play_hosts > 1:
            return (
                f"{name} would be the same on all {self.run.play_hosts} hosts: to choose hosts, "
                "write hypervisor_cleanup_hosts."
            )
        return ""

    def _judge_foreign(self, name: str, extra: Mapping[str, t.Any]) -> str:
        """Return what to write instead of a limit of another role, empty if it may stay."""
        other = next(role for role in ROLES if name.startswith(f"{role}_"))
        short = name.removeprefix(f"{other}_")
        # The kinds of that role are others.
        has_other_kinds = short == "remediate_kinds" and "hypervisor_cleanup" in (other, self.role)
        ours = [] if has_other_kinds else self._find_meant(short)
        # The answers to a survey are for all jobs of a workflow, too.
        if _WORKFLOW in extra and (_ARTIFACTS.fullmatch(name) or _is_empty(extra[name])):
            return ""
        # The same value in the inventory is enough.
        set_here = [self.values[variable] for variable in ours if variable in self.values]
        if any(variable in extra for variable in ours) or any(
            _is_same(value, extra[name]) for value in set_here
        ):
            return ""
        advice = f"write {' or '.join(ours)}" if ours else "leave it out"
        return f"{name} does not limit this run, which has no role {other}: {advice}."

    def _refuse(self, name: str) -> str:
        """Return that nothing uses a variable, and what to write instead."""
        shown = make_printable(name, 60)
        start = f"Nothing in this run uses the variable {shown}:"
        if _DRY_RUN.fullmatch(unify_name(name)):
            return (
                f"{start} for check mode, give --check to ansible-playbook, or choose the type "
                "Check for the job."
            )
        meant = " or ".join(self._find_meant(unify_name(name)))
        if meant:
            return f"{start} write {meant}, or add {shown} to {IGNORED} if it is for another tool."
        return f"{start} leave it out, or add it to {IGNORED} if it is for another tool."

    def _find_meant(self, name: str) -> list[str]:
        """Return the variables that a name without the prefix of the role may stand for."""
        short = self._find_similar(name)
        return self._translate(short) if short else []

    def _translate(self, short: str) -> list[str]:
        """Return what limits this run as a variable does elsewhere: itself, if that is the same."""
        shorts = [short]
        if self.run.entry_point != "restore":
            shorts = [_OF_RESTORE.get(short, short)]
        elif short in OF_DETECTION:
            same = [own for own, other in _OF_RESTORE.items() if other == short]
            shorts = same or [*_OF_RESTORE]
        return [f"{self.role}_{short}" for short in shorts]

    def _find_similar(self, name: str) -> str:
        """Return the variable that a name stands for, without the prefix; empty if none does."""
        own = {own.removeprefix(f"{self.role}_") for own in self.names}
        # In a play over clouds the inventory says which cloud a host is.
        own.discard(_OF_PLAY.get(self.role, ("", ""))[not self.run.is_play])
        # The opposite of what was meant would be a bad hint.
        is_exclusion = name.startswith("exclude")
        shorts = {
            short.removesuffix("s"): short
            for short in sorted(own)
            if short.startswith("exclude") == is_exclusion
        }
        words = name.split("_")
        # The longest end of the name that is one of them: cleanup_orphans_hosts is about hosts.
        for at in range(len(words)):
            end = "_".join(words[at:]).removesuffix("s")
            meaning = _MEANINGS.get(end, end)
            # A role that works host by host calls them the target.
            for stem in (end, meaning, "target" if meaning == "host" else ""):
                if stem in shorts:
                    return shorts[stem]
        similar = difflib.get_close_matches(name, shorts, 1, _SIMILAR)
        return shorts[similar[0]] if similar else ""


def _is_of_ansible(name: str) -> bool:
    """Return whether Ansible, or a plugin that is a part of it, reads a variable."""
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
    return [name.lower() for name in _as_list(ours)] == [name.lower() for name in _as_list(given)]


def _as_list(value: t.Any) -> list[str]:
    elements = value if isinstance(value, (list, tuple)) else str(value or "").split(",")
    return [str(element).strip() for element in elements]
