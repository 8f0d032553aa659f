# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists all hypervisors with their servers, and prints how many seconds this takes.

Run as `python -m benchmark.listing STRANDS`, where STRANDS is `one`, or `chosen` for as many as
the collection chooses.
"""

from __future__ import annotations

import sys
import time

from ansible_collections.osops.placement.plugins.module_utils._clients.argspec import (
    connection_options,
)
from ansible_collections.osops.placement.plugins.module_utils._clients.nova import NovaReader
from ansible_collections.osops.placement.plugins.module_utils._clients.placement import (
    PlacementReader,
)
from ansible_collections.osops.placement.plugins.module_utils._clients.session import connect

ONE, CHOSEN = "one", "chosen"


def main(strands: str) -> int:
    options = {name: option.get("default") for name, option in connection_options().items()}
    session = connect({**options, "cloud": "minicloud"})
    roots: list[str] = []
    if strands == CHOSEN:
        providers = PlacementReader(session.placement).list_providers()
        roots = [uuid for uuid, provider in providers.items() if provider.is_host]
    nova = NovaReader(session.compute)
    # Connects, so that only the listing is measured.
    nova.list_services()
    began = time.perf_counter()
    listed = nova.list_hypervisors(True, roots).value
    seconds = time.perf_counter() - began
    if not listed:
        raise SystemExit("Nova lists no hypervisors.")
    print(f"{len(listed)} hypervisors in {seconds:.4f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
