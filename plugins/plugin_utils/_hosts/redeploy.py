# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a host that was deployed again is complete, and whether its allocations must be moved."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Mapping

from ...module_utils._common.text import format_count
from ...module_utils._core.models.change import SKIPPED
from ...module_utils._core.models.finding import PROTECTED

# What format_results shows of one check.
Line = dict[str, str]

FORMER_PROVIDER = "former_provider"

_MOVING, _MISSING, _FAILED, _OK = "moving", "missing", "failed", "ok"

_MAX_OUTPUT = 500

_ADVICE = "Each is proven to be on the host: add allocations to host_decommission_restore."


@d.dataclass(frozen=True)
class RedeployOutcome:
    """The lines about one host.

    complete: whether nothing is missing, once the allocations are moved that are `rewriting`.
    rewriting: whether the allocations of the servers on the former provider are to be moved.
    former_roots: the former providers that are to be removed afterwards.
    """

    results: list[Line]
    complete: bool
    rewriting: bool
    former_roots: list[str]


def determine_redeploy_outcome(
    restored: Mapping[str, t.Any],
    found: Mapping[str, t.Any],
    discovered: Mapping[str, t.Any],
    rewrite: bool,
) -> RedeployOutcome:
    """Return the outcome for one host, from the results of three tasks.

    restored: the result of compute_host_restore.
    found: the result of orphan_detect; skipped where the host has no provider to look for.
    discovered: the result of nova-manage; skipped where it was not called.
    rewrite: whether the user wants allocations to be moved.
    """
    lines = [
        _build_line(check["name"], check["outcome"], check["detail"])
        for check in restored["checks"]
    ]
    # Without it, a host that lost everything looks complete.
    if not restored["recorded"]:
        reason = "No record says what the host had before: only what it has now was checked."
        lines.append(_build_line("record", SKIPPED, reason))
    lines += _describe_discovery(discovered)
    # The entries about servers with allocations on the former provider.
    judged = [*(found.get("findings") or ()), *(found.get("undecided") or ())]
    stranded = [entry for entry in judged if entry["kind"] == FORMER_PROVIDER]
    stranded += _list_protected(found, restored)
    unmovable = _explain_unmovable(stranded, found) if stranded else ""
    moving = stranded if rewrite and not unmovable else []
    if not found.get("skipped"):
        remark = unmovable or ("" if moving else _ADVICE)
        outcome, reason = _judge_allocations(found, stranded, remark)
        lines.append(_build_line("allocations", _MOVING if moving else outcome, reason))
    bad = [line for line in lines if line["outcome"] in (_MISSING, _FAILED)]
    roots = {root for entry in moving for root in entry["change"]["before"]["allocations"]}
    return RedeployOutcome(lines, not bad, bool(moving), sorted(roots))


def _build_line(subject: str, outcome: str, reason: str) -> Line:
    return {"subject": subject, "outcome": outcome, "reason": reason}


def _describe_discovery(discovered: Mapping[str, t.Any]) -> list[Line]:
    """Return a line about nova-manage if it was called and did not succeed.

    Whether the host is assigned to a cell now, its own check says.
    """
    if discovered.get("skipped") or discovered.get("rc") == 0:
        return []
    for part in ("stderr", "stdout", "msg"):
        text = " ".join(str(discovered.get(part) or "").split())
        if text:
            return [_build_line("nova-manage", _FAILED, text[:_MAX_OUTPUT])]
    return [_build_line("nova-manage", _FAILED, "It did not say why.")]


def _list_protected(
    found: Mapping[str, t.Any], restored: Mapping[str, t.Any]
) -> list[Mapping[str, t.Any]]:
    """Return the entries about protected consumers with allocations on a former provider.

    A protected consumer has the kind of its protection, such as a task of its server.
    """
    node = restored.get("node")
    former = {restored.get("namesake"), restored.get("former_node")} - {None, "", node}
    entries = []
    for entry in found.get("protected") or ():
        roots = {provider["root"] for provider in entry["providers"]}
        if not former.isdisjoint(roots):
            entries.append(entry)
    return entries


def _explain_unmovable(stranded: list[Mapping[str, t.Any]], found: Mapping[str, t.Any]) -> str:
    """Return why the allocations must not be moved; empty if each of them is proven.

    One that is not proven keeps all of them, because then it is not certain what the tree is.
    """
    failed_checks = found["summary"]["coverage"]["failed_checks"]
    if failed_checks:
        return " ".join(failed_checks)
    for entry in stranded:
        if entry.get("change"):
            continue
        if entry.get("verdict") == PROTECTED:
            return f"{entry['reason']} Repeat redeploy_host when that is over."
        return str(entry["reason"])
    verdicts = found["summary"]["verdicts"]
    shown = sum(len(found.get(part) or ()) for part in ("findings", "undecided", "protected"))
    if shown < sum(verdicts.values()):
        return (
            "There are more findings than Ansible passes from task to task: use "
            "osops.placement.cleanup_orphans with the kind former_provider."
        )
    return ""


def _judge_allocations(
    found: Mapping[str, t.Any], stranded: list[Mapping[str, t.Any]], remark: str
) -> tuple[str, str]:
    """Return the outcome for the allocations if none of them is moved, and what is said of them.

    remark: what follows the sentence about those on a former provider.
    """
    if "summary" not in found:
        return _FAILED, str(found.get("msg") or "No answer.")
    failed_checks = found["summary"]["coverage"]["failed_checks"]
    if failed_checks:
        return _FAILED, " ".join(failed_checks)
    if not stranded:
        return _OK, "none on a former provider of the host"
    count = format_count(len(stranded), "server has", "servers have")
    text = f"{count} an allocation on a former provider of the host. {remark}"
    return _MISSING, text.rstrip()
