# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The connection to the services of a cloud, and the tasks that need one."""

from __future__ import annotations

import contextlib
import dataclasses as d
import importlib.metadata
import os
import re
import sys
import typing as t
from itertools import chain

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ..._common.context import Context, Task
from ..._common.errors import CloudError, InvalidInput, hide_credentials
from ..._common.options import Spec
from ..._common.progress import PROGRESS
from ..models.snapshot import NOT_ASKED, Answer, Cloud
from ..options.connection import ConnectionOptions
from ..options.policy import ALLOCATORS
from .api import IRONIC_ERROR_KEYS, KEYSTONE_ERROR_KEYS, Api, ServiceClock
from .login import Login, check_cloud_files, translate_option_errors
from .login_errors import NOT_THE_API, OPENSTACKSDK_IMPORT_ERROR, has_cause, translate_sdk_errors

# `run` checks whether it is there; without it nothing else here is called.
with contextlib.suppress(ImportError):
    import keystoneauth1.exceptions as ksa
    import openstack
    from openstack.exceptions import SDKException, ServiceDisabledException

# Below these not even a reading is possible: generations of providers, and compute nodes with the
# uuids that providers have. What more the proofs need is in `facts.soundness`.
MINIMUM_PLACEMENT_MICROVERSION = (1, 20)
MINIMUM_COMPUTE_MICROVERSION = (2, 53)

# What the SDK raises for an answer that has another structure than a service's.
_MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)

# In seconds.
_TIME_TO_CONNECT = 10.0

# Our options that the SDK calls otherwise.
_SDK_NAMES = {
    "validate_certs": "verify",
    "ca_cert": "cacert",
    "client_cert": "cert",
    "client_key": "key",
}
# Options that are not secrets, by name, in `cloud` and `auth`.
_PUBLIC_OPTIONS = re.compile(
    r"cloud|auth_url|auth_type|username|user_id|project_(name|id)|\w*domain_(name|id)"
    r"|system_scope|region_name|interface|\w+_version"
)
_OPENSTACKSDK_URL = "https://docs.openstack.org/openstacksdk/"


@d.dataclass(frozen=True)
class Session:
    """An authenticated connection to one region of one cloud."""

    placement: Api
    compute: Api
    network: Api | None
    identity: Api | None
    region: str | None
    project: str | None
    allocators: tuple[str, ...]
    other_novas: tuple[str, ...]
    block_storage: Api | None = None
    # The names of the roles that the token has; none where that is not known.
    roles: frozenset[str] = frozenset()
    accelerator: Api | None = None
    bare_metal: Api | None = None

    def __post_init__(self) -> None:
        """Let Placement's own clock tell the time where an answer has no Date."""
        self.placement.clock = ServiceClock(self.placement)
        for api in filter(None, (self.compute, self.bare_metal)):
            api.clock = self.placement.clock

    def require_one_clock(self) -> None:
        """Read Placement's clock, and have all its answers be by that clock.

        Raises CloudError when its servers are known to have different times.
        """
        self.placement.needs_one_clock = True
        if self.placement.clock is not None:
            self.placement.clock.read()

    def query_other_novas(self) -> Answer[tuple[str, ...]]:
        """Return the regions with another Nova on this Placement, by all endpoints of Keystone.

        The catalogue of a token has neither disabled endpoints nor those of other projects. The
        answer has no `value` where these credentials may not list them.
        """
        if self.identity is None:
            return NOT_ASKED
        keystone = self.identity
        try:
            types = keystone.ask_pages(
                "/services", "services", lambda row: (row["id"], row["type"])
            )
            endpoints = keystone.ask_pages("/endpoints", "endpoints", _parse_endpoint)
        except CloudError:
            return d.replace(NOT_ASKED, request="GET /endpoints")
        if types.value is None or endpoints.value is None:
            return t.cast("Answer[t.Any]", types if types.value is None else endpoints)
        catalogue = [
            {"type": kind, "endpoints": [row for owner, row in endpoints.value if owner == service]}
            for service, kind in types.value
        ]
        urls = self.compute.endpoint, self.placement.endpoint
        others = find_other_novas(catalogue, *urls, self.region)
        return d.replace(t.cast("Answer[t.Any]", endpoints), value=others)

    @property
    def cloud(self) -> Cloud:
        """Which cloud this is, as a snapshot records it."""
        return Cloud(
            self.placement.endpoint,
            self.compute.endpoint,
            self.region,
            self.project,
            self.allocators,
            self.other_novas,
            self.placement.newest,
            self.compute.newest,
            self.placement.tells_time or not self.placement.needs_one_clock,
        )


class CloudContext(Context):
    """The context of a task that needs a cloud."""

    def connect(self) -> Session:
        """Connect to the cloud of the options. To be called after all options were checked."""
        return connect(self.options)


class CloudTask(Task):
    """A task that needs a cloud: it also has the options of the connection."""

    context = CloudContext

    def __init__(
        self, work: t.Callable[[CloudContext], dict[str, t.Any]], spec: Spec, **rules: t.Any
    ) -> None:
        super().__init__(work, {**ConnectionOptions.build_spec(), **spec}, **rules)

    def run(self, context: Context) -> dict[str, t.Any]:
        PROGRESS.keep_in(context.options.get("progress_path"))
        return super().run(context)

    def prepare(self, module: AnsibleModule) -> None:
        module.no_log_values -= _list_public_values(module.params)
        if OPENSTACKSDK_IMPORT_ERROR is not None:
            module.fail_json(
                msg=missing_required_lib("openstacksdk", url=_OPENSTACKSDK_URL),
                exception=OPENSTACKSDK_IMPORT_ERROR,
            )


def _list_public_values(params: t.Mapping[str, t.Any]) -> set[str]:
    """Return the values in the connection options `cloud` and `auth` that are not secrets.

    These options are hidden in logs. Hidden in results too, a project named `ops` would spoil every
    path with `ops` in it.
    """
    public, secret = set(), set()
    for option in ("cloud", "auth"):
        for name, value in _walk_option(option, params[option]):
            if _PUBLIC_OPTIONS.fullmatch(name):
                public.add(value)
            else:
                secret.add(value)
    # A value that is also a secret stays hidden.
    return public - secret


def _walk_option(name: str, option: t.Any) -> t.Iterator[tuple[str, str]]:
    """Yield each value in a nested option with its own name."""
    if isinstance(option, dict):
        for key, value in option.items():
            yield from _walk_option(str(key), value)
    elif option is not None:
        yield name, str(option)


def get_sdk_version() -> str:
    """Return the version of openstacksdk, empty where its package does not name it."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version("openstacksdk")
    return ""


def _check_sdk_version(version: str) -> None:
    # A copy without the metadata of its package may be new enough.
    if version and version.partition(".")[0] == "0":
        raise InvalidInput(
            f"{sys.executable} has openstacksdk {version}, and 1.0.0 or newer is needed: upgrade "
            "it, or set ansible_python_interpreter to a Python that has a newer one."
        )


def connect(options: t.Mapping[str, t.Any]) -> Session:
    """Authenticate with the connection options of a module and find the services.

    Raises InvalidInput for options that contradict each other and CloudError for everything that
    the cloud does not grant.
    """
    _check_sdk_version(get_sdk_version())
    _check_option_types(options)
    check_cloud_files(options)
    try:
        # The inner one comes first.
        with translate_sdk_errors("The configuration of the cloud"), translate_option_errors():
            connection = openstack.connect(**_build_sdk_arguments(options))
            _limit_time_to_connect(connection)
        login = Login(connection)
    except (TypeError, ValueError, AttributeError) as error:
        # Options of a type that the SDK does not expect, of ours or in clouds.yaml. The error may
        # have a value in it, which may be a password.
        raise InvalidInput(
            "The connection options have a value of the wrong type. "
            "Check cloud and auth, and the cloud in clouds.yaml."
        ) from error
    placement = _open_api(
        "Placement", connection, login, "placement", MINIMUM_PLACEMENT_MICROVERSION
    )
    compute = _open_api("Nova", connection, login, "compute", MINIMUM_COMPUTE_MICROVERSION)
    region = connection.config.get_region_name()
    return Session(
        placement=placement,
        compute=compute,
        network=_open_optional(connection, "Neutron", "network", "/v2[.]0"),
        region=region,
        identity=_open_optional(
            connection, "Keystone", "identity", "/v(2[.]0|3)", "/v3", KEYSTONE_ERROR_KEYS
        ),
        project=login.project,
        allocators=_find_allocators(login.catalog),
        other_novas=find_other_novas(login.catalog, compute.endpoint, placement.endpoint, region),
        # The endpoint in a catalogue has the version, and often the project too.
        block_storage=_open_if_usable(connection, "Cinder", "block-storage", ""),
        roles=_read_roles(connection.session),
        accelerator=_open_if_usable(connection, "Cyborg", "accelerator", "/v2"),
        bare_metal=_open_if_usable(
            connection, "Ironic", "baremetal", "/v1", "/v1", IRONIC_ERROR_KEYS
        ),
    )


def _find_allocators(catalogue: t.Iterable[t.Mapping[str, t.Any]]) -> tuple[str, ...]:
    """Return what other services in the catalogue allocate from Placement."""
    offered = {service["type"] for service in catalogue}
    return tuple(sorted({ALLOCATORS[name] for name in offered & ALLOCATORS.keys()}))


def _limit_time_to_connect(connection: t.Any) -> None:
    """Give up sooner on a connection than on an answer, which may take long in a large cloud.

    The TLS handshake is a part of it: a port without TLS may never answer.
    """
    session = connection.session
    if session.timeout:
        session.timeout = (min(session.timeout, _TIME_TO_CONNECT), session.timeout)


def _open_api(
    name: str, connection: t.Any, login: Login, service: str, minimum: tuple[int, int]
) -> Api:
    # The proxy is made at first use and without a lock: make it before any thread asks for it.
    try:
        with translate_sdk_errors(name):
            adapter = getattr(connection, service)
            endpoint = adapter.get_endpoint()
    except _MALFORMED as error:
        raise _build_answer_error(name, connection.endpoint_for(service)) from error
    except CloudError as error:
        if not has_cause(error, ksa.CatalogException, ServiceDisabledException):
            _check_answer(name, connection, service)
            raise
        endpoint = None
    if endpoint is None:
        config = connection.config
        region, interface = config.get_region_name(), config.get_interface(service)
        raise CloudError(
            login.explain_missing_endpoint(name, service, region, interface or "public")
        )
    try:
        return Api(name, adapter, minimum)
    except _MALFORMED as error:
        raise _build_answer_error(name, endpoint) from error


def _check_answer(name: str, connection: t.Any, service: str) -> None:
    """Raise CloudError if the endpoint of a service does not answer as that service does.

    The SDK says only that it found no version of the service.
    """
    with contextlib.suppress(ksa.ClientException, SDKException):
        endpoint = connection.endpoint_for(service)
        adapter = connection.config.get_session_client(service)
        adapter.endpoint_override = endpoint
        api = Api(name, adapter, None)
        reply = api.expect(api.get(api.endpoint, None), "for its versions", 200, 300)
        if not {"version", "versions"} & set(reply.body):
            raise _build_answer_error(name, api.endpoint)


def _build_answer_error(name: str, endpoint: str | None) -> CloudError:
    return CloudError(
        f"{name} at {endpoint} answered something that is not a list of versions. "
        f"Check its endpoint in the service catalogue. {NOT_THE_API}"
    )


def _open_optional(
    connection: t.Any, name: str, service: str, version: str, path: str = "", *error_keys: t.Any
) -> Api | None:
    """Return a service; None where the catalogue does not have it.

    version: how its endpoint may end; only one version exists, and catalogues may or may not
        contain it.
    path: what is put there instead.
    """
    with translate_sdk_errors(name):
        endpoint = connection.endpoint_for(service)
        if endpoint is None:
            return None
        adapter = connection.config.get_session_client(service)
        adapter.endpoint_override = f"{re.sub(f'{version}$', '', endpoint.rstrip('/'))}{path}"
        return Api(name, adapter, None, *error_keys)


def _open_if_usable(connection: t.Any, *service: t.Any) -> Api | None:
    """Return a service that only says more, so that nothing fails for want of it."""
    with contextlib.suppress(CloudError):
        return _open_optional(connection, *service)
    return None


def _read_roles(session: t.Any) -> frozenset[str]:
    """Return the names of the roles of the token; none where it is not a token of Keystone."""
    try:
        with translate_sdk_errors("Keystone"):
            return frozenset(session.auth.get_access(session).role_names)
    except (*_MALFORMED, CloudError):
        return frozenset()


def find_other_novas(
    catalogue: t.Iterable[t.Mapping[str, t.Any]], compute: str, placement: str, region: str | None
) -> tuple[str, ...]:
    """Return the regions of the catalogue whose Nova is another one on the same Placement.

    It is another Nova than that at `compute`; the same Placement is that of its region, or that at
    `placement`.

    region: the region that was asked for, which counts when `compute` is none of the catalogue's
    endpoints but one of the user's own.
    """
    services = list(catalogue)
    # Names such as `computev21` stand beside this one.
    novas = [entry for entry in services if entry["type"].startswith("compute")]
    compute_urls = _collect_urls(novas)
    own_regions = _find_own_regions(compute_urls, compute, region)
    placements = {
        name: set(map(_strip_version, urls))
        for name, urls in _collect_urls(
            entry for entry in services if entry["type"] == "placement"
        ).items()
    }
    own_placements = {_strip_version(placement)}.union(
        *(placements.get(name, ()) for name in own_regions)
    )
    others = {
        name
        for name in compute_urls.keys() - own_regions
        # A Nova without a Placement in its own region uses that of another one.
        if placements.get(name, own_placements) & own_placements
    }
    return tuple(sorted(others | _find_regions_with_second_nova(novas, compute, own_regions)))


def _find_regions_with_second_nova(
    novas: t.Sequence[t.Mapping[str, t.Any]], compute: str, own_regions: t.Collection[str]
) -> set[str]:
    """Return those of our regions in which a service beside ours has another address."""
    ours: set[str] = set()
    others: dict[str, set[str]] = {}
    for service in novas:
        urls = _collect_urls([service])
        if any(_is_same_endpoint(compute, url) for url in chain.from_iterable(urls.values())):
            ours |= set(map(_strip_version, chain.from_iterable(urls.values())))
            continue
        for name in urls.keys() & own_regions:
            others.setdefault(name, set()).update(map(_strip_version, urls[name]))
    # Without an endpoint of ours in the catalogue, a single service is most likely ours.
    return {name for name, urls in others.items() if urls - ours and (ours or len(urls) > 1)}


def _parse_endpoint(row: t.Any) -> tuple[str, dict[str, t.Any]]:
    """Return the service of an endpoint, and the endpoint as a catalogue has it."""
    return row["service_id"], {"region": row.get("region_id"), "url": str(row["url"])}


def _collect_urls(services: t.Iterable[t.Mapping[str, t.Any]]) -> dict[str, set[str]]:
    """Return the URLs of services, by region."""
    urls: dict[str, set[str]] = {}
    for endpoint in chain.from_iterable(service["endpoints"] for service in services):
        url = hide_credentials(endpoint["url"])
        urls.setdefault(endpoint["region"] or "", set()).add(url)
    return urls


def _find_own_regions(
    compute_urls: t.Mapping[str, set[str]], compute: str, region: str | None
) -> set[str]:
    """Return the regions of the catalogue that have the Nova at `compute`."""
    own_regions = {
        name
        for name, urls in compute_urls.items()
        if any(_is_same_endpoint(compute, url) for url in urls)
    }
    if own_regions:
        return own_regions
    if region:
        return {region}
    # With several regions, this Nova may be in any of them, so each counts as another Nova's.
    return set(compute_urls) if len(compute_urls) == 1 else set()


def _is_same_endpoint(endpoint: str, url: str) -> bool:
    """Return whether an endpoint is that of the catalogue.

    One of them may have a version or a project that the other lacks.
    """
    longer, shorter = sorted((endpoint, url), key=len, reverse=True)
    longer, shorter = f"{longer.rstrip('/')}/", f"{shorter.rstrip('/')}/"
    return longer.startswith(shorter) and _strip_version(endpoint) == _strip_version(url)


def _strip_version(url: str) -> str:
    """Return an endpoint without its version, and without the project that may follow it."""
    return re.sub(r"/v2(\.\d+)?(/[^/]+)?$", "", url.rstrip("/"))


def _build_sdk_arguments(options: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    named = {_SDK_NAMES.get(name, name): options[name] for name in ConnectionOptions.list_options()}
    cloud = named.pop("cloud")
    arguments = {key: value for key, value in named.items() if value is not None}
    if not isinstance(cloud, dict):
        return {"cloud": cloud, **arguments}
    # api_timeout has a default, so it is always there.
    conflicting = sorted(set(arguments) - {"api_timeout"})
    if conflicting:
        raise InvalidInput(
            f"cloud is a whole configuration, so {', '.join(conflicting)} cannot be set beside "
            "it: put them into it."
        )
    return {**arguments, **cloud}


def _check_option_types(options: t.Mapping[str, t.Any]) -> None:
    """Raise InvalidInput for a value that the SDK would refuse with an error of Python."""
    cloud = options["cloud"]
    if cloud is not None and not isinstance(cloud, str | dict):
        raise InvalidInput(
            "cloud must be the name of a cloud in clouds.yaml, or a whole configuration of a cloud "
            "as a dictionary."
        )
    _check_timeout(options["api_timeout"])
    for name in ("ca_cert", "client_cert", "client_key"):
        path = options[name]
        if path and not os.path.exists(path):
            raise InvalidInput(f"{name} is {path}, and there is no such file: correct the path.")
    auth = options["auth"]
    if isinstance(cloud, dict):
        auth = cloud.get("auth")
        if any(not isinstance(key, str) for key in cloud):
            raise InvalidInput("cloud has a key that is not text, such as a number: correct it.")
        _check_timeout(cloud.get("api_timeout"))
    if auth is not None and not isinstance(auth, dict):
        raise InvalidInput(
            "auth must be a dictionary with keys such as auth_url, username and password."
        )
    if auth and not isinstance(auth.get("auth_url", ""), str | None):
        raise InvalidInput("auth_url in auth must be text, such as https://HOST:5000/v3.")


def _check_timeout(value: t.Any) -> None:
    with contextlib.suppress(TypeError, ValueError):
        if value is None or float(value) > 0:
            return
    raise InvalidInput(
        f"api_timeout is {value!r}: give the seconds to wait for an answer, more than 0."
    )
