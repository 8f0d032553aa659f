# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The last lines of a run: what came of it, where it is written, and what to type next."""

from __future__ import annotations

import dataclasses as d
import json
import typing as t
from collections.abc import Iterable, Mapping

from ...module_utils._core.models.codec import Json
from .._report.proposed_commands import (
    OF_PLANS,
    Context,
    build_cleanup,
    build_command,
    build_restore,
    format_fields,
    is_plain,
    join_command,
    list_options,
)
from .._variables.play_hosts import get_started_name


@d.dataclass(frozen=True)
class Ending:
    """What the last lines are made of.

    reports: the paths of the written reports, by format.
    findings: the path of findings.json; empty if it is not of this run.
    plan: the path of the plan; empty if there is none, or nothing to change in it.
    journal: the path of the journal; empty if nothing was changed.
    failed: whether the run fails.
    run: what its commands need to know of it.
    """

    reports: Mapping[str, str]
    findings: str = ""
    plan: str = ""
    journal: str = ""
    check_mode: bool = False
    detects_only: bool = False
    failed: bool = False
    run: Context = d.field(default_factory=Context)


def format_ending(ending: Ending) -> list[str]:
    """Return the paths of a run and the command to type next, each on a line of its own."""
    reports = ending.reports
    fields = [
        # The one that a person reads first.
        ("Report", reports.get("html") or reports.get("markdown") or ending.findings),
        ("Journal", ending.journal),
        ("Undo", build_restore(ending.journal, ending.run)),
        ("Next", _suggest_next(ending)),
    ]
    return format_fields(fields)


def format_undo(remediation: Json, journal: str, run: Context) -> list[str]:
    """Return the command that restores what a remediation changed; nothing for a restoration."""
    if any("write" in outcome for outcome in remediation["outcomes"]):
        return []
    return format_fields([("Undo", build_restore(journal, run))])


def format_journals(journals: Iterable[str], run: Context) -> list[str]:
    """Return the journals of a run, each with the command that restores what it changed."""
    lines: list[str] = []
    for journal in journals:
        lines += format_fields([("Journal", journal), ("Undo", build_restore(journal, run))])
    return lines


def format_commands(
    undo: Mapping[str, t.Any] | None, following: Mapping[str, t.Any] | None, run: Context
) -> list[str]:
    """Return the command that undoes a change on a host, and the playbook to run next.

    That is the same playbook again; there is none after one of the user's own.

    undo, following: the options undo and next of the module orphan_report.
    """
    fields = []
    if undo:
        fields.append(("Undo", _build_module_command(undo)))
    # A variable on the command line would replace what another playbook says for each host.
    if following and get_started_name() == following["playbook"]:
        named, check = following["variables"], following["check"]
        fields.append(("Next", build_command(following["playbook"], named, run, check=check)))
    return format_fields(fields)


def _suggest_next(ending: Ending) -> str:
    if ending.failed:
        return "solve the cause that the message names, and run the same command again"
    if not ending.plan:
        return ""
    if ending.detects_only:
        return build_cleanup({}, ending.run)
    if ending.check_mode:
        plan = {"orphan_cleanup_plan": ending.plan}
        return build_command("", plan, ending.run, without=OF_PLANS)
    return ""


def _build_module_command(undo: Mapping[str, t.Any]) -> str:
    """Return the command that runs one module on one host."""
    options = list_options(["subset", "become", "tags", "skip_tags"])
    parts = ["ansible", *options, undo["host"]]
    if undo["become"]:
        parts.append("-b")
    module = f"osops.placement.{undo['module']}"
    command = join_command([*parts, "-m", module, "-a", _format_arguments(undo["arguments"])])
    if undo["others"]:
        return f"{command}  # and {undo['others']} more, each with its own host and uuid"
    return command


def _format_arguments(arguments: Mapping[str, t.Any]) -> str:
    if all(is_plain(value) for value in arguments.values()):
        return " ".join(f"{name}={value}" for name, value in arguments.items())
    return json.dumps(arguments)
