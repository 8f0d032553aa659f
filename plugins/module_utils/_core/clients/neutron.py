# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the ports of a server from Neutron. A port may request resources from Placement.

API reference: https://docs.openstack.org/api-ref/network/v2/#ports
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Collection, Mapping

from ..models.other_services import PortGroup, ServerPort
from ..models.snapshot import Answer
from .api import Api, Reply
from .other_services import OptionalApi

# With this role, Neutron shows everything of all projects, unless its own policy says otherwise.
ADMIN = "admin"
# How many ports show whether those of other projects are among them.
SAMPLE = "100"


class NeutronReader:
    """Reads Neutron; in a cloud without Neutron, nothing is known about ports."""

    def __init__(
        self, api: Api | None, project: str | None = None, roles: Collection[str] = frozenset()
    ) -> None:
        """Read with the credentials for a project, which have these roles there."""
        self._api = OptionalApi(api)
        self._project = project
        self._sees_all = ADMIN in roles

    def list_ports(self, server: str) -> Answer[tuple[ServerPort, ...]]:
        """Return the ports of a server; no `value` where they are not known.

        That is so without Neutron, when Neutron does not answer, and where these credentials are
        not seen to see the ports of other projects. Nova's own listing does not show what is
        hidden: it asks Neutron with the token of the same user (nova/network/neutron.py,
        list_ports).
        """
        answer = self._api.ask_pages("/v2.0/ports", "ports", parse_port, device_id=server)
        if answer.value is not None and not self._sees_all_ports():
            return d.replace(answer, value=None)
        return answer

    def _sees_all_ports(self) -> bool:
        if not self._sees_all:
            # Asked again while it is not known: it costs a request for each candidate alone.
            sample = self._api.ask(
                "/v2.0/ports",
                lambda reply: shows_other_projects(reply, self._project),
                limit=SAMPLE,
            )
            self._sees_all = sample.value is True
        return self._sees_all


def shows_other_projects(reply: Reply, own: str | None) -> bool:
    """Return whether a port of another project than `own`, with its host, is among those listed."""
    owners = {
        row.get("project_id") or row.get("tenant_id")
        for row in reply.body["ports"]
        if "binding:host_id" in row
    }
    return any(owner and owner != own for owner in owners)


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
        shows_request="resource_request" in row,
        device_owner=row.get("device_owner"),
        host=row.get("binding:host_id") or None,
        has_trunk=bool(row.get("trunk_details")),
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
