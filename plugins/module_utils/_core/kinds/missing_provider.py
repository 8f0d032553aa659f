# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A compute node has no resource provider, so nothing can be scheduled there."""

from __future__ import annotations

from collections.abc import Iterator

from ..._common.errors import Reason
from ..facts.index import SnapshotIndex
from ..facts.services import COMPUTE, strip_domain
from ..models.finding import Finding, report
from ..models.kind import CONDITION, REPORT, define_kind
from ..models.nova import Hypervisor
from ..models.placement import Provider
from ..models.snapshot import MISSING_PROVIDERS
from ..options.policy import Policy

KIND = define_kind(__name__, __doc__, CONDITION, REPORT, needs=(MISSING_PROVIDERS,))


def check(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the compute nodes without a provider.

    Proof: Nova lists the compute node, and Placement has no provider with its UUID, neither before
    nor after. Most compute nodes have one, so region and Placement are right. If a provider of
    another compute node has its name, Placement refuses it (409): two hypervisors have one name, or
    the host of a short name became one with a domain, or the provider kept or got the name of
    another host. A provider of that name without a compute node is a `name_conflict` instead.

    Needs: The cell of the compute node, which lists it.

    Change: None. The finding says what to rename or to decommission.
    """
    snapshot = index.snapshot
    again = snapshot.providers_again
    if again is None or index.failed_checks:
        return
    holders = {provider.name: provider for provider in again.values()}
    in_scope = index.covers if snapshot.scope.shard is None else index.is_in_shard
    for node in index.nodes.values():
        holder = holders.get(node.name)
        if node.uuid in index.providers or node.uuid in again or not in_scope(node.uuid):
            continue
        if holder is None or holder.uuid in index.nodes or not holder.is_host:
            reason = _explain_absence(index, node, holder)
            providers = (holder.uuid,) if holder else ()
            yield report(KIND, node.uuid, reason, snapshot.hypervisors, providers=providers)


def _explain_absence(index: SnapshotIndex, node: Hypervisor, holder: Provider | None) -> Reason:
    """Return why a compute node has no provider. holder: the provider that has its name."""
    lacks = (
        f"Compute node {node.name} of {node.host} has no provider {node.uuid} in Placement, so "
        "nothing can be scheduled there."
    )
    other = index.nodes.get(holder.uuid) if holder else None
    if holder is None or other is None:
        return Reason(
            "node_without_provider",
            f"{lacks} If it is still missing in the next run, restart {COMPUTE} on {node.host}, "
            "which creates it, and look for errors in its log.",
        )
    held = f"{lacks} Placement refuses it because provider {holder.uuid} has its name."
    if other.name != node.name:
        return Reason(
            "provider_has_name_of_other_node",
            f"{held} That is the provider of compute node {other.name} of {other.host}: rename it "
            f"(openstack resource provider set --name {other.name} {holder.uuid}), then restart "
            f"{COMPUTE} on {node.host}.",
        )
    is_one_short = ("." in node.host) != ("." in other.host)
    if is_one_short and strip_domain(node.host) == strip_domain(other.host):
        return Reason(
            "host_got_other_name",
            f"{held} That is the provider of {other.host}, which is most likely the same host: the "
            "option host in its nova.conf was changed. Set it back; or, if Nova lists no server on "
            f"{other.host}, decommission {other.host} (osops.placement.decommission_host) and "
            f"restart {COMPUTE} on {node.host}.",
        )
    return Reason(
        "hypervisors_have_one_name",
        f"{held} That is the provider of {other.host}, whose hypervisor has the same name. "
        f"Decommission {node.host} (osops.placement.decommission_host), give its system another "
        f"name, remove the file compute_id of its {COMPUTE}, and start that again.",
    )
