# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The complaints that nova-compute writes into its log, as records.

This runs on hypervisors, with any Python from 3.9 on.
"""

from __future__ import annotations

import dataclasses as d
import datetime
import json
import re
import typing as t
from collections.abc import Mapping

from ..._common.times import UTC, format_time

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_INSTANCE = rf"Instance (?P<instance>{_UUID})"
# A dict as Python prints it, in older releases as Python 2 did. Anything else is left out, because
# nothing of a log is evaluated.
_AMOUNTS = r"(?:\{[^{}]{0,100}'resources': \{(?P<amounts>[^{}]{0,1000})\})?"
_AMOUNT = re.compile(r"u?'([A-Z0-9_]{1,255})': ([0-9]{1,18})L?")


@d.dataclass(frozen=True)
class ComplaintKind:
    """A kind of complaint.

    logger: the logger that writes it; None when there are several.
    needle: a part of the message, by which its lines are found fast.
    message_pattern: the whole message.
    """

    name: str
    logger: str | None
    needle: str
    message_pattern: re.Pattern[str]


# The sentences are the same in all releases from Pike on. The first three come from the periodic
# task of the resource tracker (nova/compute/resource_tracker.py,
# _remove_deleted_instances_allocations), the fourth from nova/compute/manager.py,
# _sync_power_states, and the fifth from nova/scheduler/client/report.py, _create_resource_provider.
COMPLAINT_KINDS = (
    ComplaintKind(
        "not_in_database",
        "nova.compute.resource_tracker",
        " has allocations against this compute host",
        re.compile(
            rf"{_INSTANCE} has allocations against this compute host "
            r"but is not found in the database"
        ),
    ),
    ComplaintKind(
        "not_managed",
        "nova.compute.resource_tracker",
        " is not being actively managed by this compute host",
        re.compile(
            rf"{_INSTANCE} is not being actively managed by this compute host "
            rf"but has allocations referencing this compute host: {_AMOUNTS}"
        ),
    ),
    ComplaintKind(
        "moved_away",
        "nova.compute.resource_tracker",
        " has been moved to another host ",
        re.compile(
            rf"{_INSTANCE} has been moved to another host "
            r"(?P<other_host>[^\s()]{1,255})\([^\s()]{0,255}\)\. "
            r"There are allocations remaining against the source host "
            rf"that might need to be removed: {_AMOUNTS}"
        ),
    ),
    ComplaintKind(
        "power_state_counts",
        "nova.compute.manager",
        "While synchronizing instance power states, found ",
        re.compile(
            r"While synchronizing instance power states, "
            r"found (?P<database>[0-9]{1,9}) instances in the database "
            r"and (?P<hypervisor>[0-9]{1,9}) instances on the hypervisor"
        ),
    ),
    ComplaintKind(
        "provider_conflict",
        "nova.scheduler.client.report",
        "Conflicting resource provider name: ",
        re.compile(
            r"(?:\[[^\]]{0,100}\] )?"
            r"Failed to create resource provider record in placement API "
            rf"for UUID (?P<provider>{_UUID})\. "
            r"Got 409: .*Conflicting resource provider name: (?P<name>\S{1,255}) already exists"
        ),
    ),
    # LP 1820588 (nova/compute/manager.py, _process_instance_vif_deleted_event). Nothing else names
    # the port.
    ComplaintKind(
        "port_deleted",
        "nova.compute.manager",
        " is deleted in Neutron but the resource allocation on the resource provider",
        re.compile(
            rf"The bound port (?P<port>{_UUID}) is deleted in Neutron but the resource allocation "
            r"on the resource providers? [0-9a-f,-]{1,1000} (?:is|are) leaked "
            rf"until the server (?P<instance>{_UUID}) is deleted"
        ),
    ),
    # oslo.messaging raises it. Any logger may log it, at the end of a traceback or of a longer
    # sentence.
    ComplaintKind(
        "rpc_version_cap",
        None,
        "Requested message version, ",
        re.compile(
            r"(?s:.*)Requested message version, (?P<requested>[0-9.]{1,20}) is incompatible\. +"
            r"It needs to be equal in major version and "
            r"less than or equal in minor version "
            r"as the specified version cap (?P<cap>[0-9.]{0,19}[0-9])"
        ),
    ),
)
_NEEDLES = tuple(kind.needle.encode() for kind in COMPLAINT_KINDS)

_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_TIME = re.compile(
    r"(20[0-9]{2}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:[.,][0-9]{1,9})?"
    r"(?:(Z)|([+-][0-9]{2}):?([0-9]{2}))?"
)
# The time is in the beginning of a line, if it is there at all.
_TIME_WITHIN = 80
# What oslo.log writes before a message: time, process, level, logger, context and instance.
# DevStack leaves out the first two.
_PREFIX = re.compile(
    r"(?:[0-9T:., Z+-]*[0-9Z] )?"
    r"(?:DEBUG|INFO|AUDIT|WARNING|ERROR|CRITICAL|TRACE) (?P<logger>[\w.]+) "
    r"(?:\[[^\]]*\] )?(?:\[instance: [^\]]*\] )?"
)
# What `journalctl --output=short-unix` writes before a line.
_JOURNAL = re.compile(r"(?P<epoch>[0-9]{1,11})\.[0-9]{6} (?P<host>[^\s:]{1,255}) \S+: ")


def may_contain_complaint(text: bytes) -> bool:
    """Return whether there may be a complaint in these lines.

    It is faster to ask for many lines together than for each by itself.
    """
    return any(needle in text for needle in _NEEDLES)


@d.dataclass
class _ComplaintRecord:
    """One complaint: how often, when and where it was logged."""

    kind: str
    host: str
    facts: dict[str, t.Any]
    source: str
    count: int = 0
    first: datetime.datetime | None = None
    last: datetime.datetime | None = None

    def add_occurrence(self, at: datetime.datetime | None, source: str) -> None:
        """Count one more line. at: None when the line has no time."""
        self.count += 1
        if at is None:
            return
        if self.first is None or at < self.first:
            self.first = at
        if self.last is None or at >= self.last:
            self.last, self.source = at, source

    def as_dict(self) -> dict[str, t.Any]:
        """Return the record as `nova_log_info` returns it."""
        return {
            "kind": self.kind,
            "host": self.host,
            **self.facts,
            "count": self.count,
            "first_seen": self.first and format_time(self.first),
            "last_seen": self.last and format_time(self.last),
            "source": self.source,
        }


@d.dataclass(frozen=True)
class _LogEntry:
    """One entry of a log.

    logger, host, at: None where the entry does not say.
    """

    message: str
    logger: str | None
    host: str | None
    at: datetime.datetime | None


class Complaints:
    """The complaints in the lines that were added, each kept once, and at most `limit` of them."""

    def __init__(
        self,
        host: str | None,
        own_name: str,
        limit: int,
        since: datetime.datetime | None = None,
        zone: datetime.tzinfo | None = None,
    ) -> None:
        """
        host: the host of all records; None for the host in the line, or else `own_name`.
        since: older lines are left out, but not those without a time.
        zone: the time zone of the times in the log; None for that of this machine.
        """
        self._host = host
        self._own_name = own_name
        self._limit = limit
        self._since = since
        self._zone = zone
        self._seen: dict[tuple[str | None, ...], _ComplaintRecord] = {}
        self.truncated = False

    def add(self, raw: bytes, source: str, journal: bool = False) -> None:
        """Add the complaint in a line, if there is one.

        journal: whether journalctl has written the line.
        """
        text = _COLOR.sub("", raw.decode("utf-8", "replace"))
        line = self._parse_line(text, journal)
        # A line without a time may be a new one, so it counts.
        if self._since and line.at and line.at < self._since:
            return
        for kind in COMPLAINT_KINDS:
            match = _match_kind(kind, line)
            if match:
                self._add(kind, match, line, source)
                return

    def records(self) -> list[dict[str, t.Any]]:
        """Return the complaints: those logged last first, then by kind and instance."""
        records = [record.as_dict() for record in self._seen.values()]
        records.sort(key=lambda row: (row["kind"], row["instance"] or ""))
        # A sort keeps the order of what is equal, also in reverse.
        records.sort(key=lambda row: row["last_seen"] or "", reverse=True)
        return records

    def _add(self, kind: ComplaintKind, match: re.Match[str], line: _LogEntry, source: str) -> None:
        host = self._host or line.host or self._own_name
        key = (kind.name, host, *match.groups())
        if key not in self._seen:
            # A log with many different complaints must not use all memory of a hypervisor.
            if len(self._seen) >= self._limit:
                self.truncated = True
                return
            self._seen[key] = _ComplaintRecord(
                kind.name, host, _extract_facts(match.groupdict()), source
            )
        self._seen[key].add_occurrence(line.at, source)

    def _parse_line(self, text: str, journal: bool) -> _LogEntry:
        host, at = None, None
        if journal:
            host, at, text = _split_journal_prefix(text)
        if text.startswith("{"):
            entry = _parse_json_line(text)
            if entry is not None:
                return d.replace(entry, host=entry.host or host, at=entry.at or at)
        at = at or _parse_time(_TIME.search(text, 0, _TIME_WITHIN), self._zone)
        prefix = _PREFIX.match(text)
        if prefix is None:
            return _LogEntry(text, None, host, at)
        return _LogEntry(text[prefix.end() :], prefix["logger"], host, at)


def _match_kind(kind: ComplaintKind, line: _LogEntry) -> re.Match[str] | None:
    # Without a logger it is unknown where the message begins, so it may be anywhere in the line.
    if line.logger is None:
        return kind.message_pattern.search(line.message)
    if kind.logger not in (None, line.logger):
        return None
    # Where the message begins is known: it must begin with the pattern.
    return kind.message_pattern.match(line.message)


def _split_journal_prefix(text: str) -> tuple[str | None, datetime.datetime | None, str]:
    """Return the host and the time of a line of journalctl, and the rest of the line."""
    prefix = _JOURNAL.match(text)
    if prefix is None:
        return None, None, text
    at = datetime.datetime.fromtimestamp(int(prefix["epoch"]), UTC)
    return prefix["host"], at, text[prefix.end() :]


def _parse_json_line(text: str) -> _LogEntry | None:
    """Return an entry as oslo.log's JSON formatter writes it; None for any other line."""
    try:
        entry = json.loads(text)
        message = entry["message"]
        logger = entry["name"]
        host = entry.get("hostname") or ""
        trace = entry.get("traceback") or ""
        created = entry.get("created")
        at = None if created is None else datetime.datetime.fromtimestamp(created, UTC)
    except (ValueError, TypeError, LookupError, OverflowError, OSError, RecursionError):
        return None
    if not all(isinstance(part, str) for part in (message, logger, host, trace)):
        return None
    return _LogEntry(
        message=_replace_surrogates(f"{message}\n{trace}"),
        logger=logger,
        host=_replace_surrogates(host)[:255] or None,
        at=at,
    )


def _replace_surrogates(text: str) -> str:
    """Return a text without halves of surrogate pairs, which JSON allows and UTF-8 does not."""
    return text.encode("utf-8", "replace").decode()


def _parse_time(
    match: re.Match[str] | None, zone: datetime.tzinfo | None
) -> datetime.datetime | None:
    if match is None:
        return None
    day, clock, utc, hours, minutes = match.groups()
    offset = ""
    if utc:
        # Before Python 3.11, fromisoformat refuses a Z.
        offset = "+00:00"
    elif hours:
        offset = f"{hours}:{minutes}"
    try:
        moment = datetime.datetime.fromisoformat(f"{day}T{clock}{offset}")
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _extract_facts(groups: Mapping[str, str | None]) -> dict[str, t.Any]:
    """Return what a message says, by the names of its groups; None for what it does not say."""
    facts: dict[str, t.Any] = {
        "instance": groups.get("instance"),
        "amounts": _parse_amounts(groups.get("amounts")),
        "other_host": groups.get("other_host"),
        "counts": None,
        "versions": None,
        "provider": None,
        "port": groups.get("port"),
    }
    # Nova writes None for a server without a host, such as one that is shelved and offloaded.
    if facts["other_host"] == "None":
        facts["other_host"] = None
    database, hypervisor = groups.get("database"), groups.get("hypervisor")
    if database and hypervisor:
        facts["counts"] = {"database": int(database), "hypervisor": int(hypervisor)}
    requested, cap = groups.get("requested"), groups.get("cap")
    if requested and cap:
        facts["versions"] = {"requested": requested, "cap": cap}
    name = groups.get("name")
    if name:
        facts["provider"] = {"uuid": groups["provider"], "name": name}
    return facts


def _parse_amounts(text: str | None) -> dict[str, int] | None:
    """Return the amounts by resource class; None when any part of `text` is not an amount."""
    if not text:
        return None
    amounts = {}
    for part in text.split(", "):
        match = _AMOUNT.fullmatch(part)
        if match is None:
            return None
        amounts[match[1]] = int(match[2])
    return amounts
