# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The compute nodes of the cells that answer, while another cell is down.

The listing `os-hypervisors` is a 500 as a whole then. `os-services` still names every host and says
which cells do not answer, and the servers of a host can still be listed. Nova gives the root
provider of a compute node the name of that node, so a host and its root provider are matched by the
name of the host, or by the nodes on which its servers are. A host with neither a provider of its
name nor a server is left out: what holds its provider is undecided then.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..._common.clock import get_utc_now
from ..._common.parallel import map_parallel
from ..clients.nova import NovaReader
from ..facts.services import COMPUTE
from ..models.nova import Hypervisor, Service
from ..models.placement import Provider
from ..models.snapshot import LISTED_BY_SERVERS, Answer


def list_compute_nodes(
    nova: NovaReader,
    services: Answer[tuple[Service, ...]],
    providers: Mapping[str, Provider],
    with_servers: bool,
) -> Answer[tuple[Hypervisor, ...]]:
    """Return the compute nodes of the cells that answer.

    with_servers: whether each comes with the uuids of the servers of its host.
    """
    roots = {provider.name: provider for provider in providers.values() if provider.is_host}
    answering = []
    for service in services.value or ():
        # A service of a cell that does not answer has the status UNKNOWN.
        if service.binary == COMPUTE and service.status != "UNKNOWN":
            answering.append(service)
    nodes = {}
    for of_host in map_parallel(
        lambda service: _list_nodes_of_host(nova, service, roots, with_servers),
        answering,
        stage="compute nodes",
        unit="hosts",
    ):
        for node in of_host:
            nodes[node.uuid] = node
    return Answer(LISTED_BY_SERVERS, "", 200, get_utc_now(), tuple(nodes.values()))


def _list_nodes_of_host(
    nova: NovaReader, service: Service, roots: Mapping[str, Provider], with_servers: bool
) -> list[Hypervisor]:
    """Return the compute nodes of one host, by its name or by the nodes of its servers."""
    state, status = service.state or "", service.status
    root = roots.get(service.host)
    if root is not None:
        uuids = nova.list_server_uuids_on_host(service.host).value if with_servers else None
        return [Hypervisor(root.uuid, root.name, service.host, state, status, uuids)]
    servers = nova.list_servers_on_host(service.host)
    names = {server.node for server in servers if server.node}
    servers_of_host = tuple(server.uuid for server in servers)
    nodes = []
    for name in sorted(names & set(roots)):
        # Servers are those of the whole host, as in Nova's own listing.
        node = Hypervisor(roots[name].uuid, name, service.host, state, status, servers_of_host)
        nodes.append(node)
    return nodes
