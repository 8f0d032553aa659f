# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""From connection options to the two services that we speak with.

Everything that can go wrong between us and a service becomes one `CloudError` here.
"""

from __future__ import annotations

import contextlib
import dataclasses as d
import traceback
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._clock import http_time, now
from ansible_collections.osops.placement.plugins.module_utils._errors import CloudError, InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._model import Answer, Cloud

try:
    import keystoneauth1.exceptions as ksa
    import openstack
    from openstack.exceptions import ConfigException, SDKException, ServiceDisabledException
except ImportError:
    OPENSTACKSDK_IMPORT_ERROR: str | None = traceback.format_exc()
else:
    OPENSTACKSDK_IMPORT_ERROR = None

# Below these not even a reading is possible: generations of providers, and compute nodes with the uuids that providers have. What more
# the proofs need is in `_offers`.
PLACEMENT_NEEDED = (1, 20)
COMPUTE_NEEDED = (2, 53)

# A dead cell is a lasting 500, so 500 is an answer for us and no reason to try again.
_TRANSIENT = (429, 502, 503, 504)
_ADVICE = {
    401: "Check the credentials.",
    403: "Use credentials whose role may do this (admin by default).",
    429: "The service limits the rate of requests: try again later.",
    500: "The cause is in that service's log.",
    502: "The service behind the proxy does not answer: try again later.",
    503: "The service is not available: try again later.",
    504: "The service behind the proxy does not answer in time: try again later.",
}

# Services that claim from Placement themselves: Zun (also on Nova's own providers, untyped), Cyborg and Blazar.
_OTHER_ALLOCATORS = frozenset({"container", "accelerator", "reservation"})

_CATALOGUE = "Check region_name and interface, and that the service is part of this cloud."

T = t.TypeVar("T")


@d.dataclass(frozen=True)
class Reply:
    """An HTTP answer: its status, headers (any case) and JSON body (`{}` when there is none)."""

    status: int
    headers: t.Mapping[str, str]
    body: t.Any

    @property
    def detail(self) -> str:
        """The service's own words: Placement's `errors[].detail`, or the message that Nova wraps into one key."""
        if self._errors:
            return " ".join(" ".join(str(error.get("detail", "")).split()) for error in self._errors)
        wrapped = self.body.values() if isinstance(self.body, dict) else ()
        return " ".join(str(value["message"]) for value in wrapped if isinstance(value, dict) and "message" in value)

    @property
    def code(self) -> str | None:
        """Placement's error code, such as `placement.concurrent_update`."""
        return self._errors[0].get("code") if self._errors else None

    @property
    def _errors(self) -> list[dict[str, t.Any]]:
        errors = self.body.get("errors") if isinstance(self.body, dict) else None
        return [error for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []


class Api:
    """One service: requests at a stated microversion, retried where that is safe."""

    def __init__(self, name: str, adapter: t.Any, needed: tuple[int, int] | None) -> None:
        self.name = name
        self._adapter = adapter
        with _speaking_clearly(name):
            endpoint = adapter.get_endpoint()
            data = adapter.get_endpoint_data() if needed else None
        if endpoint is None:
            raise CloudError(f"{name} has no endpoint in the service catalogue. {_CATALOGUE}")
        # Whether it ends with a slash depends on whether the service answered when its versions were discovered.
        self.endpoint: str = f"{endpoint.rstrip('/')}/"
        if needed is None:
            return
        if data is None or data.max_microversion is None:
            # Discovery passes over a service that does not answer; a request of our own says why, or it answers now.
            self.expect(self.get(self.endpoint, None), "for its versions", 200, 300)
            with _speaking_clearly(name):
                data = adapter.get_endpoint_data()
        self.newest: tuple[int, int] = (data and data.max_microversion) or (1, 0)
        self.at_least(*needed)

    def at_least(self, major: int, minor: int) -> str:
        """Return the microversion `major.minor`, or raise CloudError when the service does not offer it."""
        if self.newest < (major, minor):
            raise CloudError(
                f"{self.name} at {self.endpoint} offers microversions up to {_dotted(self.newest)}; "
                f"{_dotted((major, minor))} or newer is needed."
            )
        return _dotted((major, minor))

    def at_most(self, major: int, minor: int) -> str:
        """Return the newest microversion that the service offers, but none beyond `major.minor`."""
        return _dotted(min(self.newest, (major, minor)))

    def get(self, path: str, microversion: str | None, **params: t.Any) -> Reply:
        """GET `path`; transient failures are tried again a few times."""
        return self._request("GET", path, microversion, params=params, connect_retries=2, status_code_retries=3)

    def write(self, method: str, path: str, microversion: str, body: t.Mapping[str, t.Any] | None = None) -> Reply:
        """Send a change once: whether a lost one took effect is for the caller to find out by reading."""
        return self._request(method, path, microversion, json=body, connect_retries=0, status_code_retries=0)

    def ask(self, path: str, microversion: str | None, read: t.Callable[[Reply], T | None], **params: t.Any) -> Answer[T]:
        """GET `path` as evidence: any status is an answer, and a 200 is read by `read`."""
        reply = self.get(path, microversion, **params)
        return self.answer(path, microversion, params, reply, self.parse(read, reply, path) if reply.status == 200 else None)

    def parse(self, read: t.Callable[[Reply], T], reply: Reply, path: str) -> T:
        """Return what `read` makes of `reply`, or raise CloudError when that has not the shape of this API's answers."""
        try:
            return read(reply)
        except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
            raise CloudError(
                f"{self.name} at {self.endpoint} answered GET {path} with something unexpected ({type(error).__name__}: {error}): "
                "is a proxy in the way?"
            ) from error

    def answer(self, path: str, microversion: str | None, params: t.Mapping[str, t.Any], reply: Reply, value: t.Any) -> Answer[t.Any]:
        """Return `reply` as evidence, with the time by the clock of the service, to which the times in its answers are to be compared."""
        query = "&".join(f"{key}={wanted}" for key, wanted in params.items())
        at = http_time(reply.headers.get("Date")) or now()
        return Answer(f"GET {path}{'?' if query else ''}{query}", microversion or "", reply.status, at, value)

    def expect(self, reply: Reply, what: str, *statuses: int) -> Reply:
        """Return `reply` if it has one of `statuses` (200 without any), or raise CloudError saying that `what` failed."""
        if reply.status in (statuses or (200,)):
            return reply
        raise CloudError(
            " ".join(
                part
                for part in (
                    f"{self.name} at {self.endpoint} answered {reply.status} when asked {what}{': ' + reply.detail if reply.detail else '.'}",
                    _ADVICE.get(reply.status, ""),
                )
                if part
            )
        )

    def _request(self, method: str, path: str, microversion: str | None, **kwargs: t.Any) -> Reply:
        with _speaking_clearly(f"{self.name} at {self.endpoint}"):
            response = self._adapter.request(
                # Told only the path, keystoneauth would copy and search the whole catalogue for each request.
                path if path == self.endpoint else f"{self.endpoint.rstrip('/')}{path}",
                method,
                microversion=microversion,
                raise_exc=False,
                # A user's clouds.yaml may keep answers for a while; a proof must be asked for anew.
                skip_cache=True,
                retriable_status_codes=list(_TRANSIENT),
                headers={"Accept": "application/json"},
                **kwargs,
            )
        try:
            body = response.json() if response.content else {}
        except ValueError:
            if response.status_code < 400:
                raise CloudError(
                    f"{self.name} at {self.endpoint} answered {method} {path} with something that is no JSON: is a proxy in the way?"
                ) from None
            body = {}
        return Reply(response.status_code, response.headers, body)


@d.dataclass(frozen=True)
class Session:
    """An authenticated connection to one region of one cloud."""

    placement: Api
    compute: Api
    network: Api | None
    region: str | None
    project: str | None
    allocators: tuple[str, ...]
    other_novas: tuple[str, ...]

    @property
    def cloud(self) -> Cloud:
        return Cloud(
            self.placement.endpoint,
            self.compute.endpoint,
            self.region,
            self.project,
            self.allocators,
            self.other_novas,
            self.placement.newest,
            self.compute.newest,
        )


def connect(options: t.Mapping[str, t.Any]) -> Session:
    """Authenticate with the connection options of a module and find both services.

    Raises InvalidInput for options that contradict each other and CloudError for everything that the cloud does not grant.
    """
    with _speaking_clearly("The identity service"):
        connection = openstack.connect(**_sdk_arguments(options))
        project = connection.session.get_project_id()
        catalogue = connection.session.auth.get_access(connection.session).service_catalog.catalog  # type: ignore[union-attr]
    placement = _api("Placement", connection, "placement", PLACEMENT_NEEDED)
    compute = _api("Nova", connection, "compute", COMPUTE_NEEDED)
    return Session(
        placement=placement,
        compute=compute,
        network=_network(connection),
        region=connection.config.get_region_name(),
        project=project,
        allocators=tuple(sorted({entry["type"] for entry in catalogue} & _OTHER_ALLOCATORS)),
        other_novas=other_novas(catalogue, compute.endpoint, connection.config.get_region_name()),
    )


def _api(name: str, connection: t.Any, service: str, needed: tuple[int, int]) -> Api:
    # The proxy is made at first use and without a lock: make it before any thread asks for it.
    with _speaking_clearly(name):
        adapter = getattr(connection, service)
    return Api(name, adapter, needed)


def _network(connection: t.Any) -> Api | None:
    """Return Neutron, without which nothing is known of ports, if the catalogue has one."""
    with _speaking_clearly("Neutron"):
        endpoint = connection.endpoint_for("network")
        if endpoint is None:
            return None
        # Version 2 is the only one there is, and catalogues name it or not.
        adapter = connection.config.get_session_client("network")
        adapter.endpoint_override = endpoint.rstrip("/").removesuffix("/v2.0")
        return Api("Neutron", adapter, None)


def other_novas(catalogue: t.Iterable[t.Mapping[str, t.Any]], compute: str, region: str | None) -> tuple[str, ...]:
    """Return the regions of the catalogue that have another Nova than that at `compute` and the same Placement as that one's region.

    region: the region that was asked for, which counts when `compute` is none of the catalogue's endpoints but one of the user's own.
    """
    urls: dict[str, dict[str, set[str]]] = {"compute": {}, "placement": {}}
    for service in catalogue:
        for endpoint in service["endpoints"] if service["type"] in urls else ():
            urls[service["type"]].setdefault(endpoint["region"], set()).add(endpoint["url"].rstrip("/"))
    here = {
        region
        for region, endpoints in urls["compute"].items()
        if any(compute.startswith(url) or url.startswith(compute) for url in endpoints)
    } or {region or ""}
    ours = {url for region in here for url in urls["placement"].get(region, ())}
    return tuple(sorted(other for other in set(urls["compute"]) - here if urls["placement"].get(other, set()) & ours))


def _sdk_arguments(options: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    named = {
        "auth_type": options["auth_type"],
        "auth": options["auth"],
        "region_name": options["region_name"],
        "interface": options["interface"],
        "verify": options["validate_certs"],
        "cacert": options["ca_cert"],
        "cert": options["client_cert"],
        "key": options["client_key"],
        "api_timeout": options["api_timeout"],
    }
    given = {key: value for key, value in named.items() if value is not None}
    cloud = options["cloud"]
    if not isinstance(cloud, dict):
        return {"cloud": cloud, **given}
    clash = sorted(set(given) - {"api_timeout"})
    if clash:
        raise InvalidInput(f"cloud is a whole configuration, so {', '.join(clash)} cannot be given beside it: put them into it.")
    return {**given, **cloud}


@contextlib.contextmanager
def _speaking_clearly(where: str) -> t.Iterator[None]:
    """Turn what keystoneauth and the SDK raise into one sentence that says where it happened and what to do."""
    try:
        yield
    except (ksa.ClientException, SDKException, OSError) as error:
        # What urllib3 adds after its pool's name repeats what was said before.
        said = " ".join(str(error).split()).partition(": HTTPConnectionPool")[0].rstrip(".")
        for kinds, what, advice in _meanings():
            if isinstance(error, kinds):
                raise CloudError(f"{where} {what}: {said}. {advice}") from error
        raise CloudError(f"{where} cannot be used: {said}.") from error


def _meanings() -> tuple[tuple[tuple[type[Exception], ...], str, str], ...]:
    """Return what the exceptions mean to an operator, the special ones before their bases."""
    return (
        ((ksa.Unauthorized,), "refused the credentials", "Check user, password and project."),
        ((ksa.Forbidden,), "refused these credentials", "Check the project and the user's roles in it."),
        ((ksa.SSLError,), "has a certificate that cannot be verified", "Set ca_cert to the CA that signed it."),
        ((ksa.ConnectTimeout,), "does not answer in time", "Check that the service runs, or raise api_timeout."),
        (
            (ksa.ConnectFailure, ksa.DiscoveryFailure),
            "cannot be reached",
            "Check that the service runs and that this machine can reach it.",
        ),
        ((ksa.CatalogException, ServiceDisabledException), "has no endpoint in the service catalogue", _CATALOGUE),
        (
            (ksa.MissingRequiredOptions, ksa.NoMatchingPlugin, ConfigException),
            "is not known from the connection options",
            "Set cloud (or OS_CLOUD) to a cloud of clouds.yaml, or give auth (or OS_AUTH_URL and its like).",
        ),
    )


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
