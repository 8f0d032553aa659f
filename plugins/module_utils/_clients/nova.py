# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Read Nova. Nothing here writes, and nothing here knows of orphans.

API reference: https://docs.openstack.org/api-ref/compute/
"""

from __future__ import annotations

import dataclasses as d
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
    from collections.abc import Callable, Mapping, Sequence

    from ansible_collections.osops.placement.plugins.module_utils._clients.api import Api, Reply

T = t.TypeVar("T")

# Nova's own default for the longest page, and a smaller one where a single row costs several
# queries.
_PAGE = 1000
_HYPERVISOR_PAGE = 200

# In how many strands the compute nodes are read side by side, and how many of them are worth a
# strand.
_STRANDS = 4
_STRAND = 50

# How many times a listing is read before it counts that Nova does not know its own rows.
_ATTEMPTS = 3


@d.dataclass(frozen=True)
class _Listing(t.Generic[T]):
    """One listing of Nova, and how to read it.

    key: of the rows in the body of a page.
    identity: the field that identifies a row, which is also what Nova takes for a marker.
    parse: makes an object of a row.
    starts: identities from which the listing is read side by side, beside its beginning.
    own_connection: whether each page is asked for over a connection of its own.
    """

    path: str
    microversion: str
    key: str
    identity: str
    parse: Callable[[Mapping[str, t.Any]], T]
    filters: Mapping[str, str] = d.field(default_factory=dict)
    page_size: int = _PAGE
    starts: tuple[str, ...] = ()
    own_connection: bool = False

    def list_rows(self, reply: Reply) -> tuple[list[t.Any], list[str]]:
        """Return the rows of a page, and the identity of each of them."""
        rows = reply.body[self.key]
        return rows, [row[self.identity] for row in rows]

    def is_last_page(self, reply: Reply) -> bool:
        """Return whether a page with rows proves to be the last one by its missing link.

        Only a page of servers does: Nova drops none of them after it has counted the rows.
        """
        return self.key == "servers" and not reply.body.get("servers_links")


@d.dataclass(frozen=True)
class _Strand:
    """A part of a listing: the rows from `start` on (the beginning without one), the last reply."""

    start: str | None
    rows: list[t.Any]
    reply: Reply


class _MarkerUnknown(Exception):
    """Nova does not know a row as a marker, though it has just listed it."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.detail)
        self.reply = reply


class NovaReader:
    """Nova's side of a reading."""

    def __init__(self, api: Api) -> None:
        self._api = api
        # From 2.69 on a server whose cell is down can be answered with 404 (nova/compute/api.py,
        # _get_instance_from_cell); up to 2.68 that is a 500, so only here does a 404 mean that
        # Nova searched and has no such server.
        self._direct = api.choose_microversion(2, 68)
        # Listings the other way round: from 2.69 on what is in a dead cell shows as UNKNOWN instead
        # of vanishing.
        self._listing = api.choose_microversion(2, 90)
        # 2.98 shows the properties of a server's image.
        self._shape = api.choose_microversion(2, 98)
        # 2.88 and later ask every host for its uptime.
        self._hypervisor_listing = api.choose_microversion(2, 87)
        # Later microversions lack the request that finds a host by its mapping in the API database.
        self._host_lookup = api.choose_microversion(2, 42)
        # Migrations have uuids from 2.59 on.
        self._migration_key = "id"
        if api.newest >= (2, 59):
            self._migration_key = "uuid"

    @property
    def retried(self) -> int:
        """How many broken answers were asked for again."""
        return self._api.retried

    def believe_errors(self, believe: bool) -> None:
        """Set whether a 500 counts as an answer at once: a cell is down, and its 500 will last."""
        self._api.believes_errors = believe

    def list_services(self) -> Answer[tuple[Service, ...]]:
        """Return all services; those of an unreachable cell have the status `UNKNOWN`."""
        # Each over a connection of its own: only answers of several API workers show that one of
        # them does not know a cell.
        answer = self._api.ask(
            "/os-services",
            self._listing,
            lambda reply: tuple(map(parse_service, reply.body["services"])),
            True,
        )
        return self._require_access(answer)

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

        Of the listings that cover every server this is the cheapest that also says on which host
        each of them is: half the time of the brief listing of servers, which does not say it, and a
        seventh of the detailed one (docs/benchmark.md).

        roots: root providers in Placement's order, most of them compute nodes, and mostly in Nova's
        order too. Some of them are the places from which the listing is read side by side, which
        several API workers answer in a fraction of the time.
        """
        strand_size = max(_STRAND, _round_up_quotient(len(roots), _STRANDS))
        pages_per_strand = _round_up_quotient(strand_size, _HYPERVISOR_PAGE)
        filters = {}
        if with_servers:
            filters["with_servers"] = "true"
        return self._read_pages(
            _Listing(
                "/os-hypervisors/detail",
                self._hypervisor_listing,
                "hypervisors",
                "id",
                lambda row: parse_hypervisor(row, with_servers),
                filters,
                page_size=_round_up_quotient(strand_size, pages_per_strand),
                starts=tuple(roots[strand_size - 1 : -1 : strand_size]),
            )
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
        """Return the servers of one host with their flavors; none when Nova does not list them."""
        return self.query_servers_on_host(host).value or ()

    def query_servers_on_host(self, host: str) -> Answer[tuple[Server, ...]]:
        """Return Nova's answer to the request for the servers of one host."""
        return self._read_pages(
            _Listing(
                "/servers/detail",
                self._listing,
                "servers",
                "id",
                parse_server,
                {"all_tenants": "1", "host": host},
            )
        )

    def list_server_uuids_on_host(self, host: str) -> Answer[tuple[str, ...]]:
        """Return the uuids of the servers of one host."""
        return self._read_pages(
            _Listing(
                "/servers",
                self._listing,
                "servers",
                "id",
                lambda row: str(row["id"]),
                {"all_tenants": "1", "host": host},
            )
        )

    def list_newest_servers_on_host(self, host: str, count: int) -> Answer[tuple[Server, ...]]:
        """Return the newest servers of one host, at most `count`.

        There are none where these credentials do not see the host of a server.
        """
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
        listing: _Listing[str] = _Listing(
            "/servers",
            self._listing,
            "servers",
            "id",
            lambda row: row["id"],
            {"all_tenants": "1"},
        )
        return frozenset(self._read_pages(listing).value or ())

    def list_aggregates(self) -> tuple[Aggregate, ...]:
        """Return all host aggregates."""
        path = "/os-aggregates"
        reply, aggregates = self._api.read(
            path, self._listing, lambda reply: tuple(map(parse_aggregate, reply.body["aggregates"]))
        )
        self._api.expect(reply, "for its aggregates")
        return aggregates or ()

    def list_migrations(self) -> Answer[tuple[Migration, ...]]:
        """Return all migrations whose server is not deleted."""
        return self._read_pages(
            _Listing(
                "/os-migrations",
                self._listing,
                "migrations",
                self._migration_key,
                parse_migration,
            )
        )

    def list_migrations_of_host(self, host: str, attempt: int = 0) -> Answer[tuple[Migration, ...]]:
        """Return the migrations that name `host` as source or destination.

        Like those of `list_migrations`, their servers are not deleted.

        Each `attempt` has a connection and an address of its own, so that a balancer which chooses
        by either may choose another worker.
        """
        return self._read_pages(
            _Listing(
                "/os-migrations",
                self._listing,
                "migrations",
                self._migration_key,
                parse_migration,
                {"host": host},
                page_size=_PAGE - attempt,
                own_connection=True,
            )
        )

    def list_migrations_of_server(self, server: str) -> Answer[tuple[Migration, ...]]:
        """Return the migrations of one server, newest first.

        No `value` when they are more than a page, because then some of them are missing.
        """
        return self._require_access(
            self._api.ask(
                "/os-migrations", self._listing, parse_complete_migrations, instance_uuid=server
            )
        )

    def get_server(self, uuid: str) -> Answer[Server]:
        """Ask directly for a server.

        A 404 means that no cell has it and that nothing is about to build it.
        """
        return self._api.ask(
            f"/servers/{uuid}", self._direct, lambda reply: parse_server(reply.body["server"])
        )

    def get_server_with_image_properties(self, uuid: str) -> Answer[Server]:
        """Ask again for a server that `get_server` returned, for the properties of its image."""
        return self._api.ask(
            f"/servers/{uuid}", self._shape, lambda reply: parse_server(reply.body["server"])
        )

    def list_attached_port_uuids(self, uuid: str) -> Answer[tuple[str, ...]]:
        """Return the uuids of the ports that are attached to a server, as Nova records them."""
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
        path = "/servers/detail"
        if brief:
            path = "/servers"
        return self._api.ask(
            path, self._direct, parse_servers, all_tenants="1", deleted="True", uuid=uuid
        )

    def list_instance_actions(self, server: str) -> Answer[tuple[Action, ...]]:
        """Return all that was done to a server, newest first; also for a deleted one.

        Nova keeps the actions of a deleted server until it is archived.

        No `value` when not all of them could be read, because the absence of an action is evidence
        as well.
        """
        path = f"/servers/{server}/os-instance-actions"
        actions: list[Action] = []
        markers: list[str] = []
        query: dict[str, str] = {}
        while True:
            reply, page = self._api.read(path, self._direct, parse_actions, False, **query)
            if page is None:
                return self._api.build_answer(path, self._direct, query, reply, None)
            actions += page
            if not page or not reply.body.get("links"):
                return self._api.build_answer(path, self._direct, {}, reply, tuple(actions))
            marker = page[-1].request_id
            if marker in markers:
                # One request can have two actions, and Nova takes the newer of them for the marker.
                return self._api.build_answer(path, self._direct, query, reply, None)
            markers.append(marker)
            query = {"marker": marker}

    def get_instance_action(self, server: str, request_id: str) -> Answer[Action]:
        """Return one action with its events.

        There are no events where these credentials may not see them.
        """
        return self._api.ask(
            f"/servers/{server}/os-instance-actions/{request_id}",
            self._direct,
            lambda reply: parse_action(reply.body["instanceAction"]),
        )

    def probe_migration_marker(self, uuid: str, attempt: int = 0) -> Answer[bool]:
        """Ask whether `uuid` is the uuid of a migration, whether its server is deleted or not.

        A 200 proves it, any other status proves nothing.

        Nova has no request for one migration by its uuid. As a paging marker it also accepts a
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

    def list_newest_servers(self, count: int) -> Answer[tuple[Server, ...]]:
        """Return the newest servers of all projects, at most `count`."""
        return self._require_access(
            self._api.ask(
                "/servers/detail", self._listing, parse_servers, all_tenants="1", limit=str(count)
            )
        )

    def _read_pages(self, listing: _Listing[T]) -> Answer[tuple[T, ...]]:
        """Read a listing whole, from its beginning and, side by side, from each of its `starts`.

        Each strand ends where the next of `starts` begins.

        The `value` is None when the status of a page is not 200. The status is 400 when Nova, asked
        a few times, did not know rows that it had just listed: either the listing changed each
        time, or its API workers do not know the same cells.
        """
        for _attempt in range(_ATTEMPTS):
            answer = self._try_read_pages(listing)
            if answer.status != 400:
                break
        return self._require_access(answer)

    def _try_read_pages(self, listing: _Listing[T]) -> Answer[tuple[T, ...]]:
        try:
            strands = map_parallel(
                lambda start: self._read_strand(listing, start), [None, *listing.starts]
            )
        except _MarkerUnknown as error:
            return self._build_answer(listing, error.reply, None)
        failed = [strand for strand in strands if strand.reply.status not in (200, 400)]
        reply = strands[0].reply
        if failed:
            reply = failed[0].reply
        if reply.status != 200:
            return self._build_answer(listing, reply, None)
        rows = {row[listing.identity]: row for strand in strands for row in strand.rows}
        # A start that Nova does not know and that is not a row of this listing is harmless: then no
        # other strand ended there.
        refused = [strand for strand in strands if strand.reply.status == 400]
        if any(strand.start in rows for strand in refused):
            return self._build_answer(listing, refused[0].reply, None)
        objects = self._api.parse(
            lambda _reply: tuple(map(listing.parse, rows.values())), reply, listing.path
        )
        return self._build_answer(listing, reply, objects)

    def _build_answer(
        self, listing: _Listing[T], reply: Reply, objects: tuple[T, ...] | None
    ) -> Answer[tuple[T, ...]]:
        return self._api.build_answer(
            listing.path, listing.microversion, listing.filters, reply, objects
        )

    def _read_strand(self, listing: _Listing[T], start: str | None) -> _Strand:
        """Read a listing from `start` until one of its `starts` or nothing comes.

        Nova counts the rows of a page before it drops some, such as hosts that are not discovered
        yet, and links to a next page only after a full one: so read on until nothing comes, not
        even in the longest page.

        Nova does not drop servers, and it does not know a server as a marker that has lost its
        mapping to a cell: after such a server, the missing link says that it was the last.
        """
        rows: list[t.Any] = []
        marker, size = start, listing.page_size
        last_page: Reply | None = None
        while True:
            reply, page = self._read_page(listing, size, marker)
            if reply.status == 400 and last_page is not None:
                return _Strand(start, rows, last_page)
            if reply.status == 400 and marker is not None and marker != start:
                raise _MarkerUnknown(reply)
            if page is None:
                return _Strand(start, rows, reply)
            page_rows, identities = page
            rows += page_rows
            if not identities:
                if size == _PAGE:
                    return _Strand(start, rows, reply)
                last_page, size = None, _PAGE
                continue
            begins_next_strand = not set(listing.starts).isdisjoint(identities)
            if begins_next_strand or identities[-1] == marker:
                return _Strand(start, rows, reply)
            last_page = None
            if listing.is_last_page(reply):
                last_page = reply
            marker, size = identities[-1], listing.page_size

    def _read_page(
        self, listing: _Listing[T], size: int, marker: str | None
    ) -> tuple[Reply, tuple[list[t.Any], list[str]] | None]:
        params = {"limit": str(size), **listing.filters}
        if marker:
            params["marker"] = marker
        return self._api.read(
            listing.path,
            listing.microversion,
            listing.list_rows,
            listing.own_connection,
            **params,
        )

    def _require_access(self, answer: Answer[T]) -> Answer[T]:
        if answer.status in (401, 403):
            raise CloudError(
                f"Nova at {self._api.endpoint} refused {answer.request} with {answer.status}: "
                "these credentials may not see all servers, hosts and migrations. Use a role that "
                "may (admin by default)."
            )
        return answer


def _round_up_quotient(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)
