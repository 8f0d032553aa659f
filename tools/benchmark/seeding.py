"""Fills the databases of a minicloud with a cloud of any size, and changes servers in it.

All servers are copies of originals that Nova itself booted, moved and deleted, at other times.
"""

from __future__ import annotations

import contextlib
import datetime
import shutil
import sqlite3
import typing as t
import uuid

from minicloud_ctl import databases

from benchmark import originals, rows
from benchmark.copies import (
    AllocationRows,
    ServerRows,
    convert_usage,
    count_usage,
    describe_truth,
    format_host_name,
    get_node_id,
)
from benchmark.layout import Placed, Scale, apply_changes, place_servers

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from minicloud_ctl.paths import Paths

    from benchmark.layout import Change

_NOVA_DATABASES = ("first_cell1", "first_nova_api")
# Old enough that no allocation is protected by its age.
_AGE = datetime.timedelta(days=2)


class SeededCloud:
    """A cloud in the databases of a minicloud."""

    def __init__(self, paths: Paths, scale: Scale) -> None:
        """Replace the databases while the services are stopped."""
        self._paths = paths
        self._hosts = _name_hosts(scale)
        self.placed = list(place_servers(scale))
        self._servers = ServerRows(paths)
        self._allocations = AllocationRows(paths)
        for name in originals.SEEDED:
            _replace_database(paths, name)
        begun = _read_clock() - _AGE
        with _open_bulk(paths, "first_cell1") as cell:
            self._write_hosts(cell)
        with _open_bulk(paths, "first_nova_api") as api:
            _write_host_mappings(api, len(self._hosts))
        for name in _NOVA_DATABASES:
            with _open_bulk(paths, name) as database:
                rows.delete_servers(database)
                self._servers.write(database, name, self.placed, begun)
        with _open_bulk(paths, "placement") as placement:
            _write_providers(placement, self._hosts)
            self._allocations.write(placement, self.placed, lambda _server: rows.format_time(begun))

    @property
    def hosts(self) -> int:
        return len(self._hosts)

    @property
    def truth(self) -> dict[str, t.Any]:
        return describe_truth(self._hosts, self.placed)

    def change(self, changes: list[Change], undo: bool = False) -> None:
        """Change servers while the services run, as Nova itself would leave them.

        The rows of a changed server become copies of those that Nova left in the same case, saved
        now. To undo, they are as before.

        Allocations of orphans are written long ago, so that the default minimum ages apply.
        """
        now = _read_clock()
        old = rows.format_time(now - _AGE)
        self.placed = apply_changes(self.placed, changes)
        self._change_in_nova([change for change in changes if change.in_nova], now, undo)
        before = [change.before for change in changes if change.before]
        after = [change.after for change in changes if change.after]

        def find_time(server: Placed) -> str:
            return old if undo or server.situation.orphans else rows.format_time(now)

        with databases.writing(self._paths, "placement") as placement:
            _delete_allocations(placement, before)
            self._allocations.write(placement, after, find_time)
            _increment_generations(placement, changes, now)

    def _change_in_nova(self, changes: list[Change], now: datetime.datetime, undo: bool) -> None:
        before = [change.before for change in changes if change.before]
        after = [change.after for change in changes if change.after]
        saved_at = now - _AGE if undo else now
        for name in _NOVA_DATABASES:
            with databases.writing(self._paths, name) as database:
                rows.delete_rows_of_servers(database, [server.server for server in before])
                self._servers.write(database, name, after, saved_at)
        with databases.writing(self._paths, "first_cell1") as cell:
            # They were created long before they changed.
            created = rows.format_time(now - _AGE)
            cell.executemany(
                "UPDATE instances SET created_at = ? WHERE uuid = ?",
                [(created, server.server) for server in before],
            )
            self._update_usage(cell, _list_hosts([*before, *after]), now)

    def _write_hosts(self, cell: sqlite3.Connection) -> None:
        """Write compute nodes and services."""
        now = rows.format_time(_read_clock())
        (service,) = rows.select_rows_of_host(cell, originals.HOME, "services").items()
        (node,) = rows.select_rows_of_host(cell, originals.HOME, "compute_nodes").items()
        cell.execute("DELETE FROM compute_nodes")
        cell.execute("DELETE FROM services WHERE binary = 'nova-compute'")
        columns = dict(zip(node[0].columns, node[1][0], strict=True))
        service_uuid = service[1][0][service[0].columns.index("uuid")]
        writer = rows.Writer(cell)
        nodes = rows.Original(dict([node]), {"host": originals.HOME, "uuid": columns["uuid"]})
        services = rows.Original(dict([service]), {"host": originals.HOME, "uuid": service_uuid})
        first = writer.new_id("services")
        usage = count_usage(self.placed, self.hosts)
        for number, host in enumerate(self._hosts):
            named = {"host": format_host_name(number), "uuid": host}
            used = convert_usage(usage[number], columns)
            nodes.copy(writer, named, {**used, "service_id": first + number, "updated_at": now})
            named = {"host": format_host_name(number), "uuid": str(uuid.uuid4())}
            reported = {"id": first + number, "updated_at": now, "last_seen_up": now}
            services.copy(writer, named, reported)
        writer.finish()

    def _update_usage(
        self, cell: sqlite3.Connection, hosts: Iterable[int], now: datetime.datetime
    ) -> None:
        """Let the resource trackers of some hosts report what is on them now."""
        usage = count_usage(self.placed, self.hosts)
        capacity = cell.execute("SELECT memory_mb, local_gb FROM compute_nodes LIMIT 1").fetchone()
        node = {"memory_mb": capacity[0], "local_gb": capacity[1]}
        for host in hosts:
            columns = {**convert_usage(usage[host], node), "updated_at": rows.format_time(now)}
            assignments = ", ".join(f"{column} = ?" for column in columns)
            cell.execute(
                f"UPDATE compute_nodes SET {assignments} WHERE id = ?",
                [*columns.values(), get_node_id(host)],
            )


def _read_clock() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)


def _name_hosts(scale: Scale) -> list[str]:
    """Return the uuid of each host, always the same for one scale."""
    names = [f"{scale} {number}" for number in range(scale.hosts)]
    return [str(uuid.uuid5(uuid.NAMESPACE_OID, name)) for name in names]


def _list_hosts(servers: Iterable[Placed]) -> list[int]:
    hosts: set[int] = set()
    for server in servers:
        hosts.update((server.home, server.other))
    return sorted(hosts)


def _replace_database(paths: Paths, name: str) -> None:
    database = paths.database(name)
    for leftover in ("-wal", "-shm"):
        database.with_name(database.name + leftover).unlink(missing_ok=True)
    shutil.copyfile(originals.find_copy(paths, name), database)


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


def _write_host_mappings(api: sqlite3.Connection, hosts: int) -> None:
    mapping = rows.Original(
        rows.select_rows_of_host(api, originals.HOME, "host_mappings"), {"host": originals.HOME}
    )
    api.execute("DELETE FROM host_mappings")
    writer = rows.Writer(api)
    for number in range(hosts):
        mapping.copy(writer, {"host": format_host_name(number)})
    writer.finish()


def _write_providers(placement: sqlite3.Connection, hosts: list[str]) -> None:
    """Write providers like that of the originals' home, instead of all others."""
    home = rows.select_all(placement, "resource_providers", "name = ?", originals.HOME)
    ((table, (provider,)),) = home.items()
    columns = dict(zip(table.columns, provider, strict=True))
    parts = []
    for name in ("inventories", "resource_provider_traits"):
        found = rows.select_all(placement, name, "resource_provider_id = ?", columns["id"])
        parts.append(rows.Original(found, {}))
        placement.execute(f"DELETE FROM {name}")
    for name in ("allocations", "consumers", "resource_providers"):
        placement.execute(f"DELETE FROM {name}")
    copied = rows.Original(home, {"host": originals.HOME, "uuid": columns["uuid"]})
    writer = rows.Writer(placement)
    for number, host in enumerate(hosts):
        named = {"host": format_host_name(number), "uuid": host}
        copied.copy(writer, named, {"root_provider_id": get_node_id(number)})
        for part in parts:
            part.copy(writer, {}, {"resource_provider_id": get_node_id(number)})
    writer.finish()


def _delete_allocations(placement: sqlite3.Connection, servers: Iterable[Placed]) -> None:
    consumers = []
    for server in servers:
        consumers += [(server.server,), (server.migration,)]
    placement.executemany("DELETE FROM allocations WHERE consumer_id = ?", consumers)
    placement.executemany("DELETE FROM consumers WHERE uuid = ?", consumers)


def _increment_generations(
    placement: sqlite3.Connection, changes: Iterable[Change], now: datetime.datetime
) -> None:
    for change in changes:
        for host in change.written:
            placement.execute(
                "UPDATE resource_providers SET generation = generation + 1, updated_at = ? "
                "WHERE id = ?",
                [rows.format_time(now), get_node_id(host)],
            )
