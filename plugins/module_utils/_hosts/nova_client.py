# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The only code that asks Nova to move servers, or writes to its services; what it reads for that.

No move names a host, except the one that takes a server back to a host where it was, and none has
`force`: Nova's scheduler decides in each case, with all of its filters. What is reported as done to
a service was read back.

API reference: https://docs.openstack.org/api-ref/compute/
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
from .._core.clients.nova import NovaReader, parse_server
from .._core.clients.nova_listings import MAX_PAGE, Listing, ListingReader
from .._core.facts.services import get_listed_services
from .._core.models.nova import Hypervisor, Service
from .._core.models.snapshot import Answer
from .draining import COLD, EVACUATION, LIVE, DrainServer, ServerGroup, list_traits


class MoveReader:
    """Reads Nova: each method sends one request, or reads one listing."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._listings = ListingReader(api)
        # From 2.96 on a server has the zone that was requested, from 2.98 on the properties of its
        # image.
        self._listing = api.choose_microversion(2, 98)
        # Only up to 2.68 does a 404 mean that Nova searched and has no such server.
        self._direct = api.choose_microversion(2, 68)
        # From 2.64 on a group has one policy, with its rules.
        self._groups = api.choose_microversion(2, 64)
        # From 2.61 on a flavor has its extra specs.
        self._flavors = api.choose_microversion(2, 61)
        # From 2.84 on the failed event of an action says why it failed.
        self._actions = api.choose_microversion(2, 84)

    def list_servers(self, host: str) -> Answer[tuple[DrainServer, ...]]:
        """Return the servers of all projects on one host."""
        path, filters = "/servers/detail", {"all_tenants": "1", "host": host}
        return self._listings.read(
            Listing(path, self._listing, "servers", "id", parse_drain_server, filters)
        )

    def get_server(self, uuid: str) -> Answer[DrainServer]:
        """Look up a server directly; a 404 means that no cell has it."""
        return self._api.ask(
            f"/servers/{uuid}", self._direct, lambda reply: parse_drain_server(reply.body["server"])
        )

    def has_host_answered(self, server: str) -> bool:
        """Return whether the nova-compute of a server answers, whatever its service's state is."""
        # It answers too that the guest does not run (409) or that its driver has none (501).
        return self._ask_for_diagnostics(server) in (200, 400, 409, 501)

    def runs_on_its_host(self, server: str) -> bool:
        """Return whether the hypervisor of the host that Nova records runs the guest now.

        nova-compute asks it, and refuses unless the guest runs (nova/compute/manager.py,
        get_instance_diagnostics). False proves nothing.
        """
        return self._ask_for_diagnostics(server) == 200

    def _ask_for_diagnostics(self, server: str) -> int | None:
        """Return the status of Nova's answer, None without one.

        Nova asks nova-compute and waits for rpc_response_timeout, a minute by default
        (nova/compute/api.py, get_instance_diagnostics). So the request is sent once.
        """
        try:
            return self._api.write("GET", f"/servers/{server}/diagnostics", self._direct).status
        except CloudError:
            return None

    def list_groups(self) -> tuple[ServerGroup, ...]:
        """Return the server groups of all projects."""
        groups: dict[str, ServerGroup] = {}
        while True:
            page = self._read_group_page(len(groups))
            fresh = {group.uuid: group for group in page if group.uuid not in groups}
            groups.update(fresh)
            # Nova may have a lower limit than the requested one, so only a page without anything
            # new is the last one.
            if not fresh:
                return tuple(groups.values())

    def _read_group_page(self, offset: int) -> tuple[ServerGroup, ...]:
        reply, groups = self._api.read(
            "/os-server-groups",
            self._groups,
            lambda reply: tuple(map(parse_group, reply.body["server_groups"])),
            all_projects="True",
            limit=str(MAX_PAGE),
            offset=str(offset),
        )
        self._api.expect(reply, "for its server groups")
        return groups or ()

    def list_flavors_by_trait(self) -> dict[str, list[str]]:
        """Return the names of the flavors that require a trait, by trait."""
        names: dict[str, list[str]] = {}
        path, filters = "/flavors/detail", {"is_public": "none"}
        flavors = self._listings.read(
            Listing(path, self._flavors, "flavors", "id", _parse_flavor_traits, filters)
        )
        for flavor, traits in flavors.value or ():
            for trait in traits:
                names.setdefault(trait, []).append(flavor)
        return names

    def find_failure(self, server: str, request_id: str) -> str:
        """Return the last words of Nova about a failed action; empty where it has none."""
        path = f"/servers/{server}/os-instance-actions/{request_id}"
        reply = self._api.get(path, self._actions)
        if reply.status != 200:
            return ""
        return self._api.parse(
            lambda reply: describe_failed_events(reply.body["instanceAction"]), reply, path
        )


def parse_drain_server(row: Mapping[str, t.Any]) -> DrainServer:
    """Return the server in a row."""
    zone = row.get("OS-EXT-AZ:availability_zone") or None
    # A server that was booted without a zone has a null.
    pinned_zone = row.get("pinned_availability_zone", zone)
    return DrainServer(
        server=parse_server(row),
        locked=bool(row.get("locked")),
        zone=zone,
        pinned_zone=pinned_zone or None,
        flavor_name=(row.get("flavor") or {}).get("original_name", ""),
        fault=(row.get("fault") or {}).get("message"),
    )


def parse_group(row: Mapping[str, t.Any]) -> ServerGroup:
    """Return the server group in a row; before 2.64 it has a list of one policy."""
    policy = row.get("policy") or next(iter(row.get("policies") or ()), "")
    limit = (row.get("rules") or {}).get("max_server_per_host")
    return ServerGroup(row["id"], row["name"], policy, tuple(row["members"]), int(limit or 1))


def _parse_flavor_traits(row: Mapping[str, t.Any]) -> tuple[str, list[str]]:
    return row["name"], sorted(list_traits([row.get("extra_specs") or {}]))


def describe_failed_events(action: Mapping[str, t.Any]) -> str:
    """Return why the last failed event of an action failed, in Nova's own words."""
    events = sorted(action.get("events") or (), key=lambda event: event.get("start_time") or "")
    for event in reversed(events):
        if event.get("result") != "Error":
            continue
        details = event.get("details")
        if details:
            return str(details)
        # The last line of a traceback is the exception with its message.
        lines = (event.get("traceback") or "").strip().splitlines()
        if lines:
            return str(lines[-1]).strip()
    return ""


# The headers with the id of a request, which is also that of its instance action. Nova sends both,
# and a proxy may let only one pass.
_REQUEST_IDS = ("x-openstack-request-id", "x-compute-request-id")


@d.dataclass(frozen=True)
class MoveReply:
    """What became of a request.

    status: None if there was no answer, so that the request may or may not have reached Nova.
    request_id: empty where the answer has none.
    """

    status: int | None
    detail: str
    request_id: str = ""

    @property
    def is_accepted(self) -> bool:
        return self.status is not None and self.status < 300

    @property
    def is_refused(self) -> bool:
        """Whether the answer says what is wrong with the request, so that Nova did nothing."""
        return self.status is not None and 400 <= self.status < 500


class ServerMover:
    """Sends the requests that move one server. Each is sent once."""

    def __init__(self, api: Api) -> None:
        self._api = api
        # From 2.68 on Nova knows no `force`. From 2.95 on an evacuated server is stopped, while up
        # to 2.94 it keeps its state.
        self._microversion = api.choose_microversion(2, 68)

    def check_hosts_can_be_named(self) -> None:
        """Raise CloudError if Nova is too old to name the host of a cold migration (2.56)."""
        self._api.require_microversion(2, 56)

    def move(self, server: str, how: str, host: str | None = None) -> MoveReply:
        """Ask for a move, to `host` if the scheduler accepts it; an evacuation goes anywhere."""
        requests: dict[str, dict[str, t.Any]] = {
            LIVE: {"os-migrateLive": {"host": host, "block_migration": "auto"}},
            COLD: {"migrate": {"host": host} if host else None},
            EVACUATION: {"evacuate": {}},
        }
        return self._act(server, requests[how])

    def confirm_resize(self, server: str) -> MoveReply:
        return self._act(server, {"confirmResize": None})

    def _act(self, server: str, body: Mapping[str, t.Any]) -> MoveReply:
        try:
            reply = self._api.write("POST", f"/servers/{server}/action", self._microversion, body)
        except CloudError as error:
            return MoveReply(None, str(error))
        request_ids = filter(None, map(reply.headers.get, _REQUEST_IDS))
        return MoveReply(reply.status, reply.detail, next(request_ids, ""))


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
        # A node without servers has an empty tuple; a deleted node has None.
        pairs = zip(nodes, servers_by_node, strict=True)
        return [node.name for node, servers in pairs if servers is not None]

    def _send(
        self, method: str, service: Service, body: Mapping[str, t.Any] | None = None
    ) -> Reply:
        return self._api.write(method, f"/os-services/{service.id}", _SERVICE_MICROVERSION, body)

    def _find(self, service: Service) -> Service | None:
        listed = get_listed_services(self._reader.list_services())
        return next((entry for entry in listed if entry.id == service.id), None)
