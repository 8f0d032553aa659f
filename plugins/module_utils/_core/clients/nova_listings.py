# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the long listings of Nova: page by page, and side by side from several places."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Callable, Mapping, Sequence

from ..._common.errors import CloudError
from ..._common.parallel import Pace
from ..._common.progress import PROGRESS, Stage
from ..models.snapshot import Answer
from .api import Api, Reply

T = t.TypeVar("T")

# Nova's own default for the longest page (nova/conf/api.py, max_limit).
MAX_PAGE = 1000

# In how many parts the compute nodes are read, and how many compute nodes a part has at least and
# at most. A single one costs Nova several queries. The first parts show whether the service is
# faster in parallel, and are small, because a service that is not loses time with them.
_PARTS = 40
_TRIAL_PART = 10
_MIN_PART = 25
_MAX_PART = 200

# How many times a listing is read before the refusal of one of its own rows counts.
_MAX_ATTEMPTS = 3

# Nova reads fewer servers than these from a cell with a single query (nova/conf/api.py, the minimum
# of instance_list_cells_batch_fixed_size). Between two queries it can lose the cell, and it then
# leaves out the rest without an error (nova/compute/multi_cell_list.py).
_MIN_BATCH = 100


@d.dataclass(frozen=True)
class Listing(t.Generic[T]):
    """One listing of Nova, and how to read it.

    key: the key of the rows in the body of a page.
    identity: the field that identifies a row, and that Nova accepts as a marker.
    parse: turns a row into an object.
    page_size: how many rows a page has at most.
    parts: the identities from which the listing may be read in parallel with its beginning (None),
        each with the number of rows up to the next: so many are requested at once.
    own_connection: whether each page is requested over its own connection.
    stage: the name of the stage of the progress in which the rows are counted, empty for a short
        listing.
    expected: how many rows there are, or nearly so; None where that is not known.
    """

    path: str
    microversion: str
    key: str
    identity: str
    parse: Callable[[Mapping[str, t.Any]], T]
    filters: Mapping[str, str | Sequence[str]] = d.field(default_factory=dict)
    page_size: int = MAX_PAGE
    parts: Mapping[str | None, int] = d.field(default_factory=dict)
    own_connection: bool = False
    stage: str = ""
    expected: int | None = None

    @property
    def is_paged(self) -> bool:
        """Return whether Nova lists it in pages: migrations only from 2.59 on, with their UUIDs."""
        return self.path != "/os-migrations" or self.identity == "uuid"

    def list_rows(self, reply: Reply) -> tuple[list[t.Any], list[str]]:
        """Return the rows of a page, and the identity of each of them."""
        rows = reply.body[self.key]
        return rows, [row[self.identity] for row in rows]

    def is_last_page(self, reply: Reply) -> bool:
        """Return whether a page with rows proves to be the last one by its missing link.

        Only a page of servers does: Nova drops none of them after it has counted the rows.
        """
        return self.key == "servers" and not reply.body.get("servers_links")

    def is_whole_host(self, reply: Reply, count: int) -> bool:
        """Return whether a page of `count` rows without a link has all servers of one host.

        Nova drops a server that it finds twice after it has counted the page (nova/compute/api.py,
        API.get_all), and a page that was full then has no link. But no host has a server twice: a
        build request has no host yet, and during a resize to another cell the rows in the two cells
        have different hosts.
        """
        return "host" in self.filters and count < _MIN_BATCH and self.is_last_page(reply)


@d.dataclass(frozen=True)
class _Strand:
    """The rows of a listing after `start`, or from its beginning, and the last reply."""

    start: str | None
    rows: list[t.Any]
    reply: Reply


class _Refused(Exception):
    """Nova refuses a page, and with it the listing: what is left of it is not requested.

    Either a row is unknown as a marker although Nova has just listed it. Or a cell is down: Nova
    tries to reach it for each page, which can take minutes.
    """

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.detail)
        self.reply = reply


class ListingReader:
    """Reads whole listings, and refuses credentials that may not see all of them."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.pace = Pace(few=1, many=4, sample=1, default=1)
        # Whether a full page was seen to have a link; None while none was requested.
        self._has_links: bool | None = None

    def read(self, listing: Listing[T]) -> Answer[tuple[T, ...]]:
        """Return all rows of a listing as objects, as evidence.

        The listing is read from the beginning of each of its `parts`, in parallel where that is
        faster. Each strand ends where the next one begins.

        The `value` is None if the status of a page is not 200. The status is 400 if Nova, in
        several attempts, refused rows that it had just listed: either the listing changed each
        time, or the API workers do not know the same cells.
        Raises CloudError if the credentials may not see the listing.
        """
        for _attempt in range(_MAX_ATTEMPTS):
            with PROGRESS.run_stage(listing.stage, listing.expected) as stage:
                answer = self._try_to_read(listing, stage)
            if answer.status != 400:
                break
        return self.require_access(answer)

    def _try_to_read(self, listing: Listing[T], stage: Stage) -> Answer[tuple[T, ...]]:
        try:
            strands = self.pace.map(
                lambda start: self._read_strand(listing, start, stage),
                list(listing.parts) or [None],
            )
        except _Refused as error:
            return self._build_answer(listing, error.reply, None)
        reply = strands[0].reply
        if reply.status != 200:
            return self._build_answer(listing, reply, None)
        rows = {row[listing.identity]: row for strand in strands for row in strand.rows}
        # A start that Nova refuses and that is not a row of this listing does no harm, because no
        # other strand ended there.
        refused = [strand for strand in strands if strand.reply.status == 400]
        if any(strand.start in rows for strand in refused):
            return self._build_answer(listing, refused[0].reply, None)
        objects = self._api.parse(
            lambda _reply: tuple(map(listing.parse, rows.values())), reply, listing.path
        )
        return self._build_answer(listing, reply, objects)

    def _build_answer(
        self, listing: Listing[T], reply: Reply, objects: tuple[T, ...] | None
    ) -> Answer[tuple[T, ...]]:
        return self._api.build_answer(
            listing.path, listing.microversion, listing.filters, reply, objects
        )

    def _read_strand(self, listing: Listing[T], start: str | None, stage: Stage) -> _Strand:
        """Return the rows of a listing from `start` up to the next of its parts, or to its end.

        Nova counts the rows of a page before it drops some of them, such as hosts that are not
        discovered yet, and links to a next page only after a full page. So the end is reached only
        when a page of the maximum size is empty.

        Nova refuses a server that has lost its instance mapping as a marker: after such a server,
        the missing link proves that it was the last. The servers of one host need no other request
        at all where Nova's links are seen to arrive.
        """
        rows: list[t.Any] = []
        # Nova excludes the marker from the page after it.
        seen = {start}
        marker, size = start, listing.parts.get(start, listing.page_size)
        # A strand that does not end with its first page is in another order than Placement's, and
        # may be long.
        page_size = max(listing.parts.values(), default=listing.page_size)
        last_page: Reply | None = None
        while True:
            reply, page = self._read_page(listing, size, marker)
            if reply.status not in (200, 400):
                raise _Refused(reply)
            if reply.status == 400 and last_page is not None:
                return _Strand(start, rows, last_page)
            if reply.status == 400 and marker is not None and marker != start:
                raise _Refused(reply)
            if page is None:
                return _Strand(start, rows, reply)
            page_rows, identities = page
            rows += page_rows
            stage.advance(len(page_rows))
            if not identities:
                if size == MAX_PAGE:
                    return _Strand(start, rows, reply)
                last_page, size = None, MAX_PAGE
                continue
            if not listing.is_paged:
                return _Strand(start, rows, reply)
            if not seen.isdisjoint(identities):
                raise CloudError(
                    f"Nova at {self._api.endpoint} listed the same rows of {listing.path} on two "
                    "pages, so the listing has no end: something between here and Nova ignores "
                    "the marker of a page. Use an endpoint without a cache."
                )
            seen.update(identities)
            if not listing.parts.keys().isdisjoint(identities):
                return _Strand(start, rows, reply)
            if listing.is_whole_host(reply, len(identities)) and self._sees_links(listing):
                return _Strand(start, rows, reply)
            last_page = None
            if listing.is_last_page(reply):
                last_page = reply
            marker, size = identities[-1], page_size

    def _sees_links(self, listing: Listing[T]) -> bool:
        """Return whether the link of a full page arrives here, which a proxy can prevent.

        A page of one row is full whatever the maximum of the service is ([api]max_limit).
        """
        if self._has_links is None:
            reply, page = self._read_page(listing, 1, None)
            # A listing that has become empty meanwhile has no full page.
            if page is None or len(page[1]) != 1:
                return False
            self._has_links = not listing.is_last_page(reply)
        return self._has_links

    def _read_page(
        self, listing: Listing[T], size: int, marker: str | None
    ) -> tuple[Reply, tuple[list[t.Any], list[str]] | None]:
        params = {"limit": str(size), **listing.filters}
        if marker:
            params["marker"] = marker
        return self._api.read(
            listing.path, listing.microversion, listing.list_rows, listing.own_connection, **params
        )

    def require_access(self, answer: Answer[T]) -> Answer[T]:
        """Return `answer`. Raises CloudError if Nova refused these credentials (401 or 403)."""
        # Part of a listing would make everything else look deleted, so this ends the task.
        if answer.status in (401, 403):
            advice = self._api.explain_refusal(answer.status) or (
                "These credentials may not see all servers, hosts and migrations. Use a role that "
                "may (admin by default)."
            )
            refused = f"refused {answer.request} with {answer.status}"
            raise CloudError(f"Nova at {self._api.endpoint} {refused}. {advice}")
        return answer


def split_into_parts(roots: Sequence[str], trial: int) -> dict[str | None, int]:
    """Return after which of `roots` to read the compute nodes, and how many from there on.

    trial: how many of the parts show the pace; these are small.
    """
    part = min(_MAX_PART, max(_MIN_PART, -(-len(roots) // _PARTS)))
    parts: dict[str | None, int] = {}
    start, begin = None, 0
    while begin < len(roots) or not parts:
        size = part
        if len(parts) < trial and len(roots) > part * trial:
            size = _TRIAL_PART
        parts[start] = size
        begin += size
        start = roots[min(begin, len(roots)) - 1] if roots else None
    return parts
