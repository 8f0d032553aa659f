# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which missing part can decide on a request."""

from __future__ import annotations

import typing as t

import pytest

from .......plugins.module_utils._core.expected.missing import list_missing_inputs
from ...shapes_of_requests import make_inputs, make_port

CPUS = {"VCPU", "PCPU"}
ENCRYPTION = {"MEM_ENCRYPTION_CONTEXT"}


@pytest.mark.parametrize(
    ("specs", "classes"),
    [
        pytest.param({}, CPUS | ENCRYPTION, id="all"),
        pytest.param({"hw:cpu_policy": "dedicated"}, ENCRYPTION, id="the-flavor-has-a-cpu-policy"),
        pytest.param({"hw:mem_encryption": "true"}, CPUS, id="the-flavor-encrypts"),
        pytest.param({"hw:mem_encryption": "false"}, CPUS, id="the-flavor-does-not-encrypt"),
        pytest.param(
            {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0"}, ENCRYPTION, id="mixed"
        ),
        pytest.param(
            {"hw:cpu_policy": "mixed", "hw:cpu_realtime": "1"},
            CPUS | ENCRYPTION,
            id="the-image-may-have-the-mask",
        ),
        pytest.param({"hw:cpu_policy": "shared", "hw:mem_encryption": "no"}, set(), id="traits"),
    ],
)
def test_image(specs: dict[str, str], classes: set[str]) -> None:
    (missing,) = list_missing_inputs(make_inputs(specs, image_properties=None))

    assert (missing.name, missing.classes) == ("image", classes)


@pytest.mark.parametrize(
    ("specs", "changes", "names"),
    [
        pytest.param({}, {}, [], id="nothing"),
        pytest.param({}, {"extra_specs": None, "ports": None}, ["flavor"], id="flavor"),
        pytest.param({}, {"volume_backed": None}, ["volume"], id="volume"),
        pytest.param({}, {"volume_backed": None, "disk": 0}, [], id="there-is-no-root-disk"),
        pytest.param(
            {"resources:DISK_GB": "5"}, {"volume_backed": None}, [], id="the-disk-is-overridden"
        ),
        pytest.param({}, {"ports": None}, ["ports"], id="ports"),
        pytest.param({}, {"ports": (make_port("p", groups=None),)}, ["ports"], id="hidden-request"),
        pytest.param(
            {},
            {"ports": (make_port("p", vnic_type="accelerator-direct"),)},
            ["ports", "ports"],
            id="accelerator-without-a-profile",
        ),
        pytest.param(
            {},
            {"ports": (make_port("p", vnic_type=None, device_profile="x"),)},
            ["ports", "ports"],
            id="unknown-type-of-port",
        ),
        pytest.param(
            {},
            {"ports": (make_port("p", vnic_type="accelerator-direct", device_profile="x"),)},
            ["ports", "device_profile"],
            id="unknown-profile-of-a-port",
        ),
        pytest.param({"accel:device_profile": "x"}, {}, ["device_profile"], id="unknown-profile"),
        pytest.param(
            {"accel:device_profile": "x"},
            {"device_profiles": {"x": ()}, "accelerators": None},
            ["accelerators"],
            id="unknown-devices",
        ),
        pytest.param({}, {"accelerators": None}, [], id="there-are-no-devices"),
        pytest.param({"pci_passthrough:alias": "nic:1"}, {}, ["pci_alias"], id="unknown-alias"),
        pytest.param({"pci_passthrough:alias": "nic:0"}, {}, [], id="no-device-of-the-alias"),
    ],
)
def test_what_is_missing(
    specs: dict[str, str], changes: dict[str, t.Any], names: list[str]
) -> None:
    inputs = make_inputs(**{"extra_specs": specs, **changes})

    assert [missing.name for missing in list_missing_inputs(inputs)] == names


def test_the_reason_is_that_of_the_reader() -> None:
    inputs = make_inputs(ports=None, unread={"ports": "Neutron answered 403"})

    assert [missing.reason for missing in list_missing_inputs(inputs)] == ["Neutron answered 403"]
