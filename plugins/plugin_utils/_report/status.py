# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What follows from the state of a run: its outcome, what it fails with, and what it exports."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Mapping

from ansible.release import __version__ as ANSIBLE_VERSION

from ...module_utils._common.text import format_count, summarize_checks
from ...module_utils._core.findings.coverage import describe_unjudged_hosts
from ...module_utils._core.models.change import FAILED
from ...module_utils._core.run.folder import (
    DETECTED,
    PLANNED,
    REMEDIATED,
    REPORTED,
    RESTORED,
    STAGES,
    State,
    has_failed,
)
from ...module_utils._core.run.pack import MAX_LENGTH, read_packed
from .._stage.controller import read_running_version
from .._variables.values import make_host_key
from .phrases import count_made

# What a run does in each stage, for a sentence about one that did not come to its end.
_DOINGS: Mapping[str, str] = {
    DETECTED: "while it read the cloud",
    PLANNED: "while it planned",
    REMEDIATED: "while it made the changes",
    RESTORED: "while it restored",
}

_NOT_APPLIED = "The run ended before it made the changes: nothing was changed."

# An approver can read so many changes in the artifact of a run.
_MAX_LISTED = 1000
# How long the pack of a plan may be beside that of a journal, which is longer by a third.
_MAX_BESIDE = MAX_LENGTH * 2 // 5

# What a run is to fail on, from the least to the most; each includes those before it.
SEVERITIES = ("never", "error", "partial", "undecided", "findings")

# What `orphan_cleanup_fail_on: never` does not fail for, if it has a result: a plan that exceeds a
# limit, and changes that could not be made. Each with a key of every result, without which nobody
# knows what was done.
_FORGIVEN = {PLANNED: "changes", REMEDIATED: "tally", RESTORED: "tally"}

# What a run came to, as one word for programs.
CLEAN, FINDINGS, UNDECIDED = "clean", "findings", "undecided"
PARTIAL, UNSOUND, APPLIED = "partial", "unsound", "applied"


@d.dataclass(frozen=True)
class RunStatus:
    """What the tasks that end a run go by.

    failure: the messages of the stages that failed, empty when none did.
    has_findings: whether `findings.json` is that of this run.
    message: what the run fails with; empty if it does not fail.
    outcome: what the run came to, as one word.
    """

    failure: str
    has_findings: bool
    message: str
    outcome: str


def determine_status(run: State, fail_on: str, check_mode: bool, findings_exist: bool) -> RunStatus:
    """Return the status of a run.

    findings_exist: whether `findings.json` exists, for a run that does not detect its findings.
    """
    return RunStatus(
        failure=" ".join(_list_messages(run)),
        has_findings=_has_findings(run, findings_exist),
        message=_explain_failure(run, fail_on, check_mode),
        outcome=name_outcome(run, check_mode),
    )


def _list_messages(run: State, forgives: bool = False) -> list[str]:
    """Return the message of each stage that failed.

    forgives: whether to leave out what `_is_forgiven` names.
    """
    messages = []
    for stage in STAGES:
        if not has_failed(run, [stage]) or (forgives and _is_forgiven(run, stage)):
            continue
        if stage == PLANNED and "msg" in run[stage] and _only_informs(run):
            continue
        messages.append(str(run[stage].get("msg") or _explain_end(run, stage)))
    if not has_failed(run):
        messages += _explain_gap(run)
    # The same error can end a stage and the run.
    return list(dict.fromkeys(messages))


def _explain_end(run: State, stage: str) -> str:
    """Return a sentence about a stage that did not come to its end."""
    journal = run[stage].get("journal")
    changed = f"what it has changed is in {journal}" if journal else "nothing was changed"
    return f"The run ended {_DOINGS.get(stage, 'early')}: {changed}."


def explain_early_end(run: State) -> str:
    """Return where a run ended that has come neither to a failure nor to its report."""
    if REPORTED in run or has_failed(run):
        return ""
    if REMEDIATED in run or RESTORED in run:
        return "The run ended before its report."
    if PLANNED not in run:
        return "The run ended before it planned: nothing was changed."
    if run["remediates"] and run[PLANNED].get("plan"):
        return _NOT_APPLIED
    return "The run ended before its report: nothing was changed."


def _is_forgiven(run: State, stage: str) -> bool:
    """Return whether a stage that failed has a result, or its reading has one and was not sound.

    Without any result the run did nothing, and nobody knows what there was to do.
    """
    if stage in _FORGIVEN and _FORGIVEN[stage] in run[stage]:
        return True
    return stage == PLANNED and bool(_list_failed_checks(run))


def _list_failed_checks(run: State) -> list[str]:
    summary = run.get(DETECTED, {}).get("summary", {})
    return summary.get("coverage", {}).get("failed_checks") or []


def _explain_gap(run: State) -> list[str]:
    """Return a message about a stage that should have run and was left out, as --step can do."""
    if run.get("detects") and DETECTED not in run:
        return ["The cloud was not read."]
    if not run.get("detects") and PLANNED not in run and RESTORED not in run:
        return ["Nothing was planned, and nothing was changed."]
    if run.get("remediates") and run.get(PLANNED, {}).get("plan") and REMEDIATED not in run:
        return [_NOT_APPLIED]
    return []


def _only_informs(run: State) -> bool:
    """Return whether the plan is made for other jobs only, and not to be applied by this run."""
    is_last = not run.get("remediates", True) or bool(_list_failed_checks(run))
    return bool(run.get("detects")) and is_last


def _explain_failure(run: State, fail_on: str, check_mode: bool) -> str:
    """Return the message with which the run fails; empty if it does not fail."""
    messages = _list_messages(run, forgives=fail_on == "never")
    # A run that was given its findings did not decide what was found; and without a reading there
    # is nothing to conclude from.
    if messages or not run.get("detects") or "summary" not in run.get(DETECTED, {}):
        return " ".join(messages)
    return _explain_shortfall(run, fail_on, check_mode)


def _explain_shortfall(run: State, fail_on: str, check_mode: bool) -> str:
    """Return why the run is a failure although no stage failed, empty when it is none."""
    summary, path = run[DETECTED]["summary"], run[DETECTED].get("dest")
    failed_checks = summarize_checks(summary["coverage"]["failed_checks"])
    undecided, left = summary["verdicts"]["undecided"], _count_findings_left(run, check_mode)
    consumers = format_count(undecided, "consumer is", "consumers are")
    findings = format_count(left, "finding is", "findings are")
    reasons = {
        "error": f"Nothing may be changed: {failed_checks}" if failed_checks else "",
        "partial": describe_unjudged_hosts(summary["coverage"]),
        "undecided": f"{consumers} undecided, see {path}." if undecided else "",
        "findings": f"{findings} left, see {path}." if left > 0 else "",
    }
    counted = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    return next((text for severity, text in reasons.items() if text and severity in counted), "")


def name_outcome(run: State, check_mode: bool) -> str:
    """Return what a run came to, as one word; `failed` if it could not do what it had to."""
    if _list_messages(run):
        return FAILED
    summary = run.get(DETECTED, {}).get("summary")
    if not run.get("detects") or summary is None:
        return APPLIED
    if summary["coverage"]["failed_checks"]:
        return UNSOUND
    if _count_findings_left(run, check_mode) > 0:
        return FINDINGS
    if summary["verdicts"]["undecided"]:
        return UNDECIDED
    # What was judged has no findings. That the other hosts have none is not proven.
    return PARTIAL if describe_unjudged_hosts(summary["coverage"]) else CLEAN


def _has_findings(run: State, findings_exist: bool) -> bool:
    """Return whether `findings.json` belongs to the run, or at least may belong to it.

    If the run did not detect them, orphan_report checks whether its plan was made of them.
    """
    if run["detects"]:
        return DETECTED in run and not has_failed(run, [DETECTED])
    return findings_exist and run.get(PLANNED, {}).get("plan") is not None


def _count_findings_left(run: State, check_mode: bool) -> int:
    """Return how many findings the run has not remediated.

    Findings that are only reported count too.
    """
    verdicts = run[DETECTED]["summary"]["verdicts"]
    made = 0 if check_mode else count_made(run.get(REMEDIATED, {}).get("tally", {}))
    found: int = verdicts["orphaned"] + verdicts["drifted"]
    return found - made


def build_artifacts(
    run: State, output_dir: str, check_mode: bool, host: str = ""
) -> dict[str, t.Any]:
    """Return what a run hands to the jobs that follow it, as `set_stats` takes it.

    Numbers, kinds, UUIDs, versions and paths: no text that somebody in the cloud chose. Each field
    has one type, whatever the run did.

    host: the inventory host that the artifacts are for, when there are several; else empty.
    """
    summary = run.get(DETECTED, {}).get("summary", {})
    planned, remediated = run.get(PLANNED, {}), run.get(REMEDIATED, {})
    packed = planned.get("packed") or ""
    described: t.Any = {
        "versions": _list_versions(run),
        "outcome": name_outcome(run, check_mode),
        "check_mode": check_mode,
        # A run that applies a plan reads only the consumers of that plan.
        "complete": bool(summary.get("coverage", {}).get("complete")),
        "verdicts": summary.get("verdicts", {}),
        "kinds": summary.get("kinds", {}),
        "stranded": summary.get("stranded", {}).get("resource_classes", {}),
        "planned": planned.get("changes") or 0,
        "changes": _list_changes(packed),
        "outcomes": remediated.get("tally") or {},
        "output_dir": output_dir,
        "output_lost": planned.get("output_lost") or "",
        "journal": remediated.get("journal") or "",
    }
    # Both packs together must not exceed what AWX keeps, and without the journal nothing can be
    # restored. An empty plan is refused by the job that it is given to.
    plan: t.Any = "" if remediated.get("journal") and len(packed) > _MAX_BESIDE else packed
    if host:
        # Only programs read the plan; people read the rest, where the name stays as it is.
        described, plan = {"by_host": {host: described}}, {"by_host": {make_host_key(host): plan}}
    return {"orphan_cleanup_run": described, "orphan_cleanup_plan": plan}


def _list_versions(run: State) -> dict[str, str]:
    """Return the versions of what ran, each empty where it is not known."""
    versions = [run.get(stage, {}).get("versions", {}) for stage in (REMEDIATED, DETECTED)]
    # It need not be installed on the controller, where this code runs.
    sdk = next(filter(None, (each.get("openstacksdk") for each in versions)), "")
    collection = read_running_version()
    return {"collection": collection, "ansible_core": ANSIBLE_VERSION, "openstacksdk": sdk}


def _list_changes(packed: str) -> list[str]:
    """Return the findings that a plan resolves; none when there are too many to be passed on."""
    _file, plans = read_packed(packed, "plan") or ("plan", [])
    changes = [str(change["finding"]) for plan in plans for change in plan["changes"]]
    return changes if len(changes) <= _MAX_LISTED else []


def build_journal_artifact(packed: str, host: str = "") -> dict[str, t.Any]:
    """Return the journal of a run as an artifact, in the form that the entry point restore takes.

    host: as for `build_artifacts`.
    """
    journal: t.Any = {"by_host": {make_host_key(host): [packed]}} if host else [packed]
    return {"orphan_cleanup_journal": journal}
