# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts that were renamed in Nova's databases, while guests may run where Nova does not show them.

Services, compute nodes, servers and host mappings have the new names. Migrations keep the old ones.
"""

from __future__ import annotations

import contextlib
import typing as t

import pytest
from minicloud_ctl import servers
from minicloud_ctl.waiting import wait_for

from ansible_collections.osops.placement.tests.integration.support import (
    assert_nothing_changed,
    long,
)
from ansible_collections.osops.placement.tests.integration.world import API, CELL1

if t.TYPE_CHECKING:
    from collections.abc import Iterator

    from ansible_collections.osops.placement.tests.integration.support import (
        Ansible,
        Minicloud,
        Placement,
    )
    from ansible_collections.osops.placement.tests.integration.world import World

HOME, SOURCE, DESTINATION = "compute-1", "renamed-source", "renamed-destination"
WITHOUT_AGE = {"orphan_cleanup_min_age": 0}


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


@contextlib.contextmanager
def _renamed(world: World, host: str, provider: bool) -> Iterator[str]:
    """Rename a host as operators do, with its root provider or without, and undo it.

    Yields the new name. Its nova-compute would write the old one again.
    """
    root, new = world.provider(host), f"{host}-new"
    with world.paused(f"nova-compute-{host}"):
        _rename(world, root, host, new, provider)
        try:
            yield new
        finally:
            _rename(world, root, new, host, provider)


def _rename(world: World, root: str, old: str, new: str, provider: bool) -> None:
    node = "UPDATE compute_nodes SET host = ?, hypervisor_hostname = ? WHERE uuid = ?"
    world.sql(CELL1, node, new, new, root)
    world.sql(CELL1, "UPDATE services SET host = ? WHERE host = ?", new, old)
    world.sql(API, "UPDATE host_mappings SET host = ? WHERE host = ?", new, old)
    if provider:
        world.sql("placement", "UPDATE resource_providers SET name = ? WHERE uuid = ?", new, root)


def _let_report(world: World, host: str) -> None:
    """Let a host be up that had only lost its connection.

    Nova refuses this while an evacuation from a host of that name is `done`: nova-compute there
    has to start first, and destroy the guests.
    """
    servers.update_service(world.cloud, host, {"forced_down": False})
    wait_for(
        f"{host} to be up again", lambda: world.cloud.compute_services()[host]["state"] == "up"
    )


@pytest.mark.parametrize("provider", [False, long(True)])
def test_guests_on_renamed_hosts_keep_their_allocations(
    guests: dict[str, str],
    world: World,
    ansible: Ansible,
    placement: Placement,
    provider: bool,
) -> None:
    with contextlib.ExitStack() as names:
        names.enter_context(_renamed(world, DESTINATION, provider))
        _let_report(world, names.enter_context(_renamed(world, SOURCE, provider)))
        before = placement.everything()
        run = ansible.playbook("cleanup_orphans", variables=WITHOUT_AGE)

    found = {what: run.entry(server) for what, server in guests.items()}
    assert {
        what: (entry["kind"], entry["verdict"]) for what, entry in found.items()
    } == dict.fromkeys(guests, ("extra_host", "undecided"))
    assert run.status == 0
    assert_nothing_changed(run, before, placement)
