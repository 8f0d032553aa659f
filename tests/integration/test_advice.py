"""What the reason of a finding tells the user to do, done on real services."""

import re

import pytest
from minicloud_ctl import holdings, servers

from .support import Ansible, Placement
from .world import CLAIM, World

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("healthy")]


@pytest.mark.follows("corrections.decide_without_change")
def test_server_whose_allocation_is_not_certain_gets_one_by_moving(
    ansible: Ansible, placement: Placement, world: World
) -> None:
    server, other = world.boot("compute-1"), world.provider("compute-2")
    child = holdings.create_provider(world.cloud, f"card-{server}", {"CUSTOM_CARD": 9}, other)
    world.hold(server, {other: CLAIM, child: {"CUSTOM_CARD": 1}})

    (entry,) = ansible.direct("orphan_detect", consumers=[server], min_age="0")["findings"]

    assert (entry["kind"], entry["change"]) == ("misplaced_allocation", None)
    advised = re.findall(r"openstack server migrate (confirm )?([0-9a-f-]{36})", entry["reason"])
    assert advised == [("", server), ("confirm ", server)]
    servers.act(world.cloud, server, "migrate", None)
    servers.settle(world.cloud, server, None, "VERIFY_RESIZE")
    servers.confirm(world.cloud, server)
    there = world.provider(servers.get(world.cloud, server)["OS-EXT-SRV-ATTR:host"])
    assert placement.held(server)[there] == CLAIM
    # Only a part that no move of Nova frees is left, with a reason of its own.
    found = ansible.direct("orphan_detect", consumers=[server], min_age="0")
    kinds = {entry["kind"] for entry in (*found["findings"], *found["undecided"])}
    assert kinds <= {"leaked_child", "extra_host"}
