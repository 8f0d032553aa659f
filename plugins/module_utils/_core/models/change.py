# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes of allocations: documents before and after.

The documents have the shape that `PUT /allocations/{consumer}` takes.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from .codec import Json, convert_to_json
from .placement import Allocation, Provider, add_amounts, subtract_amounts

Amounts = dict[str, dict[str, int]]
"""Amounts by provider uuid and resource class."""

Action = t.Literal["remove", "reduce", "rewrite", "create"]
"""What a change does to the allocations of its consumer."""

Side = t.Literal["before", "after"]

DELETE_PROVIDERS: t.Final = "delete_providers"

# The outcome of a change that was not made.
SKIPPED, FAILED = "skipped", "failed"
# The outcome of a change that Placement refuses for the capacity of a provider.
BLOCKED = "blocked"
NOT_MADE = (BLOCKED, SKIPPED, FAILED)
# The outcome in check mode, where something would be changed.
READY = "ready"
WITHOUT_CHECK = "nothing was changed. Without --check: "
# The outcome when the allocations before a change were restored from its journal.
RESTORED = "restored"
# The outcome of a change that was made, by its action.
OUTCOME_BY_ACTION: dict[str, str] = {
    "remove": "removed",
    "reduce": "reduced",
    "rewrite": "rewritten",
    "create": "created",
    DELETE_PROVIDERS: "removed",
}


class ProviderAmounts(t.TypedDict):
    """What is allocated on one provider."""

    # By resource class.
    resources: dict[str, int]


class AllocationBody(t.TypedDict):
    """All allocations of a consumer, as `PUT /allocations/{consumer}` takes them."""

    # By provider uuid; empty for a consumer without allocations.
    allocations: dict[str, ProviderAmounts]
    # None for a consumer without allocations.
    consumer_generation: int | None
    # uuids; None only for a consumer that Placement does not know.
    project_id: str | None
    user_id: str | None
    # Such as `INSTANCE`; missing where Placement has no type for the consumer.
    consumer_type: t.NotRequired[str]


@d.dataclass(frozen=True)
class Change:
    """One write to Placement: the consumer's whole document before and after it.

    generation: the consumer generation at detection; None for a consumer without allocations.
    partner: the change of another consumer that is right only together with this one; both go into
        one `POST /allocations`.
    """

    consumer: str
    generation: int | None
    before: AllocationBody
    after: AllocationBody
    partner: Change | None = None

    @property
    def parts(self) -> tuple[Change, ...]:
        """The change of each consumer that is written: this one and its partner's."""
        return (self, self.partner) if self.partner else (self,)

    @property
    def action(self) -> Action:
        """What the change does to the allocations of its consumer."""
        if not self.after["allocations"]:
            return "remove"
        if not self.before["allocations"]:
            return "create"
        # What the partner takes says nothing about the action for this consumer.
        alone = d.replace(self, partner=None)
        same_owner = _get_owner(self.before) == _get_owner(self.after)
        if same_owner and not alone.allocates:
            return "reduce"
        return "rewrite"

    @property
    def frees(self) -> Amounts:
        """The amounts that are allocated before the change and not after it."""
        return subtract_amounts(self._sum_amounts("before"), self._sum_amounts("after"))

    @property
    def allocates(self) -> Amounts:
        """The amounts that are allocated after the change and not before it."""
        return subtract_amounts(self._sum_amounts("after"), self._sum_amounts("before"))

    def get_side(self, side: Side) -> dict[str, AllocationBody]:
        """Return the documents `before` or `after`, by consumer."""
        return {part.consumer: getattr(part, side) for part in self.parts}

    def as_dict(self) -> Json:
        """Return the change as JSON's types."""
        partner = self.partner.as_dict() if self.partner is not None else None
        return {
            # A copy: who edits the document must not edit the change.
            **convert_to_json(self),
            "partner": partner,
            "action": self.action,
            "frees": self.frees,
            "claims": self.allocates,
        }

    def _sum_amounts(self, side: Side) -> Amounts:
        """Return the amounts of this consumer and its partner together, `before` or `after`."""
        sums: Amounts = self.partner._sum_amounts(side) if self.partner is not None else {}
        for provider, allocation in getattr(self, side)["allocations"].items():
            add_amounts(sums.setdefault(provider, {}), allocation["resources"])
        return sums


@d.dataclass(frozen=True)
class ProviderRemoval:
    """The deletion of an empty provider tree, children before their parents."""

    providers: tuple[Provider, ...]

    action: t.ClassVar[t.Literal["delete_providers"]] = DELETE_PROVIDERS
    frees: t.ClassVar[Amounts] = {}
    allocates: t.ClassVar[Amounts] = {}

    def get_side(self, side: Side) -> dict[str, str]:
        """Return the names of the providers `before`, and nothing `after`, by uuid."""
        shown = self.providers if side == "before" else ()
        return {provider.uuid: provider.name for provider in shown}

    def as_dict(self) -> Json:
        """Return the removal as JSON's types."""
        keys = ("uuid", "name", "generation", "parent")
        return {
            "action": self.action,
            "providers": [{key: getattr(row, key) for key in keys} for row in self.providers],
        }


def build_body(allocation: Allocation) -> AllocationBody:
    """Return the body that would write `allocation`, guarded by its generation.

    The body of a consumer without a type has no type in it.
    """
    allocations: dict[str, ProviderAmounts] = {}
    for provider, amounts in sorted(allocation.resources.items()):
        allocations[provider] = {"resources": dict(sorted(amounts.items()))}
    body: AllocationBody = {
        "allocations": allocations,
        "consumer_generation": allocation.generation,
        "project_id": allocation.project,
        "user_id": allocation.user,
    }
    if allocation.type is not None:
        body["consumer_type"] = allocation.type
    return body


class Diffable(t.Protocol):
    """A change that `--diff` can show."""

    def get_side(self, side: Side) -> Mapping[str, object]: ...


def build_diff(changes: Iterable[Diffable]) -> dict[Side, dict[str, object]]:
    """Return what Ansible shows with `--diff`."""
    sides: dict[Side, dict[str, object]] = {"before": {}, "after": {}}
    for change in changes:
        for side, shown in sides.items():
            shown.update(change.get_side(side))
    return sides


def is_same_allocation(one: AllocationBody, other: AllocationBody) -> bool:
    """Return whether two documents give a consumer the same allocations and owner.

    Their generations do not matter; nor does the owner when there are no allocations.
    """
    owner = ("project_id", "user_id", "consumer_type") if one["allocations"] else ()
    return all(one.get(key) == other.get(key) for key in ("allocations", *owner))


def build_reduction(allocation: Allocation, removed: AbstractSet[str]) -> Change:
    """Return the change that removes what `allocation` has of the `removed` providers.

    The amounts of all other providers stay as they are.
    """
    if allocation.generation is None:
        raise ValueError(f"{allocation.consumer} has no allocation that could be changed")
    kept = {uuid: each for uuid, each in allocation.resources.items() if uuid not in removed}
    return build_change(allocation, resources=kept)


def build_change(allocation: Allocation, partner: Change | None = None, **fields: t.Any) -> Change:
    """Return the change of `allocation` that sets `fields` (`resources`, `project`, `user`)."""
    after = build_body(d.replace(allocation, **fields))
    before = build_body(allocation)
    if not allocation.resources:
        before["project_id"] = after["project_id"]
        before["user_id"] = after["user_id"]
    return Change(allocation.consumer, allocation.generation, before, after, partner)


def sort_children_first(root: str, providers: Iterable[Provider]) -> tuple[Provider, ...]:
    """Return the providers of the tree `root` in an order in which Placement can delete them."""
    tree = {provider.uuid: provider for provider in providers if provider.root == root}

    def measure_depth(provider: Provider) -> int:
        return 1 + measure_depth(tree[provider.parent]) if provider.parent in tree else 0

    return tuple(sorted(tree.values(), key=lambda each: (-measure_depth(each), each.name)))


def _get_owner(document: AllocationBody) -> dict[str, object]:
    """Return all of a document but its allocations."""
    return {key: value for key, value in document.items() if key != "allocations"}
