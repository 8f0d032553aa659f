"""The compute nodes of the cells that answer, while another cell is down."""

import dataclasses as d
import types
import typing as t

import pytest

from .......plugins.module_utils._core.models.nova import Hypervisor, Service
from .......plugins.module_utils._core.models.snapshot import LISTED_BY_SERVERS
from .......plugins.module_utils._core.reading.compute_nodes import list_nodes_of_answering_cells
from ...world import World, answer


class Site(World):
    """Four hosts.

    One of libvirt named like its node, one whose node has a domain, one of ironic with two nodes,
    and one that does not answer.
    """

    def __init__(self) -> None:
        super().__init__()
        self.plain = self.host("compute-1")
        self.domain = self.host("compute-2.example.org", service="compute-2")
        self.nodes_of_ironic = [
            self.host(name, service="ironic-1") for name in ("node-a", "node-b")
        ]
        self.dead = self.host("compute-9")
        self.services = [
            d.replace(service, status="UNKNOWN", state=None)
            if service.host == "compute-9"
            else service
            for service in self.services
        ]
        self.services.append(Service("nova-conductor", "controller", "enabled", "up"))

    def nodes_found(self, with_servers: bool = True) -> dict[str, Hypervisor]:
        nova = types.SimpleNamespace(
            list_servers_on_host=self._servers_at, list_server_uuids_on_host=self._server_uuids_at
        )
        services = answer("GET /os-services", 200, tuple(self.services))
        found = list_nodes_of_answering_cells(
            t.cast("t.Any", nova), services, self.providers, with_servers
        )
        assert (found.request, found.status) == (LISTED_BY_SERVERS, 200)
        return {node.uuid: node for node in found.value or ()}

    def _servers_at(self, host: str) -> t.Any:
        assert host != "compute-9"
        return tuple(server for server in self.servers.values() if server.host == host)

    def _server_uuids_at(self, host: str) -> t.Any:
        return answer(
            "GET /servers?host", 200, tuple(server.uuid for server in self._servers_at(host))
        )


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


def test_host_has_the_root_provider_of_its_name(site: Site) -> None:
    server = site.server(site.plain, site.plain)

    assert site.nodes_found()[site.plain].servers == (server,)
    assert site.nodes_found(with_servers=False)[site.plain].servers is None


def test_host_with_a_different_node_name_is_found_by_its_servers(site: Site) -> None:
    assert site.domain not in site.nodes_found()
    server = site.server(site.domain, site.domain)
    node = site.nodes_found()[site.domain]

    assert (node.host, node.name, node.servers) == ("compute-2", "compute-2.example.org", (server,))


def test_each_ironic_node_with_a_server_is_found(site: Site) -> None:
    here, there = site.nodes_of_ironic
    servers = {site.server(here, here), site.server(there, there)}
    found = site.nodes_found()

    assert {found[here].host, found[there].host} == {"ironic-1"}
    assert set(found[here].servers or ()) == servers


def test_silent_cell_has_no_nodes(site: Site) -> None:
    site.server(site.dead, site.dead)

    assert site.dead not in site.nodes_found()
