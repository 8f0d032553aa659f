# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which hosts are asked for their servers, and who is a candidate because of what they answer."""

from __future__ import annotations

import dataclasses as d

import pytest

from ansible_collections.osops.placement.plugins.module_utils._core.reading.candidates import (
    choose_hosts_for_server_details,
    find_candidates,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.fleet import Fleet
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.world import (
    CLAIM,
    FLAVOR,
)


@pytest.fixture(name="fleet")
def _fleet() -> Fleet:
    return Fleet()


def test_a_glance_goes_to_hosts_whose_servers_hold_other_amounts_than_nova_compute_counts(
    fleet: Fleet,
) -> None:
    fleet.stranger(fleet.roots[0])
    assert choose_hosts_for_server_details(fleet.read()).hosts == ()
    fleet.hold(fleet.guests[1], fleet.roots[1], amounts={"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 1})

    assert choose_hosts_for_server_details(fleet.read()).hosts == ("compute-1",)
    assert choose_hosts_for_server_details(fleet.read(kinds=("deleted_server",))).hosts == ()
    assert find_candidates(fleet.read(), fleet.glances()) == sorted(
        [fleet.guests[1], *(set(fleet.allocations) - set(fleet.guests))]
    )


def test_a_server_without_an_allocation_does_not_hide_one_with_too_much(fleet: Fleet) -> None:
    """nova-compute counts both, and their sums are right."""
    root = fleet.roots[1]
    fleet.server(root)
    fleet.figures(root, {name: 2 * amount for name, amount in CLAIM.items()})
    fleet.hold(fleet.guests[1], root, amounts={name: 2 * amount for name, amount in CLAIM.items()})

    assert choose_hosts_for_server_details(fleet.read()).hosts == ("compute-1",)
    assert fleet.guests[1] in find_candidates(fleet.read(), fleet.glances())


def test_a_glance_goes_to_hosts_whose_servers_hold_a_child(fleet: Fleet) -> None:
    fleet.hold(fleet.guests[2], fleet.provider("nic", fleet.roots[2]), amounts={"CUSTOM_VF": 1})

    assert choose_hosts_for_server_details(fleet.read()).hosts == ("compute-2",)
    assert find_candidates(fleet.read(), fleet.glances()) == [fleet.guests[2]]


def test_who_asked_for_more_than_a_plain_server_is_not_nominated_for_it(fleet: Fleet) -> None:
    fleet.hold(fleet.guests[2], fleet.provider("nic", fleet.roots[2]), amounts={"CUSTOM_VF": 1})
    special = d.replace(FLAVOR, extra_specs={"resources:CUSTOM_VF": "1"})
    fleet.servers[fleet.guests[2]] = d.replace(fleet.servers[fleet.guests[2]], flavor=special)

    assert find_candidates(fleet.read(), fleet.glances()) == []


def test_a_glance_tells_on_which_node_of_a_service_a_server_is() -> None:
    fleet = Fleet()
    nodes = [fleet.host(name, service="ironic") for name in ("node-1", "node-2")]
    right, wrong = fleet.server(nodes[0], nodes[0]), fleet.server(nodes[0], nodes[1])

    assert "ironic" in choose_hosts_for_server_details(fleet.read()).hosts
    assert find_candidates(fleet.read(), fleet.glances()) == [wrong]
    assert find_candidates(fleet.read()) == sorted([right, wrong])


def test_what_nova_compute_counts_on_the_host_of_an_orphan_is_no_reason_for_a_glance(
    fleet: Fleet,
) -> None:
    """Nor is a resize that waits to be confirmed, which nova-compute counts on both hosts."""
    here, there, _other = fleet.roots
    both = fleet.server(there, here, there)
    parked = fleet.server(there, there, status="VERIFY_RESIZE")
    fleet.migration(parked, here, there, "finished", here)
    fleet.migration(both, here, there, "confirmed", here)
    fleet.figures(there, {"VCPU": 3, "MEMORY_MB": 1536})
    fleet.figures(here, {"VCPU": 2, "MEMORY_MB": 1024})

    assert choose_hosts_for_server_details(fleet.read()).hosts == ()
