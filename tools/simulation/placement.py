"""Placement."""

import re

from simulation import world as w
from simulation.answers import Request, Response, refuse
from simulation.world import World, build_uuid, get_host_name, parse_uuid

_INVENTORIES = {"VCPU": (128, 4.0), "MEMORY_MB": (1048576, 1.0), "DISK_GB": (20000, 1.0)}
_PROVIDER = re.compile(r"/resource_providers/([0-9a-f-]{36})(?:/(\w+))?")
_CONSUMER = re.compile(r"/allocations/([0-9a-f-]{36})")


def answer(request: Request, world: World) -> Response:
    """Return the answer of Placement."""
    if request.path in ("", "/"):
        version = {"id": "v1.0", "min_version": "1.0", "max_version": "1.39", "status": "CURRENT"}
        links = [{"rel": "self", "href": ""}]
        return Response(200, {"versions": [{**version, "links": links}]}, "version")
    if request.path == "/resource_providers":
        return _list_providers(request, world)
    if request.path == "/allocation_candidates":
        return _list_candidates(world)
    if request.path == "/allocations" and request.method == "POST":
        return _write(request, world)
    provider = _PROVIDER.fullmatch(request.path)
    if provider:
        return _show_part(provider[1], provider[2] or "", world)
    consumer = _CONSUMER.fullmatch(request.path)
    if consumer:
        return _show_allocation(consumer[1], world)
    return refuse(404, f"{request.method} {request.path} is not simulated", "provider_part")


def _list_providers(request: Request, world: World) -> Response:
    query = request.query
    if "required" in query or "member_of" in query:
        return Response(200, {"resource_providers": []}, "providers")
    hosts = range(world.hosts)
    if "uuid" in query or "in_tree" in query:
        number = parse_uuid(query.get("uuid") or query["in_tree"])[1]
        hosts = range(number, number + 1)
    elif "name" in query:
        number = w.parse_host_name(query["name"])
        hosts = range(number, number + 1)
    rows = [_describe_provider(host, world) for host in hosts]
    return Response(200, {"resource_providers": rows}, "providers", len(rows))


def _describe_provider(host: int, world: World) -> dict[str, object]:
    uuid = build_uuid(w.NODE, host)
    return {
        "uuid": uuid,
        "name": get_host_name(host),
        "generation": world.get_generation(host),
        "root_provider_uuid": uuid,
        "parent_provider_uuid": None,
        "links": [],
    }


def _list_candidates(world: World) -> Response:
    summaries: dict[str, dict[str, object]] = {}
    for host in range(world.hosts):
        uuid, count = build_uuid(w.NODE, host), len(_list_allocations(host, world))
        used = {
            name: {"used": count * amount, "capacity": 0} for name, amount in w.ALLOCATION.items()
        }
        summaries[uuid] = {"resources": used, "traits": [], "root_provider_uuid": uuid}
    requests = [{"allocations": {uuid: {"resources": {"MEMORY_MB": 1}}}} for uuid in summaries]
    body = {"allocation_requests": requests, "provider_summaries": summaries}
    return Response(200, body, "allocation_candidates", world.hosts)


def _show_part(provider: str, part: str, world: World) -> Response:
    kind, host = parse_uuid(provider)
    if kind != w.NODE or host >= world.hosts:
        return refuse(404, "No resource provider", "provider_part")
    generation = world.get_generation(host)
    if part == "allocations":
        allocations = _list_allocations(host, world)
        body = {"allocations": allocations, "resource_provider_generation": generation}
        return Response(200, body, "provider_allocations", len(allocations))
    inventories = {}
    for name, (total, ratio) in _INVENTORIES.items():
        units = {"min_unit": 1, "max_unit": total, "step_size": 1}
        inventories[name] = {"total": total, "reserved": 0, "allocation_ratio": ratio, **units}
    bodies: dict[str, object] = {
        "inventories": inventories,
        "traits": ["COMPUTE_NODE"],
        "aggregates": [],
        "usages": {name: amount * world.servers_per_host for name, amount in w.ALLOCATION.items()},
    }
    if part not in bodies:
        return Response(200, _describe_provider(host, world), "provider_part")
    body = {part: bodies[part], "resource_provider_generation": generation}
    return Response(200, body, "provider_part")


def _list_allocations(host: int, world: World) -> dict[str, object]:
    consumers = [build_uuid(w.SERVER, server) for server in world.list_servers_of(host)]
    consumers += [build_uuid(w.ORPHAN, orphan) for orphan in world.list_orphans_on(host)]
    return {uuid: {"resources": w.ALLOCATION, "consumer_generation": 1} for uuid in consumers}


def _show_allocation(consumer: str, world: World) -> Response:
    kind, number = parse_uuid(consumer)
    if kind == w.SERVER and number < world.servers:
        host = world.get_host_of_server(number)
    elif kind == w.ORPHAN and number < world.orphans and number not in world.removed:
        host = world.get_host_of_orphan(number)
    else:
        return Response(200, {"allocations": {}}, "allocation")
    provider = build_uuid(w.NODE, host)
    allocation = {"resources": w.ALLOCATION, "generation": world.get_generation(host)}
    body = {
        "allocations": {provider: allocation},
        "project_id": world.get_project(number),
        "user_id": build_uuid(w.USER, 0),
        "consumer_generation": 1,
        "consumer_type": "unknown",
    }
    return Response(200, body, "allocation")


def _write(request: Request, world: World) -> Response:
    # Only the removal of an orphan is simulated: anything else would change a live server.
    for consumer, document in request.body.items():
        kind, number = parse_uuid(consumer)
        if kind != w.ORPHAN or document["allocations"] or document["consumer_generation"] != 1:
            raise ValueError(f"a run changes {consumer}: {document}")
        world.removed.add(number)
    return Response(204, None, "write")
