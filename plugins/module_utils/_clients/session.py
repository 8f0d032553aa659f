# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""From connection options to the services that we speak with."""

from __future__ import annotations

import contextlib
import dataclasses as d
import re
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._clients.api import (
    Api,
    translate_sdk_errors,
)
from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._models.policy import ALLOCATORS
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Cloud

# Whether it is there, `_clients.api` has found out; without it nothing here is called.
with contextlib.suppress(ImportError):
    import openstack

# Below these not even a reading is possible: generations of providers, and compute nodes with the uuids that providers have. What more
# the proofs need is in `_snapshot.capabilities`.
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
    try:
        with translate_sdk_errors("The identity service"):
            connection = openstack.connect(**_build_sdk_arguments(options))
            project = connection.session.get_project_id()
            catalogue = _read_catalog(connection)
    except (TypeError, ValueError, AttributeError) as error:
        # Options of a type that the SDK does not expect, of ours or in clouds.yaml.
        raise InvalidInput(
            f"The connection options cannot be used ({type(error).__name__}: {error}). Check cloud, auth and the clouds.yaml."
        ) from error
    placement = _open_api("Placement", connection, "placement", MINIMUM_PLACEMENT_MICROVERSION)
    compute = _open_api("Nova", connection, "compute", MINIMUM_COMPUTE_MICROVERSION)
    return Session(
        placement=placement,
        compute=compute,
        network=_open_network(connection),
        region=connection.config.get_region_name(),
        project=project,
        allocators=tuple(
            sorted(
                {ALLOCATORS[entry["type"]] for entry in catalogue if entry["type"] in ALLOCATORS}
            )
        ),
        other_novas=find_other_novas(
            catalogue, compute.endpoint, placement.endpoint, connection.config.get_region_name()
        ),
    )


def _read_catalog(connection: t.Any) -> list[dict[str, t.Any]]:
    plugin = connection.session.auth
    if not hasattr(plugin, "get_access"):
        raise InvalidInput(
            f"auth_type {connection.config.config['auth_type']} does not ask Keystone, whose service catalogue says where Nova and Placement are: "
            "use one that does, such as password or v3applicationcredential."
        )
    return t.cast(
        "list[dict[str, t.Any]]", plugin.get_access(connection.session).service_catalog.catalog
    )


def _open_api(name: str, connection: t.Any, service: str, minimum: tuple[int, int]) -> Api:
    # The proxy is made at first use and without a lock: make it before any thread asks for it.
    with translate_sdk_errors(name):
        adapter = getattr(connection, service)
    return Api(name, adapter, minimum)


def _open_network(connection: t.Any) -> Api | None:
    """Return Neutron, without which nothing is known of ports, if the catalogue has one."""
    with translate_sdk_errors("Neutron"):
        endpoint = connection.endpoint_for("network")
        if endpoint is None:
            return None
        # Version 2 is the only one there is, and catalogues name it or not.
        adapter = connection.config.get_session_client("network")
        adapter.endpoint_override = endpoint.rstrip("/").removesuffix("/v2.0")
        return Api("Neutron", adapter, None)


def find_other_novas(
    catalogue: t.Iterable[t.Mapping[str, t.Any]], compute: str, placement: str, region: str | None
) -> tuple[str, ...]:
    """Return the regions of the catalogue that have another Nova than that at `compute`, and its Placement or that at `placement`.

    region: the region that was asked for, which counts when `compute` is none of the catalogue's endpoints but one of the user's own.
    """
    urls: dict[str, dict[str, set[str]]] = {"compute": {}, "placement": {}}
    for service in catalogue:
        for endpoint in service["endpoints"] if service["type"] in urls else ():
            urls[service["type"]].setdefault(endpoint["region"] or "", set()).add(endpoint["url"])
    regions = set(urls["compute"])
    here = {
        region
        for region in regions
        if any(_is_same_endpoint(compute, url) for url in urls["compute"][region])
    }
    if not here:
        here = {region} if region else regions if len(regions) == 1 else set()
    placements = {
        region: set(map(_strip_version, known)) for region, known in urls["placement"].items()
    }
    ours = {_strip_version(placement)}.union(*(placements.get(region, ()) for region in here))
    return tuple(sorted(other for other in regions - here if placements.get(other, set()) & ours))


def _is_same_endpoint(endpoint: str, url: str) -> bool:
    """Tell whether an endpoint is that of the catalogue, though one of them has a version or a project that the other lacks."""
    longer, shorter = (
        f"{address.rstrip('/')}/" for address in sorted((endpoint, url), key=len, reverse=True)
    )
    return longer.startswith(shorter) and _strip_version(endpoint) == _strip_version(url)


def _strip_version(url: str) -> str:
    """Return what stays the same of an endpoint, which may end with a version, and in old catalogues with a project after it."""
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
    given = {key: value for key, value in named.items() if value is not None}
    cloud = options["cloud"]
    if not isinstance(cloud, dict):
        return {"cloud": cloud, **given}
    clash = sorted(set(given) - {"api_timeout"})
    if clash:
        raise InvalidInput(
            f"cloud is a whole configuration, so {', '.join(clash)} cannot be given beside it: put them into it."
        )
    return {**given, **cloud}
