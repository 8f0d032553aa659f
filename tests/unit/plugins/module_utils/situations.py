"""A cloud with two hosts, and one situation in it for each kind of finding.

Each creates its consumer and returns it.
"""

import typing as t
from collections.abc import Callable

from .....plugins.module_utils._core.models.finding import Finding
from .....plugins.module_utils._core.models.placement import ProviderDetails
from .judging import NO_MINIMUM_AGE, judge
from .world import PLENTY, World

Situation = Callable[["Cloud"], str]


class Cloud(World):
    """Two hosts and one settled server, with which the credentials pass."""

    def __init__(self) -> None:
        super().__init__()
        self.here = self.host("compute-1")
        self.there = self.host("compute-2")
        self.pool = self.provider("pool", sharing=True)
        self.server(self.there, self.there)

    def found(self, consumer: str, **changes: t.Any) -> Finding:
        return next(
            finding
            for finding in judge(self.snapshot(**changes), NO_MINIMUM_AGE)
            if finding.consumer == consumer
        )


def deleted_server(cloud: Cloud) -> str:
    server = cloud.server(cloud.here, cloud.here)
    cloud.delete(server)
    return server


def deleted_migration(cloud: Cloud) -> str:
    migration = cloud.stranger(cloud.here)
    cloud.unlisted_migrations.add(migration)
    return migration


def unknown_consumer(cloud: Cloud) -> str:
    return cloud.stranger(cloud.here)


def evacuated_source(cloud: Cloud) -> str:
    server = cloud.server(cloud.there, cloud.here, cloud.there)
    cloud.migration(server, cloud.here, cloud.there, "done", type="evacuation")
    return server


def extra_host(cloud: Cloud) -> str:
    return cloud.server(cloud.there, cloud.here, cloud.there)


def ended_migration(cloud: Cloud) -> str:
    return cloud.migration(
        cloud.server(cloud.there, cloud.there), cloud.here, cloud.there, "confirmed", cloud.here
    )


def build_world_of_every_action() -> tuple[World, dict[str, t.Any]]:
    """Return a world with a finding for each action, and what its snapshot has besides."""
    world = World()
    here, there, third = (world.host(f"compute-{number}") for number in (1, 2, 3))
    world.delete(world.server(here, here))
    world.stranger(here, type="INSTANCE")
    world.server(there, here, there)
    world.migration(world.server(here, there), here, there, "reverted", here)
    world.server(here, there)
    world.server(third, third, project="theirs")
    world.server(third)
    bare, full = world.provider("ghost-1"), world.provider("ghost-2")
    world.provider("ghost-2_port", world.provider("ghost-2_agent", full))
    owned = ProviderDetails(
        {"VCPU": PLENTY, "MEMORY_MB": PLENTY}, traits=frozenset({"COMPUTE_NODE"})
    )
    return world, {"details": dict.fromkeys((bare, full), owned)}
