# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fills the databases of a stopped minicloud with a cloud of any size, copied from its originals.

The truth about this cloud:
  {"hosts": [uuid], "orphans": {consumer: {"kind": kind, "providers": [uuid]}},
   "involved": [uuids of all servers and migrations in an orphan or in a move under way],
   "servers": number of live servers}
"""

from __future__ import annotations

import collections
import contextlib
import datetime
import shutil
import sqlite3
import typing as t
import uuid

from benchmark import originals, rows
from benchmark.layout import MIGRATION, OTHER, SERVER, UNCONFIRMED, Placed, Scale, place_servers

if t.TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from minicloud_ctl.paths import Paths

# The resources of an m1.tiny, by the column of a compute node and by the resource class.
_TINY = {
    "vcpus_used": ("VCPU", 1),
    "memory_mb_used": ("MEMORY_MB", 512),
    "local_gb_used": ("DISK_GB", 1),
}
_RESERVED_MB = 512
# Old enough that no allocation is protected by its age.
_AGE = datetime.timedelta(days=2)


def seed(paths: Paths, scale: Scale) -> dict[str, t.Any]:
    """Replace the databases while the services are stopped, and return the truth."""
    for name in originals.SEEDED:
        for leftover in ("-wal", "-shm"):
            paths.database(name).with_name(paths.database(name).name + leftover).unlink(
                missing_ok=True
            )
        shutil.copyfile(originals.find_copy(paths, name), paths.database(name))
    placed = list(place_servers(scale))
    hosts = [
        str(uuid.uuid5(uuid.NAMESPACE_OID, f"{scale} {number}")) for number in range(scale.hosts)
    ]
    templates = originals.read(paths)
    with _open_bulk(paths, "first_cell1") as cell:
        _write_hosts(cell, hosts, _count_usage(placed, scale))
        _write_servers(cell, placed, templates)
    with _open_bulk(paths, "first_nova_api") as api:
        _write_host_mappings(api, len(hosts))
        _write_servers(api, placed, templates)
    with _open_bulk(paths, "placement") as placement:
        _write_placement(placement, hosts, placed, templates)
    return _describe_truth(hosts, placed)


def format_host_name(number: int) -> str:
    return f"host-{number:05}"


def _describe_truth(hosts: list[str], placed: list[Placed]) -> dict[str, t.Any]:
    orphans = {}
    for server in placed:
        for role, host in server.situation.orphans:
            orphans[server.consumer(role)] = {
                "kind": server.situation.kind,
                "providers": [hosts[server.host(host)]],
            }
    return {
        "hosts": hosts,
        "orphans": orphans,
        "involved": [
            uuid
            for server in placed
            if server.situation is UNCONFIRMED or server.situation.orphans
            for uuid in (server.server, server.migration)
        ],
        "servers": sum(server.situation.lives for server in placed),
    }


@contextlib.contextmanager
def _open_bulk(paths: Paths, name: str) -> Iterator[sqlite3.Connection]:
    """Run one transaction without waiting for the disk."""
    with contextlib.closing(
        sqlite3.connect(paths.database(name), isolation_level=None)
    ) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")
        connection.execute("ANALYZE")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _count_usage(placed: list[Placed], scale: Scale) -> list[dict[str, int]]:
    """Return the usage that the resource tracker of each host would report.

    It counts the servers of the host, and servers whose move from the host is not confirmed.
    """
    tracked = collections.Counter(server.home for server in placed if server.situation.lives)
    running = [tracked[host] for host in range(scale.hosts)]
    tracked.update(server.other for server in placed if server.situation is UNCONFIRMED)
    figures = []
    for host in range(scale.hosts):
        used = {column: tracked[host] * amount for column, (_class, amount) in _TINY.items()}
        used["memory_mb_used"] += _RESERVED_MB
        figures.append({**used, "running_vms": running[host]})
    return figures


def _write_hosts(cell: sqlite3.Connection, hosts: list[str], figures: list[dict[str, int]]) -> None:
    """Write compute nodes and services; the ids of both are the number of the host plus 1."""
    now = str(datetime.datetime.now(datetime.UTC).replace(tzinfo=None))
    (service,) = rows.select_rows_of_host(cell, originals.HOME, "services").items()
    (node,) = rows.select_rows_of_host(cell, originals.HOME, "compute_nodes").items()
    cell.execute("DELETE FROM compute_nodes")
    cell.execute("DELETE FROM services WHERE binary = 'nova-compute'")
    position = {column: index for index, column in enumerate(node[0].columns)}
    template = node[1][0]
    uuids = {"host": originals.HOME, "uuid": template[position["uuid"]]}
    service_uuid = service[1][0][service[0].columns.index("uuid")]
    writer = rows.Writer(cell)
    nodes = rows.Original(dict([node]), uuids)
    services = rows.Original(dict([service]), {"host": originals.HOME, "uuid": service_uuid})
    first = cell.execute("SELECT coalesce(max(id), 0) + 1 FROM services").fetchone()[0]
    for number, (host, used) in enumerate(zip(hosts, figures, strict=True)):
        free = {
            "free_ram_mb": template[position["memory_mb"]] - used["memory_mb_used"],
            "free_disk_gb": template[position["local_gb"]] - used["local_gb_used"],
        }
        named = {"host": format_host_name(number), "uuid": host}
        nodes.copy(writer, named, service_id=first + number, updated_at=now, **used, **free)
        services.copy(
            writer,
            {**named, "uuid": str(uuid.uuid4())},
            id=first + number,
            updated_at=now,
            last_seen_up=now,
        )
    writer.finish()


def _write_host_mappings(api: sqlite3.Connection, hosts: int) -> None:
    mapping = rows.Original(
        rows.select_rows_of_host(api, originals.HOME, "host_mappings"), {"host": originals.HOME}
    )
    api.execute("DELETE FROM host_mappings")
    writer = rows.Writer(api)
    for number in range(hosts):
        mapping.copy(writer, {"host": format_host_name(number)})
    writer.finish()


def _write_servers(
    connection: sqlite3.Connection, placed: list[Placed], templates: Mapping[str, t.Any]
) -> None:
    named = {
        name: {role: text for role, text in template.items() if text}
        for name, template in templates.items()
    }
    copied = {
        name: rows.Original(rows.select_rows_of_server(connection, template["server"]), named[name])
        for name, template in templates.items()
    }
    rows.delete_servers(connection)
    writer = rows.Writer(connection)
    for server in placed:
        names = {
            SERVER: server.server,
            MIGRATION: server.migration,
            "home": format_host_name(server.home),
            OTHER: format_host_name(server.other),
        }
        copied[server.situation.original].copy(
            writer, names, compute_id=server.home + 1, dest_compute_id=server.home + 1
        )
    writer.finish()


def _write_placement(
    placement: sqlite3.Connection,
    hosts: list[str],
    placed: list[Placed],
    templates: Mapping[str, t.Any],
) -> None:
    """Write providers like that of the originals' home, and the allocations of every server.

    The id of a provider is its number plus 1.
    """
    written = str(datetime.datetime.now(datetime.UTC).replace(tzinfo=None) - _AGE)
    home = rows.select_all(placement, "resource_providers", "name = ?", originals.HOME)
    ((providers, (provider,)),) = home.items()
    old = provider[providers.columns.index("id")]
    below = {
        name: rows.select_all(placement, name, "resource_provider_id = ?", old)
        for name in ("inventories", "resource_provider_traits")
    }
    consumer = rows.select_all(placement, "consumers", "uuid = ?", templates["live"]["server"])
    classes = dict(placement.execute("SELECT name, id FROM resource_classes").fetchall())
    for name in (
        "allocations",
        "consumers",
        "inventories",
        "resource_provider_traits",
        "resource_providers",
    ):
        placement.execute(f"DELETE FROM {name}")
    writer = rows.Writer(placement)
    names = {"host": originals.HOME, "uuid": provider[providers.columns.index("uuid")]}
    copied = rows.Original(home, names)
    parts = [rows.Original(found, {}) for found in below.values()]
    for number, host in enumerate(hosts):
        copied.copy(
            writer, {"host": format_host_name(number), "uuid": host}, root_provider_id=number + 1
        )
        for part in parts:
            part.copy(writer, {}, resource_provider_id=number + 1)
    consumers = rows.Original(consumer, {"server": templates["live"]["server"]})
    allocations = rows.read_table(placement, "allocations")
    for server in placed:
        for role in dict.fromkeys(role for role, _host in server.situation.allocations):
            consumers.copy(
                writer, {"server": server.consumer(role)}, created_at=written, updated_at=written
            )
        for role, host in server.situation.allocations:
            for name, amount in _TINY.values():
                row = [
                    written,
                    None,
                    writer.new_id("allocations"),
                    server.host(host) + 1,
                    server.consumer(role),
                    classes[name],
                    amount,
                ]
                writer.add(allocations, row)
    writer.finish()
