# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The complaints in the log files and journals of nova-compute, as records.

Logs are read in pieces of bounded size. This runs on hypervisors, with any Python from 3.9 on.
"""

from __future__ import annotations

import dataclasses as d
import datetime
import glob
import importlib
import io
import json
import os
import re
import socket
import stat
import subprocess
import tempfile
import typing as t
from collections.abc import Iterable, Iterator, Mapping

from ..._common.context import Context
from ..._common.errors import InvalidInput
from ..._common.times import UTC, format_time, parse_duration

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_INSTANCE = rf"Instance (?P<instance>{_UUID})"
# A dict as Python prints it, in older releases as Python 2 did. Anything else is left out, because
# nothing of a log is evaluated.
_AMOUNT = r"u?'([A-Z0-9_]{1,255})': ([0-9]{1,18})L?"
_ANY_AMOUNT = _AMOUNT.replace("(", "(?:")
_AMOUNTS = (
    r"(?:\{[^{}]{0,100}'resources': "
    rf"\{{(?P<amounts>{_ANY_AMOUNT}(?:, {_ANY_AMOUNT}){{0,40}})\}})?"
)
_TRACKER, _MANAGER = "nova.compute.resource_tracker", "nova.compute.manager"


# By kind: the logger that writes it (None for any), and its message. The sentences are the same in
# all releases from Pike on. The first three come from the periodic task of the resource tracker
# (nova/compute/resource_tracker.py, _remove_deleted_instances_allocations), the fourth from
# nova/compute/manager.py, _sync_power_states, and the fifth from nova/scheduler/client/report.py,
# _create_resource_provider.
COMPLAINT_KINDS = {
    "not_in_database": (
        _TRACKER,
        rf"{_INSTANCE} has allocations against this compute host but is not found in the database",
    ),
    "not_managed": (
        _TRACKER,
        rf"{_INSTANCE} is not being actively managed by this compute host "
        rf"but has allocations referencing this compute host: {_AMOUNTS}",
    ),
    "moved_away": (
        _TRACKER,
        rf"{_INSTANCE} has been moved to another host "
        r"(?P<other_host>[^\s()]{1,255})\([^\s()]{0,255}\)\. There are allocations remaining "
        rf"against the source host that might need to be removed: {_AMOUNTS}",
    ),
    "power_state_counts": (
        _MANAGER,
        r"While synchronizing instance power states, "
        r"found (?P<database>[0-9]{1,9}) instances in the database "
        r"and (?P<hypervisor>[0-9]{1,9}) instances on the hypervisor",
    ),
    "provider_conflict": (
        "nova.scheduler.client.report",
        r"(?:\[[^\]]{0,100}\] )?Failed to create resource provider record in placement API "
        rf"for UUID (?P<uuid>{_UUID})\. Got 409: .*"
        r"Conflicting resource provider name: (?P<name>\S{1,255}) already exists",
    ),
    # LP 1820588 (nova/compute/manager.py, _process_instance_vif_deleted_event). Nothing else names
    # the port.
    "port_deleted": (
        _MANAGER,
        rf"The bound port (?P<port>{_UUID}) is deleted in Neutron but the resource allocation "
        r"on the resource providers? [0-9a-f,-]{1,1000} (?:is|are) leaked "
        rf"until the server (?P<instance>{_UUID}) is deleted",
    ),
    # oslo.messaging raises it. Any logger may log it, at the end of a traceback or of a longer
    # sentence.
    "rpc_version_cap": (
        None,
        r"(?s:.*)Requested message version, (?P<requested>[0-9.]{1,20}) is incompatible\. +"
        r"It needs to be equal in major version and less than or equal in minor version "
        r"as the specified version cap (?P<cap>[0-9.]{0,19}[0-9])",
    ),
    # The next three keep nova-compute from starting (nova/compute/manager.py, 27.0 and newer), and
    # it logs them as any unexpected error; so does what follows (provider_tree.py, and Placement's
    # answer to what the resource tracker reports).
    "renamed_host": (
        None,
        rf"(?s:.*)My (?:compute )?node {_UUID} has (?:host|hypervisor_hostname) "
        r"'?(?P<other_host>[^'\s]{1,255})'? but (?:my host|virt driver) ",
    ),
    "lost_identity": (
        None,
        r"(?s:.*)No local node identity found, but this is not our first startup on this host",
    ),
    "unknown_to_database": (
        None,
        r"(?s:.*)My hypervisor has existing instances, but I appear to be a new service",
    ),
    "no_such_provider": (None, rf"(?s:.*)ValueError: No such provider (?P<uuid>{_UUID})"),
    "inventory_in_use": (
        None,
        r"(?s:.*)Inventory for '[^']{1,1000}' on resource provider "
        rf"'(?P<uuid>{_UUID})' in use\.",
    ),
}
# Parts of these messages, by which their lines are found fast.
_NEEDLES = (
    b" this compute host but ",
    b" has been moved to another host ",
    b"While synchronizing instance power states, found ",
    b"Conflicting resource provider name: ",
    b" is deleted in Neutron but ",
    b"Requested message version, ",
    b" Possible rename detected, ",
    b"No local node identity found, ",
    b"My hypervisor has existing instances, ",
    b"No such provider ",
    b"Inventory for '",
)

_COLOR = re.compile(r"\x1b\[[0-9;]*m")
# The time is in the beginning of a line, if it is there at all.
_TIME_WITHIN = 80
_TIME = re.compile(
    r"(20[0-9]{2}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:[.,][0-9]{1,9})?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?"
)
# What oslo.log writes before a message: time, process, level, logger, context and instance.
# DevStack leaves out the first two.
_PREFIX = re.compile(
    r"(?:[0-9T:., Z+-]*[0-9Z] )?"
    r"(?:DEBUG|INFO|AUDIT|WARNING|ERROR|CRITICAL|TRACE) (?P<logger>[\w.]+) "
    r"(?:\[[^\]]*\] )?(?:\[instance: [^\]]*\] )?"
)
# What `journalctl --output=short-unix` writes before a line.
_JOURNAL = re.compile(r"(?P<epoch>[0-9]{1,11})\.[0-9]{6} (?P<host>[^\s:]{1,255}) \S+: ")

_CHUNK_BYTES = 256 * 1024
# Of a longer line only the beginning is read.
_MAX_LINE_BYTES = 64 * 1024
# How a compressed file begins, and the module that reads it; Python has the last one from 3.14 on.
_COMPRESSIONS = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\xfd7zXZ\0": "lzma",
    b"\x28\xb5\x2f\xfd": "compression.zstd",
}
_MAX_ERROR_BYTES = 300


class _LogEntry(t.NamedTuple):
    """One entry of a log. What it does not say is None."""

    message: str
    logger: str | None
    host: str | None
    at: datetime.datetime | None


@d.dataclass
class Source:
    """A file or a unit, and what was read of it.

    bytes: unpacked. skipped: whether a file is too old to be read. error: one sentence.
    """

    name: str
    bytes: int = 0
    lines: int = 0
    skipped: bool = False
    error: str | None = None


@d.dataclass
class Complaints:
    """The complaints in the lines that were added, each kept once, and at most `limit` of them.

    host: the host of all records; None for the host in the line, or else `own_name`.
    since: older lines are left out, but not those without a time.
    zone: the time zone of the times in the log; None for that of this machine.
    """

    host: str | None
    own_name: str
    limit: int
    since: datetime.datetime | None = None
    zone: datetime.tzinfo | None = None
    truncated: bool = False
    _seen: dict[tuple[str | None, ...], dict[str, t.Any]] = d.field(
        default_factory=dict, init=False
    )

    def add(self, raw: bytes, source: str, journal: bool = False) -> None:
        """Add the complaint in a line, if there is one.

        journal: whether journalctl has written the line.
        """
        entry = _parse_line(_COLOR.sub("", raw.decode("utf-8", "replace")), self.zone, journal)
        # A line without a time may be a new one, so it counts.
        if self.since and entry.at and entry.at < self.since:
            return
        # Without a logger it is unknown where the message begins.
        find = re.match if entry.logger else re.search
        for kind, (logger, pattern) in COMPLAINT_KINDS.items():
            if entry.logger and logger not in (None, entry.logger):
                continue
            match = find(pattern, entry.message)
            if match:
                self._count(kind, match, entry, source)
                return

    def records(self) -> list[dict[str, t.Any]]:
        """Return the complaints: those logged last first, then by kind and instance."""
        records = sorted(
            self._seen.values(), key=lambda record: (record["kind"], record["instance"] or "")
        )
        # A sort keeps the order of what is equal, also in reverse.
        return sorted(records, key=lambda record: record["last_seen"] or "", reverse=True)

    def _count(self, kind: str, match: re.Match[str], entry: _LogEntry, source: str) -> None:
        host = self.host or entry.host or self.own_name
        key = (kind, host, *match.groups())
        # A log with many different complaints must not use all memory of a hypervisor.
        if key not in self._seen and len(self._seen) >= self.limit:
            self.truncated = True
            return
        facts = {"kind": kind, "host": host, **_extract_facts(match.groupdict())}
        unseen = {"count": 0, "first_seen": None, "last_seen": None, "source": source}
        record = self._seen.setdefault(key, {**facts, **unseen})
        record["count"] += 1
        if entry.at is None:
            return
        at = format_time(entry.at)
        record["first_seen"] = min(at, record["first_seen"] or at)
        if at >= (record["last_seen"] or at):
            record["last_seen"], record["source"] = at, source


def read_complaints(context: Context) -> dict[str, t.Any]:
    """Read the logs that the options name."""
    options = context.options
    if options["max_records"] < 1:
        raise InvalidInput("max_records must be 1 or more.")
    complaints = Complaints(
        options["host"],
        socket.gethostname(),
        options["max_records"],
        _parse_since(options["since"]),
        UTC if options["utc"] else None,
    )
    sources = read_files(options["paths"], complaints)
    journalctl = context.module.get_bin_path("journalctl")
    sources += [read_unit(journalctl, unit, complaints) for unit in options["units"]]
    unread = [source.error for source in sources if source.error]
    for sentence in unread:
        context.warn(sentence)
    if len(unread) == len(sources):
        names = ", ".join([*options["paths"], *options["units"]]) or "no path and no unit"
        context.warn(
            f"No log was read, because nothing can be read at {names}: check paths and units, and "
            "use become."
        )
    if complaints.truncated:
        context.warn(
            f"There are more complaints than max_records ({options['max_records']}): "
            "the others are left out."
        )
    return {
        "changed": False,
        "records": complaints.records(),
        "truncated": complaints.truncated,
        "sources": [d.asdict(source) for source in sources],
    }


def _parse_since(age: str | None) -> datetime.datetime | None:
    """Return the time from which on lines are read; None for all of them."""
    if not age:
        return None
    try:
        return datetime.datetime.now(UTC) - datetime.timedelta(seconds=parse_duration(age, "since"))
    except OverflowError:
        raise InvalidInput(f"since {age!r} is longer ago than any log.") from None


def read_files(patterns: Iterable[str], complaints: Complaints) -> list[Source]:
    """Read all files that match `patterns`, and return them as sources, the newest first.

    Files that were last written before `complaints.since` are skipped.
    """
    # Each file once, also when several patterns or a link lead to it.
    paths_by_target = {}
    for pattern in patterns:
        for path in sorted(glob.glob(pattern)):
            paths_by_target[os.path.realpath(path)] = path
    newest_first = sorted(paths_by_target.values(), key=_get_mtime, reverse=True)
    return [_read_file(path, complaints) for path in newest_first]


def read_unit(journalctl: str | None, unit: str, complaints: Complaints) -> Source:
    """Read the journal of a systemd unit, and return it as a source.

    journalctl: the path of the command; None when the host does not have it.
    """
    source = Source(unit)
    # Without --all, journalctl writes "blob data" instead of a line with colors in it.
    options = [f"--unit={unit}", "--output=short-unix", "--all", "--quiet", "--no-pager"]
    if complaints.since:
        options.append(f"--since=@{int(complaints.since.timestamp())}")
    reason = "journalctl does not exist on this host."
    if journalctl is not None:
        reason = _run_journalctl([journalctl, *options], source, complaints)
    if reason:
        source.error = f"The journal of {unit} cannot be read: {reason}"
    return source


def _run_journalctl(command: list[str], source: Source, complaints: Complaints) -> str:
    """Add the complaints in the journal. Return why it cannot be read, nothing if it can."""
    with tempfile.TemporaryFile() as errors:
        try:
            # Ansible's run_command would keep the whole journal in memory.
            with subprocess.Popen(  # pylint: disable=ansible-bad-function
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            ) as process:
                _read_stream(t.cast("t.IO[bytes]", process.stdout), source, complaints, True)
        except OSError as error:
            return f"{error.strerror}."
        errors.seek(0)
        output = errors.read(_MAX_ERROR_BYTES).decode("utf-8", "replace")
    if not process.returncode:
        return ""
    return f"journalctl ended with {process.returncode}: {' '.join(output.split())}"


def _get_mtime(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        # It is read last, where its error is reported.
        return 0.0


def _read_file(path: str, complaints: Complaints) -> Source:
    source = Source(path)
    try:
        with open(path, "rb", opener=_open_nonblocking) as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                source.error = f"{path} is not read, because it is not a file."
            elif complaints.since and state.st_mtime < complaints.since.timestamp():
                source.skipped = True
            else:
                with _unpack(file) as unpacked:
                    _read_stream(unpacked, source, complaints)
    except ImportError as error:
        source.error = f"{path} is not read, because this Python cannot unpack it ({error})."
    # The module of each compression has an error of its own.
    except Exception as error:
        extent = " to its end" if source.bytes else ""
        reason = getattr(error, "strerror", None) or error
        source.error = f"{path} cannot be read{extent}: {reason}."
    return source


def _unpack(file: io.BufferedReader) -> t.IO[bytes]:
    """Return a file as it was before it was compressed. Raises ImportError where Python cannot."""
    start = file.peek(1)
    for magic, name in _COMPRESSIONS.items():
        if start.startswith(magic):
            return t.cast("t.IO[bytes]", importlib.import_module(name).open(file))
    return file


def _open_nonblocking(path: str, flags: int) -> int:
    """Open a file, or a pipe without waiting for a process that writes to it."""
    return os.open(path, flags | os.O_NONBLOCK)


def _read_stream(
    stream: t.IO[bytes], source: Source, complaints: Complaints, journal: bool = False
) -> None:
    for piece in read_chunks(stream):
        source.bytes += len(piece)
        source.lines += piece.count(b"\n")
        # Most pieces of a log contain none, and one search in them is much faster than one a line.
        if not may_contain_complaint(piece):
            continue
        for line in piece.split(b"\n"):
            if may_contain_complaint(line):
                complaints.add(line[:_MAX_LINE_BYTES], source.name, journal)


def may_contain_complaint(text: bytes) -> bool:
    """Return whether there may be a complaint in one or more lines."""
    return any(needle in text for needle in _NEEDLES)


def read_chunks(stream: t.IO[bytes]) -> Iterator[bytes]:
    """Yield the contents of `stream` in pieces of whole lines.

    Of a line that is longer than a piece, parts may be missing, but never its beginning.
    """
    rest = b""
    while piece := stream.read(_CHUNK_BYTES):
        head, newline, tail = piece.rpartition(b"\n")
        if newline:
            yield rest + head + newline
            rest = tail
        else:
            rest = (rest + piece)[:_CHUNK_BYTES]
    if rest:
        yield rest


def _parse_line(text: str, zone: datetime.tzinfo | None, journal: bool) -> _LogEntry:
    host, at = None, None
    prefix = _JOURNAL.match(text) if journal else None
    if prefix:
        host, text = prefix["host"], text[prefix.end() :]
        at = datetime.datetime.fromtimestamp(int(prefix["epoch"]), UTC)
    entry = _parse_json_line(text) if text.startswith("{") else None
    if entry:
        return entry._replace(host=entry.host or host, at=entry.at or at)
    at = at or _parse_time(text, zone)
    prefix = _PREFIX.match(text)
    if prefix:
        return _LogEntry(text[prefix.end() :], prefix["logger"], host, at)
    return _LogEntry(text, None, host, at)


def _parse_json_line(text: str) -> _LogEntry | None:
    """Return an entry as oslo.log's JSON formatter writes it; None for any other line."""
    try:
        entry = json.loads(text)
        texts = [entry["message"], entry["name"]]
        texts += [entry.get("hostname") or "", entry.get("traceback") or ""]
        created = entry.get("created")
        at = None if created is None else datetime.datetime.fromtimestamp(created, UTC)
        # JSON allows halves of surrogate pairs, and UTF-8 does not.
        message, logger, host, trace = [text.encode("utf-8", "replace").decode() for text in texts]
    except Exception:
        # A log can have anything in it, and what is no such entry is text.
        return None
    return _LogEntry(f"{message}\n{trace}", logger, host[:255] or None, at)


def _parse_time(text: str, zone: datetime.tzinfo | None) -> datetime.datetime | None:
    match = _TIME.search(text, 0, _TIME_WITHIN)
    if match is None:
        return None
    day, clock, offset = match.groups()
    try:
        moment = datetime.datetime.fromisoformat(f"{day} {clock}").replace(tzinfo=zone)
        if offset:
            moment = datetime.datetime.strptime(f"{day} {clock}{offset}", "%Y-%m-%d %H:%M:%S%z")
        return moment.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _extract_facts(groups: Mapping[str, str | None]) -> dict[str, t.Any]:
    """Return what a message says, by the names of its groups; None for what it does not say."""
    other_host, amounts = groups.get("other_host"), groups.get("amounts")
    return {
        "instance": groups.get("instance"),
        "amounts": {name: int(text) for name, text in re.findall(_AMOUNT, amounts or "")} or None,
        # Nova writes None for a server without a host, such as one that is shelved and offloaded.
        "other_host": None if other_host == "None" else other_host,
        "counts": _collect_facts(groups, int, "database", "hypervisor"),
        "versions": _collect_facts(groups, str, "requested", "cap"),
        "provider": _collect_facts(groups, str, "uuid", "name"),
        "port": groups.get("port"),
    }


def _collect_facts(
    groups: Mapping[str, t.Any], convert: type[int | str], *names: str
) -> dict[str, t.Any] | None:
    if names[0] not in groups:
        return None
    return {name: convert(text) if (text := groups.get(name)) else None for name in names}
