# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!
"""Changes taken back: what a journal says was taken from a consumer is given to it again, and nothing is taken from anybody."""

from __future__ import annotations

import contextlib
import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._change import DELETE_PROVIDERS, FAILED, SKIPPED, Change, document, same_claim
from ansible_collections.osops.placement.plugins.module_utils._errors import AllocationConflict, CloudError, InvalidInput, JournalError
from ansible_collections.osops.placement.plugins.module_utils._journal import AFTER
from ansible_collections.osops.placement.plugins.module_utils._steps import Step, step_told

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from ansible_collections.osops.placement.plugins.module_utils._journal import Journal
    from ansible_collections.osops.placement.plugins.module_utils._placement import PlacementReader
    from ansible_collections.osops.placement.plugins.module_utils._writer import AllocationWriter

RESTORED = "restored"
OUTCOMES = (RESTORED, SKIPPED, FAILED)


@d.dataclass(frozen=True)
class Restoration:
    """What became of one change that was to be taken back, the write if there was one, and why not if there was none."""

    step: Step
    outcome: str
    reason: str = ""
    write: Change | None = None

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "finding": self.step.finding,
            "kind": self.step.kind,
            "consumer": self.step.change.consumer,
            "outcome": self.outcome,
            "reason": self.reason,
            "write": self.write.as_dict() if self.write else None,
        }


def changes_in(records: Iterable[Mapping[str, t.Any]], placement_endpoint: str, consumers: Collection[str]) -> list[Step]:
    """Return the changes of the `consumers` (of all without any) that a journal tells of, the newest first.

    One that Placement refused because its consumer had moved is none of ours, whatever the consumer holds now. Raises InvalidInput for a
    journal of another cloud, and for consumers of which it tells no change.
    """
    steps: list[Step] = []
    for entry in records:
        if entry.get("action") == DELETE_PROVIDERS:
            # A provider is made by its nova-compute, and nobody holds any of what is deleted.
            continue
        if entry["event"] == AFTER:
            if entry.get("outcome") == SKIPPED:
                refused = [position for position, step in enumerate(steps) if step.finding == entry.get("finding")]
                if refused:
                    del steps[refused[-1]]
            continue
        try:
            step = step_told(entry["finding"], entry["kind"], {key: entry[key] for key in _CHANGE})
            there = entry["placement_endpoint"]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(
                f"A record of the journal is not as orphan_remediate writes it ({type(error).__name__}: {error})."
            ) from error
        if there != placement_endpoint:
            raise InvalidInput(
                f"The journal is of another cloud: its Placement is {there}, and that of this connection {placement_endpoint}."
            )
        steps.append(step)
    named = {part.consumer for step in steps for part in step.change.parts}
    if unknown := sorted(set(consumers) - named):
        raise InvalidInput(f"The journal tells of nothing that was taken from consumer {', '.join(unknown)}.")
    wanted = set(consumers) or named
    return [step for step in reversed(steps) if wanted & {part.consumer for part in step.change.parts}]


def deletions_in(records: Iterable[Mapping[str, t.Any]]) -> int:
    """Return how many provider trees a journal tells of: they were deleted, and are not made anew."""
    return len({entry.get("finding") for entry in records if entry.get("action") == DELETE_PROVIDERS})


def restore(
    steps: Sequence[Step], reader: PlacementReader, writer: AllocationWriter, journal: Journal | None, stopped: Callable[[], str]
) -> list[Restoration]:
    """Take back each of `steps` whose consumers hold just what it left them; without a journal (check mode) only say so.

    One that cannot be taken back does not keep the others from it; a journal that cannot be written does.
    """
    done: list[Restoration] = []
    providers = reader.providers() if steps else {}
    for position, step in enumerate(steps):
        if why := stopped():
            return done + [Restoration(left, SKIPPED, why) for left in steps[position:]]
        try:
            done.append(_restored(step, providers, reader, writer, journal))
        except JournalError as error:
            return done + [Restoration(left, FAILED, str(error)) for left in steps[position:]]
        except CloudError as error:
            done.append(Restoration(step, FAILED, str(error)))
        except Exception as error:
            # What was done so far must be told whatever happens, a fault of our own included.
            done.append(Restoration(step, FAILED, f"An unexpected {type(error).__name__}: {error}"))
    return done


def _restored(
    step: Step, providers: Collection[str], reader: PlacementReader, writer: AllocationWriter, journal: Journal | None
) -> Restoration:
    held = {part.consumer: document(allocation) for part in step.change.parts if (allocation := reader.allocation(part.consumer).value)}
    inverse, why = undone(step.change, held)
    if inverse is None:
        return Restoration(step, SKIPPED, why)
    if gone := sorted(set(inverse.claims) - set(providers)):
        # Placement, asked for it all the same, would keep an empty record of the consumer that is in the way of every later claim.
        return Restoration(step, FAILED, f"Provider {', '.join(gone)}, of which it held a share, is gone.")
    if journal is None:
        return Restoration(step, RESTORED, write=inverse)
    journal.before([Step(step.finding, step.kind, inverse)])
    (error,) = writer.write([inverse])
    outcome = RESTORED if error is None else SKIPPED if isinstance(error, AllocationConflict) else FAILED
    restoration = Restoration(step, outcome, str(error or ""), inverse)
    with contextlib.suppress(JournalError):
        # The journal knows that it is broken, and says so at the end; what was restored must be told as restored.
        journal.after([restoration])
    return restoration


def undone(change: Change, held: Mapping[str, Mapping[str, t.Any]]) -> tuple[Change | None, str]:
    """Return the write that takes `change` back from consumers that hold `held`, or None and why there is none.

    What a server was given is not taken from it, for it may need it by now. A pair is taken back whole: what the server then loses its
    migration holds again, as before, and both are in one request.
    """
    inverses = []
    for part in reversed(change.parts):
        now = held[part.consumer]
        if same_claim(now, part.before):
            return None, f"{part.consumer} holds what it held before: there is nothing to put back."
        if not same_claim(now, part.after):
            return None, f"{part.consumer} meanwhile holds something else, on {', '.join(sorted(now['allocations'])) or 'no provider'}."
        generation = now["consumer_generation"]
        before = {**now, "project_id": part.before["project_id"], "user_id": part.before["user_id"]} if generation is None else now
        inverses.append(Change(part.consumer, generation, before, {**part.before, "consumer_generation": generation}))
    first, *others = reversed(inverses)
    inverse = d.replace(first, partner=others[0] if others else None)
    if inverse.frees:
        taken = ", ".join(sorted(inverse.frees))
        return None, (
            f"To take it back, {change.consumer} would lose what it holds on {taken}, which its server may need: "
            "change that with placement_allocation, if it must be."
        )
    return inverse, ""


_CHANGE = ("consumer", "generation", "before", "after", "partner", "action", "frees", "claims")
