# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the variables that look like a variable of a role and are none.

Ansible ignores a variable that nothing reads. With `orphan_cleanup_host` instead of
`orphan_cleanup_hosts`, a cleanup would examine and change the whole cloud.
"""

from __future__ import annotations

import difflib
import functools
import re
import typing as t
from collections.abc import Callable, Collection, Iterable

# How similar the rest of a name must be to that of a variable.
_SIMILAR = 0.6
# The same for a name whose prefix does not end as the prefix of a role does. A variable such as
# `host_decommissioned_at` belongs to the user.
_VERY_SIMILAR = 0.8

ROLES = ("orphan_cleanup", "host_decommission", "hypervisor_cleanup")

# The names of variables in version 1.0.0, without the prefix of the role, and what they are now.
# The most similar name of today means something else. `docs/porting-to-2.0.md` lists them all.
_RENAMED = {"forgotten_min_age": "unknown_min_age", "parked_min_age": "unconfirmed_min_age"}

# Variables that were removed: in which version, and what to do. Those of the later versions are in
# `docs/porting-to-3.0.md`.
REMOVED = {
    "host_decommission_stuck_min_age": "2.0.0, because it had no effect: leave it out.",
    "orphan_cleanup_known_for": (
        "3.0.0: write orphan_cleanup_min_sightings, the number of runs that must have seen a "
        "finding."
    ),
    "orphan_cleanup_require_durable_output": (
        "3.0.0: leave it out, and set orphan_cleanup_output_dir to a mounted folder; a run warns "
        "if that folder is lost after the job, and exports its journal."
    ),
}

_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


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
    match = _match_prefix(role).fullmatch(unify_name(name))
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


def unify_name(name: str) -> str:
    """Return a name in the form of a variable: orphanCleanup-hosts as orphan_cleanup_hosts."""
    return _CAPITAL.sub("_", name).replace("-", "_").lower()


def find_unknown_variables(
    defined: Iterable[t.Any],
    extra: Collection[t.Any],
    roles: Iterable[str],
    read_names: Callable[[str], Collection[str]],
) -> dict[str, str]:
    """Return a sentence for each variable that looks like one of a role and is none, by its name.

    defined: the names of all variables.
    extra: the names of those that were given on the command line or by AWX.
    read_names: returns the names of all variables of a role.
    """
    sentences = {}
    for name in sorted(map(str, defined)):
        for role in roles:
            sentence = _judge_name(name, role, name in extra, read_names)
            if sentence:
                sentences[name] = sentence
    return sentences


def _judge_name(
    name: str, role: str, is_extra: bool, read_names: Callable[[str], Collection[str]]
) -> str | None:
    """Return what is wrong with the name of a variable, None if nothing is."""
    if name.startswith(f"_{role}_"):
        # As an extra variable it would replace what the role itself computes.
        if not is_extra or name in read_names(role):
            return None
        similar = _find_similar(name.removeprefix(f"_{role}_"), role, read_names(role), _SIMILAR)
        return f"{name} is internal to the role {role} and cannot be set{_suggest(similar)}"
    if name == role:
        # A name for what a playbook registers, but on the command line it was meant for the role.
        advice = f"its variables begin with {role}_, such as {role}_output_dir."
        return f"{name} is not a variable of the role {role}: {advice}" if is_extra else None
    prefix = split_prefix(name, role)
    if prefix is None or name in read_names(role):
        return None
    names = read_names(role)
    former = _judge_former_name(name, role, names)
    if former:
        return former
    start, rest = prefix
    # Without a separator it is probably another word.
    similar = _find_similar(rest, role, names, _VERY_SIMILAR if start == role else _SIMILAR)
    if start == role and not similar:
        return None
    sentence = f"{name} is not a variable of the role {role}{_suggest(similar)}"
    # Nobody gives a variable on the command line that only their own playbook uses.
    return sentence if is_extra else f"{sentence} If it is a variable of your own, rename it."


def _judge_former_name(name: str, role: str, names: Collection[str]) -> str:
    """Return what became of a variable of an earlier version, empty for any other name."""
    if name in REMOVED:
        return f"{name} was removed in version {REMOVED[name]}"
    today = f"{role}_{_RENAMED.get(name.removeprefix(f'{role}_'))}"
    return f"{name} was renamed in version 2.0.0: write {today}." if today in names else ""


def _suggest(similar: str) -> str:
    """Return the end of a sentence, which names the variable that was probably meant."""
    return f"; did you mean {similar}?" if similar else "."


def _find_similar(rest: str, role: str, names: Collection[str], cutoff: float) -> str:
    """Return the variable whose name is most similar, empty if none is similar enough.

    The prefix is left out, because it makes all names similar.
    """
    by_rest = {name.removeprefix(f"{role}_"): name for name in sorted(names)}
    found = difflib.get_close_matches(rest.lower().replace("-", "_"), by_rest, 1, cutoff)
    return by_rest[found[0]] if found else ""
