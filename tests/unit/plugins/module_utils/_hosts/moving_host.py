"""A host whose servers a drain moves away, or a return moves back, run after run."""

import dataclasses as d
import typing as t
from pathlib import Path

from ......plugins.module_utils._core.changes.journal import read_journal
from ......plugins.module_utils._core.models.nova import Service
from ......plugins.module_utils._hosts.draining import DrainSettings
from ......plugins.module_utils._hosts.move_journal import (
    MoveHistory,
    MoveJournal,
    find_move_journals,
    read_history,
)
from ......plugins.module_utils._hosts.server_move import Mover
from ..moving_nova import HOSTS, MovingNova

SOURCE = HOSTS[0]
REASON = "drained with osops.placement"
# When a host that is down has reported last, and the others.
LATE, REPORTED = "2026-11-20T02:00:00.000000", "2026-11-20T03:00:00.000000"


class MovingHost(MovingNova):
    """The first host of a Nova, with the journals of its runs, on a clock that only sleep moves.

    updates: what was written to its service.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.now = 0.0
        self.updates: list[t.Any] = []
        self.excluded: dict[str, str] = {}
        self._runs = 0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def open_journal(self, whose: str = "") -> MoveJournal:
        journal = MoveJournal(str(self.folder / whose), self.session().compute.endpoint, SOURCE)
        # Several runs of one process in one second.
        self._runs += 1
        journal.path = journal.path.replace(".jsonl", f"-{self._runs:03}.jsonl")
        return journal

    def list_journals(self, whose: str = "") -> list[str]:
        return find_move_journals(str(self.folder / whose))

    def read_history(self, whose: str = "") -> MoveHistory:
        endpoint = self.session().compute.endpoint
        return read_history(self.list_journals(whose), endpoint, SOURCE)

    def records(self) -> list[t.Mapping[str, t.Any]]:
        return [record for path in self.list_journals() for record in read_journal(path)[0]]

    def make_mover(
        self,
        purpose: str,
        settings: DrainSettings | None = None,
        last_report: str | None = None,
        whose: str = "",
    ) -> Mover:
        journal, settings = self.open_journal(whose), settings or DrainSettings()
        return Mover(self.session(), journal, settings, purpose, last_report)

    def update_service(self, service: Service, body: dict[str, t.Any]) -> Service:
        """Change the service of the host, in place of a ServiceWriter."""
        self.updates.append(body)
        self.services[service.host].update(body)
        return d.replace(service, **body)

    def go_down(self, is_forced: bool = False, last_report: str = LATE) -> None:
        """Let the nova-compute of the host be silent while the others report."""
        for service in self.services.values():
            service["updated_at"] = REPORTED
        self.services[SOURCE].update(state="down", forced_down=is_forced, updated_at=last_report)

    def set_task(self, server: str, task: t.Any) -> None:
        """Let a server have a task; `...` stands for one that Nova does not show."""
        self.servers[server]["OS-EXT-STS:task_state"] = task
        if task is ...:
            del self.servers[server]["OS-EXT-STS:task_state"]

    def put(self, server: str, host: str | None) -> None:
        """Let Nova record a server on another host."""
        self.servers[server]["OS-EXT-SRV-ATTR:host"] = host

    def begin_as_user(self, server: str) -> None:
        """Have the administrator begin a move, of which there is a record and nothing more."""
        self.request_as_user(server)
        self._steps[server].pop(0)()
