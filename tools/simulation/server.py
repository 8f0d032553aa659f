"""Serves the simulated cloud on 127.0.0.1: HTTP/1.1 with connections that stay open."""

from __future__ import annotations

import asyncio
import collections
import email.utils
import json
import typing as t
import urllib.parse

from simulation import keystone, nova, placement
from simulation.answers import Request, Response
from simulation.latencies import calculate_latency

if t.TYPE_CHECKING:
    from simulation.world import World

_LAST_MODIFIED = "Thu, 01 Jan 2026 00:00:00 GMT"


class SimulatedCloud:
    """The three services behind one port.

    base: their address, once it runs. counts: how many requests of each kind were answered.
    failures: requests that the simulation could not answer.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.base = ""
        self.counts: collections.Counter[str] = collections.Counter()
        self.failures: list[str] = []
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
        port = self._server.sockets[0].getsockname()[1]
        self.base = f"http://127.0.0.1:{port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await self._answer_one(head, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer_one(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        lines = head.decode("latin-1").split("\r\n")
        method, target, _protocol = lines[0].split(" ")
        headers = {}
        for line in lines[1:]:
            name, _colon, value = line.partition(":")
            headers[name.lower()] = value.strip()
        body = None
        length = int(headers.get("content-length", 0))
        if length:
            body = json.loads(await reader.readexactly(length))
        try:
            response = self._find_answer(method, target, body)
        except Exception as error:
            self.failures.append(f"{method} {target}: {error!r}")
            response = Response(500, {"error": {"code": 500, "message": repr(error)}}, "version")
        self.counts[response.kind] += 1
        await asyncio.sleep(calculate_latency(response.kind, response.rows))
        writer.write(_encode(response))
        await writer.drain()

    def _find_answer(self, method: str, target: str, body: t.Any) -> Response:
        url = urllib.parse.urlsplit(target)
        query = dict(urllib.parse.parse_qsl(url.query))
        _empty, service, *rest = urllib.parse.unquote(url.path).split("/")
        path = "".join(f"/{part}" for part in rest)
        if service == "identity":
            return keystone.answer(Request(method, path, query, body), self.base)
        if service == "placement":
            return placement.answer(Request(method, path, query, body), self.world)
        return nova.answer(Request(method, path.removeprefix("/v2.1"), query, body), self.world)


def _encode(response: Response) -> bytes:
    body = b""
    if response.body is not None:
        body = json.dumps(response.body, separators=(",", ":")).encode()
    now = email.utils.formatdate(usegmt=True)
    # Placement's own clock, at its root.
    modified = now if response.kind == "version" else _LAST_MODIFIED
    head = (
        f"HTTP/1.1 {response.status} X\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nDate: {now}\r\nLast-Modified: {modified}\r\n"
        "X-Subject-Token: simulated\r\nX-Openstack-Request-Id: req-simulated\r\n\r\n"
    )
    return head.encode() + body
