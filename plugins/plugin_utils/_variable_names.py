# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Finds the variables that look like a variable of a role and are none.

Ansible ignores a variable that nothing reads. With `orphan_cleanup_host` instead of
`orphan_cleanup_hosts`, a cleanup would examine and change the whole cloud.
"""

from __future__ import annotations

import dataclasses as d
import difflib
import re
import typing as t

if t.TYPE_CHECKING:  # pragma: no cover
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
_REMOVED = ("host_decommission_stuck_min_age",)

_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@d.dataclass(frozen=True)
class Prefix:
    """What a name begins with, if that is the prefix of a role or was meant to be.

    rest: the name without the prefix.
    is_exact: whether it is the prefix itself.
    is_separated: whether something separates the prefix from the rest.
    """

    rest: str
    is_exact: bool
    is_separated: bool


def split_prefix(name: str, role: str) -> Prefix | None:
    """Return the prefix of the role that a name begins with, None if it has none.

    One character that is missing, wrong or too much, two swapped characters, capitals and other
    separators are mistakes in the prefix.
    """
    prefix = f"{role}_"
    if name.startswith(prefix):
        return Prefix(name[len(prefix) :], is_exact=True, is_separated=True)
    # Names for the inner use of a role begin with this, and differ in one character.
    if name.startswith("_"):
        return None
    rest, is_separated = _remove_misspelt(unify_name(name), prefix)
    return Prefix(rest, is_exact=False, is_separated=is_separated) if rest else None


def unify_name(name: str) -> str:
    """Return a name in the form of a variable: orphanCleanup-hosts as orphan_cleanup_hosts."""
    return _CAPITAL.sub("_", name).replace("-", "_").lower()


def _remove_misspelt(name: str, prefix: str) -> tuple[str, bool]:
    """Return what follows the prefix in a name, and whether something separates the two.

    The first part is empty if the name does not begin with the prefix, give or take one edit.
    """
    at = _find_difference(name, prefix)
    length = len(prefix)
    if at == length:
        return name[length:], True
    # After one edit at the first difference, the rest of the prefix has to follow.
    if name[at + 1 : length + 1] == prefix[at:]:
        return name[length + 1 :], True
    if name[at : at + 2] == prefix[at : at + 2][::-1] and name[at + 2 : length] == prefix[at + 2 :]:
        return name[length:], at + 2 < length
    if at == length - 1:
        # The separator is missing or is another one.
        is_missing = name[at : at + 1].isalnum()
        return name[at if is_missing else length :], not is_missing
    if name[at + 1 : length] == prefix[at + 1 :]:
        return name[length:], True
    if name[at : length - 1] == prefix[at + 1 :]:
        return name[length - 1 :], True
    return "", False


def _find_difference(name: str, prefix: str) -> int:
    """Return how many characters the two have in common at their beginning."""
    at = 0
    for ours, theirs in zip(name, prefix, strict=False):
        if ours != theirs:
            break
        at += 1
    return at


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
    if not prefix.is_separated and not _find_similar(prefix.rest, role, names, _VERY_SIMILAR):
        return None
    similar = _find_similar(prefix.rest, role, names, _SIMILAR)
    sentence = f"{name} is not a variable of the role {role}{_suggest(similar)}"
    # Nobody gives a variable on the command line that only their own playbook uses.
    return sentence if is_extra else f"{sentence} If it is a variable of your own, rename it."


def _judge_former_name(name: str, role: str, names: Collection[str]) -> str:
    """Return what became of a variable of version 1.0.0, empty for any other name."""
    if name in _REMOVED:
        return f"{name} was removed in version 2.0.0, because it had no effect: leave it out."
    today = f"{role}_{_RENAMED.get(name.removeprefix(f'{role}_'))}"
    if today not in names:
        return ""
    return f"{name} was renamed in version 2.0.0: write {today}."


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
