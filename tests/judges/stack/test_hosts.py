"""A dead host that is decommissioned, and comes back as another one."""

from __future__ import annotations

from collections.abc import Iterator

from minicloud_ctl import servers
from minicloud_ctl.waiting import wait_for

from ...integration import test_drain_host as drains
from ...integration.support import Ansible, Placement
from ...integration.test_drain_host import Drained
from ...integration.test_redeploy import Redeployment
from .world import Measured, StackWorld

HOST = "drain-4"


def is_open(world: StackWorld, doomed: Drained) -> Iterator[bool]:
    """Yield for each move of the servers that were on the host whether Nova has not ended it."""
    for server in doomed.statuses:
        for migration in servers.migrations(world.cloud, server):
            yield migration["status"] == "done"


def test_a_dead_host_is_decommissioned_and_redeployed_under_a_new_uuid(
    ansible: Ansible, world: StackWorld, placement: Placement, measured: Measured
) -> None:
    world.free(placement.everything())
    world.own_host(HOST)
    old = world.provider(HOST)
    doomed = Drained(world, ansible, HOST)
    drains.test_a_dead_host_is_evacuated_with_the_word_and_decommissioned(doomed, world, placement)

    world.host(HOST).reinstall()
    world.revive(HOST)
    assert world.provider(HOST) != old
    redeploy = Redeployment(ansible)
    # Its first start has completed none of the evacuations, because its compute node is another.
    refused = redeploy.refused(HOST)
    assert f"Restart nova-compute on {HOST}" in refused.told
    world.restart(HOST)
    wait_for("Nova to complete the evacuations", lambda: not any(is_open(world, doomed)))
    assert f"{HOST} is complete." in redeploy.done(HOST).told

    server = world.boot(HOST)
    other = world.boot("compute-1")
    world.live_migrate(other, HOST)
    world.live_migrate(server, "compute-1")
    for moved, host in ((other, HOST), (server, "compute-1")):
        assert moved in world.find_guests(host)
        assert list(placement.held(moved)) == [world.provider(host)]
    audited = world.run_nova_manage("placement", "audit", "--verbose")
    # It prints nothing about a cloud without orphaned allocations, and ends with 3 otherwise.
    assert audited.returncode == 0, audited
    found = ansible.playbook("detect_orphans").read("findings.json")
    assert found["findings"] == [] and found["undecided"] == []
    measured["servers_evacuated"] = len(doomed.statuses)
    servers.delete(world.cloud, other)
