# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The only code that writes to Nova's services.

Everything that it reports as done it has read back.
"""

from __future__ import annotations

import dataclasses as d
import operator
import typing as t
from collections.abc import Mapping, Sequence

from .._common.clock import read_back
from .._common.errors import CloudError
from .._common.parallel import map_parallel
from .._common.text import summarize_names
from .._core.clients.api import Api, Reply
from .._core.clients.nova import NovaReader
from .._core.facts.services import get_listed_services
from .._core.models.nova import Hypervisor, Service

# From 2.53 on a service has a uuid.
_SERVICE_MICROVERSION = "2.53"


class ServiceWriter:
    """Changes and deletes services of Nova."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._reader = NovaReader(api)

    def update_service(self, service: Service, body: Mapping[str, t.Any]) -> Service:
        """Change `service` and return it as Nova then lists it."""
        reply = self._send("PUT", service, body)
        self._api.expect(reply, f"to change the {service.binary} of {service.host}")
        updated = read_back(
            lambda: self._find(service),
            lambda found: found is None or body.items() <= d.asdict(found).items(),
        )
        if updated is None:
            raise CloudError(
                f"The {service.binary} of {service.host} was deleted meanwhile: Nova no longer "
                "lists it."
            )
        return updated

    def delete_service(self, service: Service, nodes: Sequence[Hypervisor]) -> None:
        """Delete `service`, together with which Nova deletes its compute `nodes`.

        Raises CloudError if Nova still lists the service or one of the nodes.
        """
        name = f"the {service.binary} of {service.host}"
        refusal = ""
        try:
            reply = self._send("DELETE", service)
            self._api.expect(reply, f"to delete {name}", 204, 404)
        except CloudError as error:
            refusal = str(error)
        if read_back(lambda: self._find(service), operator.not_, not refusal) is not None:
            raise CloudError(
                refusal or f"Nova accepted the deletion of {name}, but still lists it."
            )
        left = read_back(lambda: self._list_remaining_names(nodes), operator.not_, not refusal)
        if left:
            raise CloudError(
                f"The {service.binary} of {service.host} is deleted, but Nova still lists its "
                f"compute node {summarize_names(left)}: run again."
            )

    def _list_remaining_names(self, nodes: Sequence[Hypervisor]) -> list[str]:
        """Return the names of those compute nodes that Nova still lists."""
        uuids = [node.uuid for node in nodes]
        servers_by_node = map_parallel(self._reader.list_hypervisor_servers, uuids)
        names = []
        for node, servers in zip(nodes, servers_by_node, strict=True):
            # A node without servers has an empty tuple; a deleted node has None.
            if servers is not None:
                names.append(node.name)
        return names

    def _send(
        self, method: str, service: Service, body: Mapping[str, t.Any] | None = None
    ) -> Reply:
        return self._api.write(method, f"/os-services/{service.id}", _SERVICE_MICROVERSION, body)

    def _find(self, service: Service) -> Service | None:
        for entry in get_listed_services(self._reader.list_services()):
            if entry.id == service.id:
                return entry
        return None
