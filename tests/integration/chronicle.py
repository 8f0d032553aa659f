"""The states of each server and migration in Nova's own database, with their times.

A trigger records every change.

Nova's API shows only the current state, and forgets the moves of a deleted server.
"""

import contextlib
import dataclasses as d
import datetime
from collections.abc import Iterator

from minicloud_ctl import databases

from .world import CELL1, World

# Table: the columns that are recorded as host and status.
_NOTED = {"instances": ("host", "vm_state"), "migrations": ("source_compute", "status")}
_NOW = "strftime('%Y-%m-%dT%H:%M:%f', 'now')"


@d.dataclass(frozen=True)
class State:
    """Of a server, its host and its `vm_state`; of a migration, its source and status."""

    since: datetime.datetime
    table: str
    host: str | None
    status: str | None
    gone: bool

    @property
    def lives(self) -> bool:
        return self.table == "instances" and not self.gone


class Chronicle:
    """Begins with `noted`.

    `states` are by uuid, the oldest first, and are read once the recording has ended.
    """

    def __init__(self) -> None:
        self.states: dict[str, list[State]] = {}

    def during(self, uuid: str, second: str) -> list[State]:
        """Return every state of `uuid` during that second, in the format of a journal's time."""
        begin = datetime.datetime.fromisoformat(second.removesuffix("Z"))
        known = self.states.get(uuid)
        if not known:
            return []
        ends = [*(state.since for state in known[1:]), datetime.datetime.max]
        return [
            state
            for state, end in zip(known, ends, strict=True)
            if state.since < begin + datetime.timedelta(seconds=1) and end >= begin
        ]

    def lived_after(self, uuid: str, second: str) -> bool:
        """Return whether Nova had a live server of this uuid at any time after that second."""
        after = datetime.datetime.fromisoformat(second.removesuffix("Z")) + datetime.timedelta(
            seconds=1
        )
        known = self.states.get(uuid, [])
        return any(state.lives and state.since > after for state in known) or (
            bool(known) and known[-1].lives
        )


@contextlib.contextmanager
def noted(world: World) -> Iterator[Chronicle]:
    """Record the changes in the first cell until the end."""
    chronicle = Chronicle()
    with databases.writing(world.paths, CELL1) as cell:
        cell.execute(
            "CREATE TABLE chronicle (since TEXT, noted TEXT, uuid TEXT, host TEXT, "
            "status TEXT, gone INTEGER)"
        )
        for table, (host, status) in _NOTED.items():
            values = (
                f"VALUES ({_NOW}, '{table}', NEW.uuid, NEW.{host}, NEW.{status}, NEW.deleted != 0)"
            )
            for name, event in (
                ("made", "INSERT"),
                ("changed", f"UPDATE OF {host}, {status}, deleted"),
            ):
                cell.execute(
                    f"CREATE TRIGGER chronicle_{table}_{name} AFTER {event} ON {table} "
                    f"BEGIN INSERT INTO chronicle {values}; END"
                )
    try:
        yield chronicle
    finally:
        with databases.writing(world.paths, CELL1) as cell:
            for row in cell.execute("SELECT * FROM chronicle ORDER BY rowid").fetchall():
                since = datetime.datetime.fromisoformat(row["since"])
                state = State(since, row["noted"], row["host"], row["status"], bool(row["gone"]))
                chronicle.states.setdefault(row["uuid"], []).append(state)
            for table in _NOTED:
                for name in ("made", "changed"):
                    cell.execute(f"DROP TRIGGER chronicle_{table}_{name}")
            cell.execute("DROP TABLE chronicle")
