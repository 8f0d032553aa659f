# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""The single changes of a plan, and how they are read back: nothing that was edited or cut short passes. Pure."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._common.uuids import normalize_uuid
from ansible_collections.osops.placement.plugins.module_utils._models.change import (
    DELETE_PROVIDERS,
    Change,
    ProviderRemoval,
    sort_children_first,
)
from ansible_collections.osops.placement.plugins.module_utils._models.kinds import (
    CHANGEABLE_KINDS,
    CONSUMER_KINDS,
)
from ansible_collections.osops.placement.plugins.module_utils._models.placement import Provider

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Mapping


@d.dataclass(frozen=True)
class Step:
    """One change of a plan: which finding it settles, and the exact write."""

    finding: str
    kind: str
    change: Change

    @property
    def subject(self) -> str:
        """The consumer that the finding is about."""
        return self.change.consumer

    def as_dict(self) -> dict[str, t.Any]:
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

    def as_dict(self) -> dict[str, t.Any]:
        return {"finding": self.finding, "kind": self.kind, **self.change.as_dict()}


AnyStep = t.TypeVar("AnyStep", Step, TreeStep)


def parse_steps(
    changes: Iterable[tuple[str, str, Mapping[str, t.Any]]],
) -> tuple[list[Step], tuple[TreeStep, ...]]:
    """Return the steps for changes of allocations and those for deletions of trees, from the ids and kinds of findings with their changes."""
    known = list(changes)
    steps = [
        parse_step(finding, kind, told)
        for finding, kind, told in known
        if told["action"] != DELETE_PROVIDERS
    ]
    removals = [
        parse_tree_step(finding, kind, told)
        for finding, kind, told in known
        if told["action"] == DELETE_PROVIDERS
    ]
    if len({step.subject for step in removals}) < len(removals):
        raise InvalidInput("A provider is deleted twice in one plan.")
    return steps, tuple(sorted(removals, key=lambda step: step.subject))


def parse_step(finding: str, kind: str, document: Mapping[str, t.Any]) -> Step:
    """Return the step whose change `Change.as_dict` told. Raises InvalidInput also when it cannot settle the finding."""
    return _check_finding(Step(finding, kind, parse_change(document)), of_consumers=True)


def parse_tree_step(finding: str, kind: str, document: Mapping[str, t.Any]) -> TreeStep:
    """Return the step whose deletion `ProviderRemoval.as_dict` told. Raises InvalidInput also when it cannot settle the finding."""
    return _check_finding(TreeStep(finding, kind, _parse_removal(document)), of_consumers=False)


def _check_finding(step: AnyStep, of_consumers: bool) -> AnyStep:
    kinds = {known.name for known in CHANGEABLE_KINDS if (known in CONSUMER_KINDS) == of_consumers}
    if step.kind not in kinds or step.finding != f"{step.kind}/{step.subject}":
        raise InvalidInput(
            f"The change of {step.subject} is for the finding {step.finding!r} of kind {step.kind!r}, which it cannot settle."
        )
    return step


def parse_change(document: Mapping[str, t.Any]) -> Change:
    """Return the change that `Change.as_dict` told.

    Raises InvalidInput when any of it does not agree with the rest, or what Python raises (KeyError, TypeError, AttributeError) when it
    is not of that shape.
    """
    partner = document["partner"]
    consumer, generation = document["consumer"], document["generation"]
    if normalize_uuid(consumer) != consumer:
        raise InvalidInput(f"A change names the consumer {consumer!r}, which is no UUID.")
    for side in ("before", "after"):
        _check_document(f"The document {side} the change of {consumer}", document[side], generation)
    if (generation is None) != (not document["before"]["allocations"]):
        raise InvalidInput(
            f"The change of {consumer} starts from generation {generation}, which does not go with what it holds before."
        )
    if partner and (partner["partner"] or partner["consumer"] == consumer):
        raise InvalidInput(
            f"The partner in the change of {consumer} must be one other consumer, without a partner of its own."
        )
    change = Change(
        consumer,
        generation,
        document["before"],
        document["after"],
        parse_change(partner) if partner else None,
    )
    if change.as_dict() != document:
        wrong = sorted(
            key for key, value in change.as_dict().items() if document.get(key) != value
        ) or sorted(set(document) - set(change.as_dict()))
        raise InvalidInput(
            f"The change of {consumer} does not agree with itself: {', '.join(wrong)} must follow from its documents."
        )
    return change


def _parse_removal(document: Mapping[str, t.Any]) -> ProviderRemoval:
    """Return the deletion that `ProviderRemoval.as_dict` told. Raises InvalidInput for what is none."""
    entries = document["providers"]
    uuids = [entry["uuid"] for entry in entries]
    root = uuids[-1] if uuids else ""
    # Where each is below one that comes later, and the last below none, there is a depth to compare orders by.
    whole = (
        entries
        and entries[-1]["parent"] is None
        and all(entry["parent"] in uuids[at:] for at, entry in enumerate(entries[:-1], 1))
    )
    tree = tuple(
        Provider(
            entry["uuid"],
            str(entry["name"]),
            parse_count(entry["generation"]),
            root,
            entry["parent"],
        )
        for entry in entries
    )
    removal = ProviderRemoval(tree)
    named = all(normalize_uuid(provider.uuid) == provider.uuid for provider in tree)
    if (
        not whole
        or not named
        or removal.as_dict() != document
        or sort_children_first(root, tree) != tree
    ):
        raise InvalidInput(
            f"The deletion of provider {root!r} does not name a whole tree, children first."
        )
    return removal


def _check_document(what: str, body: t.Any, generation: int | None) -> None:
    here = body["consumer_generation"]
    # To Python 1.0 and True are 1; Placement would be sent what stands here.
    if here != generation or not all(
        number is None or _is_integer(number) for number in (here, generation)
    ):
        raise InvalidInput(f"{what} has generation {here!r}, and the change {generation!r}.")
    owners = {
        key: value
        for key, value in body.items()
        if key not in ("allocations", "consumer_generation")
    }
    if not {"project_id", "user_id"} <= set(owners) <= {"project_id", "user_id", "consumer_type"}:
        raise InvalidInput(
            f"{what} must have project_id and user_id, and may have consumer_type: it has {', '.join(sorted(owners))}."
        )
    if not all(isinstance(value, str) and value for value in owners.values()):
        raise InvalidInput(f"{what} must name its {', '.join(sorted(owners))} as text.")
    for provider, share in body["allocations"].items():
        amounts = share["resources"]
        whole = all(_is_integer(amount) and amount > 0 for amount in amounts.values())
        if (
            normalize_uuid(provider) != provider
            or set(share) != {"resources"}
            or not amounts
            or not whole
        ):
            raise InvalidInput(
                f"{what} must give whole amounts above zero of providers by UUID: it has {share!r} of {provider!r}."
            )


def parse_count(value: t.Any) -> int:
    if not _is_integer(value) or value < 0:
        raise ValueError(f"{value!r} is no count")
    return int(value)


def _is_integer(number: t.Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)
