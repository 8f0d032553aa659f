# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A compute service that is down, and is disabled, forced down or without a compute node."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..._common.errors import Reason
from ..._common.times import format_duration, seconds_between
from ..facts.index import SnapshotIndex, list_hosts_in_scope
from ..facts.services import COMPUTE
from ..models.finding import Finding, report
from ..models.kind import CONDITION, REPORT, define_kind
from ..models.nova import Service
from ..options.policy import Policy

KIND = define_kind(__name__, __doc__, CONDITION, REPORT)


def check(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the compute services that are down, and disabled, forced down or without a node.

    Proof: The service is down and has not reported for at least `orphan_cleanup_stale_min_age`, and
    it is disabled, is forced down or has no compute node.

    Needs: The cell of the service, which shows its last report.

    Change: None. Decommission the host.
    """
    listing = index.snapshot.services
    # Without the listing of compute nodes, every service would seem to have none.
    if index.snapshot.hypervisors.value is None:
        return
    hosts_with_node = {node.host for node in index.nodes.values()}
    for service in _list_services_in_scope(index):
        # The other services have neither compute nodes nor providers to decommission.
        if service.binary != COMPUTE or service.state != "down":
            continue
        age = seconds_between(service.updated_at, listing.at)
        if age is None or age < policy.stale_min_age:
            continue
        state = _describe_stale_state(service, hosts_with_node)
        if not state:
            continue
        reason = Reason(
            "service_down_for_long",
            f"The {COMPUTE} of {service.host} {state} and has not reported for "
            f"{format_duration(age)}. If the host is gone, decommission it "
            "(osops.placement.decommission_host).",
        )
        yield report(KIND, service.host, reason, listing, service=service)


def _list_services_in_scope(index: SnapshotIndex) -> list[Service]:
    """Return the services of the hosts that are in scope and in the shard."""
    hosts = list_hosts_in_scope(index)
    services = index.snapshot.services.value or ()
    in_scope = (service for service in services if hosts is None or service.host in hosts)
    return [service for service in in_scope if index.is_in_shard(service.host)]


def _describe_stale_state(service: Service, hosts_with_node: Collection[str]) -> str:
    """Return why a service that is down will hardly come back; '' if nothing says so."""
    if service.host not in hosts_with_node:
        return "has no compute node"
    if service.forced_down:
        return "is forced down"
    if service.status == "disabled":
        return "is disabled"
    return ""
