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

from ansible_collections.osops.placement.plugins.module_utils._clients.optional import OptionalApi
from ansible_collections.osops.placement.plugins.module_utils._models.resource_request import (
    PortGroup,
    ServerPort,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping

    from ansible_collections.osops.placement.plugins.module_utils._clients.api import Api, Reply
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Answer


class NeutronReader:
    """Reads Neutron; in a cloud without Neutron, nothing is known about ports."""

    def __init__(self, api: Api | None) -> None:
        self._api = OptionalApi(api)

    def list_ports(self, server: str) -> Answer[tuple[ServerPort, ...]]:
        """Return the ports of a server; no `value` where they are not known.

        That is so without Neutron, and when Neutron does not answer.
        """
        return self._api.ask("/v2.0/ports", _parse_ports, device_id=server)


def _parse_ports(reply: Reply) -> tuple[ServerPort, ...]:
    return tuple(map(parse_port, reply.body["ports"]))


def parse_port(row: Mapping[str, t.Any]) -> ServerPort:
    """Return the port in a row, in either form of `resource_request`.

    Neutron without the extension port-resource-request-groups has one group, and its allocation is
    the uuid of a provider.
    """
    uuid = row["id"]
    request = row.get("resource_request") or {}
    profile = row.get("binding:profile") or {}
    same_subtree: tuple[str, ...] = ()
    if "request_groups" in request:
        groups = tuple(_parse_group(group, group["id"]) for group in request["request_groups"])
        same_subtree = tuple(request.get("same_subtree") or ())
    elif request:
        groups = (_parse_group(request, uuid),)
    else:
        groups = ()
    providers = _parse_providers(profile.get("allocation"))
    # Only administrators see the profile, and with it the request, which may be hidden on its own.
    is_hidden = "binding:profile" not in row or bool(providers and not groups)
    return ServerPort(
        uuid=uuid,
        vnic_type=row.get("binding:vnic_type"),
        groups=None if is_hidden else groups,
        providers=providers,
        same_subtree=same_subtree,
        device_profile=row.get("device_profile"),
    )


def _parse_group(group: Mapping[str, t.Any], uuid: str) -> PortGroup:
    resources = {str(cls): int(amount) for cls, amount in (group.get("resources") or {}).items()}
    return PortGroup(uuid, resources, frozenset(group.get("required") or ()))


def _parse_providers(allocation: t.Any) -> dict[str, str]:
    if not allocation:
        return {}
    if isinstance(allocation, str):
        return {"": allocation}
    return {str(group): str(provider) for group, provider in allocation.items()}
