# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One move of one server: looks, journals, asks Nova, and looks again.

Whether a server may be moved is decided from a look right before the request. Nova itself refuses
the request if the server has got a task since then.
"""

from __future__ import annotations

import dataclasses as d
from collections.abc import Iterable, Sequence

from .._common.errors import CloudError
from .._common.times import is_earlier, seconds_between
from .._core.clients.nova import NovaReader
from .._core.clients.session import Session
from .._core.facts.services import (
    COMPUTE,
    filter_services,
    get_listed_services,
    require_answer,
    require_service,
)
from .._core.models.nova import STARTING_ACTIONS, Action, Migration, Service
from .drain_plan import is_selectable, is_up
from .drain_reader import DrainReader
from .draining import (
    EVACUATION,
    FAILED,
    GONE,
    LEFT,
    LIVE,
    MOVED,
    STAYS,
    UNDER_WAY,
    DrainServer,
    DrainSettings,
    Way,
)
from .migrations import explain_returning, find_returning_hosts
from .move_journal import MoveJournal
from .move_progress import (
    ABORTED,
    ARRIVED,
    AWAY,
    BROKEN,
    CONFIRMABLE,
    FOREIGN,
    NOT_BEGUN,
    UNCERTAIN,
    Attempt,
    MoveTask,
    Sighting,
    Verdict,
    explain_doubt,
    is_own_move,
    judge_progress,
    may_have_left,
)
from .move_ways import decide_way
from .nova_client import MoveReader, MoveReply, ServerMover

# What became of a server, by the state of its move.
_ENDS = {ARRIVED: MOVED, AWAY: GONE, FOREIGN: LEFT}

# How often a resize that still waits is confirmed again, when Nova has accepted the confirmation
# and then given it up.
_MAX_CONFIRMATIONS = 3

# What a queued live migration waits for: others of the same host.
_COPYING = ("preparing", "running", "running (post-copy)")

# A live migration with these is being scheduled, or prepared on both hosts.
_SILENT_STATUSES = ("accepted", "preparing")

# The action of aborting a live migration, in Nova's words.
_ABORT = "live_migration_cancel"

# The actions that need the guest on the host or start it there, with the events that the host
# records (nova/compute/manager.py). To stop a guest that is not there succeeds too.
_PROVING_ACTIONS = {
    **STARTING_ACTIONS,
    "pause": "compute_pause_instance",
    "unpause": "compute_unpause_instance",
}

# In seconds: a migration that is copied by libvirt is saved every 5 seconds
# (nova/virt/libvirt/migration.py, save_stats).
_LONGEST_SILENCE = 600

# The services without any of which no move goes on, with what to do first.
_NEEDED_SERVICES = {
    COMPUTE: "look at the message broker (RabbitMQ) first",
    "nova-conductor": "start it",
    "nova-scheduler": "start it",
}


@d.dataclass(frozen=True)
class MoveEnd:
    """How an attempt has ended, or why this run no longer follows it.

    may_retry: whether another attempt can end in another way.
    may_be_on: the hosts where the guest may be, if that is not certain. The journal then leaves the
        move open, so that the next run looks again instead of moving the server as if nothing had
        been.
    """

    outcome: str
    reason: str = ""
    to: str | None = None
    how: str = STAYS
    may_retry: bool = False
    may_be_on: tuple[str, ...] = ()


@d.dataclass
class ActiveMove:
    """A move under way.

    waits_for: what Nova has to do next. migration: its record, as last seen. seen_at: when, by
    Nova's clock. state, server: of that look.
    confirmations: how often its resize was confirmed.
    """

    attempt: Attempt
    waits_for: str = "Nova to begin"
    migration: Migration | None = None
    seen_at: str = ""
    state: str = ""
    server: DrainServer | None = None
    confirmations: int = 0


class Mover:
    """Begins moves and follows them; the only code that asks Nova to move a server.

    last_report: when the nova-compute of a dead host reported last, so that a later report shows
        that the host is back.
    """

    def __init__(
        self,
        session: Session,
        journal: MoveJournal,
        settings: DrainSettings,
        purpose: str,
        last_report: str | None = None,
    ) -> None:
        self._nova = NovaReader(session.compute)
        self._reader = MoveReader(session.compute)
        self._drain_reader = DrainReader(session)
        self._writer = ServerMover(session.compute)
        self._journal = journal
        self._settings = settings
        self._purpose = purpose
        self._last_report = last_report

    def begin(self, task: MoveTask) -> ActiveMove | MoveEnd:
        """Ask Nova to move a server, if it may be moved now.

        Raises CloudError when Nova does not answer the questions before the request, and
        JournalError when the request cannot be recorded. Then nothing was requested.
        """
        sighting = self._look(task.server)
        way = self._decide(task, sighting)
        if isinstance(way, MoveEnd):
            return way
        attempt = Attempt(
            **vars(task),
            how=way.how,
            known=frozenset(migration.uuid for migration in sighting.migrations),
            requested_at=sighting.at,
        )
        # Should this process be killed from here on, the next run knows what may be under way.
        self._journal.record_request(attempt, self._purpose)
        reply = self._writer.move(attempt.server, attempt.how, attempt.target)
        attempt = d.replace(attempt, request_id=reply.request_id, is_accepted=reply.is_accepted)
        if reply.is_refused:
            return self._end_refused(task, attempt, reply)
        self._journal.record_reply(attempt, reply.is_accepted)
        return ActiveMove(attempt)

    def decide(self, task: MoveTask) -> Way | MoveEnd:
        """Return how a server can be moved now, or why it is not moved. Nothing is requested."""
        return self._decide(task, self._look(task.server))

    def _decide(self, task: MoveTask, sighting: Sighting) -> Way | MoveEnd:
        """Return how a server can be moved, or why it is not moved."""
        if sighting.server is None:
            return MoveEnd(GONE, "it was deleted meanwhile")
        server = sighting.server.server
        if server.host_known and server.host != task.source:
            return MoveEnd(GONE, f"it is on {server.host or 'no host'} now", server.host)
        services = get_listed_services(self._nova.list_services())
        service = require_service(task.source, services)
        # A return never evacuates, so that fencing is no way out of it.
        if task.target is not None and not is_up(service):
            reason = f"nova-compute on {task.source} is down: start it, and run again"
            return MoveEnd(LEFT, reason, task.source)
        open_migrations = [entry for entry in sighting.migrations if not entry.ended]
        way = decide_way(
            sighting.server, task.source, is_up(service), self._settings, open_migrations
        )
        if way.how != STAYS:
            # Also before another attempt: the one before may have left it wrong.
            way = self._drain_reader.explain_allocation(sighting.server) or way
        if way.how == STAYS:
            return MoveEnd(LEFT, f"{way.reason}: {way.advice}")
        # Only a service that is forced down stays down for Nova when the host comes back.
        if way.how == EVACUATION and not service.forced_down:
            return MoveEnd(LEFT, f"the compute service of {task.source} is not forced down")
        if way.how == EVACUATION and service.updated_at != self._last_report:
            return MoveEnd(
                LEFT,
                f"nova-compute on {task.source} reports to Nova again ({service.updated_at}), so "
                "the guest may run there: unset forced_down and run again without fenced, or cut "
                "off the power of the host",
            )
        returning = find_returning_hosts(sighting.migrations, _list_targets(task, services))
        if returning:
            return MoveEnd(LEFT, ": ".join(explain_returning(returning)))
        return self._find_failed_evacuation(task, sighting.migrations) or way

    def _find_failed_evacuation(
        self, task: MoveTask, migrations: Sequence[Migration]
    ) -> MoveEnd | None:
        """Return why a server stays whose last move was an evacuation that it did not follow.

        Its guest may run at the destination. A live migration that was cut off has left the
        allocation there.
        """
        last = next(iter(migrations), None)
        if last is None or last.type != "evacuation" or last.source_compute != task.source:
            return None
        attempt = Attempt(task.server, task.name, task.source, how=EVACUATION)
        actions = self._list_actions(task.server)
        if not may_have_left(last) or self._was_on_its_host_since(attempt, last, actions):
            return None
        reason = "its last move is an evacuation from here, which it did not follow"
        return end_open(LEFT, ActiveMove(attempt, migration=last), reason)

    def _end_refused(self, task: MoveTask, attempt: Attempt, reply: MoveReply) -> MoveEnd:
        """Return the end of a request that Nova refused: somebody may have been faster."""
        words = f"Nova answered {reply.status}: {reply.detail}".removesuffix(": ")
        self._journal.record_end(attempt, FAILED, None, words)
        way = self._decide(task, self._look(task.server))
        if isinstance(way, MoveEnd):
            return d.replace(way, reason=f"{way.reason} ({words})", how=attempt.how)
        return MoveEnd(FAILED, words, how=attempt.how, may_retry=True)

    def follow(self, move: ActiveMove) -> MoveEnd | None:
        """Return how a move has ended, or None as long as it is under way.

        Raises CloudError when Nova does not answer, and JournalError when the confirmation of a
        resize cannot be recorded.
        """
        attempt, sighting = move.attempt, self._look(move.attempt.server)
        verdict = judge_progress(attempt, sighting)
        move.migration, move.state = verdict.migration, verdict.state
        move.seen_at, move.server = sighting.at, sighting.server
        end = self._conclude(move, verdict)
        if end is None and verdict.state == CONFIRMABLE and verdict.migration is not None:
            return self._confirm(move, verdict.migration)
        if end is None:
            move.waits_for = verdict.reason
            return None
        to = end.to
        if to is None and sighting.server is not None:
            to = sighting.server.server.host
        if attempt.is_own and not end.may_be_on:
            self._journal.record_end(attempt, end.outcome, to, end.reason)
        return d.replace(end, to=to, how=attempt.how)

    def _conclude(self, move: ActiveMove, verdict: Verdict) -> MoveEnd | None:
        migration, state = verdict.migration, verdict.state
        if state in (ARRIVED, CONFIRMABLE) and migration is not None:
            actions = self._list_actions(move.attempt.server)
            if not is_own_move(move.attempt, migration, actions):
                return _end_of_others(move.attempt, verdict, migration)
        if state in _ENDS:
            return MoveEnd(_ENDS[state], verdict.reason, verdict.to)
        if state == UNCERTAIN and migration is not None:
            actions = self._list_actions(move.attempt.server)
            is_aborted = [action.action for action in actions[:1]] == [_ABORT]
            # Whoever aborts a live migration does not want it to be repeated at once.
            if is_aborted and migration.status == "cancelled":
                return MoveEnd(LEFT, "somebody has aborted its migration")
            if self._reader.runs_on_its_host(move.attempt.server) or self._was_on_its_host_since(
                move.attempt, migration, actions
            ):
                state = ABORTED
        if state in (BROKEN, UNCERTAIN):
            return end_open(FAILED, move, self._explain(move, verdict.reason))
        if state == ABORTED:
            return MoveEnd(FAILED, self._explain(move, verdict.reason), may_retry=True)
        # Nova gives a server its task before it accepts the request. Without a task and without a
        # migration, nothing came of a request that was accepted.
        if state == NOT_BEGUN and move.attempt.is_accepted:
            reason = self._explain(move, "Nova accepted the request, and has begun no migration")
            return MoveEnd(FAILED, reason, may_retry=True)
        return None

    def _was_on_its_host_since(
        self, attempt: Attempt, migration: Migration, actions: Iterable[Action]
    ) -> bool:
        """Return whether the source did something with the guest after the migration ended."""
        for action in actions:
            name = _PROVING_ACTIONS.get(action.action)
            if name is None or not is_earlier(migration.changed_at, action.start_time):
                continue
            found = self._nova.get_instance_action(attempt.server, action.request_id).value
            for event in found.events if found is not None else ():
                if (event.event, event.result, event.host) == (name, "Success", attempt.source):
                    return True
        return False

    def _list_actions(self, server: str) -> Sequence[Action]:
        actions = self._nova.list_instance_actions(server)
        return require_answer(actions, f"all actions of server {server}")

    def give_up(self, move: ActiveMove) -> MoveEnd | None:
        """Return the end for this run of a move that may never end, None if Nova goes on with it.

        Raises CloudError when Nova does not answer, and JournalError when it cannot be recorded.
        """
        if move.state == NOT_BEGUN and not move.attempt.is_accepted:
            reason = "its request was lost: Nova has begun no migration of it"
            self._journal.record_end(move.attempt, FAILED, None, reason)
            return MoveEnd(FAILED, reason, how=move.attempt.how, may_retry=True)
        hindrance = self._find_dead_service(move) or self._find_standstill(move)
        return end_open(UNDER_WAY, move, hindrance) if hindrance else None

    def _find_dead_service(self, move: ActiveMove) -> str:
        """Return which service a move waits for in vain, and what to do."""
        services = get_listed_services(self._nova.list_services())
        for binary, advice in _NEEDED_SERVICES.items():
            listed = filter_services(services, None, [binary])
            if listed and not any(map(is_up, listed)):
                return f"every {binary} is down: {advice}"
        needed = []
        if move.migration is not None and move.migration.dest_compute:
            needed.append(move.migration.dest_compute)
        if move.attempt.how != EVACUATION:
            needed.append(move.attempt.source)
        needed_services = filter_services(services, needed, [COMPUTE])
        down = next((service.host for service in needed_services if not is_up(service)), None)
        if down is None:
            return ""
        if self._settings.fenced and down == move.attempt.source:
            return (
                f"{down} is fenced, so Nova never ends this move: reset the state of the server to "
                "active, evacuate it by hand, and run again"
            )
        return f"nova-compute on {down} is down: start it, and run again"

    def _find_standstill(self, move: ActiveMove) -> str:
        """Return why nobody goes on with a move although the services are up, and what to do."""
        attempt, migration = move.attempt, move.migration
        if move.server is None:
            return ""
        has_task = move.server.server.task_state is not None
        since = attempt.requested_at
        advice = "look into the logs of nova-conductor and nova-compute"
        if migration is not None:
            name = f"migration {migration.uuid} is {migration.status}"
            since = migration.changed_at or since
            # Only the memory is copied with a record of it: a disk is copied, and an image fetched,
            # for as long as it takes.
            is_recorded = attempt.how == LIVE and migration.status not in _SILENT_STATUSES
            if has_task and not is_recorded:
                return ""
            # On the destination, the source may still be cleaning up.
            if not has_task and move.server.server.host == attempt.source:
                return f"{name}, but the server has no task any more: see stuck_migration"
            if attempt.how == LIVE:
                command = "openstack server migration abort"
                advice = (
                    f"look into the log of nova-compute on {attempt.source}, and abort it if it "
                    f"does not go on ({command} {attempt.server} {migration.uuid})"
                )
            if migration.status == "queued":
                if self._copies_from(attempt.source):
                    return ""
                return f"{name}, and no other one from {attempt.source} runs: {advice}"
        seconds = seconds_between(since, move.seen_at)
        if seconds is None or seconds < _LONGEST_SILENCE:
            return ""
        return f"Nova has changed nothing since {since} (it waits for {move.waits_for}): {advice}"

    def _copies_from(self, host: str) -> bool:
        """Return whether a live migration from a host may be ahead of the queued ones."""
        migrations = self._nova.list_migrations_of_host(host).value
        return migrations is None or any(
            entry.source_compute == host and entry.status in _COPYING for entry in migrations
        )

    def _explain(self, move: ActiveMove, reason: str) -> str:
        """Return a reason with Nova's own words about the failure, where it has any."""
        request = move.attempt.request_id
        words = self._reader.find_failure(move.attempt.server, request) if request else ""
        return f"{reason}: {words}".removesuffix(": ")

    def _confirm(self, move: ActiveMove, migration: Migration) -> MoveEnd | None:
        """Confirm a cold migration that this collection began."""
        attempt = move.attempt
        if move.confirmations >= _MAX_CONFIRMATIONS:
            # The journal leaves the move open, so that the next run confirms it.
            return MoveEnd(
                FAILED,
                f"its migration {migration.uuid} cannot be confirmed ({move.waits_for})",
                migration.dest_compute,
                attempt.how,
            )
        self._journal.record_confirmation(attempt, migration.uuid)
        reply = self._writer.confirm_resize(attempt.server)
        move.confirmations += 1
        move.waits_for = "its migration to be confirmed"
        if not reply.is_accepted:
            move.waits_for = f"its migration to be confirmed; Nova answered {reply.detail}"
        return None

    def _look(self, server: str) -> Sighting:
        """Return the migrations of a server, and then the server.

        Raises CloudError when Nova does not answer.
        """
        listed = self._nova.list_migrations_of_server(server)
        migrations = require_answer(listed, f"the migrations of {server}")
        found = self._reader.get_server(server)
        # Only this status says that no cell has it.
        if found.value is None and found.status != 404:
            raise CloudError(f"Nova answered {found.status} when asked for server {server}.")
        return Sighting(found.at, found.value, migrations)


def _end_of_others(attempt: Attempt, verdict: Verdict, migration: Migration) -> MoveEnd:
    """Return the end of a move that somebody else may have begun."""
    doubt = explain_doubt(attempt)
    if verdict.state == ARRIVED:
        reason = f"not counted as moved: {doubt} (migration {migration.uuid})"
        return MoveEnd(GONE, reason, verdict.to)
    reason = f"{doubt}, so check migration {migration.uuid}, and confirm or revert it"
    return MoveEnd(LEFT, reason)


def end_open(outcome: str, move: ActiveMove, reason: str) -> MoveEnd:
    """Return the end of a move, with where its guest may be if that is not certain."""
    migration, attempt = move.migration, move.attempt
    if migration is None or not may_have_left(migration):
        return MoveEnd(outcome, reason, how=attempt.how)
    hosts = (attempt.source, str(migration.dest_compute))
    where = (
        f"Migration {migration.uuid} is {migration.status}, so the guest may be on "
        f"{' or on '.join(hosts)}: look on both (virsh list --all) before you start, reboot, move, "
        "evacuate or delete it. Once you have moved or evacuated it by hand, or started it on "
        f"{attempt.source}, the next run goes on"
    )
    return MoveEnd(outcome, f"{reason}. {where}", how=attempt.how, may_be_on=hosts)


def _list_targets(task: MoveTask, services: Iterable[Service]) -> dict[str, tuple[str]]:
    """Return the hosts to which Nova may send a server, each with its name."""
    if task.target is not None:
        return {task.target: (task.target,)}
    return {service.host: (service.host,) for service in services if is_selectable(service)}
