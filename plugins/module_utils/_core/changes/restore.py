# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Restoring what a journal says was removed: from providers and from consumers.

What the providers of deleted trees had comes first (`changes.tree_restore`), then the
allocations. Nothing is taken from a consumer or a provider.
"""

from __future__ import annotations

import contextlib
import dataclasses as d
import typing as t
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ..._common.errors import CloudError, JournalError
from ..models.change import Change, build_body, is_same_allocation
from ..models.documents import AllocationBody, NameDocument, RestoredOutcomeDocument
from ..models.outcomes import FAILED, RESTORED, SKIPPED
from ..models.placement import Provider
from ..plan.limits import MAX_FAILURES, explain_abort
from ..plan.steps import Step
from .journal import Journal, JournalRecord
from .outcomes import choose_outcome, run_steps
from .recorded_changes import find_changes
from .tree_additions import TreeAddition
from .tree_records import TreeRecord, find_deleted_trees, select_trees

if t.TYPE_CHECKING:  # pragma: no cover
    from ..clients.allocation_writer import AllocationWriter
    from ..clients.placement import PlacementReader
    from .nova_check import RestoreCheck
    from .tree_restore import TreeRestorer

OUTCOMES = (RESTORED, SKIPPED, FAILED)


@d.dataclass(frozen=True)
class Restoration:
    """The outcome of one change to restore.

    It has the write if there was one, and else the reason why there was none.
    """

    step: Step | TreeRecord
    outcome: str
    reason: str = ""
    write: Change | TreeAddition | None = None
    # A part of a tree was written, or may have been, before the rest failed.
    partly: bool = False
    # It cannot be restored, and no request was sent for it.
    hopeless: bool = False

    @property
    def changed(self) -> bool:
        """Whether Placement was changed, or would be in check mode."""
        return self.outcome == RESTORED

    def as_dict(self) -> RestoredOutcomeDocument:
        consumer: str | None = self.step.subject
        provider: NameDocument | None = None
        if isinstance(self.step, TreeRecord):
            root = self.step.root
            consumer = None
            provider = {"uuid": root.uuid, "name": root.name}
        return {
            "finding": self.step.finding,
            "kind": self.step.kind,
            "consumer": consumer,
            "provider": provider,
            "outcome": self.outcome,
            "reason": self.reason,
            "write": self.write.as_dict() if self.write else None,
        }


def find_restore_steps(
    records: Sequence[JournalRecord],
    placement_endpoint: str,
    consumers: Collection[str],
    providers: Collection[str],
) -> list[Step | TreeRecord]:
    """Return the changes of a journal to restore.

    Deleted trees come first, then changes of allocations, both the newest first.
    Raises InvalidInput for a journal of another cloud, and for names that are not in it.

    consumers, providers: UUIDs of consumers, and roots by name or UUID. Without any, everything is
    restored; with only consumers no trees are, and with only providers no consumers.
    """
    # Both parts of the journal are checked, also when only one of them is restored.
    trees = select_trees(find_deleted_trees(records, placement_endpoint), providers)
    changes = find_changes(records, placement_endpoint, consumers)
    if consumers and not providers:
        return [*changes]
    if providers and not consumers:
        return [*trees]
    return [*trees, *changes]


def restore(
    steps: Sequence[Step | TreeRecord],
    reader: PlacementReader,
    writer: AllocationWriter,
    check: RestoreCheck,
    trees: TreeRestorer,
    deleted: Mapping[str, str],
    journal: Journal | None,
    stopped: Callable[[], str],
    max_failures: int = MAX_FAILURES,
) -> list[Restoration]:
    """Restore each of `steps` whose consumers have exactly what it left them, if Nova agrees.

    A step that cannot be restored does not keep the others from being restored. The run ends early
    for a journal that cannot be written, too many failed requests, and anything that `stopped`
    returns.

    deleted: the names of the providers that the journal says were deleted, by uuid.
    journal: None in check mode, where nothing is written.
    """
    providers = reader.list_providers() if steps else {}

    def restore_step(step: Step | TreeRecord) -> Restoration:
        if isinstance(step, TreeRecord):
            named = [known for entry in step.providers for known in (entry.uuid, entry.name)]
            if why := check.explain_exclusion(providers, (), named):
                return Restoration(step, SKIPPED, why)
            return _restore_tree(step, providers, trees, journal)
        return _restore_step(step, providers, deleted, reader, writer, check, journal)

    def explain_end(done: list[Restoration]) -> str:
        return stopped() or explain_abort(sum(map(_has_failed, done)), max_failures)

    return run_steps(steps, restore_step, Restoration, explain_end)


def _restore_tree(
    tree: TreeRecord,
    providers: Mapping[str, Provider],
    trees: TreeRestorer,
    journal: Journal | None,
) -> Restoration:
    became = trees.restore_tree(tree, providers)
    restoration = Restoration(tree, became.outcome, became.reason, became.write, became.partly)
    if journal is not None and became.write:
        with contextlib.suppress(JournalError):
            # What was restored must be reported as restored: the module reports a broken journal.
            journal.record_after([restoration])
    return restoration


def _has_failed(restoration: Restoration) -> bool:
    """Return whether a request failed.

    A provider that is gone is not counted: the other changes do not depend on it.
    """
    return restoration.outcome == FAILED and not restoration.hopeless


def _restore_step(
    step: Step,
    providers: Mapping[str, Provider],
    deleted: Mapping[str, str],
    reader: PlacementReader,
    writer: AllocationWriter,
    check: RestoreCheck,
    journal: Journal | None,
) -> Restoration:
    inverse, why = invert_change(step.change, _read_current(step, reader))
    if inverse is None:
        return Restoration(step, SKIPPED, why)
    # Sent all the same, the write would leave an empty record of the consumer in Placement, which
    # prevents every later allocation.
    if missing := sorted(set(inverse.allocates) - set(providers)):
        return _refuse_without_providers(step, missing, providers, deleted)
    written = [part.consumer for part in inverse.parts]
    touched = [uuid for part in inverse.parts for uuid in part.after["allocations"]]
    why = check.explain_exclusion(providers, written, [*touched, *inverse.before["allocations"]])
    # Last, so that the least time passes between Nova's answer and the write.
    if why := why or check.explain_refusal(step.kind, inverse, providers):
        return Restoration(step, SKIPPED, why)
    if journal is None:
        return Restoration(step, RESTORED, write=inverse)
    journal.record_before([Step(step.finding, step.kind, inverse)])
    error: CloudError | None = None
    try:
        # It reads the allocations once more: the journal may have taken long.
        writer.replace(inverse)
    except CloudError as raised:
        error = raised
    restoration = Restoration(step, choose_outcome(error, RESTORED), str(error or ""), inverse)
    with contextlib.suppress(JournalError):
        # What was restored must be reported as restored: the module reports a broken journal.
        journal.record_after([restoration])
    return restoration


def _read_current(step: Step, reader: PlacementReader) -> dict[str, AllocationBody]:
    """Return the documents that the consumers of `step` have now."""
    current = {}
    for part in step.change.parts:
        allocation = reader.get_allocation(part.consumer).value
        if allocation:
            current[part.consumer] = build_body(allocation)
    return current


def _refuse_without_providers(
    step: Step,
    missing: Sequence[str],
    providers: Mapping[str, Provider],
    deleted: Mapping[str, str],
) -> Restoration:
    """Return the restoration of a step whose providers are `missing` in Placement.

    Those that the journal says were deleted may be created again, and then it can be restored.
    """
    if set(missing) <= set(deleted):
        reason = _explain_missing_providers(missing, providers, deleted)
        return Restoration(step, SKIPPED, reason)
    reason = f"Provider {', '.join(missing)}, on which it had an allocation, no longer exists."
    return Restoration(step, FAILED, reason, hopeless=True)


def _explain_missing_providers(
    missing: Iterable[str], providers: Mapping[str, Provider], deleted: Mapping[str, str]
) -> str:
    """Return why nothing is allocated from providers that the journal says were deleted."""
    by_name = {provider.name: provider.uuid for provider in providers.values()}
    reasons = []
    for uuid in missing:
        name = deleted[uuid]
        if name in by_name:
            reasons.append(
                f"Provider {name} ({uuid}), on which it had an allocation, was deleted. "
                f"The provider with that name is now {by_name[name]}, "
                "and an allocation on the old provider is not moved to the new one."
            )
        else:
            reasons.append(
                f"Provider {name} ({uuid}), on which it had an allocation, was deleted "
                "and does not exist: nova-compute creates it again when it "
                "starts; restore again after that."
            )
    return " ".join(reasons)


def invert_change(
    change: Change, current: Mapping[str, AllocationBody]
) -> tuple[Change | None, str]:
    """Return the write that restores what was before `change`, or None and why there is none.

    What a server got is not taken from it, for it may need it by now. A pair is restored as a
    whole: what the server then loses its migration has again, as before, and both are in one
    request. A server that was moved away and back has the same allocation for another reason, which
    `changes.nova_check` finds out.

    current: the documents that the consumers have now, by uuid.
    """
    inverses = []
    for part in reversed(change.parts):
        now = current[part.consumer]
        if is_same_allocation(now, part.before):
            return None, (
                f"{part.consumer} has the allocations that it had before: "
                "there is nothing to restore."
            )
        if not is_same_allocation(now, part.after):
            providers = ", ".join(sorted(now["allocations"])) or "no provider"
            return None, f"{part.consumer} now has other allocations, on {providers}."
        inverses.append(_invert_part(part, now))
    # The first change was inverted last; its partner goes into the same request.
    inverse = inverses.pop()
    if inverses:
        inverse = d.replace(inverse, partner=inverses.pop())
    if inverse.frees:
        freed = ", ".join(sorted(inverse.frees))
        return None, (
            f"To restore it, {change.consumer} would lose its allocations on {freed}, "
            "which its server may need: "
            "change them with placement_allocation if you have to."
        )
    return inverse, ""


def _invert_part(part: Change, now: AllocationBody) -> Change:
    """Return the change of one consumer from `now`, its document, to what it had before `part`."""
    generation = now["consumer_generation"]
    before = now.copy()
    # Placement shows neither project nor user of a consumer without allocations.
    if generation is None:
        before["project_id"] = part.before["project_id"]
        before["user_id"] = part.before["user_id"]
    after = part.before.copy()
    after["consumer_generation"] = generation
    return Change(part.consumer, generation, before, after)
