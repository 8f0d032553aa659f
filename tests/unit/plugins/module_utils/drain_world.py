"""Servers, hosts and answers of Placement, for the tests of draining."""

import dataclasses as d
import typing as t

from .....plugins.module_utils._core.models.nova import Flavor, Migration, Server, Service
from .....plugins.module_utils._core.models.placement import AllocationCandidates, ProviderSummary
from .....plugins.module_utils._hosts.drain_plan import HostReading
from .....plugins.module_utils._hosts.draining import DrainServer
from .....plugins.module_utils._hosts.move_ways import build_need

SOURCE = "compute-1"
TINY = Flavor(1, 512, 1, 0, 0, {})


def build_server(
    name: str = "web-1", status: str = "ACTIVE", host: str | None = SOURCE, **changes: t.Any
) -> DrainServer:
    """Return a server without a task; `changes` are fields of it or of its `Server`."""
    server = Server(
        uuid=f"uuid-of-{name}",
        name=name,
        status=status,
        project="project",
        user="user",
        host=host,
        node=host,
        task_state=None,
        task_known=True,
        host_known=True,
        created=None,
        updated=None,
        terminated_at=None,
        image="image",
        flavor=TINY,
    )
    outer = {field.name for field in d.fields(DrainServer)}
    inner = {key: value for key, value in changes.items() if key not in outer}
    rest = {key: value for key, value in changes.items() if key in outer}
    return DrainServer(server=d.replace(server, **inner), **rest)


def build_migration(number: int, status: str = "completed", **changes: t.Any) -> Migration:
    """Return a live migration away from the source."""
    fields: dict[str, t.Any] = {
        "uuid": f"migration-{number}",
        "server": "uuid-of-web-1",
        "type": "live-migration",
        "status": status,
        "source_compute": SOURCE,
        "source_node": SOURCE,
        "dest_compute": "compute-2",
        "dest_node": "compute-2",
        "created_at": None,
        "updated_at": None,
    }
    return Migration(**{**fields, **changes})


def build_service(host: str, **changes: t.Any) -> Service:
    fields: dict[str, t.Any] = {
        "binary": "nova-compute",
        "host": host,
        "status": "enabled",
        "state": "up",
        "id": f"id-of-{host}",
        "zone": "nova",
    }
    return Service(**{**fields, **changes})


def build_candidates(
    need: t.Mapping[str, int], free: t.Mapping[str, t.Mapping[str, int]]
) -> AllocationCandidates:
    """Return Placement's answer about hosts whose provider has their name."""
    allocations = []
    for host, amounts in free.items():
        if all(amounts.get(cls, 0) >= amount for cls, amount in need.items()):
            allocations.append({host: dict(need)})
    summaries = {}
    for host, amounts in free.items():
        summaries[host] = ProviderSummary(host, frozenset(), amounts, dict.fromkeys(amounts, 0))
    return AllocationCandidates(tuple(allocations), summaries)


def build_reading(
    servers: t.Sequence[DrainServer], free: t.Mapping[str, t.Mapping[str, int]], **changes: t.Any
) -> HostReading:
    """Return the reading of the source, in a cloud whose other hosts have this much free."""
    services = [build_service(host) for host in (SOURCE, *free)]
    reading = HostReading(
        host=SOURCE,
        service=services[0],
        services=services,
        servers=servers,
        nodes={host: host for host in (SOURCE, *free)},
        places={server.uuid: server.server.host or "" for server in servers},
    )
    reading = d.replace(reading, **changes)
    candidates = {}
    for server in servers:
        need = build_need(server, reading.allocations.get(server.uuid), reading.aggregates)
        if need is not None:
            candidates[need] = build_candidates(dict(need.resources), free)
    return d.replace(reading, candidates=candidates)
