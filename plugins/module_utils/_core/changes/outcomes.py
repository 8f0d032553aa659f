# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A run that writes: its lock and journal, its outcomes step by step, and the file of them."""

from __future__ import annotations

import contextlib
import dataclasses as d
import typing as t
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ..._common.context import Context
from ..._common.errors import (
    NO_REASON,
    AllocationConflict,
    CapacityRefused,
    CloudError,
    InvalidInput,
    JournalError,
    Reason,
    UnsoundReading,
)
from ..._common.json_files import write_json
from ..._common.progress import PROGRESS
from ..._common.text import make_printable, summarize_checks
from ..findings.entries import FORMAT, MAX_RETURNED
from ..models.change import BLOCKED, FAILED, OUTCOME_BY_ACTION, RESTORED, SKIPPED, Change
from ..models.codec import Json
from ..plan.limits import explain_abort
from ..plan.plan import Step, TreeStep
from ..run.folder import note
from ..run.lock import acquire_lock
from ..run.signals import watch_for_stop
from .journal import Journal
from .records import TreeAddition, TreeRecord

# A longer message takes several lines of a terminal.
_MAX_MESSAGE = 400
_CHANGED = {*OUTCOME_BY_ACTION.values(), RESTORED}

_Step = t.TypeVar("_Step")
_Outcome = t.TypeVar("_Outcome", bound="Outcome")


@contextlib.contextmanager
def begin_writing(
    context: Context, stage: str, endpoint: str
) -> Iterator[tuple[Journal | None, Callable[[], Reason]]]:
    """Keep other runs from writing to a Placement for as long as the context lasts.

    Yield the journal and a function that returns why to stop, if anything does. In check mode there
    is no journal, without which nothing can write.
    """
    options = context.options
    journal = None if context.check_mode else Journal(options["output_dir"], endpoint)
    if journal:
        note(context, stage, journal=journal.path)
    with (
        watch_for_stop() as stopped,
        acquire_lock(endpoint, options["lock_timeout"], stopped, journal is not None),
    ):
        yield journal, stopped


@d.dataclass(frozen=True)
class Outcome:
    """The outcome of one step of a plan, and why where it was not made."""

    step: Step | TreeStep
    outcome: str
    reason: Reason = NO_REASON
    # A part of the step was made, or may have been, before the rest failed.
    partly: bool = False

    @property
    def changed(self) -> bool:
        """Whether Placement was changed as it should, or would be in check mode."""
        return self.outcome in _CHANGED

    @property
    def failed(self) -> bool:
        """Whether it counts for the failures after which a run gives up."""
        return self.outcome == FAILED

    def as_dict(self) -> Json:
        return {**self.step.as_dict(), **self._describe()}

    def as_record(self) -> Mapping[str, object]:
        """Return what a journal has of the outcome."""
        step = self.step
        return {"finding": step.finding, "consumer": step.subject, **self._describe()}

    def _describe(self) -> dict[str, str]:
        reason = self.reason
        return {"outcome": self.outcome, "reason": str(reason), "reason_id": reason.id}


@d.dataclass(frozen=True)
class Restoration(Outcome):
    """The outcome of one change to restore.

    It has the write if there was one, and else the reason why there was none.
    """

    step: Step | TreeRecord
    write: Change | TreeAddition | None = None
    # It cannot be restored, and no request was sent for it.
    hopeless: bool = False

    @property
    def failed(self) -> bool:
        # A provider that is gone is no failure: the other changes do not depend on it.
        return super().failed and not self.hopeless

    def as_dict(self) -> Json:
        step = self.step
        tree = step if isinstance(step, TreeRecord) else None
        return {
            "finding": step.finding,
            "kind": step.kind,
            "consumer": None if tree else step.subject,
            "provider": {"uuid": tree.root.uuid, "name": tree.root.name} if tree else None,
            **self._describe(),
            "write": self.write.as_dict() if self.write else None,
        }


def run_steps(
    steps: Sequence[_Step],
    run_step: Callable[[_Step], _Outcome],
    make_outcome: Callable[[_Step, str, Reason], _Outcome],
    stopped: Callable[[], Reason],
    max_failures: int,
    failed_before: int = 0,
) -> list[_Outcome]:
    """Return the outcome of each of `steps`, which are made in their order.

    A step that fails does not keep the others from being made. The run ends early for an unsound
    reading, a journal that cannot be written, too many failures, and anything that `stopped`
    returns.

    make_outcome: makes the outcome of a step from the outcome's name and its reason.
    failed_before: how many changes of the run have failed already.
    """
    outcomes: list[_Outcome] = []
    with PROGRESS.run_stage("changes", len(steps)) as stage:
        for step in steps:
            if why := explain_end(outcomes, stopped, max_failures, failed_before):
                return complete_outcomes(outcomes, steps, make_outcome, SKIPPED, why)
            try:
                outcomes.append(run_step(step))
            except (UnsoundReading, JournalError) as error:
                return complete_outcomes(outcomes, steps, make_outcome, FAILED, error.reason)
            except Exception as error:
                # The result must have all earlier outcomes, even after a fault of our own.
                outcomes.append(make_outcome(step, FAILED, describe_error(error)))
            stage.show_done(len(outcomes))
    return outcomes


def explain_end(
    outcomes: Iterable[Outcome],
    stopped: Callable[[], Reason],
    max_failures: int,
    failed_before: int = 0,
) -> Reason | None:
    """Return why nothing more may be tried after these outcomes; None or empty when more may."""
    failed = failed_before + sum(outcome.failed for outcome in outcomes)
    return stopped() or explain_abort(failed, max_failures)


def complete_outcomes(
    outcomes: list[_Outcome],
    steps: Sequence[_Step],
    make_outcome: Callable[[_Step, str, Reason], _Outcome],
    outcome: str,
    reason: Reason,
) -> list[_Outcome]:
    """Return `outcomes`, and after them one for each of `steps` that has none yet."""
    left = steps[len(outcomes) :]
    return outcomes + [make_outcome(step, outcome, reason) for step in left]


def describe_error(error: Exception) -> Reason:
    """Return the reason of an error of the cloud, or any other error as a reason."""
    if isinstance(error, CloudError):
        return error.reason
    return Reason("unexpected_error", f"An unexpected {type(error).__name__}: {error}")


def conclude_write(error: CloudError | None, done: str) -> tuple[str, Reason]:
    """Return the outcome of a write: `done`, unless it raised an error, which is the reason."""
    if error is None:
        return done, NO_REASON
    if isinstance(error, CapacityRefused):
        return BLOCKED, error.reason
    # The consumer moved on, which is not a fault of this run.
    return SKIPPED if isinstance(error, AllocationConflict) else FAILED, error.reason


def require_no_failures(failed_checks: Sequence[Reason], consequence: str) -> None:
    """Raise UnsoundReading, which begins with the consequence, if a check of a reading failed."""
    if failed_checks:
        failures = summarize_checks(failed_checks)
        raise UnsoundReading(failed_checks[0].reword(f"{consequence} {failures}"))


def count_outcomes(outcomes: Iterable[Outcome], name: str) -> int:
    """Return how many of `outcomes` have this name."""
    return sum(outcome.outcome == name for outcome in outcomes)


def conclude_run(
    outcomes: Sequence[Outcome],
    names: Sequence[str],
    journal: Journal | None,
    why_stopped: str,
    path: str,
    verb: str,
) -> dict[str, t.Any]:
    """Write the outcomes to the file `path`, and return the result of the module.

    names: all outcomes that there can be, in the order of the tally; `blocked` is in it only where
        there is one.
    journal: None in check mode.
    why_stopped: why the run ended early, empty when it did not.
    verb: what was done with the changes, such as `made`.
    """
    document: dict[str, t.Any] = {
        "format": FORMAT,
        "check_mode": journal is None,
        "tally": _count_by_name(outcomes, names),
        "journal": journal.path if journal and journal.written else None,
        "outcomes": [outcome.as_dict() for outcome in outcomes],
    }
    result: dict[str, t.Any] = {
        "changed": any(outcome.changed or outcome.partly for outcome in outcomes),
        "tally": document["tally"],
        # The file has all of them.
        "outcomes": document["outcomes"][:MAX_RETURNED],
        "stopped": str(why_stopped),
        "journal": document["journal"],
    }
    # A file that cannot be written must not hide what the run has changed.
    errors = _list_errors(outcomes, journal, why_stopped, verb)
    try:
        write_json(path, document)
    except InvalidInput as error:
        errors.append(f"The outcomes could not be written: {error}")
    if errors:
        return {**result, "failed": True, "msg": " ".join(errors)}
    return result


def _is_failure(outcome: Outcome) -> bool:
    """Return whether a run fails for it. Blocked findings are there every night, and do not count.

    Who restores has asked for just this change.
    """
    is_blocked = outcome.outcome == BLOCKED and isinstance(outcome, Restoration)
    return is_blocked or outcome.outcome == FAILED


def _count_by_name(outcomes: Sequence[Outcome], names: Sequence[str]) -> dict[str, int]:
    tally = {name: count_outcomes(outcomes, name) for name in names}
    if blocked := count_outcomes(outcomes, BLOCKED):
        tally[BLOCKED] = blocked
    return tally


def _list_errors(
    outcomes: Sequence[Outcome], journal: Journal | None, why_stopped: str, verb: str
) -> list[str]:
    """Return a sentence for everything that went wrong."""
    errors = []
    if why_stopped:
        made = sum(outcome.changed for outcome in outcomes)
        errors.append(
            f"{why_stopped} {made} of {len(outcomes)} changes were {verb}: run again for the rest."
        )
    failures = [outcome.reason for outcome in outcomes if _is_failure(outcome)]
    if failures:
        untried = sum(outcome.reason.id == "too_many_failures" for outcome in outcomes)
        left = f", and {untried} were not tried" if untried else ""
        summary = (
            f"{len(failures)} of {len(outcomes)} changes could not be {verb}{left}. The first: "
        )
        # The outcome of that change has all of its reason.
        errors.append(make_printable(f"{summary}{failures[0]}", _MAX_MESSAGE))
    if journal and journal.broken:
        errors.append(f"The journal {journal.path} is not complete.")
    return errors
