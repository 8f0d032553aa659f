"""Lines of nova-compute's log, as several releases and distributions write them.

Some of them are untrustworthy. The logs are of any size, rotated, compressed, cut, or unreadable.
"""

from __future__ import annotations

import bz2
import datetime
import gzip
import io
import itertools
import json
import lzma
import os
import sys
import time
import tracemalloc
import typing as t
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .......plugins.module_utils._common.times import UTC
from .......plugins.module_utils._hypervisors.on_host.nova_log import (
    COMPLAINT_KINDS,
    Complaints,
    Source,
    may_contain_complaint,
    read_chunks,
    read_files,
    read_unit,
)

U = "b32e5792-427c-43b1-83dc-2d3e3c8d74c4"
OTHER = "44c356ef-edd0-43a3-bd46-17aed65ea1a6"
PROVIDER = "151ad1bd-d4dc-4211-a1e7-d13920c50248"
CONTEXT = "[None req-f8320401-70fb-4532-8d87-e5240e53f68b - - - - - -]"
STAMP = "2024-10-02 12:07:18.800 1590924"
AT = "2024-10-02T12:07:18Z"
FACTS = ("instance", "amounts", "other_host", "counts", "versions", "provider", "port")

MISSING = (
    f"Instance {U} has allocations against this compute host but is not found in the database."
)
UNMANAGED = (
    f"Instance {U} is not being actively managed by this compute host but has allocations "
    "referencing this compute host: "
    "{'resources': {'VCPU': 12, 'MEMORY_MB': 32768, 'DISK_GB': 80}}. Skipping heal of allocation "
    "because we do not know what to do."
)
MOVED = (
    f"Instance {U} has been moved to another host compute-18(compute-18.example.org). There are "
    "allocations remaining against the source "
    "host that might need to be removed: {'resources': {'VCPU': 2, 'CUSTOM_PCI': 1}}."
)
CAP = (
    "Requested message version, 5.0 is incompatible.  It needs to be equal in major version and "
    "less than or equal in minor version as "
    "the specified version cap 4.17."
)
CONFLICT = (
    "[req-7bc75c8d-a3c2-4961-81d3-91e2cfe2f382] Failed to create resource provider record in "
    f"placement API for UUID {PROVIDER}. Got 409: "
    '{"errors": [{"status": 409, "title": "Conflict", "detail": "There was a conflict when trying '
    "to complete your request.\\n\\n "
    'Conflicting resource provider name: compute-17.example.org already exists.  ", "code": '
    '"placement.duplicate_name"}]}.'
)
RENAMED = (
    f"My node {PROVIDER} has host 'compute-7' but my host is 'compute-17'; Possible rename "
    "detected, refusing to start!"
)
LOST = (
    "No local node identity found, but this is not our first startup on this host. Refusing to "
    "start after potentially having lost that state!"
)
FOREIGN = (
    "nova.exception.InvalidConfiguration: My hypervisor has existing instances, but I appear to be "
    "a new service in this database. Possible database configuration error, refusing to start!"
)
PORT_DELETED = (
    f"The bound port {OTHER} is deleted in Neutron but the resource allocation on the resource "
    f"providers {PROVIDER},{OTHER} are leaked until the server {U} is deleted."
)


def log(logger: str, message: str, level: str = "WARNING", stamp: str = STAMP) -> str:
    return f"{stamp} {level} {logger} {CONTEXT} {message}"


def tracker(message: str, level: str = "WARNING") -> str:
    """Return a line of the resource tracker."""
    return log("nova.compute.resource_tracker", message, level)


def read(*lines: str | bytes, journal: bool = False, **options: t.Any) -> Complaints:
    complaints = Complaints(None, "compute-17", **{"limit": 100, "zone": UTC, **options})
    for line in lines:
        raw = line if isinstance(line, bytes) else line.encode()
        complaints.add(raw, "nova-compute.log", journal)
    return complaints


def only(*lines: str | bytes, journal: bool = False) -> dict[str, t.Any]:
    (record,) = read(*lines, journal=journal).records()
    return record


def seen(kind: str, last_seen: str | None = AT, **facts: t.Any) -> dict[str, t.Any]:
    return {"kind": kind, "last_seen": last_seen, **facts}


ABSENT = seen("not_in_database", instance=U)
KEPT = seen("not_managed", instance=U, amounts={"VCPU": 12, "MEMORY_MB": 32768, "DISK_GB": 80})
AWAY = seen("moved_away", instance=U, amounts={"VCPU": 2, "CUSTOM_PCI": 1}, other_host="compute-18")
CAPPED = seen("rpc_version_cap", versions={"requested": "5.0", "cap": "4.17"})
NO_PORT = seen("port_deleted", instance=U, port=OTHER)
POWER_STATES = (
    "While synchronizing instance power states, found {} instances in the database and {} "
    "instances on the hypervisor."
)
UNTIMED = {"last_seen": None}

LINES: dict[str, tuple[str, dict[str, t.Any]]] = {
    "not in the database": (tracker(MISSING, "INFO"), ABSENT),
    "not managed": (tracker(UNMANAGED), KEPT),
    "not managed, from Python 2": (
        tracker(
            UNMANAGED.replace("'resources'", "u'resources'").replace("'VCPU': 12", "u'VCPU': 12L")
        ),
        KEPT,
    ),
    "moved": (tracker(MOVED), AWAY),
    "moved, and since then on no host": (
        tracker(MOVED.replace("compute-18(compute-18.example.org)", "None(None)")),
        {**AWAY, "other_host": None},
    ),
    "counts": (
        log("nova.compute.manager", POWER_STATES.format(1, 2)),
        seen("power_state_counts", counts={"database": 1, "hypervisor": 2}),
    ),
    "counts, of a context with global and own request": (
        "2018-03-02 12:07:35.608 7 WARNING nova.compute.manager [req-a - req-b admin admin - "
        f"default default] {POWER_STATES.format(1, 0)}",
        seen("power_state_counts", "2018-03-02T12:07:35Z", counts={"database": 1, "hypervisor": 0}),
    ),
    "RPC, at the end of a traceback": (
        f"{STAMP} ERROR oslo_messaging.rpc.server oslo_messaging.rpc.client.RPCVersionCapError: "
        f"{CAP}",
        CAPPED,
    ),
    "RPC, the day cut off": (
        f"12:05:33.840 35 ERROR oslo_messaging.rpc.server RPCVersionCapError: {CAP}",
        {**CAPPED, **UNTIMED},
    ),
    "RPC, as a part of a message": (
        f"{STAMP} ERROR oslo_messaging.rpc.server [req-a - - - - -] Exception during message "
        f"handling: RPCVersionCapError: {CAP}",
        CAPPED,
    ),
    "name taken": (
        log("nova.scheduler.client.report", CONFLICT, "ERROR"),
        seen("provider_conflict", provider={"uuid": PROVIDER, "name": "compute-17.example.org"}),
    ),
    "another host's node": (
        log("nova", f"Unhandled error: nova.exception.InvalidConfiguration: {RENAMED}", "CRITICAL"),
        seen("renamed_host", other_host="compute-7"),
    ),
    "a node of another name": (
        log(
            "nova",
            f"My compute node {PROVIDER} has hypervisor_hostname compute-7 but virt driver reports "
            "it should be compute-17. Possible rename detected, refusing to start!",
        ),
        seen("renamed_host", other_host="compute-7"),
    ),
    "no identity": (
        log("nova", f"Unhandled error: nova.exception.InvalidConfiguration: {LOST}", "CRITICAL"),
        seen("lost_identity"),
    ),
    "another database": (f"{STAMP} ERROR nova {FOREIGN}", seen("unknown_to_database")),
    "no provider": (
        log("nova.compute.manager", f"ValueError: No such provider {PROVIDER}", "ERROR"),
        seen("no_such_provider", provider={"uuid": PROVIDER, "name": None}),
    ),
    "a class in use": (
        f"{STAMP} ERROR nova.compute.manager  update conflict: Inventory for 'VGPU' on resource "
        f"provider '{PROVIDER}' in use.  ",
        seen("inventory_in_use", provider={"uuid": PROVIDER, "name": None}),
    ),
    "port deleted": (log("nova.compute.manager", PORT_DELETED, "ERROR"), NO_PORT),
    "port deleted, in an older release": (
        PORT_DELETED.replace("providers", "provider").replace(f",{OTHER}", "").replace("are", "is"),
        {**NO_PORT, **UNTIMED},
    ),
    "the message alone": (MISSING, {**ABSENT, **UNTIMED}),
    "a format of one's own": (
        f"2024-10-02T12:07:18+02:00|nova|W|{MISSING}",
        {**ABSENT, "last_seen": "2024-10-02T10:07:18Z"},
    ),
    "with the instance": (tracker(f"[instance: {U}] {MISSING}", "INFO"), ABSENT),
    "in the colors of DevStack": (
        "\x1b[00;33mWARNING nova.compute.resource_tracker [\x1b[01;36mNone "
        "req-f8320401-70fb-4532-8d87-e5240e53f68b "
        f"\x1b[00;36mNone None\x1b[00;33m] \x1b[01;35m\x1b[00;33m{MOVED}\x1b[00m",
        {**AWAY, **UNTIMED},
    ),
    "JSON": (
        json.dumps(
            {
                "message": UNMANAGED,
                "name": "nova.compute.resource_tracker",
                "created": 1727870838.8,
                "hostname": "compute-3",
                "traceback": None,
            }
        ),
        {**KEPT, "host": "compute-3"},
    ),
    "JSON, in its traceback": (
        json.dumps(
            {
                "message": "Exception during message handling",
                "name": "oslo_messaging.rpc.server",
                "traceback": f"a\nb: {CAP}",
            }
        ),
        {**CAPPED, **UNTIMED},
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_log_line_becomes_a_record(name: str) -> None:
    line, expected = LINES[name]
    record = {"host": "compute-17", "count": 1, "source": "nova-compute.log", **expected}

    assert may_contain_complaint(line.encode())
    assert only(line) == {**dict.fromkeys(FACTS), "first_seen": record["last_seen"], **record}


def test_examples_cover_every_kind_of_line() -> None:
    assert {expected["kind"] for _line, expected in LINES.values()} == set(COMPLAINT_KINDS)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (
            "nova-compute[1590924]: 2020-01-01 00:00:00.000 7 INFO nova.compute.resource_tracker "
            f"[-] {MISSING}",
            "not_in_database",
        ),
        (f"devstack@n-cpu.service[7]: {LINES['in the colors of DevStack'][0]}", "moved_away"),
    ],
    ids=["with its own time", "in colors and without a time"],
)
def test_journald_record_has_time_and_host(line: str, kind: str) -> None:
    record = only(f"1727870838.800123 compute-3 {line}", journal=True)

    assert (record["kind"], record["instance"]) == (kind, U)
    assert (record["host"], record["last_seen"]) == ("compute-3", AT)


def test_given_host_name_is_preferred_to_that_in_the_line() -> None:
    complaints = Complaints("node-3.example.org", "compute-17", 100)
    complaints.add(LINES["JSON"][0].encode(), "log")

    assert complaints.records()[0]["host"] == "node-3.example.org"


def test_repeated_complaint_in_any_order_is_one_record_with_first_and_last_time() -> None:
    times = ["02 12:07:18", "01 00:00:00", "03 23:59:59", "02 00:00:00"]
    lines = [tracker(MISSING).replace("02 12:07:18", stamp) for stamp in times]

    record = only(*lines, MISSING)

    assert record["count"] == 5
    assert record["first_seen"] == "2024-10-01T00:00:00Z"
    assert record["last_seen"] == "2024-10-03T23:59:59Z"


def test_different_servers_amounts_and_hosts_are_different_records() -> None:
    lines = [UNMANAGED, UNMANAGED.replace("12", "6"), UNMANAGED.replace(U, OTHER)]
    lines += [MOVED, MOVED.replace("compute-18(", "compute-19(")]

    assert len(read(*map(tracker, lines), *map(tracker, lines)).records()) == 5


def test_records_are_ordered_by_the_last_time_newest_first() -> None:
    old, new = tracker(MISSING).replace("2024", "2023"), tracker(MISSING).replace(U, OTHER)

    assert [record["instance"] for record in read(old, new, CAP).records()] == [OTHER, U, None]


def test_older_lines_are_skipped_and_lines_without_a_time_are_kept() -> None:
    since = datetime.datetime(2024, 10, 2, 12, 7, 19, tzinfo=UTC)
    newer = tracker(MISSING).replace("12:07:18", "12:07:19").replace(U, OTHER)

    complaints = read(tracker(MISSING), newer, CAP, since=since)

    assert [record["instance"] for record in complaints.records()] == [OTHER, None]


def test_only_known_complaints_are_counted_beyond_the_limit() -> None:
    lines = [
        tracker(MISSING.replace(U, f"00000000-0000-4000-8000-{number:012}")) for number in range(12)
    ]

    complaints = read(*lines[:10], limit=10)
    assert not complaints.truncated

    for line in lines:
        complaints.add(line.encode(), "nova-compute.log")
    assert complaints.truncated
    assert [record["count"] for record in complaints.records()] == [2] * 10


def test_time_without_a_zone_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Etc/GMT-3")
    time.tzset()
    try:
        (record,) = read(tracker(MISSING), zone=None).records()
        assert record["last_seen"] == "2024-10-02T09:07:18Z"
    finally:
        monkeypatch.undo()
        time.tzset()


UNTRUE = {
    "quoted by another logger": log(
        "nova.compute.manager", f"[instance: {OTHER}] {MISSING}", "INFO"
    ),
    "in the middle of a message": tracker(f"Server called '{MISSING}' is being deleted."),
    "quoted in JSON by another logger": json.dumps(
        {"message": MISSING, "name": "nova.compute.manager"}
    ),
    "no uuid": tracker(MISSING.replace(U, "../../etc/passwd")),
    "a uuid that is too short": tracker(MISSING.replace(U, U[:-1])),
    "a uuid that is too long": tracker(MISSING.replace(U, f"{U}0")),
    "a uuid with a newline": tracker(MISSING.replace(U, f"{U[:-1]}\n")),
    "another 409": log("nova.scheduler.client.report", CONFLICT.replace(" name:", " uuid:")),
    "a host with a space": tracker(MOVED.replace("compute-18(", "a b(")),
    "counts that are none": log("nova.compute.manager", POWER_STATES.format(-1, 2)),
    "JSON that is cut": LINES["JSON"][0][:-40].replace("Instance ", "Instances "),
    "JSON too deep": "[" * 50_000,
    "nothing": "",
}


@pytest.mark.parametrize("name", UNTRUE)
def test_other_lines_are_not_records(name: str) -> None:
    assert read(UNTRUE[name]).records() == []


@pytest.mark.parametrize(
    "amounts",
    [
        "{'resources': {}}",
        "{'resources': {'VCPU': -1}}",
        "{'resources': {'VCPU': 1.5}}",
        "{'resources': {'vcpu': __import__('os').system('id')}}",
        "{'resources': {'VCPU': 1, 'x y': 2}}",
        "{'resources': {'VCPU': 9999999999999999999}}",
        "{'resources': {" + ", ".join(f"'CUSTOM_{number}': 1" for number in range(200)) + "}}",
        "{" * 10_000,
        "None",
    ],
)
def test_unreadable_amounts_are_null_and_the_complaint_is_kept(amounts: str) -> None:
    line = tracker(
        UNMANAGED.replace("{'resources': {'VCPU': 12, 'MEMORY_MB': 32768, 'DISK_GB': 80}}", amounts)
    )

    assert (only(line)["instance"], only(line)["amounts"]) == (U, None)


@pytest.mark.parametrize(
    "changed",
    [
        {"message": [MISSING]},
        {"name": 7},
        {"created": "x"},
        {"created": float("nan")},
        {"created": 10**30},
        {"traceback": 7},
    ],
)
def test_json_of_another_shape_is_text(changed: dict[str, t.Any]) -> None:
    entry = {"message": MISSING, "name": "nova.compute.resource_tracker", **changed}
    record = only(json.dumps(entry))

    assert (record["instance"], record["last_seen"]) == (U, None)


def test_host_in_json_that_is_not_text_can_be_returned() -> None:
    entry = {"message": MISSING, "name": "nova.compute.resource_tracker", "hostname": "a\udc80b"}

    assert only(json.dumps(entry))["host"] == "a?b"


@pytest.mark.parametrize(
    "stamp",
    ["2024-13-40 12:07:18", "2024-02-30 12:07:18", "2024-10-02 99:99:99", "0000-00-00 00:00:00"],
)
def test_impossible_time_is_null(stamp: str) -> None:
    assert only(tracker(MISSING).replace("2024-10-02 12:07:18", stamp))["last_seen"] is None


def test_bytes_that_are_not_text_do_no_harm() -> None:
    line = tracker(MOVED).encode().replace(b"compute-18(", b"comp\xff\x00\x1b]0;x\x07te-18(")

    record = only(line)

    assert record["instance"] == U
    json.dumps(record).encode("utf-8")


@given(st.binary(max_size=300), st.sampled_from(sorted(LINES)), st.integers(0, 600), st.booleans())
def test_any_line_is_accepted(noise: bytes, name: str, place: int, journal: bool) -> None:
    line = LINES[name][0].encode()

    for record in read(line[:place] + noise + line[place:], noise, journal=journal).records():
        assert record["kind"] in COMPLAINT_KINDS
        json.dumps(record).encode("utf-8")


NOISE = log("nova.virt.libvirt.driver", "Checking nothing in particular\n", "DEBUG")
MEGABYTE = 1 << 20
COMPRESS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def line(day: int, message: str = MISSING) -> str:
    return tracker(message, "INFO").replace("2024-10-02", f"2024-10-{day:02}") + "\n"


def written(path: Path, text: str, day: int = 9) -> Path:
    """Write a log that was last changed on that day."""
    path.write_bytes(COMPRESS.get(path.suffix, bytes)(text.encode()))
    moment = datetime.datetime(2024, 10, day, 13, tzinfo=UTC).timestamp()
    os.utime(path, (moment, moment))
    return path


def read_logs(*patterns: object, **options: t.Any) -> tuple[Complaints, list[Source]]:
    complaints = read(**options)
    return complaints, read_files(map(str, patterns), complaints)


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
    older = written(tmp_path / "nova-compute.log.1.xz", NOISE + line(2), 3)
    other = written(tmp_path / "nova-compute.log.1.bz2", NOISE + line(2), 2)
    written(tmp_path / "nova-api.log", line(1))

    complaints, sources = read_logs(
        tmp_path / "nova-compute.log*", tmp_path / "*compute*", tmp_path / "nothing*"
    )
    (record,) = complaints.records()

    assert [(source.name, source.lines, source.error) for source in sources] == [
        (str(newest), 2, None),
        (str(older), 2, None),
        (str(other), 2, None),
        (str(oldest), 1001, None),
    ]
    assert sources[3].bytes == len(line(1) + NOISE * 1000)
    assert (record["count"], record["source"]) == (4, str(newest))
    assert record["first_seen"] == "2024-10-01T12:07:18Z"
    assert record["last_seen"] == "2024-10-03T12:07:18Z"


def test_newest_files_win_when_there_are_too_many_complaints(tmp_path: Path) -> None:
    for day in (1, 2, 3):
        text = line(day, MISSING.replace(U[:8], f"{day:08}"))
        written(tmp_path / f"nova-compute.log.{9 - day}", text, day)

    complaints, _sources = read_logs(tmp_path / "*", limit=2)

    assert complaints.truncated
    assert [record["instance"][:8] for record in complaints.records()] == ["00000003", "00000002"]


def test_files_last_written_before_the_period_are_skipped(tmp_path: Path) -> None:
    written(tmp_path / "a", line(5) + line(6), 6)
    written(tmp_path / "b", line(1), 1)

    since = datetime.datetime(2024, 10, 6, tzinfo=UTC)
    complaints, sources = read_logs(tmp_path / "*", since=since)

    assert [(source.skipped, source.lines) for source in sources] == [(False, 2), (True, 0)]
    assert complaints.records()[0]["count"] == 1


def test_file_with_two_names_is_read_once(tmp_path: Path) -> None:
    path = written(tmp_path / "nova-compute.log", line(1))
    (tmp_path / "nova-compute.log.link").symlink_to(path)

    complaints, sources = read_logs(tmp_path / "*")

    assert (len(sources), complaints.records()[0]["count"]) == (1, 1)


def test_missing_final_newline_and_foreign_line_ends_are_read(tmp_path: Path) -> None:
    written(tmp_path / "log", line(1).replace("\n", "\r\n") + line(2).rstrip())

    assert read_logs(tmp_path / "*")[0].records()[0]["count"] == 2


def test_unreadable_file_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    whole = line(1) + NOISE * 20_000
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress((whole + os.urandom(9999).hex()).encode())[:-2000])
    (tmp_path / "broken.gz").write_bytes(b"\x1f\x8b\x08\x00 this is not gzip")
    (tmp_path / "broken.xz").write_bytes(b"\xfd7zXZ\0 nor this xz")
    (tmp_path / "log.zst").write_bytes(b"\x28\xb5\x2f\xfd nor this zstd")
    (tmp_path / "folder").mkdir()
    (tmp_path / "nowhere").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")
    written(tmp_path / "log", line(2))

    complaints, sources = read_logs(tmp_path / "*")
    errors = {Path(source.name).name: source.error for source in sources}

    assert complaints.records()[0]["count"] == 2
    assert errors["log"] is None
    assert "to its end" in errors.pop("cut.gz")
    for name, words in (
        ("broken.gz", ""),
        ("broken.xz", ""),
        ("log.zst", "" if sys.version_info >= (3, 14) else "compression"),
        ("folder", "Is a directory"),
        ("nowhere", "No such file"),
        ("pipe", "not a file"),
    ):
        error = errors[name] or ""
        assert error.startswith(f"{tmp_path / name} ") and words in error
        assert "to its end" not in error


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_forbidden_file_is_reported(tmp_path: Path) -> None:
    path = written(tmp_path / "log", line(1))
    path.chmod(0)

    assert "Permission denied" in str(read_logs(path)[1][0].error)


def test_pieces_are_whole_lines_and_lose_nothing() -> None:
    lines = [f"{number}: {'x' * (number % 3000)}\n" for number in range(2000)]
    text = "".join([*lines, "end"]).encode()

    parts = list(read_chunks(io.BytesIO(text)))

    assert b"".join(parts) == text
    assert len(parts) > 3
    assert all(part.endswith(b"\n") for part in parts[:-1])


@pytest.mark.parametrize("length", [65_000, 70_000, 300_000, 3 * MEGABYTE, 3 * MEGABYTE + 17])
def test_long_line_is_cut_and_its_neighbors_are_whole(length: int) -> None:
    text = line(1).encode() + b"x" * length + b"\n" + line(2).encode()

    lines = b"".join(read_chunks(io.BytesIO(text))).split(b"\n")

    assert [lines[0], lines[-2], lines[-1]] == [line(1)[:-1].encode(), line(2)[:-1].encode(), b""]
    assert len(lines) == 4
    assert set(lines[1]) == {ord("x")} and len(lines[1]) >= 65_000


def test_endless_line_needs_little_memory() -> None:
    total, longest, memory = peak(Endless(200 * MEGABYTE, b"x" * MEGABYTE))

    assert total == longest <= MEGABYTE
    assert memory < 16 * MEGABYTE


def test_log_of_any_size_needs_little_memory() -> None:
    first, last = line(1).encode(), line(2).encode()

    total, longest, memory = peak(Endless(200 * MEGABYTE, NOISE.encode() * 1000, first, last))

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
    since = datetime.datetime.fromtimestamp(1727870000.5, UTC)
    complaints = read(since=since)

    source = read_unit(journalctl(tmp_path, f"cat {shown}"), "nova-compute", complaints)
    (record,) = complaints.records()

    assert (source.name, source.lines, source.error) == ("nova-compute", 3, None)
    assert (record["host"], record["last_seen"]) == ("compute-3", AT)
    assert record["source"] == "nova-compute"
    assert {"--unit=nova-compute", "--output=short-unix", "--all", "--since=@1727870000"} <= set(
        (tmp_path / "arguments").read_text().splitlines()
    )


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("echo No files were found. >&2; exit 1", "ended with 1: No files were found."),
        ("head -c 9999999 /dev/zero >&2; exit 3", "ended with 3: "),
    ],
)
def test_unreadable_journal_is_reported(tmp_path: Path, script: str, error: str) -> None:
    source = read_unit(journalctl(tmp_path, script), "nova-compute", read())

    assert f" {error}" in str(source.error)
    assert len(str(source.error)) < 500


@pytest.mark.parametrize("command", [None, "/nonesuch/journalctl"])
def test_missing_journalctl_reads_no_journal(command: str | None) -> None:
    source = read_unit(command, "nova-compute", read())

    assert str(source.error).startswith("The journal of nova-compute ") and not source.lines
