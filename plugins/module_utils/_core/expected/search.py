# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the placement that differs least from present allocations. Pure.

One sum over all classes would weigh MiB against CPUs. So the nearest placement has to be as near as
any other in each class; where one is nearer in this class and another in that, none is.
"""

from __future__ import annotations

import collections
import dataclasses as d
import math
from collections.abc import Callable, Iterable, Mapping

from ..._common.errors import Reason
from ..models.placement import Resources, sum_amounts

Key = tuple[str, str]
"""A provider and a resource class."""
Amounts = dict[Key, int]
"""Amounts by provider and resource class, all above zero."""
# How many steps one search may take; it then ends without being complete.
_MOST_STEPS = 20_000


@d.dataclass(frozen=True)
class Unit:
    """Resources that are of one provider, and the providers that they can be of.

    name: of a request group; empty for one class of the group without a suffix.
    isolated: whether no other isolated unit may have the same provider.
    swappable: whether it does not matter which of several such units has which provider.
    """

    name: str
    resources: Resources
    providers: tuple[str, ...]
    isolated: bool = False
    swappable: bool = True


@d.dataclass(frozen=True)
class Problem:
    """What is searched.

    present: what there is. limits: the most that the units together may have of each key.
    ignored: the keys that are not compared. accept: whether a complete placement, the provider of
        each unit, is allowed. largest_distance: None if any distance is allowed.
    """

    units: tuple[Unit, ...]
    present: Mapping[Key, int]
    limits: Mapping[Key, int]
    ignored: frozenset[Key]
    accept: Callable[[tuple[str, ...]], bool]
    largest_distance: int | None = None


@d.dataclass(frozen=True)
class Solution:
    """The placements that differ least from what is present.

    placements: at most two of them. distance: the sum of the amounts by which they differ from what
        is present. complete: whether all placements were looked at.
    """

    placements: tuple[Amounts, ...]
    distance: int
    complete: bool


def find_closest(problem: Problem) -> Solution:
    """Return the placements of all units that differ least from what is present."""
    search = _Search(problem)
    search.place(0, 0)
    distance = int(search.best) if search.found else 0
    return Solution(tuple(search.found), distance, search.steps < _MOST_STEPS)


class _Search:
    """A depth-first search that leaves out whatever differs more than what is found already."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        # Units that can be swapped are side by side, so that each set of providers is tried once.
        self.order = sorted(
            range(len(problem.units)), key=lambda index: _get_sort_key(problem.units[index])
        )
        self.units = [problem.units[index] for index in self.order]
        self.amounts: Amounts = {}
        self.chosen: list[str] = []
        self.found: list[Amounts] = []
        largest = problem.largest_distance
        self.best: float = math.inf if largest is None else largest
        self.steps = 0
        self._later_keys = self._collect_later_keys()
        self._later_amounts = self._sum_later_amounts()
        self._ignored_classes = {cls for _provider, cls in problem.ignored}

    def place(self, position: int, first: int) -> None:
        """Place the unit at `position` and all after it.

        first: the index of the first provider to try, because those before it were tried with the
            units swapped.
        """
        if position == len(self.units):
            self._keep_placement()
            return
        unit = self.units[position]
        for index in range(first, len(unit.providers)):
            provider = unit.providers[index]
            self.steps += 1
            if self.steps >= _MOST_STEPS:
                return
            if not self._can_add(unit, provider):
                continue
            self._add(unit, provider, 1)
            self.chosen.append(provider)
            next_first = index if self._has_twin(position) else 0
            if self._can_improve(self._measure_least_distance(position, next_first)):
                self.place(position + 1, next_first)
            self.chosen.pop()
            self._add(unit, provider, -1)

    def _can_add(self, unit: Unit, provider: str) -> bool:
        pairs = zip(self.units, self.chosen, strict=False)
        if unit.isolated and any(other.isolated and taken == provider for other, taken in pairs):
            return False
        keys = (((provider, cls), amount) for cls, amount in unit.resources.items())
        limits = self.problem.limits
        return all(self.amounts.get(key, 0) + more <= limits.get(key, 0) for key, more in keys)

    def _add(self, unit: Unit, provider: str, sign: int) -> None:
        for cls, amount in unit.resources.items():
            key = (provider, cls)
            total = self.amounts.get(key, 0) + sign * amount
            if total:
                self.amounts[key] = total
            else:
                del self.amounts[key]

    def _has_twin(self, position: int) -> bool:
        """Return whether the next unit can be swapped with the one at `position`."""
        unit, following = self.units[position], self.units[position + 1 : position + 2]
        return any(_get_sort_key(unit) == _get_sort_key(other) for other in following)

    def _can_improve(self, distance: int) -> bool:
        return distance < self.best if len(self.found) > 1 else distance <= self.best

    def _measure_least_distance(self, position: int, next_first: int) -> int:
        """Return the least distance that is possible, whatever follows."""
        open_keys = self._later_keys[position]
        still_tried: set[str] = set()
        unit = self.units[position]
        if self._has_twin(position):
            still_tried.update(unit.providers[next_first:])
        distance = 0
        # What later units have at the least to add or to leave out, by class.
        rest = dict(self._later_amounts[position])
        for key in self._list_compared_keys():
            amount, present = self.amounts.get(key, 0), self.problem.present.get(key, 0)
            is_open = key in open_keys or (key[0] in still_tried and key[1] in unit.resources)
            if amount < present and is_open:
                rest[key[1]] = rest.get(key[1], 0) - (present - amount)
            else:
                distance += abs(amount - present)
        compared = [cls for cls in rest if cls not in self._ignored_classes]
        return distance + sum(abs(rest[cls]) for cls in compared)

    def _list_compared_keys(self) -> set[Key]:
        return (self.amounts.keys() | self.problem.present.keys()) - self.problem.ignored

    def _collect_later_keys(self) -> list[set[Key]]:
        """Return for each unit what later units, except those that it can be swapped with, may add.

        Those have the same providers, of which only some are still tried.
        """
        later_keys: list[set[Key]] = []
        for position, unit in enumerate(self.units):
            later = [
                other
                for other in self.units[position + 1 :]
                if _get_sort_key(other) != _get_sort_key(unit)
            ]
            later_keys.append(_list_keys(later))
        return later_keys

    def _sum_later_amounts(self) -> list[dict[str, int]]:
        """Return for each unit the sum of what all units after it have, by class."""
        places = range(1, len(self.units) + 1)
        return [sum_amounts(unit.resources for unit in self.units[place:]) for place in places]

    def _keep_placement(self) -> None:
        here, present = self.amounts, self.problem.present
        keys = self._list_compared_keys()
        distance = sum(abs(here.get(key, 0) - present.get(key, 0)) for key in keys)
        if not self._can_improve(distance) or self.amounts in self.found:
            return
        chosen = dict(zip(self.order, self.chosen, strict=True))
        if not self.problem.accept(tuple(chosen[index] for index in range(len(chosen)))):
            return
        if distance < self.best:
            self.found.clear()
        self.best = distance
        self.found.append(dict(self.amounts))


def _get_sort_key(unit: Unit) -> tuple[bool, list[tuple[str, int]], tuple[str, ...], bool, str]:
    resources = sorted(unit.resources.items())
    name = "" if unit.swappable else unit.name
    return (bool(unit.name), resources, unit.providers, unit.isolated, name)


def collect_amounts(allocations: Mapping[str, Resources]) -> Amounts:
    """Return allocations by provider as amounts by key."""
    return {
        (provider, cls): amount
        for provider, resources in allocations.items()
        for cls, amount in resources.items()
        if amount
    }


def collect_allocations(amounts: Mapping[Key, int]) -> dict[str, dict[str, int]]:
    """Return amounts by key as allocations by provider."""
    allocations: dict[str, dict[str, int]] = {}
    for (provider, cls), amount in sorted(amounts.items()):
        allocations.setdefault(provider, {})[cls] = amount
    return allocations


def measure_distances(
    first: Mapping[Key, int], second: Mapping[Key, int]
) -> collections.Counter[str]:
    """Return for each class the sum of the amounts by which both differ."""
    distances: collections.Counter[str] = collections.Counter()
    for key in first.keys() | second.keys():
        distances[key[1]] += abs(first.get(key, 0) - second.get(key, 0))
    return distances


TOO_MANY = Reason(
    "too_many_placements", "it has too many possible placements on its host to try them all"
)


def find_nearest(problem: Problem) -> tuple[tuple[Amounts, ...], Reason | None]:
    """Return the placements that are nearest, two if there are several, and why there is none.

    The reason is None where there is a placement, and where no placement is possible at all.
    """
    solution = find_closest(problem)
    if not solution.complete:
        return (), TOO_MANY
    if len(solution.placements) != 1:
        return solution.placements, None
    placement = solution.placements[0]
    distances = measure_distances(placement, problem.present)
    for cls, distance in distances.items():
        if not distance:
            continue
        least = find_closest(_compare_only(problem, cls))
        if not least.complete:
            return (), TOO_MANY
        if least.distance < distance:
            return (placement, least.placements[0]), None
    return (placement,), None


def is_nearer(
    first: Mapping[Key, int], second: Mapping[Key, int], present: Mapping[Key, int]
) -> bool:
    """Return whether the first is as near to what is present in each class, and nearer in one."""
    left, right = measure_distances(first, present), measure_distances(second, present)
    return left <= right and left != right


def _compare_only(problem: Problem, cls: str) -> Problem:
    keys = _list_keys(problem.units).union(problem.present)
    return d.replace(problem, ignored=frozenset(key for key in keys if key[1] != cls))


def _list_keys(units: Iterable[Unit]) -> set[Key]:
    """Return the keys of which the units may have something."""
    return {(one, cls) for unit in units for one in unit.providers for cls in unit.resources}
