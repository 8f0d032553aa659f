# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What became of the changes of a run: one line for each, and why some were not made."""

from __future__ import annotations

import collections
import typing as t
from collections.abc import Iterable, Mapping, Sequence

from ...module_utils._common.text import format_count, make_printable
from ...module_utils._core.changes.records import TreeRecord
from ...module_utils._core.findings.entries import Entry, FindingsDocument
from ...module_utils._core.models.change import DELETE_PROVIDERS
from ...module_utils._core.models.codec import Json
from ...module_utils._core.models.kinds import get_finding_subject
from ...module_utils._core.models.outcomes import FAILED
from ...module_utils._core.models.outcomes import SKIPPED as LEFT_OUT
from ...module_utils._core.models.placement import sum_amounts
from ...module_utils._core.plan.plan import Step
from .._report.phrases import MAX_NAME, get_server_name, join_counts
from .._report.units import humanize_amounts
from .details import describe_effect, map_names
from .lines import (
    CHANGED,
    ERROR,
    MAX_ROWS,
    OK,
    SKIPPED,
    format_omitted,
    format_remark,
    get_prose_width,
    paint,
    wrap_item,
    wrap_path,
    wrap_text,
)
from .table import SHORT_UUID, Column, Row, format_explained_table, format_table

if t.TYPE_CHECKING:  # pragma: no cover
    AnyOutcome = Json

_COLUMNS = (
    Column("OUTCOME"),
    Column("KIND"),
    Column("HOST", least=9, comfort=24),
    Column("AMOUNT", least=13, comfort=34),
    Column("SERVER", least=6, comfort=16),
    Column("CONSUMER", short=SHORT_UUID),
)

# The least width of the outcomes of a play.
_OUTCOME_COLUMN = 9
# What needs somebody's attention comes first. "missing" and "differs" are of the checks of a host
# that was deployed again.
_RANKS = {FAILED: 0, "running": 0, "missing": 0, "blocked": 1, LEFT_OUT: 2, "differs": 2}
_TONES_BY_RANK = (ERROR, ERROR, SKIPPED, OK)


def format_remediation(
    remediation: Json,
    journal: str | None,
    width: int,
    findings: FindingsDocument | None = None,
) -> list[str]:
    """Return the outcome of each change, then the tally and the journal.

    findings: those that the plan was made of, for the names; None if they are not there.
    """
    prose = get_prose_width(width)
    lines = ["", *_format_outcomes(remediation, width, findings)]
    lines += format_tally(remediation, prose)
    if journal:
        lines += wrap_path(f"Journal: {make_printable(journal)}", prose)
    return lines


def format_plan(plan: Json, findings: FindingsDocument | None, width: int) -> list[str]:
    """Return a line for each change of a plan that is about to be applied.

    findings: those that the plan was made of, for the names; None if they are not there.
    """
    entries = _map_entries(findings)
    count = format_count(len(plan["changes"]), "change", "changes")
    lines = ["", f"{count} of the plan of {plan['detected_at']}:", ""]
    rows = []
    for step in plan["changes"][:MAX_ROWS]:
        entry = entries.get(step["finding"])
        cells = _list_cells(step, entry)
        effect = describe_effect(step, map_names(entry) if entry else {})
        rows.append(Row((*cells, effect), CHANGED))
    lines += format_table((*_COLUMNS[1:], Column("CHANGE", least=7, comfort=24)), rows, width)
    return lines + format_omitted(plan["changes"], MAX_ROWS, "the plan", get_prose_width(width))


def format_journal(
    steps: Sequence[Step | TreeRecord], findings: FindingsDocument | None, width: int
) -> list[str]:
    """Return a line for each change of a journal that is about to be restored.

    findings: those of the run that made the changes, for the names; None if they are not there.
    """
    entries = _map_entries(findings)
    rows = []
    for step in steps[:MAX_ROWS]:
        recorded = step.step if isinstance(step, TreeRecord) else step
        rows.append(Row(_list_cells(recorded.as_dict(), entries.get(step.finding)), CHANGED))
    count = format_count(len(steps), "change", "changes")
    lines = ["", f"{count} to restore, where nothing else has changed since:", ""]
    lines += format_table(_COLUMNS[1:], rows, width)
    return lines + format_omitted(steps, MAX_ROWS, "the journal", get_prose_width(width))


def _format_outcomes(
    remediation: Json,
    width: int,
    findings: FindingsDocument | None,
) -> list[str]:
    """Return a line for each change; in check mode only for those that would not be made."""
    outcomes: list[AnyOutcome] = sorted(remediation["outcomes"], key=_rank_outcome)
    if remediation["check_mode"]:
        outcomes = [outcome for outcome in outcomes if outcome["reason"]]
    entries = _map_entries(findings)
    shown = outcomes[:MAX_ROWS]
    rows = [_make_row(outcome, entries.get(outcome["finding"])) for outcome in shown]
    reasons = [outcome["reason"] for outcome in shown]
    lines = format_explained_table(_COLUMNS, rows, reasons, width)
    return lines + format_omitted(outcomes, MAX_ROWS, "remediation.json", get_prose_width(width))


def _map_entries(findings: FindingsDocument | None) -> Mapping[str, Entry]:
    if findings is None:
        return {}
    return {entry["id"]: entry for entry in findings["findings"]}


def _rank_outcome(outcome: AnyOutcome) -> tuple[int, str, str]:
    return _rank(outcome["outcome"]), outcome["kind"], outcome["finding"]


def _make_row(outcome: AnyOutcome, entry: Entry | None) -> Row:
    cells = (outcome["outcome"], *_list_cells(outcome, entry))
    return Row(cells, _choose_tone(outcome["outcome"]))


def _rank(outcome: str) -> int:
    return _RANKS.get(outcome, len(_TONES_BY_RANK) - 1)


def _choose_tone(outcome: str) -> str:
    return _TONES_BY_RANK[_rank(outcome)]


def _list_cells(outcome: t.Any, entry: Entry | None) -> tuple[str, ...]:
    """Return what a change is about, for the columns after the outcome."""
    amounts = _list_amounts(outcome)
    subject = make_printable(get_finding_subject(outcome["finding"]), MAX_NAME)
    hosts = _name_hosts(outcome, amounts, entry)
    return (
        make_printable(outcome["kind"]),
        ", ".join(hosts) or "-",
        humanize_amounts(sum_amounts(amounts.values())) or "-",
        (make_printable(get_server_name(entry), MAX_NAME) if entry else "") or "-",
        subject,
    )


def _list_amounts(outcome: t.Any) -> Mapping[str, Mapping[str, int]]:
    """Return what a change frees, or what restoring it allocates, by provider."""
    change, key = outcome, "frees"
    if "write" in outcome:
        change, key = outcome["write"] or {}, "claims"
    amounts: Mapping[str, Mapping[str, int]] = change.get(key) or {}
    return amounts


def _name_hosts(outcome: t.Any, providers: Iterable[str], entry: Entry | None) -> list[str]:
    """Return the hosts that a change is about, by uuid where no name is known."""
    if outcome.get("provider"):
        return [make_printable(outcome["provider"]["name"], MAX_NAME)]
    if outcome.get("action") == DELETE_PROVIDERS:
        # The root is last.
        return [make_printable(outcome["providers"][-1]["name"], MAX_NAME)]
    names: dict[str, str] = {}
    for provider in entry["providers"] if entry else ():
        names[provider["uuid"]] = make_printable(provider["root_name"], MAX_NAME)
    return list(dict.fromkeys(names.get(uuid, make_printable(uuid)) for uuid in providers))


def format_tally(remediation: Json, width: int) -> list[str]:
    """Return how many changes had each outcome."""
    tally = remediation["tally"]
    counts = join_counts(tally)
    if not counts:
        return ["Nothing to remediate."]
    if remediation["check_mode"]:
        return wrap_text(f"Check mode: nothing was written. Without check mode: {counts}.", width)
    tone = ERROR if tally.get("failed") else OK
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
