# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read Nova. Nothing here writes, and nothing here knows of orphans.

API reference: https://docs.openstack.org/api-ref/compute/
"""

from __future__ import annotations

import typing as t
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter

from ..._common.parallel import WORKERS, Pace
from ..models.nova import Action, Aggregate, Hypervisor, Migration, Server, Service
from ..models.resource_request import Attachment
from ..models.snapshot import NOT_ASKED, Answer
from ..models.surroundings import DeletedServer
from .api import Api, parse_rows
from .nova_listings import MAX_PAGE, Listing, ListingReader, split_into_parts
from .nova_parsing import (
    parse_action,
    parse_actions,
    parse_aggregate,
    parse_attachment,
    parse_complete_migrations,
    parse_deleted_server,
    parse_hypervisor,
    parse_migration,
    parse_named_server,
    parse_named_servers,
    parse_server,
    parse_service,
    require_same_uuid,
)

if t.TYPE_CHECKING:  # pragma: no cover
    import threading


T = t.TypeVar("T")


class NovaReader:
    """Reads Nova: each method sends one request, or reads one listing."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._listings = ListingReader(api)
        self._pace = Pace(few=2, many=WORKERS, sample=WORKERS, default=WORKERS)
        # From 2.69 on a server whose cell is down can be answered with 404 (nova/compute/api.py,
        # _get_instance_from_cell); up to 2.68 that is a 500, so only here does a 404 mean that
        # Nova searched and has no such server.
        self._direct = api.choose_microversion(2, 68)
        # For listings it is the reverse: from 2.69 on, servers and services in a dead cell have the
        # status UNKNOWN instead of being missing.
        self._listing = api.choose_microversion(2, 90)
        # From 2.98 on a server has the properties of its image.
        self._shape = api.choose_microversion(2, 98)
        # From 2.88 on Nova asks every host for its uptime, and no longer returns used amounts
        # (nova/api/openstack/compute/hypervisors.py).
        self._hypervisor_listing = api.choose_microversion(2, 87)
        # From 2.43 on Nova has no request that finds a host by its mapping in the API database.
        self._host_lookup = api.choose_microversion(2, 42)
        # Migrations have uuids from 2.59 on.
        self._migration_key = "uuid" if api.newest >= (2, 59) else "id"

    @property
    def undisturbed(self) -> threading.Event:
        """Set once Nova has shown at which pace it lists the compute nodes best.

        Until then, other work on the same machines would disturb the measurement.
        """
        return self._listings.pace.undisturbed

    @property
    def workers(self) -> int:
        """How many single requests to send at once, as far as Nova has shown what is best."""
        return self._pace.workers

    @property
    def retried(self) -> int:
        """How many requests were sent again because their answer was incomplete or missing."""
        return self._api.retried

    def believe_errors(self, believe: bool) -> None:
        """Set whether a 500 counts at once, without another attempt.

        That saves time while a cell is down, because its 500 does not go away.
        """
        self._api.believes_errors = believe

    def list_services(self) -> Answer[tuple[Service, ...]]:
        """Return all services; those of an unreachable cell have the status `UNKNOWN`."""
        # Over its own connection, because only answers of several API workers show that one of them
        # does not know a cell.
        parse = parse_rows("services", parse_service)
        answer = self._api.ask("/os-services", self._listing, parse, True)
        return self._listings.require_access(answer)

    def get_host(self, name: str) -> Answer[bool]:
        """Ask directly for the compute node of a host.

        A 200 proves that there is one, a 404 that there is none.

        Nova searches for the host in the mappings of its API database, and then in the host's own
        cell (nova/api/openstack/compute/hosts.py, HostController.show): unlike the listings, this
        does not depend on the cells that an API worker happens to know.
        """
        return self._api.ask(
            f"/os-hosts/{urllib.parse.quote(name, safe='')}", self._host_lookup, lambda reply: True
        )

    def list_hypervisors(
        self, with_servers: bool, roots: Sequence[str] = ()
    ) -> Answer[tuple[Hypervisor, ...]]:
        """Return all compute nodes, if `with_servers` with the servers of their hosts.

        Of all listings with every server, this is the cheapest that also returns the host of each
        server: it takes half the time of the brief listing of servers, which has no hosts, and a
        seventh of the detailed one (docs/benchmark.md).

        roots: root providers in Placement's order, most of them compute nodes, and mostly in Nova's
            order too. The listing is read from some of them, in parallel where that is faster.
        """
        filters = {"with_servers": "true"} if with_servers else {}
        listing = self._listings.read(
            Listing(
                "/os-hypervisors/detail",
                self._hypervisor_listing,
                "hypervisors",
                "id",
                lambda row: parse_hypervisor(row, with_servers),
                filters,
                parts=split_into_parts(roots, self._listings.pace.trial),
                stage="compute nodes",
                expected=len(roots) or None,
            )
        )
        if self._listings.pace.prefers_few:
            self._pace.choose_few()
        return listing

    def list_hypervisor_servers(self, node: str) -> tuple[str, ...] | None:
        """Return the UUIDs of the servers on the host of a compute node, or None without a node."""
        path = f"/os-hypervisors/{node}"
        reply, servers = self._api.read(
            path,
            self._hypervisor_listing,
            lambda reply: parse_hypervisor(reply.body["hypervisor"], True).servers,
            with_servers="true",
        )
        self._api.expect(reply, f"for the servers of {node}", 200, 404)
        return servers

    def get_hypervisor(self, uuid: str) -> Answer[Hypervisor]:
        """Return one compute node, without the servers of its host.

        Nova searches the cells one after the other (nova/compute/api.py, compute_node_get).
        """
        return self._api.ask(
            f"/os-hypervisors/{uuid}",
            self._hypervisor_listing,
            lambda reply: parse_hypervisor(reply.body["hypervisor"], False),
        )

    def get_hypervisors(self, uuids: Sequence[str]) -> list[Answer[Hypervisor]]:
        """Return compute nodes, read one by one."""
        return self._pace.map(self.get_hypervisor, uuids)

    def list_changed_servers(self, since: str) -> Answer[tuple[Server, ...]]:
        """Return the servers that Nova changed at or after `since`, deleted ones with them.

        Nova compares `updated_at` (nova/db/main/api.py, _get_query_nova_resource_by_changes_time),
        so that a change of the database by hand, which leaves that column alone, is not listed.

        since: a time by Nova's clock, in UTC.
        """
        return self._list_servers({"changes-since": since})

    def list_changed_migrations(self, since: str) -> Answer[tuple[Migration, ...]]:
        """Return the migrations that Nova changed at or after `since`, as `list_changed_servers`.

        A migration that was made and never changed is not among them.
        """
        return self._list_migrations({"changes-since": since})

    @property
    def lists_changed_migrations(self) -> bool:
        """Whether this Nova lists the migrations that have changed (2.59 and later)."""
        return self._migration_key == "uuid"

    def list_servers_on_host(self, host: str) -> tuple[Server, ...]:
        """Return the servers of one host with their flavors; () if Nova does not list them."""
        return self.query_servers_on_host(host).value or ()

    def query_servers_on_host(self, host: str) -> Answer[tuple[Server, ...]]:
        """Return Nova's answer to the request for the servers of one host."""
        return self._list_servers({"host": host})

    def _list_servers(self, filters: Mapping[str, str]) -> Answer[tuple[Server, ...]]:
        """Return the servers of all projects that match `filters`, with their flavors."""
        # With the properties of the images of servers, where Nova offers them.
        return self._list_rows(parse_server, filters, microversion=self._shape)

    def _list_rows(
        self,
        parse: Callable[[Mapping[str, t.Any]], T],
        filters: Mapping[str, str],
        path: str = "/servers/detail",
        microversion: str = "",
        **options: t.Any,
    ) -> Answer[tuple[T, ...]]:
        """Return what `parse` makes of the servers of all projects that match `filters`."""
        query = {"all_tenants": "1", **filters}
        version = microversion or self._listing
        return self._listings.read(Listing(path, version, "servers", "id", parse, query, **options))

    def _list_uuids(self, filters: Mapping[str, str], **options: t.Any) -> Answer[tuple[str, ...]]:
        return self._list_rows(lambda row: str(row["id"]), filters, path="/servers", **options)

    def list_server_uuids_on_host(self, host: str) -> Answer[tuple[str, ...]]:
        """Return the uuids of the servers of one host."""
        return self._list_uuids({"host": host})

    def list_server_uuids_in_status(self, status: str, attempt: int = 0) -> Answer[tuple[str, ...]]:
        """Return the uuids of the servers of all projects in a status.

        Those of a cell that does not answer are left out, because the listing is filtered. See
        `list_migrations_of_host` for `attempt`.
        """
        return self._list_uuids(
            {"status": status}, page_size=MAX_PAGE - attempt, own_connection=True
        )

    def list_server_uuids(self) -> frozenset[str]:
        """Return the uuids of all servers that are not deleted."""
        return frozenset(self._list_uuids({}, stage="servers").value or ())

    def list_server_projects(self) -> Answer[tuple[tuple[str, str], ...]]:
        """Return the uuid and the project of each server that is not deleted.

        No brief listing has the projects: this takes Nova about 5 s for 1 000 servers.
        """
        # A server of a cell that does not answer has only what Nova's API database knows.
        return self._list_rows(
            lambda row: (str(row["id"]), str(row.get("tenant_id") or "")), {}, stage="servers"
        )

    def list_servers_in_state(self, field: str, state: str) -> Answer[tuple[DeletedServer, ...]]:
        """Return the servers of all projects in a state that they should leave soon.

        Those of a cell that does not answer are left out, because the listing is filtered.

        field: `task_state`, `vm_state` or `status`, by which Nova filters in its databases.
        """
        return self._list_rows(parse_deleted_server, {field: state})

    def get_deleted_server(self, uuid: str) -> Answer[DeletedServer]:
        """Look up directly a server that should be deleted."""
        return self._api.ask(
            f"/servers/{uuid}",
            self._direct,
            lambda reply: parse_deleted_server(reply.body["server"]),
        )

    def list_aggregates(self) -> tuple[Aggregate, ...]:
        """Return all host aggregates."""
        parse = parse_rows("aggregates", parse_aggregate)
        reply, aggregates = self._api.read("/os-aggregates", self._listing, parse)
        self._api.expect(reply, "for its aggregates")
        return aggregates or ()

    def list_migrations(self) -> Answer[tuple[Migration, ...]]:
        """Return all migrations whose server is not deleted."""
        return self._list_migrations({}, stage="migrations")

    def list_evacuations(self) -> Answer[tuple[Migration, ...]]:
        """Return all evacuations whose server is not deleted."""
        return self._list_migrations({"migration_type": "evacuation"}, own_connection=True)

    def list_migrations_of_host(self, host: str, attempt: int = 0) -> Answer[tuple[Migration, ...]]:
        """Return the migrations that name `host` as source or destination.

        Like those of `list_migrations`, their servers are not deleted.

        Each `attempt` has its own connection and its own URL, so that a load balancer that selects
        by either of them may select another API worker.
        """
        return self._list_migrations(
            {"host": host}, page_size=MAX_PAGE - attempt, own_connection=True
        )

    def _list_migrations(
        self, filters: Mapping[str, str], **options: t.Any
    ) -> Answer[tuple[Migration, ...]]:
        path, key = "/os-migrations", "migrations"
        return self._listings.read(
            Listing(
                path, self._listing, key, self._migration_key, parse_migration, filters, **options
            )
        )

    def list_migrations_of_server(self, server: str) -> Answer[tuple[Migration, ...]]:
        """Return the migrations of one server, newest first.

        The `value` is None if there are more than a page, because then some of them are missing.
        """
        return self._listings.require_access(
            self._api.ask(
                "/os-migrations",
                self._listing,
                lambda reply: parse_complete_migrations(reply, server),
                instance_uuid=server,
            )
        )

    def get_server(self, uuid: str) -> Answer[Server]:
        """Look up a server directly.

        A 404 means that the cell to which it is mapped does not have it, or that it is not mapped
        to a cell, and that it is not about to be built. `list_server_rows` searches every cell.
        """
        return self._api.ask(
            f"/servers/{uuid}", self._direct, lambda reply: parse_named_server(reply, uuid)
        )

    def get_server_with_image_properties(self, uuid: str) -> Answer[Server]:
        """Look up a server again that `get_server` returned, for the properties of its image."""
        return self._api.ask(
            f"/servers/{uuid}", self._shape, lambda reply: parse_named_server(reply, uuid)
        )

    def list_attached_port_uuids(self, uuid: str) -> Answer[tuple[str, ...]]:
        """Return the uuids of the ports of a server, as Neutron shows them to Nova.

        Nova asks with the token of the same user (nova/api/openstack/compute/attach_interfaces.py).
        """
        parse = parse_rows("interfaceAttachments", itemgetter("port_id"))
        return self._api.ask(f"/servers/{uuid}/os-interface", self._direct, parse)

    def list_attachments(self, uuid: str) -> Answer[tuple[Attachment, ...]]:
        """Return the volumes that are attached to a server, with their devices."""
        parse = parse_rows("volumeAttachments", parse_attachment)
        return self._api.ask(f"/servers/{uuid}/os-volume_attachments", self._direct, parse)

    def find_deleted_server(self, uuid: str, brief: bool = False) -> Answer[tuple[Server, ...]]:
        """Return the server if Nova lists it as deleted and has not archived it; one or none.

        brief: request only its name, which takes Nova half the time; its status is then empty.
        """
        return self._api.ask(
            "/servers" if brief else "/servers/detail",
            self._direct,
            lambda reply: parse_named_servers(reply, uuid),
            all_tenants="1",
            deleted="True",
            uuid=uuid,
        )

    def list_instance_actions(self, server: str) -> Answer[tuple[Action, ...]]:
        """Return all instance actions of a server, newest first; also of a deleted server.

        Nova keeps the actions of a deleted server until the server is archived.

        The `value` is None if some of them could not be read, because the absence of an action is
        evidence too.
        """
        path = f"/servers/{server}/os-instance-actions"
        actions: list[Action] = []
        markers: list[str] = []
        query: dict[str, str] = {}
        while True:
            reply, page = self._api.read(
                path, self._direct, lambda reply: parse_actions(reply, server), False, **query
            )
            if page is None:
                return self._api.build_answer(path, self._direct, query, reply, None)
            actions += page
            if not page or not reply.body.get("links"):
                return self._api.build_answer(path, self._direct, {}, reply, tuple(actions))
            marker = page[-1].request_id
            if marker in markers:
                # One request can have two actions, and Nova then pages from the newer of them.
                return self._api.build_answer(path, self._direct, query, reply, None)
            markers.append(marker)
            query = {"marker": marker}

    def get_instance_action(self, server: str, request_id: str) -> Answer[Action]:
        """Return one action with its events.

        It has no events if these credentials may not see them.
        """
        return self._api.ask(
            f"/servers/{server}/os-instance-actions/{request_id}",
            self._direct,
            lambda reply: parse_action(
                require_same_uuid(reply.body["instanceAction"], "instance_uuid", server)
            ),
        )

    def probe_migration_marker(self, uuid: str, attempt: int = 0) -> Answer[bool]:
        """Ask whether `uuid` is the UUID of a migration, whether or not its server is deleted.

        A 200 proves that it is; any other status proves nothing.

        Nova has no request for one migration by its UUID. As a paging marker it also accepts a
        migration that it no longer lists (nova/db/main/api.py, migration_get_by_uuid with
        read_deleted="yes"). See `list_migrations_of_host` for `attempt`.
        """
        if self._migration_key != "uuid":
            return NOT_ASKED
        return self._api.ask(
            "/os-migrations",
            self._listing,
            lambda reply: True,
            True,
            limit=str(1 + attempt),
            marker=uuid,
        )

    def list_server_rows(self, uuid: str, attempt: int = 0) -> Answer[tuple[str, ...]]:
        """Return the uuid of a server if any cell has a row of it that is not deleted; one or none.

        Nova searches all cells that the API worker knows (nova/compute/instance_list.py). A direct
        lookup goes to one cell, by the instance mapping, which a server can have lost. See
        `list_migrations_of_host` for `attempt`.
        """
        return self._api.ask(
            "/servers",
            self._direct,
            lambda reply: tuple(server.uuid for server in parse_named_servers(reply, uuid)),
            True,
            all_tenants="1",
            uuid=uuid,
            # Without this, Nova leaves out a server that is soft-deleted.
            soft_deleted="True",
            limit=str(1 + attempt),
        )

    def list_newest_servers(self, count: int) -> Answer[tuple[Server, ...]]:
        """Return the newest servers of all projects, at most `count`."""
        return self._list_newest(limit=str(count))

    def list_newest_servers_on_host(self, host: str, count: int) -> Answer[tuple[Server, ...]]:
        """Return the newest servers of one host, at most `count`.

        There are none if these credentials may not see the hosts of servers.
        """
        return self._list_newest(host=host, limit=str(count))

    def _list_newest(self, **filters: t.Any) -> Answer[tuple[Server, ...]]:
        parse = parse_rows("servers", parse_server)
        return self._listings.require_access(
            self._api.ask("/servers/detail", self._listing, parse, all_tenants="1", **filters)
        )
