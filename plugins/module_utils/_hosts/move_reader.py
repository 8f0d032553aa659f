# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read what decides whether and where servers can move: groups, zones and flavors.

Nothing here writes.
API reference: https://docs.openstack.org/api-ref/compute/
"""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from .._common.errors import CloudError
from .._core.clients.api import Api
from .._core.clients.nova import parse_server
from .._core.clients.nova_listings import MAX_PAGE, Listing, ListingReader
from .._core.models.snapshot import Answer
from .draining import DrainServer, ServerGroup

_TRAIT_PREFIX = "trait:"


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
        return self._listings.read(
            Listing(
                "/servers/detail",
                self._listing,
                "servers",
                "id",
                parse_drain_server,
                {"all_tenants": "1", "host": host},
            )
        )

    def get_server(self, uuid: str) -> Answer[DrainServer]:
        """Look up a server directly; a 404 means that no cell has it."""
        return self._api.ask(
            f"/servers/{uuid}",
            self._direct,
            lambda reply: parse_drain_server(reply.body["server"]),
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
        groups: list[ServerGroup] = []
        seen: set[str] = set()
        while True:
            page = self._read_group_page(len(groups))
            fresh = [group for group in page if group.uuid not in seen]
            groups += fresh
            seen.update(group.uuid for group in fresh)
            # Nova may have a lower limit than the requested one, so only a page without anything
            # new is the last one.
            if not fresh:
                return tuple(groups)

    def _read_group_page(self, offset: int) -> tuple[ServerGroup, ...]:
        path = "/os-server-groups"
        reply, groups = self._api.read(
            path,
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
        flavors = self._listings.read(
            Listing(
                "/flavors/detail",
                self._flavors,
                "flavors",
                "id",
                _parse_flavor_traits,
                {"is_public": "none"},
            )
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
    traits = []
    for name, value in (row.get("extra_specs") or {}).items():
        if name.startswith(_TRAIT_PREFIX) and value == "required":
            traits.append(name.removeprefix(_TRAIT_PREFIX))
    return row["name"], traits


def describe_failed_events(action: Mapping[str, t.Any]) -> str:
    """Return why the last failed event of an action failed, in Nova's own words."""
    for event in reversed(sort_events(action)):
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


def sort_events(action: Mapping[str, t.Any]) -> list[Mapping[str, t.Any]]:
    """Return the events of an action in the order in which they began."""
    return sorted(action.get("events") or (), key=lambda event: event.get("start_time") or "")
