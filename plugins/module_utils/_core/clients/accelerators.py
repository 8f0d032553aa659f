# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads what Cyborg has for servers: device profiles and accelerator requests.

API reference: https://docs.openstack.org/api-ref/accelerator/
"""

from __future__ import annotations

import dataclasses as d
from collections.abc import Mapping

from ..._common.text import make_printable
from ..models.resource_request import AcceleratorRequest, DeviceProfile
from ..models.snapshot import NOT_ASKED, Answer
from .api import Api, Reply
from .optional import OptionalApi


class CyborgReader:
    """Reads Cyborg; in a cloud without Cyborg, nothing is known about device profiles."""

    def __init__(self, api: Api | None) -> None:
        self._api = OptionalApi(api)

    def get_device_profile(self, name: str) -> Answer[DeviceProfile]:
        """Return the device profile with a name; no `value` unless there is exactly one.

        Nova refuses a profile of which there are several (nova/accelerator/cyborg.py).
        """
        path = "/v2/device_profiles"
        answer = self._api.ask(path, lambda reply: _parse_profile(reply, name), name=name)
        if answer == NOT_ASKED:
            return answer
        # The name says which of several profiles could not be read.
        return d.replace(answer, request=make_printable(f"GET {path}?name={name}"))

    def list_accelerator_requests(self, server: str) -> Answer[tuple[AcceleratorRequest, ...]]:
        """Return the accelerator requests of a server."""
        return self._api.ask(
            "/v2/accelerator_requests",
            lambda reply: _parse_requests(reply, server),
            instance=server,
        )


def _parse_profile(reply: Reply, name: str) -> DeviceProfile | None:
    # An older Cyborg ignores the filter.
    named = [row for row in reply.body["device_profiles"] if row["name"] == name]
    if len(named) != 1:
        return None
    groups: list[Mapping[str, str]] = []
    for group in named[0]["groups"]:
        groups.append({str(key): str(value) for key, value in group.items()})
    return DeviceProfile(name, tuple(groups))


def _parse_requests(reply: Reply, server: str) -> tuple[AcceleratorRequest, ...]:
    requests = []
    for row in reply.body["arqs"]:
        # A proxy or an older Cyborg may ignore the filter.
        if row.get("instance_uuid", server) != server:
            continue
        requests.append(
            AcceleratorRequest(
                uuid=row["uuid"],
                device_profile=row["device_profile_name"],
                group=int(row["device_profile_group_id"]),
                provider=row.get("device_rp_uuid"),
            )
        )
    return tuple(requests)
