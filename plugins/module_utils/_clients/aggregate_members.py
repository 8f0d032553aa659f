# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""The only code that adds hosts to the host aggregates of Nova."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import CloudError

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping

    from ansible_collections.osops.placement.plugins.module_utils._clients.api import Api

# From 2.41 on an aggregate has a uuid.
_AGGREGATE_MICROVERSION = "2.41"


@d.dataclass(frozen=True)
class NumberedAggregate:
    """A host aggregate with the number by which Nova's requests name it."""

    id: int
    uuid: str
    name: str
    zone: str | None
    hosts: tuple[str, ...]


class AggregateMembers:
    """Lists host aggregates, and adds hosts to them."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def list_aggregates(self) -> tuple[NumberedAggregate, ...]:
        """Return all host aggregates."""
        path = "/os-aggregates"
        reply, aggregates = self._api.read(
            path,
            _AGGREGATE_MICROVERSION,
            lambda reply: tuple(map(_parse_aggregate, reply.body["aggregates"])),
        )
        self._api.expect(reply, "for its host aggregates")
        return aggregates or ()

    def add_host(self, aggregate: NumberedAggregate, host: str) -> None:
        """Add `host` to `aggregate`, and read the aggregate back.

        Nova also adds the provider of the host to the aggregate in Placement.
        Raises CloudError if the host is not in the aggregate afterwards.
        """
        reply = self._api.write(
            "POST",
            f"/os-aggregates/{aggregate.id}/action",
            _AGGREGATE_MICROVERSION,
            {"add_host": {"host": host}},
        )
        # 409: somebody else has added it meanwhile, or Nova refuses: the aggregate shows which.
        refusal = ""
        if reply.status != 200:
            refusal = reply.detail or f"Nova answered {reply.status}."
        for listed in self.list_aggregates():
            if listed.uuid == aggregate.uuid and host in listed.hosts:
                return
        raise CloudError(
            refusal or f"Nova accepted {host}, but does not list it in {aggregate.name}."
        )


def _parse_aggregate(row: Mapping[str, t.Any]) -> NumberedAggregate:
    return NumberedAggregate(
        id=int(row["id"]),
        uuid=row["uuid"],
        name=row["name"],
        zone=row.get("availability_zone"),
        hosts=tuple(row["hosts"]),
    )
