"""Files that version 2.0.0 wrote are read, or refused with what to do instead.

All of them were written on the small OpenStack of the tests. Files of 1.0.0 have their tests beside
their readers.
"""

import json
import pathlib
import typing as t

import pytest

from ....plugins.module_utils._common.errors import InvalidInput
from ....plugins.module_utils._core.changes.journal import read_journal
from ....plugins.module_utils._core.changes.restore import find_restore_steps
from ....plugins.module_utils._core.findings.entries import ENTRY_LISTS, validate_document
from ....plugins.module_utils._core.findings.sightings import parse_history
from ....plugins.module_utils._core.plan.plan import Plan
from ....plugins.module_utils._hosts.host_record import read_records
from ....plugins.module_utils._hosts.move_journal import read_history

FIXTURES = pathlib.Path(__file__).parents[2] / "fixtures"
NOVA = "http://127.0.0.1:26954/v2.1/"
CLOUD = {"region": "RegionOne", "placement_endpoint": "http://127.0.0.1:26719/"}


def read(name: str) -> t.Any:
    return json.loads((FIXTURES / "porting" / name).read_text(encoding="utf-8"))


def test_findings_make_a_report_and_are_the_history_of_the_next_run() -> None:
    findings = read("findings-2.0.0.json")

    assert validate_document("findings", findings, "findings.json") is findings
    history = parse_history(findings, "findings.json")
    assert len(history.first_seen) == sum(len(findings[name]) for name in ENTRY_LISTS)


def test_findings_are_planned_as_they_were() -> None:
    findings = read("findings-2.0.0.json")
    kinds = {entry["kind"] for entry in findings["findings"]}

    steps = Plan.from_findings(findings, kinds).as_dict()["changes"]

    assert steps == read("plan-2.0.0.json")["changes"]
    assert len(steps) == 4


def test_plan_without_a_digest_is_refused() -> None:
    with pytest.raises(InvalidInput, match="plan again"):
        Plan.parse(read("plan-2.0.0.json"))


def test_all_changes_of_a_journal_can_be_undone() -> None:
    records, torn = read_journal(str(FIXTURES / "journal" / "2.0.0.jsonl"))
    endpoint = records[0]["placement_endpoint"]

    steps = find_restore_steps(records, endpoint, [], [])

    assert not torn
    removed = {step["finding"] for step in read("plan-2.0.0.json")["changes"]}
    assert {step.finding for step in steps} == removed


def test_host_returns_to_what_its_record_says() -> None:
    document = read("host-2.0.0.json")

    records = read_records(document, "compute-1", CLOUD)

    assert records.existed
    assert records.record is not None
    assert [node["name"] for node in records.record["nodes"]] == ["compute-1"]


def test_servers_return_to_where_their_journal_says_they_came_from() -> None:
    history = read_history([str(FIXTURES / "porting" / "moves-2.0.0.jsonl")], NOVA, "compute-1")

    server = "4ecb7d48-da4c-4ef2-a736-f54dcdfd3158"
    (departure,) = history.list_departures()
    assert (departure.server, departure.source, departure.target) == (
        server,
        "compute-4",
        "compute-1",
    )
