"""Sends the requests of a recording again, and reads only the status of each response.

Run as `python -m benchmark.replay RECORDING HOME`.

No client can send the same requests faster. The recording is split into phases wherever no request
was under way. Within a phase, one thread sends the requests of each recorded thread in their order.
"""

import concurrent.futures
import http.client
import json
import sys
import threading
import typing as t
import urllib.parse
from pathlib import Path

from minicloud_ctl import state as states
from minicloud_ctl.paths import Paths
from minicloud_ctl.rest import Session

Request = dict[str, t.Any]

_connections = threading.local()


def main(recording: str, home: str) -> int:
    requests = json.loads(Path(recording).read_text(encoding="utf-8"))
    token = Session(states.load(Paths.choose(home))).token()
    with concurrent.futures.ThreadPoolExecutor(max_workers=64) as pool:
        for lanes in split_into_phases(
            [request for request in requests if not request["url"].endswith("/auth/tokens")]
        ):
            if len(lanes) == 1:
                _send_all(lanes[0], token)
            else:
                for done in [pool.submit(_send_all, lane, token) for lane in lanes]:
                    done.result()
    return 0


def split_into_phases(requests: list[Request]) -> list[list[list[Request]]]:
    """Return the requests of each phase, by thread."""
    found: list[dict[str, list[Request]]] = []
    busy_until = float("-inf")
    for request in sorted(requests, key=lambda request: request["start"]):
        if request["start"] > busy_until:
            found.append({})
        found[-1].setdefault(request["lane"], []).append(request)
        busy_until = max(busy_until, request["end"])
    return [list(lanes.values()) for lanes in found]


def _send_all(lane: list[Request], token: str) -> None:
    for request in lane:
        url = urllib.parse.urlsplit(request["url"])
        headers = {
            "X-Auth-Token": token,
            "Accept": "application/json",
            **({"Content-Type": "application/json"} if request["body"] else {}),
        }
        if request["version"]:
            headers["OpenStack-API-Version"] = request["version"]
        connection = _get_connection(url.netloc)
        path = f"{url.path}?{url.query}" if url.query else url.path
        connection.request(request["method"], path, request["body"], headers)
        response = connection.getresponse()
        response.read()
        if response.status != request["status"]:
            raise SystemExit(
                f"{request['url']} was {request['status']} and is now {response.status}"
            )


def _get_connection(address: str) -> http.client.HTTPConnection:
    connections = _connections.__dict__
    if address not in connections:
        connections[address] = http.client.HTTPConnection(address, timeout=600)
    connection: http.client.HTTPConnection = connections[address]
    return connection


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
