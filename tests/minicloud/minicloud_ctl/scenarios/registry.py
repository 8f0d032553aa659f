"""What a scenario is, the list of them, and what each can use."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from minicloud_ctl import databases, files, holdings, lifecycle
from minicloud_ctl import state as states
from minicloud_ctl.cloud import Cloud
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import Paths
from minicloud_ctl.waiting import wait_for

CELL, API = "first_cell1", "first_nova_api"


@dataclass
class Record:
    """The ground truth of one situation.

    ``Context.save`` writes it as JSON, where ``allocations`` is [{"consumer", "provider",
    "provider_name", "resources", "truth", "kind", "why"}] and ``servers`` {uuid: name}.
    """

    scenario: str
    description: str
    server: str | None = None
    server_name: str | None = None
    migration: str | None = None
    hosts: dict[str, str] = field(default_factory=dict)
    servers: dict[str, str] = field(default_factory=dict)
    allocations: list[dict] = field(default_factory=list)

    def add_server(self, server: str, name: str) -> None:
        """Add a server; the first one is the scenario's server."""
        self.servers[server] = name
        if self.server is None:
            self.server, self.server_name = server, name

    def describe(self, server: str, migration: str | None = None, **hosts: str) -> None:
        """Add a server with the name of the scenario, its migration and its hosts."""
        self.add_server(server, self.scenario)
        self.migration = migration or self.migration
        self.hosts.update(hosts)

    def orphaned(self, consumer: str, provider: str, kind: str) -> None:
        self._add(consumer, provider, "orphaned", kind, None)

    def needed(self, consumer: str, provider: str, why: str) -> None:
        self._add(consumer, provider, "needed", None, why)

    def foreign(self, consumer: str, provider: str, why: str) -> None:
        self._add(consumer, provider, "foreign", None, why)

    def _add(
        self, consumer: str, provider: str, truth: str, kind: str | None, why: str | None
    ) -> None:
        self.allocations.append(
            {"consumer": consumer, "provider": provider, "truth": truth, "kind": kind, "why": why}
        )


class Context:
    """The cloud as one scenario sees it.

    With administrator's rights in the project ``demo``, and hosts to consume.
    """

    def __init__(self, paths: Paths, name: str) -> None:
        self.paths = paths
        self.name = name
        self.cloud = Cloud(states.load(paths), project="demo")
        self.record = Record(name, REGISTRY[name].description)
        self._own_hosts: list[str] = []

    def steady_hosts(self, number: int) -> list[str]:
        """Return hosts that stay alive: those that ``up`` created.

        Each scenario begins with a different one, so that the load is distributed.
        """
        computes = states.load(self.paths).computes
        steady = [host for host in computes if host.startswith("compute-")]
        found = sorted(host for host in steady if computes[host]["running"])
        if len(found) < number:
            raise MinicloudError(
                f"Scenario {self.name} needs {number} running hosts; run 'minicloud up --computes "
                f"{max(number, 2)}'."
            )
        first = list(REGISTRY).index(self.name) % len(found)
        return (found[first:] + found[:first])[:number]

    def own_host(self, purpose: str = "dead", driver: str = "") -> str:
        """Start a new live host for this scenario alone, to be killed at will."""
        base = f"{purpose}-{self.name.replace('_', '-')}"
        with states.changing(self.paths) as state:
            host = base
            number = 2
            while host in state.computes:
                host = f"{base}-{number}"
                number += 1
            kind = {"driver": driver} if driver else {}
            state.computes[host] = {"nova": "first", "cell": "cell1", "running": True, **kind}
        self._own_hosts.append(host)
        lifecycle.start_computes(self.paths, [host])
        return host

    def give_up(self) -> None:
        """Leave no living host to which the scheduler would send servers of other scenarios."""
        for host in self._own_hosts:
            self.kill(host)

    def kill(self, host: str) -> None:
        lifecycle.kill_compute(self.paths, host)

    def await_deaths(self) -> None:
        """Wait until Nova knows of every host that was killed."""
        computes = states.load(self.paths).computes

        def known() -> bool:
            services = self.cloud.compute_services()
            killed = services.keys() & {name for name in computes if not computes[name]["running"]}
            return not any(services[host]["state"] == "up" for host in killed)

        wait_for("Nova to see that the killed hosts are down", known)

    def provider(self, host: str) -> str:
        """Return the root provider of a host."""
        found = self.cloud.hypervisors()
        if host not in found:
            raise MinicloudError(f"Nova lists no hypervisor for host {host}.")
        return found[host]

    def sql(self, statement: str, *values: str, database: str = CELL) -> None:
        """Change rows, by default in the cell where scenarios put their servers."""
        with databases.writing(self.paths, database) as connection:
            connection.execute(statement, values)

    def save(self) -> None:
        """Write the record, if the named consumers have exactly the named allocations.

        Placement is asked first.
        """
        providers = self.cloud.providers()
        recorded: dict[str, set[str]] = {}
        for allocation in self.record.allocations:
            recorded.setdefault(allocation["consumer"], set()).add(allocation["provider"])
        for consumer, wanted in recorded.items():
            held = holdings.of(self.cloud, consumer).allocations
            if set(held) != wanted:
                raise MinicloudError(
                    f"Scenario {self.name} went wrong: consumer {consumer} has {sorted(held)}, "
                    f"not {sorted(wanted)}."
                )
            for allocation in self.record.allocations:
                if allocation["consumer"] == consumer:
                    provider = allocation["provider"]
                    named = {"provider_name": providers[provider], "resources": held[provider]}
                    allocation.update(named)
        write_record(self.paths, vars(self.record))


@dataclass(frozen=True)
class Scenario:
    """A scenario: ``in_all`` is False if it cannot exist beside the others.

    ``alone`` is True if nothing else may happen while it is made; ``undo`` reverts the situation
    where that is possible, ``placement`` is the microversion that it needs.
    """

    name: str
    description: str
    make: Callable[[Context], None]
    in_all: bool = True
    alone: bool = False
    undo: Callable[[Context], None] | None = None
    placement: tuple[int, int] = (0, 0)


REGISTRY: dict[str, Scenario] = {}


def scenario(
    description: str,
    in_all: bool = True,
    alone: bool = False,
    undo: Callable[[Context], None] | None = None,
    placement: tuple[int, int] = (0, 0),
) -> Callable:
    """Register a function under its own name."""

    def register(make: Callable[[Context], None]) -> Callable[[Context], None]:
        REGISTRY[make.__name__] = Scenario(
            make.__name__, description, make, in_all, alone, undo, placement
        )
        return make

    return register


def read_record(paths: Paths, name: str) -> dict | None:
    try:
        return json.loads((paths.scenarios / f"{name}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def write_record(paths: Paths, record: dict) -> None:
    files.write(paths.scenarios / f"{record['scenario']}.json", json.dumps(record, indent=2) + "\n")
