# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The real Cyborg: its agents on hosts with devices, and device profiles."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from minicloud_ctl import processes, services
from minicloud_ctl import state as states
from minicloud_ctl.cloud import Cloud
from minicloud_ctl.paths import Paths
from minicloud_ctl.waiting import wait_for

# What Cyborg's fake driver has on each host: 16 of these, with this trait.
RESOURCE_CLASS = "FPGA"
TRAIT = "CUSTOM_FAKE_DEVICE"


def device_provider(host: str) -> str:
    """Return the name that Cyborg gives to the provider of a host's device."""
    return f"{host}_FakeDevice"


def await_agents(paths: Paths, hosts: Collection[str]) -> None:
    """Wait until the devices of the hosts are in Placement."""
    state = states.load(paths)
    cloud = Cloud(state)
    names = [service.name for service in services.cyborg_agents(paths, state) if service.wanted]
    wanted = {device_provider(host) for host in hosts}

    def ready() -> bool:
        processes.must_live(paths, names)
        return wanted <= set(cloud.providers().values())

    wait_for(f"Cyborg to add the devices of {', '.join(sorted(hosts))}", ready, interval=0.5)


def create_profile(cloud: Cloud, name: str, groups: Sequence[Mapping[str, str]]) -> None:
    """Create a device profile, which a flavor names with `accel:device_profile`."""
    cloud.cyborg("POST", "/device_profiles", [{"name": name, "groups": list(groups)}])
