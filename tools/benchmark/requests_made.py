"""Counts the requests of a recording. Pure."""

from __future__ import annotations

import collections
import re
import typing as t
import urllib.parse

if t.TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")
_LIMIT = re.compile(r"\blimit=\d+")


def count_endpoints(
    requests: Sequence[Mapping[str, t.Any]], services: Mapping[int, str]
) -> list[tuple[str, int]]:
    """Return how often each type of request was sent, the most frequent first.

    `services` are their names by port.
    """
    counts = collections.Counter(_format_endpoint(request, services) for request in requests)
    return counts.most_common()


def count_for_healthy(requests: Sequence[Mapping[str, t.Any]], involved: Collection[str]) -> int:
    """Return the number of single look-ups of consumers that are in no orphan and in no move."""
    consumers = (
        re.fullmatch(r".*/allocations/([^/]+)", urllib.parse.urlsplit(request["url"]).path)
        for request in requests
    )
    return sum(found is not None and found[1] not in involved for found in consumers)


def _format_endpoint(request: Mapping[str, t.Any], services: Mapping[int, str]) -> str:
    url = urllib.parse.urlsplit(request["url"])
    path = _UUID.sub("{uuid}", url.path)
    query = "&".join(
        f"{name}={_hide_identity(name, value)}" for name, value in urllib.parse.parse_qsl(url.query)
    )
    return (
        f"{services.get(url.port or 0, '?')}: {request['method']} "
        f"{path}{'?' if query else ''}{query}"
    )


def hide_limits(counts: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Count requests together that differ only in how many rows they ask for."""
    together: collections.Counter[str] = collections.Counter()
    for endpoint, count in counts:
        together[_LIMIT.sub("limit={n}", endpoint)] += count
    return together.most_common()


def _hide_identity(name: str, value: str) -> str:
    """Return a value of a query without what differs from cloud to cloud and from run to run."""
    if name == "host":
        return "{host}"
    if name.startswith("changes-"):
        return "{time}"
    return _UUID.sub("{uuid}", value)
