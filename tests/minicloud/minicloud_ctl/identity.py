"""Projects, users, roles and the service catalogue, through Keystone's API.

Keystone's own bootstrap runs before.
"""

from minicloud_ctl.configs import REGIONS
from minicloud_ctl.rest import Session
from minicloud_ctl.state import CINDER, CYBORG, State

# User: (name of the password, project, roles); scenarios act as admin in the project demo.
ACCOUNTS = {
    "admin": ("admin", "demo", ("admin",)),
    **dict.fromkeys(
        ("nova", "placement", "glance", "neutron", "cinder", "cyborg"),
        ("service", "service", ("admin", "service")),
    ),
    "demo": ("demo", "demo", ("member",)),
    "reader": ("reader", "audit", ("reader",)),
}


def set_up(state: State) -> None:
    """Create everything once; what an interrupted run has already created is found and kept."""
    session = Session(state)
    roles = {role["name"]: role["id"] for role in _list(session, "roles")}
    projects = {project["name"]: project["id"] for project in _list(session, "projects")}
    users = {user["name"]: user["id"] for user in _list(session, "users")}
    for user, (password, project, wanted) in ACCOUNTS.items():
        if project not in projects:
            document = {"name": project, "domain_id": "default"}
            projects[project] = _create(session, "project", document)
        if user not in users:
            document = {"name": user, "domain_id": "default"}
            document["password"] = state.secrets[password]
            users[user] = _create(session, "user", document)
        for role in wanted:
            # Keystone creates the role "service" itself only since 2023.
            if role not in roles:
                roles[role] = _create(session, "role", {"name": role})
            member = f"/v3/projects/{projects[project]}/users/{users[user]}"
            session.must("keystone", "PUT", f"{member}/roles/{roles[role]}")
    _catalogue(session, state)


def _catalogue(session: Session, state: State) -> None:
    regions = {region["id"] for region in _list(session, "regions")}
    services = {service["type"]: service["id"] for service in _list(session, "services")}
    endpoints = {
        (endpoint["service_id"], endpoint["region_id"], endpoint["interface"])
        for endpoint in _list(session, "endpoints")
    }
    for nova, region in REGIONS.items():
        if region not in regions:
            _create(session, "region", {"id": region})
        api = "nova-api" if nova == "first" else f"{nova}-nova-api"
        for kind, name, url in (
            ("identity", "keystone", state.url("keystone", "/v3")),
            ("placement", "placement", state.url("placement")),
            ("image", "glance", state.url("glance")),
            ("network", "neutron", state.url("neutron")),
            ("compute", "nova", state.url(api, "/v2.1")),
            *_parts(state),
        ):
            if kind not in services:
                services[kind] = _create(session, "service", {"type": kind, "name": name})
            for interface in ("public", "internal", "admin"):
                if (services[kind], region, interface) not in endpoints:
                    place = {"service_id": services[kind], "region_id": region, "url": url}
                    _create(session, "endpoint", {**place, "interface": interface})


def _parts(state: State) -> list[tuple[str, str, str]]:
    """Return the type, the name and the URL of each real part that has no stub."""
    found = []
    if CINDER in state.parts:
        found.append(("volumev3", "cinderv3", state.url(CINDER, "/v3/$(project_id)s")))
    if CYBORG in state.parts:
        found.append(("accelerator", "cyborg", state.url(CYBORG, "/v2")))
    return found


def _list(session: Session, collection: str) -> list[dict]:
    return session.must("keystone", "GET", f"/v3/{collection}")[collection]


def _create(session: Session, kind: str, document: dict) -> str:
    return session.must("keystone", "POST", f"/v3/{kind}s", {kind: document})[kind]["id"]
