# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The planned changes of allocations, each verified again, journaled, written and read back.

This is the only way from a plan to the allocations in Placement.
"""

from __future__ import annotations

import collections
import dataclasses as d
import typing as t
from collections.abc import Callable, Iterator, Mapping, Sequence

from ..._common.clock import read_monotonic_clock
from ..._common.errors import (
    CloudError,
    JournalError,
    PlacementToolsError,
    Reason,
    RecordWithoutAllocations,
    UnsoundReading,
    name_class,
)
from ..._common.parallel import WORKERS
from ..._common.progress import PROGRESS, Stage
from ..clients.allocation_writer import AllocationWriter
from ..facts.index import SnapshotIndex
from ..facts.soundness import list_failed_checks
from ..judging.engine import judge_consumers
from ..models.change import (
    BLOCKED,
    FAILED,
    OUTCOME_BY_ACTION,
    SKIPPED,
    build_body,
    is_same_allocation,
)
from ..models.finding import Finding
from ..models.snapshot import Listings, Snapshot
from ..options.policy import Policy
from ..options.run import FailureOptions
from ..plan.plan import Step
from ..reading.renewal import RenewingCollector
from .group_check import EVERY_HOST, GroupCheck
from .journal import Journal
from .outcomes import (
    Outcome,
    complete_outcomes,
    conclude_write,
    describe_error,
    explain_end,
    require_no_failures,
)

OUTCOMES = (*dict.fromkeys(OUTCOME_BY_ACTION.values()), SKIPPED, FAILED)

# How many changes are written together.
_PART_SIZE = WORKERS
# Each proof ends with a listing of all services, which takes Nova half a second for so many of
# them. That is longer than to prove one more part side by side, which then needs no listing of its
# own.
_SERVICES_PER_PART = 1000
_MAX_PARTS_PER_PROOF = 8
# Without a write after it, a proof cannot be too old.
_PROOFS_WITHOUT_WRITES = 4

# These are proven and written once more, at the end of a run.
_TO_REPEAT = name_class(RecordWithoutAllocations)

# In seconds. A proof grows old while a service does not answer, or while a laptop sleeps.
MAX_PROOF_AGE = 60
TOO_OLD = Reason(
    "proof_too_old",
    f"Its proof took longer than {MAX_PROOF_AGE} seconds, and was then too old to rely on.",
)


class _Unproven(PlacementToolsError):
    """Some steps could not be verified again, and nothing of them was written."""


@d.dataclass(frozen=True)
class Remediation:
    """One run over a plan.

    journal: None in check mode, where everything is proven and nothing is written.
    """

    reading: RenewingCollector
    policy: Policy
    writer: AllocationWriter
    journal: Journal | None
    max_failures: int = FailureOptions.max_failures.default
    group_check: GroupCheck = EVERY_HOST

    def run(self, steps: Sequence[Step], stopped: Callable[[], Reason]) -> list[Outcome]:
        """Prove each of `steps` again and make it, in their order, a few at once.

        A step that cannot be made does not keep the others from being made. The run ends early for
        a cell that stops answering, a journal that cannot be written, too many failures, and
        anything that `stopped` returns.
        Raises UnsoundReading before the first step when the cloud as a whole is not sound.
        """
        listings = self.reading.begin_renewal(
            {step.change.consumer for step in steps}, list_providers(steps)
        )
        require_no_failures(list_failed_checks(listings), "Nothing may be changed now.")
        outside = self._find_steps_outside(steps, listings)
        inside = [step for step in steps if step.finding not in outside]
        with PROGRESS.run_stage("changes", len(inside)) as stage:
            made = self._make_changes(inside, self._choose_batch_size(listings), stopped, stage)
        by_finding = {outcome.step.finding: outcome for outcome in made}
        by_finding.update(outside)
        return [by_finding[step.finding] for step in steps]

    def _find_steps_outside(self, steps: Sequence[Step], listings: Listings) -> dict[str, Outcome]:
        """Return by finding the outcomes of the steps whose hosts have left the plan's groups."""
        reasons = self.group_check.explain_changes([step.change for step in steps], listings)
        return {
            step.finding: Outcome(step, SKIPPED, reason)
            for step, reason in zip(steps, reasons, strict=True)
            if reason
        }

    def _choose_batch_size(self, listings: Listings) -> int:
        """Return how many changes are proven side by side.

        A proof is at most as old as it takes to prove these.
        """
        parts = 1 + len(listings.services.value or ()) // _SERVICES_PER_PART
        size = _PART_SIZE * min(parts, _MAX_PARTS_PER_PROOF)
        return size * _PROOFS_WITHOUT_WRITES if self.journal is None else size

    def _make_changes(
        self, steps: Sequence[Step], batch_size: int, stopped: Callable[[], Reason], stage: Stage
    ) -> list[Outcome]:
        outcomes: list[Outcome] = []
        # With those that are made once more, each with a second outcome that counts.
        steps = list(steps)

        def explain() -> Reason | None:
            return explain_end(outcomes, stopped, self.max_failures)

        batches = collections.deque(_split(steps, batch_size))
        while batches:
            if why := explain():
                return complete_outcomes(outcomes, steps, Outcome, SKIPPED, why)
            batch = batches.popleft()
            begun = len(outcomes)
            try:
                for made in self._remediate_batch(batch, explain):
                    outcomes += made
                    stage.show_done(len(outcomes))
                    refused = {each.step.finding for each in made if each.reason.id == _TO_REPEAT}
                    again = [step for step in batch if step.finding in refused]
                    steps += again
                    batches += _split(again, batch_size)
            except (UnsoundReading, JournalError) as error:
                return complete_outcomes(outcomes, steps, Outcome, FAILED, error.reason)
            except _Unproven as error:
                left = batch[len(outcomes) - begun :]
                if len(left) > 1:
                    # One step must not keep the others of its batch from being made.
                    size = _PART_SIZE if len(left) > _PART_SIZE else 1
                    batches.extendleft(reversed(_split(left, size)))
                else:
                    outcomes.append(Outcome(left[0], FAILED, error.reason))
            except Exception as error:
                # The result must have all earlier outcomes, even after a fault of our own.
                reason = describe_error(error)
                left = batch[len(outcomes) - begun :]
                outcomes += [Outcome(step, FAILED, reason) for step in left]
            stage.show_done(len(outcomes))
        return outcomes

    def _remediate_batch(
        self, batch: Sequence[Step], explain_end: Callable[[], Reason | None]
    ) -> Iterator[list[Outcome]]:
        """Prove the steps of a batch again, and yield the outcomes of some of them at a time.

        The allocations are read once more before each write, and the age of the proof is checked.
        Raises UnsoundReading when the cloud is not sound, JournalError, and _Unproven for every
        other failure before a write.
        """
        began = read_monotonic_clock()
        reasons = _expect_proof(self._explain_mismatches, batch)
        blocked: dict[str, Reason | None] = {}
        part_size = len(batch) if self.journal is None else _PART_SIZE
        for part in _split(batch, part_size):
            # A service that hardly answers can have kept the proof waiting for minutes.
            why = explain_end() if self.journal is not None else None
            if not why:
                reasons |= _expect_proof(self._explain_conflicts, part, reasons)
                blocked |= _expect_proof(self._foresee_refusals, part, reasons)
            proven = [_make_proven_outcome(step, reasons, blocked) for step in part]
            if why:
                yield [Outcome(end.step, SKIPPED, why) if end.changed else end for end in proven]
            else:
                yield self._write_proven(part, proven, began)

    def _explain_mismatches(self, batch: Sequence[Step]) -> dict[str, Reason | None]:
        """Return by finding what a new proof shows to be no longer true of a step."""
        consumers = [step.change.consumer for step in batch]
        now = self.reading.renew(consumers)
        require_no_failures(list_failed_checks(now), "Nothing more is changed in this run.")
        judged = judge_consumers(SnapshotIndex(now), self.policy)
        findings = {finding.consumer: finding for finding in judged}
        contradictions = self.reading.explain_contradictions(now)
        return {
            step.finding: _find_mismatch(step, now, findings)
            or contradictions.get(step.change.consumer)
            for step in batch
        }

    def _explain_conflicts(
        self, part: Sequence[Step], reasons: Mapping[str, Reason | None]
    ) -> dict[str, Reason | None]:
        """Return by finding which proven steps do not start from the current allocations."""
        proven = [step for step in part if not reasons[step.finding]]
        conflicts = self.writer.find_conflicts([step.change for step in proven])
        return {
            step.finding: conflicts[step.change.consumer].reason
            for step in proven
            if step.change.consumer in conflicts
        }

    def _foresee_refusals(
        self, part: Sequence[Step], reasons: Mapping[str, Reason | None]
    ) -> dict[str, Reason | None]:
        """Return by finding why Placement would refuse proven steps for its capacity."""
        proven = [step for step in part if not reasons[step.finding]]
        refusals = self.writer.foresee([step.change for step in proven], self.journal is None)
        return {step.finding: why for step, why in zip(proven, refusals, strict=True)}

    def _write_proven(
        self, part: Sequence[Step], proven: list[Outcome], began: float
    ) -> list[Outcome]:
        """Write the steps of a part that are proven, and return the outcomes of all of them.

        began: when the first request of the proof was sent.
        """
        ready = [step for step, outcome in zip(part, proven, strict=True) if outcome.changed]
        if self.journal is None or not ready:
            return proven
        if _is_too_old(began):
            raise _Unproven(TOO_OLD)
        written = self._write_batch(ready, self.journal, began)
        by_finding = {outcome.step.finding: outcome for outcome in written}
        return [by_finding.get(outcome.step.finding, outcome) for outcome in proven]

    def _write_batch(self, steps: Sequence[Step], journal: Journal, began: float) -> list[Outcome]:
        """Record the steps, write those that nothing has overtaken, and record the outcomes.

        began: when their proof began.
        """
        journal.record_before(steps)
        by_finding = self._find_overtaken(steps, began)
        ready = [step for step in steps if step.finding not in by_finding]
        errors = self.writer.write([step.change for step in ready])
        for step, error in zip(ready, errors, strict=True):
            by_finding[step.finding] = _make_outcome(step, error)
        outcomes = [by_finding[step.finding] for step in steps]
        try:
            journal.record_after(outcomes)
        except JournalError as error:
            # The changes are made and must be reported as made, although the journal lacks
            # their end.
            return [add_reason(outcome, error.reason) for outcome in outcomes]
        return outcomes

    def _find_overtaken(self, steps: Sequence[Step], began: float) -> dict[str, Outcome]:
        """Return by finding the outcomes of the steps that must not be written any more.

        A journal on a network file system can take long. What Nova does meanwhile may be in its own
        database alone, and a consumer that was emptied begins again at generation 1.
        """
        try:
            conflicts = self.writer.find_conflicts([step.change for step in steps])
        except CloudError as error:
            reason = error.reason.reword(
                f"It could not be read again right before the write. {error}"
            )
            return {step.finding: Outcome(step, FAILED, reason) for step in steps}
        if _is_too_old(began):
            return {step.finding: Outcome(step, FAILED, TOO_OLD) for step in steps}
        return {
            step.finding: _make_outcome(step, conflicts[step.change.consumer])
            for step in steps
            if step.change.consumer in conflicts
        }


def list_providers(steps: Sequence[Step]) -> set[str] | None:
    """Return the providers on which the steps find an allocation.

    The result is None if a step adds amounts: which compute node these have to be on, only the
    whole listing says.
    """
    if any(step.change.allocates for step in steps):
        return None
    parts = [part for step in steps for part in step.change.parts]
    return {provider for part in parts for provider in part.before["allocations"]}


def _is_too_old(began: float) -> bool:
    """Return whether a proof that began then is too old to rely on."""
    return read_monotonic_clock() - began > MAX_PROOF_AGE


def _split(steps: Sequence[Step], size: int) -> list[Sequence[Step]]:
    return [steps[start : start + size] for start in range(0, len(steps), size)]


def _expect_proof(
    prove: Callable[..., dict[str, Reason | None]], *arguments: t.Any
) -> dict[str, Reason | None]:
    """Return what `prove` returns, and raise _Unproven where it fails.

    Raises UnsoundReading as `prove` does.
    """
    try:
        return prove(*arguments)
    except UnsoundReading:
        raise
    except Exception as error:
        reason = describe_error(error)
        raise _Unproven(reason.reword(f"It could not be verified again. {reason}")) from error


def _make_proven_outcome(
    step: Step, reasons: Mapping[str, Reason | None], blocked: Mapping[str, Reason | None]
) -> Outcome:
    if reason := reasons[step.finding]:
        return Outcome(step, SKIPPED, reason)
    if reason := blocked.get(step.finding):
        return Outcome(step, BLOCKED, reason)
    return Outcome(step, OUTCOME_BY_ACTION[step.change.action])


def add_reason(outcome: Outcome, more: Reason) -> Outcome:
    """Return an outcome whose reason ends with `more`."""
    return d.replace(outcome, reason=outcome.reason.extend(more) if outcome.reason else more)


def _find_mismatch(
    step: Step, now: Snapshot, findings: Mapping[str | None, Finding]
) -> Reason | None:
    """Return what is no longer true of `step`, None when it is proven as at detection."""
    change = step.change
    evidence = now.evidence.get(change.consumer)
    allocation = evidence.allocation.value if evidence else None
    if allocation is None or (change.before["allocations"] and not allocation.resources):
        return Reason("allocations_gone", "It no longer has any allocations.")
    if is_same_allocation(build_body(allocation), change.after):
        return Reason(
            "allocations_already_right",
            "There is nothing left to change: its allocations are right.",
        )
    if allocation.generation != change.generation:
        return Reason(
            "generation_changed",
            f"It has changed since detection: its generation was {change.generation} then and "
            f"is {allocation.generation} now.",
        )
    finding = findings.get(change.consumer)
    if finding is None:
        return Reason("healthy_now", "It is healthy now.")
    if finding.kind != step.kind or finding.change is None:
        return finding.reason.reword(f"It is no longer proven: {finding.reason}")
    if finding.change != change:
        return Reason(
            "write_differs", "What would be written is no longer what detection proposed."
        )
    return None


def _make_outcome(step: Step, error: CloudError | None) -> Outcome:
    done = OUTCOME_BY_ACTION[step.change.action]
    return Outcome(step, *conclude_write(error, done))
