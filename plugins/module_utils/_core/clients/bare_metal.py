# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the nodes of Ironic.

API reference: https://docs.openstack.org/api-ref/baremetal/#nodes-nodes
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Mapping

from ..models.snapshot import Answer
from ..models.surroundings import BareMetalNode
from .api import Api, Reply, format_microversion

# Ironic's own default for the longest page.
_PAGE = 1000

# The first microversion that has each field of a listing; 1.1 stands for any Ironic.
# A listing of single fields cannot have `updated_at`, and one with all fields takes far longer.
_FIELDS = {
    "uuid": (1, 1),
    "provision_state": (1, 1),
    "maintenance": (1, 1),
    "power_state": (1, 1),
    "instance_uuid": (1, 1),
    "provision_updated_at": (1, 1),
    "last_error": (1, 1),
    "resource_class": (1, 21),
    "owner": (1, 50),
    "lessee": (1, 65),
}
# From 1.21 on a node has its resource class, and from 1.8 on single fields can be asked for.
_OLDEST = (1, 21)
_NEWEST = max(_FIELDS.values())


class BareMetalReader:
    """Reads nodes: each method sends one request, or reads one listing."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def list_nodes(self) -> Answer[tuple[BareMetalNode, ...]]:
        """Return all nodes that these credentials may see.

        The answer is that of the last request; its `value` is None where a request failed.
        Raises CloudError when Ironic does not say which microversions it has.
        """
        newest = self._read_newest_microversion()
        microversion = format_microversion(min(newest, _NEWEST))
        fields = [name for name, version in _FIELDS.items() if version <= newest]
        query = {"fields": ",".join(fields), "limit": str(_PAGE)}
        nodes: dict[str, BareMetalNode] = {}
        while True:
            answer = self._api.ask("/nodes", microversion, _parse_nodes, False, **query)
            if answer.value is None:
                return answer
            page = [node for node in answer.value if node.uuid not in nodes]
            nodes.update((node.uuid, node) for node in page)
            # An Ironic may have shorter pages than were asked for, so only an empty one is the end.
            if not page:
                return d.replace(answer, value=tuple(nodes.values()))
            query["marker"] = page[-1].uuid

    def get_node(self, uuid: str) -> Answer[BareMetalNode]:
        """Look up a node directly, also for the time when anything of it changed.

        A 404 means that Ironic does not have it, or does not show it to these credentials.
        """
        return self._api.ask(
            f"/nodes/{uuid}", format_microversion(_OLDEST), lambda reply: _parse_node(reply.body)
        )

    def _read_newest_microversion(self) -> tuple[int, int]:
        path = self._api.endpoint
        reply, newest = self._api.read(path, None, _parse_newest_microversion)
        self._api.expect(reply, "for its versions")
        return newest or _OLDEST


def _parse_newest_microversion(reply: Reply) -> tuple[int, int]:
    major, minor = reply.body["version"]["version"].split(".")
    return int(major), int(minor)


def _parse_nodes(reply: Reply) -> tuple[BareMetalNode, ...]:
    return tuple(map(_parse_node, reply.body["nodes"]))


def _parse_node(row: Mapping[str, t.Any]) -> BareMetalNode:
    return BareMetalNode(
        uuid=row["uuid"],
        provision_state=row["provision_state"],
        maintenance=bool(row["maintenance"]),
        power_state=row["power_state"],
        instance=row["instance_uuid"],
        resource_class=row.get("resource_class"),
        owner=row.get("owner"),
        lessee=row.get("lessee"),
        provisioned_at=_strip_zone(row.get("provision_updated_at")),
        updated_at=_strip_zone(row.get("updated_at")),
        last_error=row.get("last_error"),
    )


def _strip_zone(moment: str | None) -> str | None:
    """Return a time in UTC without its zone, as Nova writes times."""
    if moment is None:
        return None
    return moment.removesuffix("+00:00")
