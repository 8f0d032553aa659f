# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!
"""The last lines of a run: what came of it, where it is written, and what to type next."""

from __future__ import annotations

import dataclasses as d
import json
import os
import re
import shlex
import typing as t

from ansible import constants, context

from ansible_collections.osops.placement.plugins.plugin_utils._terminal.commands import (
    COLLECTION,
    SAME_OPTIONS,
    format_fields,
    get_started_playbook,
    has_other_variables,
    is_awx_job,
    name_playbook,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._models.documents import (
        RemediationDocument,
        RestorationDocument,
    )

_CLEANUP, _DETECT, _RESTORE = "cleanup_orphans", "detect_orphans", "restore_allocations"
_PLAYBOOKS = (_CLEANUP, _DETECT, _RESTORE, "decommission_host")

# The report that a person reads first.
_REPORTS = ("html", "markdown")

# A plan is applied as a whole.
_OPTIONS_OF_PLANS = f"{SAME_OPTIONS}, but not its hosts, consumers, projects or kinds"

_PLAN = "orphan_cleanup_plan"

_DEFAULT_INVENTORIES = "DEFAULT_HOST_LIST"

# What Ansible reads as one value after `NAME=`; anything else is written as JSON.
_PLAIN_VALUE = re.compile(r"[^\s'\"{}\\=]+")


@d.dataclass(frozen=True)
class Ending:
    """What the last lines are made of.

    reports: the paths of the written reports, by format.
    findings: the path of findings.json; empty if it is not of this run.
    plan: the path of the plan; empty if there is none, or nothing to change in it.
    journal: the path of the journal; empty if nothing was changed.
    failed: whether the run fails.
    """

    reports: Mapping[str, str]
    findings: str = ""
    plan: str = ""
    journal: str = ""
    check_mode: bool = False
    detects_only: bool = False
    failed: bool = False


class NextDocument(t.TypedDict):
    """The playbook to run next.

    variables: its extra variables.
    check: whether it is run in check mode.
    """

    playbook: str
    variables: dict[str, t.Any]
    check: bool


class UndoDocument(t.TypedDict):
    """The module that undoes a change on one host.

    others: how many more changes the same module undoes with other arguments.
    """

    host: str
    module: str
    arguments: dict[str, t.Any]
    become: bool
    others: int


def format_ending(ending: Ending) -> list[str]:
    """Return the paths of a run and the command to type next, each on a line of its own."""
    return format_fields(_list_fields(ending))


def format_undo(remediation: RemediationDocument | RestorationDocument, journal: str) -> list[str]:
    """Return the command that restores what a remediation changed; nothing for a restoration."""
    if not journal or any("write" in outcome for outcome in remediation["outcomes"]):
        return []
    return format_fields([("Undo", _suggest_undo(Ending({}, journal=journal)))])


def format_journals(journals: Iterable[str]) -> list[str]:
    """Return the journals of a run, each with the command that restores what it changed."""
    lines: list[str] = []
    for journal in journals:
        undo = _suggest_undo(Ending({}, journal=journal))
        lines += format_fields([("Journal", journal), ("Undo", undo)])
    return lines


def format_commands(undo: UndoDocument | None, following: NextDocument | None) -> list[str]:
    """Return the command that undoes a change on a host, and the playbook to run next."""
    if is_awx_job():
        return []
    fields = []
    if undo:
        fields.append(("Undo", _build_module_command(undo)))
    if following:
        fields.append(("Next", _build_next(following)))
    return format_fields(fields)


def _list_fields(ending: Ending) -> Iterable[tuple[str, str]]:
    yield "Report", _choose_report(ending)
    yield "Journal", ending.journal
    yield "Undo", _suggest_undo(ending)
    yield "Next", _suggest_next(ending)


def _choose_report(ending: Ending) -> str:
    for name in _REPORTS:
        if name in ending.reports:
            return ending.reports[name]
    return ending.findings


def _suggest_undo(ending: Ending) -> str:
    if not ending.journal or is_awx_job():
        return ""
    return _build_command(_RESTORE, {"orphan_cleanup_journal": ending.journal})


def _suggest_next(ending: Ending) -> str:
    if is_awx_job():
        return ""
    if ending.failed:
        return "solve the cause that the message names, and run the same command again"
    if not ending.plan:
        return ""
    if ending.detects_only:
        return _build_command(_CLEANUP, check=True)
    if ending.check_mode:
        return _build_command(_CLEANUP, {_PLAN: ending.plan})
    return ""


def _build_command(
    playbook: str, variables: Mapping[str, t.Any] | None = None, check: bool = False
) -> str:
    """Return the command that runs a playbook of the collection as this one was run."""
    parts = ["ansible-playbook", _name_playbook(playbook)]
    return _join_command(parts, variables or {}, check)


def _build_next(following: NextDocument) -> str:
    """Return the command that runs the same playbook again; nothing for one of the user's own.

    A variable on the command line would replace what another playbook says for each of its hosts.
    """
    playbook, started = following["playbook"], get_started_playbook()
    if os.path.basename(started) not in (
        f"{playbook}.yml",
        f"{playbook}.yaml",
        f"{COLLECTION}.{playbook}",
    ):
        return ""
    parts = ["ansible-playbook", *_list_targets(), started]
    return _join_command(parts, following["variables"], following["check"])


def _join_command(parts: list[str], variables: Mapping[str, t.Any], check: bool) -> str:
    for name, value in variables.items():
        parts += ["-e", _format_variable(name, value)]
    if check:
        parts.append("--check")
    command = shlex.join(parts)
    # They can contain passwords, so they are not repeated.
    if has_other_variables(variables):
        options = _OPTIONS_OF_PLANS if _PLAN in variables else SAME_OPTIONS
        return f"{command}  # {options}"
    return command


def _build_module_command(undo: UndoDocument) -> str:
    """Return the command that runs one module on one host."""
    parts = ["ansible", *_list_targets(with_limit=False), undo["host"]]
    if undo["become"]:
        parts.append("-b")
    parts += ["-m", f"{COLLECTION}.{undo['module']}", "-a", _format_arguments(undo["arguments"])]
    command = shlex.join(parts)
    if undo["others"]:
        return f"{command}  # and {undo['others']} more, each with its own host and uuid"
    return command


def _format_variable(name: str, value: t.Any) -> str:
    if _is_plain(value):
        return f"{name}={value}"
    return json.dumps({name: value})


def _format_arguments(arguments: Mapping[str, t.Any]) -> str:
    if all(_is_plain(value) for value in arguments.values()):
        return " ".join(f"{name}={value}" for name, value in arguments.items())
    return json.dumps(arguments)


def _is_plain(value: t.Any) -> bool:
    return isinstance(value, str) and bool(_PLAIN_VALUE.fullmatch(value))


def _list_targets(with_limit: bool = True) -> list[str]:
    """Return the inventories and the limit of this run, as options of a command."""
    parts: list[str] = []
    for source in context.CLIARGS.get("inventory") or ():
        # Ansible puts its default there if the user names none.
        if source not in getattr(constants, _DEFAULT_INVENTORIES):
            parts += ["-i", str(source)]
    limit = context.CLIARGS.get("subset")
    if limit and with_limit:
        parts += ["--limit", str(limit)]
    return parts


def _name_playbook(playbook: str) -> str:
    """Return the name of a playbook, as a path if the user gave this one as a path."""
    started = get_started_playbook()
    is_own = not any(name in started for name in _PLAYBOOKS)
    # A playbook of the user's own applies a plan as well.
    if is_own and playbook == _CLEANUP and started.endswith((".yml", ".yaml")):
        return started
    return name_playbook(playbook, _PLAYBOOKS)
