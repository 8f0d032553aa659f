"""Our resource requests against those of Nova's own code, and our placements against Placement's.

Nova is not started: its code is called, in the environment of the minicloud.
"""

import collections
import json
import subprocess
import typing as t
from collections.abc import Iterable, Mapping

import pytest
from minicloud_ctl import releases
from minicloud_ctl.paths import Paths

from ...plugins.module_utils._core.expected.placing import compare
from ...plugins.module_utils._core.expected.request import build_requests
from ...plugins.module_utils._core.models.other_services import ResourceRequest
from ...plugins.module_utils._core.models.placement import Allocations
from .placement_worlds import PlacementWorld, disturb, list_placement_worlds
from .request_worlds import RequestWorld, list_request_worlds
from .support import ROOT, Minicloud

# Our code follows the newest Nova.
pytestmark = pytest.mark.skipif(
    releases.choose() != releases.NEWEST, reason="only the newest Nova says what is right"
)

SCRIPTS = ROOT / "tests" / "minicloud" / "minicloud_venv"


@pytest.mark.long
@pytest.mark.parametrize("count, seed", [(1_000, 1), (10_000, 2)])
def test_requests_are_those_of_nova(own_cloud: Minicloud, count: int, seed: int) -> None:
    worlds = list(list_request_worlds(count, seed))
    answers = ask("resource_requests.py", (world.nova for world in worlds))

    tally: collections.Counter[str] = collections.Counter()
    for world, answer in zip(worlds, answers, strict=True):
        tally[judge(world, answer)] += 1

    print(dict(tally))
    # Most worlds decide something.
    assert tally["equal"] > count * 0.6
    # What Nova accepts and we read is undecided only because of a name that nobody knows, or of
    # an empty policy.
    assert tally["undecided without a reason"] == 0
    assert tally["undecided because of an empty policy"] < count * 0.005


def judge(world: RequestWorld, answer: Mapping[str, t.Any]) -> str:
    """Return how our requests compare with those of Nova; fail if they differ."""
    requests = build_requests(world.inputs)
    missing = {
        part.name: part.reason for request in requests for part in request.missing if not part.pci
    }
    if "refused" in answer:
        assert missing, (world, answer)
        return "refused"
    if not missing:
        assert [describe(request) for request in requests] == answer["requests"], world
        return "equal"
    if world.hidden:
        return "undecided because of a hidden part"
    if "NEW_CLASS" in json.dumps(world.nova):
        return "undecided because of an unknown class"
    if world.nova["flavor"]["extra_specs"].get("hw:cpu_thread_policy") == "":
        return "undecided because of an empty policy"
    print(world, missing)
    return "undecided without a reason"


def describe(request: ResourceRequest) -> dict[str, t.Any]:
    groups = {}
    for name, group in request.groups.items():
        groups[name] = {
            "resources": dict(group.resources),
            "required": sorted(group.required),
            "forbidden": sorted(group.forbidden),
        }
    return {
        "groups": groups,
        "isolate": request.isolate,
        "same_subtree": [sorted(names) for names in request.same_subtree],
    }


def ask(script: str, questions: Iterable[object]) -> list[t.Any]:
    """Return the answers of a script of the minicloud's environment, one for each question."""
    done = subprocess.run(
        [Paths.choose(None).program("python"), str(SCRIPTS / script)],
        input="".join(f"{json.dumps(question)}\n" for question in questions),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("count, seed", [(20, 3), pytest.param(400, 11, marks=pytest.mark.long)])
def test_placements_are_those_of_placement(own_cloud: Minicloud, count: int, seed: int) -> None:
    worlds = list(list_placement_worlds(count, seed))
    answers = ask("allocation_candidates.py", (world.describe() for world in worlds))

    tally: collections.Counter[str] = collections.Counter()
    for number, (world, candidates) in enumerate(zip(worlds, answers, strict=True)):
        unique = list_unique(candidates)
        for candidate in unique:
            expectation = compare([world.request], world.tree, candidate)
            assert expectation.matches, (world, candidate, expectation)
            assert expectation.allocations == candidate
        tally[judge_empty(world, unique)] += 1
        if unique:
            damaged = disturb(unique[0], world, f"{seed}/{number}")
            tally[judge_damaged(world, unique, damaged)] += 1

    print(dict(tally))
    # Enough worlds decide something.
    assert tally["the only candidate"] > count * 0.05
    assert tally["the nearest candidate"] > count * 0.1
    assert tally["keeps what Placement would not give now"] <= count * 0.02


def list_unique(candidates: Iterable[Allocations]) -> list[Allocations]:
    """Return the candidates without those that differ only in which group has what."""
    unique: list[Allocations] = []
    for candidate in candidates:
        if candidate not in unique:
            unique.append(candidate)
    return unique


def judge_empty(world: PlacementWorld, candidates: list[Allocations]) -> str:
    """Return what is expected of a server without allocations; fail if that is wrong."""
    expectation = compare([world.request], world.tree, {})
    if len(candidates) == 1:
        assert expectation.allocations == candidates[0], (world, candidates, expectation)
        return "the only candidate"
    if not candidates and requires_absent_trait(world):
        # Placement would not put a server there now, but this one is there.
        return "a trait that is gone"
    assert expectation.allocations is None, (world, candidates, expectation)
    return "several candidates" if candidates else "no candidate"


def requires_absent_trait(world: PlacementWorld) -> bool:
    main = world.request.groups.get("")
    return main is not None and bool(main.required)


def judge_damaged(
    world: PlacementWorld, candidates: list[Allocations], damaged: Allocations
) -> str:
    """Return what is expected of a server with wrong allocations; fail if that is wrong."""
    expectation = compare([world.request], world.tree, damaged)
    if damaged in candidates:
        assert expectation.matches
        return "still a candidate"
    if expectation.allocations is None:
        return f"undecided: {expectation.why}"
    if expectation.matches:
        # What is there is right although traits and units may have changed since.
        sums = measure_by_class(damaged, {})
        assert sums == measure_by_class(candidates[0], {}), (world, damaged, expectation)
        return "right although Placement would not give it now"
    if expectation.allocations not in candidates:
        # It keeps resources on a provider that may have had the traits when they were allocated.
        assert shares_amounts(expectation.allocations, damaged), (world, damaged, expectation)
        return "keeps what Placement would not give now"
    chosen = measure_by_class(expectation.allocations, damaged)
    for candidate in candidates:
        if candidate == expectation.allocations:
            continue
        other = measure_by_class(candidate, damaged)
        assert chosen != other, (world, candidates, damaged, expectation)
        assert all(chosen[cls] <= other[cls] for cls in other), (world, candidates, damaged)
    return "the nearest candidate"


def shares_amounts(first: Allocations, second: Allocations) -> bool:
    for provider in first.keys() & second.keys():
        if first[provider].keys() & second[provider].keys():
            return True
    return False


def measure_by_class(first: Allocations, second: Allocations) -> collections.Counter[str]:
    """Return for each class the sum of the amounts by which both differ."""
    distances: collections.Counter[str] = collections.Counter()
    for provider in first.keys() | second.keys():
        left, right = first.get(provider, {}), second.get(provider, {})
        for cls in left.keys() | right.keys():
            distances[cls] += abs(left.get(cls, 0) - right.get(cls, 0))
    return distances
