"""What is in the simulated cloud. Everything follows from numbers, so that no size costs memory."""

from __future__ import annotations

import dataclasses as d
import typing as t

if t.TYPE_CHECKING:
    from collections.abc import Iterator

NODE, SERVER, MIGRATION, ORPHAN, PROJECT, USER, AGGREGATE, SERVICE = range(1, 9)

VCPUS, MEMORY_MB, DISK_GB = 2, 4096, 40
FLAVOR = {
    "vcpus": VCPUS,
    "ram": MEMORY_MB,
    "disk": DISK_GB,
    "ephemeral": 0,
    "swap": 0,
    "original_name": "m1.small",
    "extra_specs": {},
}
ALLOCATION = {"VCPU": VCPUS, "MEMORY_MB": MEMORY_MB, "DISK_GB": DISK_GB}

_PROJECTS = 500
# Of the servers, one in so many was moved once, and Nova keeps the record.
_SERVERS_PER_MIGRATION = 50


def build_uuid(kind: int, number: int) -> str:
    """Return the uuid of the thing of a kind with that number."""
    return f"{number:08x}-{kind:04x}-4000-8000-000000000000"


def parse_uuid(uuid: str) -> tuple[int, int]:
    """Return the kind and the number of which `build_uuid` made a uuid."""
    number, kind, *_rest = uuid.split("-")
    return int(kind, 16), int(number, 16)


@d.dataclass
class World:
    """A cloud of hosts that are all alike.

    servers_per_host: on each host. orphans: allocations of deleted servers, spread over the hosts.
    down: the number of the cell that does not answer; None if all do.
    changed: how many of the servers changed since the last reading. removed: the orphans whose
        allocation was removed.
    """

    hosts: int
    servers_per_host: int
    cells: int
    orphans: int
    down: int | None = None
    changed: int = 0
    removed: set[int] = d.field(default_factory=set)

    @property
    def servers(self) -> int:
        return self.hosts * self.servers_per_host

    @property
    def migrations(self) -> int:
        return self.servers // _SERVERS_PER_MIGRATION

    def get_cell(self, host: int) -> int:
        """Return the number of the cell of a host."""
        return host * self.cells // self.hosts

    def is_down(self, host: int) -> bool:
        """Return whether the cell of a host does not answer."""
        return self.down is not None and self.get_cell(host) == self.down

    def get_host_of_server(self, server: int) -> int:
        return server // self.servers_per_host

    def list_servers_of(self, host: int) -> range:
        """Return the numbers of the servers on a host."""
        return range(host * self.servers_per_host, (host + 1) * self.servers_per_host)

    def get_host_of_orphan(self, orphan: int) -> int:
        return orphan * self.hosts // self.orphans

    def list_orphans_on(self, host: int) -> Iterator[int]:
        """Yield the numbers of the orphans that are left on a host."""
        if not self.orphans:
            return
        first = -(-host * self.orphans // self.hosts)
        end = -(-(host + 1) * self.orphans // self.hosts)
        for orphan in range(first, end):
            if orphan not in self.removed:
                yield orphan

    def get_project(self, number: int) -> str:
        return build_uuid(PROJECT, number % _PROJECTS)

    def get_server_of_migration(self, migration: int) -> int:
        return migration * _SERVERS_PER_MIGRATION

    def get_generation(self, host: int) -> int:
        """Return the generation of the provider of a host, which grows with each removal."""
        if not self.orphans:
            return 1
        first = -(-host * self.orphans // self.hosts)
        end = -(-(host + 1) * self.orphans // self.hosts)
        return 1 + sum(orphan in self.removed for orphan in range(first, end))


def get_host_name(host: int) -> str:
    return f"compute-{host:05d}"


def parse_host_name(name: str) -> int:
    return int(name.removeprefix("compute-"))
