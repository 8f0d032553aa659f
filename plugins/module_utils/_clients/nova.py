# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What Nova says. Reads only; knows nothing of orphans.

API reference: https://docs.openstack.org/api-ref/compute/
"""

from __future__ import annotations

import typing as t
import urllib.parse

from ansible_collections.osops.placement.plugins.module_utils._clients.nova_parsing import (
    parse_action,
    parse_actions,
    parse_aggregate,
    parse_complete_migrations,
    parse_hypervisor,
    parse_migration,
    parse_server,
    parse_servers,
    parse_service,
)
from ansible_collections.osops.placement.plugins.module_utils._common.errors import CloudError
from ansible_collections.osops.placement.plugins.module_utils._common.parallel import map_parallel
from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
    Action,
    Aggregate,
    Hypervisor,
    Migration,
    Server,
    Service,
)
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import (
    NOT_ASKED,
    Answer,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ansible_collections.osops.placement.plugins.module_utils._clients.api import Api, Reply

T = t.TypeVar("T")

# Nova's own default for the longest page, and a smaller one where a single row costs several queries.
_PAGE = 1000
_HYPERVISOR_PAGE = 200

# In how many strands the compute nodes are read side by side, and how many of them are worth a strand.
_STRANDS = 4
_STRAND = 50


# How often a listing is read before it counts that Nova does not know its own rows.
_ATTEMPTS = 3


class _MarkerUnknown(Exception):
    """Nova does not know a row as the marker of the next page that it has just listed."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.detail)
        self.reply = reply


class NovaReader:
    """Nova's side of a reading."""

    def __init__(self, api: Api) -> None:
        self._api = api
        # From 2.69 on a server whose cell is down can be answered with 404 (nova/compute/api.py, _get_instance_from_cell);
        # up to 2.68 that is a 500, so only here does a 404 mean that Nova looked and found nothing.
        self._direct = api.choose_microversion(2, 68)
        # Listings the other way round: from 2.69 on what is in a dead cell shows as UNKNOWN instead of vanishing.
        self._listing = api.choose_microversion(2, 90)
        # 2.98 shows the properties of a server's image.
        self._shape = api.choose_microversion(2, 98)
        # 2.88 and later ask every host for its uptime.
        self._hypervisor_listing = api.choose_microversion(2, 87)
        # The look-up of a host by its mapping in the API database was left out of later microversions.
        self._host_lookup = api.choose_microversion(2, 42)
        # Migrations have uuids from 2.59 on.
        self._migration_key = "uuid" if api.newest >= (2, 59) else "id"

    @property
    def retried(self) -> int:
        """How many broken answers were asked for again."""
        return self._api.retried

    def believe_errors(self, believe: bool) -> None:
        """Take a 500 for an answer at once: a cell is down, and its 500 will last."""
        self._api.believes_errors = believe

    def list_services(self) -> Answer[tuple[Service, ...]]:
        """Return all services; those of an unreachable cell have the status `UNKNOWN`."""
        # Each over a connection of its own: only answers of several API workers show that one of these does not know a cell.
        answer = self._api.ask(
            "/os-services",
            self._listing,
            lambda reply: tuple(map(parse_service, reply.body["services"])),
            True,
        )
        return self._require_access(answer)

    def get_host(self, name: str) -> Answer[bool]:
        """Look directly for the compute node of a host; 200 proves that there is one, 404 that there is none.

        Nova looks the host up in the mappings of its API database, and then in the host's own cell (nova/api/openstack/compute/hosts.py,
        HostController.show): unlike the listings, this does not depend on the cells that an API worker happens to know.
        """
        return self._api.ask(
            f"/os-hosts/{urllib.parse.quote(name, safe='')}", self._host_lookup, lambda reply: True
        )

    def list_hypervisors(
        self, with_servers: bool, roots: Sequence[str] = ()
    ) -> Answer[tuple[Hypervisor, ...]]:
        """Return all compute nodes, if wanted with the servers of their hosts.

        Of the listings that cover every server this is the cheapest that also says where each of them lives: half the time of
        the brief listing of servers, which does not say it, and a seventh of the detailed one (docs/benchmark.md).

        roots: root providers in Placement's order, most of them compute nodes, and mostly in Nova's order too. Some of them
        are the places from which the listing is read side by side, which several API workers answer in a fraction of the time.
        """
        strand = max(_STRAND, -(-len(roots) // _STRANDS))
        size = -(-strand // -(-strand // _HYPERVISOR_PAGE))
        return self._read_pages(
            "/os-hypervisors/detail",
            self._hypervisor_listing,
            "hypervisors",
            "id",
            lambda row: parse_hypervisor(row, with_servers),
            size,
            starts=tuple(roots[strand - 1 : -1 : strand]),
            own_connection=False,
            **({"with_servers": "true"} if with_servers else {}),
        )

    def list_hypervisor_servers(self, node: str) -> tuple[str, ...] | None:
        """Return the uuids of the servers on the host of one compute node; None when it is gone."""
        path = f"/os-hypervisors/{node}"
        reply = self._api.expect(
            self._api.get(path, self._hypervisor_listing, with_servers="true"),
            f"for the servers of {node}",
            200,
            404,
        )
        if reply.status == 404:
            return None
        return self._api.parse(
            lambda reply: parse_hypervisor(reply.body["hypervisor"], True).servers, reply, path
        )

    def list_servers_on_host(self, host: str) -> tuple[Server, ...]:
        """Return the servers of one host with their flavors; none when Nova does not tell."""
        return self.query_servers_on_host(host).value or ()

    def query_servers_on_host(self, host: str) -> Answer[tuple[Server, ...]]:
        """Return what Nova answers when asked for the servers of one host."""
        return self._read_pages(
            "/servers/detail",
            self._listing,
            "servers",
            "id",
            parse_server,
            _PAGE,
            all_tenants="1",
            host=host,
        )

    def list_server_uuids_on_host(self, host: str) -> Answer[tuple[str, ...]]:
        """Return the uuids of the servers of one host."""
        return self._read_pages(
            "/servers",
            self._listing,
            "servers",
            "id",
            lambda row: str(row["id"]),
            _PAGE,
            all_tenants="1",
            host=host,
        )

    def list_newest_servers_on_host(self, host: str, count: int) -> Answer[tuple[Server, ...]]:
        """Return the newest servers of one host, at most `count`; none where these credentials do not see the host of a server."""
        return self._require_access(
            self._api.ask(
                "/servers/detail",
                self._listing,
                parse_servers,
                all_tenants="1",
                host=host,
                limit=str(count),
            )
        )

    def list_server_uuids(self) -> frozenset[str]:
        """Return the uuids of all servers that are not deleted."""
        return frozenset(
            self._read_pages(
                "/servers",
                self._listing,
                "servers",
                "id",
                lambda row: row["id"],
                _PAGE,
                all_tenants="1",
            ).value
            or ()
        )

    def list_aggregates(self) -> tuple[Aggregate, ...]:
        """Return all host aggregates."""
        path = "/os-aggregates"
        reply, found = self._api.read(
            path, self._listing, lambda reply: tuple(map(parse_aggregate, reply.body["aggregates"]))
        )
        self._api.expect(reply, "for its aggregates")
        return found or ()

    def list_migrations(self) -> Answer[tuple[Migration, ...]]:
        """Return all migrations whose server is not deleted."""
        return self._read_pages(
            "/os-migrations",
            self._listing,
            "migrations",
            self._migration_key,
            parse_migration,
            _PAGE,
        )

    def list_migrations_of_host(self, host: str, attempt: int = 0) -> Answer[tuple[Migration, ...]]:
        """Return the migrations that name `host` as source or destination, as `list_migrations` does.

        Each `attempt` has a connection and an address of its own, so that a balancer which chooses by either may choose another worker.
        """
        size = _PAGE - attempt
        return self._read_pages(
            "/os-migrations",
            self._listing,
            "migrations",
            self._migration_key,
            parse_migration,
            size,
            own_connection=True,
            host=host,
        )

    def list_migrations_of_server(self, server: str) -> Answer[tuple[Migration, ...]]:
        """Return the migrations of one server, newest first; no `value` when they are more than a page and so not all here."""
        return self._require_access(
            self._api.ask(
                "/os-migrations", self._listing, parse_complete_migrations, instance_uuid=server
            )
        )

    def get_server(self, uuid: str) -> Answer[Server]:
        """Look directly for a server; a 404 means that no cell holds it and nothing is about to build it."""
        return self._api.ask(
            f"/servers/{uuid}", self._direct, lambda reply: parse_server(reply.body["server"])
        )

    def get_server_with_image_properties(self, uuid: str) -> Answer[Server]:
        """Look for a server once more, for the properties of its image; it answers only what was already found."""
        return self._api.ask(
            f"/servers/{uuid}", self._shape, lambda reply: parse_server(reply.body["server"])
        )

    def list_attached_port_uuids(self, uuid: str) -> Answer[tuple[str, ...]]:
        """Return the uuids of the ports that are attached to a server, as Nova knows them."""
        path = f"/servers/{uuid}/os-interface"
        return self._api.ask(
            path,
            self._direct,
            lambda reply: tuple(row["port_id"] for row in reply.body["interfaceAttachments"]),
        )

    def find_deleted_server(self, uuid: str, brief: bool = False) -> Answer[tuple[Server, ...]]:
        """Ask for a server among the deleted ones that Nova has not yet archived: one, or none.

        brief: ask only for its name, which costs Nova half as much; its status is empty then.
        """
        path = "/servers" if brief else "/servers/detail"
        return self._api.ask(
            path, self._direct, parse_servers, all_tenants="1", deleted="True", uuid=uuid
        )

    def list_instance_actions(self, server: str) -> Answer[tuple[Action, ...]]:
        """Return all that was done to a server, newest first; also for a deleted one until it is archived.

        No `value` when not all of them could be read: that something is not among them counts as well.
        """
        path = f"/servers/{server}/os-instance-actions"
        found: list[Action] = []
        markers: list[str] = []
        while True:
            query = {"marker": markers[-1]} if markers else {}
            reply, page = self._api.read(path, self._direct, parse_actions, False, **query)
            if page is None:
                return self._api.build_answer(path, self._direct, query, reply, None)
            found += page
            if not page or not reply.body.get("links"):
                return self._api.build_answer(path, self._direct, {}, reply, tuple(found))
            if page[-1].request_id in markers:
                # One request can have two actions, and Nova takes the newer of them for the marker.
                return self._api.build_answer(path, self._direct, query, reply, None)
            markers.append(page[-1].request_id)

    def get_instance_action(self, server: str, request_id: str) -> Answer[Action]:
        """Return one action with its events; without them where these credentials may not see events."""
        return self._api.ask(
            f"/servers/{server}/os-instance-actions/{request_id}",
            self._direct,
            lambda reply: parse_action(reply.body["instanceAction"]),
        )

    def probe_migration_marker(self, uuid: str, attempt: int = 0) -> Answer[bool]:
        """Ask whether `uuid` is a migration's, of a deleted server or not: 200 proves it, anything else proves nothing.

        There is no look-up by uuid; as a paging marker Nova finds also what it no longer lists
        (nova/db/main/api.py, migration_get_by_uuid with read_deleted="yes"). See `list_migrations_of_host` for `attempt`.
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

    def list_newest_servers(self, count: int) -> Answer[tuple[Server, ...]]:
        """Return the newest servers of all projects, at most `count`."""
        return self._require_access(
            self._api.ask(
                "/servers/detail", self._listing, parse_servers, all_tenants="1", limit=str(count)
            )
        )

    def _read_pages(
        self,
        path: str,
        microversion: str,
        key: str,
        identity: str,
        read: Callable[[Mapping[str, t.Any]], T],
        size: int,
        starts: tuple[str, ...] = (),
        own_connection: bool = False,
        **filters: str,
    ) -> Answer[tuple[T, ...]]:
        """Read a listing whole: from its beginning and, side by side, from each of `starts` to where the next of them begins.

        Its `value` is None when the status of a page is not 200. The status is 400 when Nova, asked a few times, did not know rows that
        it had just listed: either the listing changed each time, or its API workers do not know the same cells.
        """
        for _attempt in range(_ATTEMPTS):
            answer = self._try_read_pages(
                path, microversion, key, identity, read, size, starts, own_connection, filters
            )
            if answer.status != 400:
                break
        return self._require_access(answer)

    def _try_read_pages(
        self,
        path: str,
        microversion: str,
        key: str,
        identity: str,
        read: Callable[[Mapping[str, t.Any]], T],
        size: int,
        starts: tuple[str, ...],
        own_connection: bool,
        filters: Mapping[str, str],
    ) -> Answer[tuple[T, ...]]:
        query = {"limit": str(size), **filters}
        try:
            strands = map_parallel(
                lambda start: self._read_strand(
                    path, microversion, key, identity, query, start, starts, own_connection
                ),
                [None, *starts],
            )
        except _MarkerUnknown as error:
            return self._api.build_answer(path, microversion, filters, error.reply, None)
        reply = next(
            (reply for _rows, reply in strands if reply.status not in (200, 400)), strands[0][1]
        )
        rows = {row[identity]: row for some, _reply in strands for row in some}
        # Where no strand can start is no row of this listing, and then nobody stopped there.
        unknown = {
            start
            for start, (_rows, reply) in zip(starts, strands[1:], strict=True)
            if reply.status == 400
        }
        if reply.status == 200 and unknown & set(rows):
            refused = next(reply for _rows, reply in strands if reply.status == 400)
            return self._api.build_answer(path, microversion, filters, refused, None)
        value = (
            self._api.parse(lambda reply: tuple(map(read, rows.values())), reply, path)
            if reply.status == 200
            else None
        )
        return self._api.build_answer(path, microversion, filters, reply, value)

    def _read_strand(
        self,
        path: str,
        microversion: str,
        key: str,
        identity: str,
        query: Mapping[str, str],
        start: str | None,
        ends: Collection[str],
        own_connection: bool,
    ) -> tuple[list[t.Any], Reply]:
        """Read a listing from `start` (its beginning without one) until one of `ends` or nothing comes; return its rows and last reply.

        Nova counts the rows of a page before it drops some, such as hosts that are not discovered yet, and links to a next page
        only after a full one: so read on until nothing comes, not even in the longest page.

        Servers it does not drop, and it does not know one as a marker that has lost its mapping to a cell: after one of these,
        the missing link says that it was the last.
        """
        rows: list[t.Any] = []
        last, size = start, int(query["limit"])
        ended: Reply | None = None
        while True:
            reply, whole = self._api.read(
                path,
                microversion,
                lambda reply: (reply.body[key], [row[identity] for row in reply.body[key]]),
                own_connection,
                **{**query, "limit": str(size)},
                **({"marker": last} if last else {}),
            )
            if reply.status == 400 and ended is not None:
                return rows, ended
            if reply.status == 400 and last is not None and last != start:
                raise _MarkerUnknown(reply)
            if whole is None:
                return rows, reply
            page, found = whole
            rows += page
            ended = (
                reply
                if key == "servers" and found and not reply.body.get("servers_links")
                else None
            )
            if (
                not set(ends).isdisjoint(found)
                or (found and found[-1] == last)
                or (not found and size == _PAGE)
            ):
                return rows, reply
            last, size = (found[-1], int(query["limit"])) if found else (last, _PAGE)

    def _require_access(self, answer: Answer[T]) -> Answer[T]:
        if answer.status in (401, 403):
            raise CloudError(
                f"Nova at {self._api.endpoint} refused {answer.request} with {answer.status}: "
                "these credentials may not see all servers, hosts and migrations. Use a role that may (admin by default)."
            )
        return answer
