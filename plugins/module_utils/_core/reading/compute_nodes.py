# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The compute services, which say whether every cell answers, and the compute nodes.

While a cell is down, the listing `os-hypervisors` is a 500 as a whole. `os-services` still names
every host and says which cells do not answer, and the servers of a host can still be listed. Nova
gives the root provider of a compute node the name of that node, so a host and its root provider are
matched by the name of the host, or by the nodes on which its servers are. A host with neither a
provider of its name nor a server is left out: what holds its provider is undecided then.
"""

from __future__ import annotations

import dataclasses as d
import functools
import time
from collections.abc import Collection, Mapping

from ..._common.clock import get_utc_now
from ..._common.errors import CloudError
from ..._common.parallel import map_parallel
from ..clients.nova import NovaReader
from ..facts.services import COMPUTE, has_every_cell_answered, have_same_compute_hosts
from ..models.nova import Hypervisor, Service
from ..models.placement import Provider
from ..models.snapshot import LISTED_BY_SERVERS, Answer

# The pause in seconds before a cell that did not answer is asked once more.
_RETRY_PAUSE = 1.0


def list_services(nova: NovaReader) -> Answer[tuple[Service, ...]]:
    """List the services. While a cell is down, a 500 of Nova is taken for an answer at once.

    Once something was read, a cell that did not answer counts: it was left out of what was read
    before.
    """
    answer = nova.list_services()
    nova.believe_errors(not has_every_cell_answered(answer))
    return answer


def list_services_with_retry(nova: NovaReader) -> Answer[tuple[Service, ...]]:
    """List the services before anything else is read.

    A cell that does not answer is asked once more before it counts as down.
    """
    answer = list_services(nova)
    if has_every_cell_answered(answer):
        return answer
    time.sleep(_RETRY_PAUSE)
    return list_services(nova)


def list_compute_nodes(
    nova: NovaReader,
    services: Answer[tuple[Service, ...]],
    providers: Mapping[str, Provider],
    with_servers: bool,
) -> Answer[tuple[Hypervisor, ...]]:
    """List the compute nodes of all cells or, while one is down, of those that answer.

    services: the compute services, listed before.
    with_servers: whether each comes with the uuids of the servers of its host.
    """
    roots = [uuid for uuid, provider in providers.items() if provider.is_host]
    listing = nova.list_hypervisors(with_servers, roots)
    if listing.value is not None or listing.status < 500:
        return listing
    # The cell may have gone down since the services were listed.
    latest = list_services(nova) if has_every_cell_answered(services) else services
    if latest.value is None or not have_same_compute_hosts(services, latest):
        # Workers that do not know the same cells: which hosts are left out is uncertain then.
        return listing
    if has_every_cell_answered(latest):
        # It is back, and if it was away while something else was read, the answers of others
        # will show it.
        return nova.list_hypervisors(with_servers, roots)
    return list_nodes_of_answering_cells(nova, latest, providers, with_servers)


def read_nodes(nova: NovaReader, uuids: Collection[str]) -> dict[str, Hypervisor] | None:
    """Return single compute nodes by uuid; None if Nova does not find one of them."""
    nodes = [answer.value for answer in nova.get_hypervisors(sorted(uuids))]
    return None if None in nodes else {node.uuid: node for node in nodes if node}


def add_servers(
    nova: NovaReader, hypervisors: Answer[tuple[Hypervisor, ...]], nodes: Collection[str]
) -> Answer[tuple[Hypervisor, ...]]:
    """Return the listing with the servers of `nodes`, asked for where that was not done yet.

    nodes: compute nodes by uuid.
    """
    listed = hypervisors.value or ()
    wanted = [node for node in listed if node.servers is None and node.uuid in nodes]
    if not wanted:
        return hypervisors
    ask = _list_servers_on_node
    if hypervisors.request == LISTED_BY_SERVERS:
        ask = _list_servers_at_host
    answers = map_parallel(
        functools.partial(ask, nova), wanted, nova.workers, stage="servers", unit="hosts"
    )
    completed = {
        node.uuid: d.replace(node, servers=servers)
        for node, servers in zip(wanted, answers, strict=True)
    }
    return d.replace(hypervisors, value=tuple(completed.get(node.uuid, node) for node in listed))


def _list_servers_on_node(nova: NovaReader, node: Hypervisor) -> tuple[str, ...] | None:
    try:
        return nova.list_hypervisor_servers(node.uuid)
    except CloudError:
        # Nova searches for a compute node in one cell after the other, and so does not find it
        # beyond one that is down.
        if has_every_cell_answered(nova.list_services()):
            raise
        return _list_servers_at_host(nova, node)


def _list_servers_at_host(nova: NovaReader, node: Hypervisor) -> tuple[str, ...] | None:
    return nova.list_server_uuids_on_host(node.host).value


def list_nodes_of_answering_cells(
    nova: NovaReader,
    services: Answer[tuple[Service, ...]],
    providers: Mapping[str, Provider],
    with_servers: bool,
) -> Answer[tuple[Hypervisor, ...]]:
    """Return the compute nodes of the cells that answer.

    with_servers: whether each comes with the uuids of the servers of its host.
    """
    roots = {provider.name: provider for provider in providers.values() if provider.is_host}
    computes = [service for service in services.value or () if service.binary == COMPUTE]
    nodes_of_hosts = map_parallel(
        lambda service: _list_nodes_of_host(nova, service, roots, with_servers),
        # A service of a cell that does not answer has the status UNKNOWN.
        [service for service in computes if service.status != "UNKNOWN"],
        stage="compute nodes",
        unit="hosts",
    )
    nodes = {node.uuid: node for of_host in nodes_of_hosts for node in of_host}
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
    # Servers are those of the whole host, as in Nova's own listing.
    uuids = tuple(server.uuid for server in servers)
    return [
        Hypervisor(roots[name].uuid, name, service.host, state, status, uuids)
        for name in sorted(names & set(roots))
    ]
