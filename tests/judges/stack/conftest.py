"""The stack for its tests, which starts once, and what each of them has measured."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ....tools.json_text import format_json
from ...integration.conftest import ansible, connection, placement, wires
from ...integration.strays import Strays
from ...integration.support import ROOT, Ansible, Placement
from . import needs
from .bed import Stack, choose_home
from .hosts import NAMES
from .world import Measured, StackWorld

__all__ = ["ansible", "connection", "placement", "wires"]

RESULTS = Path(__file__).parents[1] / "results" / "stack.json"


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    reason = needs.lacking()
    if reason:
        pytest.skip(f"no real stack here: {reason}")
    home, kept = choose_home()
    stack = Stack(home)
    if not kept:
        stack.purge()
    try:
        stack.up()
        yield stack
    finally:
        if not kept:
            stack.purge()


@pytest.fixture(scope="module")
def minicloud(stack: Stack) -> Stack:
    """The cloud as the fixtures of the integration tests know it, with all hosts up."""
    StackWorld(stack).revive(*NAMES)
    return stack


@pytest.fixture(scope="module")
def world(minicloud: Stack) -> Iterator[StackWorld]:
    world = StackWorld(minicloud)
    yield world
    world.revive(*NAMES)
    world.close()


@pytest.fixture(scope="module")
def few(
    world: StackWorld, placement: Placement, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Strays]:
    """Three orphans and the plan to remove them: one request writes them all."""
    yield from _strays(world, placement, tmp_path_factory, 3)


@pytest.fixture(scope="module")
def many(
    world: StackWorld, placement: Placement, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Strays]:
    """Twenty orphans and the plan to remove them, which needs three requests."""
    yield from _strays(world, placement, tmp_path_factory, 20)


def _strays(
    world: StackWorld, placement: Placement, tmp_path_factory: pytest.TempPathFactory, count: int
) -> Iterator[Strays]:
    # Nothing can be proven in a cloud without any server.
    world.boot("compute-1")
    ansible = Ansible(ROOT, tmp_path_factory.mktemp("strays"), world.stack.environment)
    strays = Strays(ansible, placement, count)
    yield strays
    strays.release()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    yield
    item.passed = True  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def measured(request: pytest.FixtureRequest) -> Iterator[Measured]:
    """What the test has measured, which becomes its part of the results if it passes."""
    found: Measured = {}
    began = time.monotonic()
    yield found
    if not getattr(request.node, "passed", False):
        return
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    seconds = round(time.monotonic() - began)
    known[request.node.name] = {**found, "seconds": seconds}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(format_json(known))
