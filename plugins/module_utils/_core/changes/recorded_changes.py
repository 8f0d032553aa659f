# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The changes of allocations in a journal."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..._common.errors import InvalidInput
from ..models.change import DELETE_PROVIDERS
from ..models.outcomes import SKIPPED
from ..plan.steps import Step, parse_step
from .journal import AFTER, JournalRecord, parse_record
from .tree_additions import RESTORE_PROVIDERS

# What a record says of a change of allocations.
_CHANGE_KEYS = (
    "consumer",
    "generation",
    "before",
    "after",
    "partner",
    "action",
    "frees",
    "claims",
)


def find_changes(
    records: Iterable[JournalRecord], placement_endpoint: str, consumers: Collection[str]
) -> list[Step]:
    """Return the changes of the `consumers` in a journal, of all without any, the newest first.

    A change that Placement refused because its consumer had changed was not made by this run,
    whatever the consumer has now.
    Raises InvalidInput for a journal of another cloud, and for consumers that are not in it.
    """
    steps: list[Step] = []
    for record in records:
        if record.get("action") in (DELETE_PROVIDERS, RESTORE_PROVIDERS):
            continue
        if record["event"] != AFTER:
            steps.append(parse_record(record, placement_endpoint, _parse_change))
        else:
            _forget_skipped(steps, record)
    recorded = {part.consumer for step in steps for part in step.change.parts}
    if unknown := sorted(set(consumers) - recorded):
        raise InvalidInput(f"The journal has no change of consumer {', '.join(unknown)}.")
    if not consumers:
        return steps[::-1]
    return [step for step in reversed(steps) if _changes_any(step, consumers)]


def _parse_change(record: JournalRecord) -> Step:
    document = {key: record[key] for key in _CHANGE_KEYS}
    return parse_step(record["finding"], record["kind"], document)


def _forget_skipped(steps: list[Step], record: JournalRecord) -> None:
    """Remove the last of `steps` that a record is about, if that was not made."""
    if record.get("outcome") != SKIPPED:
        return
    for position in reversed(range(len(steps))):
        if steps[position].finding == record.get("finding"):
            del steps[position]
            return


def _changes_any(step: Step, consumers: Collection[str]) -> bool:
    return any(part.consumer in consumers for part in step.change.parts)
