# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of one run of the role `orphan_cleanup`, and what follows from it.

The state is a dictionary with the result of each stage under the name of the stage. `by_plan` says
whether the run applies a reviewed plan, and `detects` whether it detects its findings itself. If
neither is so, it uses what an earlier run detected.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Iterable, Mapping

from ansible.release import __version__ as ANSIBLE_VERSION

from ...module_utils._common.text import format_count, summarize_checks
from ...module_utils._core.findings.coverage import describe_unjudged_hosts
from ...module_utils._core.models.outcomes import FAILED, SKIPPED
from ...module_utils._core.run.pack import MAX_LENGTH, read_packed
from .._stage.versions import read_running_version
from .._variables.paths import make_host_key

if t.TYPE_CHECKING:  # pragma: no cover
    # The state of a run, and the result of a task as Ansible registers it.
    Run = Mapping[str, t.Any]
    Result = Mapping[str, t.Any]

# The keys of each stage's result that later stages use. The rest is in files: copied from task to
# task, the findings and the records of a large cloud would take seconds and fill the logs.
_STAGE_KEYS: Mapping[str, tuple[str, ...]] = {
    "detected": ("dest", "summary", "versions"),
    "planned": ("plan", "changes", "packed", "output_lost"),
    "remediated": ("remediation", "journal", "tally", "versions"),
    # An error that no stage could report itself, such as a variable that cannot be templated.
    "interrupted": (),
    "reported": ("reports",),
}
STAGES = tuple(_STAGE_KEYS)
# The key that every result of a stage has unless the stage failed. Without it the task ended in
# some other way, and nothing is known of what it read or changed.
_PROOF_KEYS: Mapping[str, str] = {
    "detected": "summary",
    "planned": "changes",
    "remediated": "tally",
    "reported": "reports",
}

# An approver can read so many changes in the artifact of a run.
_MAX_LISTED = 1000
# How long the pack of a plan may be beside that of a journal, which is longer by a third.
_MAX_BESIDE = MAX_LENGTH * 2 // 5

# What a run is to fail on, from the least to the most; each includes those before it.
SEVERITIES = ("never", "error", "partial", "undecided", "findings")

_NOT_FINISHED = "It did not run to its end."


# What `orphan_cleanup_fail_on: never` does not fail for, if it has a result: a plan that exceeds a
# limit, and changes that could not be made.
_FORGIVEN = ("planned", "remediated")

# What a run came to, as one word for programs.
CLEAN, FINDINGS, UNDECIDED, PARTIAL, UNSOUND, APPLIED = (
    "clean",
    "findings",
    "undecided",
    "partial",
    "unsound",
    "applied",
)


def has_failed(result: Result) -> bool:
    """Return whether a task failed, also if its `failed_when` hides that from Ansible.

    The roles hide it because Ansible prints everything that a failed task returns. Only the last
    task of a role fails, with the message.
    """
    if result.get("failed"):
        return True
    return result.get("failed_when_result") is False and "msg" in result


def record_stage(run: Run, stage: str, result: Result) -> dict[str, t.Any]:
    """Return the state of the run with the result of a stage.

    A skipped stage leaves the state as it is. A stage that succeeded without a result has failed.
    """
    state = dict(run.items())
    if result.get("skipped"):
        return state
    kept: dict[str, t.Any] = {"failed": has_failed(result)}
    if kept["failed"]:
        kept["msg"] = result.get("msg") or "A task failed."
    elif stage in _PROOF_KEYS and _PROOF_KEYS[stage] not in result:
        kept = {"failed": True, "msg": f"The stage {stage!r} ended without a result."}
    for key in _STAGE_KEYS[stage]:
        if key in result:
            kept[key] = result[key]
    state[stage] = kept
    return state


@d.dataclass(frozen=True)
class RunStatus:
    """What the tasks that end a run go by.

    failure: the messages of the stages that failed, empty when none did.
    has_findings: whether `findings.json` is that of this run.
    shortfall: why the run is a failure although no stage failed, empty when it is none.
    message: what the run fails with; empty if it does not fail.
    outcome: what the run came to, as one word.
    """

    failure: str
    has_findings: bool
    shortfall: str
    message: str
    outcome: str


def determine_status(run: Run, fail_on: str, check_mode: bool, findings_exist: bool) -> RunStatus:
    """Return the status of a run.

    findings_exist: whether `findings.json` exists, for a run that does not detect its findings.
    """
    return RunStatus(
        failure=" ".join(_list_messages(run)),
        has_findings=_has_findings(run, findings_exist),
        shortfall=_explain_shortfall(run, fail_on, check_mode),
        message=_explain_failure(run, fail_on, check_mode),
        outcome=name_outcome(run, check_mode),
    )


def _list_messages(run: Run, forgives: bool = False) -> list[str]:
    """Return the message of each stage that failed.

    forgives: whether to leave out what `_is_forgiven` names.
    """
    messages = []
    for stage in STAGES:
        result = run.get(stage, {})
        if not result.get("failed") or (forgives and _is_forgiven(run, stage)):
            continue
        if stage == "planned" and _only_informs(run):
            continue
        messages.append(str(result["msg"]))
    if not any(run.get(stage, {}).get("failed") for stage in STAGES):
        messages += _explain_gap(run)
    # The same error can end a stage and the run.
    return list(dict.fromkeys(messages))


def _is_forgiven(run: Run, stage: str) -> bool:
    """Return whether a stage that failed has a result, or its reading has one and was not sound.

    Without any result the run did nothing, and nobody knows what there was to do.
    """
    if stage not in _FORGIVEN:
        return False
    if _PROOF_KEYS[stage] in run[stage]:
        return True
    return stage == "planned" and _has_failed_checks(run)


def _has_failed_checks(run: Run) -> bool:
    summary = run.get("detected", {}).get("summary", {})
    return bool(summary.get("coverage", {}).get("failed_checks"))


def _explain_gap(run: Run) -> list[str]:
    """Return a message about a stage that should have run and was left out, as --step can do."""
    if run.get("detects") and "detected" not in run:
        return ["The cloud was not read."]
    if not run.get("detects") and "planned" not in run:
        return ["Nothing was planned, and nothing was changed."]
    return []


def _only_informs(run: Run) -> bool:
    """Return whether the plan is made for other jobs only, and not to be applied by this run."""
    if not run.get("detects"):
        return False
    if not run.get("remediates", True):
        return True
    return _has_failed_checks(run)


def _explain_failure(run: Run, fail_on: str, check_mode: bool) -> str:
    """Return the message with which the run fails; empty if it does not fail."""
    messages = _list_messages(run, forgives=fail_on == "never")
    if messages:
        return " ".join(messages)
    # A run that was given its findings did not decide what was found.
    if not run.get("detects"):
        return ""
    return _explain_shortfall(run, fail_on, check_mode)


def name_outcome(run: Run, check_mode: bool) -> str:
    """Return what a run came to, as one word; `failed` if it could not do what it had to."""
    if _list_messages(run):
        return FAILED
    summary = run.get("detected", {}).get("summary")
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


def _has_findings(run: Run, findings_exist: bool) -> bool:
    """Return whether `findings.json` belongs to the run, or at least may belong to it.

    If the run did not detect them, orphan_report checks whether its plan was made of them.
    """
    if run["detects"]:
        return "detected" in run and not run["detected"]["failed"]
    return findings_exist and run.get("planned", {}).get("plan") is not None


def _explain_shortfall(run: Run, fail_on: str, check_mode: bool) -> str:
    # Without a reading there is nothing to conclude from, and the detection has failed itself.
    if "summary" not in run.get("detected", {}):
        return ""
    summary, path = run["detected"]["summary"], run["detected"].get("dest")
    severity = SEVERITIES.index(fail_on)
    coverage, verdicts = summary["coverage"], summary["verdicts"]
    failed_checks = summarize_checks(coverage["failed_checks"])
    if severity >= SEVERITIES.index("error") and failed_checks:
        return f"Nothing may be changed: {failed_checks}"
    unjudged = describe_unjudged_hosts(coverage)
    if severity >= SEVERITIES.index("partial") and unjudged:
        return unjudged
    undecided = verdicts["undecided"]
    if severity >= SEVERITIES.index("undecided") and undecided:
        consumers = format_count(undecided, "consumer is", "consumers are")
        return f"{consumers} undecided, see {path}."
    left = _count_findings_left(run, check_mode)
    if severity >= SEVERITIES.index("findings") and left > 0:
        return f"{format_count(left, 'finding is', 'findings are')} left, see {path}."
    return ""


def _count_findings_left(run: Run, check_mode: bool) -> int:
    """Return how many findings the run has not remediated.

    Findings that are only reported count too.
    """
    verdicts = run["detected"]["summary"]["verdicts"]
    found = int(verdicts["orphaned"]) + int(verdicts["drifted"])
    if check_mode:
        return found
    changed = 0
    for outcome, count in run.get("remediated", {}).get("tally", {}).items():
        if outcome not in (SKIPPED, FAILED):
            changed += int(count)
    return found - changed


def build_artifacts(
    run: Run, output_dir: str, check_mode: bool, host: str = ""
) -> dict[str, t.Any]:
    """Return what a run hands to the jobs that follow it, as `set_stats` takes it.

    Numbers, kinds, UUIDs, versions and paths: no text that somebody in the cloud chose. Each field
    has one type, whatever the run did and whatever the templates of an ansible-core make of
    numbers.

    host: the inventory host that the artifacts are for, when there are several; else empty.
    """
    summary = run.get("detected", {}).get("summary", {})
    planned, remediated = run.get("planned", {}), run.get("remediated", {})
    packed = str(planned.get("packed") or "")
    described: t.Any = {
        "versions": _list_versions(run),
        "outcome": name_outcome(run, check_mode),
        "check_mode": bool(check_mode),
        # A run that applies a plan reads only the consumers of that plan.
        "complete": bool(summary.get("coverage", {}).get("complete")),
        "verdicts": _convert_counts(summary.get("verdicts")),
        "kinds": _convert_counts(summary.get("kinds")),
        "stranded": _convert_counts(summary.get("stranded", {}).get("resource_classes")),
        "planned": int(planned.get("changes") or 0),
        "changes": _list_changes(packed),
        "outcomes": _convert_counts(remediated.get("tally")),
        "output_dir": str(output_dir),
        "output_lost": str(planned.get("output_lost") or ""),
        "journal": str(remediated.get("journal") or ""),
    }
    # Both packs together must not exceed what AWX keeps, and without the journal nothing can be
    # restored. An empty plan is refused by the job that it is given to.
    plan: t.Any = "" if remediated.get("journal") and len(packed) > _MAX_BESIDE else packed
    if host:
        # Only programs read the plan; people read the rest, where the name stays as it is.
        described, plan = {"by_host": {host: described}}, {"by_host": {make_host_key(host): plan}}
    return {"orphan_cleanup_run": described, "orphan_cleanup_plan": plan}


def _list_versions(run: Run) -> dict[str, str]:
    """Return the versions of what ran, each empty where it is not known."""
    sdk = ""
    for stage in ("detected", "remediated"):
        sdk = run.get(stage, {}).get("versions", {}).get("openstacksdk") or sdk
    return {
        "collection": read_running_version(),
        "ansible_core": ANSIBLE_VERSION,
        # It need not be installed on the controller, where this code runs.
        "openstacksdk": str(sdk),
    }


def _convert_counts(counts: Mapping[str, t.Any] | None) -> dict[str, int]:
    return {str(name): int(count) for name, count in (counts or {}).items()}


def _list_changes(packed: str) -> list[str]:
    """Return the findings that a plan resolves; none when there are too many to be passed on."""
    _file, plans = read_packed(packed, "plan") or ("plan", [])
    changes = [str(change["finding"]) for plan in plans for change in plan["changes"]]
    return changes if len(changes) <= _MAX_LISTED else []


def build_journal_artifact(packed: str, host: str = "") -> dict[str, t.Any]:
    """Return the journal of a run as an artifact, in the form that the entry point restore takes.

    host: as for `build_artifacts`.
    """
    journal: t.Any = [packed]
    if host:
        journal = {"by_host": {make_host_key(host): journal}}
    return {"orphan_cleanup_journal": journal}


def collect_cloud_runs(hosts: Iterable[Mapping[str, t.Any]]) -> list[dict[str, str]]:
    """Return the runs over several clouds, as orphan_summary takes them.

    hosts: the variables of the inventory host of each cloud.
    """
    return [_build_cloud_run(variables) for variables in hosts]


def _build_cloud_run(variables: Mapping[str, t.Any]) -> dict[str, str]:
    # What the role registered on this host.
    detected = variables.get("_orphan_cleanup_detected", {})
    remediated = variables.get("_orphan_cleanup_remediated", {})
    findings = ""
    # The file may be that of an earlier run when the detection failed.
    if not has_failed(detected):
        findings = detected.get("dest") or ""
    return {
        "name": variables["inventory_hostname"],
        "region": variables.get("orphan_cleanup_region_name", ""),
        "shard": variables.get("orphan_cleanup_shard", ""),
        "error": variables.get("_orphan_cleanup_error", _NOT_FINISHED),
        "findings": findings,
        "remediation": remediated.get("remediation") or "",
    }
