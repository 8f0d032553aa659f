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
from ..._common.text import normalize_uuid
from ..models.nova import (
    Action,
    ActionEvent,
    Aggregate,
    Flavor,
    Hypervisor,
    Migration,
    Server,
    Service,
)
from ..models.other_services import Attachment, DeletedServer
from ..models.snapshot import NOT_ASKED, Answer
from .api import Api, OtherRows, Reply, parse_rows
from .nova_listings import MAX_PAGE, Listing, ListingReader, split_into_parts

if t.TYPE_CHECKING:  # pragma: no cover
    import threading

# What the traceback of `compute_resize_instance` shows when the driver gave up: that it raised
# itself; or that it had Nova roll back (InstanceFaultRollback), which Nova then did, or failed to
# write to Placement. What fails after the copy shows none of them (nova/compute/manager.py,
# _resize_instance and _error_out_instance_on_exception).
_GAVE_UP = ("in migrate_disk_and_power_off", "raise error.inner_exception", "in _instance_update")

# The fields of a hypervisor by the resource class that they count.
_CAPACITY_FIELDS = {"VCPU": "vcpus", "MEMORY_MB": "memory_mb", "DISK_GB": "local_gb"}
_USED_FIELDS = {"VCPU": "vcpus_used", "MEMORY_MB": "memory_mb_used", "DISK_GB": "local_gb_used"}

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

    def search_nodes(self, name: str) -> Answer[tuple[str, ...]]:
        """Search for the compute nodes whose name contains `name`.

        The answer has only those of which Nova also finds the compute service, by the mapping of
        their host. It is a 404 if there is no such compute node, so a 200 without any proves that
        the service is missing (nova/api/openstack/compute/hypervisors.py, _get_hypervisors).
        """
        parse = parse_rows("hypervisors", lambda row: str(row["hypervisor_hostname"]))
        return self._api.ask(
            "/os-hypervisors/detail",
            self._hypervisor_listing,
            parse,
            hypervisor_hostname_pattern=name,
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
        filters: Mapping[str, str | Sequence[str]],
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

    def list_server_uuids(self, project: str = "") -> frozenset[str]:
        """Return the uuids of all servers that are not deleted, or of those of one project."""
        filters = {"project_id": project} if project else {}
        return frozenset(self._list_uuids(filters, stage="servers").value or ())

    def list_server_projects(self) -> Answer[tuple[tuple[str, str], ...]]:
        """Return the uuid and the project of each server that is not deleted.

        No brief listing has the projects: this takes Nova about 5 s for 1 000 servers.
        """
        # A server of a cell that does not answer has only what Nova's API database knows.
        return self._list_rows(
            lambda row: (str(row["id"]), str(row.get("tenant_id") or "")), {}, stage="servers"
        )

    def list_servers_in_state(
        self, field: str, states: Sequence[str]
    ) -> Answer[tuple[DeletedServer, ...]]:
        """Return the servers of all projects in one of the states that they should leave soon.

        Those of a cell that does not answer are left out, because the listing is filtered.

        field: `task_state` or `host`, each of one value, or `status`, by which Nova filters in its
            databases.
        """
        return self._list_rows(parse_deleted_server, {field: states})

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


def parse_service(row: Mapping[str, t.Any]) -> Service:
    """Return the service in a row; one of an unreachable cell has few of the fields."""
    return Service(
        binary=row["binary"],
        host=_require_name(row["host"]),
        status=row["status"],
        state=row.get("state"),
        forced_down=bool(row.get("forced_down")),
        disabled_reason=row.get("disabled_reason"),
        updated_at=row.get("updated_at"),
        id=row.get("id"),
        zone=row.get("zone"),
    )


def _require_name(value: t.Any) -> str:
    """Return the name of a host, which Nova always gives to a service."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is not the name of a host")
    return value


def parse_aggregate(row: Mapping[str, t.Any]) -> Aggregate:
    """Return the host aggregate in a row."""
    return Aggregate(
        row["uuid"],
        row["name"],
        row.get("availability_zone"),
        tuple(row["hosts"]),
        dict(row.get("metadata") or {}),
        row.get("id"),
    )


def parse_hypervisor(row: Mapping[str, t.Any], with_servers: bool) -> Hypervisor:
    """Return the compute node in a row.

    with_servers: whether the row comes from a request for the servers of the host as well.
    """
    servers = None
    if with_servers:
        # A host without servers has no such key.
        servers = tuple(server["uuid"] for server in row.get("servers", ()))
    return Hypervisor(
        uuid=row["id"],
        name=row["hypervisor_hostname"],
        host=_require_name(row["service"]["host"]),
        state=row["state"],
        status=row["status"],
        servers=servers,
        has=_parse_amounts(row, _CAPACITY_FIELDS),
        used=_parse_amounts(row, _USED_FIELDS),
        running_vms=row.get("running_vms") or 0,
    )


def _parse_amounts(row: Mapping[str, t.Any], fields: Mapping[str, str]) -> dict[str, int]:
    return {cls: row[field] for cls, field in fields.items() if row.get(field) is not None}


def parse_migration(row: Mapping[str, t.Any]) -> Migration:
    """Return the migration in a row; before 2.59 it has no uuid, and its number stands for one."""
    return Migration(
        uuid=row.get("uuid") or f"migration {row['id']}",
        server=row["instance_uuid"],
        type=row["migration_type"],
        status=row["status"],
        source_compute=row["source_compute"],
        source_node=row["source_node"],
        dest_compute=row["dest_compute"],
        dest_node=row["dest_node"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


class OtherSubject(ValueError):
    """An answer is about another server than the one that was asked for."""


def require_same_uuid(row: Mapping[str, t.Any], key: str, asked: str) -> Mapping[str, t.Any]:
    """Return a row of an answer about one server.

    Raises OtherSubject if the row is about another server: a cache or a proxy may mix up answers.
    """
    wanted = normalize_uuid(asked)
    if wanted is not None and key in row and normalize_uuid(str(row[key])) != wanted:
        raise OtherSubject
    return row


def parse_complete_migrations(reply: Reply, server: str) -> tuple[Migration, ...] | None:
    """Return the migrations of a server, or None when they continue on another page."""
    if reply.body.get("migrations_links"):
        return None
    rows = reply.body["migrations"]
    return tuple(parse_migration(require_same_uuid(row, "instance_uuid", server)) for row in rows)


def parse_named_server(reply: Reply, uuid: str) -> Server:
    """Return the server of a reply about one server."""
    return parse_server(require_same_uuid(reply.body["server"], "id", uuid))


def parse_named_servers(reply: Reply, uuid: str) -> tuple[Server, ...]:
    """Return the servers of a listing that is limited to one server; one or none."""
    rows = reply.body["servers"]
    try:
        return tuple(parse_server(require_same_uuid(row, "id", uuid)) for row in rows)
    except OtherSubject as error:
        raise OtherRows(
            "servers that its filter excludes. Use a role that may filter them "
            "(servers:allow_all_filters in the policy of Nova, admin by default), or look for a "
            "proxy that answers instead of Nova"
        ) from error


def parse_server(row: Mapping[str, t.Any]) -> Server:
    """Return the server in a row.

    Nova leaves out fields that these credentials may not see, and most of them in a brief listing.
    """
    # Booted from a volume, a server has an empty text where others have their image.
    image = row.get("image") or {}
    return Server(
        uuid=row["id"],
        name=row.get("name", ""),
        status=row.get("status", ""),
        project=row.get("tenant_id"),
        user=row.get("user_id"),
        host=row.get("OS-EXT-SRV-ATTR:host"),
        node=row.get("OS-EXT-SRV-ATTR:hypervisor_hostname"),
        task_state=row.get("OS-EXT-STS:task_state"),
        task_known="OS-EXT-STS:task_state" in row,
        host_known="OS-EXT-SRV-ATTR:host" in row,
        created=row.get("created"),
        updated=row.get("updated"),
        terminated_at=row.get("OS-SRV-USG:terminated_at"),
        image=image.get("id"),
        volumes=tuple(
            volume["id"] for volume in row.get("os-extended-volumes:volumes_attached", ())
        ),
        flavor=_parse_flavor(row.get("flavor") or {}),
        image_properties=image.get("properties"),
        root_device=row.get("OS-EXT-SRV-ATTR:root_device_name"),
        pinned_zone=row.get("pinned_availability_zone"),
        launched_at=row.get("OS-SRV-USG:launched_at"),
        fault=(row.get("fault") or {}).get("message"),
    )


def parse_deleted_server(row: Mapping[str, t.Any]) -> DeletedServer:
    """Return the server in a row, with what says whether and why its deletion has not ended."""
    fault = row.get("fault") or {}
    return DeletedServer(
        server=parse_server(row),
        vm_state=row.get("OS-EXT-STS:vm_state"),
        fault=str(fault.get("message") or ""),
        locked=row.get("locked"),
    )


def _parse_flavor(row: Mapping[str, t.Any]) -> Flavor | None:
    if "vcpus" not in row:
        return None
    return Flavor(
        row["vcpus"], row["ram"], row["disk"], row["ephemeral"], row["swap"], row.get("extra_specs")
    )


def parse_attachment(row: Mapping[str, t.Any]) -> Attachment:
    """Return the attached volume in a row."""
    return Attachment(row["volumeId"], row.get("device"))


def parse_actions(reply: Reply, server: str) -> tuple[Action, ...]:
    """Return the instance actions of a server."""
    rows = reply.body["instanceActions"]
    return tuple(parse_action(require_same_uuid(row, "instance_uuid", server)) for row in rows)


def parse_action(row: Mapping[str, t.Any]) -> Action:
    """Return the instance action in a row; only the reply about one action has its events."""
    return Action(
        action=row["action"],
        request_id=row["request_id"],
        user=row["user_id"],
        start_time=row["start_time"],
        message=row["message"],
        events=tuple(map(_parse_event, row.get("events") or ())),
        updated_at=row.get("updated_at"),
    )


def _parse_event(event: Mapping[str, t.Any]) -> ActionEvent:
    return ActionEvent(
        event["event"],
        event["start_time"],
        event["finish_time"],
        event["result"],
        event.get("host"),
        _has_failed_in_copy(event),
    )


def _has_failed_in_copy(event: Mapping[str, t.Any]) -> bool:
    traceback = event.get("traceback") or ""
    return any(sign in traceback for sign in _GAVE_UP)
