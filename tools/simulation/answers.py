"""The answers of Keystone, Placement and Nova. Each is a body that a real service would send."""

from __future__ import annotations

import dataclasses as d
import typing as t

if t.TYPE_CHECKING:
    from collections.abc import Mapping

_OF_PLACEMENT = {
    *("providers", "provider_allocations", "provider_part"),
    *("allocation", "allocation_candidates", "write"),
}


@d.dataclass(frozen=True)
class Request:
    """One request; `path` is what follows the endpoint of the service."""

    method: str
    path: str
    query: Mapping[str, str]
    body: t.Any = None


@d.dataclass(frozen=True)
class Response:
    """One answer.

    kind: which of the latencies it has. rows: of its listing.
    """

    status: int
    body: t.Any
    kind: str
    rows: int = 0


def refuse(status: int, text: str, kind: str) -> Response:
    """Return an error as Nova and Placement send it."""
    if kind in _OF_PLACEMENT:
        error = {"status": status, "title": text, "detail": text, "code": "placement.undefined"}
        return Response(status, {"errors": [error]}, kind)
    name = {400: "badRequest", 404: "itemNotFound"}.get(status, "computeFault")
    return Response(status, {name: {"code": status, "message": text}}, kind)
