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
from ...judging import judge, list_cases
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

    def changes(self, **fields: t.Any) -> None:
        self.servers[self.leaker] = d.replace(self.servers[self.leaker], **fields)

    def is_in(self, status: str, **guest: t.Any) -> None:
        """Nova shows a status, and the host a guest."""
        self.changes(status=status)
        self.shows(**guest)

    def allocated(self, age_seconds: int | None) -> None:
        held = self.allocations[self.leaker]
        self.allocations[self.leaker] = d.replace(held, age_seconds=age_seconds)

    def changes_child(self, **fields: t.Any) -> None:
        self.providers[self.pci] = d.replace(self.providers[self.pci], **fields)

    def requested(self, action: str, at: str, **fields: t.Any) -> None:
        self.did(self.leaker, action, at)
        newest, *older = self.actions[self.leaker]
        self.actions[self.leaker] = (d.replace(newest, start_time=at, **fields), *older)


Situation = Callable[[Cloud], object]


def was_changed_before_the_look(cloud: Cloud) -> None:
    cloud.changes(updated="2026-11-20T14:48:59Z")
    cloud.requested("reboot", "2026-11-20T14:48:50.000000")


UNUSED: dict[str, Situation] = {
    "uses nothing": lambda cloud: None,
    "uses a device of another provider": lambda cloud: cloud.shows(
        addresses=frozenset({GPU, "0000:85:00.0"})
    ),
    "is paused": lambda cloud: cloud.is_in("PAUSED", state="paused"),
    "is shut off": lambda cloud: cloud.is_in("SHUTOFF", state="shut off"),
    # What a guest uses while it runs is what libvirt shows of it.
    "runs without a definition": lambda cloud: cloud.shows(persistent=False),
    "host has no file of its compute node": lambda cloud: cloud.sees(node=None),
    "host is known to Ansible by another name": lambda cloud: cloud.sees(
        host="compute-1.example.org"
    ),
    "was changed before the look": was_changed_before_the_look,
    "clock of the host is a little fast": lambda cloud: cloud.sees(read_at="2026-11-20T15:00:59Z"),
}


@pytest.mark.parametrize("situation", UNUSED.values(), ids=UNUSED)
def test_unused_child_is_removed_alone(situation: Situation) -> None:
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


UNPROVEN: dict[str, dict[str, Situation]] = {
    "device_in_use": {
        "uses a device": lambda cloud: cloud.shows(addresses=frozenset({PCI})),
    },
    "unidentified_device": {
        "has a device that is not identified": lambda cloud: cloud.shows(
            unidentified=("interface direct",)
        ),
    },
    "no_domain_on_host": {
        "is not defined there": lambda cloud: cloud.sees(guests={"another": cloud.guest}),
    },
    "domain_not_defined": {
        "is shut off and not defined": lambda cloud: cloud.is_in(
            "SHUTOFF", state="shut off", persistent=False
        ),
        "is shut off with a saved memory": lambda cloud: cloud.is_in(
            "SHUTOFF", state="shut off", managed_save=True
        ),
    },
    "domain_in_other_state": {
        # Nova takes the devices of a guest away when it suspends it, and gives them back.
        "is suspended": lambda cloud: cloud.is_in("SUSPENDED", state="shut off"),
        "is in rescue": lambda cloud: cloud.is_in("RESCUE"),
        "runs though Nova says shut off": lambda cloud: cloud.is_in("SHUTOFF"),
        "is shut off though Nova says active": lambda cloud: cloud.shows(state="shut off"),
    },
    "host_not_in_guests": {
        "another host was read": lambda cloud: cloud.sees(host="compute-2", node=cloud.there),
        "another host of the same name was read": lambda cloud: cloud.sees(node=cloud.there),
    },
    "host_read_long_ago": {
        "read too long ago": lambda cloud: cloud.sees(read_at="2026-11-20T13:59:59Z"),
    },
    "host_clock_ahead": {
        "read in the future": lambda cloud: cloud.sees(read_at="2026-11-20T15:01:01Z"),
    },
    "changed_since_host_was_read": {
        "allocated since": lambda cloud: cloud.allocated(660),
        "changed since": lambda cloud: cloud.changes(updated="2026-11-20T14:49:00Z"),
        "changed at an unknown time": lambda cloud: cloud.changes(updated=None),
    },
    "allocation_age_unknown": {
        "allocated at an unknown time": lambda cloud: cloud.allocated(None),
    },
    "action_since_host_was_read": {
        "action requested since": lambda cloud: cloud.requested(
            "attach_interface", "2026-11-20T14:49:30.000000"
        ),
        "action requested at an unknown time": lambda cloud: cloud.requested("reboot", ""),
    },
    "port_action_unfinished": {
        # The port that is attached may come with the device.
        "an older attach has not ended": lambda cloud: cloud.requested(
            "attach_interface", "2026-11-20T09:00:00.000000", events=()
        ),
    },
    "device_not_named": {
        "a child of another name": lambda cloud: cloud.changes_child(name="compute-1_fpga"),
        "a child named after another host": lambda cloud: cloud.changes_child(
            name=f"compute-2_{PCI}"
        ),
    },
    "not_a_direct_child": {
        "a grandchild": lambda cloud: cloud.changes_child(parent=cloud.gpu),
    },
    "not_a_device": {
        "not only devices": lambda cloud: cloud.hold(
            cloud.leaker, cloud.pci, amounts={"CUSTOM_PCI_8086_1521": 1, "PCPU": 2}
        ),
    },
}


@pytest.mark.parametrize(("reason", "situation"), list_cases(UNPROVEN))
def test_nothing_is_removed_without_the_proof(reason: str, situation: Situation) -> None:
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
