"""Makes the changes of a plan one after the other, without any proof.

Run as `python -m benchmark.unproven PLAN HOME`.

It sends a GET, a PUT with the generation found, and a GET for each consumer, over one connection:
the least that a careful operator would do.
"""

import http.client
import json
import sys
import typing as t
from pathlib import Path

from minicloud_ctl import state as states
from minicloud_ctl.paths import Paths
from minicloud_ctl.rest import Session


def main(plan: str, home: str) -> int:
    state = states.load(Paths.choose(home))
    token = Session(state).token()
    connection = http.client.HTTPConnection("127.0.0.1", state.ports["placement"], timeout=600)

    def request(
        method: str, consumer: str, body: dict[str, t.Any] | None = None
    ) -> dict[str, t.Any]:
        headers = {
            "X-Auth-Token": token,
            "OpenStack-API-Version": "placement 1.28",
            "Content-Type": "application/json",
        }
        connection.request(
            method, f"/allocations/{consumer}", json.dumps(body) if body else None, headers
        )
        answer = connection.getresponse()
        content = answer.read()
        if answer.status not in (200, 204):
            raise SystemExit(f"{method} {consumer}: {answer.status} {content.decode()}")
        return json.loads(content) if content else {}

    for change in json.loads(Path(plan).read_text(encoding="utf-8"))["changes"]:
        before, after = request("GET", change["consumer"]), change["after"]["allocations"]
        owner = {key: before[key] for key in ("project_id", "user_id", "consumer_generation")}
        request("PUT", change["consumer"], {"allocations": after, **owner})
        if set(request("GET", change["consumer"])["allocations"]) != set(after):
            raise SystemExit(
                f"{change['consumer']} does not have the allocations that were written"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
