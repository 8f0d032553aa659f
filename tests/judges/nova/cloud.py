"""The cloud of the Nova test that runs now, as a session of the collection.

Placement and Nova are the applications of the fixtures, reached through wsgi-intercept. Neutron,
Cinder and Cyborg are no HTTP services in Nova's tests: an adapter answers from the state of each
fixture, in the form of the real API.
"""

from __future__ import annotations

import json
import typing as t
import urllib.parse

from keystoneauth1 import adapter, plugin
from keystoneauth1 import session as ks

from ....plugins.module_utils._core.clients import api as api_module
from ....plugins.module_utils._core.clients.session import (
    MINIMUM_COMPUTE_MICROVERSION,
    MINIMUM_PLACEMENT_MICROVERSION,
    Session,
)

# A lasting 500 only costs time here.
api_module._RETRY_PAUSES = (0.0, 0.0)

ROLES = ("reader", "member", "admin")
# None of the projects of Nova's tests.
PROJECT = "05005000000000000000000000000000"

Handler = t.Callable[[str, t.Mapping[str, t.Any]], tuple[int, dict[str, t.Any]]]


class HeaderAuth(plugin.BaseAuthPlugin):
    """Sends what the stubs of the auth middlewares understand."""

    def get_token(self, session: t.Any, **kwargs: t.Any) -> str:
        return "admin"

    def get_headers(self, session: t.Any, **kwargs: t.Any) -> dict[str, str]:
        return {
            "X-Auth-Token": "admin",
            "X-Auth-User": "admin",
            "X-User-Id": "admin",
            "X-Auth-Project-Id": PROJECT,
            "X-Roles": ",".join(ROLES),
        }


class ServiceAdapter(adapter.Adapter):
    """Accepts what openstacksdk's Proxy accepts, and counts the requests of all services."""

    count = 0

    def request(
        self, url: str, method: str, skip_cache: bool | None = None, **kwargs: t.Any
    ) -> t.Any:
        ServiceAdapter.count += 1
        return super().request(
            url, method, status_code_retry_delay=0.001, connect_retry_delay=0.001, **kwargs
        )


class _Response:
    def __init__(self, status: int, body: t.Any) -> None:
        self.status_code = status
        self.content = json.dumps(body, default=str).encode()
        self.headers = {"Content-Type": "application/json"}

    def json(self) -> t.Any:
        return json.loads(self.content)


class FixtureAdapter:
    """Answers for a service that is a fixture."""

    def __init__(self, name: str, handle: Handler) -> None:
        self._endpoint = f"http://{name.lower()}"
        self._handle = handle

    def get_endpoint(self) -> str:
        return self._endpoint

    def get_endpoint_data(self) -> None:
        return None

    def request(
        self, url: str, method: str, params: t.Mapping[str, t.Any] | None = None, **_kwargs: t.Any
    ) -> _Response:
        ServiceAdapter.count += 1
        if method != "GET":
            raise AssertionError(f"{method} {url}: the collection only reads here")
        path = urllib.parse.unquote(url.removeprefix(self._endpoint))
        return _Response(*self._handle(path, params or {}))


def _make_neutron_handler(fixture: t.Any) -> Handler:
    def handle(path: str, params: t.Mapping[str, t.Any]) -> tuple[int, dict[str, t.Any]]:
        if path != "/v2.0/ports":
            return 404, {"NeutronError": {"message": f"no {path}"}}
        filters = {key: value for key, value in params.items() if key != "limit"}
        ports = fixture.list_ports(is_admin=True, **filters)["ports"]
        for port in ports:
            # Neutron shows these to an administrator, whether they are set or not.
            port.setdefault("resource_request", None)
            port.setdefault("binding:host_id", "")
            if port.get("binding:profile") is None:
                port["binding:profile"] = {}
        return 200, {"ports": ports}

    return handle


def _make_cinder_handler(fixture: t.Any) -> Handler:
    def handle(path: str, _params: t.Mapping[str, t.Any]) -> tuple[int, dict[str, t.Any]]:
        try:
            volume = dict(fixture.fake_get(None, path.removeprefix("/volumes/")))
        except Exception as error:
            return 404, {"itemNotFound": {"message": str(error)}}
        # Every volume from which a server boots is bootable; the fixture does not say so.
        return 200, {"volume": {**volume, "bootable": "true"}}

    return handle


def _make_cyborg_handler(fixture: t.Any) -> Handler:
    def handle(path: str, params: t.Mapping[str, t.Any]) -> tuple[int, dict[str, t.Any]]:
        if path == "/v2/device_profiles":
            return 200, {"device_profiles": fixture.fake_get_device_profile_list(params["name"])}
        if path == "/v2/accelerator_requests":
            return 200, {"arqs": fixture.fake_get_arqs_for_instance(params["instance"])}
        return 404, {"itemNotFound": {"message": f"no {path}"}}

    return handle


_HANDLERS = {
    "Neutron": _make_neutron_handler,
    "Cinder": _make_cinder_handler,
    "Cyborg": _make_cyborg_handler,
}


def connect(fixtures: t.Mapping[str, t.Any]) -> Session:
    """Return a session for the fixtures of the test that runs, by the names of their services."""
    session = ks.Session(auth=HeaderAuth())
    placement = ServiceAdapter(
        session, service_type="placement", endpoint_override=fixtures["Placement"].endpoint
    )
    # Some tests have the project in the URL; Nova accepts both.
    base = "/".join(fixtures["Nova"].admin_api.base_url.split("/")[:4])
    compute = ServiceAdapter(session, service_type="compute", endpoint_override=base)
    apis: dict[str, api_module.Api | None] = dict.fromkeys(_HANDLERS)
    for name, make_handler in _HANDLERS.items():
        if name in fixtures:
            handle = make_handler(fixtures[name])
            apis[name] = api_module.Api(name, FixtureAdapter(name, handle), None)
    return Session(
        placement=api_module.Api("Placement", placement, MINIMUM_PLACEMENT_MICROVERSION),
        compute=api_module.Api("Nova", compute, MINIMUM_COMPUTE_MICROVERSION),
        network=apis["Neutron"],
        block_storage=apis["Cinder"],
        accelerator=apis["Cyborg"],
        identity=None,
        region="RegionOne",
        project=PROJECT,
        allocators=("accelerator",) if "Cyborg" in fixtures else (),
        other_novas=(),
        roles=frozenset(ROLES),
    )
