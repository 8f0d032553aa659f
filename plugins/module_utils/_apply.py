# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""The only code that writes to Placement.

Every write is a `PUT /allocations/{consumer}` that carries the generation under which the consumer was judged, so that
Placement refuses it when anything moved. `DELETE /allocations/{consumer}` has no such guard and is never used.
"""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._case import Landscape
from ansible_collections.osops.placement.plugins.module_utils._change import document
from ansible_collections.osops.placement.plugins.module_utils._errors import AllocationConflict, CloudError, GateClosed, JournalError
from ansible_collections.osops.placement.plugins.module_utils._gates import all_answer, closed_gates
from ansible_collections.osops.placement.plugins.module_utils._judge import judge_consumers
from ansible_collections.osops.placement.plugins.module_utils._placement import PlacementReader

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping, Sequence

    from ansible_collections.osops.placement.plugins.module_utils._journal import Journal
    from ansible_collections.osops.placement.plugins.module_utils._model import Policy, Snapshot
    from ansible_collections.osops.placement.plugins.module_utils._plan import Step
    from ansible_collections.osops.placement.plugins.module_utils._reading import Reading
    from ansible_collections.osops.placement.plugins.module_utils._session import Api

DONE = {"remove": "removed", "reduce": "reduced"}
SKIPPED = "skipped"
FAILED = "failed"
OUTCOMES = (*DONE.values(), SKIPPED, FAILED)

# The kind for which every host must have been asked for its servers.
_BY_ABSENCE = "forgotten_consumer"

# Up to 1.37 a consumer without a type stays without one; from 1.38 on a type must be given and `unknown` is refused.
_UNTYPED = "1.28"
_TYPED = "1.38"


@d.dataclass(frozen=True)
class Outcome:
    """What became of one step: `removed`, `reduced`, `skipped` or `failed`, and why where it was not made."""

    step: Step
    outcome: str
    reason: str = ""

    @property
    def made(self) -> bool:
        """Whether Placement was changed, or would be in check mode."""
        return self.outcome in DONE.values()

    def as_dict(self) -> dict[str, t.Any]:
        return {**self.step.as_dict(), "outcome": self.outcome, "reason": self.reason}


class AllocationWriter:
    """Writes one consumer's whole document and reads it back."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._reader = PlacementReader(api)

    def replace(self, consumer: str, before: Mapping[str, t.Any], body: Mapping[str, t.Any]) -> None:
        """Make `body` all that the consumer holds, and read it back: an answer that was lost on the way is no failure.

        Raises AllocationConflict when the consumer does not hold exactly `before`, CloudError when it does not hold `body`
        afterwards. The generation in `body` alone would not do: an emptied consumer starts again at 1, so it can come back
        to the same number with something else.
        """
        if (now := self._reader.allocation(consumer).value) is None or document(now) != before:
            raise AllocationConflict(f"Consumer {consumer} changed just now: it no longer holds what it was judged by.")
        refusal = ""
        try:
            self._put(consumer, body)
        except AllocationConflict:
            raise
        except CloudError as error:
            refusal = str(error)
        try:
            allocation = self._reader.allocation(consumer).value
        except CloudError as error:
            raise CloudError(
                f"{refusal} Whether {consumer} was changed is not known, for it could not be read back: {error}".strip()
            ) from error
        if allocation is None or document(allocation)["allocations"] != body["allocations"]:
            raise CloudError(refusal or f"Placement accepted the change of {consumer}, but reading it back shows something else.")

    def _put(self, consumer: str, body: Mapping[str, t.Any]) -> None:
        reply = self._api.write("PUT", f"/allocations/{consumer}", _TYPED if "consumer_type" in body else _UNTYPED, body)
        if reply.status == 409 and reply.code == "placement.concurrent_update":
            raise AllocationConflict(f"Placement refused to change {consumer}: {reply.detail}")
        self._api.expect(reply, f"to change the allocation of {consumer}", 204)


def carry_out(steps: Sequence[Step], reading: Reading, policy: Policy, writer: AllocationWriter, journal: Journal | None) -> list[Outcome]:
    """Prove each step anew and make it; without a journal (check mode) only prove it.

    One step that cannot be made does not keep the others from being made; a cell that stops answering does, and so does
    a journal that cannot be written. Raises GateClosed before the first when the cloud as a whole is not sound.
    """
    listings = reading.listings(with_servers=any(step.kind == _BY_ABSENCE for step in steps))
    if closed := closed_gates(listings):
        raise GateClosed(f"Nothing may be changed now. {' '.join(closed)}")
    outcomes: list[Outcome] = []
    for position, step in enumerate(steps):
        try:
            now = reading.again(listings, step.change.consumer)
            if not all_answer(now.services_after):
                raise GateClosed("A cell has stopped answering: nothing more is changed in this run.")
            outcomes.append(_carry_out_one(step, now, policy, writer, journal))
        except CloudError as error:
            outcomes.append(Outcome(step, FAILED, f"It could not be proven anew. {error}"))
        except (GateClosed, JournalError) as error:
            return outcomes + [Outcome(left, FAILED, str(error)) for left in steps[position:]]
        except Exception as error:
            # What was done so far must be told whatever happens, a fault of our own included.
            outcomes.append(Outcome(step, FAILED, f"An unexpected {type(error).__name__}: {error}"))
    return outcomes


def _carry_out_one(step: Step, now: Snapshot, policy: Policy, writer: AllocationWriter, journal: Journal | None) -> Outcome:
    if reason := _moved(step, now, policy):
        return Outcome(step, SKIPPED, reason)
    if journal is None:
        return Outcome(step, DONE[step.change.action])
    journal.record("before", **step.as_dict())
    outcome = _written(step, writer)
    try:
        journal.record("after", finding=step.finding, consumer=step.change.consumer, outcome=outcome.outcome, reason=outcome.reason)
    except Exception as error:
        # The change is made and must be told as made; that its end is not in the journal is told beside it.
        return d.replace(outcome, reason=f"{outcome.reason} {error}".strip())
    return outcome


def _moved(step: Step, now: Snapshot, policy: Policy) -> str:
    """Say what no longer holds of `step`; nothing when it is proven as it was at detection."""
    change = step.change
    allocation = now.dossiers[change.consumer].allocation.value
    if allocation is None or not allocation.resources:
        return "It holds nothing any more."
    if allocation.generation != change.generation:
        return f"It changed since detection: generation {change.generation} then, {allocation.generation} now."
    finding = next((found for found in judge_consumers(Landscape(now), policy) if found.consumer == change.consumer), None)
    if finding is None:
        return "It is healthy now."
    if finding.kind != step.kind or finding.change is None:
        return f"It is no longer proven: {finding.reason}"
    if finding.change != change:
        return "What would be written is no longer what detection proposed."
    return ""


def _written(step: Step, writer: AllocationWriter) -> Outcome:
    try:
        writer.replace(step.change.consumer, step.change.before, step.change.after)
    except AllocationConflict as conflict:
        return Outcome(step, SKIPPED, str(conflict))
    except CloudError as error:
        return Outcome(step, FAILED, str(error))
    return Outcome(step, DONE[step.change.action])
