"""The SQLite files of one minicloud, copied from templates.

And the few statements that are written to them directly.
"""

import contextlib
import shutil
import sqlite3
import uuid
from collections.abc import Iterator
from pathlib import Path

from minicloud_ctl.paths import Paths

# nova/objects/cell_mapping.py, CellMapping.CELL0_UUID
CELL0 = "00000000-0000-0000-0000-000000000000"


def create(paths: Paths, name: str, template: str, part: str = "") -> None:
    """Copy a migrated, empty database under a new name, once.

    part: the real part that it belongs to, if any.

    WAL mode is a property of the file and stays.
    """
    target = paths.database(name)
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_suffix(".new")
    shutil.copyfile(paths.template(template, part), fresh)
    fresh.chmod(0o600)
    with contextlib.closing(sqlite3.connect(fresh)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    fresh.replace(target)


@contextlib.contextmanager
def writing(paths: Paths, name: str) -> Iterator[sqlite3.Connection]:
    """Open one transaction that holds the write lock from its start.

    The services' own transactions do the same (``minicloud_venv.sqlite_plugin``).
    """
    with contextlib.closing(
        sqlite3.connect(paths.database(name), timeout=60, isolation_level=None)
    ) as connection:
        connection.row_factory = sqlite3.Row
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


# The times of Nova's records by which an age is known, by table.
NOVA_TIMES = {
    "instances": ("created_at", "updated_at", "deleted_at", "launched_at", "terminated_at"),
    "migrations": ("created_at", "updated_at", "deleted_at"),
    "instance_actions": ("created_at", "updated_at", "start_time", "finish_time"),
    "instance_actions_events": ("created_at", "updated_at", "start_time", "finish_time"),
}


def set_back(paths: Paths, hours: int) -> None:
    """Make every allocation older by so much, and what Nova did to servers."""
    set_allocations_back(paths, hours)
    for path in sorted(paths.databases.glob("*.db")):
        with writing(paths, path.stem) as connection:
            names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            tables = {row["name"] for row in names}
            if tables.issuperset(NOVA_TIMES):
                for table, columns in NOVA_TIMES.items():
                    _set_back(connection, table, columns, hours)
                # Another service that is set back looks down until it reports.
                _set_back(connection, "services", ("updated_at",), hours, "forced_down")


def set_allocations_back(paths: Paths, hours: int) -> None:
    """Make every allocation older by so much, and nothing of what Nova did."""
    with writing(paths, "placement") as connection:
        _set_back(connection, "allocations", ("created_at", "updated_at"), hours)


def _set_back(
    connection: sqlite3.Connection,
    table: str,
    columns: tuple[str, ...],
    hours: int,
    which: str = "1",
) -> None:
    # Which of two events came first may depend on the fraction of a second.
    changes = (
        f"{name} = strftime('%Y-%m-%d %H:%M:%S', {name}, '-{hours} hours') || substr({name}, 20)"
        for name in columns
    )
    connection.execute(f"UPDATE {table} SET {', '.join(changes)} WHERE {which}")


def map_cell(
    paths: Paths, api_database: str, name: str, database_url: str, transport_url: str
) -> None:
    """Write what ``nova-manage cell_v2 map_cell0`` and ``create_cell`` write.

    This saves their three seconds of imports.
    """
    with writing(paths, api_database) as connection:
        known = connection.execute("SELECT 1 FROM cell_mappings WHERE name = ?", [name])
        if known.fetchone() is None:
            cell = CELL0 if name == "cell0" else str(uuid.uuid4())
            connection.execute(
                "INSERT INTO cell_mappings (created_at, uuid, name, transport_url, "
                "database_connection, disabled) VALUES (datetime('now'), ?, ?, ?, ?, 0)",
                [cell, name, transport_url, database_url],
            )


def point_cell(paths: Paths, api_database: str, name: str, database_url: str) -> None:
    """Give a cell mapping another database URL.

    Running services keep the old one until they start again.
    """
    with writing(paths, api_database) as connection:
        connection.execute(
            "UPDATE cell_mappings SET database_connection = ? WHERE name = ?", [database_url, name]
        )


def keep_allocations(paths: Paths) -> None:
    """Copy the allocations as they are, for ``restore_allocations``."""
    _kept_allocations(paths).unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(paths.database("placement"))) as connection:
        connection.execute("VACUUM INTO ?", [str(_kept_allocations(paths))])


def restore_allocations(paths: Paths) -> None:
    """Give everybody the copied allocations again, at the same generations; Placement may run."""
    with contextlib.closing(
        sqlite3.connect(paths.database("placement"), isolation_level=None, timeout=60)
    ) as connection:
        connection.execute("ATTACH ? AS kept", [str(_kept_allocations(paths))])
        connection.execute("BEGIN IMMEDIATE")
        for name in ("allocations", "consumers", "resource_providers"):
            connection.execute(f"DELETE FROM main.{name}")
            connection.execute(f"INSERT INTO main.{name} SELECT * FROM kept.{name}")
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _kept_allocations(paths: Paths) -> Path:
    return paths.databases / "placement.kept"
