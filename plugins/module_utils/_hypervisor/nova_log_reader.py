# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Where nova-compute's log lies, read in pieces of bounded size. This runs on hypervisors: any Python from 3.9 on reads it."""

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

from ansible_collections.osops.placement.plugins.module_utils._hypervisor.nova_log import (
    may_contain_complaint,
)

if t.TYPE_CHECKING:  # pragma: no cover
    import datetime
    from collections.abc import Iterable, Iterator

    from ansible_collections.osops.placement.plugins.module_utils._hypervisor.nova_log import (
        Complaints,
    )

_CHUNK_BYTES = 256 * 1024
# Of a longer line only its beginning is looked at.
_MAX_LINE_BYTES = 64 * 1024
_GZIP_MAGIC = b"\x1f\x8b"
_MAX_ERROR_BYTES = 300


@d.dataclass
class Source:
    """A file or a unit, and what was read of it."""

    name: str
    bytes: int = 0
    lines: int = 0
    skipped: bool = False
    error: str | None = None


def read_files(
    patterns: Iterable[str], complaints: Complaints, since: datetime.datetime | None
) -> list[Source]:
    """Read all files that match, the newest first, but for those last written before `since`."""
    paths = {
        os.path.realpath(path): path for pattern in patterns for path in sorted(glob.glob(pattern))
    }
    return [
        _read_file(path, complaints, since)
        for path in sorted(paths.values(), key=_get_mtime, reverse=True)
    ]


def read_unit(
    journalctl: str | None, unit: str, complaints: Complaints, since: datetime.datetime | None
) -> Source:
    """Read what journald has of a systemd unit."""
    source = Source(unit)
    if journalctl is None:
        source.error = f"The journal of {unit} cannot be read: there is no journalctl."
        return source
    # Without --all, journalctl writes "blob data" instead of a line with colors in it.
    command = [
        journalctl,
        f"--unit={unit}",
        "--output=short-unix",
        "--all",
        "--quiet",
        "--no-pager",
    ]
    command += [f"--since=@{int(since.timestamp())}"] if since else []
    try:
        with tempfile.TemporaryFile() as errors:
            # Ansible's run_command would keep the whole journal in memory.
            with subprocess.Popen(  # pylint: disable=ansible-bad-function
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            ) as process:
                _feed_complaints(
                    t.cast("t.IO[bytes]", process.stdout), source, complaints, journal=True
                )
            errors.seek(0)
            told = " ".join(errors.read(_MAX_ERROR_BYTES).decode("utf-8", "replace").split())
        if process.returncode:
            source.error = f"The journal of {unit} cannot be read: journalctl ended with {process.returncode}: {told}"
    except OSError as error:
        source.error = f"The journal of {unit} cannot be read: {error.strerror}."
    return source


def read_chunks(stream: t.IO[bytes]) -> Iterator[bytes]:
    """Yield what `stream` holds in pieces of whole lines, of a line that is too long only its beginning."""
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
                source.error = f"{path} is not read: it is no file."
            elif since and state.st_mtime < since.timestamp():
                source.skipped = True
            elif file.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC):
                with gzip.GzipFile(fileobj=file) as unpacked:
                    _feed_complaints(t.cast("t.IO[bytes]", unpacked), source, complaints)
            else:
                _feed_complaints(file, source, complaints)
    except (OSError, EOFError, zlib.error) as error:
        source.error = f"{path} cannot be read{' to its end' if source.bytes else ''}: {getattr(error, 'strerror', None) or error}."
    return source


def _open_nonblocking(path: str, flags: int) -> int:
    """Open a file, or a pipe without waiting for whoever writes to it."""
    return os.open(path, flags | os.O_NONBLOCK)


def _feed_complaints(
    stream: t.IO[bytes], source: Source, complaints: Complaints, journal: bool = False
) -> None:
    for piece in read_chunks(stream):
        source.bytes += len(piece)
        source.lines += piece.count(b"\n")
        if may_contain_complaint(piece):
            for line in piece.split(b"\n"):
                if may_contain_complaint(line):
                    complaints.add(line[:_MAX_LINE_BYTES], source.name, journal)


def _get_mtime(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
