"""A second cell that is added while nova-api runs, and the servers in it.

Some workers of nova-api do not know the cell.

Nova keeps two lists of its cells in each worker for the life of the process
(`minicloud_ctl.api_workers`): OLD filled both before the cell existed, PRIMED filled one before and
one after, and NEW is the restarted nova-api.
"""

import dataclasses as d
import random
import re
import typing as t

from minicloud_ctl import api_workers, cells, databases, holdings, lifecycle, servers

from .interposer import Wires
from .world import World

CELL = "cell2"
# FIRST holds its live migrations until the end, and DOOMED is killed. EMPTY and TWIN never have a
# server, and TWIN has two nodes.
FIRST, SECOND, DOOMED, EMPTY, TWIN = (
    f"cell2-{name}" for name in ("first", "second", "doomed", "empty", "twin")
)
HOSTS = (FIRST, SECOND, DOOMED, EMPTY, TWIN)

# While this file exists, a live migration does not end (`minicloud_venv.virt`).
HOLD = "hold-live-migrations"

OLD, PRIMED, NEW = "old", "primed", "new"

# Which requests go to which worker, first match wins: the worst that a load balancer can do by
# chance.
Pins = t.Sequence[tuple[str, str]]


@d.dataclass
class Workers:
    """The processes of nova-api, by name with their ports."""

    ports: dict[str, int]
    world: World

    def restart(self) -> None:
        """Let every worker find all cells when it next looks."""
        api_workers.restart(self.world.paths, OLD, PRIMED)

    def answer(
        self,
        wires: Wires,
        *names: str,
        seed: int = 0,
        weights: t.Sequence[float] | None = None,
        pins: Pins = (),
        by_uri: bool = False,
    ) -> None:
        """Let one of the named workers at random answer each request.

        Requests that match a pin are answered by its worker.

        by_uri: whether the same request always goes to the same worker, as with HAProxy's `balance
        uri whole`.
        """
        dice = random.Random(seed)
        pinned = [(re.compile(pattern), self.ports[name]) for pattern, name in pins]
        ports = [self.ports[name] for name in names]

        def route(request: str) -> int:
            for pattern, port in pinned:
                if pattern.search(request):
                    return port
            return (random.Random(f"{seed} {request}") if by_uri else dice).choices(ports, weights)[
                0
            ]

        wires.nova.route = route


def add_inhabited_cell(world: World) -> None:
    """Add the cell with the hosts that `settle` needs."""
    cells.add(world.paths, CELL, [SECOND, DOOMED])
    lifecycle.start_computes(world.paths, [FIRST], cell=CELL, driver="minicloud.HeldLiveMigration")


def release(world: World) -> None:
    """Let the live migration of `settle` end."""
    (world.paths.compute(FIRST) / HOLD).unlink(missing_ok=True)


def add_cell(world: World) -> Workers:
    """Start the workers, add the cell with its hosts, and let each worker look at its time."""
    ports = api_workers.start(world.paths, OLD, PRIMED)
    api_workers.prime(world.paths, OLD, "context", "compute")
    api_workers.prime(world.paths, PRIMED, "context")
    add_inhabited_cell(world)
    cells.add(world.paths, CELL, [EMPTY])
    lifecycle.start_computes(world.paths, [TWIN], cell=CELL, driver="minicloud_ironic.TwoNodes")
    api_workers.prime(world.paths, PRIMED, "compute")
    return Workers({**ports, NEW: world.state.ports["nova-api"]}, world)


@d.dataclass
class Guests:
    """The consumers with allocations in the new cell, by what happened to them.

    Some of them need their allocation, and some do not.
    """

    live: dict[str, str] = d.field(default_factory=dict)
    orphans: dict[str, str] = d.field(default_factory=dict)


def settle(world: World) -> Guests:
    """Let servers live, move and be deleted in the new cell."""
    guests = Guests()
    cloud = world.cloud
    deleted = servers.boot(cloud, "deleted in cell2", DOOMED)
    deleted_held = holdings.of(cloud, deleted)
    servers.delete(cloud, deleted)
    holdings.await_providers(cloud, deleted)

    guests.live["rests"] = servers.boot(cloud, "rests in cell2", SECOND)
    _end_migration(world, guests)
    _leave_unconfirmed(world, guests)
    _move(world, guests)
    _kill_on_the_way(world, guests)

    holdings.write_back(cloud, deleted, deleted_held)
    guests.orphans["deleted server"] = deleted
    return guests


def _end_migration(world: World, guests: Guests) -> None:
    server = servers.boot(world.cloud, "moved in cell2", SECOND)
    migration = servers.migrate(world.cloud, server, FIRST)
    held = holdings.of(world.cloud, migration)
    servers.confirm(world.cloud, server)
    holdings.await_providers(world.cloud, migration)
    holdings.write_back(world.cloud, migration, held)
    guests.live["moved"] = server
    guests.orphans["ended migration"] = migration


def _leave_unconfirmed(world: World, guests: Guests) -> None:
    """Leave a move unconfirmed: the migration has the allocation that a revert needs."""
    server = servers.boot(world.cloud, "unconfirmed in cell2", SECOND)
    guests.live["unconfirmed migration"] = servers.migrate(world.cloud, server, FIRST)
    guests.live["unconfirmed"] = server


def _move(world: World, guests: Guests) -> None:
    """Begin a live migration that does not end before `release`."""
    server = servers.boot(world.cloud, "moves in cell2", FIRST)
    (world.paths.compute(FIRST) / HOLD).touch()
    servers.act(world.cloud, server, "os-migrateLive", {"host": SECOND, "block_migration": "auto"})
    guests.live["moving migration"] = servers.await_migration(world.cloud, server, "running")
    holdings.await_providers(world.cloud, server, world.provider(SECOND))
    guests.live["moving"] = server


def _kill_on_the_way(world: World, guests: Guests) -> None:
    """Let DOOMED die.

    One server can no longer be built there, and the migration of another, deleted since, is unknown
    to Nova.
    """
    cloud, source, destination = world.cloud, world.provider(SECOND), world.provider(DOOMED)
    mover = servers.boot(cloud, "forgotten in cell2", SECOND)
    # The scheduler considers the dead host alive until service_down_time has passed, which is long
    # enough.
    lifecycle.kill_compute(world.paths, DOOMED)
    servers.act(cloud, mover, "migrate", {"host": DOOMED})
    booting = servers.request_boot(cloud, "booting in cell2", DOOMED)

    def in_flight() -> str | None:
        found = servers.migrations(cloud, mover)
        there = found and set(holdings.of(cloud, mover).allocations) == {destination}
        return (
            found[0]["uuid"]
            if there and set(holdings.of(cloud, found[0]["uuid"]).allocations) == {source}
            else None
        )

    guests.orphans["forgotten migration"] = world.wait("the claims of the move", in_flight)
    servers.act(cloud, mover, "os-resetState", {"state": "active"})
    servers.delete(cloud, mover)
    holdings.await_providers(cloud, mover)
    holdings.await_providers(cloud, booting, destination)
    actions = f"/servers/{booting}/os-instance-actions"
    world.wait(
        "the server to be handed to its host",
        lambda: (cloud.nova_call("GET", actions).body or {}).get("instanceActions"),
    )
    guests.live["booting"] = booting


def set_back(world: World, days: int) -> None:
    """Make all allocations and events older by so much, in the services' own databases."""
    databases.set_back(world.paths, 24 * days)
