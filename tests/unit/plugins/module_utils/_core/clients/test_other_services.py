"""How the nodes of Ironic are listed: all pages, with the fields that this Ironic has."""

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._common.errors import CloudError
from .......plugins.module_utils._common.parallel import ReadOnce
from .......plugins.module_utils._core.clients.other_services import (
    BareMetalReader,
    CyborgReader,
    NeutronReader,
    VolumeReader,
    parse_port,
)
from .......plugins.module_utils._core.models.other_services import (
    AcceleratorRequest,
    DeviceProfile,
    PortGroup,
    RootVolume,
    ServerPort,
)
from .......plugins.module_utils._core.models.snapshot import NOT_ASKED, Answer
from ...service import Response, Service

NODE = {
    "uuid": "node-1",
    "provision_state": "active",
    "maintenance": False,
    "power_state": "power on",
    "instance_uuid": "server-1",
    "resource_class": "gold",
    "owner": "project-1",
    "provision_updated_at": "2026-11-01T12:00:00+00:00",
    "updated_at": None,
}


class Ironic(Service):
    """Pages of nodes; a number stands for the status of an error. sent: what was asked for them."""

    def __init__(self, *pages: t.Any, newest: str = "1.94", status: int = 200) -> None:
        super().__init__({})
        self.pages = list(pages)
        self.root = Response(status, {"version": {"version": newest}})
        self.sent: list[tuple[str, dict[str, t.Any]]] = []

    def request(self, url: str, method: str, **options: t.Any) -> Response:
        if url == "http://service/":
            return self.root
        self.sent.append((options["microversion"], dict(options["params"])))
        page = self.pages.pop(0)
        return Response(page, {}) if isinstance(page, int) else Response(200, page)


def list_nodes(ironic: Ironic) -> Answer[t.Any]:
    return BareMetalReader(ironic.open("Ironic")).list_nodes()


def test_every_page_is_read_and_a_repeated_node_counts_once() -> None:
    second = {**NODE, "uuid": "node-2"}
    ironic = Ironic({"nodes": [NODE]}, {"nodes": [NODE, second]}, {"nodes": []})
    nodes = list_nodes(ironic).value

    assert [node.uuid for node in nodes] == ["node-1", "node-2"]
    assert [query.get("marker") for _version, query in ironic.sent] == [None, "node-1", "node-2"]
    assert nodes[0].instance == "server-1"
    # Nova's times have no zone, and both are compared.
    assert nodes[0].changed_at == "2026-11-01T12:00:00"


@pytest.mark.parametrize(
    ("newest", "microversion", "fields"),
    [("1.94", "1.65", {"owner", "lessee"}), ("1.58", "1.58", {"owner"}), ("1.31", "1.31", set())],
)
def test_only_the_fields_of_this_ironic_are_asked_for(
    newest: str, microversion: str, fields: set[str]
) -> None:
    ironic = Ironic({"nodes": []}, newest=newest)
    list_nodes(ironic)

    ((sent, query),) = ironic.sent
    assert sent == microversion
    assert set(query["fields"].split(",")) & {"owner", "lessee"} == fields


def test_page_that_is_refused_leaves_the_listing_without_a_value() -> None:
    answer = list_nodes(Ironic({"nodes": [NODE]}, 403))

    assert (answer.status, answer.value) == (403, None)


def test_ironic_that_does_not_name_its_versions_is_an_error() -> None:
    with pytest.raises(CloudError, match="503"):
        list_nodes(Ironic(status=503))


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
    row = {"uuid": "arq", "device_profile_name": "fpga", "device_profile_group_id": 0}
    rows = [{**row, "device_rp_uuid": "rp"}, {**row, "uuid": "b", "instance_uuid": "other"}]
    service = Service({"/v2/accelerator_requests": {"arqs": rows}})
    answer = CyborgReader(service.open("Cyborg")).list_accelerator_requests("server")

    assert answer.value == (AcceleratorRequest("arq", "fpga", 0, "rp"),)


def test_service_that_the_catalogue_lacks_is_not_asked() -> None:
    assert NeutronReader(None).list_ports("server") == NOT_ASKED
    assert VolumeReader(None).get_root_volume("v") == NOT_ASKED
    assert CyborgReader(None).get_device_profile("x") == NOT_ASKED


@pytest.mark.parametrize(("given", "status"), [(403, 403), (404, 404), (0, 0), ({"x": 1}, 0)])
def test_refusal_and_silence_are_answers(given: t.Any, status: int) -> None:
    service = Service({"/volumes/v": given})
    answer = VolumeReader(service.open("Cinder")).get_root_volume("v")

    assert (answer.request, answer.status, answer.value) == ("GET /volumes/v", status, None)


def test_silent_service_is_not_asked_for_ever() -> None:
    service = Service({"/volumes/v": 0})
    reader = VolumeReader(service.open("Cinder"))
    answers = [reader.get_root_volume("v") for _attempt in range(10)]

    assert {answer.status for answer in answers} == {0}
    assert len(service.asked) == 3


# Ports as Neutron shows them, with all that decides whether an allocation is theirs


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
