# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which record of a host is kept, and which one a new look replaces."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._hosts.host_record import (
    HostRecords,
    build_record,
    choose_records,
    read_records,
)


def _service(number: str = "s-1", status: str = "enabled", state: str = "down") -> t.Any:
    return {"id": number, "status": status, "state": state, "zone": "az1"}


def _record(at: str, service: t.Any, begun: bool = False) -> t.Any:
    return {
        "taken_at": at,
        "begun": begun,
        "host": "old",
        "service": service,
        "nodes": [],
        "aggregates": [],
        "providers": [],
    }


UP = _service(state="up")
DISABLED = _service(status="disabled")
OTHER = _service("s-2")


@pytest.mark.parametrize(
    ("service", "begun", "now", "expected"),
    [
        # A check renews what a check has seen.
        (UP, False, UP, ("now", None)),
        (UP, False, DISABLED, ("now", None)),
        # After the first change the host has less than before.
        (UP, True, DISABLED, ("then", None)),
        (UP, True, _service(), ("then", None)),
        (UP, True, None, ("then", None)),
        # It was begun, and the host is in service again.
        (UP, True, UP, ("now", None)),
        # Disabled by the run, and not stopped yet.
        (UP, True, _service(status="disabled", state="up"), ("then", None)),
        # Another machine has the name.
        (UP, True, OTHER, ("now", "then")),
        (UP, False, OTHER, ("now", "then")),
        (None, True, OTHER, ("now", "then")),
        # The service is gone or its cell does not answer: there is less to see than there was.
        (UP, False, None, ("then", None)),
        (UP, False, _service(t.cast("t.Any", None)), ("then", None)),
        (None, False, None, ("then", None)),
    ],
)
def test_the_record_that_counts(
    service: t.Any, begun: bool, now: t.Any, expected: tuple[str, str | None]
) -> None:
    earlier = HostRecords(_record("then", service, begun))
    records = choose_records(earlier, _record("now", now))

    assert records.record is not None
    former = records.former and records.former["taken_at"]
    assert (records.record["taken_at"], former) == expected


@pytest.mark.parametrize(
    ("then", "now", "expected"),
    [
        (["ssd", "gpu"], ["ssd", "gpu"], ("then", None)),
        # The decommissioning has removed the host from an aggregate.
        (["ssd", "gpu"], ["gpu"], ("then", None)),
        (["ssd", "gpu"], [], ("then", None)),
        # The host was in service again, and was drained or has died since.
        (["ssd"], ["gpu"], ("now", "then")),
        (["ssd"], ["ssd", "gpu"], ("now", "then")),
    ],
)
def test_a_host_with_more_than_its_record_was_in_service_since(
    then: list[str], now: list[str], expected: tuple[str, str | None]
) -> None:
    earlier, current = _record("then", UP, begun=True), _record("now", DISABLED)
    for record, names in ((earlier, then), (current, now)):
        record["aggregates"] = [{"uuid": name, "name": name, "zone": None} for name in names]

    records = choose_records(HostRecords(earlier), current)

    assert records.record is not None
    former = records.former and records.former["taken_at"]
    assert (records.record["taken_at"], former) == expected


def test_the_first_record_keeps_a_former_one() -> None:
    former = _record("before", OTHER)

    assert choose_records(HostRecords(None, former), _record("now", UP)) == HostRecords(
        _record("now", UP), former
    )
    assert choose_records(HostRecords(_record("then", UP), former), _record("now", UP)).former


@pytest.mark.parametrize(
    ("is_changing", "stops", "begun"),
    [
        (False, [], False),
        (True, [], True),
        (True, ["delete"], True),
        # Nothing is changed on a blocked host.
        (True, ["disable"], False),
        (True, ["delete", "disable"], False),
    ],
)
def test_a_decommissioning_begins_when_nothing_blocks_it(
    is_changing: bool, stops: list[str], begun: bool
) -> None:
    document: t.Any = {
        "host": "old",
        "service": UP,
        "nodes": [],
        "aggregates": [],
        "blockers": [{"stops": stage} for stage in stops],
    }

    assert build_record(document, [], "now", is_changing)["begun"] is begun


def test_records_are_read_from_the_file_of_the_host() -> None:
    record, former = _record("then", UP), _record("before", None)
    hosts = [{"name": "new"}, {"name": "old", "record": record, "former_record": former}]

    assert read_records({"hosts": hosts}, "old") == HostRecords(record, former)
    # An older version, another host, and a host of which nothing was known.
    assert read_records({"hosts": hosts}, "new") == HostRecords()
    assert read_records({"hosts": []}, "old") == HostRecords()


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"hosts": None},
        {"hosts": ["old"]},
        {"hosts": [{"name": "old", "record": []}]},
        {"hosts": [{"name": "old", "record": {"taken_at": "now"}}]},
        {"hosts": [{"name": "old", "record": _record("now", "s-1")}]},
        {"hosts": [{"name": "old", "record": _record("now", {"id": "s-1"})}]},
    ],
)
def test_anything_else_is_refused(document: t.Any) -> None:
    with pytest.raises(InvalidInput, match="earlier is not a file that compute_host_info wrote"):
        read_records(document, "old")
