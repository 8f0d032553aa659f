"""Values that no service sends, as something on the way or a fault of the service may."""

import typing as t

import pytest

from .......plugins.module_utils._core.clients.answer_types import find_wrong_type

UUID = "8a8177dd-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({"inventories": {"VCPU": {"total": None}}}, "total"),
        ({"inventories": {"VCPU": {"total": "8"}}}, "total"),
        ({"inventories": {"VCPU": {"total": 8, "allocation_ratio": "16"}}}, "allocation_ratio"),
        ({"inventories": {"VCPU": {"allocation_ratio": float("nan")}}}, "allocation_ratio"),
        ({"inventories": {"VCPU": {"allocation_ratio": 1e308}}}, "allocation_ratio"),
        ({"inventories": {"VCPU": {"reserved": -(10**40)}}}, "reserved"),
        ({"inventories": []}, "inventories"),
        ({"service": {"host": 3}}, "host"),
        ({"usages": {"VCPU": None}}, "usages"),
        ({"usages": {"VCPU": 10**40}}, "usages"),
        ({"allocations": {UUID: {"resources": {"VCPU": -1}}}}, "resources"),
        ({"allocations": {UUID: {"resources": {"VCPU": 1.5}}}}, "resources"),
        ({"allocations": {UUID: {"resources": {"VCPU": True}}}}, "resources"),
        ({"allocations": {UUID: {"resources": {"VCPU": {}}}}}, "resources"),
        ({"allocations": {UUID: {"resources": {"VCPU": {"used": 1}}}}}, "resources"),
        ({"allocations": {UUID: {"resources": None}}}, "resources"),
        ({"allocations": {f" {UUID}": {"resources": {}}}}, "allocations"),
        ({"allocations": []}, "allocations"),
        ({"resource_providers": [None]}, "resource_providers"),
        ({"migrations": {}}, "migrations"),
        ({"consumer_generation": "1"}, "consumer_generation"),
        ({"consumer_generation": False}, "consumer_generation"),
        ({"server": {"status": ["ACTIVE"]}}, "status"),
        ({"servers": [{"id": "a"}, {"OS-EXT-STS:task_state": {}}]}, "OS-EXT-STS:task_state"),
        ({"server": {"OS-EXT-SRV-ATTR:host": "\ud800"}}, "OS-EXT-SRV-ATTR:host"),
        ({"servers": {"a": {}}}, "servers"),
        ({"migrations": [{"status": 7}]}, "status"),
        ([[[[{"host": 1}]]]], "host"),
        ({"server": {"flavor": {"extra_specs": False}}}, "extra_specs"),
        ({"flavor": {"extra_specs": {"hw:cpu_policy": 7}}}, "extra_specs"),
        ({"flavor": {"extra_specs": {"hw:cpu_policy": None}}}, "extra_specs"),
        ({"server": {"flavor": []}}, "flavor"),
        ({"server": {"image": "x"}}, "image"),
        ({"server": {"image": {"properties": True}}}, "properties"),
        (
            {"server": {"os-extended-volumes:volumes_attached": [7]}},
            "os-extended-volumes:volumes_attached",
        ),
        ({"traits": ["COMPUTE_NODE", 7]}, "traits"),
        ({"traits": {"COMPUTE_NODE": 1}}, "traits"),
    ],
)
def test_value_of_a_wrong_type_is_found(body: t.Any, wrong: str) -> None:
    assert find_wrong_type(body) == wrong


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        None,
        "x",
        {"allocations": {UUID: {"resources": {"VCPU": 0}, "generation": 3}}},
        {"allocations": {}, "consumer_generation": None},
        {"provider_summaries": {"a": {"resources": {"VCPU": {"capacity": 8, "used": 1}}}}},
        {"inventories": {"VCPU": {"total": 8, "allocation_ratio": 16}}},
        {"hypervisors": [{"service": {"host": "a", "disabled_reason": None}, "state": "up"}]},
        # GET /os-hosts/{host}
        {"host": [{"resource": {"project": "(total)", "host": "a", "cpu": 8, "disk_gb": 1}}]},
        # A flavor without swap has an empty text there.
        {"flavor": {"ram": 512, "swap": "", "disk": 1}},
        {"instanceAction": {"events": None, "message": None}},
        {"server": {"name": "\U0001f600 \u202e\x00"}},
        # Users choose these keys.
        {"server": {"metadata": {"total": "x", "status": "y"}, "addresses": {"total": []}}},
        {"server": {"image": {"properties": {"reserved": "x"}}}},
        {"flavor": {"extra_specs": {"resources": "x"}}},
        {"server": {"flavor": {"extra_specs": {}}, "image": "", "metadata": {}}},
        {"server": {"image": {"id": UUID, "properties": {"hw_numa_nodes": 2}}}},
        {"traits": [], "resource_provider_generation": 1},
        {"availabilityZoneInfo": [{"hosts": {"total": {"nova-compute": {"active": True}}}}]},
        {"services": [{"id": 7, "state": None, "forced_down": True}]},
    ],
)
def test_what_services_send_is_right(body: t.Any) -> None:
    assert find_wrong_type(body) is None


def test_deeply_nested_answer_is_searched() -> None:
    body: t.Any = {"total": "8"}
    for _level in range(100_000):
        body = [body]

    assert find_wrong_type(body) == "total"
