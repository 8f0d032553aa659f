# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which placement is nearest to what is present, in each resource class by itself. Pure.

One sum over all classes would weigh MiB against CPUs. So the nearest placement has to be as near as
any other in each class; where one is nearer in this class and another in that, none is.
"""

from __future__ import annotations

import dataclasses as d
from collections.abc import Mapping

from .search import Amounts, Key, Problem, find_closest, measure_distances

TOO_MANY = "it has too many possible placements on its host to try them all"


def find_nearest(problem: Problem) -> tuple[tuple[Amounts, ...], str]:
    """Return the placements that are nearest, two if there are several, and why there is none.

    The reason is empty where there is a placement, and where no placement is possible at all.
    """
    solution = find_closest(problem)
    if not solution.complete:
        return (), TOO_MANY
    if len(solution.placements) != 1:
        return solution.placements, ""
    placement = solution.placements[0]
    distances = measure_distances(placement, problem.present)
    for cls, distance in distances.items():
        if not distance:
            continue
        least = find_closest(_compare_only(problem, cls))
        if not least.complete:
            return (), TOO_MANY
        if least.distance < distance:
            return (placement, least.placements[0]), ""
    return (placement,), ""


def is_nearer(
    first: Mapping[Key, int], second: Mapping[Key, int], present: Mapping[Key, int]
) -> bool:
    """Return whether the first is as near to what is present in each class, and nearer in one."""
    left, right = measure_distances(first, present), measure_distances(second, present)
    classes = left.keys() | right.keys()
    if any(left.get(cls, 0) > right.get(cls, 0) for cls in classes):
        return False
    return any(left.get(cls, 0) < right.get(cls, 0) for cls in classes)


def _compare_only(problem: Problem, cls: str) -> Problem:
    keys = set(problem.present)
    for unit in problem.units:
        for provider in unit.providers:
            keys.update((provider, requested) for requested in unit.resources)
    return d.replace(problem, ignored=frozenset(key for key in keys if key[1] != cls))
