"""More processes of nova-api beside the first one, on ports of their own.

They have the same configuration and databases.

A worker of nova-api looks for the cells of its Nova when it first needs them and never again, and
it keeps two such lists (``nova.context.CELLS`` and ``nova.compute.api.CELLS``). ``prime`` makes it
fill one of them now.
"""

import re
from collections.abc import Sequence

from minicloud_ctl import lifecycle, processes, rest, services
from minicloud_ctl import state as states
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import Paths

NAME = re.compile(r"[a-z][a-z0-9]{0,30}")

# A request that makes a worker fill the one list and not the other.
CACHES = {"context": "/v2.1/servers?all_tenants=1", "compute": "/v2.1/os-hypervisors"}


def start(paths: Paths, *names: str) -> dict[str, int]:
    """Start the workers that do not run, and return the port of each."""
    for name in names:
        if not NAME.fullmatch(name):
            raise MinicloudError(
                f"'{name}' cannot be the name of a worker: small letters and digits only."
            )
    with states.changing(paths) as state:
        missing = [
            service for service in map(services.worker_name, names) if service not in state.ports
        ]
        state.ports.update(states.free_ports(tuple(missing), state.ports.values()))
        state.workers += [name for name in names if name not in state.workers]
    wanted = [services.nova_api_worker(paths, state, name) for name in names]
    lifecycle.start(paths, wanted)
    lifecycle.await_http(paths, wanted)
    return {name: state.ports[services.worker_name(name)] for name in names}


def prime(paths: Paths, name: str, *caches: str) -> None:
    """Let a worker look for the current cells, for the named lists (``CACHES``)."""
    state = states.load(paths)
    session = rest.Session(state)
    for cache in caches:
        if cache not in CACHES:
            raise MinicloudError(
                f"There is no list of cells '{cache}'; there are: {', '.join(CACHES)}."
            )
        session.must(services.worker_name(name), "GET", CACHES[cache])


def restart(paths: Paths, *names: str) -> None:
    """End workers and start them again, which empties their lists of cells."""
    state = states.load(paths)
    lifecycle.restart(paths, [services.nova_api_worker(paths, state, name) for name in names])


def stop(paths: Paths, names: Sequence[str] | None = None) -> None:
    """End the named workers, or all, and forget them; their ports stay reserved."""
    with states.changing(paths) as state:
        ended = (
            state.workers if names is None else [name for name in names if name in state.workers]
        )
        state.workers = [name for name in state.workers if name not in ended]
    processes.stop(paths, [services.worker_name(name) for name in ended])
