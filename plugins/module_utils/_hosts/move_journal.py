# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The journal of moves: what was requested for which server, before it is sent and after.

It is a file of its own beside the journals of allocations. From it a run goes on with the moves
that an earlier run began, and a later run takes servers back.
"""

from __future__ import annotations

import dataclasses as d
import glob
import os
import typing as t
from collections.abc import Mapping, Sequence

from .._common.clock import get_utc_now
from .._common.errors import InvalidInput, hide_credentials
from .._common.text import make_printable
from .._core.changes.journal import (
    AFTER,
    BEFORE,
    FORMAT,
    Journal,
    JournalRecord,
    check_records,
    read_journal,
)
from .._core.models.nova import Service
from .._core.run.pack import pack_files, read_packed
from .draining import FAILED, GONE, LEFT, MIGRATION_TYPES, MOVED
from .move_progress import Attempt, MoveTask

# What a record is about.
_MOVE, _CONFIRM, _SERVICE = "move", "confirm", "service"

# Why a server is moved.
DRAIN, RETURN = "drain", "return"

# What the record of a request has of its attempt, beside the migrations from before it.
_REQUEST_KEYS = ("server", "name", "how", "source", "target", "requested_at")

# What else a record has, by what it is about and when it was written.
_NEEDED_KEYS: dict[tuple[t.Any, t.Any], t.Collection[str]] = {
    (_MOVE, BEFORE): {"purpose", "known", *_REQUEST_KEYS},
    (_MOVE, AFTER): {"server", "outcome"},
    (_CONFIRM, BEFORE): {"server", "migration"},
    (_SERVICE, BEFORE): {"service", "body"},
    (_SERVICE, AFTER): {"outcome"},
}

# After these a move is over; any other record leaves it open.
_FINAL = frozenset({MOVED, GONE, LEFT, FAILED})

_ACCEPTED, _RESTORED = "accepted", "restored"


class MoveJournal(Journal):
    """The journal of one run; its file is made with its first record."""

    def __init__(self, directory: str, compute_endpoint: str, host: str) -> None:
        super().__init__(directory, "")
        folder, name = os.path.split(self.path)
        # Under another name, because a journal of allocations is restored in another way.
        self.path = os.path.join(folder, name.replace("journal-", "moves-", 1))
        self._compute_endpoint = compute_endpoint
        self._host = host

    def record_request(self, attempt: Attempt, purpose: str) -> None:
        """Record what is about to be requested, and wait until it is on disk."""
        self._record(
            BEFORE,
            _MOVE,
            purpose=purpose,
            known=sorted(attempt.known),
            **{name: getattr(attempt, name) for name in _REQUEST_KEYS},
        )

    def record_reply(self, attempt: Attempt, is_accepted: bool) -> None:
        """Record that Nova has accepted a request, or that its answer was lost."""
        facts = {"server": attempt.server, "request_id": attempt.request_id}
        self._record(AFTER, _MOVE, outcome=_ACCEPTED if is_accepted else "", **facts)

    def record_confirmation(self, attempt: Attempt, migration: str) -> None:
        """Record that a resize is about to be confirmed, and wait until it is on disk."""
        self._record(BEFORE, _CONFIRM, server=attempt.server, migration=migration)

    def record_end(self, attempt: Attempt, outcome: str, to: str | None, reason: str) -> None:
        """Record how a move has ended."""
        self._record(AFTER, _MOVE, server=attempt.server, outcome=outcome, to=to, reason=reason)

    def record_service(self, service: Service, body: Mapping[str, t.Any]) -> None:
        """Record how the service of the host is, before it is changed."""
        self._record(BEFORE, _SERVICE, service=d.asdict(service), body=dict(body))

    def record_restored_service(self) -> None:
        """Record that the service is as it was before the drain."""
        self._record(AFTER, _SERVICE, outcome=_RESTORED)

    def _record(self, event: str, action: str, **facts: t.Any) -> None:
        about = {"compute_endpoint": self._compute_endpoint, "host": self._host}
        header = {"format": FORMAT, "at": get_utc_now(), "event": event, "action": action}
        self._append([{**header, **about, **facts}])


class MoveHistory:
    """What the journals say about one host of one cloud."""

    def __init__(self, records: Sequence[JournalRecord]) -> None:
        self.records = records
        # The records that began the moves that are not known to be over, with their replies.
        self._open: dict[str, dict[str, t.Any]] = {}
        self._departures: dict[str, MoveTask] = {}
        # The service before the first change that was not taken back.
        self.service: Mapping[str, t.Any] | None = None
        self.changes_of_service: dict[str, t.Any] = {}
        for record in records:
            self._read(record)

    def list_attempts(self, purpose: str) -> list[Attempt]:
        """Return the moves that were requested, or were about to be, and are not over."""
        begun = [record for record in self._open.values() if record["purpose"] == purpose]
        return list(map(_build_attempt, begun))

    def pack(self) -> str:
        """Return all that is known of the host as following jobs get it, empty if it is too long.

        It has no names of servers, which everybody who may read a job could see.
        """
        nameless = [
            {**record, "name": record["server"]} if "name" in record else record
            for record in self.records
        ]
        return pack_files({"moves": nameless})

    def list_departures(self) -> list[MoveTask]:
        """Return the moves that take back the servers that were moved away."""
        return list(self._departures.values())

    def _read(self, record: JournalRecord) -> None:
        if record["action"] == _SERVICE:
            self._read_service(record)
        elif record["action"] == _MOVE and record["event"] == BEFORE:
            self._open[record["server"]] = dict(record)
        elif record["action"] == _MOVE and record["server"] in self._open:
            self._read_outcome(record, self._open[record["server"]])

    def _read_service(self, record: JournalRecord) -> None:
        if record["event"] == AFTER:
            self.service = None
            self.changes_of_service = {}
            return
        before = record["service"]
        if any(before.get(name) != value for name, value in self.changes_of_service.items()):
            # Somebody has taken an earlier change back, so a later one of that kind is not ours.
            self.service = None
            self.changes_of_service = {}
        if self.service is None:
            self.service = before
        self.changes_of_service.update(record["body"])

    def _read_outcome(self, record: JournalRecord, begun: dict[str, t.Any]) -> None:
        outcome = record["outcome"]
        if outcome not in _FINAL:
            begun["request_id"] = record.get("request_id") or ""
            begun["is_accepted"] = outcome == _ACCEPTED
            return
        del self._open[record["server"]]
        if outcome != MOVED:
            return
        if begun["purpose"] == RETURN:
            self._departures.pop(record["server"], None)
        elif record.get("to"):
            self._departures[record["server"]] = MoveTask(
                record["server"], begun["name"], record["to"], begun["source"]
            )


def _build_attempt(record: Mapping[str, t.Any]) -> Attempt:
    return Attempt(
        **{name: record[name] for name in _REQUEST_KEYS},
        known=frozenset(record["known"]),
        request_id=record.get("request_id", ""),
        is_accepted=record.get("is_accepted", False),
    )


def find_move_journals(directory: str) -> list[str]:
    """Return the paths of the journals of moves in a folder, the oldest first."""
    # The name begins with the time.
    return sorted(glob.glob(os.path.join(glob.escape(directory), "moves-*.jsonl")))


def read_history(journals: Sequence[t.Any], compute_endpoint: str, host: str) -> MoveHistory:
    """Return what journals say about a host.

    Records about other hosts and clouds are left out.
    Raises InvalidInput for a file that is not a journal of moves, and for moves of a host of that
    name that are not over, and that another cloud has, or another interface of this one.

    journals: paths, and packs of the jobs that moved the servers.
    """
    records: list[JournalRecord] = []
    others: list[JournalRecord] = []
    for journal in journals:
        for record in _read_records(journal):
            if record["host"] == host:
                is_here = hide_credentials(str(record["compute_endpoint"])) == compute_endpoint
                (records if is_here else others).append(record)
    if any(map(MoveHistory(others).list_attempts, (DRAIN, RETURN))):
        recorded = hide_credentials(str(others[-1]["compute_endpoint"]))
        raise InvalidInput(
            f"A run that did not end moved servers of {host} with Nova at {recorded}, and this "
            f"connection has Nova at {compute_endpoint}. Nothing was changed: connect with the "
            "same interface, and keep each cloud in a folder of its own."
        )
    return MoveHistory(records)


def _read_records(journal: t.Any) -> list[JournalRecord]:
    packed = read_packed(journal, "moves")
    if packed is None:
        records, name = read_journal(journal)[0], str(journal)
    else:
        records, name = (check_records(entry for moves in packed[1] for entry in moves), "The pack")
    for record in records:
        _check_record(record, name)
    return records


def _check_record(record: JournalRecord, path: str) -> None:
    """Raise InvalidInput unless a record has what its kind of record needs."""
    own_keys = _NEEDED_KEYS.get((record.get("action"), record["event"]), {"action"})
    missing = sorted({"compute_endpoint", "host", *own_keys} - record.keys())
    if missing or record["action"] not in (_MOVE, _CONFIRM, _SERVICE):
        raise InvalidInput(
            f"{path} is not a journal of moves that host_drain wrote: "
            f"a record lacks {', '.join(missing) or 'a known action'}."
        )
    # A drain moves from the host of the journal, and a return to it.
    end = record.get({DRAIN: "source", RETURN: "target"}.get(str(record.get("purpose")), "host"))
    if str(end).casefold() != str(record["host"]).casefold():
        raise InvalidInput(
            f"{path} has a record of {make_printable(str(record['host']), 100)} with a move from "
            "or to another host: it was changed since host_drain wrote it."
        )
    if record.get("how", "live") not in MIGRATION_TYPES:
        raise InvalidInput(f"{path} has a record with an unknown way ({record['how']!r}).")
