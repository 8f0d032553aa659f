"""The journal is complete, and on disk before anything is written to Placement.

Only its owner can read it.
"""

import contextlib
import json
import os
import pathlib
import resource
import stat
import typing as t
from collections.abc import Iterator

import pytest

from .......plugins.module_utils._common.errors import InvalidInput, JournalError, Reason
from .......plugins.module_utils._core.changes.journal import (
    BEFORE,
    FORMAT,
    PLANNED,
    Journal,
    build_record,
    read_journal,
)
from .......plugins.module_utils._core.changes.outcomes import Outcome
from .......plugins.module_utils._core.changes.records import read_restorable
from .......plugins.module_utils._core.models.change import build_reduction
from .......plugins.module_utils._core.models.kinds import CHANGEABLE_KINDS
from .......plugins.module_utils._core.models.placement import Allocation
from .......plugins.module_utils._core.plan.plan import Plan, Step
from .......plugins.module_utils._core.run.pack import pack_files
from .....reasons import has_id
from ...judging import NO_MINIMUM_AGE, build_findings
from ...situations import build_world_of_every_action

ENDPOINT = "http://placement"
HOSTILE = "a\nb\r\u2028\x85\x00\ud800{{ c }}"


@contextlib.contextmanager
def _disk_of(size: int) -> Iterator[None]:
    """Limit the size of every file.

    The limit lasts as short as possible, because pytest's own output may be a file.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _step(number: int = 1) -> Step:
    consumer = f"{number:08x}-0000-4000-8000-000000000000"
    resources = {"6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11": {"VCPU": 1}}
    held = Allocation(consumer, 3, HOSTILE, "user", None, resources, 7200)
    change = build_reduction(held, set(resources))
    return Step(f"deleted_server/{consumer}", "deleted_server", change)


ONE, TWO = _step(1), _step(2)


@pytest.fixture(name="journal")
def _journal(tmp_path: pathlib.Path) -> Journal:
    return Journal(str(tmp_path / "new"), ENDPOINT)


def _records(journal: Journal) -> list[t.Any]:
    lines = pathlib.Path(journal.path).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_records_are_appended_one_per_line_and_read_back(journal: Journal) -> None:
    journal.record_before([ONE, TWO])
    journal.record_after(
        [Outcome(ONE, "removed"), Outcome(TWO, "skipped", Reason("told", "It changed."))]
    )

    records = _records(journal)
    assert [(record["event"], record["finding"]) for record in records] == [
        (event, step.finding) for event in ("before", "after") for step in (ONE, TWO)
    ]
    assert read_journal(journal.path) == (records, False)


def test_record_before_a_write_has_all_that_a_restore_needs(journal: Journal) -> None:
    """A hostile name stays within its line."""
    journal.record_before([ONE])

    (record,) = _records(journal)
    assert record["before"]["project_id"] == HOSTILE
    assert record.pop("at").endswith("Z")
    header = {"format": FORMAT, "event": "before", "placement_endpoint": ENDPOINT}
    assert record == {**header, **ONE.as_dict()}


def test_record_after_a_write_has_its_outcome(journal: Journal) -> None:
    journal.record_after([Outcome(ONE, "failed", Reason("told", "No answer."))])

    (record,) = _records(journal)
    del record["at"]
    assert record == {
        "format": FORMAT,
        "event": "after",
        "finding": ONE.finding,
        "consumer": ONE.change.consumer,
        "outcome": "failed",
        "reason": "No answer.",
        "reason_id": "told",
    }


def test_journal_is_created_with_its_first_record_for_its_owner(
    journal: Journal, tmp_path: pathlib.Path
) -> None:
    assert not journal.written and list(tmp_path.iterdir()) == []

    journal.record_before([ONE])

    assert journal.written and not journal.broken
    assert stat.S_IMODE(os.stat(journal.path).st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_records_of_a_write_are_complete_before_fsync(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[list[str]] = []
    folders: list[bool] = []
    fsync = os.fsync

    def watched(file: int) -> None:
        fsync(file)
        if stat.S_ISDIR(os.fstat(file).st_mode):
            folders.append(True)
        else:
            kept.append([known["event"] for known in _records(journal)])

    monkeypatch.setattr(os, "fsync", watched)
    journal.record_before([ONE, TWO])
    assert (kept, folders) == ([["before", "before"]], [True])
    journal.record_after([Outcome(ONE, "removed")])
    assert kept == [["before", "before"], ["before", "before", "after"]]


def test_journal_has_one_file_open(journal: Journal) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for step in (ONE, TWO):
        journal.record_before([step])

    assert len(os.listdir("/proc/self/fd")) == before + 1


def test_outcome_in_a_file_has_its_step_and_its_reason() -> None:
    outcome = Outcome(ONE, "failed", Reason("told", "No answer."))

    assert outcome.as_dict() == {
        **ONE.as_dict(),
        "outcome": "failed",
        "reason": "No answer.",
        "reason_id": "told",
    }
    assert [Outcome(ONE, name).changed for name in ("removed", "failed")] == [True, False]


def test_folder_that_cannot_be_created_fails_without_leftovers(tmp_path: pathlib.Path) -> None:
    (tmp_path / "occupied").write_text("")
    journal = Journal(str(tmp_path / "occupied"), ENDPOINT)

    with pytest.raises(JournalError, match=journal.path, check=has_id("journal_error")):
        journal.record_before([ONE])

    assert not journal.written
    assert [entry.name for entry in tmp_path.iterdir()] == ["occupied"]


def test_existing_file_is_never_written_to(tmp_path: pathlib.Path) -> None:
    journal = Journal(str(tmp_path), ENDPOINT)
    pathlib.Path(journal.path).write_text("another run's")

    with pytest.raises(JournalError, match="File exists"):
        journal.record_before([ONE])
    assert pathlib.Path(journal.path).read_text() == "another run's"


def test_journal_without_memory_is_broken_too(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a record may be on disk by then."""

    def fail(_file: int) -> None:
        raise MemoryError

    monkeypatch.setattr(os, "fsync", fail)

    with pytest.raises(JournalError, match="no memory"):
        journal.record_before([ONE])
    assert journal.broken


def test_record_that_a_full_disk_cuts_is_the_last_one(journal: Journal) -> None:
    """The next record would be joined to it, and neither could be read."""
    with pytest.raises(JournalError), _disk_of(20):
        journal.record_before([ONE])
    assert journal.broken
    before = pathlib.Path(journal.path).read_bytes()

    with pytest.raises(JournalError):
        journal.record_before([TWO])
    assert pathlib.Path(journal.path).read_bytes() == before


# Reading


def _lines(*steps: Step) -> bytes:
    return b"".join(
        json.dumps(build_record(BEFORE, step, ENDPOINT)).encode() + b"\n" for step in steps
    )


@pytest.fixture(name="path")
def _path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "journal.jsonl"


def test_records_of_a_task_are_accepted() -> None:
    records = [build_record(PLANNED, ONE, ENDPOINT), build_record(BEFORE, TWO, ENDPOINT)]

    assert read_journal(records) == (records, False)


def test_packs_are_read_as_the_journals_of_which_they_are(journal: Journal) -> None:
    journal.record_before([ONE, TWO])
    journal.record_after([Outcome(ONE, "removed"), Outcome(TWO, "removed")])
    records, _torn = read_journal(journal.path)
    text = pack_files({"journal": records})

    assert read_journal(text) == read_restorable([text]) == (records, False)
    assert read_journal([text, pack_files({"journal": records[:1]})])[0] == [*records, records[0]]


def test_pack_with_anything_else_than_records_is_refused(journal: Journal) -> None:
    journal.record_before([ONE])
    for contents in ([7], [{}], [journal.path], [pack_files({"journal": []})]):
        with pytest.raises(InvalidInput, match="Record 1"):
            read_journal(pack_files({"journal": contents}))


def test_plan_in_a_pack_stands_for_a_journal_of_all_its_changes() -> None:
    world, changes = build_world_of_every_action()
    findings = build_findings(world.snapshot(**changes), NO_MINIMUM_AGE)
    plan = Plan.from_findings(findings, [kind.name for kind in CHANGEABLE_KINDS])
    text = pack_files({"plan": plan.as_dict()})
    records, torn = read_restorable(text)

    assert [record["finding"] for record in records] == [step.finding for step in plan.all_steps]
    assert {record["event"] for record in records} == {PLANNED} and not torn
    with pytest.raises(InvalidInput, match="but plan"):
        read_journal(text)


def test_journal_truncated_anywhere_gives_its_whole_records(path: pathlib.Path) -> None:
    """A power failure can leave any beginning of it.

    A cut right behind a record's last character leaves that record whole.
    """
    whole, first = _lines(ONE, TWO), len(_lines(ONE))
    for length in range(first - 1, len(whole) + 1):
        path.write_bytes(whole[:length])
        records, torn = read_journal(str(path))

        complete = [ONE.finding, TWO.finding][: whole[: length + 1].count(b"\n")]
        assert [record["finding"] for record in records] == complete
        assert torn == (length not in (first - 1, first, len(whole) - 1, len(whole)))


@pytest.mark.parametrize(
    "contents", [b"", b"\x00\xff", _lines(ONE)[:-2]], ids=["empty", "other bytes", "torn"]
)
def test_journal_without_a_whole_record_is_refused(path: pathlib.Path, contents: bytes) -> None:
    path.write_bytes(contents)

    with pytest.raises(InvalidInput, match="no complete record"):
        read_journal(str(path))


@pytest.mark.parametrize(
    "tail", [b"\x00", b"\x00" * 512, b"\xff\xfe", b"{", b'{"format": 1, "event": "bef'], ids=repr
)
def test_any_invalid_last_line_counts_as_truncated(path: pathlib.Path, tail: bytes) -> None:
    path.write_bytes(_lines(ONE) + tail)
    records, torn = read_journal(str(path))

    assert ([known["finding"] for known in records], torn) == ([ONE.finding], True)


@pytest.mark.parametrize("line", [b"", b" ", b"\x00", b"{", b"kind: yaml"], ids=repr)
def test_invalid_line_before_the_last_is_refused(path: pathlib.Path, line: bytes) -> None:
    path.write_bytes(_lines(ONE) + line + b"\n" + _lines(TWO))

    with pytest.raises(InvalidInput, match=r"Line 2 .* edited"):
        read_journal(str(path))


@pytest.mark.parametrize(
    "other",
    [
        *(None, 7, "text", [], {}, {"format": 1}),
        *({"format": 1, "event": event} for event in ("during", [])),
    ],
)
@pytest.mark.parametrize("last", [True, False])
def test_json_that_is_not_a_record_is_refused_even_on_the_last_line(
    path: pathlib.Path, other: t.Any, last: bool
) -> None:
    line = json.dumps(other).encode()
    path.write_bytes(_lines(ONE) + line + (b"" if last else b"\n" + _lines(TWO)))

    with pytest.raises(InvalidInput, match=r"Line 2 .*: name"):
        read_journal(str(path))
    with pytest.raises(InvalidInput, match="Record 1 "):
        read_journal([other])


@pytest.mark.parametrize("newer", [0, 2, "1", None])
def test_record_of_another_format_is_refused(newer: t.Any) -> None:
    with pytest.raises(InvalidInput, match=f"Record 1 .* {newer!r}"):
        read_journal([{**build_record(BEFORE, ONE, ENDPOINT), "format": newer}])


@pytest.mark.parametrize("other", [None, "", "  ", 7, {}, {"records": []}, True], ids=repr)
def test_input_that_is_neither_a_path_nor_records_is_refused(other: t.Any) -> None:
    with pytest.raises(InvalidInput, match="a list of"):
        read_journal(other)


def test_missing_journal_is_named(path: pathlib.Path) -> None:
    with pytest.raises(InvalidInput, match=r"^journal: .*journal\.jsonl"):
        read_journal(str(path))


@pytest.mark.parametrize("last", [True, False])
def test_too_deeply_nested_line_is_not_a_record(path: pathlib.Path, last: bool) -> None:
    path.write_bytes(_lines(ONE) + b"[" * 200_000 + (b"" if last else b"\n" + _lines(TWO)))

    if last:
        assert read_journal(str(path))[1]
    else:
        with pytest.raises(InvalidInput, match="Line 2 "):
            read_journal(str(path))
