"""The search finds what trying everything finds."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from .......plugins.module_utils._core.expected.search import (
    Amounts,
    Problem,
    Unit,
    find_closest,
    find_nearest,
    measure_distances,
)

PROVIDERS = ("a", "b", "c")
CLASSES = ("X", "Y")
KEYS = tuple(itertools.product(PROVIDERS, CLASSES))


@st.composite
def make_problems(draw: st.DrawFn) -> Problem:
    units = []
    for number in range(draw(st.integers(1, 4))):
        resources = draw(st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 2), min_size=1))
        providers = draw(st.permutations(PROVIDERS))[: draw(st.integers(1, 3))]
        isolated = draw(st.booleans())
        swappable = draw(st.booleans())
        units.append(Unit(f"group {number}", resources, tuple(providers), isolated, swappable))
    amounts = st.dictionaries(st.sampled_from(KEYS), st.integers(1, 4))
    limits = {key: draw(st.integers(0, 5)) for key in KEYS}
    refused = draw(st.sampled_from((*PROVIDERS, None)))
    ordered = tuple(units)
    first = next((number for number, unit in enumerate(units) if not unit.swappable), None)

    def accept(chosen: tuple[str, ...]) -> bool:
        # Only a unit that cannot be swapped may be refused a provider.
        return first is None or chosen[first] != refused

    return Problem(ordered, draw(amounts), limits, frozenset(), accept)


def list_placements(problem: Problem) -> list[Amounts]:
    """Return all placements, each once."""
    placements: list[Amounts] = []
    for chosen in itertools.product(*(unit.providers for unit in problem.units)):
        isolated = [
            provider for unit, provider in zip(problem.units, chosen, strict=True) if unit.isolated
        ]
        amounts: Amounts = {}
        for unit, provider in zip(problem.units, chosen, strict=True):
            for cls, amount in unit.resources.items():
                amounts[provider, cls] = amounts.get((provider, cls), 0) + amount
        fits = all(amount <= problem.limits[key] for key, amount in amounts.items())
        if not fits or len(set(isolated)) < len(isolated) or not problem.accept(chosen):
            continue
        if amounts not in placements:
            placements.append(amounts)
    return placements


@given(make_problems())
def test_the_closest_placements_are_found(problem: Problem) -> None:
    solution = find_closest(problem)

    distances = []
    for placement in list_placements(problem):
        distance = sum(measure_distances(placement, problem.present).values())
        distances.append((distance, placement))
    least = min((distance for distance, _placement in distances), default=0)
    closest = [placement for distance, placement in distances if distance == least]
    assert solution.complete
    assert len(solution.placements) == min(2, len(closest))
    assert all(placement in closest for placement in solution.placements)
    assert solution.distance == least


@given(make_problems())
def test_the_nearest_placement_is_as_near_as_any_in_each_class(problem: Problem) -> None:
    placements = list_placements(problem)
    vectors = [measure_distances(placement, problem.present) for placement in placements]
    nearest = []
    for placement, vector in zip(placements, vectors, strict=True):
        if all(vector.get(cls, 0) <= other.get(cls, 0) for other in vectors for cls in CLASSES):
            nearest.append(placement)

    found, why = find_nearest(problem)

    assert why is None
    if len(nearest) == 1:
        assert list(found) == nearest
    else:
        assert len(found) == min(2, len(placements))
