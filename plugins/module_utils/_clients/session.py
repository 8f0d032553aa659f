# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Connect to the services of a cloud by the connection options of a module."""

from __future__ import annotations

import contextlib
import dataclasses as d
import importlib.metadata
import re
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._clients.api import Api
from ansible_collections.osops.placement.plugins.module_utils._clients.sdk_errors import (
    translate_sdk_errors,
)
from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._models.policy import ALLOCATORS
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Cloud

# `_clients.api` checks whether it is there; without it nothing here is called.
with contextlib.suppress(ImportError):
    import openstack

# Below these not even a reading is possible: generations of providers, and compute nodes with the
# uuids that providers have. What more the proofs need is in `_snapshot.microversions`.
MINIMUM_PLACEMENT_MICROVERSION = (1, 20)
MINIMUM_COMPUTE_MICROVERSION = (2, 53)


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
    # The id of the user of these credentials.
    user: str | None = None

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
        )


def get_sdk_version() -> str:
    """Return the version of openstacksdk, empty where its package does not name it."""
    try:
        return importlib.metadata.version("openstacksdk")
    except importlib.metadata.PackageNotFoundError:
        return ""


def connect(options: t.Mapping[str, t.Any]) -> Session:
    """Authenticate with the connection options of a module and find the services.

    Raises InvalidInput for options that contradict each other and CloudError for everything that
    the cloud does not grant.
    """
    try:
        with translate_sdk_errors("The identity service"):
            connection = openstack.connect(**_build_sdk_arguments(options))
            project = connection.session.get_project_id()
            user = connection.session.get_user_id()
            catalogue = _read_catalog(connection)
    except (TypeError, ValueError, AttributeError) as error:
        # Options of a type that the SDK does not expect, of ours or in clouds.yaml.
        raise InvalidInput(
            f"The connection options cannot be used ({type(error).__name__}: {error}). "
            "Check cloud, auth and clouds.yaml."
        ) from error
    placement = _open_api("Placement", connection, "placement", MINIMUM_PLACEMENT_MICROVERSION)
    compute = _open_api("Nova", connection, "compute", MINIMUM_COMPUTE_MICROVERSION)
    network = _open_network(connection)
    region = connection.config.get_region_name()
    return Session(
        placement=placement,
        compute=compute,
        network=network,
        region=region,
        project=project,
        allocators=_find_allocators(catalogue),
        other_novas=find_other_novas(catalogue, compute.endpoint, placement.endpoint, region),
        user=user,
    )


def _find_allocators(catalogue: t.Iterable[t.Mapping[str, t.Any]]) -> tuple[str, ...]:
    """Return what other services in the catalogue allocate from Placement."""
    allocators = set()
    for service in catalogue:
        if service["type"] in ALLOCATORS:
            allocators.add(ALLOCATORS[service["type"]])
    return tuple(sorted(allocators))


def _read_catalog(connection: t.Any) -> list[dict[str, t.Any]]:
    plugin = connection.session.auth
    if not hasattr(plugin, "get_access"):
        raise InvalidInput(
            f"auth_type {connection.config.config['auth_type']} does not ask Keystone, whose "
            "service catalogue says where Nova and Placement are: use one that does, such as "
            "password or v3applicationcredential."
        )
    access = plugin.get_access(connection.session)
    return t.cast("list[dict[str, t.Any]]", access.service_catalog.catalog)


def _open_api(name: str, connection: t.Any, service: str, minimum: tuple[int, int]) -> Api:
    # The proxy is made at first use and without a lock: make it before any thread asks for it.
    with translate_sdk_errors(name):
        adapter = getattr(connection, service)
    return Api(name, adapter, minimum)


def _open_network(connection: t.Any) -> Api | None:
    """Return Neutron if the catalogue has one; without it nothing is known of ports."""
    with translate_sdk_errors("Neutron"):
        endpoint = connection.endpoint_for("network")
        if endpoint is None:
            return None
        # Only version 2 exists, and catalogues may or may not contain it.
        adapter = connection.config.get_session_client("network")
        adapter.endpoint_override = endpoint.rstrip("/").removesuffix("/v2.0")
        return Api("Neutron", adapter, None)


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
    compute_urls = _collect_urls(services, "compute")
    own_regions = _find_own_regions(compute_urls, compute, region)
    placements = {}
    for name, urls in _collect_urls(services, "placement").items():
        placements[name] = set(map(_strip_version, urls))
    own_placements = {_strip_version(placement)}
    for name in own_regions:
        own_placements |= placements.get(name, set())
    others = []
    for name in compute_urls.keys() - own_regions:
        if placements.get(name, set()) & own_placements:
            others.append(name)
    return tuple(sorted(others))


def _collect_urls(
    services: t.Iterable[t.Mapping[str, t.Any]], service_type: str
) -> dict[str, set[str]]:
    """Return the URLs of the services of one type, by region."""
    urls: dict[str, set[str]] = {}
    for service in services:
        if service["type"] != service_type:
            continue
        for endpoint in service["endpoints"]:
            urls.setdefault(endpoint["region"] or "", set()).add(endpoint["url"])
    return urls


def _find_own_regions(
    compute_urls: t.Mapping[str, set[str]], compute: str, region: str | None
) -> set[str]:
    """Return the regions of the catalogue that have the Nova at `compute`."""
    own_regions = set()
    for name, urls in compute_urls.items():
        if any(_is_same_endpoint(compute, url) for url in urls):
            own_regions.add(name)
    if own_regions:
        return own_regions
    if region:
        return {region}
    # With several regions, this Nova may be in any of them, so each counts as another Nova's.
    if len(compute_urls) == 1:
        return set(compute_urls)
    return set()


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
    arguments = {key: value for key, value in named.items() if value is not None}
    cloud = options["cloud"]
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
