# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The journal: complete, on disk before anything is written to Placement, and for nobody else's eyes."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import resource
import stat
import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._errors import JournalError
from ansible_collections.osops.placement.plugins.module_utils._journal import FORMAT, Journal

if t.TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def _disk_of(size: int) -> Iterator[None]:
    """Let a file have no more than so many bytes; for as short as possible, for pytest's own output may be one."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _records(journal: Journal) -> list[t.Any]:
    return [json.loads(line) for line in pathlib.Path(journal.path).read_text(encoding="utf-8").splitlines()]


def test_records_are_appended_one_a_line(tmp_path: pathlib.Path) -> None:
    journal = Journal(str(tmp_path))
    journal.record("before", consumer="c", before={"allocations": {}})
    journal.record("after", consumer="c", outcome="removed")

    assert [(record["event"], record["consumer"]) for record in _records(journal)] == [("before", "c"), ("after", "c")]
    assert _records(journal)[0]["before"] == {"allocations": {}}


def test_every_record_has_a_format_and_a_time(tmp_path: pathlib.Path) -> None:
    journal = Journal(str(tmp_path))
    journal.record("before")

    (record,) = _records(journal)
    assert record["format"] == FORMAT
    assert record["at"].endswith("Z")


def test_a_hostile_name_stays_within_its_line(tmp_path: pathlib.Path) -> None:
    journal = Journal(str(tmp_path))
    journal.record("before", name="a\nb\r\u2028\x85\x00\ud800{{ c }}")

    (record,) = _records(journal)
    assert record["name"] == "a\nb\r\u2028\x85\x00\ud800{{ c }}"


def test_it_is_readable_by_its_owner_alone(tmp_path: pathlib.Path) -> None:
    journal = Journal(str(tmp_path / "new"))
    journal.record("before")

    assert stat.S_IMODE(os.stat(journal.path).st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_without_a_record_there_is_no_file(tmp_path: pathlib.Path) -> None:
    journal = Journal(str(tmp_path / "new"))

    assert not journal.written
    assert list(tmp_path.iterdir()) == []


def test_it_is_written_with_its_first_record(tmp_path: pathlib.Path) -> None:
    journal = Journal(str(tmp_path))
    journal.record("before")

    assert journal.written


def test_each_record_is_whole_when_the_disk_is_told_to_keep_it(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(str(tmp_path))
    kept: list[list[str]] = []
    folders: list[bool] = []
    fsync = os.fsync

    def watched(file: int) -> None:
        fsync(file)
        if stat.S_ISDIR(os.fstat(file).st_mode):
            folders.append(True)
        else:
            kept.append([record["event"] for record in _records(journal)])

    monkeypatch.setattr(os, "fsync", watched)
    journal.record("before")
    assert (kept, folders) == ([["before"]], [True])
    journal.record("after")
    assert kept == [["before"], ["before", "after"]]


def test_a_folder_that_cannot_be_made_fails_and_leaves_nothing(tmp_path: pathlib.Path) -> None:
    (tmp_path / "occupied").write_text("")
    journal = Journal(str(tmp_path / "occupied"))

    with pytest.raises(JournalError) as refusal:
        journal.record("before")

    assert journal.path in str(refusal.value)
    assert "nothing is changed" in str(refusal.value)
    assert not journal.written
    assert [entry.name for entry in tmp_path.iterdir()] == ["occupied"]


def test_it_never_writes_into_a_file_that_is_there_already(tmp_path: pathlib.Path) -> None:
    journal = Journal(str(tmp_path))
    pathlib.Path(journal.path).write_text("another run's")

    with pytest.raises(JournalError, match="File exists"):
        journal.record("before")
    assert pathlib.Path(journal.path).read_text() == "another run's"


def test_a_full_disk_fails(tmp_path: pathlib.Path) -> None:
    journal = Journal(str(tmp_path))

    with pytest.raises(JournalError, match="cannot be written"), _disk_of(20):
        journal.record("before")


def test_after_a_record_that_was_cut_short_there_are_no_more(tmp_path: pathlib.Path) -> None:
    """The next one would be glued to it, and neither could be read."""
    journal = Journal(str(tmp_path))
    with pytest.raises(JournalError), _disk_of(20):
        journal.record("after", consumer="one")
    before = pathlib.Path(journal.path).read_bytes()

    with pytest.raises(JournalError, match="could not be written before, and without it nothing is changed"):
        journal.record("before", consumer="two")
    assert pathlib.Path(journal.path).read_bytes() == before
