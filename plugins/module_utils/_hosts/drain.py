# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Empties a host, and takes it back into service, with its servers where that is asked for.

To empty it, its service is disabled, its servers are moved away, and the host is read again. What
is under way from an earlier run is recognised from the journal and from Nova's migrations. The
journal has the ids of the requests, which show what is ours to confirm and to count.
"""

from __future__ import annotations

import dataclasses as d
import time
import typing as t
from collections.abc import Callable, Iterable, Mapping, Sequence

from .._common.errors import InvalidInput, PlacementToolsError, Reason
from .._common.text import format_count, make_printable, summarize_names
from .._core.clients.session import Session
from .._core.facts.services import apply_update, build_update
from .._core.models.nova import Migration, Service
from .drain_plan import build_drain_plan, is_selectable
from .drain_reader import DrainReader
from .draining import (
    EVACUATION,
    FAILED,
    LEFT,
    LIVE,
    MIGRATION_TYPES,
    MOVE_OUTCOMES,
    MOVED,
    SKIPPED,
    STAYS,
    UNDER_WAY,
    DrainPlanDocument,
    DrainSettings,
    MoveOutcomeDocument,
    Way,
)
from .emptiness import Blocker, Contents, describe_others, list_occupants
from .fencing import is_down, require_clear_state
from .host import Host
from .host_info import read_contents
from .migrations import UnfinishedEvacuations, describe_migration
from .move_journal import DRAIN, RETURN, MoveHistory, MoveJournal
from .move_progress import Attempt, MoveTask
from .move_run import MoveRun, RunLimits, build_outcome
from .move_ways import describe_standstill
from .nova_client import ServerMover, ServiceWriter
from .server_move import MoveEnd, Mover

# How often the host is listed again for servers that came to it since the last listing. Nova sends
# no server to a disabled host, so only those come that were on their way.
_MAX_ROUNDS = 5

# The types of the migrations that take a server from its host without a confirmation.
_LEAVING = (MIGRATION_TYPES[LIVE], MIGRATION_TYPES[EVACUATION])

_UNFOLLOWED = (
    "a drain that did not end asked Nova to move it, so it does not count as moved away: confirm "
    "its migration if that waits, and move it back by hand"
)


@d.dataclass(frozen=True)
class DrainOptions:
    """What the operator asks for.

    reason: why the service is disabled.
    excluded_hosts: the names and UUIDs of hosts that are never changed, with until when and why.
    move_back: whether a return takes the servers back too.
    """

    host: str
    reason: str
    settings: DrainSettings
    limits: RunLimits
    excluded_hosts: Mapping[str, str] = d.field(default_factory=dict)
    move_back: bool = False


class HostMoves:
    """What a drain and a return of one host have in common."""

    def __init__(
        self, session: Session, options: DrainOptions, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._session = session
        self._options = options
        self._host = options.host
        self._reader = DrainReader(session)
        self._sleep = sleep

    def require_not_excluded(self) -> None:
        """Raise InvalidInput for a host that is excluded by one of its names."""
        excluded, host = self._options.excluded_hosts, self._host
        for label in sorted(self._reader.list_labels(host) & excluded.keys()) if excluded else ():
            raise InvalidInput(
                f"{host} is excluded by name ({label}{excluded[label]}), and must not be "
                "changed: nothing was changed. Remove it from exclude_providers to drain or "
                "return it."
            )


class HostDrain(HostMoves):
    """Drains one host."""

    def predict(self, _journal: MoveJournal, history: MoveHistory) -> dict[str, t.Any]:
        """Return what a run would do, without a change."""
        self.require_not_excluded()
        settings = self._options.settings
        require_clear_state(self._reader, self._host, settings.fenced, False, str, self._sleep)
        reading = self._reader.read(self._host)
        begun = {
            attempt.server: _describe_begun(attempt) for attempt in history.list_attempts(DRAIN)
        }
        reading = d.replace(reading, obstacles={**reading.obstacles, **begun})
        plan = build_drain_plan(reading, settings)
        body = self._build_service_update(reading.service)
        moves = any(entry["how"] != STAYS for entry in plan["servers"])
        # Without the word, a run would be refused before it disables the service.
        is_refused = is_down(reading.service) and not settings.fenced
        contents, others = self._read_contents()
        plan["summary"] = f"{plan['summary']} {others}".rstrip()
        return {
            **contents,
            **_describe(apply_update(reading.service, body), []),
            "changed": not is_refused and (bool(body) or moves),
            "plan": plan,
            "msg": plan["summary"],
        }

    def run(
        self, journal: MoveJournal, history: MoveHistory, stopped: Callable[[], str]
    ) -> dict[str, t.Any]:
        """Drain the host, and return what became of each server."""
        # Refused before anything is changed.
        self.require_not_excluded()
        settings = self._options.settings
        require_clear_state(self._reader, self._host, settings.fenced, True, stopped, self._sleep)
        service, service_changed = self._disable_service(journal)
        # Of after the change: Nova also saves the time when it forces a service down.
        mover = Mover(self._session, journal, settings, DRAIN, service.updated_at)
        runner = MoveRun(mover, self._options.limits, stopped)
        begun = self._find_begun_moves(history)
        handled = {attempt.server for attempt in begun}
        plans: list[DrainPlanDocument] = []
        outcomes: list[MoveOutcomeDocument] = []
        for _round in range(_MAX_ROUNDS):
            try:
                reading = self._reader.read(self._host)
            except PlacementToolsError:
                if not plans:
                    raise
                # The last look at the host reports it, beside what became of the servers.
                break
            # A server that was left or has failed is not tried again in the same run.
            fresh = [server for server in reading.servers if server.uuid not in handled]
            if plans and not fresh:
                break
            plan = build_drain_plan(d.replace(reading, servers=fresh), settings)
            plans.append(plan)
            handled.update(server.uuid for server in fresh)
            tasks, left = _split_tasks(plan)
            outcomes += left
            outcomes += runner.run(tasks, begun)
            begun = []
            if stopped() or runner.halted:
                break
        contents, others = self._read_contents(outcomes, is_run=True)
        return {
            **contents,
            **_describe(service, outcomes),
            "changed": service_changed or any(entry["outcome"] == MOVED for entry in outcomes),
            "plan": plans[0],
            **_conclude(self._host, outcomes, contents, others, stopped()),
        }

    def _build_service_update(self, service: Service) -> dict[str, t.Any]:
        # The reason of somebody who has disabled it before stays.
        reason = None if service.status == "disabled" else self._options.reason
        forced_down = True if self._options.settings.fenced else None
        return build_update(
            service, {"enabled": False, "disabled_reason": reason, "forced_down": forced_down}
        )

    def _disable_service(self, journal: MoveJournal) -> tuple[Service, bool]:
        service = self._reader.read_service(self._host)
        body = self._build_service_update(service)
        if not body:
            return service, False
        journal.record_service(service, body)
        return ServiceWriter(self._session.compute).update_service(service, body), True

    def _find_begun_moves(self, history: MoveHistory) -> list[Attempt]:
        """Return the moves away from the host that an earlier run or somebody else has begun.

        Cold migrations of somebody else are left out, because they end with a resize that is theirs
        to confirm.
        """
        begun = {attempt.server: attempt for attempt in history.list_attempts(DRAIN)}
        listed, at = self._reader.list_open_migrations(self._host)
        for migration in listed:
            leaves = migration.type in _LEAVING and migration.source_compute == self._host
            is_stuck = describe_standstill(migration.changed_at, at)
            if migration.server not in begun and leaves and not is_stuck:
                adopted = self._adopt(migration)
                begun.update({migration.server: adopted} if adopted else {})
        return list(begun.values())

    def _adopt(self, migration: Migration) -> Attempt | None:
        """Return the move that a migration of somebody else stands for, None if it is stuck."""
        server = self._reader.find_server(migration.server)
        # Without a task nobody works on it, so that it would be waited for in vain.
        if server is None or server.server.task_state is None:
            return None
        return Attempt(
            server=migration.server,
            name=server.name,
            source=self._host,
            how=EVACUATION if migration.type == MIGRATION_TYPES[EVACUATION] else LIVE,
            known=frozenset(self._reader.list_other_migrations(migration)),
            is_accepted=True,
            is_own=False,
        )

    def _read_contents(
        self, outcomes: Sequence[MoveOutcomeDocument] = (), is_run: bool = False
    ) -> tuple[dict[str, t.Any], str]:
        """Return what is on the host or on its way from or to it, and what is no server in words.

        What cannot be read now does not lose what became of the servers.
        """
        migrations: list[dict[str, t.Any]] = []
        try:
            listed, at = self._reader.list_open_migrations(self._host)
            migrations = [describe_migration(entry, at) for entry in listed]
            contents = read_contents(self._session, self._host)
            # Last, so that nothing came to the host after the other listings.
            is_enabled = is_run and is_selectable(self._reader.read_service(self._host))
        except PlacementToolsError as error:
            contents, is_enabled = Contents(Host(self._host), unread=str(error)), False
        contents = d.replace(contents, outcomes=outcomes, is_enabled=is_enabled)
        occupants = list_occupants(contents)
        document = {
            "remaining": [entry.subject for entry in occupants if entry.kind == "server"],
            "migrations": migrations,
            "occupants": list(map(d.asdict, occupants)),
            "empty": not occupants,
        }
        return document, describe_others(occupants)


def _describe_begun(attempt: Attempt) -> Way:
    """Return why a server is not moved as if nothing had been, for the plan of a run."""
    return Way(
        STAYS,
        f"an earlier run asked Nova to move it ({attempt.how}, {attempt.requested_at}), and its "
        "journal does not say how that ended",
        "run again, which follows that move first",
    )


def _split_tasks(plan: DrainPlanDocument) -> tuple[list[MoveTask], list[MoveOutcomeDocument]]:
    """Return the servers to move, and the outcomes of those that stay."""
    tasks, left = [], []
    for entry in plan["servers"]:
        task = MoveTask(entry["uuid"], entry["name"], plan["host"])
        if entry["how"] == STAYS:
            reason = f"{entry['reason']}: {entry['advice']}".removesuffix(": ")
            left.append(build_outcome(task, MoveEnd(LEFT, reason)))
        else:
            tasks.append(task)
    return tasks, left


def _conclude(
    host: str,
    outcomes: Sequence[MoveOutcomeDocument],
    contents: dict[str, t.Any],
    others: str,
    why_stopped: str,
) -> dict[str, t.Any]:
    """Return the message of a run, and whether it has failed."""
    text = f"{_count_moved(outcomes)} moved from {host}."
    if contents["empty"]:
        text += f" {host} is empty."
    elif contents["remaining"]:
        count = format_count(len(contents["remaining"]), "server is", "servers are")
        text += f" {count} still on it."
    return _conclude_moves(f"{text} {others}".rstrip(), outcomes, "Not moved", why_stopped)


def _count_moved(outcomes: Iterable[MoveOutcomeDocument]) -> str:
    moved = sum(entry["outcome"] == MOVED for entry in outcomes)
    return format_count(moved, "server", "servers")


def _conclude_moves(
    text: str, outcomes: Iterable[MoveOutcomeDocument], heading: str, why_stopped: str
) -> dict[str, t.Any]:
    """Return a message about moves with those that were not made, and whether they have failed.

    heading: of the servers that were not moved, each with the reason.
    """
    failed, stays = [], []
    for entry in outcomes:
        line = make_printable(f"{entry['name']} ({entry['reason']})")
        if entry["outcome"] in (FAILED, UNDER_WAY, SKIPPED):
            failed.append(line)
        elif entry["outcome"] == LEFT:
            stays.append(line)
    if failed or stays:
        text += f" {heading}: {summarize_names([*failed, *stays])}."
    if why_stopped:
        text = f"{why_stopped} {text} Run again to go on."
    return {"msg": text, "failed": bool(failed or why_stopped)}


def _describe(service: Service, outcomes: Sequence[MoveOutcomeDocument]) -> dict[str, t.Any]:
    """Return what the results of a drain and of a return have in common."""
    ends = [entry["outcome"] for entry in outcomes]
    tally = {outcome: ends.count(outcome) for outcome in MOVE_OUTCOMES}
    return {"service": d.asdict(service), "outcomes": outcomes, "tally": tally}


class HostReturn(HostMoves):
    """Returns one host."""

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
            **_describe(expected, outcomes),
            "departures": list(map(_describe_departure, departures)),
            "changed": bool(body or departures),
            "msg": text,
        }

    def run(
        self, journal: MoveJournal, history: MoveHistory, stopped: Callable[[], str]
    ) -> dict[str, t.Any]:
        """Enable the service again, move the servers back, and return what became of each."""
        if self._options.move_back:
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
        outcomes += runner.run(departures, history.list_attempts(RETURN))
        text = f"{_describe_service(service)} {_count_moved(outcomes)} moved back."
        result = _conclude_moves(text, outcomes, "Not moved back", stopped())
        unfinished, occupants = self._read_occupants()
        for occupant in occupants:
            result = {"msg": f"{result['msg']} {occupant.reason}", "failed": True}
        return {
            **_describe(service, outcomes),
            "departures": list(map(_describe_departure, departures)),
            "changed": bool(body) or any(entry["outcome"] == MOVED for entry in outcomes),
            "unfinished_evacuations": [entry.uuid for entry in unfinished.evacuations],
            **result,
        }

    def _prepare(self, history: MoveHistory) -> tuple[Service, dict[str, t.Any]]:
        """Return the service of the host, and the body of the request that takes it back.

        Raises InvalidInput for a host whose nova-compute would destroy servers that return.
        """
        self.require_not_excluded()
        for occupant in self._read_occupants()[1]:
            raise InvalidInput(Reason(occupant.kind, f"Nothing was changed. {occupant.reason}"))
        service = self._reader.read_service(self._host)
        return service, build_return(service, history, self._options.reason)

    def _read_occupants(self) -> tuple[UnfinishedEvacuations, list[Blocker]]:
        """Return the evacuations that are not completed, and what may be on the host by them."""
        unfinished = self._reader.read_unfinished_evacuations(self._host)
        return unfinished, list_occupants(Contents(Host(self._host), evacuations=unfinished))

    def _list_departures(
        self, history: MoveHistory, mover: Mover, service: Service
    ) -> tuple[list[MoveTask], list[MoveOutcomeDocument]]:
        """Return the moves back of the servers that can be moved, and why the others cannot.

        One that is on the host again, or on its way to it, is neither.

        service: that of the host, once it is returned.
        """
        departures: list[MoveTask] = []
        outcomes: list[MoveOutcomeDocument] = []
        if not self._options.move_back:
            return departures, outcomes
        reason = ""
        if service.status != "enabled":
            reason = f"{service.host} is disabled: enable it, and run again"
        elif service.state == "down":
            reason = f"nova-compute on {service.host} is down: start it, and run again"
        for attempt in history.list_attempts(DRAIN):
            seen = self._reader.find_server(attempt.server)
            if seen is not None and seen.server.host != attempt.source:
                end = MoveEnd(LEFT, _UNFOLLOWED, seen.server.host)
                outcomes.append(build_outcome(attempt, end))
        begun = {attempt.server for attempt in history.list_attempts(RETURN)}
        for task in history.list_departures():
            if task.server in begun:
                continue
            found = mover.decide(task)
            if reason and not isinstance(found, MoveEnd):
                found = MoveEnd(LEFT, reason)
            if not isinstance(found, MoveEnd):
                departures.append(task)
            elif found.to != task.target:
                outcomes.append(build_outcome(task, found))
        return departures, outcomes


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


def _describe_departure(task: MoveTask) -> dict[str, t.Any]:
    """Return a server that was moved away, and where it went."""
    return {"server": task.server, "name": task.name, "source": task.target, "to": task.source}


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
