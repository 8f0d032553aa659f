# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The inventory differs from those of all other hosts of the same aggregate."""

from __future__ import annotations

import collections
import dataclasses as d
import itertools
import shlex
import typing as t
from collections.abc import Iterator, Mapping, Sequence

from ..._common.errors import Reason
from ..facts.groups import map_comparable_nodes
from ..facts.index import SnapshotIndex
from ..models.finding import Finding, report
from ..models.kind import CONDITION, REPORT, define_kind
from ..models.placement import Inventory
from ..models.snapshot import INVENTORIES
from ..options.policy import Policy

KIND = define_kind(__name__, __doc__, CONDITION, REPORT, named_needs=(INVENTORIES,))

# So many other hosts of an aggregate must agree before one that differs is the odd one.
_MIN_NEIGHBORS = 3

Field = t.Literal["total", "reserved", "allocation_ratio"]

_FIELDS: tuple[Field, ...] = t.get_args(Field)

# What decides about a field of the inventory on the host (nova/conf/compute.py).
_RATIO_OPTIONS = {
    "VCPU": "cpu_allocation_ratio",
    "MEMORY_MB": "ram_allocation_ratio",
    "DISK_GB": "disk_allocation_ratio",
}

_RESERVED_OPTIONS = {
    "VCPU": "reserved_host_cpus",
    "MEMORY_MB": "reserved_host_memory_mb",
    "DISK_GB": "reserved_host_disk_mb",
}


@d.dataclass(frozen=True)
class _Oddity:
    """A field of an inventory that is not as on all neighbors of the host.

    neighbors: how many these are. aggregate: the name of the aggregate that they share.
    """

    cls: str
    field: Field
    value: float
    usual: float
    neighbors: int
    aggregate: str


def check(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the hosts whose inventory is not as on all other hosts of the same host aggregate.

    Proof: The total, the reserved amount or the allocation ratio of a resource class is the same on
    all other hosts of a host aggregate, at least three, and another on this one; and no other
    aggregate of at least four hosts has this value on all of them. Detection searches for it only
    if you name this kind in `orphan_cleanup_kinds`, because it needs the inventories of all hosts.

    Needs: All soundness checks, and the inventory of every host of the aggregate: neither a run
    over named hosts nor a shard reads all of them.

    Change: None. A ratio can be set in Placement, unless nova.conf of the host sets it; a reserved
    amount comes from nova.conf; a total comes from the host itself.
    """
    scope = index.snapshot.scope
    # Other runs read some inventories in passing, and a shard would read others than the whole.
    if index.failed_checks or "uneven_capacity" not in scope.kinds:
        return
    # Of named hosts alone, the odd one may be the usual one.
    if scope.is_narrow:
        return
    for node, oddities in sorted(_find_oddities(index).items()):
        reason = _describe_oddities(index.get_name(node), oddities)
        commands, hypervisors = _build_ratio_commands(node, oddities), index.snapshot.hypervisors
        yield report(KIND, node, reason, hypervisors, providers=(node,), commands=commands)


def _find_oddities(index: SnapshotIndex) -> dict[str, list[_Oddity]]:
    """Return by the uuid of a compute node what differs from all its neighbors."""
    nodes = map_comparable_nodes(index)
    oddities: dict[tuple[str, str, Field], _Oddity] = {}
    usual: set[tuple[str, str, Field]] = set()
    # The smallest aggregate says most about what its hosts have in common.
    for aggregate in sorted(index.snapshot.aggregates, key=lambda entry: len(entry.hosts)):
        members = [nodes[host] for host in sorted(aggregate.hosts) if host in nodes]
        inventories = _get_all_inventories(index, members)
        if len(inventories) <= _MIN_NEIGHBORS:
            continue
        for cls in sorted(set.intersection(*map(set, inventories.values()))):
            for field in _FIELDS:
                values = {uuid: getattr(inventories[uuid][cls], field) for uuid in inventories}
                odd = _find_odd_one(values)
                if odd is not None:
                    node, common = odd
                    what = values[node], common, len(values) - 1, aggregate.name
                    oddities.setdefault((node, cls, field), _Oddity(cls, field, *what))
                elif len(set(values.values())) == 1:
                    usual |= {(uuid, cls, field) for uuid in values}
    by_node: dict[str, list[_Oddity]] = {}
    for key, oddity in oddities.items():
        if key not in usual:
            by_node.setdefault(key[0], []).append(oddity)
    return by_node


def _get_all_inventories(
    index: SnapshotIndex, members: Sequence[str]
) -> dict[str, Mapping[str, Inventory]]:
    """Return the inventories of compute nodes; nothing if one of them was not read."""
    details = index.snapshot.details
    read = {uuid: details[uuid].inventories for uuid in members if uuid in details}
    return read if len(read) == len(set(members)) and all(read.values()) else {}


def _find_odd_one(values: Mapping[str, float]) -> tuple[str, float] | None:
    """Return the only key with another value than all others, and their value; None if none is."""
    counts = collections.Counter(values.values())
    if len(counts) != 2:
        return None
    (common, _count), (odd, count) = counts.most_common()
    if count != 1:
        return None
    node = next(key for key, value in values.items() if value == odd)
    return node, common


def _describe_oddities(name: str, oddities: Sequence[_Oddity]) -> Reason:
    parts = "; ".join(
        f"the {oddity.field} of {oddity.cls} is {oddity.value}, but {oddity.usual} on the "
        f"{oddity.neighbors} other hosts of aggregate {oddity.aggregate}"
        for oddity in oddities
    )
    advice = " ".join(dict.fromkeys(map(_advise, oddities)))
    return Reason("inventory_unlike_neighbors", f"On {name}, {parts}. {advice}")


def _advise(oddity: _Oddity) -> str:
    if oddity.field == "allocation_ratio":
        option = _RATIO_OPTIONS.get(oddity.cls)
        if option is None:
            return "Set the ratio in Placement if it is not on purpose."
        return (
            f"If it is not on purpose, correct {option} in nova.conf of the host and restart "
            "nova-compute; where that option is not set, set the ratio in Placement."
        )
    if oddity.field == "reserved" and oddity.cls in _RESERVED_OPTIONS:
        return (
            f"If it is not on purpose, correct {_RESERVED_OPTIONS[oddity.cls]} in nova.conf of the "
            "host and restart nova-compute."
        )
    return "Look at the hardware and the configuration of the host if it is not on purpose."


def _build_ratio_commands(node: str, oddities: Sequence[_Oddity]) -> tuple[str, ...]:
    """Return the command that gives a provider the allocation ratios of its neighbors."""
    odd = [oddity for oddity in oddities if oddity.field == "allocation_ratio"]
    if not odd:
        return ()
    ratios = (("--resource", f"{one.cls}:allocation_ratio={one.usual}") for one in odd)
    words = ("openstack", "resource", "provider", "inventory", "set", "--amend")
    return (shlex.join([*words, *itertools.chain.from_iterable(ratios), node]),)
