# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the variables that have no effect on a run, among all and among extra variables.

Ansible ignores a variable that nothing reads. With `orphan_cleanup_host` or `-e hosts=compute-1`
instead of `orphan_cleanup_hosts`, a run would examine, change or restore everything. A misspelt
name is found wherever it is set. Anything else is judged only among extra variables: those of an
inventory may be for other plays as well.
"""

from __future__ import annotations

import dataclasses as d
import difflib
import fnmatch
import functools
import re
import typing as t
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from ansible import constants
from ansible.plugins import loader

from ...module_utils._common.options import Role
from ...module_utils._common.text import make_printable, show_value
from ...module_utils._core.options.scope import SCOPE_NAMES
from .checks import Run

Roles = Mapping[str, Role]

# How similar the rest of a name must be to that of a variable.
_SIMILAR = 0.6
# The same for a name whose prefix does not end as the prefix of a role does. A variable such as
# `host_decommissioned_at` belongs to the user.
_VERY_SIMILAR = 0.8

# The names of variables in version 1.0.0, without the prefix of the role, and what they are now.
# The most similar name of today means something else. `docs/porting-to-2.0.md` lists them all.
_RENAMED = {"forgotten_min_age": "unknown_min_age", "parked_min_age": "unconfirmed_min_age"}

# Variables that were removed: in which version, and what to do. Those of the later versions are in
# `docs/porting-to-3.0.md`.
REMOVED = {
    "host_decommission_stuck_min_age": "2.0.0, because it had no effect: leave it out.",
    "host_decommission_drained_reason": "3.0.0: write host_decommission_disabled_reason.",
    "orphan_cleanup_known_for": (
        "3.0.0: write orphan_cleanup_min_sightings, the number of runs that must have seen a "
        "finding."
    ),
    "orphan_cleanup_require_durable_output": (
        "3.0.0: leave it out, and set orphan_cleanup_output_dir to a mounted folder; a run warns "
        "if that folder is lost after the job, and exports its journal."
    ),
}

# Names that are for other tools, whatever the role.
IGNORED = "orphan_cleanup_ignore_variables"

# What says which allocations are restored, and what says the same elsewhere.
_OF_RESTORE: Mapping[str, str] = {"restore_consumers": "consumers", "restore_providers": "hosts"}
# What a detection is about.
OF_DETECTION = (*SCOPE_NAMES, "shard", "select")

# In a workflow, AWX gives these results of earlier jobs to each job, whatever its role.
_ARTIFACTS = re.compile("host_decommission_drained|orphan_cleanup_(journal|plan|run)")
WORKFLOW = "awx_workflow_job_id"

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

# Ansible sets them itself, and ignores those that are given.
_OF_ANSIBLE = {"ansible_check_mode", *constants.INTERNAL_STATIC_VARS}
# AWX gives them to each of its jobs.
_OF_AWX = re.compile(
    r"(awx|tower)_((job|project|(parent_job_)?schedule|workflow_job|inventory)_(id|name)"
    r"|(workflow_)?job_(launch_type|template_(id|name))|(job|project)_scm_branch|project_revision"
    r"|user_(id|name|email|first_name|last_name)|execution_node"
    r"|webhook_(event_(type|guid|ref)|status_api|payload))"
)

_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def find_unknown_variables(
    defined: Iterable[t.Any], extra: Collection[t.Any], roles: Roles
) -> dict[str, str]:
    """Return a sentence for each variable that looks like one of a role and is none, by its name.

    defined: the names of all variables.
    extra: the names of those that were given on the command line or by AWX.
    """
    sentences = {}
    for name in sorted(map(str, defined)):
        for role in roles.values():
            sentence = _judge_name(name, role, name in extra)
            if sentence:
                sentences[name] = sentence
    return sentences


def _judge_name(name: str, role: Role, is_extra: bool) -> str:
    """Return what is wrong with the name of a variable, empty if nothing is."""
    if name in role.names:
        return ""
    if name.startswith(f"_{role.prefix}"):
        similar = _find_similar(name.removeprefix(f"_{role.prefix}"), role, _SIMILAR)
        sentence = f"{name} is internal to the role {role.name} and cannot be set{similar}"
        # As an extra variable it would replace what the role itself computes.
        return sentence if is_extra else ""
    if name == role.name:
        # A name for what a playbook registers, but on the command line it was meant for the role.
        advice = f"its variables begin with {role.prefix}, such as {role.prefix}output_dir."
        return f"{name} is not a variable of the role {name}: {advice}" if is_extra else ""
    prefix = split_prefix(name, role.name)
    if prefix is None:
        return ""
    if name in REMOVED:
        return f"{name} was removed in version {REMOVED[name]}"
    start, rest = prefix
    today = f"{role.prefix}{_RENAMED.get(rest)}"
    if today in role.names:
        return f"{name} was renamed in version 2.0.0: write {today}."
    # Without a separator it is probably another word.
    similar = _find_similar(rest, role, _VERY_SIMILAR if start == role.name else _SIMILAR)
    if start == role.name and similar == ".":
        return ""
    sentence = f"{name} is not a variable of the role {role.name}{similar}"
    # Nobody gives a variable on the command line that only their own playbook uses.
    return sentence if is_extra else f"{sentence} If it is a variable of your own, rename it."


def _find_similar(rest: str, role: Role, cutoff: float) -> str:
    """Return the end of a sentence, with the variable that was probably meant if there is one.

    The prefix is left out, because it makes all names similar.
    """
    by_rest = {name.removeprefix(role.prefix): name for name in sorted(role.names)}
    found = difflib.get_close_matches(rest.lower().replace("-", "_"), by_rest, 1, cutoff)
    return f"; did you mean {by_rest[found[0]]}?" if found else "."


def split_prefix(name: str, role: str) -> tuple[str, str] | None:
    """Return the prefix of the role that a name begins with, and the rest; None if it has none.

    One character that is missing, wrong or too much, two swapped characters, capitals and other
    separators are mistakes in the prefix.
    """
    if name.startswith(f"{role}_"):
        return f"{role}_", name.removeprefix(f"{role}_")
    # Names for the inner use of a role begin with this, and differ in one character.
    if name.startswith("_"):
        return None
    match = _match_prefix(role).fullmatch(_unify_name(name))
    return (match[1], match[2]) if match else None


@functools.cache
def _match_prefix(role: str) -> re.Pattern[str]:
    """Return what matches the names that begin with the prefix of a role, give or take one edit."""
    forms = [f"{role}_"]
    for at, character in enumerate(role):
        before, after = role[:at], role[at + 1 :]
        swapped = after[:1] + character + after[1:]
        forms += (
            f"{before}{end}_" for end in (after, f".{after}", f".{character}{after}", swapped)
        )
    # The separator is wrong, or is missing.
    forms += [f"{role}._", rf"{role}\W?"]
    return re.compile(f"({'|'.join(forms)})(.+)", re.DOTALL)


def _unify_name(name: str) -> str:
    """Return a name in the form of a variable: orphanCleanup-hosts as orphan_cleanup_hosts."""
    return _CAPITAL.sub("_", name).replace("-", "_").lower()


def is_ignored(name: t.Any, values: Mapping[str, t.Any]) -> bool:
    """Return whether the user has an extra variable for something else, by name or pattern."""
    patterns = map(str, as_list(values.get(IGNORED)))
    # A name of another type than text is possible in a file.
    return any(fnmatch.fnmatchcase(str(name), pattern) for pattern in patterns)


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

    def find_ineffective(self, names: Iterable[str]) -> list[str]:
        """Return a sentence for each of the extra variables that has no effect on this run."""
        sentences, suspects, extra = [*self._judge_limit()], {}, self.extra
        for name in names:
            if name in self.role.names:
                advice = self._judge_own(name)
                # An empty value is the answer to a question of a survey. It is read only now,
                # because a value may be in a vault whose password is missing.
                if advice and not _is_empty(extra[name]):
                    sentences.append(f"{name} does not limit this run: {advice}.")
            elif is_ignored(name, self.values) or _OF_AWX.fullmatch(name):
                continue
            elif name in _OF_ANSIBLE:
                sentences.append(self._refuse(name))
            elif name.startswith(tuple(role.prefix for role in self.roles.values())):
                suspects[name] = self._judge_foreign(name)
            elif not (name.startswith("ansible_") and _is_of_ansible(name)):
                suspects[name] = self._refuse(name)
        suspects = {name: sentence for name, sentence in suspects.items() if sentence}
        used = self.find_used(suspects.keys()) if suspects else ()
        return sentences + [sentence for name, sentence in suspects.items() if name not in used]

    def _judge_limit(self) -> Iterator[str]:
        """Yield why `--limit` does not limit this run, nothing if it does or is not there."""
        # A hypervisor is a host of the play.
        is_of_play = not self.run.is_one_cloud or self.role.name == "hypervisor_cleanup"
        if not is_of_play and not set(re.split("[,:]", self.run.limit)) <= {"", "all", "localhost"}:
            yield (
                f"--limit {show_value(self.run.limit)} does not limit this run, which is on "
                f"localhost: leave it out, and write {' or '.join(self._find_meant('hosts'))}."
            )

    def _judge_own(self, name: str) -> str:
        """Return what to do instead of giving a variable of the role, empty if that limits it."""
        short = name.removeprefix(self.role.prefix)
        ours = self._translate(short)
        if short in (*OF_DETECTION, *_OF_RESTORE) and name not in ours:
            return _advise(ours)
        if self.run.entry_point == "heal" and short == "kinds":
            return _advise([])
        if short == "stages" and self.run.entry_point != "main":
            return "leave it out, and give --check for check mode"
        if short == "clouds" and self.run.is_one_cloud:
            return _advise([f"{self.role.prefix}cloud"])
        if name == "hypervisor_cleanup_host" and self.run.play_hosts > 1:
            return _advise(["hypervisor_cleanup_hosts"])
        return ""

    def _judge_foreign(self, name: str) -> str:
        """Return what to write instead of a variable of another role, empty if it may stay."""
        other = next(role for role in self.roles.values() if name.startswith(role.prefix))
        short = name.removeprefix(other.prefix)
        # The kinds of that role are others.
        two = {other.name, self.role.name}
        is_other = short == "remediate_kinds" and "hypervisor_cleanup" in two
        ours = [] if is_other else self._find_meant(short)
        extra = self.extra
        # The answers to a survey are for all jobs of a workflow, too.
        if WORKFLOW in extra and (_ARTIFACTS.fullmatch(name) or _is_empty(extra[name])):
            return ""
        # The same value in the inventory is enough.
        set_here = [self.values[variable] for variable in ours if variable in self.values]
        if any(variable in extra for variable in ours) or any(
            _is_same(value, extra[name]) for value in set_here
        ):
            return ""
        return f"{name} does not limit this run: {_advise(ours)}."

    def _refuse(self, name: str) -> str:
        """Return that nothing uses a variable, and what to write instead."""
        shown, unified = make_printable(name, 60), _unify_name(name)
        meant = " or ".join(self._find_meant(unified))
        advice = f"write {meant}, or add {shown}" if meant else "leave it out, or add it"
        advice += f" to {IGNORED} if it is for another tool"
        if _DRY_RUN.fullmatch(unified):
            advice = (
                "for check mode, give --check to ansible-playbook, or choose the type Check for "
                "the job"
            )
        return f"Nothing in this run uses the variable {shown}: {advice}."

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
        return [f"{self.role.prefix}{short}" for short in shorts]

    def _find_similar(self, name: str) -> str:
        """Return the variable that a name stands for, without the prefix; empty if none does."""
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
        for at in range(len(words)):
            end = "_".join(words[at:]).removesuffix("s")
            meaning = _MEANINGS.get(end, end)
            # A role that works host by host calls them the target.
            for stem in (end, meaning, "target" if meaning == "host" else ""):
                if stem in shorts:
                    return shorts[stem]
        similar = difflib.get_close_matches(name, shorts, 1, _VERY_SIMILAR)
        return shorts[similar[0]] if similar else ""


def _advise(variables: list[str]) -> str:
    return f"write {' or '.join(variables)}" if variables else "leave it out"


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
    return [name.lower() for name in as_list(ours)] == [name.lower() for name in as_list(given)]


def as_list(value: t.Any) -> list[str]:
    """Return the elements of a list, or of a text with commas between them."""
    elements = value if isinstance(value, (list, tuple)) else str(value or "").split(",")
    return [str(element).strip() for element in elements]
