# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host is in two availability zones, or a server is not in the zone that it is bound to."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ..._common.errors import Reason
from ..facts.groups import map_comparable_nodes
from ..facts.index import SnapshotIndex
from ..facts.services import COMPUTE
from ..models.finding import Finding, report
from ..models.kind import CONDITION, REPORT, define_kind
from ..models.nova import Aggregate, Server
from ..options.policy import Policy

KIND = define_kind(__name__, __doc__, CONDITION, REPORT)

# Statuses in which Nova can move a server while it runs.
_RUNNING = frozenset({"ACTIVE", "PAUSED"})


def check(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the hosts in two availability zones, and the servers outside of their zone.

    Proof: Nova refuses to add a host to a second zone, and since 2024 to move a host with servers
    to another zone; a repair of the database or an older Nova could do both. The metadata of the
    host aggregates of a host names two zones. Or a server that was read directly is bound to a zone
    (`pinned_availability_zone`), has no task, and is on a host that two listings of the services
    show in another zone.

    Needs: All soundness checks, and the cell of the host.

    Change: None. Remove the host from the aggregates of the wrong zone, or move the server.
    """
    if index.failed_checks:
        return
    yield from _find_hosts_in_two_zones(index)
    yield from _find_servers_outside_their_zone(index)


def _find_hosts_in_two_zones(index: SnapshotIndex) -> Iterator[Finding]:
    """Yield a finding for each host whose aggregates name more than one zone."""
    by_host: dict[str, list[Aggregate]] = {}
    for aggregate in index.snapshot.aggregates:
        for host in aggregate.hosts:
            if aggregate.zone:
                by_host.setdefault(host, []).append(aggregate)
    nodes = map_comparable_nodes(index, by_host=True)
    for host, aggregates in sorted(by_host.items()):
        zones = {aggregate.zone for aggregate in aggregates}
        if host not in nodes or len(zones) < 2:
            continue
        named = [
            f"zone {aggregate.zone} by aggregate {aggregate.name} ({aggregate.id})"
            for aggregate in sorted(aggregates, key=lambda one: (one.zone or "", one.uuid))
        ]
        reason = Reason(
            "host_in_two_zones",
            f"Host {host} is in {len(zones)} availability zones: {', '.join(named)}. Nova takes "
            "any one of them for the zone of its servers. Remove it from the aggregates of all "
            "zones but one (openstack aggregate remove host AGGREGATE HOST).",
        )
        yield report(KIND, host, reason, providers=(nodes[host],))


def _find_servers_outside_their_zone(index: SnapshotIndex) -> Iterator[Finding]:
    """Yield a finding for each server, of those read in full, that is not in its zone."""
    zones = _map_zones(index)
    for uuid, evidence in sorted(index.snapshot.evidence.items()):
        server = evidence.shape.value
        if server is None or not server.pinned_zone or not server.host or server.task_state:
            continue
        zone = zones.get(server.host)
        if zone is None or zone == server.pinned_zone:
            continue
        reason = Reason(
            "server_outside_its_zone",
            f"Server {uuid} is bound to availability zone {server.pinned_zone}, but its host "
            f"{server.host} is in zone {zone}. Nova moves it only to hosts of zone "
            f"{server.pinned_zone}, and fails if these have no room: move it there while it can.",
        )
        answers, commands = (evidence.shape, index.snapshot.services_after), _build_move(server)
        yield report(KIND, uuid, reason, *answers, server=server, commands=commands)


def _map_zones(index: SnapshotIndex) -> dict[str, str]:
    """Return the zone of each host that both listings of the services show in the same one zone."""
    before, after = (
        {
            service.host: service.zone
            for service in answer.value or ()
            # Nova names several zones of one host with commas between them.
            if service.binary == COMPUTE and service.zone and "," not in service.zone
        }
        for answer in (index.snapshot.services, index.snapshot.services_after)
    )
    return {host: zone for host, zone in after.items() if before.get(host) == zone}


def _build_move(server: Server) -> tuple[str]:
    """Return the command that moves a server."""
    live = ["--live-migration"] if server.status in _RUNNING else []
    return (shlex.join(["openstack", "server", "migrate", *live, server.uuid]),)
