"""Serves the stand-in for AWX on a port of this machine."""

import contextlib
import json
import typing as t
import urllib.parse
from collections.abc import Iterator

from ..local_server import LocalServer, QuietHandler
from .api import Awx


@contextlib.contextmanager
def served(awx: Awx) -> Iterator[Awx]:
    """Let `awx` answer HTTP requests within a `with` block, at `awx.url`."""

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            there = urllib.parse.urlsplit(self.path)
            given = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
            query = dict(urllib.parse.parse_qsl(there.query))
            # The uri module sends null where a request has no body, which AWX accepts.
            body = json.loads(given or "{}") or {}
            self._send(*awx.answer(token, self.command, there.path, query, body))

        def _send(self, status: int, body: t.Any) -> None:
            content, form = b"", "application/json"
            if isinstance(body, str):
                content, form = body.encode(), "text/plain"
            elif body is not None:
                content = json.dumps(body).encode()
            self.send_response(status)
            if content:
                self.send_header("Content-Type", form)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_DELETE = do_GET = do_PATCH = do_POST = _serve

    with LocalServer(Handler) as server:
        awx.url = server.address
        yield awx
