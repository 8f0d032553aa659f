# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds everything that is wrong with the variables of a run of a role."""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Mapping, Sequence

from ...module_utils._common.options import Option
from .checks import Run, find_misread_numbers, find_wrong_values
from .command_line import explain_broken_text
from .unknown import (
    OF_DETECTION,
    WORKFLOW,
    Variables,
    as_list,
    find_unknown_variables,
    is_ignored,
)

_MAX_FAULTS = 5

_NOTHING_CHANGED = "Nothing was changed."

# The entry points that apply a plan.
_APPLIES_PLANS = ("main", "remediate")
_PLAN = "orphan_cleanup_plan"


def find_faults(variables: Variables) -> list[str]:
    """Return a sentence for everything that is wrong with the variables of a run."""
    extra, values, run = variables.extra, variables.values, variables.run
    broken = explain_broken_text(extra, values, variables.roles)
    if broken:
        # What Ansible takes for variables are parts of that text, such as a password.
        return [broken]
    options: Mapping[str, Option] = variables.role.options
    judged = {name: value for name, value in values.items() if name in extra or not run.is_play}
    if run.is_play:
        options = {name: option for name, option in options.items() if name in judged}
    names = extra if run.is_play else variables.defined
    suspects = [name for name in names if not is_ignored(name, values)]
    unknown = find_unknown_variables(suspects, extra, variables.roles)
    known = [name for name in extra if isinstance(name, str) and name not in unknown]
    return [
        *unknown.values(),
        *find_wrong_values(options, judged, run),
        *find_misread_numbers(options, judged, variables.read_texts),
        *_find_narrowed_plan(judged, extra, run),
        *_find_unsearched_kinds(judged, extra, run),
        *variables.find_ineffective(known),
    ]


def _find_narrowed_plan(
    values: Mapping[str, t.Any], extra: Collection[t.Any], run: Run
) -> list[str]:
    """Return a sentence for each variable that was meant to leave out a part of a reviewed plan."""
    if _PLAN not in values or run.entry_point not in _APPLIES_PLANS:
        return []
    scope = [f"orphan_cleanup_{short}" for short in OF_DETECTION]
    # In an inventory or a workflow it is also that of the run that made the plan.
    if WORKFLOW in extra or scope[-1] not in extra:
        scope.pop()
    return [
        f"{name} and {_PLAN} are both set, and a reviewed plan is applied as a whole: "
        f"leave out {name}, or detect and plan again with it."
        for name in scope
        if values.get(name)
    ]


def _find_unsearched_kinds(
    values: Mapping[str, t.Any], extra: Collection[t.Any], run: Run
) -> list[str]:
    """Return a sentence if none of the kinds that the user wants to change is searched."""
    kinds, changed = "orphan_cleanup_kinds", "orphan_cleanup_remediate_kinds"
    searched, wanted = as_list(values.get(kinds)), as_list(values.get(changed))
    if run.entry_point != "main" or changed not in extra or not any(searched) or not any(wanted):
        return []
    if set(searched).intersection(wanted):
        return []
    return [
        f"{changed} has no kind of {kinds}, so nothing could be found that may be changed: add "
        f"{wanted[0]} to {kinds}, or leave that out."
    ]


def format_faults(faults: Sequence[str]) -> str:
    """Return the message with which a run fails."""
    sentences = list(faults[:_MAX_FAULTS])
    more = len(faults) - len(sentences)
    if more:
        sentences.append(f"And {more} more.")
    return " ".join([*sentences, _NOTHING_CHANGED])
