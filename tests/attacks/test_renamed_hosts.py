"""Hosts that were renamed in Nova's databases, while guests may run where Nova does not show them.

Services, compute nodes, servers and host mappings have the new names. Migrations keep the old ones.
"""

import pytest
from minicloud_ctl import servers

from ..integration.support import Ansible, Minicloud, Placement, assert_nothing_changed
from ..integration.world import CELL1, World

HOME, SOURCE, DESTINATION = "compute-1", "renamed-source", "renamed-destination"


@pytest.fixture(name="guests", scope="module")
def _guests(minicloud: Minicloud, world: World) -> dict[str, str]:
    """Servers on HOME whose guests may run on another host, by what happened to them."""
    minicloud.scenario("healthy")
    world.own_host(SOURCE)
    world.own_host(DESTINATION)
    evacuated = world.boot(SOURCE)
    failed = {
        "live migration": _fail_move(world, "live-migration", "error"),
        "evacuation": _fail_move(world, "evacuation", "failed"),
    }
    with world.paused(f"nova-compute-{SOURCE}"):
        servers.force_down(world.cloud, SOURCE)
        servers.evacuate(world.cloud, evacuated, HOME)
    # nova-compute does not find the evacuation from its old name, and never destroys the guest.
    for host in (SOURCE, DESTINATION):
        world.rename_host(host, f"{host}-new")
    (evacuation,) = servers.migrations(world.cloud, evacuated)
    assert evacuation["status"] == "done"
    return {**failed, "running guest": evacuated}


def _fail_move(world: World, kind: str, status: str) -> str:
    """Return a server of which Nova gave up a move when its guest ran at the destination."""
    server = world.boot(HOME)
    migration = servers.migrate(world.cloud, server, DESTINATION)
    servers.revert(world.cloud, server)
    servers.settle(world.cloud, server, HOME)
    world.sql(
        CELL1,
        "UPDATE migrations SET migration_type = ?, status = ? WHERE uuid = ?",
        kind,
        status,
        migration,
    )
    world.claim_also(server, DESTINATION)
    return server


@pytest.mark.long
@pytest.mark.parametrize("provider", [True, False])
def test_guests_on_renamed_hosts_keep_their_allocations(
    guests: dict[str, str], world: World, ansible: Ansible, placement: Placement, provider: bool
) -> None:
    if not provider:
        for host in (SOURCE, DESTINATION):
            renaming = "UPDATE resource_providers SET name = ? WHERE uuid = ?"
            world.sql("placement", renaming, host, world.provider(host))
    before = placement.everything()

    run = ansible.playbook(
        "cleanup_orphans",
        variables={
            "orphan_cleanup_min_age": 0,
            "orphan_cleanup_consumers": sorted(guests.values()),
        },
    )

    found = {what: run.entry(server) for what, server in guests.items()}
    verdicts = {what: (entry["kind"], entry["verdict"]) for what, entry in found.items()}
    assert verdicts == dict.fromkeys(guests, ("extra_host", "undecided"))
    assert_nothing_changed(run, before, placement)
