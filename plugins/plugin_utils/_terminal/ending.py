# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!
"""The last lines of a run: what came of it, where it is written, and what to type next."""

from __future__ import annotations

import dataclasses as d
import os
import shlex
import typing as t

from ansible import context

from ansible_collections.osops.placement.plugins.module_utils._common.text import make_printable

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._models.documents import (
        RemediationDocument,
        RestorationDocument,
    )

_COLLECTION = "osops.placement"
_CLEANUP, _DETECT, _RESTORE = "cleanup_orphans", "detect_orphans", "restore_allocations"

# AWX sets it in its jobs, where nobody types a command.
_AWX = "AWX_PRIVATE_DATA_DIR"

# The report that a person reads first.
_REPORTS = ("html", "markdown")

_SAME_OPTIONS = "and the other options of this run"


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


def format_ending(ending: Ending) -> list[str]:
    """Return the paths of a run and the command to type next, each on a line of its own."""
    return _format_fields(_list_fields(ending))


def _format_fields(fields: Iterable[tuple[str, str]]) -> list[str]:
    lines: list[str] = []
    for label, text in fields:
        if text:
            # Neither a path nor a command is broken: they are there to be copied.
            lines.append(f"{label + ':':8} {make_printable(text)}")
    return lines


def format_undo(remediation: RemediationDocument | RestorationDocument, journal: str) -> list[str]:
    """Return the command that restores what a remediation changed; nothing for a restoration."""
    if not journal or any("write" in outcome for outcome in remediation["outcomes"]):
        return []
    return _format_fields([("Undo", _suggest_undo(Ending({}, journal=journal)))])


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
    if not ending.journal or _AWX in os.environ:
        return ""
    return _build_command(_RESTORE, "orphan_cleanup_journal", ending.journal)


def _suggest_next(ending: Ending) -> str:
    if _AWX in os.environ:
        return ""
    if ending.failed:
        return "read the message below, solve its cause, and run the same command again"
    if not ending.plan:
        return ""
    if ending.detects_only:
        return _build_command(_CLEANUP, flag="--check")
    if ending.check_mode:
        return _build_command(_CLEANUP, "orphan_cleanup_plan", ending.plan)
    return ""


def _build_command(playbook: str, variable: str = "", value: str = "", flag: str = "") -> str:
    """Return the command that runs a playbook of the collection as this one was run."""
    parts = ["ansible-playbook", _name_playbook(playbook)]
    if variable:
        parts += ["-e", f"{variable}={value}"]
    if flag:
        parts.append(flag)
    command = shlex.join(parts)
    # They can contain passwords, so they are not repeated.
    if context.CLIARGS.get("extra_vars"):
        return f"{command}  # {_SAME_OPTIONS}"
    return command


def _name_playbook(playbook: str) -> str:
    """Return the name of a playbook, as a path if the user gave this one as a path."""
    started = (context.CLIARGS.get("args") or ("",))[0]
    for name in (_CLEANUP, _DETECT, _RESTORE):
        if name in started:
            return str(started).replace(name, playbook)
    # A playbook of the user's own applies a plan as well.
    if playbook == _CLEANUP and str(started).endswith((".yml", ".yaml")):
        return str(started)
    return f"{_COLLECTION}.{playbook}"
