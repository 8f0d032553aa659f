# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The single changes of a plan, and how they are read back from a file. Pure.

Nothing that was edited or cut short passes.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Iterable, Sequence

from ..._common.errors import InvalidInput
from ..._common.text import make_printable
from ..._common.uuids import normalize_uuid
from ..models.change import DELETE_PROVIDERS, Change, ProviderRemoval, sort_children_first
from ..models.documents import StepDocument, TreeStepDocument, Unchecked
from ..models.kinds import CHANGEABLE_KINDS, CONSUMER_KINDS, explain_unresolvable
from ..models.placement import Provider


@d.dataclass(frozen=True)
class Step:
    """One change of a plan: the finding that it resolves, and the exact write."""

    finding: str
    kind: str
    change: Change

    @property
    def subject(self) -> str:
        """The consumer that the finding is about."""
        return self.change.consumer

    def as_dict(self) -> StepDocument:
        return {"finding": self.finding, "kind": self.kind, **self.change.as_dict()}


@d.dataclass(frozen=True)
class TreeStep:
    """The deletion of a provider tree that is one step of a plan."""

    finding: str
    kind: str
    change: ProviderRemoval

    @property
    def subject(self) -> str:
        """The root provider that the finding is about."""
        return self.change.providers[-1].uuid

    def as_dict(self) -> TreeStepDocument:
        return {"finding": self.finding, "kind": self.kind, **self.change.as_dict()}


AnyStep = t.TypeVar("AnyStep", Step, TreeStep)


def parse_steps(
    changes: Iterable[tuple[str, str, Unchecked]],
) -> tuple[list[Step], tuple[TreeStep, ...]]:
    """Return the steps that change allocations, and those that delete trees of providers.

    changes: the id and the kind of each finding, with its change as a document.
    Raises InvalidInput as `parse_step` and `parse_tree_step` do.
    """
    steps, removals = [], []
    for finding, kind, document in changes:
        if document["action"] == DELETE_PROVIDERS:
            removals.append(parse_tree_step(finding, kind, document))
        else:
            steps.append(parse_step(finding, kind, document))
    if len({step.subject for step in removals}) < len(removals):
        raise InvalidInput("The plan deletes a provider twice.")
    return steps, tuple(sorted(removals, key=lambda step: step.subject))


def parse_step(finding: str, kind: str, document: Unchecked) -> Step:
    """Return the step whose change `Change.as_dict` returned.

    Raises InvalidInput also when the change cannot resolve the finding.
    """
    return _check_finding(Step(finding, kind, parse_change(document)), of_consumers=True)


def parse_tree_step(finding: str, kind: str, document: Unchecked) -> TreeStep:
    """Return the step whose deletion `ProviderRemoval.as_dict` returned.

    Raises InvalidInput also when the deletion cannot resolve the finding.
    """
    return _check_finding(TreeStep(finding, kind, _parse_removal(document)), of_consumers=False)


def _check_finding(step: AnyStep, of_consumers: bool) -> AnyStep:
    """Return the step. Raises InvalidInput when its change cannot resolve its finding."""
    kinds = {kind.name for kind in CHANGEABLE_KINDS if (kind in CONSUMER_KINDS) == of_consumers}
    if step.kind not in kinds or step.finding != f"{step.kind}/{step.subject}":
        raise InvalidInput(
            f"The change of {step.subject} is for the finding {step.finding!r} of kind "
            f"{step.kind!r}, {explain_unresolvable(step.kind)}"
        )
    return step


def parse_change(document: Unchecked) -> Change:
    """Return the change that `Change.as_dict` returned.

    Raises InvalidInput when parts of it contradict each other, and what Python raises (KeyError,
    TypeError, AttributeError) when it does not have that shape.
    """
    partner = document["partner"]
    consumer, generation = document["consumer"], document["generation"]
    if normalize_uuid(consumer) != consumer:
        raise InvalidInput(f"A change names the consumer {consumer!r}, which is not a UUID.")
    # Both sides carry the generation that guards the write.
    for side in ("before", "after"):
        _check_document(f"The document {side} the change of {consumer}", document[side], generation)
    # A consumer has a generation exactly while it has allocations.
    if (generation is None) != (not document["before"]["allocations"]):
        raise InvalidInput(
            f"The change of {consumer} starts from generation {generation}, which contradicts "
            "its allocations before the change."
        )
    # A partner goes into the same request, so it is checked as strictly.
    partner_change = None
    if partner:
        _check_partner(consumer, partner)
        partner_change = parse_change(partner)
    change = Change(consumer, generation, document["before"], document["after"], partner_change)
    _check_consistency(change, document)
    return change


def _check_partner(consumer: str, partner: Unchecked) -> None:
    if partner["partner"] or partner["consumer"] == consumer:
        raise InvalidInput(
            f"The partner in the change of {consumer} must be one other consumer, without a "
            "partner of its own."
        )


def _check_consistency(change: Change, document: Unchecked) -> None:
    """Raise InvalidInput when the document has anything else than its change would write."""
    # What people review, such as the freed amounts, must be what the documents would do.
    expected = change.as_dict()
    if expected == document:
        return
    wrong = [key for key, value in expected.items() if document.get(key) != value]
    if not wrong:
        wrong = list(set(document) - set(expected))
    raise InvalidInput(
        f"The change of {change.consumer} contradicts itself: {', '.join(sorted(wrong))} "
        "must match its documents."
    )


def _parse_removal(document: Unchecked) -> ProviderRemoval:
    """Return the deletion that `ProviderRemoval.as_dict` returned, or raise InvalidInput."""
    entries = document["providers"]
    uuids = [entry["uuid"] for entry in entries]
    root = uuids[-1] if uuids else ""
    whole = _is_children_first(entries, uuids)
    tree = tuple(_parse_provider(entry, root) for entry in entries)
    removal = ProviderRemoval(tree)
    named = all(normalize_uuid(provider.uuid) == provider.uuid for provider in tree)
    # The order is checked before the depths are: without it the parents may form a circle.
    if (
        not whole
        or not named
        or removal.as_dict() != document
        or sort_children_first(root, tree) != tree
    ):
        raise InvalidInput(
            f"The deletion of provider {root!r} does not list a whole tree, children first."
        )
    return removal


def _is_children_first(entries: Sequence[Unchecked], uuids: list[str]) -> bool:
    """Return whether the last provider has no parent, and each other one has its parent later."""
    if not entries or entries[-1]["parent"] is not None:
        return False
    for position, entry in enumerate(entries[:-1], 1):
        if entry["parent"] not in uuids[position:]:
            return False
    return True


def _parse_provider(entry: Unchecked, root: str) -> Provider:
    generation = parse_count(entry["generation"])
    return Provider(entry["uuid"], str(entry["name"]), generation, root, entry["parent"])


def _check_document(what: str, body: t.Any, generation: int | None) -> None:
    """Raise InvalidInput unless `body` is a document that Placement could be sent.

    what: the document in words, for the message.
    """
    _check_generation(what, body["consumer_generation"], generation)
    _check_owners(what, body)
    for provider, allocation in body["allocations"].items():
        _check_allocation(what, provider, allocation)


def _check_generation(what: str, of_document: t.Any, of_change: t.Any) -> None:
    # To Python 1.0 and True are 1; Placement would be sent what the document has.
    whole = all(number is None or _is_integer(number) for number in (of_document, of_change))
    if of_document != of_change or not whole:
        raise InvalidInput(
            f"{what} has generation {of_document!r}, and the change has {of_change!r}."
        )


def _check_owners(what: str, body: Unchecked) -> None:
    # Placement refuses a document without an owner, and takes anything that is text for one.
    owners = set(body) - {"allocations", "consumer_generation"}
    names = ", ".join(sorted(owners))
    required = {"project_id", "user_id"}
    if not required <= owners <= {*required, "consumer_type"}:
        raise InvalidInput(
            f"{what} must have project_id and user_id, and may have consumer_type: it has {names}."
        )
    for owner in owners:
        if not isinstance(body[owner], str) or not body[owner]:
            raise InvalidInput(f"{what} must have {names}, each as text that is not empty.")


def _check_allocation(what: str, provider: str, allocation: Unchecked) -> None:
    amounts = allocation["resources"]
    whole = all(_is_integer(amount) and amount > 0 for amount in amounts.values())
    if (
        normalize_uuid(provider) != provider
        or set(allocation) != {"resources"}
        or not amounts
        or not whole
    ):
        shown = ", ".join(f"{amounts[cls]} {cls}" for cls in sorted(amounts)) or "nothing"
        raise InvalidInput(
            f"{what} must have whole amounts above zero on providers named by UUID: it has "
            f"{make_printable(shown, 100)} on {make_printable(provider, 100)}."
        )


def parse_count(value: t.Any) -> int:
    """Return `value`. Raises ValueError when it is not a whole number from zero on."""
    if not _is_integer(value) or value < 0:
        raise ValueError(f"{value!r} is not a count")
    return int(value)


def _is_integer(number: t.Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)
