# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads Keystone's projects, Neutron, Cyborg, Cinder and Ironic, which a cloud may lack.

API reference: https://docs.openstack.org/api-ref/network/v2/#ports

API reference: https://docs.openstack.org/api-ref/accelerator/

API reference: https://docs.openstack.org/api-ref/block-storage/v3/

API reference: https://docs.openstack.org/api-ref/baremetal/#nodes-nodes

What they say decides only what is known about a server. Nothing that they answer, and no silence,
ends a run.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
import urllib.parse
from collections.abc import Collection, Mapping

from ..._common.clock import get_utc_now
from ..._common.errors import CloudError
from ..._common.text import make_printable
from ..models.other_services import (
    BLOCK_STORAGE_API,
    AcceleratorRequest,
    BareMetalNode,
    DeviceProfile,
    OtherService,
    PortGroup,
    Project,
    RootVolume,
    ServerPort,
)
from ..models.snapshot import NOT_ASKED, Answer
from .api import Api, Reply, format_microversion, parse_rows


class NotPermitted(CloudError):
    """These credentials may not read projects."""


class ProjectReader:
    """Reads projects from Keystone; None where the service catalogue does not have it."""

    def __init__(self, api: Api | None) -> None:
        self._api = api

    def get_project(self, uuid: str) -> Project | None:
        """Return a project by its uuid; None without one. Raises CloudError."""
        api = self._require_api()
        reply, project = api.read(
            f"/projects/{uuid}", None, lambda reply: _parse(reply.body["project"])
        )
        _expect(api, reply, f"for project {uuid}", 200, 404)
        return project

    def query_project(self, uuid: str) -> Answer[Project]:
        """Look up a project as evidence; any status is an answer.

        A 404 means that Keystone has no such project: to who may not see all projects it answers
        403, also for a project that does not exist (keystone/api/projects.py, ProjectResource.get).
        Raises CloudError without a Keystone.
        """
        path = f"/projects/{urllib.parse.quote(uuid, safe='')}"
        api = self._require_api()
        return api.ask(path, None, lambda reply: _parse(reply.body["project"]))

    def query_projects(self) -> Answer[tuple[Project, ...]]:
        """Return the projects that these credentials may list, as evidence.

        Raises CloudError without a Keystone.
        """
        api = self._require_api()
        return api.ask_pages("/projects", "projects", _parse)

    def query_domains(self) -> Answer[tuple[str, ...]]:
        """Return the uuids of the domains that these credentials may list, as evidence.

        Raises CloudError without a Keystone.
        """
        api = self._require_api()
        return api.ask_pages("/domains", "domains", lambda row: str(row["id"]))

    def find_projects(self, name: str) -> list[Project]:
        """Return the projects with exactly this name, in all domains. Raises CloudError."""
        # The database of Keystone may take no notice of upper case, and an id must never be taken
        # from a name that is only like the one that the user gave.
        return [project for project in self._list(name=name) if project.name == name]

    def list_names(self) -> list[str]:
        """Return the names of all projects."""
        return [project.name for project in self._list()]

    def _list(self, **filters: str) -> tuple[Project, ...]:
        api = self._require_api()
        reply, projects = api.read_pages("/projects", "projects", _parse, **filters)
        _expect(api, reply, "for its projects")
        return projects or ()

    def _require_api(self) -> Api:
        if self._api is None:
            raise CloudError("The service catalogue has no Keystone.")
        return self._api


def _expect(api: Api, reply: Reply, what: str, *statuses: int) -> None:
    if reply.status in (401, 403):
        raise NotPermitted(f"{api.name} at {api.endpoint} answered {reply.status}.")
    api.expect(reply, what, *statuses)


def _parse(row: t.Any) -> Project:
    return Project(str(row["id"]), str(row["name"]), str(row.get("domain_id") or ""))


# With this role, Neutron shows everything of all projects, unless its own policy says otherwise.
ADMIN = "admin"
# How many ports show whether those of other projects are among them.
SAMPLE = "100"


class NeutronReader:
    """Reads Neutron; in a cloud without Neutron, nothing is known about ports."""

    def __init__(
        self, api: Api | None, project: str | None = None, roles: Collection[str] = frozenset()
    ) -> None:
        """Read with the credentials for a project, which have these roles there."""
        self._api = OptionalApi(api)
        self._project = project
        self._sees_all = ADMIN in roles

    def list_ports(self, server: str) -> Answer[tuple[ServerPort, ...]]:
        """Return the ports of a server; no `value` where they are not known.

        That is so without Neutron, when Neutron does not answer, and where these credentials are
        not seen to see the ports of other projects. Nova's own listing does not show what is
        hidden: it asks Neutron with the token of the same user (nova/network/neutron.py,
        list_ports).
        """
        answer = self._api.ask_pages("/v2.0/ports", "ports", parse_port, device_id=server)
        if answer.value is not None and not self._sees_all_ports():
            return d.replace(answer, value=None)
        return answer

    def _sees_all_ports(self) -> bool:
        if not self._sees_all:
            # Asked again while it is not known: it costs a request for each candidate alone.
            sample = self._api.ask(
                "/v2.0/ports",
                lambda reply: shows_other_projects(reply, self._project),
                limit=SAMPLE,
            )
            self._sees_all = sample.value is True
        return self._sees_all


def shows_other_projects(reply: Reply, own: str | None) -> bool:
    """Return whether a port of another project than `own`, with its host, is among those listed."""
    owners = {
        row.get("project_id") or row.get("tenant_id")
        for row in reply.body["ports"]
        if "binding:host_id" in row
    }
    return any(owner and owner != own for owner in owners)


def parse_port(row: Mapping[str, t.Any]) -> ServerPort:
    """Return the port in a row, in either form of `resource_request`.

    Neutron without the extension port-resource-request-groups has one group, and its allocation is
    the uuid of a provider.
    """
    uuid = row["id"]
    request = row.get("resource_request") or {}
    profile = row.get("binding:profile") or {}
    same_subtree: tuple[str, ...] = ()
    if "request_groups" in request:
        groups = tuple(_parse_group(group, group["id"]) for group in request["request_groups"])
        same_subtree = tuple(request.get("same_subtree") or ())
    elif request:
        groups = (_parse_group(request, uuid),)
    else:
        groups = ()
    providers = _parse_providers(profile.get("allocation"))
    # Only administrators see the profile, and with it the request, which may be hidden on its own.
    is_hidden = "binding:profile" not in row or bool(providers and not groups)
    return ServerPort(
        uuid=uuid,
        vnic_type=row.get("binding:vnic_type"),
        groups=None if is_hidden else groups,
        providers=providers,
        same_subtree=same_subtree,
        device_profile=row.get("device_profile"),
        shows_request="resource_request" in row,
        device_owner=row.get("device_owner"),
        host=row.get("binding:host_id") or None,
        has_trunk=bool(row.get("trunk_details")),
    )


def _parse_group(group: Mapping[str, t.Any], uuid: str) -> PortGroup:
    resources = {str(cls): int(amount) for cls, amount in (group.get("resources") or {}).items()}
    return PortGroup(uuid, resources, frozenset(group.get("required") or ()))


def _parse_providers(allocation: t.Any) -> dict[str, str]:
    if not allocation:
        return {}
    if isinstance(allocation, str):
        return {"": allocation}
    return {str(group): str(provider) for group, provider in allocation.items()}


class CyborgReader:
    """Reads Cyborg; in a cloud without Cyborg, nothing is known about device profiles."""

    def __init__(self, api: Api | None) -> None:
        self._api = OptionalApi(api)

    def get_device_profile(self, name: str) -> Answer[DeviceProfile]:
        """Return the device profile with a name; no `value` unless there is exactly one.

        Nova refuses a profile of which there are several (nova/accelerator/cyborg.py).
        """
        path = "/v2/device_profiles"
        answer = self._api.ask(path, lambda reply: _parse_profile(reply, name), name=name)
        if answer == NOT_ASKED:
            return answer
        # The name says which of several profiles could not be read.
        return d.replace(answer, request=make_printable(f"GET {path}?name={name}"))

    def list_accelerator_requests(self, server: str) -> Answer[tuple[AcceleratorRequest, ...]]:
        """Return the accelerator requests of a server."""
        return self._api.ask(
            "/v2/accelerator_requests",
            lambda reply: _parse_requests(reply, server),
            instance=server,
        )


def _parse_profile(reply: Reply, name: str) -> DeviceProfile | None:
    # An older Cyborg ignores the filter.
    named = [row for row in reply.body["device_profiles"] if row["name"] == name]
    if len(named) != 1:
        return None
    return DeviceProfile(name, tuple(map(_parse_texts, named[0]["groups"])))


def _parse_texts(mapping: Mapping[t.Any, t.Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in mapping.items()}


def _parse_requests(reply: Reply, server: str) -> tuple[AcceleratorRequest, ...]:
    return tuple(
        AcceleratorRequest(
            uuid=row["uuid"],
            device_profile=row["device_profile_name"],
            group=int(row["device_profile_group_id"]),
            provider=row.get("device_rp_uuid"),
        )
        for row in reply.body["arqs"]
        # A proxy or an older Cyborg may ignore the filter.
        if row.get("instance_uuid", server) == server
    )


class VolumeReader:
    """Reads volumes; in a cloud without Cinder, nothing is known about them."""

    def __init__(self, api: Api | None) -> None:
        self._api = OptionalApi(api)

    def get_root_volume(self, uuid: str) -> Answer[RootVolume]:
        """Return the volume that a server boots from, with the properties of its image."""
        return self._api.ask(f"/volumes/{uuid}", _parse_root_volume)


def _parse_root_volume(reply: Reply) -> RootVolume | None:
    row = reply.body["volume"]
    # A volume that was made of no image has no such key, and neither has one of which Cinder hides
    # it: only a bootable volume can be booted from.
    properties = row.get("volume_image_metadata")
    if properties is None and row.get("bootable") != "true":
        return None
    return RootVolume(row["id"], _parse_texts(properties or {}))


def list_cinder_services(api: Api) -> tuple[OtherService, ...]:
    """Return all services of Cinder. Raises CloudError when it does not list them."""
    reply, services = api.read("/os-services", None, parse_rows("services", _parse_service))
    api.expect(reply, "for its services")
    return services or ()


def _parse_service(row: Mapping[str, t.Any]) -> OtherService:
    return OtherService(
        api=BLOCK_STORAGE_API,
        id=None,
        binary=row["binary"],
        host=row["host"],
        status=row["status"],
        state=row.get("state"),
    )


# Ironic's own default for the longest page.
_PAGE = 1000
# The first microversion that has each field of a listing; 1.1 stands for any Ironic.
# A listing of single fields cannot have `updated_at`, and one with all fields takes far longer.
_FIELDS = {
    **dict.fromkeys(("uuid", "provision_state", "maintenance", "power_state"), (1, 1)),
    **dict.fromkeys(("instance_uuid", "provision_updated_at", "last_error"), (1, 1)),
    "resource_class": (1, 21),
    "owner": (1, 50),
    "lessee": (1, 65),
}
# From 1.21 on a node has its resource class, and from 1.8 on single fields can be asked for.
_OLDEST = (1, 21)
_NEWEST = max(_FIELDS.values())


class BareMetalReader:
    """Reads nodes: each method sends one request, or reads one listing."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def list_nodes(self) -> Answer[tuple[BareMetalNode, ...]]:
        """Return all nodes that these credentials may see.

        The answer is that of the last request; its `value` is None where a request failed.
        Raises CloudError when Ironic does not say which microversions it has.
        """
        newest = self._read_newest_microversion()
        microversion = format_microversion(min(newest, _NEWEST))
        fields = [name for name, version in _FIELDS.items() if version <= newest]
        query = {"fields": ",".join(fields), "limit": str(_PAGE)}
        nodes: dict[str, BareMetalNode] = {}
        while True:
            parse_nodes = parse_rows("nodes", _parse_node)
            answer = self._api.ask("/nodes", microversion, parse_nodes, False, **query)
            if answer.value is None:
                return answer
            page = [node for node in answer.value if node.uuid not in nodes]
            nodes.update((node.uuid, node) for node in page)
            # An Ironic may have shorter pages than were asked for, so only an empty one is the end.
            if not page:
                return d.replace(answer, value=tuple(nodes.values()))
            query["marker"] = page[-1].uuid

    def get_node(self, uuid: str) -> Answer[BareMetalNode]:
        """Look up a node directly, also for the time when anything of it changed.

        A 404 means that Ironic does not have it, or does not show it to these credentials.
        """
        return self._api.ask(
            f"/nodes/{uuid}", format_microversion(_OLDEST), lambda reply: _parse_node(reply.body)
        )

    def _read_newest_microversion(self) -> tuple[int, int]:
        path = self._api.endpoint
        reply, newest = self._api.read(path, None, _parse_newest_microversion)
        self._api.expect(reply, "for its versions")
        return newest or _OLDEST


def _parse_newest_microversion(reply: Reply) -> tuple[int, int]:
    major, minor = reply.body["version"]["version"].split(".")
    return int(major), int(minor)


def _parse_node(row: Mapping[str, t.Any]) -> BareMetalNode:
    return BareMetalNode(
        uuid=row["uuid"],
        provision_state=row["provision_state"],
        maintenance=bool(row["maintenance"]),
        power_state=row["power_state"],
        instance=row["instance_uuid"],
        resource_class=row.get("resource_class"),
        owner=row.get("owner"),
        lessee=row.get("lessee"),
        provisioned_at=_strip_zone(row.get("provision_updated_at")),
        updated_at=_strip_zone(row.get("updated_at")),
        last_error=row.get("last_error"),
    )


def _strip_zone(moment: str | None) -> str | None:
    """Return a time in UTC without its zone, as Nova writes times."""
    return None if moment is None else moment.removesuffix("+00:00")


T = t.TypeVar("T")
# After so many requests in a row without an answer, a service is not asked again.
_MAX_FAILURES = 3


class OptionalApi:
    """A service that is asked for evidence, and whose absence is an answer too."""

    def __init__(self, api: Api | None) -> None:
        self._api = api
        self._failures = 0

    def ask(self, path: str, read: t.Callable[[Reply], T | None], **params: t.Any) -> Answer[T]:
        """GET `path` and return the reply as evidence: any status is an answer.

        The answer is `NOT_ASKED` for a service that the catalogue does not have, and has the status
        0 where the service did not answer, or not as this service does.
        """
        return self._try(path, lambda api: api.ask(path, None, read, **params))

    def ask_pages(
        self, path: str, key: str, parse: t.Callable[[t.Any], T], **params: t.Any
    ) -> Answer[tuple[T, ...]]:
        """GET all pages of a listing as `Api.read_pages` does, and return them as `ask` does."""
        return self._try(path, lambda api: api.ask_pages(path, key, parse, **params))

    def _try(self, path: str, ask: t.Callable[[Api], Answer[T]]) -> Answer[T]:
        if self._api is None:
            return NOT_ASKED
        if self._failures < _MAX_FAILURES:
            try:
                answer = ask(self._api)
            except CloudError:
                self._failures += 1
            else:
                self._failures = 0
                # Its errors decide nothing, so that another attempt only costs time.
                self._api.believes_errors = answer.status >= 500
                return answer
        return Answer(f"GET {path}", "", 0, get_utc_now())
