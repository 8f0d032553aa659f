# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""The planned changes, each proven anew, journalled, written and read back: the only way from a plan to Placement."""

from __future__ import annotations

import collections
import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.clock import (
    read_monotonic_clock,
)
from ansible_collections.osops.placement.plugins.module_utils._common.errors import (
    AllocationConflict,
    CloudError,
    JournalError,
    UnsoundReading,
)
from ansible_collections.osops.placement.plugins.module_utils._common.parallel import WORKERS
from ansible_collections.osops.placement.plugins.module_utils._models.change import (
    FAILED,
    OUTCOME_BY_ACTION,
    SKIPPED,
    build_body,
    is_same_allocation,
)
from ansible_collections.osops.placement.plugins.module_utils._plan.limits import (
    MAX_FAILURES,
    explain_abort,
)
from ansible_collections.osops.placement.plugins.module_utils._rules.engine import judge_consumers
from ansible_collections.osops.placement.plugins.module_utils._snapshot.index import SnapshotIndex
from ansible_collections.osops.placement.plugins.module_utils._snapshot.soundness import (
    list_failed_checks,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ansible_collections.osops.placement.plugins.module_utils._clients.allocation_writer import (
        AllocationWriter,
    )
    from ansible_collections.osops.placement.plugins.module_utils._collector.collector import (
        Collector,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.policy import Policy
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Snapshot
    from ansible_collections.osops.placement.plugins.module_utils._models.verdict import Finding
    from ansible_collections.osops.placement.plugins.module_utils._plan.steps import Step, TreeStep
    from ansible_collections.osops.placement.plugins.module_utils._remediation.journal import (
        Journal,
    )

OUTCOMES = (*dict.fromkeys(OUTCOME_BY_ACTION.values()), SKIPPED, FAILED)

# So many are proven side by side and then written together: a proof is at most as old as it takes to prove these.
_BATCH_SIZE = WORKERS

# In seconds. A service that does not answer for long, or a laptop that sleeps, lets a proof grow old.
_MAX_PROOF_AGE = 60

# The kind for which every host must have been asked for its servers.
_UNKNOWN_CONSUMER = "unknown_consumer"


@d.dataclass(frozen=True)
class Outcome:
    """What became of one step (one of `OUTCOMES`), and why where it was not made."""

    step: Step | TreeStep
    outcome: str
    reason: str = ""
    # A part of it was made, or may have been, before the rest failed.
    partly: bool = False

    @property
    def changed(self) -> bool:
        """Whether Placement was changed, or would be in check mode."""
        return self.outcome in OUTCOME_BY_ACTION.values()

    def as_dict(self) -> dict[str, t.Any]:
        return {**self.step.as_dict(), "outcome": self.outcome, "reason": self.reason}


def count_failed(outcomes: Iterable[Outcome]) -> int:
    return sum(known.outcome == FAILED for known in outcomes)


class _Unproven(Exception):
    """Some of a batch could not be asked about, and nothing of it was written."""


class Remediation:
    """One run over a plan; without a journal (check mode) everything is proven and nothing written."""

    def __init__(
        self,
        reading: Collector,
        policy: Policy,
        writer: AllocationWriter,
        journal: Journal | None,
        max_failures: int = MAX_FAILURES,
    ) -> None:
        self._reading = reading
        self._policy = policy
        self._writer = writer
        self._journal = journal
        self._max_failures = max_failures

    def run(self, steps: Sequence[Step], stopped: Callable[[], str]) -> list[Outcome]:
        """Prove each of `steps` anew and make it, in their order, a few at once.

        One that cannot be made does not keep the others from being made; a cell that stops answering does, a journal that cannot
        be written, too many failures, and whatever `stopped` says. Raises GateClosed before the first when the cloud as a whole is not sound.
        """
        listings = self._reading.collect_listings(
            with_servers=any(step.kind == _UNKNOWN_CONSUMER for step in steps)
        )
        if closed := list_failed_checks(listings):
            raise UnsoundReading(f"Nothing may be changed now. {' '.join(closed)}")
        outcomes: list[Outcome] = []
        batches = collections.deque(
            steps[start : start + _BATCH_SIZE] for start in range(0, len(steps), _BATCH_SIZE)
        )
        while batches:
            if why := stopped() or explain_abort(count_failed(outcomes), self._max_failures):
                return outcomes + [Outcome(left, SKIPPED, why) for left in steps[len(outcomes) :]]
            batch = batches.popleft()
            try:
                outcomes += self._remediate_batch(batch, listings, stopped)
            except (UnsoundReading, JournalError) as error:
                return outcomes + [
                    Outcome(left, FAILED, str(error)) for left in steps[len(outcomes) :]
                ]
            except _Unproven as error:
                if len(batch) > 1:
                    batches.extendleft([step] for step in reversed(batch))
                else:
                    outcomes.append(Outcome(batch[0], FAILED, str(error)))
            except Exception as error:
                # What was done so far must be told whatever happens, a fault of our own included.
                outcomes += [
                    Outcome(step, FAILED, f"An unexpected {type(error).__name__}: {error}")
                    for step in batch
                ]
        return outcomes

    def _remediate_batch(
        self, batch: Sequence[Step], listings: Snapshot, stopped: Callable[[], str]
    ) -> list[Outcome]:
        began = read_monotonic_clock()
        try:
            proven = self._verify_batch(batch, listings)
        except UnsoundReading:
            raise
        except Exception as error:
            told = (
                error
                if isinstance(error, CloudError)
                else f"An unexpected {type(error).__name__}: {error}"
            )
            raise _Unproven(f"It could not be proven anew. {told}") from error
        if read_monotonic_clock() - began > _MAX_PROOF_AGE:
            raise _Unproven(
                f"Its proof took longer than {_MAX_PROOF_AGE} seconds, and was too old at its end to rely on."
            )
        ready = [step for step, outcome in zip(batch, proven, strict=True) if outcome.changed]
        if self._journal is None or not ready:
            return proven
        if why := stopped():
            # A service that hardly answers can have kept the proof waiting for minutes.
            return [
                Outcome(outcome.step, SKIPPED, why) if outcome.changed else outcome
                for outcome in proven
            ]
        made = {
            outcome.step.finding: outcome for outcome in self._write_batch(ready, self._journal)
        }
        return [made.get(outcome.step.finding, outcome) for outcome in proven]

    def _verify_batch(self, batch: Sequence[Step], listings: Snapshot) -> list[Outcome]:
        """Return for each step the outcome that it would have, from a new proof and then a last look at its consumer."""
        now = self._reading.refresh_evidence(listings, [step.change.consumer for step in batch])
        if closed := list_failed_checks(now):
            raise UnsoundReading(f"Nothing more is changed in this run. {' '.join(closed)}")
        findings = {
            finding.consumer: finding
            for finding in judge_consumers(SnapshotIndex(now), self._policy)
        }
        reasons = {step.finding: _find_mismatch(step, now, findings) for step in batch}
        moved = self._writer.find_conflicts(
            [step.change for step in batch if not reasons[step.finding]]
        )
        reasons |= {
            step.finding: str(moved[step.change.consumer])
            for step in batch
            if step.change.consumer in moved
        }
        return [
            Outcome(step, SKIPPED, reason)
            if (reason := reasons[step.finding])
            else Outcome(step, OUTCOME_BY_ACTION[step.change.action])
            for step in batch
        ]

    def _write_batch(self, steps: Sequence[Step], journal: Journal) -> list[Outcome]:
        journal.record_before(steps)
        errors = self._writer.write([step.change for step in steps])
        outcomes = [_make_outcome(step, error) for step, error in zip(steps, errors, strict=True)]
        try:
            journal.record_after(outcomes)
        except JournalError as error:
            # The changes are made and must be told as made; that their end is not in the journal is told beside it.
            return [
                d.replace(outcome, reason=f"{outcome.reason} {error}".strip())
                for outcome in outcomes
            ]
        return outcomes


def _find_mismatch(step: Step, now: Snapshot, findings: Mapping[str | None, Finding]) -> str:
    """Say what no longer holds of `step`; nothing when it is proven as it was at detection."""
    change = step.change
    evidence = now.evidence.get(change.consumer)
    allocation = evidence.allocation.value if evidence else None
    if allocation is None or (change.before["allocations"] and not allocation.resources):
        return "It holds nothing any more."
    if is_same_allocation(build_body(allocation), change.after):
        return "Nothing is left to change: it holds what it should."
    if allocation.generation != change.generation:
        return f"It changed since detection: generation {change.generation} then, {allocation.generation} now."
    finding = findings.get(change.consumer)
    if finding is None:
        return "It is healthy now."
    if finding.kind != step.kind or finding.change is None:
        return f"It is no longer proven: {finding.reason}"
    if finding.change != change:
        return "What would be written is no longer what detection proposed."
    return ""


def _make_outcome(step: Step, error: CloudError | None) -> Outcome:
    if error is None:
        return Outcome(step, OUTCOME_BY_ACTION[step.change.action])
    return Outcome(step, SKIPPED if isinstance(error, AllocationConflict) else FAILED, str(error))
