# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Foresees the writes that Placement refuses for the inventories of their providers.

Placement checks all that a consumer has after a write, also what stays as it is
(placement/objects/allocation.py, _check_capacity_exceeded). Before 14.0 it refuses every amount on
a provider with more in use than its capacity; since then, only a write that adds to it. Nothing
shows which of both a Placement does until it refuses.
"""

from __future__ import annotations

import collections
import functools
import math
from collections.abc import Iterator, Mapping, Sequence

from ..._common.errors import CapacityRefused, CloudError, Reason
from ..._common.text import make_printable
from ..models.change import AllocationBody, Change
from ..models.placement import Inventory, Provider, ProviderDetails
from .placement import PlacementReader

_PARTS = ("inventories", "usages")


class CapacityCheck:
    """Compares changes with what their providers have, and what is in use there."""

    def __init__(self, placement: PlacementReader) -> None:
        self._placement = placement
        # What the changes that were found possible add, by provider and resource class.
        self._added: collections.Counter[tuple[str, str]] = collections.Counter()
        # Whether this Placement refuses also what does not add to an overuse.
        self._is_strict = False

    def foresee(self, changes: Sequence[Change], check_mode: bool) -> list[Reason | None]:
        """Return of each change why Placement refuses it after those before it; None if not.

        Only providers on which a consumer keeps or gets something are read. Raises CloudError when
        one cannot be read.

        check_mode: whether nothing is written, so that the changes of earlier calls count too.
        """
        if not check_mode:
            self._added.clear()
        parts = [part for change in changes for part in change.parts]
        kept = {uuid for part in parts for uuid in part.after["allocations"]}
        details = self._placement.get_details(sorted(kept), _PARTS)
        reasons = []
        for change in changes:
            reason = self._explain(change, details, self._is_strict)
            if reason is None:
                self._added.update(_sum_added(change))
            reasons.append(reason)
        return reasons

    def explain(self, change: Change, refusal: CapacityRefused) -> CapacityRefused:
        """Return why Placement has refused a change alone, as far as its providers show it."""
        self._added.clear()
        sides = [side for part in change.parts for side in (part.before, part.after)]
        touched = {uuid for side in sides for uuid in side["allocations"]}
        try:
            details = self._placement.get_details(sorted(touched), _PARTS)
            reason = self._explain(change, details, False)
            if reason is None:
                reason = self._explain(change, details, True)
                self._is_strict |= reason is not None
        except CloudError:
            return refusal
        return CapacityRefused(reason) if reason else refusal

    def _explain(
        self, change: Change, details: Mapping[str, ProviderDetails], is_strict: bool
    ) -> Reason | None:
        problems = [*self._find_problems(change, details, is_strict)]
        if not problems:
            return None
        told = "; ".join(dict.fromkeys(problems))
        return Reason("blocked_by_capacity", f"Placement refuses this change: {told}.")

    def _find_problems(
        self, change: Change, details: Mapping[str, ProviderDetails], is_strict: bool
    ) -> Iterator[str]:
        added = _sum_added(change)
        for part in change.parts:
            for uuid, cls, amount in _list_amounts(part.after):
                # A provider that is gone is refused for another reason.
                if uuid not in details:
                    continue
                stock = details[uuid].inventories.get(cls)
                if stock is None:
                    yield f"{self._name(uuid)} has no inventory of {cls}"
                    continue
                if not stock.accepts(amount):
                    yield (
                        f"{self._name(uuid)} does not accept {amount} {cls} for one consumer "
                        f"(min_unit {stock.min_unit}, max_unit {stock.max_unit}, step_size "
                        f"{stock.step_size})"
                    )
                more = added[uuid, cls]
                then = details[uuid].usages.get(cls, 0) + self._added[uuid, cls] + more
                if then > stock.capacity and (more > 0 or is_strict):
                    yield self._describe_overuse(uuid, cls, stock, then, more)
        # Placement refuses even a removal from a provider that has nothing of what is written.
        bodies = [part.after if part.after["allocations"] else part.before for part in change.parts]
        classes = {cls for body in bodies for _uuid, cls, _amount in _list_amounts(body)}
        for uuid in (uuid for body in bodies for uuid in body["allocations"]):
            if uuid in details and classes.isdisjoint(details[uuid].inventories):
                yield f"{self._name(uuid)} has no inventory of {', '.join(sorted(classes))}"

    def _describe_overuse(self, uuid: str, cls: str, stock: Inventory, then: int, more: int) -> str:
        name, real = self._name(uuid), stock.total - stock.reserved
        told = (
            f"{name} would have {then} {cls} in use and has a capacity of {stock.capacity} ("
            f"total {stock.total}, reserved {stock.reserved}, allocation_ratio "
            f"{stock.allocation_ratio:g})"
        )
        if more <= 0:
            told += ", and Placement before 14.0 refuses also what adds nothing to that"
        if real > 0:
            ratio = math.ceil(100 * then / real) / 100
            told += f"; an allocation_ratio of {ratio:g} is enough"
        return told

    def _name(self, uuid: str) -> str:
        provider = self._providers.get(uuid)
        return make_printable(provider.name if provider else uuid, 100)

    @functools.cached_property
    def _providers(self) -> Mapping[str, Provider]:
        return self._placement.list_providers()


def _sum_added(change: Change) -> collections.Counter[tuple[str, str]]:
    """Return what a change adds, by provider and resource class; below zero what it frees."""
    sums: collections.Counter[tuple[str, str]] = collections.Counter()
    for part in change.parts:
        for uuid, cls, amount in _list_amounts(part.after):
            sums[uuid, cls] += amount
        for uuid, cls, amount in _list_amounts(part.before):
            sums[uuid, cls] -= amount
    return sums


def _list_amounts(body: AllocationBody) -> Iterator[tuple[str, str, int]]:
    for uuid, allocation in body["allocations"].items():
        for cls, amount in allocation["resources"].items():
            yield uuid, cls, amount
