# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes with names: of a plan or a journal, what became of them, and what `--diff` shows."""

from __future__ import annotations

import collections
import os
import typing as t
from collections.abc import Iterable, Mapping, Sequence

from ...module_utils._common.errors import InvalidInput
from ...module_utils._common.json_files import read_json
from ...module_utils._common.text import format_count, make_printable
from ...module_utils._core.changes.records import TreeRecord
from ...module_utils._core.findings.entries import Entry, FindingsDocument, validate_document
from ...module_utils._core.models.change import DELETE_PROVIDERS, FAILED
from ...module_utils._core.models.change import SKIPPED as LEFT_OUT
from ...module_utils._core.models.codec import Json
from ...module_utils._core.models.kinds import get_finding_subject
from ...module_utils._core.models.placement import sum_amounts
from ...module_utils._core.plan.plan import Step
from .._report.phrases import MAX_NAME, get_server_name, humanize_amounts, join_counts
from .._stage.controller import find_path, is_on_controller
from .lines import (
    CHANGED,
    ERROR,
    MAX_ROWS,
    OK,
    SHORT_UUID,
    SKIPPED,
    Column,
    Row,
    format_explained_table,
    format_omitted,
    format_remark,
    format_table,
    get_prose_width,
    paint,
    wrap_item,
    wrap_path,
    wrap_text,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible.plugins.action import ActionBase

    AnyOutcome = Json
    AnyRemediation = Json
    AnyChange = Json

_COLUMNS = (
    Column("KIND"),
    Column("HOST", least=9, comfort=24),
    Column("AMOUNT", least=13, comfort=34),
    Column("SERVER", least=6, comfort=16),
    Column("CONSUMER", short=SHORT_UUID),
)
_CHANGE, _OUTCOME = Column("CHANGE", least=7, comfort=24), Column("OUTCOME")

# What a change does to its consumer; what the consumer has after it follows.
_VERBS = {"reduce": "keeps", "rewrite": "gives it", "create": "gives it"}

# The least width of the outcomes of a play.
_OUTCOME_COLUMN = 9
# What needs somebody's attention comes first. "missing" and "differs" are of the checks of a host
# that was deployed again.
_RANKS = {FAILED: 0, "running": 0, "missing": 0, "blocked": 1, LEFT_OUT: 2, "differs": 2}
_TONES_BY_RANK = (ERROR, ERROR, SKIPPED, OK)


# --- names


def find_findings(action: ActionBase, folder: t.Any = None) -> FindingsDocument | None:
    """Return the findings in a folder on the controller, for the names in them.

    They may be those of another run: a UUID has the same name in all of them.

    folder: None for that of the task's output.
    """
    folder = action._task.args.get("output_dir") if folder is None else folder
    if not isinstance(folder, str) or not is_on_controller(action):
        return None
    path = find_path(action, os.path.join(folder, "findings.json"))
    try:
        findings: FindingsDocument = validate_document("findings", read_json(path), path)
    except InvalidInput:
        return None
    return findings


def add_names(action: ActionBase, result: dict[str, t.Any]) -> None:
    """Add names to the difference in the result of a module, where findings have them."""
    findings = find_findings(action) if result.get("diff") else None
    if findings:
        result["diff"] = name_diff(result["diff"], findings)


def name_diff(diff: Mapping[str, t.Any], findings: FindingsDocument) -> dict[str, t.Any]:
    """Return a difference of allocations with names.

    diff: as `models.change.build_diff` returns it.
    findings: those that the changes were made of.
    """
    names: dict[str, str] = {}
    for entry in findings["findings"]:
        name = make_printable(get_server_name(entry), MAX_NAME)
        if name and entry["consumer"]:
            names[entry["consumer"]] = name
        names |= map_names(entry)
    return {side: _name_side(contents, names) for side, contents in diff.items()}


def _name_side(contents: t.Any, names: Mapping[str, str]) -> t.Any:
    """Return the allocations of all consumers before or after a change."""

    def add_name(uuid: str) -> str:
        return f"{uuid} ({names[uuid]})" if uuid in names else uuid

    if not isinstance(contents, dict):
        return contents
    named: dict[str, t.Any] = {}
    for consumer, body in contents.items():
        # Of a tree of providers, the contents have the names already.
        if isinstance(body, dict) and "allocations" in body:
            pairs = (body["allocations"] or {}).items()
            allocations = {add_name(provider): amounts for provider, amounts in pairs}
            named[add_name(consumer)] = {**body, "allocations": allocations}
        else:
            named[consumer] = body
    return named


def map_names(entry: Entry) -> dict[str, str]:
    """Return the names of the providers that an entry is about, by uuid."""
    providers = entry["providers"]
    return {each["uuid"]: make_printable(each["name"], MAX_NAME) for each in providers}


def _map_entries(findings: FindingsDocument | None) -> Mapping[str, Entry]:
    return {entry["id"]: entry for entry in findings["findings"]} if findings else {}


# --- changes


def format_plan(plan: Json, findings: FindingsDocument | None, width: int) -> list[str]:
    """Return a line for each change of a plan that is about to be applied.

    findings: those that the plan was made of, for the names; None if they are not there.
    """
    entries, rows = _map_entries(findings), []
    for step in plan["changes"][:MAX_ROWS]:
        entry = entries.get(step["finding"])
        effect = describe_effect(step, map_names(entry) if entry else {})
        rows.append(Row((*_list_cells(step, entry), effect), CHANGED))
    count = format_count(len(plan["changes"]), "change", "changes")
    lines = ["", f"{count} of the plan of {plan['detected_at']}:", ""]
    lines += format_table((*_COLUMNS, _CHANGE), rows, width)
    return lines + format_omitted(plan["changes"], MAX_ROWS, "the plan", get_prose_width(width))


def format_journal(
    steps: Sequence[Step | TreeRecord], findings: FindingsDocument | None, width: int
) -> list[str]:
    """Return a line for each change of a journal that is about to be restored.

    findings: those of the run that made the changes, for the names; None if they are not there.
    """
    entries, rows = _map_entries(findings), []
    for step in steps[:MAX_ROWS]:
        rows.append(Row(_list_cells(step.as_dict(), entries.get(step.finding)), CHANGED))
    count = format_count(len(steps), "change", "changes")
    lines = ["", f"{count} to restore, where nothing else has changed since:", ""]
    lines += format_table(_COLUMNS, rows, width)
    return lines + format_omitted(steps, MAX_ROWS, "the journal", get_prose_width(width))


def describe_effect(change: AnyChange, names: Mapping[str, str]) -> str:
    """Return what a change does, such as `keeps compute-4` or `deletes 2 providers`.

    names: the names of providers, by uuid.
    """
    if change["action"] == DELETE_PROVIDERS:
        return f"deletes {format_count(len(change['providers']), 'provider', 'providers')}"
    after = change["after"]["allocations"]
    if not after:
        return "removes all of it"
    kept = ", ".join(names.get(provider, provider) for provider in after)
    return f"{_VERBS[change['action']]} {kept}"


def _list_cells(outcome: t.Any, entry: Entry | None) -> tuple[str, ...]:
    """Return what a change is about, for the columns before its effect and after its outcome."""
    # What the change frees, or what restoring it allocates, by provider.
    amounts = outcome.get("frees")
    if "write" in outcome:
        amounts = (outcome["write"] or {}).get("claims")
    return (
        make_printable(outcome["kind"]),
        ", ".join(_name_hosts(outcome, amounts or (), entry)) or "-",
        humanize_amounts(sum_amounts((amounts or {}).values())) or "-",
        (make_printable(get_server_name(entry), MAX_NAME) if entry else "") or "-",
        make_printable(get_finding_subject(outcome["finding"]), MAX_NAME),
    )


def _name_hosts(outcome: t.Any, providers: Iterable[str], entry: Entry | None) -> list[str]:
    """Return the hosts that a change is about, by uuid where no name is known."""
    root = outcome.get("provider")
    if not root and outcome.get("action") == DELETE_PROVIDERS:
        # The root is last.
        root = outcome["providers"][-1]
    if root:
        return [make_printable(root["name"], MAX_NAME)]
    names: dict[str, str] = {}
    for provider in entry["providers"] if entry else ():
        names[provider["uuid"]] = make_printable(provider["root_name"], MAX_NAME)
    return list(dict.fromkeys(names.get(uuid, make_printable(uuid)) for uuid in providers))


# --- outcomes


def format_remediation(
    remediation: AnyRemediation,
    journal: str | None,
    width: int,
    findings: FindingsDocument | None = None,
) -> list[str]:
    """Return the outcome of each change, then the tally and the journal.

    In check mode only that of changes that would not be made.

    findings: those that the plan was made of, for the names; None if they are not there.
    """
    outcomes: list[AnyOutcome] = sorted(remediation["outcomes"], key=_rank_outcome)
    if remediation["check_mode"]:
        outcomes = [outcome for outcome in outcomes if outcome["reason"]]
    entries, rows, prose = _map_entries(findings), [], get_prose_width(width)
    for outcome in outcomes[:MAX_ROWS]:
        cells = _list_cells(outcome, entries.get(outcome["finding"]))
        rows.append(Row((outcome["outcome"], *cells), _choose_tone(outcome["outcome"])))
    reasons = [outcome["reason"] for outcome in outcomes[:MAX_ROWS]]
    lines = ["", *format_explained_table((_OUTCOME, *_COLUMNS), rows, reasons, width)]
    lines += format_omitted(outcomes, MAX_ROWS, "remediation.json", prose)
    lines += _format_tally(remediation, prose)
    return lines + (wrap_path(f"Journal: {make_printable(journal)}", prose) if journal else [])


def _rank_outcome(outcome: AnyOutcome) -> tuple[int, str, str]:
    return _rank(outcome["outcome"]), outcome["kind"], outcome["finding"]


def _rank(outcome: str) -> int:
    return _RANKS.get(outcome, len(_TONES_BY_RANK) - 1)


def _choose_tone(outcome: str) -> str:
    return _TONES_BY_RANK[_rank(outcome)]


def _format_tally(remediation: AnyRemediation, width: int) -> list[str]:
    """Return how many changes had each outcome."""
    counts = join_counts(remediation["tally"])
    if not counts:
        return ["Nothing to remediate."]
    if remediation["check_mode"]:
        return wrap_text(f"Check mode: nothing was written. Without check mode: {counts}.", width)
    tone = ERROR if remediation["tally"].get(FAILED) else OK
    return paint(wrap_text(f"Outcome: {counts}.", width), tone)


def format_results(results: Iterable[Mapping[str, t.Any]], width: int) -> list[str]:
    """Return a line for each thing that a play did, what needs somebody's attention first.

    Several are counted by their outcome.
    """
    # Those about one subject stay in their order.
    ranked = sorted(results, key=lambda each: (_rank(each["outcome"]), str(each["subject"])))
    if not ranked:
        return []
    tally = collections.Counter(make_printable(result["outcome"]) for result in ranked)
    column = max(_OUTCOME_COLUMN, *map(len, tally))
    lines = [""]
    for result in ranked:
        outcome = make_printable(result["outcome"])
        subject = make_printable(result["subject"], MAX_NAME)
        text = f"{outcome:{column}} {subject}  {make_printable(result.get('reason') or '')}"
        lines += paint(wrap_item(text, width), _choose_tone(outcome))
    if len(ranked) > 1:
        # As red as the worst of them.
        tone = ERROR if ERROR in map(_choose_tone, tally) else OK
        lines += paint(wrap_text(f"Outcome: {join_counts(tally)}.", width), tone)
    return lines


def format_failure(message: str, width: int) -> list[str]:
    """Return why a run failed that does not fail its play."""
    return format_remark(f"Failed: {message}", width, ERROR)
