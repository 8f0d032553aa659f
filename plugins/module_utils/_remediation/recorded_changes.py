# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""The changes of allocations in a journal, and by when each was made."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._common.times import seconds_between
from ansible_collections.osops.placement.plugins.module_utils._models.change import DELETE_PROVIDERS
from ansible_collections.osops.placement.plugins.module_utils._models.outcomes import SKIPPED
from ansible_collections.osops.placement.plugins.module_utils._plan.steps import Step, parse_step
from ansible_collections.osops.placement.plugins.module_utils._remediation.journal import (
    AFTER,
    BEFORE,
    parse_record,
)
from ansible_collections.osops.placement.plugins.module_utils._remediation.tree_additions import (
    RESTORE_PROVIDERS,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Iterable

    from ansible_collections.osops.placement.plugins.module_utils._remediation.journal import (
        JournalRecord,
    )

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


# How much later Placement may have written a change than its record says: in seconds. The journal
# and the restore can be of two machines, and a batch of changes is written after all its records.
_CLOCKS_APART = 10
_BATCH_LASTS = 60


@d.dataclass(frozen=True)
class RecordedStep(Step):
    """A change as a journal has it, and by when it was made; None if that is not known."""

    made_by: str | None = None
    # Whether that is the time of its end. A run that was killed recorded only the beginning.
    has_ended: bool = False

    def explain_rewrite(self, consumer: str, age_seconds: int | None, now: str) -> str:
        """Return why the allocation of a consumer may be of a later write; empty if it is not.

        age_seconds: the time since the newest write, by Placement's own clock.
        """
        elapsed = seconds_between(self.made_by, now)
        if elapsed is None or age_seconds is None:
            return (
                f"It is not known whether the allocations of {consumer} were written again since: "
                "use the journal of the run that made the change."
            )
        tolerance = _CLOCKS_APART if self.has_ended else _CLOCKS_APART + _BATCH_LASTS
        if age_seconds + tolerance < elapsed:
            return f"The allocations of {consumer} were written again since."
        return ""


def find_changes(
    records: Iterable[JournalRecord], placement_endpoint: str, consumers: Collection[str]
) -> list[RecordedStep]:
    """Return the changes of the `consumers` in a journal, of all without any, the newest first.

    A change that Placement refused because its consumer had changed was not made by this run,
    whatever the consumer has now.
    Raises InvalidInput for a journal of another cloud, and for consumers that are not in it.
    """
    steps: list[RecordedStep] = []
    for record in records:
        if record.get("action") in (DELETE_PROVIDERS, RESTORE_PROVIDERS):
            continue
        if record["event"] != AFTER:
            steps.append(parse_record(record, placement_endpoint, _parse_change))
        else:
            _end_last_step(steps, record)
    recorded = {part.consumer for step in steps for part in step.change.parts}
    if unknown := sorted(set(consumers) - recorded):
        raise InvalidInput(f"The journal has no change of consumer {', '.join(unknown)}.")
    if not consumers:
        return steps[::-1]
    return [step for step in reversed(steps) if _changes_any(step, consumers)]


def _parse_change(record: JournalRecord) -> RecordedStep:
    document = {key: record[key] for key in _CHANGE_KEYS}
    step = parse_step(record["finding"], record["kind"], document)
    # A plan can wait for days until it is applied.
    made_by = _get_time(record) if record["event"] == BEFORE else None
    return RecordedStep(step.finding, step.kind, step.change, made_by)


def _get_time(record: JournalRecord) -> str | None:
    moment = record.get("at")
    return moment if isinstance(moment, str) else None


def _end_last_step(steps: list[RecordedStep], record: JournalRecord) -> None:
    """Record the end of the last of `steps` that a record is about, or remove it if not made."""
    for position in reversed(range(len(steps))):
        if steps[position].finding != record.get("finding"):
            continue
        if record.get("outcome") == SKIPPED:
            del steps[position]
        else:
            made_by = _get_time(record)
            steps[position] = d.replace(steps[position], made_by=made_by, has_ended=True)
        return


def _changes_any(step: Step, consumers: Collection[str]) -> bool:
    return any(part.consumer in consumers for part in step.change.parts)
