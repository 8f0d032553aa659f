# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!
"""Changes taken back: what a journal says was taken from a consumer is given to it again, and nothing is taken from anybody.

What the providers of deleted trees had is given to them first (`_remediation.tree_restore`), then the allocations.
"""

from __future__ import annotations

import contextlib
import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import (
    AllocationConflict,
    CloudError,
    InvalidInput,
    JournalError,
)
from ansible_collections.osops.placement.plugins.module_utils._models.change import (
    DELETE_PROVIDERS,
    FAILED,
    RESTORED,
    SKIPPED,
    Change,
    build_body,
    is_same_allocation,
)
from ansible_collections.osops.placement.plugins.module_utils._plan.limits import (
    MAX_FAILURES,
    explain_abort,
)
from ansible_collections.osops.placement.plugins.module_utils._plan.steps import Step, parse_step
from ansible_collections.osops.placement.plugins.module_utils._remediation.journal import AFTER
from ansible_collections.osops.placement.plugins.module_utils._remediation.tree_restore import (
    RESTORE_PROVIDERS,
    TreeAddition,
    TreeRecord,
    find_deleted_trees,
    select_trees,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from ansible_collections.osops.placement.plugins.module_utils._clients.allocation_writer import (
        AllocationWriter,
    )
    from ansible_collections.osops.placement.plugins.module_utils._clients.placement import (
        PlacementReader,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import Provider
    from ansible_collections.osops.placement.plugins.module_utils._remediation.journal import (
        Journal,
    )
    from ansible_collections.osops.placement.plugins.module_utils._remediation.tree_restore import (
        TreeRestorer,
    )

OUTCOMES = (RESTORED, SKIPPED, FAILED)


@d.dataclass(frozen=True)
class Restoration:
    """What became of one change that was to be taken back, the write if there was one, and why not if there was none."""

    step: Step | TreeRecord
    outcome: str
    reason: str = ""
    write: Change | TreeAddition | None = None
    # A part of a tree was written, or may have been, before the rest failed.
    partly: bool = False
    # Nothing was asked of Placement, for it cannot be taken back.
    hopeless: bool = False

    def as_dict(self) -> dict[str, t.Any]:
        tree = self.step if isinstance(self.step, TreeRecord) else None
        return {
            "finding": self.step.finding,
            "kind": self.step.kind,
            "consumer": None if tree else self.step.subject,
            "provider": {"uuid": tree.root.uuid, "name": tree.root.name} if tree else None,
            "outcome": self.outcome,
            "reason": self.reason,
            "write": self.write.as_dict() if self.write else None,
        }


def find_restore_steps(
    records: Sequence[Mapping[str, t.Any]],
    placement_endpoint: str,
    consumers: Collection[str],
    providers: Collection[str],
) -> list[Step | TreeRecord]:
    """Return what is to be taken back of what a journal tells of: deleted trees first, then changes of allocations, both the newest first.

    Whoever names only consumers wants no trees, and whoever names only `providers` (roots, by name or uuid) no consumers. Raises
    InvalidInput for a journal of another cloud, and for what it does not tell of.
    """
    trees = select_trees(find_deleted_trees(records, placement_endpoint), providers)
    changes = find_changes(records, placement_endpoint, consumers)
    return [
        *(trees if providers or not consumers else ()),
        *(changes if consumers or not providers else ()),
    ]


def find_deleted_providers(
    records: Iterable[Mapping[str, t.Any]], placement_endpoint: str
) -> dict[str, str]:
    """Return the names of the providers that a journal says were deleted, by uuid."""
    return {
        provider.uuid: provider.name
        for tree in find_deleted_trees(records, placement_endpoint)
        for provider in tree.providers
    }


def find_changes(
    records: Iterable[Mapping[str, t.Any]], placement_endpoint: str, consumers: Collection[str]
) -> list[Step]:
    """Return the changes of the `consumers` (of all without any) that a journal tells of, the newest first.

    One that Placement refused because its consumer had moved is none of ours, whatever the consumer holds now. Raises InvalidInput for a
    journal of another cloud, and for consumers of which it tells no change.
    """
    steps: list[Step] = []
    for entry in records:
        if entry.get("action") in (DELETE_PROVIDERS, RESTORE_PROVIDERS):
            continue
        if entry["event"] == AFTER:
            if entry.get("outcome") == SKIPPED:
                refused = [
                    position
                    for position, step in enumerate(steps)
                    if step.finding == entry.get("finding")
                ]
                if refused:
                    del steps[refused[-1]]
            continue
        try:
            step = parse_step(
                entry["finding"], entry["kind"], {key: entry[key] for key in _CHANGE_KEYS}
            )
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
        raise InvalidInput(
            f"The journal tells of nothing that was taken from consumer {', '.join(unknown)}."
        )
    wanted = set(consumers) or named
    return [
        step for step in reversed(steps) if wanted & {part.consumer for part in step.change.parts}
    ]


def restore(
    steps: Sequence[Step | TreeRecord],
    reader: PlacementReader,
    writer: AllocationWriter,
    trees: TreeRestorer,
    deleted: Mapping[str, str],
    journal: Journal | None,
    stopped: Callable[[], str],
    max_failures: int = MAX_FAILURES,
) -> list[Restoration]:
    """Take back each of `steps` whose consumers hold just what it left them; without a journal (check mode) only say so.

    One that cannot be taken back does not keep the others from it; a journal that cannot be written does, and too many requests that fail.

    deleted: the names of the providers that the journal says were deleted, by uuid.
    """
    done: list[Restoration] = []
    providers = reader.list_providers() if steps else {}
    for position, step in enumerate(steps):
        if why := stopped() or explain_abort(sum(map(_has_failed, done)), max_failures):
            return done + [Restoration(left, SKIPPED, why) for left in steps[position:]]
        try:
            if isinstance(step, TreeRecord):
                done.append(_restore_tree(step, providers, trees, journal))
            else:
                done.append(_restore_step(step, providers, deleted, reader, writer, journal))
        except JournalError as error:
            return done + [Restoration(left, FAILED, str(error)) for left in steps[position:]]
        except CloudError as error:
            done.append(Restoration(step, FAILED, str(error)))
        except Exception as error:
            # What was done so far must be told whatever happens, a fault of our own included.
            done.append(Restoration(step, FAILED, f"An unexpected {type(error).__name__}: {error}"))
    return done


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
            # As below: what was restored is reported as restored.
            journal.record_after([restoration])
    return restoration


def _has_failed(restoration: Restoration) -> bool:
    """Tell whether a request failed: that a provider is gone says nothing of the other changes."""
    return restoration.outcome == FAILED and not restoration.hopeless


def _restore_step(
    step: Step,
    providers: Mapping[str, Provider],
    deleted: Mapping[str, str],
    reader: PlacementReader,
    writer: AllocationWriter,
    journal: Journal | None,
) -> Restoration:
    held = {
        part.consumer: build_body(allocation)
        for part in step.change.parts
        if (allocation := reader.get_allocation(part.consumer).value)
    }
    inverse, why = invert_change(step.change, held)
    if inverse is None:
        return Restoration(step, SKIPPED, why)
    if gone := sorted(set(inverse.allocates) - set(providers)):
        # Placement, asked for it all the same, would keep an empty record of the consumer that is in the way of every later claim.
        if set(gone) <= set(deleted):
            return Restoration(step, SKIPPED, _explain_missing_providers(gone, providers, deleted))
        return Restoration(
            step,
            FAILED,
            f"Provider {', '.join(gone)}, of which it held a share, is gone.",
            hopeless=True,
        )
    if journal is None:
        return Restoration(step, RESTORED, write=inverse)
    journal.record_before([Step(step.finding, step.kind, inverse)])
    (error,) = writer.write([inverse])
    outcome = (
        RESTORED if error is None else SKIPPED if isinstance(error, AllocationConflict) else FAILED
    )
    restoration = Restoration(step, outcome, str(error or ""), inverse)
    with contextlib.suppress(JournalError):
        # The journal knows that it is broken, and says so at the end; what was restored must be told as restored.
        journal.record_after([restoration])
    return restoration


def _explain_missing_providers(
    gone: Iterable[str], providers: Mapping[str, Provider], deleted: Mapping[str, str]
) -> str:
    """Say why there is no room for an allocation of providers that the journal itself says were deleted."""
    names = {known.name: known.uuid for known in providers.values()}
    reasons = []
    for uuid in gone:
        name = deleted[uuid]
        if name in names:
            reasons.append(
                f"Provider {name} ({uuid}), of which it held a part, was deleted; the one of that name is {names[name]} now, "
                "and an allocation of the old one is not moved to it."
            )
        else:
            reasons.append(
                f"Provider {name} ({uuid}), of which it held a part, was deleted and does not exist: nova-compute makes it again when it "
                "starts; run this again then."
            )
    return " ".join(reasons)


def invert_change(
    change: Change, current: Mapping[str, Mapping[str, t.Any]]
) -> tuple[Change | None, str]:
    """Return the write that takes `change` back from consumers that hold `current`, or None and why there is none.

    What a server was given is not taken from it, for it may need it by now. A pair is taken back whole: what the server then loses its
    migration holds again, as before, and both are in one request.
    """
    inverses = []
    for part in reversed(change.parts):
        now = current[part.consumer]
        if is_same_allocation(now, part.before):
            return None, f"{part.consumer} holds what it held before: there is nothing to put back."
        if not is_same_allocation(now, part.after):
            return (
                None,
                f"{part.consumer} meanwhile holds something else, on {', '.join(sorted(now['allocations'])) or 'no provider'}.",
            )
        generation = now["consumer_generation"]
        before = (
            {**now, "project_id": part.before["project_id"], "user_id": part.before["user_id"]}
            if generation is None
            else now
        )
        inverses.append(
            Change(
                part.consumer,
                generation,
                before,
                {**part.before, "consumer_generation": generation},
            )
        )
    first, *others = reversed(inverses)
    inverse = d.replace(first, partner=others[0] if others else None)
    if inverse.frees:
        taken = ", ".join(sorted(inverse.frees))
        return None, (
            f"To take it back, {change.consumer} would lose what it holds on {taken}, which its server may need: "
            "change that with placement_allocation, if it must be."
        )
    return inverse, ""


_CHANGE_KEYS = ("consumer", "generation", "before", "after", "partner", "action", "frees", "claims")
