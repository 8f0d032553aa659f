# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Reads the ports of a server from Neutron. A port may request resources from Placement.

API reference: https://docs.openstack.org/api-ref/network/v2/#ports
"""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import CloudError
from ansible_collections.osops.placement.plugins.module_utils._models.nova import Port
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import NOT_ASKED

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping

    from ansible_collections.osops.placement.plugins.module_utils._clients.api import Api, Reply
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Answer


class NeutronReader:
    """Reads Neutron; in a cloud without Neutron, nothing is known about ports."""

    def __init__(self, api: Api | None) -> None:
        self._api = api

    def list_ports(self, server: str) -> Answer[tuple[Port, ...]]:
        """Return the ports of a server; no `value` where they are not known.

        That is so without Neutron, and when Neutron does not answer.
        """
        if self._api is None:
            return NOT_ASKED
        try:
            return self._api.ask("/v2.0/ports", None, _parse_ports, device_id=server)
        except CloudError:
            return NOT_ASKED


def _parse_ports(reply: Reply) -> tuple[Port, ...]:
    return tuple(
        Port(
            uuid=row["id"],
            vnic_type=row.get("binding:vnic_type"),
            asks_placement=_asks_placement(row),
        )
        for row in reply.body["ports"]
    )


def _asks_placement(row: Mapping[str, t.Any]) -> bool | None:
    # Only administrators see either field. Neutron stores the allocation of a port in its binding
    # profile.
    if "binding:profile" not in row:
        return None
    return bool(row.get("resource_request") or (row["binding:profile"] or {}).get("allocation"))
