# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host aggregate does not have the same hosts in Nova and in Placement."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping

from ..._common.errors import Reason
from ..facts.groups import (
    OPENSTACK,
    AggregateMismatch,
    describe_aggregate,
    find_aggregate_mismatches,
    get_both_readings,
    list_hosts,
    map_aggregates,
)
from ..facts.index import SnapshotIndex
from ..models.finding import Finding, report
from ..models.kind import CONDITION, REPORT, define_kind
from ..models.nova import Aggregate
from ..models.snapshot import MEMBERS, Mirror
from ..options.policy import Policy

KIND = define_kind(__name__, __doc__, CONDITION, REPORT, needs=(MEMBERS,))

# Placement returns the generation with the aggregates from 1.19 on, and traits from 1.6 on.
_SYNCHRONIZE = "nova-manage placement sync_aggregates"

_SET_AGGREGATES = ("--os-placement-api-version", "1.19", "resource", "provider", "aggregate", "set")


def check(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
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
    both = get_both_readings(index)
    if both is None:
        return
    first, again = both
    mismatches = _find_lasting_mismatches(index, first, again)
    aggregates = map_aggregates(again)
    for uuid, mismatch in sorted(mismatches.items()):
        commands, left_out = _build_aggregate_commands(index, again, uuid, mismatches)
        reason = _describe_aggregate_mismatch(index, aggregates[uuid], mismatch)
        if left_out:
            reason = reason.extend(
                f"The commands leave out {left_out} of the hosts: detect again after them."
            )
        yield report(
            KIND,
            uuid,
            reason,
            *(first.members[uuid], again.members[uuid]),
            providers=tuple(sorted(mismatch.missing | mismatch.extra)),
            commands=commands,
        )


def _find_lasting_mismatches(
    index: SnapshotIndex, first: Mirror, again: Mirror
) -> dict[str, AggregateMismatch]:
    """Return by the uuid of a host aggregate the mismatch that both readings show."""
    latest = find_aggregate_mismatches(index, again)
    earlier = find_aggregate_mismatches(index, first)
    common = {uuid: earlier[uuid].keep_common(latest[uuid]) for uuid in earlier if uuid in latest}
    return {uuid: mismatch for uuid, mismatch in common.items() if mismatch}


def _build_aggregate_commands(
    index: SnapshotIndex,
    mirror: Mirror,
    aggregate: str,
    mismatches: Mapping[str, AggregateMismatch],
) -> tuple[tuple[str, ...], int]:
    """Return the commands for one aggregate, and how many hosts they leave out."""
    mismatch = mismatches[aggregate]
    can_synchronize = bool(mismatch.missing) and _can_synchronize(index, mirror)
    nodes = mismatch.extra if can_synchronize else mismatch.extra | mismatch.missing
    commands = [_SYNCHRONIZE] if can_synchronize else []
    for node in sorted(nodes):
        # All wrong aggregates at once: the command for one would otherwise restore another.
        removed = {uuid for uuid, other in mismatches.items() if node in other.extra}
        added = aggregate if node in mismatch.missing else ""
        commands.append(_build_aggregate_command(mirror, node, removed, added))
    return tuple(filter(None, commands)), commands.count("")


def _can_synchronize(index: SnapshotIndex, mirror: Mirror) -> bool:
    """Return whether Nova's own command works here.

    It ends at the first host with several compute nodes (nova/cmd/manage.py, sync_aggregates).
    """
    hosts = {host for aggregate in mirror.aggregates for host in aggregate.hosts}
    return all(len(index.list_nodes_at(host)) <= 1 for host in hosts)


def _build_aggregate_command(
    mirror: Mirror, node: str, removed: Collection[str], added: str
) -> str:
    """Return the command that sets the aggregates of a provider; '' where they were not read.

    Placement refuses it once anything else of the provider has changed.
    """
    answer = mirror.provider_aggregates.get(node)
    if answer is None or answer.value is None:
        return ""
    kept = {*answer.value.aggregates, added} - {*removed, ""}
    words = [OPENSTACK, *_SET_AGGREGATES, "--generation", str(answer.value.generation)]
    for aggregate in sorted(kept):
        words += ["--aggregate", aggregate]
    return shlex.join([*words, node])


def _describe_aggregate_mismatch(
    index: SnapshotIndex, aggregate: Aggregate, mismatch: AggregateMismatch
) -> Reason:
    name = describe_aggregate(aggregate)
    sentences = []
    if mismatch.missing:
        sentences.append(
            Reason(
                "hosts_missing_in_placement",
                f"{list_hosts(index, mismatch.missing)} in {name} in Nova, but not in Placement, "
                "so the scheduler does not find capacity there for servers that need this "
                "aggregate.",
            )
        )
    if mismatch.extra:
        sentences.append(
            Reason(
                "hosts_missing_in_nova",
                f"{list_hosts(index, mismatch.extra)} in {name} in Placement, but not in Nova, so "
                "Placement still offers capacity there to servers that need this aggregate, and "
                "keeps it from others if the aggregate is isolated.",
            )
        )
    return sentences[0].extend(*sentences[1:])
