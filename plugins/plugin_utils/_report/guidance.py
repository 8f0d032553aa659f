# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the kinds in a report are, and what its reader may do next."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ...module_utils._common.text import format_count
from ...module_utils._core.models.kind import OPT_IN, REMEDIATE, REPORT, Kind
from ...module_utils._core.models.kinds import KINDS
from .commands import keep_safe
from .order import sort_kinds
from .proposed_commands import Context, build_cleanup, build_restore
from .report import Report
from .units import format_number

_KINDS: dict[str, Kind] = {kind.name: kind for kind in KINDS}
_POLICIES = {
    REMEDIATE: "Changed by default.",
    OPT_IN: "Changed only if you choose this kind.",
    REPORT: "Never changed, only reported.",
}
_KIND_PAGE = "https://github.com/osops/ansible-placement/blob/main/docs/kinds.md"


def summarize_kinds(kinds: Mapping[str, int], run: Context) -> list[dict[str, t.Any]]:
    """Return what each kind is, with the number of its findings, in the order of the terminal."""
    # Bars compare the kinds with each other: the most frequent one has the longest.
    most = max(kinds.values(), default=1)
    lines = []
    for name, count in sort_kinds(kinds):
        figures = {"name": name, "count": format_number(count), "fraction": count / most}
        lines.append({**figures, **_describe_kind(_KINDS.get(name), run)})
    return lines


def _describe_kind(kind: Kind | None, run: Context) -> dict[str, t.Any]:
    """Return what a kind is, and the command that shows its changes if it may be changed."""
    # A file of another version may have a kind of which this one knows nothing.
    if kind is None:
        return {"meaning": "", "policy": "", "url": "", "command": None}
    command = None
    if kind.by_default != REPORT:
        variables = {"orphan_cleanup_remediate_kinds": [kind.name]}
        text = build_cleanup(variables, run)
        command = {"label": "Show the changes of this kind only", "text": text}
    return {
        "meaning": f"{kind.meaning[0].upper()}{kind.meaning[1:]}.",
        "policy": _POLICIES[kind.by_default],
        "url": f"{_KIND_PAGE}#{kind.name}",
        "command": command,
    }


def list_commands(report: Report) -> list[dict[str, str]]:
    """Return what a reader may do next; nothing is proposed that would be refused."""
    commands = []
    written = report.remediation is not None and not report.remediation["check_mode"]
    unsound = report.findings["summary"]["coverage"]["failed_checks"]
    if report.plan_path and report.plan and not written and not unsound:
        changes = format_count(len(report.plan["changes"]), "change", "changes")
        if report.plan["changes"]:
            variables = {"orphan_cleanup_plan": keep_safe(report.plan_path)}
            text = build_cleanup(variables, report.run)
            commands.append({"label": f"Make exactly the {changes} of this plan", "text": text})
    if report.journal:
        text = build_restore(keep_safe(report.journal), report.run)
        commands.append({"label": "Restore what this run changed", "text": text})
    again = build_cleanup({}, report.run)
    commands.append({"label": "Look again, without changing anything", "text": again})
    return commands
