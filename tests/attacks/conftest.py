"""The same cloud as the integration tests have, with servers to attack."""

import uuid
from collections.abc import Iterator

import pytest

from ..integration.conftest import (
    ansible,
    connection,
    few,
    many,
    minicloud,
    own_cloud,
    placement,
    wires,
    world,
)
from ..integration.forks import schedule
from ..integration.interposer import interposed
from ..integration.support import Ansible, Minicloud, Placement
from ..integration.world import World
from .bed import Bed, Siege

__all__ = [
    "ansible",
    "connection",
    "few",
    "many",
    "minicloud",
    "own_cloud",
    "placement",
    "wires",
    "world",
]


@pytest.fixture(scope="module")
def bed(minicloud: Minicloud, world: World, placement: Placement) -> Iterator[Bed]:
    """Live servers that a false answer makes look dead, and orphans that any run may remove.

    Beside them there is a provider of something else, which is read like a host without Nova.
    """
    placement.needs("1.38", "unknown consumers can be proven")
    minicloud.scenario("healthy")
    foreign = placement.create_provider(f"foreign-{uuid.uuid4()}", {"VCPU": {"total": 8}})
    yield Bed.make(world, placement)
    placement.change("DELETE", f"/resource_providers/{foreign}")


@pytest.fixture(scope="module")
def besieged(
    minicloud: Minicloud, bed: Bed, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Siege]:
    """Runs through interposers, with every kind that changes an allocation and without ages."""
    ansible = Ansible(minicloud.root, tmp_path_factory.mktemp("siege"), minicloud.environment)
    with interposed(ansible, minicloud) as wires, schedule(ansible) as scheduled:
        yield Siege(bed, wires, scheduled)


@pytest.fixture
def siege(besieged: Siege) -> Iterator[Siege]:
    """The same for one test, with all orphans in their places and nobody in between."""
    besieged.begin()
    yield besieged
    besieged.end()
