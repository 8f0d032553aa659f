# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Neutron, Cinder and Cyborg say what decides on a request, and end no run when they do not."""

from __future__ import annotations

import dataclasses as d
import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._common.parallel import ReadOnce
from ansible_collections.osops.placement.plugins.module_utils._core.clients.neutron import (
    NeutronReader,
)
from ansible_collections.osops.placement.plugins.module_utils._core.clients.other_services import (
    CyborgReader,
    VolumeReader,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.resource_request import (
    AcceleratorRequest,
    DeviceProfile,
    PortGroup,
    RootVolume,
    ServerPort,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.snapshot import NOT_ASKED
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.service import Service

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
    ("volume", "properties"),
    [
        ({"volume_image_metadata": {"hw_cpu_policy": "dedicated"}}, {"hw_cpu_policy": "dedicated"}),
        ({"bootable": "true"}, {}),
        # Cinder hides the properties, or somebody else's volume is meant.
        ({"bootable": "false"}, None),
    ],
)
def test_root_volume_has_the_properties_of_its_image(
    volume: dict[str, t.Any], properties: dict[str, str] | None
) -> None:
    service = Service({"/volumes/v": {"volume": {"id": "v", **volume}}})
    found = VolumeReader(service.open("Cinder")).get_root_volume("v").value

    assert found == (None if properties is None else RootVolume("v", properties))


def test_device_profile_is_asked_for_once_and_must_be_the_only_one() -> None:
    groups = [{"resources:FPGA": "1", "trait:CUSTOM_X": "required"}]
    rows = [{"name": "fpga", "groups": groups}, {"name": "other", "groups": []}]
    service = Service({"/v2/device_profiles": {"device_profiles": [*rows, rows[1]]}})
    profiles = ReadOnce(CyborgReader(service.open("Cyborg")).get_device_profile)

    assert profiles.get("fpga").value == DeviceProfile("fpga", tuple(groups))
    assert profiles.get("fpga").request == "GET /v2/device_profiles?name=fpga"
    assert profiles.get("other").value is None
    assert len(service.asked) == 2


def test_accelerator_requests_of_another_server_do_not_count() -> None:
    row = {
        "uuid": "a",
        "instance_uuid": "other",
        "device_profile_name": "p",
        "device_profile_group_id": 0,
    }
    service = Service({"/v2/accelerator_requests": {"arqs": [row]}})

    assert CyborgReader(service.open("Cyborg")).list_accelerator_requests("server").value == ()


def test_accelerator_requests_name_their_providers() -> None:
    row = {
        "uuid": "arq",
        "device_profile_name": "fpga",
        "device_profile_group_id": 0,
        "device_rp_uuid": "rp",
    }
    service = Service({"/v2/accelerator_requests": {"arqs": [row]}})
    answer = CyborgReader(service.open("Cyborg")).list_accelerator_requests("server")

    assert answer.value == (AcceleratorRequest("arq", "fpga", 0, "rp"),)


def test_service_that_the_catalogue_lacks_is_not_asked() -> None:
    assert NeutronReader(None).list_ports("server") == NOT_ASKED
    assert VolumeReader(None).get_root_volume("v") == NOT_ASKED
    assert CyborgReader(None).get_device_profile("x") == NOT_ASKED


@pytest.mark.parametrize(("given", "status"), [(403, 403), (404, 404), (0, 0), ({"x": 1}, 0)])
def test_refusal_and_silence_are_answers(
    given: t.Any, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    service = Service({"/volumes/v": given})
    answer = VolumeReader(service.open("Cinder")).get_root_volume("v")

    assert (answer.request, answer.status, answer.value) == ("GET /volumes/v", status, None)


def test_silent_service_is_not_asked_for_ever() -> None:
    service = Service({"/volumes/v": 0})
    reader = VolumeReader(service.open("Cinder"))
    answers = [reader.get_root_volume("v") for _attempt in range(10)]

    assert {answer.status for answer in answers} == {0}
    assert len(service.asked) == 3


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
