# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The log files and journals of nova-compute, read in pieces of bounded size.

This runs on hypervisors, with any Python from 3.9 on.
"""

from __future__ import annotations

import dataclasses as d
import glob
import gzip
import os
import stat
import subprocess
import tempfile
import typing as t
import zlib
from collections.abc import Iterable, Iterator

from .nova_log import Complaints, may_contain_complaint

if t.TYPE_CHECKING:  # pragma: no cover
    import datetime


_CHUNK_BYTES = 256 * 1024
# Of a longer line only the beginning is read.
_MAX_LINE_BYTES = 64 * 1024
_GZIP_MAGIC = b"\x1f\x8b"
_MAX_ERROR_BYTES = 300


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


def read_files(
    patterns: Iterable[str], complaints: Complaints, since: datetime.datetime | None
) -> list[Source]:
    """Read all files that match `patterns`, and return them as sources, the newest first.

    Files that were last written before `since` are skipped.
    """
    # Each file once, also when several patterns or a link lead to it.
    paths_by_target = {}
    for pattern in patterns:
        for path in sorted(glob.glob(pattern)):
            paths_by_target[os.path.realpath(path)] = path
    newest_first = sorted(paths_by_target.values(), key=_get_mtime, reverse=True)
    return [_read_file(path, complaints, since) for path in newest_first]


def read_unit(
    journalctl: str | None, unit: str, complaints: Complaints, since: datetime.datetime | None
) -> Source:
    """Read the journal of a systemd unit, and return it as a source.

    journalctl: the path of the command; None when the host does not have it.
    """
    source = Source(unit)
    if journalctl is None:
        source.error = (
            f"The journal of {unit} cannot be read: journalctl does not exist on this host."
        )
        return source
    # Without --all, journalctl writes "blob data" instead of a line with colors in it.
    command = [journalctl, f"--unit={unit}", "--output=short-unix", "--all"]
    command += ["--quiet", "--no-pager"]
    if since:
        command.append(f"--since=@{int(since.timestamp())}")
    try:
        status, complaint = _run_journalctl(command, source, complaints)
    except OSError as error:
        source.error = f"The journal of {unit} cannot be read: {error.strerror}."
        return source
    if status:
        source.error = (
            f"The journal of {unit} cannot be read: journalctl ended with {status}: {complaint}"
        )
    return source


def _run_journalctl(command: list[str], source: Source, complaints: Complaints) -> tuple[int, str]:
    """Add the complaints in the journal. Return the exit status and the errors of journalctl."""
    with tempfile.TemporaryFile() as errors:
        # Ansible's run_command would keep the whole journal in memory.
        with subprocess.Popen(  # pylint: disable=ansible-bad-function
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
        ) as process:
            stream = t.cast("t.IO[bytes]", process.stdout)
            _feed_complaints(stream, source, complaints, journal=True)
        errors.seek(0)
        output = errors.read(_MAX_ERROR_BYTES).decode("utf-8", "replace")
    return process.returncode, " ".join(output.split())


def read_chunks(stream: t.IO[bytes]) -> Iterator[bytes]:
    """Yield the contents of `stream` in pieces of whole lines.

    Of a line that is too long, the piece has only the beginning.
    """
    # The line that the last chunk has begun, and whether its end is dropped.
    rest, cut = b"", False
    while piece := stream.read(_CHUNK_BYTES):
        if cut:
            end = piece.find(b"\n")
            if end < 0:
                continue
            piece, cut = piece[end:], False
        head, newline, tail = piece.rpartition(b"\n")
        if newline:
            yield rest + head + newline
            rest = tail
        else:
            rest += piece
        if len(rest) > _MAX_LINE_BYTES:
            rest, cut = rest[:_MAX_LINE_BYTES], True
    if rest:
        yield rest


def _read_file(path: str, complaints: Complaints, since: datetime.datetime | None) -> Source:
    source = Source(path)
    try:
        with open(path, "rb", opener=_open_nonblocking) as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                source.error = f"{path} is not read, because it is not a file."
            elif since and state.st_mtime < since.timestamp():
                source.skipped = True
            elif file.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC):
                with gzip.GzipFile(fileobj=file) as unpacked:
                    _feed_complaints(t.cast("t.IO[bytes]", unpacked), source, complaints)
            else:
                _feed_complaints(file, source, complaints)
    except (OSError, EOFError, zlib.error) as error:
        extent = ""
        if source.bytes:
            extent = " to its end"
        reason = getattr(error, "strerror", None) or error
        source.error = f"{path} cannot be read{extent}: {reason}."
    return source


def _open_nonblocking(path: str, flags: int) -> int:
    """Open a file, or a pipe without waiting for a process that writes to it."""
    return os.open(path, flags | os.O_NONBLOCK)


def _feed_complaints(
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


def _get_mtime(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        # It is read last, where its error is reported.
        return 0.0
