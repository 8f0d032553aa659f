# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Logs of any size, rotated, compressed, truncated, or unreadable."""

from __future__ import annotations

import datetime
import gzip
import io
import itertools
import os
import tracemalloc
import typing as t
from pathlib import Path

import pytest

from ansible_collections.osops.placement.plugins.module_utils._common.times import UTC
from ansible_collections.osops.placement.plugins.module_utils._hypervisors.on_host.nova_log import (
    Complaints,
)
from ansible_collections.osops.placement.plugins.module_utils._hypervisors.on_host.nova_log_reader import (  # noqa: E501
    Source,
    read_chunks,
    read_files,
    read_unit,
)

U = "b32e5792-427c-43b1-83dc-2d3e3c8d74c4"
MISSING = (
    f"Instance {U} has allocations against this compute host but is not found in the database."
)
NOISE = (
    "2024-10-02 12:07:18.800 7 DEBUG nova.virt.libvirt.driver [None req-1 - - - - - -] Checking "
    "nothing in particular\n"
)
MEGABYTE = 1 << 20


def line(day: int, message: str = MISSING) -> str:
    return (
        f"2024-10-{day:02} 12:07:18.800 7 INFO nova.compute.resource_tracker [None req-1 - - - - - "
        f"-] {message}\n"
    )


def written(path: Path, text: str, day: int = 9) -> Path:
    """Write a log that was last changed on that day."""
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    moment = datetime.datetime(2024, 10, day, 13, tzinfo=UTC).timestamp()
    os.utime(path, (moment, moment))
    return path


def read(
    *patterns: object, since: datetime.datetime | None = None, limit: int = 100
) -> tuple[Complaints, list[Source]]:
    complaints = Complaints(None, "compute-17", limit, since, UTC)
    return complaints, read_files(map(str, patterns), complaints, since)


class Endless(io.RawIOBase):
    """A stream that is generated while it is read.

    `first`, and then `again` until `size` bytes were read.
    """

    def __init__(self, size: int, again: bytes, first: bytes = b"", last: bytes = b"") -> None:
        count = (size - len(first) - len(last)) // len(again)
        self._parts = itertools.chain([first], itertools.repeat(again, count), [last])

    def read(self, size: int = -1) -> bytes:
        taken, length = [], 0
        for part in self._parts:
            taken.append(part)
            length += len(part)
            if length >= size:
                break
        return b"".join(taken)


def peak(stream: t.Any) -> tuple[int, int, int]:
    """Return the number of bytes, the longest of the pieces, and the peak of memory."""
    tracemalloc.start()
    try:
        total = longest = 0
        for piece in read_chunks(stream):
            total, longest = total + len(piece), max(longest, len(piece))
        return total, longest, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_rotated_and_compressed_files_are_read_and_the_newest_is_the_source(tmp_path: Path) -> None:
    newest = written(tmp_path / "nova-compute.log", line(3) + NOISE, 9)
    oldest = written(tmp_path / "nova-compute.log.2.gz", line(1) + NOISE * 1000, 1)
    older = written(tmp_path / "nova-compute.log.1", NOISE + line(2), 2)
    written(tmp_path / "nova-api.log", line(1))

    complaints, sources = read(
        tmp_path / "nova-compute.log*", tmp_path / "*compute*", tmp_path / "nothing*"
    )
    (record,) = complaints.records()

    assert [(source.name, source.lines, source.error) for source in sources] == [
        (str(newest), 2, None),
        (str(older), 2, None),
        (str(oldest), 1001, None),
    ]
    assert sources[2].bytes == len(line(1) + NOISE * 1000)
    assert (record["count"], record["source"]) == (3, str(newest))
    assert (record["first_seen"], record["last_seen"]) == (
        "2024-10-01T12:07:18Z",
        "2024-10-03T12:07:18Z",
    )


def test_newest_files_win_when_there_are_too_many_complaints(tmp_path: Path) -> None:
    for day in (1, 2, 3):
        written(
            tmp_path / f"nova-compute.log.{9 - day}",
            line(day, MISSING.replace(U[:8], f"{day:08}")),
            day,
        )

    complaints, _sources = read(tmp_path / "*", limit=2)

    assert complaints.truncated
    assert [record["instance"][:8] for record in complaints.records()] == ["00000003", "00000002"]


def test_files_last_written_before_the_period_are_skipped(tmp_path: Path) -> None:
    written(tmp_path / "a", line(5) + line(6), 6)
    written(tmp_path / "b", line(1), 1)

    complaints, sources = read(tmp_path / "*", since=datetime.datetime(2024, 10, 6, tzinfo=UTC))

    assert [(source.skipped, source.lines) for source in sources] == [(False, 2), (True, 0)]
    assert complaints.records()[0]["count"] == 1


def test_file_with_two_names_is_read_once(tmp_path: Path) -> None:
    log = written(tmp_path / "nova-compute.log", line(1))
    (tmp_path / "nova-compute.log.link").symlink_to(log)

    complaints, sources = read(tmp_path / "*")

    assert (len(sources), complaints.records()[0]["count"]) == (1, 1)


def test_missing_final_newline_and_foreign_line_ends_are_read(tmp_path: Path) -> None:
    written(tmp_path / "log", line(1).replace("\n", "\r\n") + line(2).rstrip())

    assert read(tmp_path / "*")[0].records()[0]["count"] == 2


def test_unreadable_file_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    whole = line(1) + NOISE * 20_000
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress((whole + os.urandom(9999).hex()).encode())[:-2000])
    (tmp_path / "broken.gz").write_bytes(b"\x1f\x8b\x08\x00 this is not gzip")
    (tmp_path / "folder").mkdir()
    (tmp_path / "nowhere").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")
    written(tmp_path / "log", line(2))

    complaints, sources = read(tmp_path / "*")
    errors = {Path(source.name).name: source.error for source in sources}

    assert complaints.records()[0]["count"] == 2
    assert errors["log"] is None
    assert str(errors["cut.gz"]).startswith(f"{cut} cannot be read to its end: ")
    assert str(errors["broken.gz"]).startswith(f"{tmp_path / 'broken.gz'} cannot be read: ")
    assert errors["folder"] == f"{tmp_path / 'folder'} cannot be read: Is a directory."
    assert errors["nowhere"] == f"{tmp_path / 'nowhere'} cannot be read: No such file or directory."
    assert errors["pipe"] == f"{tmp_path / 'pipe'} is not read, because it is not a file."


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_forbidden_file_is_reported(tmp_path: Path) -> None:
    log = written(tmp_path / "log", line(1))
    log.chmod(0)

    assert read(log)[1][0].error == f"{log} cannot be read: Permission denied."


def test_pieces_are_whole_lines_and_lose_nothing() -> None:
    text = (
        "".join(f"{number}: {'x' * (number % 3000)}\n" for number in range(2000)).encode() + b"end"
    )

    parts = list(read_chunks(io.BytesIO(text)))

    assert b"".join(parts) == text
    assert len(parts) > 3
    assert all(part.endswith(b"\n") for part in parts[:-1])


@pytest.mark.parametrize("length", [65_000, 70_000, 300_000, 3 * MEGABYTE, 3 * MEGABYTE + 17])
def test_long_line_is_cut_and_its_neighbors_are_whole(length: int) -> None:
    text = line(1).encode() + b"x" * length + b"\n" + line(2).encode()

    lines = b"".join(read_chunks(io.BytesIO(text))).split(b"\n")

    assert (lines[0] + b"\n", lines[-2] + b"\n", lines[-1]) == (
        line(1).encode(),
        line(2).encode(),
        b"",
    )
    assert len(lines) == 4
    assert set(lines[1]) == {ord("x")} and len(lines[1]) >= 65_000


def test_endless_line_needs_little_memory() -> None:
    total, longest, memory = peak(Endless(200 * MEGABYTE, b"x" * MEGABYTE))

    assert total == longest <= MEGABYTE
    assert memory < 16 * MEGABYTE


def test_log_of_any_size_needs_little_memory() -> None:
    lines = NOISE.encode() * 1000

    total, longest, memory = peak(
        Endless(200 * MEGABYTE, lines, first=line(1).encode(), last=line(2).encode())
    )

    assert total > 199 * MEGABYTE
    assert longest < MEGABYTE
    assert memory < 16 * MEGABYTE


def journalctl(folder: Path, script: str) -> str:
    """Write a command in place of journalctl."""
    command = folder / "journalctl"
    command.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {folder}/arguments\n{script}\n')
    command.chmod(0o700)
    return str(command)


def test_unit_is_read_as_journalctl_shows_it(tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    shown.write_text(
        f"1727870838.800123 compute-3 nova-compute[7]: {line(1)}"
        "1727870839.800123 compute-3 nova-compute[7]: "
        "Traceback\n                                   of several lines\n"
    )
    complaints = Complaints(None, "compute-17", 100, None, UTC)
    since = datetime.datetime.fromtimestamp(1727870000.5, UTC)

    source = read_unit(journalctl(tmp_path, f"cat {shown}"), "nova-compute", complaints, since)
    (record,) = complaints.records()

    assert (source.name, source.lines, source.error) == ("nova-compute", 3, None)
    assert (record["host"], record["last_seen"], record["source"]) == (
        "compute-3",
        "2024-10-02T12:07:18Z",
        "nova-compute",
    )
    assert {"--unit=nova-compute", "--output=short-unix", "--all", "--since=@1727870000"} <= set(
        (tmp_path / "arguments").read_text().splitlines()
    )


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (
            "echo No journal files were found. >&2; exit 1",
            "journalctl ended with 1: No journal files were found.",
        ),
        ("head -c 9999999 /dev/zero >&2; exit 3", "journalctl ended with 3: "),
    ],
)
def test_unreadable_journal_is_reported(tmp_path: Path, script: str, error: str) -> None:
    source = read_unit(journalctl(tmp_path, script), "nova-compute", Complaints(None, "x", 1), None)

    assert str(source.error).startswith(f"The journal of nova-compute cannot be read: {error}")
    assert len(str(source.error)) < 500


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (None, "journalctl does not exist on this host."),
        ("/nonesuch/journalctl", "No such file or directory."),
    ],
)
def test_missing_journalctl_reads_no_journal(command: str | None, error: str) -> None:
    assert (
        read_unit(command, "nova-compute", Complaints(None, "x", 1), None).error
        == f"The journal of nova-compute cannot be read: {error}"
    )
