# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The journal: one JSON line before each write to Placement and one after it.

The line before a write is on disk before the write is sent.
"""

from __future__ import annotations

import json
import os
import typing as t
from collections.abc import Callable, Iterable, Mapping

from ..._common.clock import get_utc_now
from ..._common.errors import InvalidInput, JournalError, describe_form_error, hide_credentials
from ..._common.json_files import read_bytes, require_private_file
from ..models.codec import Unchecked
from ..models.kinds import rename_finding, rename_kind
from ..run.pack import read_packed

_Parsed = t.TypeVar("_Parsed")

FORMAT = 1

# The events of records. A record from before a write has all that is needed to take the write back:
# `planned` is in the result of a task, `before` in a journal.
PLANNED, BEFORE, AFTER = "planned", "before", "after"


# A record of a journal. Its keys depend on the version that wrote it, on its event and on its
# action: `parse_record` checks those that are needed.
JournalRecord = Unchecked


class RecordableStep(t.Protocol):
    """A write that the journal can record."""

    def as_dict(self) -> Mapping[str, object]: ...


class RecordableOutcome(t.Protocol):
    """The outcome of a write."""

    def as_record(self) -> Mapping[str, object]: ...


class Journal:
    """An append-only file of mode 0600, made with its first record."""

    def __init__(self, directory: str, placement_endpoint: str) -> None:
        self.path = os.path.join(
            directory, f"journal-{get_utc_now().replace(':', '')}-{os.getpid()}.jsonl"
        )
        self._endpoint = placement_endpoint
        self._file: int | None = None
        self.broken = False

    @property
    def written(self) -> bool:
        return self._file is not None

    def record_before(self, steps: Iterable[RecordableStep], **facts: t.Any) -> None:
        """Record what is about to be written, and wait until it is on disk.

        Raises JournalError when it cannot be recorded.

        facts: further keys of each record.
        """
        self._append({**build_record(BEFORE, step, self._endpoint), **facts} for step in steps)

    def record_after(self, outcomes: Iterable[RecordableOutcome]) -> None:
        """Record the outcomes of the writes. Raises JournalError when it cannot be recorded."""
        self._append(_add_header(AFTER, **outcome.as_record()) for outcome in outcomes)

    def _append(self, records: Iterable[JournalRecord]) -> None:
        if self.broken:
            raise JournalError(
                f"The journal {self.path} could not be written before, "
                "and without it nothing is changed."
            )
        try:
            lines = [f"{json.dumps(record, sort_keys=True)}\n".encode() for record in records]
            if self._file is None:
                self._file = self._create()
            _write_all(self._file, b"".join(lines))
            os.fsync(self._file)
        except (OSError, MemoryError) as error:
            # The last record may be on disk in part; the next one would become a part of its line.
            self.broken = True
            failure = error.strerror if isinstance(error, OSError) else "no memory is left"
            raise JournalError(
                f"The journal {self.path} cannot be written ({failure}), "
                "and without it nothing is changed."
            ) from error

    def _create(self) -> int:
        directory = os.path.dirname(self.path)
        os.makedirs(directory, mode=0o700, exist_ok=True)
        created = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        # The new name must survive a power cut as well as what is in the file.
        folder = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return created


def build_record(event: str, step: RecordableStep, placement_endpoint: str) -> JournalRecord:
    """Return the record of `step` from before it is made."""
    return _add_header(event, placement_endpoint=placement_endpoint, **step.as_dict())


def read_journal(journal: t.Any) -> tuple[list[JournalRecord], bool]:
    """Return the records of a journal, and whether its last line is torn.

    The write that a torn record was to precede was never sent.
    Raises InvalidInput for anything that is not a journal.

    journal: its path, a list of its records, or packs.
    """
    packed = read_packed(journal, "journal")
    if packed is not None:
        return [record for entries in packed[1] for record in check_records(entries)], False
    if isinstance(journal, list):
        return check_records(journal), False
    if not isinstance(journal, str) or not journal.strip():
        raise InvalidInput("journal must be the path of a journal, or a list of its records.")
    try:
        contents = read_bytes(journal)
        require_private_file(journal)
    except InvalidInput as error:
        raise InvalidInput(f"journal: {error}") from error
    records, torn = _parse_lines(contents, journal)
    if not records:
        raise InvalidInput(
            f"journal: {journal} has no complete record: its run changed nothing, or it is "
            "another file."
        )
    return records, torn


def check_records(entries: Iterable[t.Any]) -> list[JournalRecord]:
    """Return the records of a journal that is no file, or raise InvalidInput."""
    return [_check_record(entry, f"Record {number}") for number, entry in enumerate(entries, 1)]


def _parse_lines(contents: bytes, name: str) -> tuple[list[JournalRecord], bool]:
    """Return the records in the contents of a journal, and whether the last line is torn."""
    lines = contents.split(b"\n")
    last = len(lines) - 1
    records: list[JournalRecord] = []
    for number, line in enumerate(lines):
        # Every record ends with a line break, so nothing comes after the last of them.
        if not line and number == last:
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            if number == last:
                return records, True
            raise InvalidInput(
                f"Line {number + 1} of {name} is not a record of a journal: "
                "it was edited, or it is another file. Use an unchanged copy of the journal."
            ) from error
        records.append(_check_record(entry, f"Line {number + 1} of {name}"))
    return records, False


def parse_record(
    record: JournalRecord, placement_endpoint: str, parse: Callable[[JournalRecord], _Parsed]
) -> _Parsed:
    """Return what `parse` makes of a record of a run that changed this Placement.

    Raises InvalidInput for a record that was edited, and for one of another cloud.

    parse: raises KeyError, TypeError, ValueError or AttributeError for what it cannot read.
    """
    try:
        parsed = parse(record)
        recorded_endpoint = record["placement_endpoint"]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(
            "A record of the journal does not have the form that orphan_remediate writes "
            f"({describe_form_error(error)})."
        ) from error
    # Until 2.0 the endpoint could have a password in it.
    if hide_credentials(str(recorded_endpoint)) != placement_endpoint:
        raise InvalidInput(
            f"The journal is from another cloud: its Placement is {recorded_endpoint}, "
            f"and that of this connection is {placement_endpoint}."
        )
    return parsed


def _check_record(entry: t.Any, where: str) -> JournalRecord:
    if not isinstance(entry, dict) or entry.get("event") not in (PLANNED, BEFORE, AFTER):
        raise InvalidInput(
            f"{where} is not a record of a journal: name a journal that orphan_remediate wrote."
        )
    if entry.get("format") != FORMAT:
        raise InvalidInput(
            f"{where} has format {entry.get('format')!r} "
            f"and this version of the collection reads format {FORMAT}."
        )
    renamed = dict(entry)
    for key, rename in (("kind", rename_kind), ("finding", rename_finding)):
        if isinstance(entry.get(key), str):
            renamed[key] = rename(entry[key])
    return renamed


def _add_header(event: str, **facts: t.Any) -> JournalRecord:
    return {"format": FORMAT, "at": get_utc_now(), "event": event, **facts}


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
