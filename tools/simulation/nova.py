"""Nova, with cells of which one may be down (measured answers: docs/safety.md)."""

from __future__ import annotations

import re
import typing as t

from simulation import world as w
from simulation.answers import Request, Response, refuse
from simulation.world import World, build_uuid, get_host_name, parse_host_name, parse_uuid

if t.TYPE_CHECKING:
    from collections.abc import Sequence

_OLD, _RECENT = "2026-01-01T00:00:00Z", "2026-09-01T00:00:00Z"
_UP = {
    "status": "enabled",
    "state": "up",
    "zone": "nova",
    "updated_at": _RECENT,
    "forced_down": False,
    "disabled_reason": None,
}
_MAX_PAGE = 1000
# No server has any of the states that these filters name.
_OTHER_FILTERS = {"task_state", "vm_state", "status", "power_state", "project_id"}
_SERVER = re.compile(r"/servers/([0-9a-f-]{36})(?:/([\w-]+)(?:/([\w-]+))?)?")
_NODE = re.compile(r"/os-hypervisors/([0-9a-f-]{36})")
_HOST = re.compile(r"/os-hosts/(.+)")


def answer(request: Request, world: World) -> Response:
    """Return the answer of Nova."""
    listings = {
        "": _show_version,
        "/": _show_version,
        "/os-services": _list_services,
        "/os-hypervisors/detail": _list_hypervisors,
        "/os-migrations": _list_migrations,
        "/os-aggregates": lambda request, world: Response(200, {"aggregates": []}, "aggregates"),
        "/servers": _list_servers,
        "/servers/detail": _list_servers,
    }
    if request.path in listings:
        return listings[request.path](request, world)
    server = _SERVER.fullmatch(request.path)
    if server:
        return _show_server(server[1], server[2] or "", world)
    node = _NODE.fullmatch(request.path)
    if node:
        return _show_hypervisor(request, node[1], world)
    host = _HOST.fullmatch(request.path)
    if host:
        return _show_host(host[1], world)
    return refuse(404, f"{request.method} {request.path} is not simulated", "server")


def _show_version(request: Request, world: World) -> Response:
    version = {"id": "v2.1", "status": "CURRENT", "min_version": "2.1", "version": "2.100"}
    links = [{"rel": "self", "href": ""}]
    return Response(200, {"version": {**version, "links": links}}, "version")


def _list_services(request: Request, world: World) -> Response:
    services = []
    for host in range(world.hosts):
        service = {"binary": "nova-compute", "host": get_host_name(host), "status": "UNKNOWN"}
        if not world.is_down(host):
            service = {**service, **_UP, "id": build_uuid(w.SERVICE, host)}
        services.append(service)
    return Response(200, {"services": services}, "services", len(services))


def _list_hypervisors(request: Request, world: World) -> Response:
    with_servers = request.query.get("with_servers") == "true"
    kind = "hypervisors"
    if with_servers:
        kind = "hypervisors_with_servers"
    if world.down is not None:
        return refuse(500, "Unexpected API Error", kind)
    hosts = _cut_page(range(world.hosts), request)
    rows = [_describe_node(host, world, with_servers) for host in hosts]
    return Response(200, {"hypervisors": rows}, kind, len(rows))


def _cut_page(numbers: range, request: Request) -> range:
    """Return the numbers of the page that follows the marker of a request."""
    start = 0
    if "marker" in request.query:
        start = parse_uuid(request.query["marker"])[1] + 1 - numbers.start
    limit = min(_MAX_PAGE, int(request.query.get("limit", _MAX_PAGE)))
    return numbers[max(0, start) : max(0, start) + limit]


def _describe_node(host: int, world: World, with_servers: bool) -> dict[str, object]:
    count = world.servers_per_host
    node: dict[str, object] = {
        "id": build_uuid(w.NODE, host),
        "hypervisor_hostname": get_host_name(host),
        "service": {"host": get_host_name(host), "id": build_uuid(w.SERVICE, host)},
        "state": "up",
        "status": "enabled",
        "vcpus": 128,
        "memory_mb": 1048576,
        "local_gb": 20000,
        "vcpus_used": w.VCPUS * count,
        "memory_mb_used": w.MEMORY_MB * count,
        "local_gb_used": w.DISK_GB * count,
        "running_vms": count,
    }
    if with_servers and count:
        uuids = [build_uuid(w.SERVER, server) for server in world.list_servers_of(host)]
        node["servers"] = [{"uuid": uuid, "name": uuid} for uuid in uuids]
    return node


def _show_hypervisor(request: Request, uuid: str, world: World) -> Response:
    kind, host = parse_uuid(uuid)
    if kind != w.NODE or host >= world.hosts:
        return refuse(404, "Compute host could not be found", "host")
    if world.is_down(host):
        return refuse(500, "Unexpected API Error", "host")
    node = _describe_node(host, world, request.query.get("with_servers") == "true")
    return Response(200, {"hypervisor": node}, "host")


def _show_host(name: str, world: World) -> Response:
    host = parse_host_name(name)
    if host >= world.hosts:
        return refuse(404, f"Host {name} could not be found", "host")
    if world.is_down(host):
        return refuse(500, "Unexpected API Error", "host")
    return Response(200, {"host": []}, "host")


def _list_migrations(request: Request, world: World) -> Response:
    query = request.query
    if "marker" in query and parse_uuid(query["marker"])[0] != w.MIGRATION:
        return refuse(400, f"Marker {query['marker']} could not be found.", "migrations")
    if "instance_uuid" in query or "host" in query or "changes-since" in query:
        numbers: Sequence[int] = _select_migrations(request, world)
    else:
        numbers = _cut_page(range(world.migrations), request)
    rows = []
    for number in numbers:
        server = world.get_server_of_migration(number)
        # The listing leaves out a cell that is down, and does not say so.
        if not world.is_down(world.get_host_of_server(server)):
            rows.append(_describe_migration(number, world))
    return Response(200, {"migrations": rows}, "migrations", len(rows))


def _select_migrations(request: Request, world: World) -> list[int]:
    query = request.query
    if "marker" in query or "changes-since" in query:
        return []
    if "host" in query:
        host = parse_host_name(query["host"])
        servers: Sequence[int] = world.list_servers_of(host)
    else:
        kind, number = parse_uuid(query["instance_uuid"])
        servers = [number] if kind == w.SERVER else []
    step = world.servers // max(1, world.migrations)
    return [server // step for server in servers if server % step == 0]


def _describe_migration(number: int, world: World) -> dict[str, object]:
    server = world.get_server_of_migration(number)
    host = world.get_host_of_server(server)
    source = (host + 1) % world.hosts
    return {
        "id": number + 1,
        "uuid": build_uuid(w.MIGRATION, number),
        "instance_uuid": build_uuid(w.SERVER, server),
        "migration_type": "live-migration",
        "status": "completed",
        "source_compute": get_host_name(source),
        "source_node": get_host_name(source),
        "dest_compute": get_host_name(host),
        "dest_node": get_host_name(host),
        "created_at": _OLD,
        "updated_at": _OLD,
    }


def _list_servers(request: Request, world: World) -> Response:
    query, brief = request.query, request.path == "/servers"
    kind = "servers"
    if brief:
        kind = "brief_servers"
    if query.get("deleted") == "True":
        rows = _list_deleted(query.get("uuid", ""), world, brief)
        return Response(200, {"servers": rows}, kind, len(rows))
    if "uuid" in query:
        number = parse_uuid(query["uuid"])
        numbers = range(number[1], number[1] + (number[0] == w.SERVER))
    elif "host" in query:
        host = parse_host_name(query["host"])
        numbers = _cut_page(world.list_servers_of(host), request)
        if world.is_down(host):
            numbers = range(0)
    elif "changes-since" in query:
        numbers = _cut_page(range(world.changed), request)
    elif not _OTHER_FILTERS.isdisjoint(query):
        numbers = range(0)
    else:
        numbers = _cut_page(range(world.servers), request)
    described = [_describe_server(server, world, brief) for server in numbers]
    body: dict[str, object] = {"servers": described}
    if len(described) >= int(query.get("limit", _MAX_PAGE)):
        body["servers_links"] = [{"rel": "next", "href": "next"}]
    return Response(200, body, kind, len(described))


def _list_deleted(uuid: str, world: World, brief: bool) -> list[dict[str, object]]:
    kind, number = parse_uuid(uuid)
    if kind != w.ORPHAN or number >= world.orphans:
        return []
    server = {"id": uuid, "name": f"gone-{number}", "links": []}
    if brief:
        return [server]
    return [{**server, "status": "DELETED", "tenant_id": world.get_project(number)}]


def _describe_server(server: int, world: World, brief: bool) -> dict[str, object]:
    uuid = build_uuid(w.SERVER, server)
    described: dict[str, object] = {"id": uuid, "name": f"server-{server}", "links": []}
    if brief:
        return described
    host = get_host_name(world.get_host_of_server(server))
    updated = _OLD
    if server < world.changed:
        # Nova's clock is ours: what changed is later than any reading before.
        updated = "2099-01-01T00:00:00Z"
    return {
        **described,
        "status": "ACTIVE",
        "tenant_id": world.get_project(server),
        "user_id": build_uuid(w.USER, 0),
        "OS-EXT-SRV-ATTR:host": host,
        "OS-EXT-SRV-ATTR:hypervisor_hostname": host,
        "OS-EXT-STS:task_state": None,
        "created": _OLD,
        "updated": updated,
        "OS-SRV-USG:terminated_at": None,
        "image": {"id": build_uuid(w.AGGREGATE, 0), "links": []},
        "os-extended-volumes:volumes_attached": [],
        "flavor": w.FLAVOR,
    }


def _show_server(uuid: str, part: str, world: World) -> Response:
    kind, number = parse_uuid(uuid)
    if part == "os-instance-actions":
        return _show_actions(kind, number, world)
    if part == "os-interface":
        return Response(200, {"interfaceAttachments": []}, "actions")
    if kind == w.ORPHAN and world.is_down(world.get_host_of_orphan(number)):
        return refuse(500, "Unexpected API Error", "server")
    if kind != w.SERVER or number >= world.servers:
        return refuse(404, f"Instance {uuid} could not be found.", "server")
    if world.is_down(world.get_host_of_server(number)):
        return refuse(500, "Unexpected API Error", "server")
    return Response(200, {"server": _describe_server(number, world, brief=False)}, "server")


def _show_actions(kind: int, number: int, world: World) -> Response:
    if kind != w.ORPHAN:
        return Response(200, {"instanceActions": []}, "actions")
    deletion = {
        "action": "delete",
        "request_id": f"req-{number}",
        "user_id": build_uuid(w.USER, 0),
        "start_time": _OLD,
        "message": None,
        "events": [],
    }
    return Response(200, {"instanceActions": [deletion]}, "actions")
