# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The real Cinder: when it is ready, and its volumes."""

from __future__ import annotations

from collections.abc import Mapping

from minicloud_ctl import processes, services
from minicloud_ctl import state as states
from minicloud_ctl.cloud import Cloud
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import Paths
from minicloud_ctl.waiting import wait_for


def await_services(paths: Paths) -> None:
    """Wait until the scheduler of Cinder knows where it can create volumes."""
    state = states.load(paths)
    cloud = Cloud(state)
    names = [service.name for service in services.cinder(paths, state)]

    def ready() -> bool:
        processes.must_live(paths, names)
        return bool(cloud.cinder("GET", "/scheduler-stats/get_pools")["pools"])

    wait_for("cinder-volume to report to cinder-scheduler", ready, interval=0.5)


def create_volume(cloud: Cloud, properties: Mapping[str, str]) -> str:
    """Create a volume of 1 GB that servers can boot from; returns its uuid.

    properties: those of the image that it would have been made of.
    """
    volume = cloud.cinder("POST", "/volumes", {"volume": {"size": 1}})["volume"]["id"]
    await_status(cloud, volume, "available")
    act(cloud, volume, {"os-set_bootable": {"bootable": True}})
    if properties:
        act(cloud, volume, {"os-set_image_metadata": {"metadata": dict(properties)}})
    return volume


def act(cloud: Cloud, volume: str, action: Mapping[str, object]) -> None:
    cloud.cinder("POST", f"/volumes/{volume}/action", action)


def await_status(cloud: Cloud, volume: str, status: str) -> None:
    def probe() -> bool:
        found = cloud.cinder("GET", f"/volumes/{volume}")["volume"]["status"]
        if found == "error":
            raise MinicloudError(f"Volume {volume} went to error.")
        return found == status

    wait_for(f"volume {volume} to be {status}", probe)
