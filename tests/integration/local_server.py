"""An HTTP server of a test, on a free port of this machine."""

import http.server
import json
import sys
import threading
import typing as t


class QuietHandler(http.server.BaseHTTPRequestHandler):
    """A handler that writes no line for each request into the output of the tests."""

    def log_message(self, format: str, *args: t.Any) -> None:
        """Log nothing."""


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: t.Any, client_address: t.Any) -> None:
        """Print nothing where a client broke off, because many tests make it do so."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class LocalServer:
    """Answers with `handler` within a `with` block, each request in a thread of its own."""

    def __init__(self, handler: type[QuietHandler]) -> None:
        self._server = _Server(("127.0.0.1", 0), handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> t.Self:
        # The default interval of half a second would be the time that `shutdown` takes.
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class Webhook(LocalServer):
    """A server that keeps the requests that it receives, and answers with a given status."""

    def __init__(self) -> None:
        self.bodies: list[t.Any] = []
        self.status = 200
        keep = self

        class Handler(QuietHandler):
            def do_POST(self) -> None:
                keep.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(keep.status)
                self.end_headers()

        super().__init__(Handler)
        self.url = f"{self.address}/hooks/SECRET-of-the-hook"
