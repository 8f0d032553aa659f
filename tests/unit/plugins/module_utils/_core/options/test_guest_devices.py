"""Results of `hypervisor_guest_info` as evidence: what they say, and what is refused."""

import json
import typing as t
from pathlib import Path

import pytest

from .......plugins.module_utils._common.errors import InvalidInput
from .......plugins.module_utils._core.models.other_services import GuestDevices, HostGuests
from .......plugins.module_utils._core.options.guest_devices import read_guests

SERVER, NODE = "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11", "0d1f5a3c-6b5e-4a3e-9d3a-2f1b7c8d9e0f"
READ_AT = "2026-10-25T20:13:51Z"


def domain(**fields: t.Any) -> dict[str, t.Any]:
    return {
        "uuid": SERVER,
        "state": "running",
        "persistent": True,
        "managed_save": False,
        "nova": {"name": "web-1"},
        "hostdevs": [],
        "mdevs": [],
        "other_devices": [],
        **fields,
    }


def result(*domains: dict[str, t.Any], **fields: t.Any) -> dict[str, t.Any]:
    return {
        "host": "compute-1",
        "compute_id": NODE,
        "read_at": READ_AT,
        "domains": list(domains),
        **fields,
    }


def read_one(found: dict[str, t.Any]) -> GuestDevices:
    (host,) = read_guests([result(found)])
    return host.guests[SERVER]


def test_result_becomes_evidence(tmp_path: Path) -> None:
    path = tmp_path / "guests.json"
    path.write_text(json.dumps(result(domain())))
    expected = HostGuests(
        "compute-1",
        NODE,
        READ_AT,
        {SERVER: GuestDevices("running", True, False, frozenset())},
        {SERVER: "running"},
    )

    assert read_guests([str(path)]) == read_guests([result(domain())]) == (expected,)


def test_file_that_others_can_replace_is_no_evidence(tmp_path: Path) -> None:
    path = tmp_path / "guests.json"
    path.write_text(json.dumps(result(domain())))
    tmp_path.chmod(0o777)

    with pytest.raises(InvalidInput, match="all users"):
        read_guests([str(path)])


def test_device_counts_with_all_that_it_belongs_to() -> None:
    virtual = {"address": "0000:84:10.1", "present": True, "physical_function": "0000:84:00.0"}
    mediated = {"uuid": "m", "parent": "0000:3B:00.4", "physical_function": "0000:3B:00.0"}
    guest = read_one(domain(hostdevs=[virtual], mdevs=[mediated]))

    assert guest.addresses == {"0000:84:10.1", "0000:84:00.0", "0000:3b:00.4", "0000:3b:00.0"}
    assert guest.unidentified == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"hostdevs": [{"address": "0000:84:1", "present": False, "physical_function": None}]},
        {"mdevs": [{"uuid": "m", "parent": None, "physical_function": None}]},
        {"other_devices": ["interface direct"]},
    ],
    ids=["not present", "without a parent", "another"],
)
def test_device_that_the_host_does_not_show_is_not_identified(fields: dict[str, t.Any]) -> None:
    assert len(read_one(domain(**fields)).unidentified) == 1


def test_domain_that_nova_did_not_define_is_no_guest() -> None:
    (host,) = read_guests([result(domain(nova=None))])
    assert host.guests == {}
    # But it may still be the guest of a server, so it keeps an allocation.
    assert host.states == {SERVER: "running"}


def without(document: dict[str, t.Any], key: str) -> dict[str, t.Any]:
    return {name: value for name, value in document.items() if name != key}


REFUSED: dict[str, t.Any] = {
    "nothing": "",
    "no dictionary": [1],
    "another module's result": {"changed": False},
    "without a host": without(result(), "host"),
    "without a time": without(result(), "read_at"),
    "with something else as the time": result(read_at="yesterday"),
    "without a compute node": without(result(), "compute_id"),
    "with something else as the compute node": result(compute_id=7),
    "without domains": without(result(), "domains"),
    "of an earlier version": result(without(domain(), "hostdevs")),
    "of an earlier version without others": result(without(domain(), "other_devices")),
    "with a device without an address": result(domain(hostdevs=[{"present": True}])),
}


@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED)
def test_anything_else_is_refused(value: t.Any) -> None:
    with pytest.raises(InvalidInput):
        read_guests([value])


@pytest.mark.parametrize("fields", [{"host": "another"}, {"compute_id": None}])
def test_two_results_of_one_host_are_refused(fields: dict[str, t.Any]) -> None:
    with pytest.raises(InvalidInput, match="two results"):
        read_guests([result(), result(**fields)])


def test_hosts_without_the_file_of_their_compute_node_are_told_apart_by_name() -> None:
    hosts = read_guests([result(compute_id=None), result(compute_id=None, host="compute-2")])
    assert [host.host for host in hosts] == ["compute-1", "compute-2"]
