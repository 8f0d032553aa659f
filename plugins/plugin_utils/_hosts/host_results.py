# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The last lines about each host: what was done, or would be done without --check.

Of a host that was deployed again, whether it is complete.
"""

from __future__ import annotations

import collections
import typing as t
from collections.abc import Collection, Iterator, Mapping, Sequence

from ...module_utils._common.text import format_count
from ...module_utils._core.models.change import FAILED, NOT_MADE, READY, SKIPPED, WITHOUT_CHECK
from ...module_utils._core.models.finding import PROTECTED

_BLOCKED, _GONE = "blocked", "gone"

# The stages that change something, each with the outcome of a run that ends with it.
_OUTCOMES = {"delete": "deleted", "clean": "cleaned", "drain": "drained", "disable": "disabled"}
_READING = ("check", "verify")
# The outcome of a stage that this file knows nothing about.
_DONE = "done"


Tasks = Mapping[str, Mapping[str, t.Any]]
"""What the tasks about a host have registered; one that was not run is missing.

now: the host as it was checked right before the changes. disabling: the result of disabling its
service. remediation: that of the removal of its leftovers. deletion: that of its deletion.
after: the host as it was read at the end.
"""


def describe_host_result(
    before: Mapping[str, t.Any], tasks: Tasks, stages: Collection[str], check_mode: bool
) -> dict[str, str]:
    """Return what the stages of a run did on a host, or would do without check mode.

    `outcome`, `subject` and `reason`; `journal`: the path of the journal with which its allocations
    can be restored, empty for none.

    before: the host as `compute_host_info` returned it at first.
    """
    name = before["name"]
    failures = [] if check_mode else list(_list_failures(tasks, stages))
    if failures:
        return _make_result(FAILED, name, " ".join(failures))
    # Network agents of a host that is gone otherwise are deleted as well.
    if not before["known"] and not before.get("agents"):
        return _make_result(_GONE, name, before["removal"]["message"])
    chosen = [stage for stage in _OUTCOMES if stage in stages]
    others = [stage for stage in stages if stage not in (*_OUTCOMES, *_READING)]
    # Nothing is verified in check mode.
    if not chosen and not others and (check_mode or "verify" not in stages):
        return _describe_check(before)
    done = [*others, *_list_done(before, tasks, stages, check_mode)]
    if check_mode:
        return _make_result(READY, name, WITHOUT_CHECK + _join(done))
    if "verify" in stages:
        # With what else is to be done, such as a service of Cinder that is left alone.
        verified = tasks["after"]["hosts"][0]["removal"]["message"]
        return _make_result(_GONE, name, f"{_join(done)} {verified}" if done else verified)
    journal = ""
    # A provider that was deleted cannot have its allocations again.
    if "delete" not in stages and "clean" in stages and _get(tasks, "now").get("left_over"):
        journal = _get(tasks, "remediation").get("journal") or ""
    outcome = _OUTCOMES[chosen[0]] if chosen else _DONE
    return _make_result(outcome, name, _join(done), journal)


def _make_result(outcome: str, subject: str, reason: str, journal: str = "") -> dict[str, str]:
    return {"outcome": outcome, "subject": subject, "reason": reason, "journal": journal}


def _get(tasks: Tasks, name: str) -> Mapping[str, t.Any]:
    return tasks.get(name) or {}


def _describe_check(host: Mapping[str, t.Any]) -> dict[str, str]:
    blockers, leftovers = host["blockers"], host["left_over"]
    removable = format_count(len(leftovers), "removable leftover", "removable leftovers")
    if blockers:
        counts = collections.Counter(blocker["kind"] for blocker in blockers)
        kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        total = format_count(len(blockers), "blocker", "blockers")
        return _make_result(_BLOCKED, host["name"], f"{total} ({kinds}), {removable}.")
    return _make_result(READY, host["name"], f"no blockers, {removable}; nothing was changed.")


def _join(parts: Sequence[str]) -> str:
    return f"{', '.join(parts) or 'nothing to do'}."


def _list_done(
    before: Mapping[str, t.Any], tasks: Tasks, stages: Collection[str], check_mode: bool
) -> Iterator[str]:
    """Yield what each stage did, or would do."""
    drained = "drain" in stages and len(before.get("servers") or ())
    service = before["service"]
    if "disable" in stages and service is not None:
        already = " already" if service["status"] == "disabled" else ""
        yield f"service{already} disabled"
    if drained:
        yield f"{format_count(drained, 'server', 'servers')} moved away"
    if "clean" in stages:
        yield _describe_removal(tasks)
    if "delete" not in stages:
        return
    # Nothing can be said about the deletion before the servers are gone.
    if check_mode and not _get(tasks, "deletion"):
        yield "what remains checked again before it is deleted"
        return
    yield from _describe_deletion(_get(tasks, "deletion").get("deleted") or {})


def _describe_removal(tasks: Tasks) -> str:
    # The tasks of another host may have left a result if this host has no leftovers.
    if not _get(tasks, "now").get("left_over"):
        return "no leftovers"
    tally: Mapping[str, int] = _get(tasks, "remediation").get("tally") or {}
    removed = sum(count for name, count in tally.items() if name not in NOT_MADE)
    text = f"{format_count(removed, 'leftover', 'leftovers')} removed"
    left = [f" and {tally[name]} {name}" for name in (SKIPPED, _BLOCKED) if tally.get(name)]
    return text + "".join(left)


def _describe_deletion(deleted: Mapping[str, t.Any]) -> Iterator[str]:
    if deleted.get("aggregates"):
        count = format_count(len(deleted["aggregates"]), "aggregate", "aggregates")
        yield f"host removed from {count}"
    parts = ["service"] if deleted.get("service") else []
    if deleted.get("providers"):
        parts.append(format_count(len(deleted["providers"]), "provider", "providers"))
    if deleted.get("agents"):
        parts.append(format_count(len(deleted["agents"]), "network agent", "network agents"))
    yield f"{_join_words(parts) or 'nothing'} deleted"


def _join_words(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def _list_failures(tasks: Tasks, stages: Collection[str]) -> Iterator[str]:
    """Yield what a play that ignores errors has not stopped for."""
    if "verify" in stages and "hosts" not in _get(tasks, "after"):
        yield "it could not be read again, so that nothing is known of what remains."
    elif "verify" in stages:
        removal = tasks["after"]["hosts"][0]["removal"]
        if not removal["complete"]:
            yield removal["message"]
    else:
        for stage, name in (("disable", "disabling"), ("delete", "deletion")):
            result = _get(tasks, name)
            if stage in stages and result.get("failed"):
                yield str(result.get("msg") or "a task failed.")


# What format_results shows of one check.
Line = dict[str, str]

FORMER_PROVIDER = "former_provider"

_MOVING, _MISSING, _OK = "moving", "missing", "ok"

_MAX_OUTPUT = 500

_ADVICE = "Each is proven to be on the host: add allocations to host_decommission_restore."


def determine_redeploy_outcome(
    restored: Mapping[str, t.Any],
    found: Mapping[str, t.Any],
    discovered: Mapping[str, t.Any],
    rewrite: bool,
) -> dict[str, t.Any]:
    """Return the outcome for one host, from the results of three tasks.

    `results`: the lines about it. `complete`: whether nothing is missing, once the allocations are
    moved that are `rewriting`. `rewriting`: whether the allocations of the servers on the former
    provider are to be moved. `former_roots`: the providers that are to be removed afterwards.

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
    if not found.get("skipped"):
        outcome, reason = _judge_allocations(found, stranded, rewrite)
        lines.append(_build_line("allocations", outcome, reason))
    outcomes = {line["outcome"] for line in lines}
    moving = stranded if _MOVING in outcomes else []
    roots = {root for entry in moving for root in entry["change"]["before"]["allocations"]}
    return {
        "results": lines,
        "complete": outcomes.isdisjoint((_MISSING, FAILED)),
        "rewriting": bool(moving),
        "former_roots": sorted(roots),
    }


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
            return [_build_line("nova-manage", FAILED, text[:_MAX_OUTPUT])]
    return [_build_line("nova-manage", FAILED, "It did not say why.")]


def _list_protected(
    found: Mapping[str, t.Any], restored: Mapping[str, t.Any]
) -> list[Mapping[str, t.Any]]:
    """Return the entries about protected consumers with allocations on a former provider.

    A protected consumer has the kind of its protection, such as a task of its server.
    """
    node = restored.get("node")
    former = {restored.get("namesake"), restored.get("former_node")} - {None, "", node}
    return [
        entry
        for entry in found.get("protected") or ()
        if not former.isdisjoint(provider["root"] for provider in entry["providers"])
    ]


def _explain_unmovable(stranded: list[Mapping[str, t.Any]], found: Mapping[str, t.Any]) -> str:
    """Return why the allocations must not be moved; empty if each of them is proven.

    One that is not proven keeps all of them, because then it is not certain what the tree is.
    """
    for entry in (entry for entry in stranded if not entry.get("change")):
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
    found: Mapping[str, t.Any], stranded: list[Mapping[str, t.Any]], rewrite: bool
) -> tuple[str, str]:
    """Return the outcome for the allocations, and what is said of them."""
    if "summary" not in found:
        return FAILED, str(found.get("msg") or "No answer.")
    failed_checks = found["summary"]["coverage"]["failed_checks"]
    if failed_checks:
        return FAILED, " ".join(failed_checks)
    if not stranded:
        return _OK, "none on a former provider of the host"
    count = format_count(len(stranded), "server has", "servers have")
    text = f"{count} an allocation on a former provider of the host."
    unmovable = _explain_unmovable(stranded, found)
    if rewrite and not unmovable:
        return _MOVING, text
    return _MISSING, f"{text} {unmovable or _ADVICE}"
