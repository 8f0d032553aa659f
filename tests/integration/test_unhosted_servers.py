"""A server without a host, on real services: the advice of its finding makes it provable."""

import pytest
from minicloud_ctl import servers

from .support import Ansible, Minicloud, Placement
from .world import World

OWN_CLOUD = True
pytestmark = pytest.mark.long


@pytest.mark.follows("lost_host")
def test_allocation_is_removed_after_its_server_was_set_to_error_as_advised(
    ansible: Ansible, minicloud: Minicloud, world: World, placement: Placement
) -> None:
    minicloud.scenario("reset_without_host")
    server = minicloud.truth("reset_without_host")["server"]
    named = {"orphan_cleanup_consumers": [server]}

    kept = ansible.playbook("cleanup_orphans", variables=named)

    entry = kept.entry(server)
    assert (kept.status, entry["verdict"]) == (0, "undecided"), kept.output
    assert entry["reason_id"] == "lost_host"
    assert placement.held(server)

    servers.act(world.cloud, server, "os-resetState", {"state": "error"})
    servers.settle(world.cloud, server, None, "ERROR")
    run = ansible.playbook("cleanup_orphans", variables=named)

    assert (run.status, run.outcome(server)["outcome"]) == (0, "removed"), run.output
    assert run.entry(server)["kind"] == "unhosted_server"
    assert placement.held(server) == {}
