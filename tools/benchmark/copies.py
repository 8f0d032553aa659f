"""Copies the originals into the databases of a seeded cloud, as the servers of a plan."""

from __future__ import annotations

import contextlib
import dataclasses as d
import datetime
import sqlite3
import typing as t

from minicloud_ctl.cloud import FLAVORS

from benchmark import originals, rows
from benchmark.layout import (
    HOME,
    MIGRATION,
    OTHER,
    SERVER,
    TINY,
    UNCONFIRMED,
    UNREVERTED_ALLOCATION,
)

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from minicloud_ctl.paths import Paths

    from benchmark.layout import Placed

# Resource classes, in the order of the amounts of a flavor.
_CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
_CELL, _API = "first_cell1", "first_nova_api"
# What Nova adds to the memory that servers use on each host.
_RESERVED_MB = 512


def format_host_name(number: int) -> str:
    return f"host-{number:05}"


def get_node_id(number: int) -> int:
    """Return the id of a host's compute node, and of its provider."""
    return number + 1


def get_amounts(flavor: str) -> dict[str, int]:
    return dict(zip(_CLASSES, FLAVORS[flavor], strict=True))


@d.dataclass(frozen=True)
class _Template:
    """One original in one database.

    saved_at: when Nova last saved it. home, other: the ids of its compute nodes.
    """

    rows: rows.Original
    saved_at: datetime.datetime
    home: int
    other: int


class ServerRows:
    """The rows of all originals in Nova's databases."""

    def __init__(self, paths: Paths) -> None:
        record = originals.read(paths)
        with _open_original(paths, _CELL) as cell:
            nodes = dict(cell.execute("SELECT host, id FROM compute_nodes").fetchall())
            saved = dict(cell.execute("SELECT uuid, updated_at FROM instances").fetchall())
        self._templates: dict[str, dict[str, _Template]] = {}
        for database in (_CELL, _API):
            templates = {}
            with _open_original(paths, database) as connection:
                for name, found in record.items():
                    server = str(found["server"])
                    names = {role: text for role, text in found.items() if text}
                    templates[name] = _Template(
                        rows.Original(rows.select_rows_of_server(connection, server), names),
                        datetime.datetime.fromisoformat(saved[server]),
                        nodes[found["home"]],
                        nodes.get(found["other"], 0),
                    )
            self._templates[database] = templates

    def write(
        self,
        connection: sqlite3.Connection,
        database: str,
        servers: Iterable[Placed],
        saved_at: datetime.datetime,
    ) -> None:
        """Add the rows of the servers to a database; `saved_at` is when Nova last saved them."""
        writer = rows.Writer(connection)
        for server in servers:
            original = server.situation.original
            if original is None:
                continue
            template = self._templates[database][original]
            template.rows.copy(
                writer,
                _name_server(server),
                later=saved_at - template.saved_at,
                numbers={
                    template.home: get_node_id(server.home),
                    template.other: get_node_id(server.other),
                },
            )
        writer.finish()


def _name_server(server: Placed) -> dict[str, str]:
    return {
        SERVER: server.server,
        MIGRATION: server.migration,
        HOME: format_host_name(server.home),
        OTHER: format_host_name(server.other),
    }


class AllocationRows:
    """The rows of a consumer and of its allocations."""

    def __init__(self, paths: Paths) -> None:
        live = str(originals.read(paths)["live"]["server"])
        with _open_original(paths, "placement") as placement:
            consumer = rows.select_all(placement, "consumers", "uuid = ?", live)
            self._consumer = rows.Original(consumer, {SERVER: live})
            self._allocations = rows.read_table(placement, "allocations")
            self._classes = dict(placement.execute("SELECT name, id FROM resource_classes"))

    def write(
        self,
        placement: sqlite3.Connection,
        servers: Iterable[Placed],
        find_time: t.Callable[[Placed], str],
    ) -> None:
        """Add the allocations of the servers; `find_time` returns when one was written."""
        writer = rows.Writer(placement)
        for server in servers:
            written = find_time(server)
            roles = [role for role, _host in server.situation.allocations]
            for role in dict.fromkeys(roles):
                consumer = {SERVER: server.consumer(role)}
                times = {"created_at": written, "updated_at": written}
                self._consumer.copy(writer, consumer, times)
            for role, host in server.situation.allocations:
                provider = get_node_id(server.host(host))
                self._write_one(writer, server, role, provider, written)
        writer.finish()

    def _write_one(
        self, writer: rows.Writer, server: Placed, role: str, provider: int, written: str
    ) -> None:
        for name, amount in get_amounts(server.situation.flavor).items():
            values = {
                "created_at": written,
                "updated_at": None,
                "id": writer.new_id("allocations"),
                "resource_provider_id": provider,
                "consumer_id": server.consumer(role),
                "resource_class_id": self._classes[name],
                "used": amount,
            }
            writer.add(self._allocations, [values[column] for column in self._allocations.columns])


def count_usage(placed: Iterable[Placed], hosts: int) -> list[dict[str, int]]:
    """Return the usage that the resource tracker of each host would report, by resource class.

    It counts the servers of the host, and servers whose move from the host is not confirmed.
    `running_vms` are only the former.
    """
    usage = [dict.fromkeys((*_CLASSES, "running_vms"), 0) for _host in range(hosts)]
    for server in placed:
        if not server.situation.lives:
            continue
        usage[server.home]["running_vms"] += 1
        _add_amounts(usage[server.home], server.situation.flavor)
        if server.situation is UNCONFIRMED:
            _add_amounts(usage[server.other], TINY)
    return usage


def _add_amounts(usage: dict[str, int], flavor: str) -> None:
    for name, amount in get_amounts(flavor).items():
        usage[name] += amount


def describe_truth(hosts: list[str], placed: list[Placed]) -> dict[str, t.Any]:
    """Return the truth about a cloud.

    {"hosts": [uuid], "orphans": {consumer: {"kind": kind, "providers": [uuid]}},
     "partners": [consumers that rightly stay undecided, because their allocation goes to an
                  orphan's server],
     "involved": [uuids of all servers and migrations in an orphan or in a move under way],
     "servers": number of live servers}
    """
    orphans = {}
    partners = []
    involved = []
    for server in placed:
        for role, host in server.situation.orphans:
            orphans[server.consumer(role)] = {
                "kind": server.situation.kind,
                "providers": [hosts[server.host(host)]],
            }
        if server.situation is UNREVERTED_ALLOCATION:
            partners.append(server.migration)
        if server.situation.orphans or server.situation is UNCONFIRMED:
            involved += [server.server, server.migration]
    return {
        "hosts": hosts,
        "orphans": orphans,
        "partners": partners,
        "involved": involved,
        "servers": sum(server.situation.lives for server in placed),
    }


def convert_usage(usage: Mapping[str, int], node: Mapping[str, int]) -> dict[str, int]:
    """Return the columns of a compute node with this usage; `node` are its columns now."""
    memory = usage["MEMORY_MB"] + _RESERVED_MB
    return {
        "vcpus_used": usage["VCPU"],
        "memory_mb_used": memory,
        "local_gb_used": usage["DISK_GB"],
        "free_ram_mb": node["memory_mb"] - memory,
        "free_disk_gb": node["local_gb"] - usage["DISK_GB"],
        "running_vms": usage["running_vms"],
    }


@contextlib.contextmanager
def _open_original(paths: Paths, name: str) -> t.Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(originals.find_copy(paths, name))) as connection:
        yield connection
