# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads Cinder: its services, and the volumes that servers boot from.

API reference: https://docs.openstack.org/api-ref/block-storage/v3/
"""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..models.host_parts import BLOCK_STORAGE_API, OtherService
from ..models.resource_request import RootVolume
from ..models.snapshot import Answer
from .api import Api, Reply
from .optional import OptionalApi


class VolumeReader:
    """Reads volumes; in a cloud without Cinder, nothing is known about them."""

    def __init__(self, api: Api | None) -> None:
        self._api = OptionalApi(api)

    def get_root_volume(self, uuid: str) -> Answer[RootVolume]:
        """Return the volume that a server boots from, with the properties of its image."""
        return self._api.ask(f"/volumes/{uuid}", _parse_root_volume)


def _parse_root_volume(reply: Reply) -> RootVolume | None:
    row = reply.body["volume"]
    # A volume that was made of no image has no such key, and neither has one of which Cinder hides
    # it: only a bootable volume can be booted from.
    properties = row.get("volume_image_metadata")
    if properties is None and row.get("bootable") != "true":
        return None
    return RootVolume(row["id"], {str(key): str(text) for key, text in (properties or {}).items()})


def list_cinder_services(api: Api) -> tuple[OtherService, ...]:
    """Return all services of Cinder. Raises CloudError when it does not list them."""
    reply, services = api.read("/os-services", None, _parse_services)
    api.expect(reply, "for its services")
    return services or ()


def _parse_services(reply: Reply) -> tuple[OtherService, ...]:
    return tuple(map(_parse_service, reply.body["services"]))


def _parse_service(row: Mapping[str, t.Any]) -> OtherService:
    return OtherService(
        api=BLOCK_STORAGE_API,
        id=None,
        binary=row["binary"],
        host=row["host"],
        status=row["status"],
        state=row.get("state"),
    )
