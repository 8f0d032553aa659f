# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Reads the services of Cinder.

API reference: https://docs.openstack.org/api-ref/block-storage/v3/#services-os-services
"""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._models.host_parts import (
    BLOCK_STORAGE_API,
    OtherService,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping

    from ansible_collections.osops.placement.plugins.module_utils._clients.api import Api, Reply


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
