# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Some live servers, looked up directly: they show what these credentials may see."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from ..._common.errors import CloudError
from ..._common.parallel import map_parallel
from ..clients.nova import NovaReader
from ..models.nova import Hypervisor, Server
from ..models.snapshot import Answer

# How many servers are looked up to test the credentials, from how many hosts they are taken, and
# from how many servers of each: from more where too few of the first are of other projects.
_SAMPLES = 3
_SAMPLED_HOSTS = 3
_SAMPLED_FROM = (4, 20)


def read_samples(
    nova: NovaReader, hypervisors: Answer[tuple[Hypervisor, ...]], own_project: str | None
) -> tuple[tuple[Answer[Server], ...], tuple[str | None, ...]]:
    """Read some servers directly, those of other projects first, and return their projects too.

    They are taken from hosts that have servers. The newest servers of the cloud are taken only
    where no host shows one: they may be failed boots, which have no host. Raises CloudError when
    no listing can be read.
    """
    hosts = _choose_hosts_to_sample(hypervisors.value or ())
    placed: list[Server] = []
    for count in _SAMPLED_FROM:
        servers = _list_servers_to_sample(nova, hosts, count)
        placed = [server for server in servers if server.host]
        if sum(server.project != own_project for server in placed) >= _SAMPLES:
            break
    chosen = choose_samples(placed, own_project, _SAMPLES)
    looked_up = map_parallel(lambda server: nova.get_server(server.uuid), chosen)
    return tuple(looked_up), tuple(server.project for server in chosen)


def _choose_hosts_to_sample(nodes: Iterable[Hypervisor]) -> list[str]:
    """Return some hosts that have servers, far apart in the order of their names."""
    with_servers = set()
    for node in nodes:
        # Where the servers were not asked for, what nova-compute last wrote has to do.
        if node.servers or (node.servers is None and node.running_vms):
            with_servers.add(node.host)
    hosts = sorted(with_servers)
    step = max(1, len(hosts) // _SAMPLED_HOSTS)
    return hosts[::step][:_SAMPLED_HOSTS]


def _list_servers_to_sample(nova: NovaReader, hosts: Sequence[str], count: int) -> list[Server]:
    """Return the `count` newest servers of each host or, where these have none, of the cloud."""
    answers = map_parallel(lambda host: nova.list_newest_servers_on_host(host, count), hosts)
    servers: list[Server] = []
    for answer in answers:
        servers.extend(answer.value or ())
    if servers:
        return servers
    newest = nova.list_newest_servers(count)
    if newest.value:
        return list(newest.value)
    unread = [answer for answer in (*answers, newest) if answer.value is None]
    if unread:
        raise CloudError(
            f"Nova answered {unread[0].status} when asked for some servers to test the permissions "
            f"with ({unread[0].request})."
        )
    return []


def choose_samples(servers: Sequence[Server], own_project: str | None, count: int) -> list[Server]:
    """Return `count` of `servers`, of as many projects as possible, our own project last."""
    by_project: dict[str | None, list[Server]] = {}
    for server in servers:
        by_project.setdefault(server.project, []).append(server)
    own = by_project.pop(own_project, [])
    samples: list[Server] = []
    # One server of each project in turn.
    for turn in itertools.zip_longest(*by_project.values()):
        samples.extend(filter(None, turn))
    return [*samples, *own][:count]


def read_control(
    nova: NovaReader, samples: Sequence[Answer[Server]]
) -> Answer[tuple[Server, ...]] | None:
    """Look for a live server in the listing of deleted servers, where it must not be.

    A server that was deleted meanwhile proves nothing, so the next one is taken.
    """
    control = None
    for sample in samples:
        if not sample.value:
            continue
        control = nova.find_deleted_server(sample.value.uuid)
        if not control.value or nova.get_server(sample.value.uuid).status != 404:
            break
    return control
