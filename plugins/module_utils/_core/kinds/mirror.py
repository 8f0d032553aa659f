# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kinds about aggregates and traits, which Nova mirrors to Placement: one function for each.

Each function checks the whole snapshot and yields a finding for everything that is of its kind.
"""

from __future__ import annotations

import shlex
import typing as t
from collections.abc import Collection, Iterable, Iterator, Mapping

from ..._common.text import summarize_names
from ..facts.index import SnapshotIndex
from ..facts.mirror import (
    DISABLED_TRAIT,
    AggregateMismatch,
    find_aggregate_mismatches,
    find_lacking_traits,
    find_status_mismatches,
)
from ..facts.services import COMPUTE
from ..models.nova import Aggregate, Service
from ..models.snapshot import Answer, Mirror
from ..models.verdict import DRIFTED, Finding
from ..options.policy import Policy

_OPENSTACK = "openstack"
# Placement returns the generation with the aggregates from 1.19 on, and traits from 1.6 on.
_SYNCHRONIZE = "nova-manage placement sync_aggregates"
_SET_AGGREGATES = ("--os-placement-api-version", "1.19", "resource", "provider", "aggregate", "set")
_TRAIT = f"{_OPENSTACK} --os-placement-api-version 1.6 resource provider trait"

# A trait that an operator gives to a host. All others are nova-compute's own, which removes them
# again from a host that does not support them.
_CUSTOM = "CUSTOM_"


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
    mismatches = _find_lasting_mismatches(index, first, again)
    aggregates = _map_aggregates(again)
    for uuid, mismatch in sorted(mismatches.items()):
        commands, left_out = _build_aggregate_commands(index, again, uuid, mismatches)
        reason = _describe_aggregate_mismatch(index, aggregates[uuid], mismatch)
        if left_out:
            reason += f" The commands leave out {left_out} of the hosts: detect again after them."
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
    undoes it, read its log.
    """
    both = _get_both_readings(index)
    if both is None:
        return
    yield from _find_lacking_traits(index, *both)
    yield from _find_wrong_statuses(index, *both)


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


def _find_lasting_mismatches(
    index: SnapshotIndex, first: Mirror, again: Mirror
) -> dict[str, AggregateMismatch]:
    """Return by the uuid of a host aggregate the mismatch that both readings show."""
    latest = find_aggregate_mismatches(index, again)
    lasting = {}
    for uuid, mismatch in find_aggregate_mismatches(index, first).items():
        if uuid not in latest:
            continue
        common = mismatch.keep_common(latest[uuid])
        if common:
            lasting[uuid] = common
    return lasting


def _build_aggregate_commands(
    index: SnapshotIndex,
    mirror: Mirror,
    aggregate: str,
    mismatches: Mapping[str, AggregateMismatch],
) -> tuple[list[str], int]:
    """Return the commands for one aggregate, and how many hosts they leave out."""
    mismatch = mismatches[aggregate]
    commands = []
    nodes = set(mismatch.extra)
    if mismatch.missing and _can_synchronize(index, mirror):
        commands.append(_SYNCHRONIZE)
    else:
        nodes |= mismatch.missing
    left_out = 0
    for node in sorted(nodes):
        # All wrong aggregates at once: the command for one would otherwise restore another.
        removed = {uuid for uuid, other in mismatches.items() if node in other.extra}
        added = aggregate if node in mismatch.missing else ""
        command = _build_aggregate_command(mirror, node, removed, added)
        if command:
            commands.append(command)
        else:
            left_out += 1
    return commands, left_out


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
            "not, read its log and restart it."
        )
    return (
        f"The {COMPUTE} of {service.host} is enabled, but its provider still has the trait "
        f"{DISABLED_TRAIT}, so no server is scheduled there. {COMPUTE} removes the trait every few "
        "minutes: if it does not, read its log and restart it."
    )
