# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds variables that look like one of a role and are none.

Ansible ignores a variable that nothing reads. With `orphan_cleanup_host` instead of
`orphan_cleanup_hosts`, a run would examine, change or restore everything. A misspelt name is found
wherever it is set.
"""

from __future__ import annotations

import difflib
import re
import typing as t
from collections.abc import Collection, Iterable, Mapping

from ...module_utils._common.options import Role

Roles = Mapping[str, Role]

# How similar the rest of a name must be to that of a variable.
_SIMILAR = 0.6
# The same for a name that probably is another word. A variable such as `host_decommissioned_at`
# belongs to the user.
VERY_SIMILAR = 0.8

# The names of variables in version 1.0.0, without the prefix of the role, and what they are now.
# The most similar name of today means something else. `docs/porting-to-2.0.md` lists them all.
_RENAMED = {"forgotten_min_age": "unknown_min_age", "parked_min_age": "unconfirmed_min_age"}

# Variables that were removed: in which version, and what to do. Those of the later versions are in
# `docs/porting-to-3.0.md`.
REMOVED = {
    "host_decommission_stuck_min_age": "2.0.0, because it had no effect: leave it out.",
    "host_decommission_drained_reason": "3.0.0: write host_decommission_disabled_reason.",
    "host_decommission_moves_journal": "3.0.0: write host_decommission_journal.",
    "host_decommission_rewrite_allocations": (
        "3.0.0: add allocations to host_decommission_restore, beside what else is restored."
    ),
    "hypervisor_cleanup_delay": (
        "3.0.0: leave it out; the log is read every 15 seconds, and hypervisor_cleanup_retries "
        "says how often."
    ),
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
    found = split_prefix(name, role.name)
    if found is None:
        return ""
    if name in REMOVED:
        return f"{name} was removed in version {REMOVED[name]}"
    rest, cutoff = found
    today = f"{role.prefix}{_RENAMED.get(rest)}"
    if today in role.names:
        return f"{name} was renamed in version 2.0.0: write {today}."
    similar = _find_similar(rest, role, cutoff)
    if cutoff == VERY_SIMILAR and similar == ".":
        return ""
    sentence = f"{name} is not a variable of the role {role.name}{similar}"
    # Nobody gives a variable on the command line that only their own playbook uses.
    return sentence if is_extra else f"{sentence} If it is a variable of your own, rename it."


def _find_similar(rest: str, role: Role, cutoff: float) -> str:
    """Return the end of a sentence, with the variable that was probably meant if there is one.

    The prefix is left out, because it makes all names similar.
    """
    by_rest = {name.removeprefix(role.prefix): name for name in sorted(role.names)}
    found = difflib.get_close_matches(unify_name(rest), by_rest, 1, cutoff)
    return f"; did you mean {by_rest[found[0]]}?" if found else "."


def split_prefix(name: str, role: str) -> tuple[str, float] | None:
    """Return what follows the prefix of a role in a name, and how similar it must be to an option.

    One character that is missing, wrong or too much, two swapped characters, capitals and other
    separators are mistakes in the prefix. None if a name does not begin with it.
    """
    # Names for the inner use of a role begin with this, and differ in one character.
    if name.startswith("_"):
        return None
    unified, prefix = unify_name(name), f"{role}_"
    at = max(at for at in range(len(prefix) + 1) if unified.startswith(prefix[:at]))
    given, wanted = unified[at:], prefix[at:]
    if not wanted:
        return given, _SIMILAR
    swapped = wanted[1:2] + wanted[:1] + wanted[2:]
    for skipped, form in ((0, swapped), (1, wanted), (1, wanted[1:]), (0, wanted[1:])):
        if form and given[skipped:].startswith(form):
            return given[skipped + len(form) :], _SIMILAR
    # Without a separator it is probably another word.
    return (given, VERY_SIMILAR) if given and wanted == "_" else None


def unify_name(name: str) -> str:
    """Return a name in the form of a variable: orphanCleanup-hosts as orphan_cleanup_hosts."""
    return re.sub(r"\W", "_", _CAPITAL.sub("_", name)).lower()
