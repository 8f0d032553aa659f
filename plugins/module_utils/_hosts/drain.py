# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Empties a host: disables its service, moves its servers away, and looks what is left.

What is under way from an earlier run is recognised from the journal and from Nova's migrations. The
journal has the ids of the requests, which show what is ours to confirm and to count.
"""

from __future__ import annotations

import dataclasses as d
import time
import typing as t
from collections.abc import Callable, Iterable, Sequence

from .._common.errors import InvalidInput, PlacementToolsError
from .._common.text import format_count, make_printable, summarize_names
from .._core.clients.session import Session
from .._core.facts.services import (
    apply_update,
    build_update,
    describe_services,
)
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
from .emptiness import Contents, describe_others, list_occupants
from .fencing import is_down, require_clear_state
from .host import Host
from .host_info import read_contents
from .migrations import describe_migration
from .move_journal import DRAIN, MoveHistory, MoveJournal
from .move_progress import Attempt
from .move_run import MoveRun, RunLimits, build_outcome
from .nova_client import ServiceWriter
from .server_move import MoveEnd, Mover, MoveTask

# How often the host is listed again for servers that came to it since the last listing. Nova sends
# no server to a disabled host, so only those come that were on their way.
_MAX_ROUNDS = 5

# The types of the migrations that take a server from its host without a confirmation.
_LEAVING = (MIGRATION_TYPES[LIVE], MIGRATION_TYPES[EVACUATION])


@d.dataclass(frozen=True)
class DrainOptions:
    """What the operator asks for.

    reason: why the service is disabled.
    excluded_hosts: the names and UUIDs of hosts that are never changed, with until when and why.
    """

    host: str
    reason: str
    settings: DrainSettings
    limits: RunLimits
    excluded_hosts: t.Mapping[str, str] = d.field(default_factory=dict)


def require_not_excluded(reader: DrainReader, options: DrainOptions) -> None:
    """Raise InvalidInput for a host that is excluded by one of its names."""
    excluded = options.excluded_hosts
    if not excluded:
        return
    for label in sorted(reader.list_labels(options.host) & excluded.keys()):
        raise InvalidInput(
            f"{options.host} is excluded by name ({label}{excluded[label]}), and must not be "
            "changed: nothing was changed. Remove it from exclude_providers to drain or return it."
        )


class HostDrain:
    """Drains one host."""

    def __init__(
        self,
        session: Session,
        options: DrainOptions,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._session = session
        self._options = options
        self._reader = DrainReader(session)
        self._sleep = sleep

    def predict(self, _journal: MoveJournal, history: MoveHistory) -> dict[str, t.Any]:
        """Return what a run would do, without a change."""
        require_not_excluded(self._reader, self._options)
        settings, host = self._options.settings, self._options.host
        require_clear_state(self._reader, host, settings.fenced, False, str, self._sleep)
        reading = self._reader.read(self._options.host)
        attempts = history.list_attempts(DRAIN)
        begun = {attempt.server: _describe_begun(attempt) for attempt in attempts}
        reading = d.replace(reading, obstacles={**reading.obstacles, **begun})
        plan = build_drain_plan(reading, self._options.settings)
        body = self._build_service_update(reading.service)
        service = apply_update(reading.service, body)
        moves = any(entry["how"] != STAYS for entry in plan["servers"])
        # Without the word, a run would be refused before it disables the service.
        is_refused = is_down(reading.service) and not self._options.settings.fenced
        contents, others = self._read_contents()
        plan["summary"] = f"{plan['summary']} {others}".rstrip()
        return {
            **contents,
            "changed": not is_refused and (bool(body) or moves),
            "plan": plan,
            "service": describe_services([service])[0],
            "outcomes": [],
            "tally": count_outcomes([]),
            "msg": plan["summary"],
        }

    def run(
        self, journal: MoveJournal, history: MoveHistory, stopped: Callable[[], str]
    ) -> dict[str, t.Any]:
        """Drain the host, and return what became of each server."""
        host = self._options.host
        # Refused before anything is changed.
        require_not_excluded(self._reader, self._options)
        fenced = self._options.settings.fenced
        require_clear_state(self._reader, host, fenced, True, stopped, self._sleep)
        service, service_changed = self._disable_service(journal)
        # Of after the change: Nova also saves the time when it forces a service down.
        last_report = service.updated_at
        mover = Mover(self._session, journal, self._options.settings, DRAIN, last_report)
        runner = MoveRun(mover, self._options.limits, stopped)
        begun = self._find_begun_moves(history)
        handled = {attempt.server for attempt in begun}
        plans: list[DrainPlanDocument] = []
        outcomes: list[MoveOutcomeDocument] = []
        for _round in range(_MAX_ROUNDS):
            try:
                reading = self._reader.read(host)
            except PlacementToolsError:
                if not plans:
                    raise
                # The last look at the host reports it, beside what became of the servers.
                break
            # A server that was left or has failed is not tried again in the same run.
            fresh = [server for server in reading.servers if server.uuid not in handled]
            if plans and not fresh:
                break
            plan = build_drain_plan(d.replace(reading, servers=fresh), self._options.settings)
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
            "outcomes": outcomes,
            "tally": count_outcomes(outcomes),
            "changed": service_changed or any(entry["outcome"] == MOVED for entry in outcomes),
            "plan": plans[0],
            "service": describe_services([service])[0],
            **_conclude(host, outcomes, contents, others, stopped()),
        }

    def _build_service_update(self, service: Service) -> dict[str, t.Any]:
        forced_down = None
        if self._options.settings.fenced:
            forced_down = True
        # The reason of somebody who has disabled it before stays.
        reason: str | None = self._options.reason
        if service.status == "disabled":
            reason = None
        return build_update(
            service, {"enabled": False, "disabled_reason": reason, "forced_down": forced_down}
        )

    def _disable_service(self, journal: MoveJournal) -> tuple[Service, bool]:
        service = self._reader.read_service(self._options.host)
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
        for migration in self._reader.list_open_migrations(self._options.host)[0]:
            leaves = migration.type in _LEAVING and migration.source_compute == self._options.host
            if migration.server not in begun and leaves:
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
            how=EVACUATION if migration.type == MIGRATION_TYPES[EVACUATION] else LIVE,
            source=self._options.host,
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
        host = self._options.host
        migrations: list[dict[str, t.Any]] = []
        try:
            listed, at = self._reader.list_open_migrations(host)
            migrations = [describe_migration(entry, at) for entry in listed]
            contents = read_contents(self._session, host)
            # Last, so that nothing came to the host after the other listings.
            is_enabled = is_run and is_selectable(self._reader.read_service(host))
        except PlacementToolsError as error:
            contents, is_enabled = Contents(Host(host), unread=str(error)), False
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
    tasks = []
    left = []
    for entry in plan["servers"]:
        task = MoveTask(entry["uuid"], entry["name"], plan["host"])
        if entry["how"] == STAYS:
            reason = f"{entry['reason']}: {entry['advice']}".removesuffix(": ")
            left.append(build_outcome(task, MoveEnd(LEFT, reason), 0, 0))
        else:
            tasks.append(task)
    return tasks, left


def count_outcomes(outcomes: Iterable[MoveOutcomeDocument]) -> dict[str, int]:
    """Return how many servers have each outcome."""
    ends = [entry["outcome"] for entry in outcomes]
    return {outcome: ends.count(outcome) for outcome in MOVE_OUTCOMES}


def _conclude(
    host: str,
    outcomes: Sequence[MoveOutcomeDocument],
    contents: dict[str, t.Any],
    others: str,
    why_stopped: str,
) -> dict[str, t.Any]:
    """Return the message of a run, and whether it has failed."""
    moved = count_outcomes(outcomes)[MOVED]
    text = f"{format_count(moved, 'server', 'servers')} moved from {host}."
    if contents["empty"]:
        text += f" {host} is empty."
    elif contents["remaining"]:
        count = format_count(len(contents["remaining"]), "server is", "servers are")
        text += f" {count} still on it."
    return conclude_moves(f"{text} {others}".rstrip(), outcomes, "Not moved", why_stopped)


def conclude_moves(
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
