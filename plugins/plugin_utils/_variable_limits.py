# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Finds variables that were meant to limit a run and do not limit it.

Ansible ignores `-e hosts=compute-1`, and `orphan_cleanup_hosts` does not limit a restore. Such a
run would examine, change or restore everything.
"""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ansible_collections.osops.placement.plugins.plugin_utils._variable_bounds import SCOPE_LISTS

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.plugin_utils._variable_bounds import Run
    from ansible_collections.osops.placement.plugins.plugin_utils._variable_values import Option

# The variables that say what a detection is about.
_SCOPE = (
    "hosts",
    "consumers",
    "projects",
    "aggregates",
    "availability_zones",
    "cells",
    "kinds",
    "shard",
)

# The variables that say what a change is about, and mean the same in all roles that have them.
_COMMON = ("cloud", "region_name", "exclude_consumers", "exclude_providers", "remediate_kinds")

# The variables that limit a run, in any role.
_LIMITS = (
    *SCOPE_LISTS,
    *_COMMON,
    "clouds",
    "ignore_allocators",
    "max_changes",
    "max_failures",
    "max_hosts",
    "max_share",
    "min_age",
    "min_sightings",
    "plan",
    "providers",
    "purge_age",
    "select",
    "shard",
    "stages",
    "stale_min_age",
    "stuck_min_age",
    "target",
    "unconfirmed_min_age",
    "unknown_min_age",
)

# The words in the prefixes of our variables. A user who leaves one out means our variable.
_WORDS = ("orphan", "cleanup", "host", "decommission", "hypervisor", "osops", "placement")

_ROLES = ("orphan_cleanup", "host_decommission", "hypervisor_cleanup")

# What limits a restore instead of the variables of a detection, and the other way round.
_ONLY_RESTORES = ("restore_consumers", "restore_providers")
_OF_RESTORES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_SCOPE, _ONLY_RESTORES),
    "consumers": ("restore_consumers",),
    "hosts": ("restore_providers",),
    "providers": ("restore_providers",),
}
_OF_DETECTIONS: Mapping[str, tuple[str, ...]] = {
    "clouds": ("clouds", "cloud"),
    "providers": ("hosts",),
    "restore_consumers": ("consumers",),
    "restore_providers": ("hosts",),
}

_DRY_RUNS = ("check", "check_mode", "dry_run", "dryrun", "noop")

# The entry points that apply a plan.
_APPLIES_PLANS = ("main", "remediate")
_PLAN = "orphan_cleanup_plan"


def find_narrowed_plan(values: Mapping[str, t.Any], run: Run) -> list[str]:
    """Return a sentence for each variable that was meant to leave out a part of a reviewed plan."""
    if _PLAN not in values or run.entry_point not in _APPLIES_PLANS:
        return []
    scope = [f"orphan_cleanup_{short}" for short in _SCOPE]
    return [
        f"{name} and {_PLAN} are both set, and a reviewed plan is applied as a whole: "
        f"leave out {name}, or detect and plan again with it."
        for name in scope
        if values.get(name)
    ]


def find_ineffective_limits(
    role: str,
    extra: Mapping[t.Any, t.Any],
    options: Mapping[str, Option],
    values: Mapping[str, t.Any],
    run: Run,
) -> list[str]:
    """Return a sentence for each extra variable that was meant to limit the run and does not.

    Only extra variables are judged: those of an inventory may be for other plays as well.

    extra: the variables that were given on the command line or by AWX.
    options: the options of the role by the names of their variables.
    values: the variables of the role that are defined, without templates, and None for each other
      name of the role that is not defined.
    """
    sentences = []
    for name, value in extra.items():
        if _is_empty(value):
            continue
        if name in options or name in values:
            sentence = _judge_own(name.removeprefix(f"{role}_"), name, role, run)
        elif name in _DRY_RUNS:
            sentence = _judge_dry_run(name, value, run)
        else:
            translated = _translate(str(name), role, run)
            meant = [ours for ours in translated if ours in options or ours in values]
            is_set = any(_is_set(ours, value, options, values) for ours in meant)
            sentence = _judge_other(name, meant) if meant and not is_set else ""
        if sentence:
            sentences.append(sentence)
    return sentences


def _is_empty(value: t.Any) -> bool:
    # The answer to a question of a survey that was left empty.
    return value is None or value in ("", [], {})


def _judge_own(short: str, name: str, role: str, run: Run) -> str:
    """Return why a variable of the role does not limit this run, empty if it does."""
    is_restore = run.entry_point == "restore"
    if is_restore and short in _SCOPE:
        return f"{name} does not limit a restore: write {_name(_OF_RESTORES[short], role)}."
    if not is_restore and short in _ONLY_RESTORES:
        return f"{name} limits only a restore: write {_name(_OF_DETECTIONS[short], role)}."
    if run.entry_point == "heal" and short == "kinds":
        return f"{name} does not limit heal, which is about missing_allocation only: leave it out."
    if short == "clouds" and run.is_one_cloud:
        return (
            f"{name} chooses the hosts of the playbooks cleanup_clouds and detect_clouds, and does "
            "not limit this one: write orphan_cleanup_cloud."
        )
    return ""


def _judge_dry_run(name: str, value: t.Any, run: Run) -> str:
    if run.is_check or str(value).lower() in ("false", "no", "off", "0"):
        return ""
    return (
        f"{name} has no effect: for check mode, give --check to ansible-playbook, or choose the "
        "type Check for the job."
    )


def _is_set(
    name: str, value: t.Any, options: Mapping[str, Option], values: Mapping[str, t.Any]
) -> bool:
    """Return whether a variable of the role has a value that somebody chose.

    In a playbook of a user, this value may come from the extra variable, and be the default.
    """
    ours = values.get(name)
    if str(ours) == str(value):
        return True
    return ours not in (None, "", options.get(name, {}).get("default"))


def _judge_other(name: str, meant: list[str]) -> str:
    # Users may have such a variable for their own playbook, and for something else.
    advice = "If it is a variable of your own, rename it."
    return f"{name} has no effect: write {' or '.join(meant)}. {advice}"


def _translate(name: str, role: str, run: Run) -> list[str]:
    """Return the variables of the role that a name may have been meant for."""
    short = _find_limit(name)
    if not short or (_is_of_another_role(name, role) and short not in _COMMON):
        return []
    others = _OF_RESTORES if run.entry_point == "restore" else _OF_DETECTIONS
    return [f"{role}_{word}" for word in others.get(short, (short,))]


def _find_limit(name: str) -> str:
    """Return what a name is about without the words of our prefixes, empty if nothing is limited.

    One host is `host`, and `hosts` is the variable.
    """
    words = name.replace("-", "_").lower().split("_")
    while words:
        rest = "_".join(words)
        if rest in _LIMITS:
            return rest
        if f"{rest}s" in _LIMITS:
            return f"{rest}s"
        if words.pop(0) not in _WORDS:
            break
    return ""


def _is_of_another_role(name: str, role: str) -> bool:
    return any(name.startswith(f"{other}_") for other in _ROLES if other != role)


def _name(shorts: tuple[str, ...], role: str) -> str:
    return " or ".join(f"{role}_{short}" for short in shorts)
