"""A Neutron without any resource.

Nova's API asks for ports on every ``GET /servers/{id}``, even if servers have no network.

It answers ``GET /v2.0/<collection>`` with an empty list, and everything else with 404.
"""

from __future__ import annotations

import http.server
import json
import re
import sys
from typing import Any


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are sent in one piece; a separate body would wait 40 ms for the other side to
    # acknowledge the head.
    wbufsize = -1

    def do_GET(self) -> None:
        parts = re.sub(r"(\.json)?(\?.*)?$", "", self.path).strip("/").split("/")
        if len(parts) == 2 and parts[0] == "v2.0":
            self._answer(200, {parts[1].replace("-", "_"): []})
        else:
            error = {"type": "NotFound", "message": "There is no network here.", "detail": ""}
            self._answer(404, {"NeutronError": error})

    def _answer(self, status: int, document: dict) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: Nova's own log already has every request."""


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
