"""Ports as Neutron shows them, with all that decides whether an allocation is theirs."""

from __future__ import annotations

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._core.clients.neutron import NeutronReader, parse_port
from .......plugins.module_utils._core.models.other_services import PortGroup, ServerPort
from ...service import Service

PORT = {"id": "port", "binding:profile": {}, "binding:vnic_type": "normal"}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({}, {"shows_request": False, "device_owner": None, "host": None, "has_trunk": False}),
        ({"resource_request": None}, {"shows_request": True, "groups": ()}),
        ({"device_owner": "compute:nova"}, {"device_owner": "compute:nova"}),
        ({"binding:host_id": ""}, {"host": None}),
        ({"binding:host_id": "compute-1"}, {"host": "compute-1"}),
        ({"trunk_details": {"trunk_id": "trunk", "sub_ports": []}}, {"has_trunk": True}),
        ({"trunk_details": None}, {"has_trunk": False}),
    ],
    ids=str,
)
def test_port_has_what_decides_on_a_leak(row: dict[str, t.Any], expected: dict[str, t.Any]) -> None:
    port = parse_port({**PORT, **row})
    assert {name: getattr(port, name) for name in expected} == expected


BANDWIDTH = "NET_BW_EGR_KILOBIT_PER_SEC"


def _read_port(row: t.Mapping[str, t.Any]) -> ServerPort:
    service = Service({"/v2.0/ports": {"ports": [{"id": "p", **row}]}})
    reader = NeutronReader(service.open("Neutron"), roles={"admin"})
    ports = reader.list_ports("server").value
    assert ports is not None and service.asked == ["/v2.0/ports?device_id=server"]
    return ports[0]


@pytest.mark.parametrize(
    ("row", "port"),
    [
        ({}, ServerPort("p", None, None)),
        ({"binding:profile": {}}, ServerPort("p", None, ())),
        ({"binding:profile": None, "resource_request": None}, ServerPort("p", None, ())),
        (
            {
                "binding:vnic_type": "normal",
                "binding:profile": {"allocation": "rp"},
                "resource_request": {"required": ["T"], "resources": {BANDWIDTH: 5}},
            },
            ServerPort(
                "p", "normal", (PortGroup("p", {BANDWIDTH: 5}, frozenset({"T"})),), {"": "rp"}
            ),
        ),
        (
            {
                "binding:profile": {"allocation": {"g1": "rp1", "g2": "rp2"}},
                "resource_request": {
                    "request_groups": [
                        {"id": "g1", "required": ["T"], "resources": {BANDWIDTH: 5}},
                        {"id": "g2", "resources": {"PACKETS": 1}},
                    ],
                    "same_subtree": ["g1", "g2"],
                },
            },
            ServerPort(
                "p",
                None,
                (
                    PortGroup("g1", {BANDWIDTH: 5}, frozenset({"T"})),
                    PortGroup("g2", {"PACKETS": 1}),
                ),
                {"g1": "rp1", "g2": "rp2"},
                ("g1", "g2"),
            ),
        ),
        # The request is hidden, and the allocation shows that there is one.
        ({"binding:profile": {"allocation": "rp"}}, ServerPort("p", None, None, {"": "rp"})),
        (
            {"binding:profile": {}, "device_profile": "fpga"},
            ServerPort("p", None, (), device_profile="fpga"),
        ),
    ],
)
def test_port_shows_what_it_requests_and_where_it_is(row: t.Any, port: ServerPort) -> None:
    port = d.replace(port, shows_request="resource_request" in row)
    assert _read_port(row) == port


@pytest.mark.parametrize(
    ("sample", "are_known"),
    [
        pytest.param([], False, id="no-port-at-all"),
        pytest.param([{"project_id": "own", "binding:host_id": "h"}], False, id="own-ports-only"),
        pytest.param([{"project_id": "other"}], False, id="ports-of-an-own-network"),
        pytest.param([{"project_id": "other", "binding:host_id": "h"}], True, id="all-ports"),
        pytest.param([{"tenant_id": "other", "binding:host_id": "h"}], True, id="older-neutron"),
        pytest.param(403, False, id="refused"),
    ],
)
def test_no_port_proves_nothing_to_who_may_not_see_all(sample: t.Any, are_known: bool) -> None:
    """Nova lists no port either: it asks Neutron with the token of the same user."""
    listed = sample if isinstance(sample, int) else {"ports": sample}
    service = Service({"/v2.0/ports?device_id=server": {"ports": []}, "/v2.0/ports": listed})
    reader = NeutronReader(service.open("Neutron"), "own", {"placement_operator"})

    assert reader.list_ports("server").value == (() if are_known else None)
