"""Lists all hypervisors with their servers, and prints how many seconds this takes.

Run as `python -m benchmark.listing STRANDS HOME`, where STRANDS is `one`, or `chosen` for as many
as the collection chooses.
"""

import http.client
import json
import sys
import time
import typing as t

from minicloud_ctl import state as states
from minicloud_ctl.paths import Paths
from minicloud_ctl.rest import Session

from ansible_collections.osops.placement.plugins.module_utils._core.clients.nova import NovaReader
from ansible_collections.osops.placement.plugins.module_utils._core.clients.placement import (
    PlacementReader,
)
from ansible_collections.osops.placement.plugins.module_utils._core.clients.session import connect
from ansible_collections.osops.placement.plugins.module_utils._core.options.connection import (
    ConnectionOptions,
)

ONE, CHOSEN = "one", "chosen"
_PAGE = 125
# From 2.88 on Nova asks every host for its uptime.
_MICROVERSION = "compute 2.87"
_TIMEOUT = 600


def main(strands: str, home: str) -> int:
    if strands == ONE:
        listed, seconds = _list_in_one_strand(home)
    else:
        listed, seconds = _list_as_chosen()
    if not listed:
        raise SystemExit("Nova lists no hypervisors.")
    print(f"{listed} hypervisors in {seconds:.4f} s")
    return 0


def _list_in_one_strand(home: str) -> tuple[int, float]:
    """List page after page over one connection, as a simple client does."""
    state = states.load(Paths.choose(home))
    headers = {
        "X-Auth-Token": Session(state).token(),
        "OpenStack-API-Version": _MICROVERSION,
        "Accept": "application/json",
    }
    connection = http.client.HTTPConnection("127.0.0.1", state.ports["nova-api"], timeout=_TIMEOUT)

    def get(path: str) -> dict[str, t.Any]:
        connection.request("GET", f"/v2.1{path}", None, headers)
        answer = connection.getresponse()
        content: dict[str, t.Any] = json.loads(answer.read())
        if answer.status != 200:
            raise SystemExit(f"GET {path}: {answer.status} {content}")
        return content

    # Connects, so that only the listing is measured.
    get("/os-services")
    began = time.perf_counter()
    listed, marker = 0, ""
    while True:
        path = f"/os-hypervisors/detail?with_servers=true&limit={_PAGE}{marker}"
        page = get(path)["hypervisors"]
        if not page:
            return listed, time.perf_counter() - began
        listed += len(page)
        marker = f"&marker={page[-1]['id']}"


def _list_as_chosen() -> tuple[int, float]:
    """List as a module does."""
    options = {name: option.default for name, option in ConnectionOptions.list_options().items()}
    session = connect({**options, "cloud": "minicloud"})
    providers = PlacementReader(session.placement).list_providers()
    roots = [uuid for uuid, provider in providers.items() if provider.is_host]
    nova = NovaReader(session.compute)
    # Connects, so that only the listing is measured.
    nova.list_services()
    began = time.perf_counter()
    listing = nova.list_hypervisors(True, roots).value or ()
    return len(listing), time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
