# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Takes a drained host back into service, and its servers back to it where that is asked for."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Callable

from .._common.errors import InvalidInput, Reason
from .._common.text import format_count, make_printable
from .._core.clients.session import Session
from .._core.facts.services import apply_update, build_update, describe_services
from .._core.models.nova import Service
from .drain import DrainOptions, conclude_moves, count_outcomes, require_not_excluded
from .drain_reader import DrainReader
from .draining import LEFT, MOVED, MoveOutcomeDocument
from .emptiness import Blocker, Contents, list_occupants
from .host import Host
from .migrations import UnfinishedEvacuations
from .move_journal import DRAIN, RETURN, Departure, MoveHistory, MoveJournal
from .move_run import MoveRun, build_outcome
from .nova_client import ServerMover, ServiceWriter
from .server_move import MoveEnd, Mover, MoveTask

_UNFOLLOWED = (
    "a drain that did not end asked Nova to move it, so it does not count as moved away: confirm "
    "its migration if that waits, and move it back by hand"
)


class HostReturn:
    """Returns one host."""

    def __init__(self, session: Session, options: DrainOptions, move_back: bool) -> None:
        self._session = session
        self._options = options
        self._move_back = move_back
        self._reader = DrainReader(session)

    def predict(self, journal: MoveJournal, history: MoveHistory) -> dict[str, t.Any]:
        """Return what a run would do, without a change."""
        service, body = self._prepare(history)
        expected = apply_update(service, body)
        if "forced_down" in body:
            # Nova shows only then whether it is up.
            expected = d.replace(expected, state=None)
        mover = Mover(self._session, journal, self._options.settings, RETURN)
        departures, outcomes = self._list_departures(history, mover, expected)
        text = _describe_service(expected)
        if departures:
            text += f" {format_count(len(departures), 'server', 'servers')} would move back."
        return {
            **_describe(expected, departures, outcomes),
            "changed": bool(body or departures),
            "msg": text,
        }

    def run(
        self, journal: MoveJournal, history: MoveHistory, stopped: Callable[[], str]
    ) -> dict[str, t.Any]:
        """Enable the service again, move the servers back, and return what became of each."""
        if self._move_back:
            ServerMover(self._session.compute).check_hosts_can_be_named()
        service, body = self._prepare(history)
        if body:
            service = ServiceWriter(self._session.compute).update_service(service, body)
        if history.service is not None:
            journal.record_restored_service()
        mover = Mover(self._session, journal, self._options.settings, RETURN)
        departures, outcomes = self._list_departures(history, mover, service)
        runner = MoveRun(mover, self._options.limits, stopped)
        # Those that an earlier run has asked to come back are followed, not asked again.
        tasks = [_make_task(entry) for entry in departures]
        outcomes += runner.run(tasks, history.list_attempts(RETURN))
        moved = count_outcomes(outcomes)[MOVED]
        text = (
            f"{_describe_service(service)} {format_count(moved, 'server', 'servers')} moved back."
        )
        result = conclude_moves(text, outcomes, "Not moved back", stopped())
        unfinished, occupants = self._read_occupants()
        for occupant in occupants:
            result = {"msg": f"{result['msg']} {occupant.reason}", "failed": True}
        return {
            **_describe(service, departures, outcomes),
            "changed": bool(body or moved),
            "unfinished_evacuations": [entry.uuid for entry in unfinished.evacuations],
            **result,
        }

    def _prepare(self, history: MoveHistory) -> tuple[Service, dict[str, t.Any]]:
        """Return the service of the host, and the body of the request that takes it back.

        Raises InvalidInput for a host whose nova-compute would destroy servers that return.
        """
        require_not_excluded(self._reader, self._options)
        for occupant in self._read_occupants()[1]:
            raise InvalidInput(Reason(occupant.kind, f"Nothing was changed. {occupant.reason}"))
        service = self._reader.read_service(self._options.host)
        return service, build_return(service, history, self._options.reason)

    def _read_occupants(self) -> tuple[UnfinishedEvacuations, list[Blocker]]:
        """Return the evacuations that are not completed, and what may be on the host by them."""
        host = self._options.host
        unfinished = self._reader.read_unfinished_evacuations(host)
        return unfinished, list_occupants(Contents(Host(host), evacuations=unfinished))

    def _list_departures(
        self, history: MoveHistory, mover: Mover, service: Service
    ) -> tuple[list[Departure], list[MoveOutcomeDocument]]:
        """Return the servers that can be moved back, and why the others cannot.

        One that is on the host again, or on its way to it, is neither.

        service: that of the host, once it is returned.
        """
        reason = ""
        if service.status != "enabled":
            reason = f"{service.host} is disabled: enable it, and run again"
        elif service.state == "down":
            reason = f"nova-compute on {service.host} is down: start it, and run again"
        departures: list[Departure] = []
        outcomes: list[MoveOutcomeDocument] = []
        for attempt in history.list_attempts(DRAIN) if self._move_back else ():
            found_now = self._reader.find_server(attempt.server)
            if found_now is not None and found_now.server.host != attempt.source:
                task = MoveTask(attempt.server, attempt.name, attempt.source)
                end = MoveEnd(LEFT, _UNFOLLOWED, found_now.server.host)
                outcomes.append(build_outcome(task, end, 0, 0))
        begun = {attempt.server for attempt in history.list_attempts(RETURN)}
        for entry in history.list_departures() if self._move_back else ():
            if entry.server in begun:
                continue
            task = _make_task(entry)
            found = mover.decide(task)
            if reason and not isinstance(found, MoveEnd):
                found = MoveEnd(LEFT, reason)
            if not isinstance(found, MoveEnd):
                departures.append(entry)
            elif found.to != entry.source:
                outcomes.append(build_outcome(task, found, 0, 0))
        return departures, outcomes


def _make_task(entry: Departure) -> MoveTask:
    return MoveTask(entry.server, entry.name, entry.to, entry.source)


def build_return(service: Service, history: MoveHistory, reason: str) -> dict[str, t.Any]:
    """Return the body of the request that takes back what drains have changed; {} without any.

    A service that somebody else has disabled or forced down stays so. Of one that a drain has
    disabled, the reason shows whether somebody has changed it since. A host that was deployed again
    has a service with another id.

    reason: why drains disable a service; without a journal, only that shows who has disabled it.
    """
    before, changes = history.service, history.changes_of_service
    params: dict[str, t.Any] = {"enabled": None, "disabled_reason": None, "forced_down": None}
    if before is None:
        if service.disabled_reason == reason:
            params["enabled"] = True
        return build_update(service, params)
    recorded_reason = changes.get("disabled_reason", service.disabled_reason)
    if service.id != before["id"] or service.disabled_reason != recorded_reason:
        return {}
    if changes.get("status") and before["status"] == "enabled":
        params["enabled"] = True
    if changes.get("forced_down") and not before["forced_down"]:
        params["forced_down"] = False
    return build_update(service, params)


def _describe(
    service: Service, departures: list[Departure], outcomes: list[MoveOutcomeDocument]
) -> dict[str, t.Any]:
    return {
        "service": describe_services([service])[0],
        "departures": [vars(entry) for entry in departures],
        "outcomes": outcomes,
        "tally": count_outcomes(outcomes),
    }


def _describe_service(service: Service) -> str:
    if service.status != "enabled":
        return (
            f"{service.host} stays disabled, because somebody else has disabled it "
            f"({make_printable(service.disabled_reason or 'without a reason')})."
        )
    if service.forced_down:
        return f"{service.host} stays forced down, because somebody else may have forced it down."
    if service.state == "down":
        return f"{service.host} is enabled, but its nova-compute is down: start it."
    return f"{service.host} is in service."
