"""What a later run learns from the journals of moves."""

import json
import typing as t
from pathlib import Path

import pytest

from ......plugins.module_utils._common.errors import InvalidInput
from ......plugins.module_utils._core.run.pack import pack_files
from ......plugins.module_utils._hosts.draining import FAILED, MOVED
from ......plugins.module_utils._hosts.move_journal import (
    DRAIN,
    RETURN,
    MoveHistory,
    MoveJournal,
    find_move_journals,
    read_history,
)
from ......plugins.module_utils._hosts.move_progress import Attempt, MoveTask
from ..drain_world import SOURCE, build_service

NOVA = "http://nova/"
AWAY = Attempt("s1", "web-1", SOURCE, None, "live", frozenset({"m1"}), "2026-11-20T03:00:00Z")
BACK = Attempt("s1", "web-1", "compute-2", SOURCE)


@pytest.fixture
def journal(tmp_path: Path) -> MoveJournal:
    return MoveJournal(str(tmp_path), NOVA, SOURCE)


def read(journal: MoveJournal, host: str = SOURCE, endpoint: str = NOVA) -> MoveHistory:
    journals = find_move_journals(str(Path(journal.path).parent))
    return read_history(journals, endpoint, host)


def test_a_request_without_an_end_is_open(journal: MoveJournal) -> None:
    journal.record_request(AWAY, DRAIN)

    assert read(journal).list_attempts(DRAIN) == [AWAY]
    assert read(journal).list_attempts(RETURN) == []


def test_an_open_request_has_its_answer(journal: MoveJournal) -> None:
    journal.record_request(AWAY, DRAIN)
    accepted = Attempt(**{**vars(AWAY), "request_id": "req-1", "is_accepted": True})
    journal.record_reply(accepted, is_accepted=True)
    # The resize is not over with its confirmation.
    journal.record_confirmation(accepted, "m2")

    assert read(journal).list_attempts(DRAIN) == [accepted]


def test_a_move_that_has_ended_is_a_departure(journal: MoveJournal) -> None:
    journal.record_request(AWAY, DRAIN)
    journal.record_end(AWAY, MOVED, "compute-2", "")

    history = read(journal)
    assert history.list_attempts(DRAIN) == []
    assert history.list_departures() == [MoveTask("s1", "web-1", "compute-2", SOURCE)]


def test_only_an_end_that_says_where_a_server_is_makes_a_departure(journal: MoveJournal) -> None:
    """A record of an end without its request is that of a journal of which a part is lost."""
    journal.record_end(AWAY, MOVED, "compute-2", "")
    assert read(journal).list_departures() == []
    journal.record_request(AWAY, DRAIN)
    journal.record_confirmation(AWAY, "migration")
    assert read(journal).list_attempts(DRAIN) == [AWAY]
    journal.record_end(AWAY, MOVED, None, "")

    history = read(journal)
    assert (history.list_attempts(DRAIN), history.list_departures()) == ([], [])


def test_a_server_that_came_back_is_no_departure(journal: MoveJournal) -> None:
    journal.record_request(AWAY, DRAIN)
    journal.record_end(AWAY, MOVED, "compute-2", "")
    journal.record_request(BACK, RETURN)
    assert read(journal).list_attempts(RETURN) == [BACK]
    journal.record_end(BACK, FAILED, None, "no room")
    assert read(journal).list_departures()
    journal.record_request(BACK, RETURN)
    journal.record_end(BACK, MOVED, SOURCE, "")

    assert read(journal).list_departures() == []


def test_the_service_is_as_it_was_before_the_first_drain(journal: MoveJournal) -> None:
    journal.record_service(build_service(SOURCE), {"status": "disabled"})
    journal.record_service(build_service(SOURCE, status="disabled"), {"forced_down": True})

    history = read(journal)
    assert history.service is not None and history.service["status"] == "enabled"
    assert history.changes_of_service == {"status": "disabled", "forced_down": True}

    journal.record_restored_service()
    assert read(journal).service is None
    assert read(journal).changes_of_service == {}


def test_records_of_other_hosts_are_left_out(journal: MoveJournal) -> None:
    journal.record_request(AWAY, DRAIN)

    assert read(journal, "compute-2").list_attempts(DRAIN) == []


def test_open_moves_through_another_interface_are_not_forgotten(journal: MoveJournal) -> None:
    """The guest of an interrupted live migration may be elsewhere, and would be moved again."""
    journal.record_request(AWAY, DRAIN)

    with pytest.raises(InvalidInput, match=f"{NOVA}.* http://other/"):
        read(journal, endpoint="http://other/")
    # What is over may be of another cloud.
    journal.record_end(AWAY, MOVED, "compute-2", "")
    assert read(journal, endpoint="http://other/").list_departures() == []


def test_a_torn_last_line_is_a_request_that_was_not_sent(journal: MoveJournal) -> None:
    journal.record_request(AWAY, DRAIN)
    path = Path(journal.path)
    path.write_bytes(path.read_bytes() + path.read_bytes()[:50])

    assert read(journal).list_attempts(DRAIN) == [AWAY]


def test_a_move_journal_is_not_taken_for_one_of_allocations(journal: MoveJournal) -> None:
    journal.record_request(AWAY, DRAIN)

    assert not list(Path(journal.path).parent.glob("journal-*"))
    assert Path(journal.path).name.startswith("moves-")
    assert Path(journal.path).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        # A record that lacks something.
        *(
            ({lost: ...}, "journal of moves")
            for lost in ("action", "server", "known", "purpose", "host", "source")
        ),
        ({"action": "delete"}, "lacks a known action"),
        ({"event": "after"}, "lacks outcome"),
        ({"action": "confirm"}, "lacks migration"),
        ({"action": "service"}, "lacks body, service"),
        ({"action": "service", "event": "after"}, "lacks outcome"),
        ({"how": "by train"}, r"an unknown way \('by train'\)"),
        # A move that the host has no part in: a journal of moves has no digest.
        ({"source": "compute-9"}, "another host"),
        ({"purpose": RETURN, "target": "compute-9"}, "another host"),
        # A journal of allocations.
        ({"action": ..., "finding": "x"}, "journal of moves"),
    ],
)
def test_a_record_that_no_run_wrote_is_refused(
    journal: MoveJournal, change: dict[str, t.Any], reason: str
) -> None:
    journal.record_request(AWAY, DRAIN)
    record = {**json.loads(Path(journal.path).read_text()), **change}
    written = {key: value for key, value in record.items() if value is not ...}
    Path(journal.path).write_text(json.dumps(written) + "\n")

    with pytest.raises(InvalidInput, match=reason):
        read(journal)


def test_refusal_has_at_most_100_characters_of_the_name(tmp_path: Path) -> None:
    journal = MoveJournal(str(tmp_path), NOVA, "h" * 101)
    journal.record_request(AWAY, DRAIN)

    with pytest.raises(InvalidInput) as refused:
        read(journal)
    assert f" {'h' * 99}… " in str(refused.value)


def test_a_journal_that_others_can_replace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    journal = MoveJournal(str(tmp_path / "shared"), NOVA, SOURCE)
    journal.record_request(AWAY, DRAIN)

    with pytest.raises(InvalidInput, match="by all users"):
        read_history([journal.path], NOVA, SOURCE)


def test_pack_tells_another_job_the_same_without_the_names(journal: MoveJournal) -> None:
    journal.record_service(build_service(SOURCE), {"status": "disabled"})
    journal.record_request(AWAY, DRAIN)
    journal.record_end(AWAY, MOVED, "compute-2", "")
    packed = read(journal).pack()

    history = read_history([[packed]], NOVA, SOURCE)

    assert "web-1" not in json.dumps(history.records)
    assert history.list_departures() == [MoveTask("s1", "s1", "compute-2", SOURCE)]
    assert history.service == read(journal).service
    assert read_history([packed], NOVA, "compute-2").records == []
    for wrong in (packed[:-1], pack_files({"journal": []}), pack_files({"moves": [{"host": "a"}]})):
        with pytest.raises(InvalidInput):
            read_history([wrong], NOVA, SOURCE)
