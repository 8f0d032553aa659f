"""Keystone: one user, one project, one region."""

from simulation import world as w
from simulation.answers import Request, Response, refuse
from simulation.world import build_uuid

REGION = "simulated"


def answer(request: Request, base: str) -> Response:
    """Return the answer of Keystone; `base` is the address of all services."""
    if request.path in ("", "/", "/v3", "/v3/"):
        link = {"rel": "self", "href": f"{base}/identity/v3"}
        return Response(
            200, {"version": {"id": "v3.14", "status": "stable", "links": [link]}}, "version"
        )
    if request.path == "/v3/auth/tokens" and request.method == "POST":
        return Response(201, {"token": _build_token(base)}, "keystone")
    if request.path == "/v3/projects":
        return Response(200, {"projects": [], "links": {}}, "keystone")
    if request.path.startswith("/v3/projects/"):
        uuid = request.path.rpartition("/")[2]
        project = {"id": uuid, "name": f"project-{uuid[:8]}", "domain_id": "default"}
        return Response(200, {"project": project}, "keystone")
    return refuse(404, f"{request.path} is not simulated", "keystone")


def _build_token(base: str) -> dict[str, object]:
    domain = {"id": "default", "name": "Default"}
    catalog = []
    paths = {"identity": "/identity/v3", "compute": "/compute/v2.1", "placement": "/placement"}
    for name, path in paths.items():
        place = {"interface": "public", "region": REGION, "region_id": REGION}
        endpoint = {**place, "url": f"{base}{path}", "id": name}
        catalog.append({"type": name, "name": name, "id": name, "endpoints": [endpoint]})
    return {
        "methods": ["password"],
        "expires_at": "2099-01-01T00:00:00.000000Z",
        "issued_at": "2026-01-01T00:00:00.000000Z",
        "user": {"id": build_uuid(w.USER, 0), "name": "admin", "domain": domain},
        "project": {"id": build_uuid(w.PROJECT, 0), "name": "admin", "domain": domain},
        "roles": [{"id": "admin", "name": "admin"}],
        "catalog": catalog,
    }
