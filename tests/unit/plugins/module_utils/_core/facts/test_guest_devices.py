# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a look at a host proves about the devices of a guest, and all that it does not prove."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Callable

import pytest

from .......plugins.module_utils._core.facts.devices import find_device_address
from .......plugins.module_utils._core.models.guest_devices import GuestDevices, HostGuests
from .......plugins.module_utils._core.models.verdict import Finding
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import judge
from ...world import CLAIM, World

# Nova answers at 15:00:00 (`world.ASKED_AT`).
LONG_AGO, SEEN_AT = "2026-11-20T08:00:00Z", "2026-11-20T14:50:00Z"
PCI, GPU = "0000:84:00.0", "0000:3b:00.0"


class Cloud(World):
    """A server with an allocation of a PCI device, which its guest does not use."""

    def __init__(self, status: str = "ACTIVE") -> None:
        super().__init__()
        self.here, self.there = self.host("compute-1"), self.host("compute-2")
        self.pci = self.provider(f"compute-1_{PCI.upper()}", self.here)
        self.gpu = self.provider("compute-1_pci_0000_3b_00_0", self.here)
        self.leaker = self.server(self.here, self.here, status=status, updated=LONG_AGO)
        self.hold(self.leaker, self.pci, amounts={"CUSTOM_PCI_8086_1521": 1})
        self.guest = GuestDevices("running", True, False, frozenset())
        self.seen = HostGuests("compute-1", self.here, SEEN_AT, {})

    def finding(self) -> Finding | None:
        """Judge the server after its host was read."""
        seen = self.seen
        if not seen.guests:
            seen = d.replace(seen, guests={self.leaker: self.guest})
        policy = Policy(min_age=0, unknown_min_age=0, guests=(seen,))
        for finding in judge(self.snapshot(), policy):
            if finding.consumer == self.leaker:
                return finding
        return None

    def sees(self, **fields: t.Any) -> None:
        self.seen = d.replace(self.seen, **fields)

    def shows(self, **fields: t.Any) -> None:
        self.guest = d.replace(self.guest, **fields)

    def requested(self, action: str, at: str) -> None:
        self.did(self.leaker, action, at)
        newest, *older = self.actions[self.leaker]
        self.actions[self.leaker] = (d.replace(newest, start_time=at), *older)


def uses_nothing(cloud: Cloud) -> None:
    pass


def uses_a_device_of_another_provider(cloud: Cloud) -> None:
    cloud.shows(addresses=frozenset({GPU, "0000:85:00.0"}))


def is_paused(cloud: Cloud) -> None:
    cloud.servers[cloud.leaker] = d.replace(cloud.servers[cloud.leaker], status="PAUSED")
    cloud.shows(state="paused")


def is_shut_off(cloud: Cloud) -> None:
    cloud.servers[cloud.leaker] = d.replace(cloud.servers[cloud.leaker], status="SHUTOFF")
    cloud.shows(state="shut off")


def runs_without_a_definition(cloud: Cloud) -> None:
    """What a guest uses while it runs is what libvirt shows of it."""
    cloud.shows(persistent=False)


def host_has_no_file_of_its_compute_node(cloud: Cloud) -> None:
    cloud.sees(node=None)


def host_is_known_to_ansible_by_another_name(cloud: Cloud) -> None:
    cloud.sees(host="compute-1.example.org")


def was_changed_before_the_look(cloud: Cloud) -> None:
    cloud.servers[cloud.leaker] = d.replace(
        cloud.servers[cloud.leaker], updated="2026-11-20T14:48:59Z"
    )
    cloud.requested("reboot", "2026-11-20T14:48:50.000000")


def clock_of_the_host_is_a_little_fast(cloud: Cloud) -> None:
    cloud.sees(read_at="2026-11-20T15:00:59Z")


@pytest.mark.parametrize(
    "situation",
    [
        uses_nothing,
        uses_a_device_of_another_provider,
        is_paused,
        is_shut_off,
        runs_without_a_definition,
        host_has_no_file_of_its_compute_node,
        host_is_known_to_ansible_by_another_name,
        was_changed_before_the_look,
        clock_of_the_host_is_a_little_fast,
    ],
)
def test_unused_child_is_removed_alone(situation: Callable[[Cloud], None]) -> None:
    cloud = Cloud()
    situation(cloud)
    finding = cloud.finding()

    assert finding and finding.change and finding.kind == "leaked_child"
    assert finding.change.action == "reduce"
    assert finding.change.after["allocations"] == {cloud.here: {"resources": dict(CLAIM)}}
    assert finding.reason.id == "devices_unused"
    cloud.apply(finding.change)
    assert cloud.finding() is None


def test_only_the_unused_of_two_children_is_removed() -> None:
    cloud = Cloud()
    cloud.hold(cloud.leaker, cloud.gpu, amounts={"VGPU": 1})
    cloud.shows(addresses=frozenset({GPU}))
    finding = cloud.finding()

    assert finding and finding.change
    assert set(finding.change.after["allocations"]) == {cloud.here, cloud.gpu}


def uses_a_device(cloud: Cloud) -> None:
    cloud.shows(addresses=frozenset({PCI}))


def has_a_device_that_is_not_identified(cloud: Cloud) -> None:
    cloud.shows(unidentified=("interface direct",))


def is_not_defined_there(cloud: Cloud) -> None:
    cloud.sees(guests={"another": cloud.guest})


def is_shut_off_and_not_defined(cloud: Cloud) -> None:
    is_shut_off(cloud)
    cloud.shows(persistent=False)


def is_shut_off_with_a_saved_memory(cloud: Cloud) -> None:
    is_shut_off(cloud)
    cloud.shows(managed_save=True)


def is_suspended(cloud: Cloud) -> None:
    """Nova takes the devices of a guest away when it suspends it, and gives them back."""
    cloud.servers[cloud.leaker] = d.replace(cloud.servers[cloud.leaker], status="SUSPENDED")
    cloud.shows(state="shut off")


def is_in_rescue(cloud: Cloud) -> None:
    cloud.servers[cloud.leaker] = d.replace(cloud.servers[cloud.leaker], status="RESCUE")


def runs_though_nova_says_shut_off(cloud: Cloud) -> None:
    cloud.servers[cloud.leaker] = d.replace(cloud.servers[cloud.leaker], status="SHUTOFF")


def is_shut_off_though_nova_says_active(cloud: Cloud) -> None:
    cloud.shows(state="shut off")


def another_host_was_read(cloud: Cloud) -> None:
    cloud.sees(host="compute-2", node=cloud.there)


def another_host_of_the_same_name_was_read(cloud: Cloud) -> None:
    cloud.sees(node=cloud.there)


def read_too_long_ago(cloud: Cloud) -> None:
    cloud.sees(read_at="2026-11-20T13:59:59Z")


def read_in_the_future(cloud: Cloud) -> None:
    cloud.sees(read_at="2026-11-20T15:01:01Z")


def allocated_since(cloud: Cloud) -> None:
    held = cloud.allocations[cloud.leaker]
    cloud.allocations[cloud.leaker] = d.replace(held, age_seconds=660)


def allocated_at_an_unknown_time(cloud: Cloud) -> None:
    held = cloud.allocations[cloud.leaker]
    cloud.allocations[cloud.leaker] = d.replace(held, age_seconds=None)


def changed_since(cloud: Cloud) -> None:
    cloud.servers[cloud.leaker] = d.replace(
        cloud.servers[cloud.leaker], updated="2026-11-20T14:49:00Z"
    )


def changed_at_an_unknown_time(cloud: Cloud) -> None:
    cloud.servers[cloud.leaker] = d.replace(cloud.servers[cloud.leaker], updated=None)


def action_requested_since(cloud: Cloud) -> None:
    cloud.requested("attach_interface", "2026-11-20T14:49:30.000000")


def action_requested_at_an_unknown_time(cloud: Cloud) -> None:
    cloud.requested("reboot", "")


def an_older_attach_has_not_ended(cloud: Cloud) -> None:
    """The port that is attached may come with the device."""
    cloud.requested("attach_interface", "2026-11-20T09:00:00.000000")
    newest, *older = cloud.actions[cloud.leaker]
    cloud.actions[cloud.leaker] = (d.replace(newest, events=()), *older)


def a_child_of_another_name(cloud: Cloud) -> None:
    cloud.providers[cloud.pci] = d.replace(cloud.providers[cloud.pci], name="compute-1_fpga")


def a_child_named_after_another_host(cloud: Cloud) -> None:
    cloud.providers[cloud.pci] = d.replace(cloud.providers[cloud.pci], name=f"compute-2_{PCI}")


def a_grandchild(cloud: Cloud) -> None:
    cloud.providers[cloud.pci] = d.replace(cloud.providers[cloud.pci], parent=cloud.gpu)


def not_only_devices(cloud: Cloud) -> None:
    amounts = {"CUSTOM_PCI_8086_1521": 1, "PCPU": 2}
    cloud.hold(cloud.leaker, cloud.pci, amounts=amounts)


@pytest.mark.parametrize(
    ("situation", "reason"),
    [
        (uses_a_device, "device_in_use"),
        (has_a_device_that_is_not_identified, "unidentified_device"),
        (is_not_defined_there, "no_domain_on_host"),
        (is_shut_off_and_not_defined, "domain_not_defined"),
        (is_shut_off_with_a_saved_memory, "domain_not_defined"),
        (is_suspended, "domain_in_other_state"),
        (is_in_rescue, "domain_in_other_state"),
        (runs_though_nova_says_shut_off, "domain_in_other_state"),
        (is_shut_off_though_nova_says_active, "domain_in_other_state"),
        (another_host_was_read, "host_not_in_guests"),
        (another_host_of_the_same_name_was_read, "host_not_in_guests"),
        (read_too_long_ago, "host_read_long_ago"),
        (read_in_the_future, "host_clock_ahead"),
        (allocated_since, "changed_since_host_was_read"),
        (allocated_at_an_unknown_time, "allocation_age_unknown"),
        (changed_since, "changed_since_host_was_read"),
        (changed_at_an_unknown_time, "changed_since_host_was_read"),
        (action_requested_since, "action_since_host_was_read"),
        (action_requested_at_an_unknown_time, "action_since_host_was_read"),
        (an_older_attach_has_not_ended, "port_action_unfinished"),
        (a_child_of_another_name, "device_not_named"),
        (a_child_named_after_another_host, "device_not_named"),
        (a_grandchild, "not_a_direct_child"),
        (not_only_devices, "not_a_device"),
    ],
)
def test_nothing_is_removed_without_the_proof(
    situation: Callable[[Cloud], None], reason: str
) -> None:
    cloud = Cloud()
    situation(cloud)
    finding = cloud.finding()

    assert finding and (finding.kind, finding.change) == ("leaked_child", None)
    assert finding.reason.id == reason
    assert "is not proven" in finding.reason


def test_server_whose_actions_are_not_shown_may_be_moving() -> None:
    cloud = Cloud()
    cloud.answers("actions", cloud.leaker, 403)

    assert cloud.finding() is None


def test_the_reason_says_what_is_not_proven() -> None:
    cloud = Cloud()
    uses_a_device(cloud)
    finding = cloud.finding()

    assert finding and finding.reason.id == "device_in_use"


@pytest.mark.parametrize(
    ("name", "address"),
    [
        (f"compute-1_{PCI}", PCI),
        ("compute-1_0000:AF:00.1", "0000:af:00.1"),
        ("compute-1_pci_0000_84_00_0", PCI),
        ("compute-1_pci_10000_84_00_0", "10000:84:00.0"),
        ("compute-1_mtty_mtty", None),
        ("compute-1_card_0000_84_00_0", None),
        ("compute-1_0000:84:00.0_0", None),
        ("compute-10_0000:84:00.0", None),
        ("compute-1", None),
        (PCI, None),
        ("compute-1:NIC Switch agent:ens5", None),
    ],
)
def test_name_of_a_provider_says_which_device_it_is(name: str, address: str | None) -> None:
    assert find_device_address(name, "compute-1") == address
