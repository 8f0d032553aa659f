"""Device profiles that are not those with which a server was created."""

import dataclasses as d

import pytest

from .......plugins.module_utils._core.models.other_services import (
    AcceleratorRequest,
    DeviceProfile,
)
from ...judging import NO_MINIMUM_AGE, judge
from ...world import FLAVOR, PLENTY, World, answer


@pytest.mark.parametrize("requests", [0, 1])
def test_profile_that_was_made_again_gives_a_server_no_other_devices(requests: int) -> None:
    world = World()
    here = world.host("compute-1")
    card = world.provider("compute-1_fpga", here)
    world.stock[card] = {"FPGA": PLENTY}
    flavor = d.replace(FLAVOR, extra_specs={"accel:device_profile": "card"})
    server = world.server(here, here, flavor=flavor)
    world.hold(server, card, amounts={"FPGA": 1})
    snapshot = world.snapshot()
    made = tuple(AcceleratorRequest("arq", "card", 0, card) for _number in range(requests))
    evidence = d.replace(
        snapshot.evidence[server],
        device_profiles=(
            answer("profile", 200, DeviceProfile("card", ({"resources:FPGA": "2"},))),
        ),
        accelerators=answer("requests", 200, made),
    )
    snapshot = d.replace(snapshot, evidence={**snapshot.evidence, server: evidence})
    found = [row for row in judge(snapshot, NO_MINIMUM_AGE) if row.consumer == server]
    assert all(row.change is None for row in found), found
