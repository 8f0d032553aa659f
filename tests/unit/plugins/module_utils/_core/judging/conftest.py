"""Two hosts, beside a third one with a server in order."""

from __future__ import annotations

import pytest

from ...world import World


@pytest.fixture(name="world")
def _world() -> World:
    world = World()
    third = world.host("compute-3")
    world.server(third, third)
    return world


@pytest.fixture(name="here")
def _here(world: World) -> str:
    return world.host("compute-1")


@pytest.fixture(name="there")
def _there(world: World) -> str:
    return world.host("compute-2")
