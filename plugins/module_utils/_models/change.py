# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Changes of allocations: documents before and after, in the shape that `PUT /allocations/{consumer}` takes."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
    Allocation,
    Provider,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

Amounts = dict[str, dict[str, int]]
"""Amounts by provider and resource class."""


DELETE_PROVIDERS = "delete_providers"

# What is told of a change that was made, by its action, and of one that was not.
OUTCOME_BY_ACTION = {
    "remove": "removed",
    "reduce": "reduced",
    "rewrite": "rewritten",
    "create": "created",
    DELETE_PROVIDERS: "removed",
}
SKIPPED, FAILED = "skipped", "failed"
# What a journal tells of was given back.
RESTORED = "restored"


@d.dataclass(frozen=True)
class Change:
    """One write to Placement: the consumer's whole document before and after it.

    The generation is that of detection, None for a consumer that holds nothing. `partner` is the change of another consumer
    that is right only together with this one: both go into one `POST /allocations`.
    """

    consumer: str
    generation: int | None
    before: t.Mapping[str, t.Any]
    after: t.Mapping[str, t.Any]
    partner: Change | None = None

    @property
    def parts(self) -> tuple[Change, ...]:
        """The change of each consumer that is written: this one and its partner's."""
        return (self, self.partner) if self.partner else (self,)

    @property
    def action(self) -> str:
        """`remove`, `reduce`, `rewrite` or `create`."""
        if not self.after["allocations"]:
            return "remove"
        if not self.before["allocations"]:
            return "create"
        alone = d.replace(self, partner=None)
        owners = [
            {key: value for key, value in side.items() if key != "allocations"}
            for side in (self.before, self.after)
        ]
        return "reduce" if owners[0] == owners[1] and not alone.allocates else "rewrite"

    @property
    def frees(self) -> Amounts:
        """The amounts that the change gives back."""
        return _subtract_amounts(self._sum_amounts("before"), self._sum_amounts("after"))

    @property
    def allocates(self) -> Amounts:
        """The amounts that the change takes anew."""
        return _subtract_amounts(self._sum_amounts("after"), self._sum_amounts("before"))

    def get_side(self, side: str) -> dict[str, t.Any]:
        """Return the documents `before` or `after`, by consumer."""
        return {part.consumer: getattr(part, side) for part in self.parts}

    def as_dict(self) -> dict[str, t.Any]:
        partner = self.partner.as_dict() if self.partner else None
        return {
            **d.asdict(self),
            "partner": partner,
            "action": self.action,
            "frees": self.frees,
            "claims": self.allocates,
        }

    def _sum_amounts(self, side: str) -> Amounts:
        """Return what this consumer and its partner hold together on one side of the change."""
        sums: Amounts = self.partner._sum_amounts(side) if self.partner else {}
        for provider, share in getattr(self, side)["allocations"].items():
            held = sums.setdefault(provider, {})
            for cls, amount in share["resources"].items():
                held[cls] = held.get(cls, 0) + amount
        return sums


@d.dataclass(frozen=True)
class ProviderRemoval:
    """The deletion of an empty provider tree, children before their parents."""

    providers: tuple[Provider, ...]

    action: t.ClassVar[str] = DELETE_PROVIDERS
    frees: t.ClassVar[Amounts] = {}
    allocates: t.ClassVar[Amounts] = {}

    def get_side(self, side: str) -> dict[str, t.Any]:
        """Return the names of the providers `before`, and nothing `after`, by uuid."""
        return (
            {provider.uuid: provider.name for provider in self.providers}
            if side == "before"
            else {}
        )

    def as_dict(self) -> dict[str, t.Any]:
        fields = ("uuid", "name", "generation", "parent")
        told = [
            {field: getattr(provider, field) for field in fields} for provider in self.providers
        ]
        return {"action": self.action, "providers": told}


def build_body(allocation: Allocation) -> dict[str, t.Any]:
    """Return the body that would write `allocation`: its generation guards it, and an untyped consumer has no type in it."""
    body: dict[str, t.Any] = {
        "allocations": {
            provider: {"resources": dict(sorted(share.items()))}
            for provider, share in sorted(allocation.resources.items())
        },
        "consumer_generation": allocation.generation,
        "project_id": allocation.project,
        "user_id": allocation.user,
    }
    return body if allocation.type is None else {**body, "consumer_type": allocation.type}


class Diffable(t.Protocol):
    """A change that `--diff` can show."""

    def get_side(self, side: str) -> dict[str, t.Any]: ...


def build_diff(changes: Iterable[Diffable]) -> dict[str, dict[str, t.Any]]:
    """Return what Ansible shows with `--diff`."""
    sides: dict[str, dict[str, t.Any]] = {"before": {}, "after": {}}
    for change in changes:
        for side, shown in sides.items():
            shown.update(change.get_side(side))
    return sides


def is_same_allocation(one: Mapping[str, t.Any], other: Mapping[str, t.Any]) -> bool:
    """Tell whether two documents give a consumer the same shares and owner, whatever their generations; nobody owns nothing."""
    if one["allocations"] != other["allocations"]:
        return False
    return not one["allocations"] or all(
        one.get(key) == other.get(key) for key in ("project_id", "user_id", "consumer_type")
    )


def build_reduction(allocation: Allocation, removed: AbstractSet[str]) -> Change:
    """Return the change that takes the `removed` providers from `allocation` and leaves every other share as it is."""
    kept = {
        provider: share
        for provider, share in allocation.resources.items()
        if provider not in removed
    }
    if allocation.generation is None:
        raise ValueError(f"{allocation.consumer} holds nothing that could be changed")
    return build_change(allocation, resources=kept)


def build_change(allocation: Allocation, partner: Change | None = None, **fields: t.Any) -> Change:
    """Return the change of `allocation` in which the fields `fields` (`resources`, `project`, `user`) are different."""
    after = build_body(d.replace(allocation, **fields))
    before = build_body(allocation)
    if not allocation.resources:
        before |= {"project_id": after["project_id"], "user_id": after["user_id"]}
    return Change(allocation.consumer, allocation.generation, before, after, partner)


def sort_children_first(root: str, providers: Iterable[Provider]) -> tuple[Provider, ...]:
    """Return the providers of the tree `root` in an order in which Placement lets them be deleted."""
    tree = {provider.uuid: provider for provider in providers if provider.root == root}

    def depth(provider: Provider) -> int:
        return 0 if provider.parent not in tree else 1 + depth(tree[provider.parent])

    return tuple(sorted(tree.values(), key=lambda provider: (-depth(provider), provider.name)))


def _subtract_amounts(
    here: Mapping[str, Mapping[str, int]], there: Mapping[str, Mapping[str, int]]
) -> Amounts:
    """Return what is here and not there."""
    found = {}
    for provider, share in here.items():
        other = there.get(provider, {})
        more = {
            cls: amount - other.get(cls, 0)
            for cls, amount in share.items()
            if amount > other.get(cls, 0)
        }
        if more:
            found[provider] = more
    return found
