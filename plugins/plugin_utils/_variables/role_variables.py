# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of the roles, and what is wrong with those that a user has set.

The argument specifications of the roles are the only source of names, types, choices and defaults.
"""

from __future__ import annotations

import functools
import typing as t
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import yaml

from .variable_bounds import Run
from .variable_limits import (
    IGNORED,
    Limits,
    explain_broken_text,
    find_narrowed_plan,
    find_unsearched_kinds,
    is_ignored,
)
from .variable_names import ROLES, find_unknown_variables
from .variable_values import find_misread_numbers, find_wrong_values

if t.TYPE_CHECKING:  # pragma: no cover
    from .variable_values import Option

# Names with the prefix of a role that are no variables of the role. The documentation of the module
# validate_variables lists them.
OTHER_VARIABLES: Mapping[str, frozenset[str]] = {
    "orphan_cleanup": frozenset(
        {
            # The hosts of the playbooks cleanup_clouds and detect_clouds.
            "orphan_cleanup_clouds",
            # An artifact of earlier jobs. The other artifacts are variables of the role.
            "orphan_cleanup_run",
            # Our own playbooks set it.
            "_orphan_cleanup_one_of_many",
        }
    ),
    # An artifact of earlier jobs.
    "host_decommission": frozenset({"host_decommission_drained"}),
    # The hosts of the playbook cleanup_hypervisor.
    "hypervisor_cleanup": frozenset({"hypervisor_cleanup_hosts"}),
}

# With its links: in a clone, only the link that Ansible uses has the roles beside the plugins.
_COLLECTION = Path(__file__).parents[3]

_MAX_FAULTS = 5

_NOTHING_CHANGED = "Nothing was changed."


@functools.cache
def read_options(role: str) -> Mapping[str, Option]:
    """Return the options of all entry points of a role, by the names of their variables."""
    path = _COLLECTION / "roles" / role / "meta" / "argument_specs.yml"
    # The parser in C takes a tenth of the time, and is not there on every machine.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    specs = yaml.load(path.read_text(encoding="utf-8"), loader)["argument_specs"]
    options: dict[str, Option] = {}
    for spec in specs.values():
        options.update(spec.get("options", {}))
    return options


@functools.cache
def read_names(role: str) -> frozenset[str]:
    """Return the names of a role's variables, and the others that may have its prefix."""
    return OTHER_VARIABLES[role].union(read_options(role))


def list_options(role: str, defined: Collection[t.Any]) -> list[str]:
    """Return the names of the role's variables among those that are defined."""
    return [name for name in (*read_options(role), IGNORED) if name in defined]


def find_faults(
    role: str,
    defined: Mapping[t.Any, t.Any],
    extra: Mapping[t.Any, t.Any],
    values: Mapping[str, t.Any],
    run: Run,
    find_used: Callable[[Collection[str]], Collection[str]],
    read_texts: Callable[[], list[str]],
) -> list[str]:
    """Return a sentence for everything that is wrong with the variables of a run.

    defined: all variables, with templates.
    extra: those that were given on the command line or by AWX. Before a play over several hosts,
      only they may be wrong.
    values: the variables of the role that are defined, without templates.
    find_used: returns those of some names that the play or the inventory use.
    read_texts: returns the texts in which variables are set.
    """
    options = read_options(role)
    judged = {name: value for name, value in values.items() if name in extra or not run.is_play}
    if run.is_play:
        options = {name: option for name, option in options.items() if name in judged}
    broken = explain_broken_text(extra, values)
    if broken:
        # What Ansible takes for variables are parts of that text, such as a password.
        return [broken]
    names = extra if run.is_play else defined
    suspects = [name for name in names if not is_ignored(name, values)]
    unknown = find_unknown_variables(suspects, extra, ROLES, read_names)
    known = {
        name: value
        for name, value in extra.items()
        if isinstance(name, str) and name not in unknown
    }
    limits = Limits(role, read_names(role), values, run, find_used)
    return [
        *unknown.values(),
        *find_wrong_values(options, judged, role, run),
        *find_misread_numbers(options, judged, read_texts),
        *find_narrowed_plan(judged, extra, run),
        *find_unsearched_kinds(judged, extra, run),
        *limits.find_ineffective(known),
    ]


def format_faults(faults: Sequence[str]) -> str:
    """Return the message with which a run fails."""
    sentences = list(faults[:_MAX_FAULTS])
    more = len(faults) - len(sentences)
    if more:
        sentences.append(f"And {more} more.")
    return " ".join([*sentences, _NOTHING_CHANGED])
