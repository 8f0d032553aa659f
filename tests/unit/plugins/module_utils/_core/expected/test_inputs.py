"""What decides on a request, and why a part of it is unknown."""

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._core.expected.inputs import (
    build_inputs,
    find_root_volume,
    list_device_profiles,
    list_missing_inputs,
)
from .......plugins.module_utils._core.models.nova import Action
from .......plugins.module_utils._core.models.other_services import (
    Attachment,
    DeviceProfile,
    PortGroup,
    RootVolume,
    ServerPort,
)
from .......plugins.module_utils._core.models.snapshot import NOT_ASKED, Answer, Evidence
from ...shapes_of_requests import make_inputs, make_port, name_cases
from ...world import FLAVOR, NOW, World, answer

SILENCE: Answer[t.Any] = Answer("GET /volumes/v", "", 0, NOW)
QOS = ServerPort("p", "normal", (PortGroup("g", {"NET": 1}),))


def _evidence(server: dict[str, t.Any] | None = None, **answers: t.Any) -> Evidence:
    """Return the evidence about a server, with other answers than its own."""
    world = World()
    uuid = world.server(world.host("compute-1"), **(server or {}))
    return d.replace(world.snapshot().evidence[uuid], **answers)


def _volume(*actions: str, **answers: t.Any) -> Evidence:
    did = tuple(Action(action, "req", None, NOW, None) for action in actions)
    server = {"image": None, "image_properties": None, "volumes": ("v",)}
    return _evidence(server, **{"actions": answer("actions", 200, did), **answers})


def _root_volume(found: Answer[t.Any]) -> Evidence:
    return _volume(root_volume=found)


def _attached(found: t.Any = None, **fields: t.Any) -> Evidence:
    """Return the evidence about a server with an image and a volume, and how that is attached."""
    server = {"volumes": ("v",), **fields}
    if isinstance(found, Attachment):
        found = answer("GET", 200, (found,))
    return _evidence(server, **({"attachments": found} if found else {}))


def _ports(*ports: ServerPort, **answers: t.Any) -> Evidence:
    given: dict[str, t.Any] = {
        "interfaces": answer("GET /os-interface", 200, tuple(port.uuid for port in ports)),
        "server_ports": answer("GET /v2.0/ports", 200, ports),
    }
    return _evidence(None, **{**given, **answers})


@pytest.mark.parametrize(
    ("evidence", "volume_backed", "properties", "unread"),
    [
        (_evidence(), False, {}, {}),
        (_evidence({"image_properties": {"a": "b"}}), False, {"a": "b"}, {}),
        (_evidence({"image_properties": None}), False, None, {"image_properties": "2.98"}),
        (_evidence(shape=answer("GET", 503)), None, None, {"volume_backed": "503"}),
        (_evidence({"volumes": ("v",)}), False, {}, {}),
        (_attached(answer("GET", 403)), None, {}, {"volume_backed": "403"}),
        (_attached(Attachment("v", "/dev/vda")), True, {}, {}),
        (_attached(Attachment("v", None)), None, {}, {"volume_backed": "does not show which"}),
        (_attached(root_device=None), None, {}, {"volume_backed": "does not show which"}),
        (_volume(), True, {}, {}),
        (_root_volume(answer("GET", 200, RootVolume("v", {"a": "b"}))), True, {"a": "b"}, {}),
        (_root_volume(answer("GET", 403)), True, None, {"image_properties": "Cinder"}),
        (_root_volume(NOT_ASKED), True, None, {"image_properties": "catalogue has no"}),
        (_root_volume(SILENCE), True, None, {"image_properties": "did not answer"}),
        (_volume("swap_volume"), True, None, {"image_properties": "swapped"}),
        (_volume(actions=answer("GET", 403)), True, None, {"image_properties": "actions"}),
    ],
)
def test_image_and_root_disk(
    evidence: Evidence, volume_backed: bool | None, properties: t.Any, unread: dict[str, str]
) -> None:
    inputs = build_inputs(FLAVOR, evidence, {})

    assert inputs.volume_backed is volume_backed
    assert inputs.image_properties == properties
    for name, said in unread.items():
        assert said in inputs.unread[name]
    assert bool(unread) is bool(inputs.unread)


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        (_ports(), ""),
        (_ports(ServerPort("p", "normal", ())), ""),
        (_ports(d.replace(QOS, providers={"g": "rp"})), ""),
        (_ports(d.replace(QOS, providers={"": "rp"})), ""),
        # What the credentials may not see is for the request to say.
        (_ports(ServerPort("p", "normal", None)), ""),
        # The port got its policy after the server was created.
        (_ports(QOS), "requests resources"),
        (_ports(d.replace(QOS, providers={"other": "rp"})), "requests resources"),
        # Neutron hides the ports of other projects.
        (_ports(interfaces=answer("GET", 200, ("p",))), "not all"),
        (_ports(QOS, interfaces=answer("GET", 200, ())), "not all"),
        (_ports(server_ports=NOT_ASKED), "catalogue has no Neutron"),
        (_ports(server_ports=answer("GET", 403)), "Neutron answered 403"),
        (_ports(interfaces=answer("GET", 503)), "Nova answered 503"),
    ],
)
def test_ports_count_only_if_all_of_them_are_shown(evidence: Evidence, said: str) -> None:
    inputs = build_inputs(FLAVOR, evidence, {})

    assert (inputs.ports is None) is bool(said)
    assert said in inputs.unread.get("ports", "")


def test_device_profiles_are_those_that_cyborg_shows() -> None:
    profile = DeviceProfile("fpga", ({"resources:FPGA": "1"},))
    evidence = _evidence(
        device_profiles=(answer("GET", 200, profile), answer("GET", 404)),
        accelerators=answer("GET", 403),
    )
    inputs = build_inputs(FLAVOR, evidence, {})

    assert inputs.device_profiles == {"fpga": profile.groups}
    assert inputs.accelerators is None
    assert set(inputs.unread) == {"device_profiles", "accelerators"}


@pytest.mark.parametrize(
    ("fields", "attachments", "root"),
    [
        ({"volumes": ()}, [], None),
        ({"volumes": ("v",), "image": None}, None, None),
        # A volume of data beside a blank disk of the host.
        ({"volumes": ("v",), "image": None}, [("v", "/dev/vdb")], None),
        ({"volumes": ("v",)}, None, None),
        ({"volumes": ("v", "w"), "image": None}, None, None),
        ({"volumes": ("v", "w"), "image": None}, [("v", "/dev/vdb"), ("w", "/dev/vda")], "w"),
        ({"volumes": ("v", "w"), "image": None}, [("v", "vdb"), ("w", "vda")], "w"),
        ({"volumes": ("v",), "root_device": None}, [("v", "/dev/vda")], None),
        ({"volumes": ("v",)}, [("v", None)], None),
    ],
)
def test_root_volume_is_the_one_at_the_root_device(
    fields: dict[str, t.Any], attachments: t.Any, root: str | None
) -> None:
    world = World()
    server = world.servers[world.server(world.host("compute-1"), **fields)]
    rows = None if attachments is None else tuple(Attachment(*row) for row in attachments)

    assert find_root_volume(server, rows) == root


def test_device_profiles_of_the_flavor_and_of_ports_are_named_once() -> None:
    ports = [ServerPort("p", None, (), device_profile=name) for name in ("b", None, "b")]

    assert list_device_profiles({"accel:device_profile": "a"}, ports) == ["a", "b"]
    assert list_device_profiles(None, []) == []


CPUS = {"VCPU", "PCPU"}
ENCRYPTION = {"MEM_ENCRYPTION_CONTEXT"}


@pytest.mark.parametrize(
    ("specs", "classes"),
    name_cases(
        {
            "all": ({}, CPUS | ENCRYPTION),
            "the-flavor-has-a-cpu-policy": ({"hw:cpu_policy": "dedicated"}, ENCRYPTION),
            "the-flavor-encrypts": ({"hw:mem_encryption": "true"}, CPUS),
            "the-flavor-does-not-encrypt": ({"hw:mem_encryption": "false"}, CPUS),
            "mixed": ({"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0"}, ENCRYPTION),
            "the-image-may-have-the-mask": (
                {"hw:cpu_policy": "mixed", "hw:cpu_realtime": "1"},
                CPUS | ENCRYPTION,
            ),
            "traits": ({"hw:cpu_policy": "shared", "hw:mem_encryption": "no"}, set()),
        }
    ),
)
def test_image(specs: dict[str, str], classes: set[str]) -> None:
    (missing,) = list_missing_inputs(make_inputs(specs, image_properties=None))

    assert (missing.name, missing.classes) == ("image", classes)


@pytest.mark.parametrize(
    ("specs", "changes", "names"),
    name_cases(
        {
            "nothing": ({}, {}, []),
            "flavor": ({}, {"extra_specs": None, "ports": None}, ["flavor"]),
            "volume": ({}, {"volume_backed": None}, ["volume"]),
            "there-is-no-root-disk": ({}, {"volume_backed": None, "disk": 0}, []),
            "the-disk-is-overridden": ({"resources:DISK_GB": "5"}, {"volume_backed": None}, []),
            "ports": ({}, {"ports": None}, ["ports"]),
            "hidden-request": ({}, {"ports": (make_port("p", groups=None),)}, ["ports"]),
            "accelerator-without-a-profile": (
                {},
                {"ports": (make_port("p", vnic_type="accelerator-direct"),)},
                ["ports", "ports"],
            ),
            "unknown-type-of-port": (
                {},
                {"ports": (make_port("p", vnic_type=None, device_profile="x"),)},
                ["ports", "ports"],
            ),
            "unknown-profile-of-a-port": (
                {},
                {"ports": (make_port("p", vnic_type="accelerator-direct", device_profile="x"),)},
                ["ports", "device_profile"],
            ),
            "unknown-profile": ({"accel:device_profile": "x"}, {}, ["device_profile"]),
            "unknown-devices": (
                {"accel:device_profile": "x"},
                {"device_profiles": {"x": ()}, "accelerators": None},
                ["accelerators"],
            ),
            "there-are-no-devices": ({}, {"accelerators": None}, []),
            "unknown-alias": ({"pci_passthrough:alias": "nic:1"}, {}, ["pci_alias"]),
            "no-device-of-the-alias": ({"pci_passthrough:alias": "nic:0"}, {}, []),
        }
    ),
)
def test_what_is_missing(
    specs: dict[str, str], changes: dict[str, t.Any], names: list[str]
) -> None:
    inputs = make_inputs(**{"extra_specs": specs, **changes})

    assert [missing.name for missing in list_missing_inputs(inputs)] == names


def test_the_reason_is_that_of_the_reader() -> None:
    inputs = make_inputs(ports=None, unread={"ports": "Neutron answered 403"})

    assert [missing.reason for missing in list_missing_inputs(inputs)] == ["Neutron answered 403"]
