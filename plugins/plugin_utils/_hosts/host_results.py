# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The last line about each host: what was done, or would be done without --check."""

from __future__ import annotations

import collections
import dataclasses as d
import typing as t
from collections.abc import Collection, Iterator, Mapping, Sequence

from ...module_utils._common.text import format_count
from ...module_utils._core.models.outcomes import FAILED, READY, SKIPPED, WITHOUT_CHECK
from .host_tasks import ALL_AGENTS, HostRemoval, describe_host_removal

_BLOCKED, _GONE = "blocked", "gone"

# The stages that change something, each with the outcome of a run that ends with it.
_OUTCOMES = {
    "delete": "deleted",
    "clean": "cleaned",
    "drain": "drained",
    "disable": "disabled",
}
_READING = ("check", "verify")
# The outcome of a stage that this file knows nothing about.
_DONE = "done"


@d.dataclass(frozen=True)
class HostResult:
    """The result of one host.

    journal: the path of the journal with which its allocations can be restored; empty for none.
    """

    outcome: str
    subject: str
    reason: str
    journal: str = ""


@d.dataclass(frozen=True)
class HostTasks:
    """What the tasks about a host have registered; empty for a task that was not run.

    now: the host as it was checked right before the changes.
    disabling: the result of disabling its service.
    remediation: the result of the removal of its leftovers.
    service, providers, agents: the results of their deletions.
    after, named: the host and the providers with its names, as they were read at the end.
    """

    now: Mapping[str, t.Any] = d.field(default_factory=dict)
    disabling: Mapping[str, t.Any] = d.field(default_factory=dict)
    remediation: Mapping[str, t.Any] = d.field(default_factory=dict)
    service: Mapping[str, t.Any] = d.field(default_factory=dict)
    providers: Mapping[str, t.Any] = d.field(default_factory=dict)
    agents: Mapping[str, t.Any] = d.field(default_factory=dict)
    after: Mapping[str, t.Any] = d.field(default_factory=dict)
    named: Mapping[str, t.Any] = d.field(default_factory=dict)


def describe_host_result(
    before: Mapping[str, t.Any],
    tasks: HostTasks,
    stages: Collection[str],
    check_mode: bool,
    removed_agents: str = ALL_AGENTS,
) -> HostResult:
    """Return what the stages of a run did on a host, or would do without check mode.

    before: the host as `compute_host_info` returned it at first.
    removed_agents: which network agents must be gone, as in `describe_host_removal`.
    """
    name = before["name"]
    failures = []
    if not check_mode:
        failures = _list_failures(before, tasks, stages, removed_agents)
    if failures:
        return HostResult(FAILED, name, " ".join(failures))
    # Network agents of a host that is gone otherwise are deleted as well.
    if not before["known"] and not before.get("agents"):
        return HostResult(_GONE, name, describe_host_removal(before, before, []).message)
    chosen = [stage for stage in _OUTCOMES if stage in stages]
    others = [stage for stage in stages if stage not in (*_OUTCOMES, *_READING)]
    # Nothing is verified in check mode.
    if not chosen and not others and (check_mode or "verify" not in stages):
        return _describe_check(before)
    done = [*others, *_list_done(before, tasks, stages, check_mode)]
    if check_mode:
        return HostResult(READY, name, WITHOUT_CHECK + _join(done))
    if "verify" in stages:
        # With what else is to be done, such as a service of Cinder that is left alone.
        verified = _verify(before, tasks, removed_agents).message
        return HostResult(_GONE, name, f"{_join(done)} {verified}" if done else verified)
    journal = ""
    # A provider that was deleted cannot have its allocations again.
    if "delete" not in stages and "clean" in stages and tasks.now.get("left_over"):
        journal = tasks.remediation.get("journal") or ""
    outcome = _OUTCOMES[chosen[0]] if chosen else _DONE
    return HostResult(outcome, name, _join(done), journal)


def _describe_check(host: Mapping[str, t.Any]) -> HostResult:
    blockers, leftovers = host["blockers"], host["left_over"]
    removable = format_count(len(leftovers), "removable leftover", "removable leftovers")
    if blockers:
        counts = collections.Counter(blocker["kind"] for blocker in blockers)
        kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        total = format_count(len(blockers), "blocker", "blockers")
        return HostResult(_BLOCKED, host["name"], f"{total} ({kinds}), {removable}.")
    return HostResult(READY, host["name"], f"no blockers, {removable}; nothing was changed.")


def _join(parts: Sequence[str]) -> str:
    return f"{', '.join(parts) or 'nothing to do'}."


def _list_done(
    before: Mapping[str, t.Any], tasks: HostTasks, stages: Collection[str], check_mode: bool
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
    if check_mode and drained:
        yield "what remains checked again before it is deleted"
        return
    if before.get("aggregates"):
        count = format_count(len(before["aggregates"]), "aggregate", "aggregates")
        yield f"host removed from {count}"
    yield _describe_deletion(before, tasks)


def _describe_removal(tasks: HostTasks) -> str:
    # The tasks of another host may have left a result if this host has no leftovers.
    if not tasks.now.get("left_over"):
        return "no leftovers"
    tally: Mapping[str, int] = tasks.remediation.get("tally") or {}
    removed = sum(count for name, count in tally.items() if name not in (SKIPPED, FAILED))
    text = f"{format_count(removed, 'leftover', 'leftovers')} removed"
    if tally.get(SKIPPED):
        text += f" and {tally[SKIPPED]} skipped"
    return text


def _describe_deletion(before: Mapping[str, t.Any], tasks: HostTasks) -> str:
    parts = []
    if before["service"] is not None:
        parts.append("service")
    if before["providers"]:
        parts.append(format_count(len(before["providers"]), "provider", "providers"))
    agents = [each for each in tasks.agents.get("results", ()) if each.get("changed")]
    if agents:
        parts.append(format_count(len(agents), "network agent", "network agents"))
    return f"{_join_words(parts) or 'nothing'} deleted"


def _join_words(parts: Sequence[str]) -> str:
    if len(parts) < 3:
        return " and ".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _verify(before: Mapping[str, t.Any], tasks: HostTasks, removed_agents: str) -> HostRemoval:
    return describe_host_removal(
        before, tasks.after["hosts"][0], tasks.named["providers"], removed_agents
    )


def _list_failures(
    before: Mapping[str, t.Any], tasks: HostTasks, stages: Collection[str], removed_agents: str
) -> list[str]:
    """Return what a play that ignores errors has not stopped for."""
    if "verify" in stages:
        if "hosts" not in tasks.after or "providers" not in tasks.named:
            return ["it could not be read again, so that nothing is known of what remains."]
        removal = _verify(before, tasks, removed_agents)
        return [] if removal.complete else [removal.message]
    failures = list(_list_messages(tasks.disabling)) if "disable" in stages else []
    if "delete" in stages:
        for result in (tasks.service, tasks.providers, tasks.agents):
            failures += _list_messages(result)
    return failures


def _list_messages(result: Mapping[str, t.Any]) -> Iterator[str]:
    """Yield the messages of a task that failed, or of the rounds of its loop that did."""
    rounds = [result, *result.get("results", ())]
    for each in rounds:
        if each.get("failed") and "results" not in each:
            yield str(each.get("msg") or "a task failed.")
