# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sums of a server are compared with its flavor and image, without any lookup."""

from __future__ import annotations

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._core.expected.amounts import compare_listed
from .......plugins.module_utils._core.models.resource_request import PciAlias
from ...world import CLAIM, FLAVOR, World

PLAIN = dict(CLAIM)
NO_DISK = {"VCPU": 1, "MEMORY_MB": 512}
GPU = PciAlias("gpu", "CUSTOM_GPU")


def _specs(**specs: str) -> dict[str, t.Any]:
    named = {key.replace("__", ":"): value for key, value in specs.items()}
    return {"flavor": d.replace(FLAVOR, extra_specs=named)}


PCI = _specs(pci_passthrough__alias="gpu:1")
PROFILE = _specs(accel__device_profile="fpga")
BOOTED = {"image": None, "image_properties": None, "volumes": ("v",)}


@pytest.mark.parametrize(
    ("fields", "held", "fits", "missing"),
    [
        ({}, [PLAIN], True, ()),
        ({}, [NO_DISK, {"DISK_GB": 1}], True, ()),
        ({}, [NO_DISK], False, ()),
        ({}, [{**PLAIN, "VCPU": 2}], False, ()),
        ({}, [PLAIN, {"CUSTOM_VF": 1}], False, ()),
        (BOOTED, [NO_DISK], True, ("volume_image",)),
        (BOOTED, [PLAIN], False, ("volume_image",)),
        ({"volumes": ("v",)}, [NO_DISK], True, ("volume",)),
        ({"volumes": ("v",)}, [PLAIN], True, ("volume",)),
        ({"image_properties": None}, [PLAIN], True, ("image",)),
        ({"flavor": None}, [{}], True, ("flavor",)),
        ({"flavor": d.replace(FLAVOR, extra_specs=None)}, [PLAIN], True, ("flavor",)),
        (_specs(resources__VGPU="1"), [PLAIN, {"VGPU": 1}], True, ()),
        # The child is lost.
        (_specs(resources__VGPU="1"), [PLAIN], False, ()),
        (_specs(resources__VCPU="3"), [{**PLAIN, "VCPU": 3}], True, ()),
        (_specs(hw__cpu_policy="dedicated"), [{**NO_DISK, "DISK_GB": 1}], True, ()),
        (
            _specs(hw__cpu_policy="dedicated"),
            [{"PCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}],
            True,
            (),
        ),
        (PCI, [PLAIN], True, ("pci_alias",)),
        (PROFILE, [PLAIN], True, ("device_profile", "accelerators")),
    ],
)
def test_sums_are_those_of_flavor_and_image(
    fields: dict[str, t.Any], held: t.Any, fits: bool, missing: tuple[str, ...]
) -> None:
    compared = compare_listed(_server(fields), _hold(held), {})

    assert (compared.fits, compared.missing) == (fits, missing)


@pytest.mark.parametrize(
    ("fields", "held", "explained"),
    [
        (PCI, [PLAIN, {"CUSTOM_GPU": 1}], True),
        (PROFILE, [PLAIN, {"FPGA": 1}], True),
        # A device explains no other amount of processors.
        (PCI, [{**PLAIN, "VCPU": 2}, {"CUSTOM_GPU": 1}], False),
        ({}, [PLAIN, {"CUSTOM_GPU": 1}], False),
    ],
)
def test_device_may_explain_more_than_the_flavor_says(
    fields: dict[str, t.Any], held: t.Any, explained: bool
) -> None:
    compared = compare_listed(_server(fields), _hold(held), {})

    assert (compared.fits, compared.explained) == (False, explained)


@pytest.mark.parametrize(
    ("held", "fits"),
    [([PLAIN, {"CUSTOM_GPU": 1}], True), ([PLAIN], True), ([PLAIN, {"CUSTOM_GPU": 2}], False)],
)
def test_known_alias_counts_with_or_without_devices_in_placement(held: t.Any, fits: bool) -> None:
    compared = compare_listed(_server(PCI), _hold(held), {"gpu": GPU})

    assert (compared.fits, compared.missing) == (fits, ())


def _server(fields: dict[str, t.Any]) -> t.Any:
    world = World()
    return world.servers[world.server(world.host("compute-1"), **fields)]


def _hold(held: t.Any) -> dict[str, t.Any]:
    return {f"provider-{number}": amounts for number, amounts in enumerate(held)}
