# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""The kinds about aggregates, traits and availability zones: one function for each.

Each function checks the whole snapshot and yields a finding for everything that is of its kind.
"""

from __future__ import annotations

import shlex
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.text import summarize_names
from ansible_collections.osops.placement.plugins.module_utils._models.verdict import (
    DRIFTED,
    Finding,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.mirror import (
    DISABLED_TRAIT,
    find_aggregate_mismatches,
    find_lacking_traits,
    find_status_mismatches,
    map_comparable_nodes,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.services import COMPUTE

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
        Aggregate,
        Server,
        Service,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.policy import Policy
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import (
        Answer,
        Mirror,
    )
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.index import (
        SnapshotIndex,
    )
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.mirror import (
        AggregateMismatch,
    )

_OPENSTACK = "openstack"
# Placement returns the generation with the aggregates from 1.19 on, and traits from 1.6 on.
_SET_AGGREGATES = ("--os-placement-api-version", "1.19", "resource", "provider", "aggregate", "set")
_TRAIT = f"{_OPENSTACK} --os-placement-api-version 1.6 resource provider trait"

# A trait that an operator gives to a host. All others are nova-compute's own, which removes them
# again from a host that does not support them.
_CUSTOM = "CUSTOM_"

# Statuses in which Nova can move a server while it runs.
_RUNNING = frozenset({"ACTIVE", "PAUSED"})


def aggregate_mismatch(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the host aggregates that do not have the same hosts in Nova and in Placement.

    Proof: Nova copies the hosts of an aggregate to Placement when one is added or removed, and only
    logs a failure (nova/compute/api.py, add_host_to_aggregate); nothing repeats the copy. Two
    readings, at the beginning and at the end, show the same difference about the only compute node
    of a host. The nodes of bare metal hosts are left out, and so is what is beyond Nova's hosts in
    an aggregate that a sharing provider shares with.

    Needs: All soundness checks, and the cell of the host.

    Change: None. `nova-manage placement sync_aggregates` adds what is missing in Placement, and
    never removes anything: for that the finding has a command for each host. Placement refuses it
    if anything of the provider has changed since.
    """
    both = _get_both_readings(index)
    if both is None:
        return
    first, again = both
    again_by_uuid = find_aggregate_mismatches(index, again)
    aggregates = _map_aggregates(again)
    before = find_aggregate_mismatches(index, first)
    repeated: dict[str, AggregateMismatch] = {}
    for uuid, mismatch in before.items():
        if uuid in again_by_uuid:
            same = mismatch.keep_common(again_by_uuid[uuid])
            if same:
                repeated[uuid] = same
    extra_of = _map_extra_aggregates(repeated)
    can_sync = _can_synchronize(index, again)
    for uuid, mismatch in sorted(repeated.items()):
        commands = []
        if mismatch.missing and can_sync:
            commands.append(shlex.join(("nova-manage", "placement", "sync_aggregates")))
        to_set = set(mismatch.extra)
        if not can_sync:
            to_set |= mismatch.missing
        unset = 0
        for node in sorted(to_set):
            added = uuid if node in mismatch.missing else ""
            command = _build_aggregate_command(again, node, extra_of.get(node, ()), added)
            if command:
                commands.append(command)
            else:
                unset += 1
        reason = _describe_aggregate_mismatch(index, aggregates[uuid], mismatch)
        if unset:
            reason += f" The commands leave out {unset} of the hosts: detect again after them."
        yield Finding(
            "aggregate_mismatch",
            DRIFTED,
            uuid,
            reason,
            providers=tuple(sorted(mismatch.missing | mismatch.extra)),
            evidence=(first.members[uuid], again.members[uuid]),
            commands=tuple(commands),
        )


def trait_mismatch(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the hosts whose traits are not what their aggregate or their service says.

    Proof: Two readings, at the beginning and at the end, show it. Either a host aggregate requires
    a trait (`trait:NAME=required` in its metadata) that one of its hosts lacks. Or the provider of
    a host has the trait `COMPUTE_STATUS_DISABLED` and the compute service is enabled, or the
    reverse, while the service is up; nova-compute sets this trait itself, when it starts too.

    Needs: All soundness checks, and the cell of the host.

    Change: None. Set the traits of the provider by the command of the finding. If nova-compute
    undoes it, look into its log.
    """
    both = _get_both_readings(index)
    if both is None:
        return
    yield from _find_lacking_traits(index, *both)
    yield from _find_wrong_statuses(index, *both)


def zone_mismatch(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
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


def _get_both_readings(index: SnapshotIndex) -> tuple[Mirror, Mirror] | None:
    """Return the groups of hosts as they were read at the beginning and at the end.

    None where nothing may be concluded from them.
    """
    first, again = index.snapshot.mirror, index.snapshot.mirror_again
    # In the wrong region, no aggregate of Nova would be one of Placement.
    if first is None or again is None or index.failed_checks:
        return None
    return first, again


def _map_aggregates(mirror: Mirror) -> dict[str, Aggregate]:
    return {aggregate.uuid: aggregate for aggregate in mirror.aggregates}


def _map_extra_aggregates(mismatches: Mapping[str, AggregateMismatch]) -> dict[str, set[str]]:
    """Return by the uuid of a compute node all aggregates that it must be taken out of."""
    by_node: dict[str, set[str]] = {}
    for uuid, mismatch in mismatches.items():
        for node in mismatch.extra:
            by_node.setdefault(node, set()).add(uuid)
    return by_node


def _can_synchronize(index: SnapshotIndex, mirror: Mirror) -> bool:
    """Return whether Nova's own command works here.

    It ends at the first host with several compute nodes (nova/cmd/manage.py, sync_aggregates).
    """
    for aggregate in mirror.aggregates:
        if any(len(index.list_nodes_at(host)) > 1 for host in aggregate.hosts):
            return False
    return True


def _build_aggregate_command(
    mirror: Mirror, node: str, removed: Collection[str], added: str
) -> str:
    """Return the command that sets the aggregates of a provider; '' where they were not read.

    Placement refuses it once anything else of the provider has changed.
    """
    answer = mirror.provider_aggregates.get(node)
    if answer is None or answer.value is None:
        return ""
    kept = set(answer.value.aggregates) - set(removed)
    if added:
        kept.add(added)
    words = [_OPENSTACK, *_SET_AGGREGATES, "--generation", str(answer.value.generation)]
    for aggregate in sorted(kept):
        words += ["--aggregate", aggregate]
    return shlex.join([*words, node])


def _describe_aggregate_mismatch(
    index: SnapshotIndex, aggregate: Aggregate, mismatch: AggregateMismatch
) -> str:
    name = _describe_aggregate(aggregate)
    sentences = []
    if mismatch.missing:
        sentences.append(
            f"{_list_hosts(index, mismatch.missing)} in {name} in Nova, but not in Placement, so "
            "the scheduler does not find capacity there for servers that need this aggregate."
        )
    if mismatch.extra:
        sentences.append(
            f"{_list_hosts(index, mismatch.extra)} in {name} in Placement, but not in Nova, so "
            "Placement still offers capacity there to servers that need this aggregate, and keeps "
            "it from others if the aggregate is isolated."
        )
    return " ".join(sentences)


def _list_hosts(index: SnapshotIndex, nodes: Iterable[str]) -> str:
    """Return hosts as the subject of a sentence with its verb, such as `Host compute-1 is`."""
    hosts = sorted(index.nodes[node].host for node in nodes)
    if len(hosts) == 1:
        return f"Host {hosts[0]} is"
    return f"{len(hosts)} hosts ({summarize_names(hosts)}) are"


def _describe_aggregate(aggregate: Aggregate) -> str:
    text = f"host aggregate {aggregate.name} ({aggregate.uuid})"
    if aggregate.zone:
        text += f" of availability zone {aggregate.zone}"
    return text


def _find_lacking_traits(index: SnapshotIndex, first: Mirror, again: Mirror) -> Iterator[Finding]:
    """Yield a finding for each host aggregate whose hosts lack a trait that it requires."""
    lacking_again = find_lacking_traits(index, again)
    aggregates = _map_aggregates(again)
    for uuid, traits in sorted(find_lacking_traits(index, first).items()):
        sentences: list[str] = []
        commands: list[str] = []
        providers: set[str] = set()
        evidence: list[Answer[t.Any]] = []
        for trait, nodes in sorted(traits.items()):
            same = nodes & lacking_again.get(uuid, {}).get(trait, frozenset())
            if not same:
                continue
            sentences.append(_describe_lacking_trait(index, aggregates[uuid], trait, same))
            providers |= same
            evidence.append(again.lacking[uuid][trait])
            if trait.startswith(_CUSTOM):
                commands += [_build_trait_command(trait, node) for node in sorted(same)]
        if not sentences:
            continue
        yield Finding(
            "trait_mismatch",
            DRIFTED,
            uuid,
            " ".join(sentences),
            providers=tuple(sorted(providers)),
            evidence=tuple(evidence),
            commands=tuple(commands),
        )


def _describe_lacking_trait(
    index: SnapshotIndex, aggregate: Aggregate, trait: str, nodes: Collection[str]
) -> str:
    sentence = (
        f"{_list_hosts(index, nodes)} in {_describe_aggregate(aggregate)}, which requires the "
        f"trait {trait}, but without that trait in Placement, so the scheduler does not find "
        "capacity there for servers that require it."
    )
    if not trait.startswith(_CUSTOM):
        sentence += (
            f" {COMPUTE} reports this trait itself: find out why it does not, or remove the host "
            "from the aggregate."
        )
    return sentence


def _build_trait_command(trait: str, node: str, present: bool = True) -> str:
    """Return the command that adds a trait to a provider, or removes it.

    The client can only set all traits, so the command reads the others first, and sets none if that
    fails. The names of traits have no characters that mean anything to a shell.
    """
    provider = shlex.quote(node)
    reading = f"{_TRAIT} list -f value -c name {provider}"
    added = f" --trait {trait}"
    if not present:
        reading += f" | grep -vx {trait}"
        added = ""
    setting = f"{_TRAIT} set $(echo \"$traits\" | sed 's/^/--trait /'){added} {provider}"
    return f"traits=$({reading}) && {setting}"


def _find_wrong_statuses(index: SnapshotIndex, first: Mirror, again: Mirror) -> Iterator[Finding]:
    """Yield a finding for each host whose provider shows another status than its service has."""
    statuses_again = find_status_mismatches(index, again)
    for node, service in sorted(find_status_mismatches(index, first).items()):
        if node not in statuses_again:
            continue
        yield Finding(
            "trait_mismatch",
            DRIFTED,
            node,
            _describe_wrong_status(service),
            service=service,
            providers=(node,),
            evidence=(index.snapshot.services_after, again.disabled),
            # The trait itself, and not the status: to switch that would let servers in for a
            # moment, and nova-compute compares with its own memory of the traits
            # (nova/scheduler/client/report.py, set_traits_for_provider).
            commands=(_build_trait_command(DISABLED_TRAIT, node, service.status == "disabled"),),
        )


def _describe_wrong_status(service: Service) -> str:
    if service.status == "disabled":
        return (
            f"The {COMPUTE} of {service.host} is disabled, but its provider does not have the "
            f"trait {DISABLED_TRAIT}, so Placement still offers its capacity and the scheduler "
            f"has to sort the host out. {COMPUTE} sets the trait every few minutes: if it does "
            "not, look into its log and restart it."
        )
    return (
        f"The {COMPUTE} of {service.host} is enabled, but its provider still has the trait "
        f"{DISABLED_TRAIT}, so no server is scheduled there. {COMPUTE} removes the trait every few "
        "minutes: if it does not, look into its log and restart it."
    )


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
        named = []
        for aggregate in sorted(aggregates, key=_get_zone_key):
            named.append(f"zone {aggregate.zone} by aggregate {aggregate.name} ({aggregate.id})")
        yield Finding(
            "zone_mismatch",
            DRIFTED,
            host,
            f"Host {host} is in {len(zones)} availability zones: {', '.join(named)}. Nova takes "
            "any one of them for the zone of its servers. Remove it from the aggregates of all "
            "zones but one (openstack aggregate remove host AGGREGATE HOST).",
            providers=(nodes[host],),
        )


def _get_zone_key(aggregate: Aggregate) -> tuple[str, str]:
    return (aggregate.zone or "", aggregate.uuid)


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
        yield Finding(
            "zone_mismatch",
            DRIFTED,
            uuid,
            f"Server {uuid} is bound to availability zone {server.pinned_zone}, but its host "
            f"{server.host} is in zone {zone}. Nova moves it only to hosts of zone "
            f"{server.pinned_zone}, and fails if these have no room: move it there while it can.",
            server=server,
            evidence=(evidence.shape, index.snapshot.services_after),
            commands=(_build_move_command(server),),
        )


def _map_zones(index: SnapshotIndex) -> dict[str, str]:
    """Return the zone of each host that both listings of the services show in the same one zone."""
    zones: list[dict[str, str]] = []
    for answer in (index.snapshot.services, index.snapshot.services_after):
        by_host = {}
        for service in answer.value or ():
            # Nova names several zones of one host with commas between them.
            if service.binary == COMPUTE and service.zone and "," not in service.zone:
                by_host[service.host] = service.zone
        zones.append(by_host)
    before, after = zones
    return {host: zone for host, zone in after.items() if before.get(host) == zone}


def _build_move_command(server: Server) -> str:
    words = [_OPENSTACK, "server", "migrate"]
    if server.status in _RUNNING:
        words.append("--live-migration")
    return shlex.join([*words, server.uuid])
