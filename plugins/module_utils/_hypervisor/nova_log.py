# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""The complaints that nova-compute writes into its log, as records. This runs on hypervisors: any Python from 3.9 on reads it."""

from __future__ import annotations

import dataclasses as d
import datetime
import json
import re
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.times import UTC, format_time

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_INSTANCE = rf"Instance (?P<instance>{_UUID})"
# A dict as Python prints it, in older releases as Python 2 did; what is not in this form is left out, not evaluated.
_AMOUNTS = r"(?:\{[^{}]{0,100}'resources': \{(?P<amounts>[^{}]{0,1000})\})?"
_AMOUNT = re.compile(r"u?'([A-Z0-9_]{1,255})': ([0-9]{1,18})L?")


@d.dataclass(frozen=True)
class ComplaintKind:
    """A kind of complaint: who logs it, a part of it by which to find its lines fast, and the whole of it."""

    name: str
    logger: str | None
    needle: str
    message_pattern: re.Pattern[str]


# The sentences are the same in all releases from Pike on.
COMPLAINT_KINDS = (
    ComplaintKind(
        "not_in_database",
        "nova.compute.resource_tracker",
        " has allocations against this compute host",
        re.compile(
            rf"{_INSTANCE} has allocations against this compute host but is not found in the database"
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
            rf"{_INSTANCE} has been moved to another host (?P<other_host>[^\s()]{{1,255}})\([^\s()]{{0,255}}\)\. "
            rf"There are allocations remaining against the source host that might need to be removed: {_AMOUNTS}"
        ),
    ),
    ComplaintKind(
        "power_state_counts",
        "nova.compute.manager",
        "While synchronizing instance power states, found ",
        re.compile(
            r"While synchronizing instance power states, found (?P<database>[0-9]{1,9}) instances in the database "
            r"and (?P<hypervisor>[0-9]{1,9}) instances on the hypervisor"
        ),
    ),
    ComplaintKind(
        "provider_conflict",
        "nova.scheduler.client.report",
        "Conflicting resource provider name: ",
        re.compile(
            rf"(?:\[[^\]]{{0,100}}\] )?Failed to create resource provider record in placement API for UUID (?P<provider>{_UUID})\. "
            r"Got 409: .*Conflicting resource provider name: (?P<name>\S{1,255}) already exists"
        ),
    ),
    # Raised in oslo.messaging, and logged by whoever caught it, at the end of a traceback or of a longer sentence.
    ComplaintKind(
        "rpc_version_cap",
        None,
        "Requested message version, ",
        re.compile(
            r"(?s:.*)Requested message version, (?P<requested>[0-9.]{1,20}) is incompatible\. +It needs to be equal in major version and "
            r"less than or equal in minor version as the specified version cap (?P<cap>[0-9.]{0,19}[0-9])"
        ),
    ),
)
_NEEDLES = tuple(kind.needle.encode() for kind in COMPLAINT_KINDS)

_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_TIME = re.compile(
    r"(20[0-9]{2}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:[.,][0-9]{1,9})?(?:(Z)|([+-][0-9]{2}):?([0-9]{2}))?"
)
_TIME_WITHIN = 80
# What oslo.log puts before a message: time, process, level, logger, context and instance. DevStack leaves out the first two.
_PREFIX = re.compile(
    r"(?:[0-9T:., Z+-]*[0-9Z] )?(?:DEBUG|INFO|AUDIT|WARNING|ERROR|CRITICAL|TRACE) (?P<logger>[\w.]+) "
    r"(?:\[[^\]]*\] )?(?:\[instance: [^\]]*\] )?"
)
# What `journalctl --output=short-unix` puts before a line.
_JOURNAL = re.compile(r"(?P<epoch>[0-9]{1,11})\.[0-9]{6} (?P<host>[^\s:]{1,255}) \S+: ")


def may_contain_complaint(text: bytes) -> bool:
    """Tell whether there may be a complaint in these lines: all of them together are told faster than each by itself."""
    return any(needle in text for needle in _NEEDLES)


@d.dataclass
class _ComplaintRecord:
    """How often, when and where one complaint was read."""

    kind: str
    host: str
    facts: dict[str, t.Any]
    source: str
    count: int = 0
    first: datetime.datetime | None = None
    last: datetime.datetime | None = None

    def add_occurrence(self, at: datetime.datetime | None, source: str) -> None:
        self.count += 1
        if at is None:
            return
        if self.first is None or at < self.first:
            self.first = at
        if self.last is None or at >= self.last:
            self.last, self.source = at, source

    def as_dict(self) -> dict[str, t.Any]:
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
    """One entry of a log: its message, and who logged it, where and when, as far as the entry tells."""

    message: str
    logger: str | None
    host: str | None
    at: datetime.datetime | None

    @property
    def has_logger(self) -> bool:
        """Tell whether the message begins where it was taken to begin."""
        return self.logger is not None


class Complaints:
    """The complaints in the lines that were added, each kept once, and no more of them than `limit`."""

    def __init__(
        self,
        host: str | None,
        own_name: str,
        limit: int,
        since: datetime.datetime | None = None,
        zone: datetime.tzinfo | None = None,
    ) -> None:
        """
        host: the name to give to all records; without it that in the line, else `own_name`.
        since: older lines are left out; those that tell no time are not.
        zone: that of the times in the log, None for that of this machine.
        """
        self._host = host
        self._own_name = own_name
        self._limit = limit
        self._since = since
        self._zone = zone
        self._seen: dict[tuple[str | None, ...], _ComplaintRecord] = {}
        self.truncated = False

    def add(self, raw: bytes, source: str, journal: bool = False) -> None:
        """Take the complaint from a line, if there is one. journal: whether the line is journalctl's."""
        line = self._parse_line(_COLOR.sub("", raw.decode("utf-8", "replace")), journal)
        if self._since and line.at and line.at < self._since:
            return
        for kind in COMPLAINT_KINDS:
            if line.logger is not None and kind.logger not in (None, line.logger):
                continue
            match = (
                kind.message_pattern.match(line.message)
                if line.has_logger
                else kind.message_pattern.search(line.message)
            )
            if match:
                self._add(kind, match, line, source)
                return

    def records(self) -> list[dict[str, t.Any]]:
        """Return the complaints, those seen last before others."""
        records = sorted(
            (seen.as_dict() for seen in self._seen.values()),
            key=lambda row: (row["kind"], row["instance"] or ""),
        )
        return sorted(records, key=lambda row: row["last_seen"] or "", reverse=True)

    def _add(self, kind: ComplaintKind, match: re.Match[str], line: _LogEntry, source: str) -> None:
        host = self._host or line.host or self._own_name
        key = (kind.name, host, *match.groups())
        if key not in self._seen:
            if len(self._seen) >= self._limit:
                self.truncated = True
                return
            self._seen[key] = _ComplaintRecord(
                kind.name, host, _extract_facts(match.groupdict()), source
            )
        self._seen[key].add_occurrence(line.at, source)

    def _parse_line(self, text: str, journal: bool) -> _LogEntry:
        host, at = None, None
        journaled = _JOURNAL.match(text) if journal else None
        if journaled:
            host, at = (
                journaled["host"],
                datetime.datetime.fromtimestamp(int(journaled["epoch"]), UTC),
            )
            text = text[journaled.end() :]
        if text.startswith("{"):
            entry = _parse_json_line(text)
            if entry is not None:
                return d.replace(entry, host=entry.host or host, at=entry.at or at)
        prefix = _PREFIX.match(text)
        at = at or _parse_time(_TIME.search(text, 0, _TIME_WITHIN), self._zone)
        return _LogEntry(
            text[prefix.end() :] if prefix else text, prefix["logger"] if prefix else None, host, at
        )


def _parse_json_line(text: str) -> _LogEntry | None:
    """Return an entry as oslo.log's JSON formatter writes it; None where this is none."""
    try:
        entry = json.loads(text)
        message, logger, host, created = (
            entry["message"],
            entry["name"],
            entry.get("hostname"),
            entry.get("created"),
        )
        at = None if created is None else datetime.datetime.fromtimestamp(created, UTC)
        trace = entry.get("traceback") or ""
    except (ValueError, TypeError, LookupError, OverflowError, OSError, RecursionError):
        return None
    if not all(isinstance(part, str) for part in (message, logger, host or "", trace)):
        return None
    return _LogEntry(
        _replace_surrogates(f"{message}\n{trace}"),
        logger,
        _replace_surrogates(host or "")[:255] or None,
        at,
    )


def _replace_surrogates(text: str) -> str:
    """Return a text without the halves of surrogate pairs, which JSON may hold and UTF-8 may not."""
    return text.encode("utf-8", "replace").decode()


def _parse_time(
    match: re.Match[str] | None, zone: datetime.tzinfo | None
) -> datetime.datetime | None:
    if match is None:
        return None
    day, clock, utc, hours, minutes = match.groups()
    try:
        moment = datetime.datetime.fromisoformat(
            f"{day}T{clock}{'+00:00' if utc else f'{hours}:{minutes}' if hours else ''}"
        )
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _extract_facts(groups: Mapping[str, str | None]) -> dict[str, t.Any]:
    """Return what a sentence says, by the names of its groups; null where it says nothing of the kind."""
    name, other = groups.get("name"), groups.get("other_host")
    database, hypervisor = groups.get("database"), groups.get("hypervisor")
    requested, cap = groups.get("requested"), groups.get("cap")
    return {
        "instance": groups.get("instance"),
        "amounts": _parse_amounts(groups.get("amounts")),
        # Nova writes None where a server is on no host, as one that is shelved and offloaded.
        "other_host": None if other == "None" else other,
        "counts": {"database": int(database), "hypervisor": int(hypervisor)}
        if database and hypervisor
        else None,
        "versions": {"requested": requested, "cap": cap} if requested and cap else None,
        "provider": {"uuid": groups["provider"], "name": name} if name else None,
    }


def _parse_amounts(text: str | None) -> dict[str, int] | None:
    matches = [_AMOUNT.fullmatch(part) for part in text.split(", ")] if text else []
    found = {match[1]: int(match[2]) for match in matches if match}
    return found if found and None not in matches else None
