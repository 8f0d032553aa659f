"""Copies the rows of real servers and hosts thousands of times.

A copy has its own uuids and names, also inside of JSON documents, and new ids in each table.
"""

from __future__ import annotations

import dataclasses as d
import datetime
import functools
import itertools
import re
import types
import typing as t
import uuid

if t.TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping

_BATCH = 20_000
_NOTHING: Mapping[t.Any, t.Any] = types.MappingProxyType({})
_AT_ONCE = datetime.timedelta()
# As SQLAlchemy writes it to SQLite.
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?")


@d.dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[str, ...]


class Writer:
    """Collects the rows of one database and inserts them in large batches.

    Ids continue after those in the tables.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._waiting: dict[Table, list[list[t.Any]]] = {}
        self._ids: dict[str, Iterator[int]] = {}

    def new_id(self, table: str) -> int:
        if table not in self._ids:
            newest = self._connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}")
            self._ids[table] = itertools.count(newest.fetchone()[0] + 1)
        return next(self._ids[table])

    def add(self, table: Table, values: list[t.Any]) -> None:
        rows = self._waiting.setdefault(table, [])
        rows.append(values)
        if len(rows) >= _BATCH:
            self._insert(table)

    def finish(self) -> None:
        for table in list(self._waiting):
            self._insert(table)

    def _insert(self, table: Table) -> None:
        marks = ",".join("?" * len(table.columns))
        names = ",".join(f'"{column}"' for column in table.columns)
        self._connection.executemany(
            f"INSERT INTO {table.name} ({names}) VALUES ({marks})", self._waiting.pop(table)
        )


class Original:
    """The rows of one server or host, to be copied with other names.

    rows: by table, each row in the order of the table's columns.
    names: the text in these rows for each role, such as {"server": its uuid}; a copy has other
    text there.
    """

    def __init__(self, rows: Mapping[Table, list[list[t.Any]]], names: Mapping[str, str]) -> None:
        self._rows = [_Row(table, row, names) for table, found in rows.items() for row in found]

    def copy(
        self,
        writer: Writer,
        names: Mapping[str, str],
        changes: Mapping[str, t.Any] = _NOTHING,
        later: datetime.timedelta = _AT_ONCE,
        numbers: Mapping[int, int] = _NOTHING,
    ) -> None:
        """Add a copy to `writer`.

        changes: values for columns of the rows that have them.
        later: how much later than those of the original all times are.
        numbers: the ids of the compute nodes, by those in the original.
        """
        # Events refer to the id of their action; actions come first.
        new_ids: dict[tuple[str, int], int] = {}
        for row in self._rows:
            values = row.replace_names(names)
            row.move_times(values, later)
            row.number(values, writer, new_ids)
            row.replace_compute_nodes(values, numbers)
            for column, value in changes.items():
                if column in row.position:
                    values[row.position[column]] = value
            writer.add(row.table, values)


class _Row:
    def __init__(self, table: Table, values: list[t.Any], names: Mapping[str, str]) -> None:
        self.table = table
        self.values = list(values)
        self.position = {column: index for index, column in enumerate(table.columns)}
        self._names = names
        self._named = []
        self._times = []
        for index, value in enumerate(values):
            if not isinstance(value, str):
                continue
            if _TIME.fullmatch(value):
                self._times.append(index)
            elif any(name in value for name in names.values()):
                self._named.append(index)
        own = self.position.get("uuid")
        self._own_uuid = own if own not in self._named else None

    def replace_names(self, names: Mapping[str, str]) -> list[t.Any]:
        values = self.values.copy()
        for index in self._named:
            for role, name in self._names.items():
                values[index] = values[index].replace(name, names[role])
        if self._own_uuid is not None:
            values[self._own_uuid] = str(uuid.uuid4())
        return values

    def move_times(self, values: list[t.Any], later: datetime.timedelta) -> None:
        for index in self._times:
            values[index] = move_time(values[index], later)

    def replace_compute_nodes(self, values: list[t.Any], numbers: Mapping[int, int]) -> None:
        for column in ("compute_id", "dest_compute_id"):
            index = self.position.get(column)
            # Servers without a host have none.
            if index is not None and values[index] is not None:
                values[index] = numbers.get(values[index], values[index])

    def number(
        self, values: list[t.Any], writer: Writer, new_ids: dict[tuple[str, int], int]
    ) -> None:
        index = self.position.get("id")
        if index is None:
            return
        old, new = values[index], writer.new_id(self.table.name)
        new_ids[self.table.name, old] = new
        values[index] = new
        deleted = self.position.get("deleted")
        if deleted is not None and values[deleted]:
            values[deleted] = new
        action = self.position.get("action_id")
        if action is not None:
            values[action] = new_ids["instance_actions", values[action]]


@functools.lru_cache(maxsize=100_000)
def move_time(text: str, later: datetime.timedelta) -> str:
    return format_time(datetime.datetime.fromisoformat(text) + later)


def format_time(moment: datetime.datetime) -> str:
    """Return a time as SQLAlchemy writes it."""
    return moment.replace(tzinfo=None).isoformat(" ", "microseconds")


def select_rows_of_server(
    connection: sqlite3.Connection, server: str
) -> dict[Table, list[list[t.Any]]]:
    """Return every row of every table that refers to the server, parents before children."""
    found = _find_tables_of_servers(connection, "= ?")
    return {table: _select(connection, table, where, server) for table, where in found.items()}


def select_rows_of_host(
    connection: sqlite3.Connection, host: str, *tables: str
) -> dict[Table, list[list[t.Any]]]:
    return {
        table: _select(connection, table, "host = ?", host)
        for table in _read_tables(connection)
        if table.name in tables
    }


def delete_rows_of_servers(connection: sqlite3.Connection, servers: list[str]) -> None:
    """Delete every row of every table that refers to one of the servers, children first."""
    found = _find_tables_of_servers(connection, f"IN ({','.join('?' * len(servers))})")
    for table, where in reversed(found.items()):
        connection.execute(f"DELETE FROM {table.name} WHERE {where}", servers)


def delete_servers(connection: sqlite3.Connection) -> None:
    for table in reversed(_find_tables_of_servers(connection, "")):
        connection.execute(f"DELETE FROM {table.name}")


def _find_tables_of_servers(connection: sqlite3.Connection, which: str) -> dict[Table, str]:
    """Return the tables about servers, parents before children, with conditions for their rows.

    which: the rest of a condition about the UUIDs of servers.
    """
    actions = f"SELECT id FROM instance_actions WHERE instance_uuid {which}"
    known = {"instances": f"uuid {which}", "instance_actions_events": f"action_id IN ({actions})"}
    found = {}
    # The tables come in the order of their names: events refer to actions.
    for table in _read_tables(connection):
        if table.name in known:
            found[table] = known[table.name]
        elif "instance_uuid" in table.columns:
            found[table] = f"instance_uuid {which}"
    return found


def _read_tables(connection: sqlite3.Connection) -> list[Table]:
    names = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    ).fetchall()
    tables = []
    for (name,) in names:
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
        tables.append(Table(name, tuple(columns)))
    return tables


def read_table(connection: sqlite3.Connection, name: str) -> Table:
    return next(found for found in _read_tables(connection) if found.name == name)


def _select(
    connection: sqlite3.Connection, table: Table, where: str, value: t.Any
) -> list[list[t.Any]]:
    return [
        list(row)
        for row in connection.execute(f"SELECT * FROM {table.name} WHERE {where}", [value])
    ]


def select_all(
    connection: sqlite3.Connection, name: str, where: str = "1 = ?", value: t.Any = 1
) -> dict[Table, list[list[t.Any]]]:
    found = read_table(connection, name)
    return {found: _select(connection, found, where, value)}
