# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is to be judged."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Mapping

from ..._common.errors import InvalidInput
from ..._common.options import Dict, Names, Options, Text
from ..._common.text import normalize_uuid, require_uuid, show_value
from ..models.kinds import KINDS, collect_needs
from ..models.snapshot import EVERY_CONSUMER, HostGroups, Scope, Shard

MAX_SHARDS = 256

GROUP_OPTIONS = ("aggregates", "availability_zones", "cells")


class ShardText(Text):
    """A part of a whole cloud, as `2/8`."""

    def find_fault(self, value: t.Any) -> str:
        if _match_shard(value):
            return ""
        return (
            f"is {show_value(value)}, which is not a shard: write its number and how many shards "
            f"there are (at most {MAX_SHARDS}), such as 2/8, or leave it out to read the whole "
            "cloud."
        )


class CellHosts(Dict):
    """The names of hosts by the name of their cell."""

    def find_fault(self, value: t.Any) -> str:
        for cell, hosts in value.items():
            names = [cell, *hosts] if isinstance(hosts, list) and hosts else [None]
            if not all(isinstance(name, str) and name.strip() for name in names):
                return (
                    f"has for cell {show_value(cell)} what is not a list of names: put names in "
                    "quotes, as in {'cell1': ['compute-1']}, and leave out a cell without hosts."
                )
            spaced = [name for name in hosts if name != name.strip()]
            if spaced:
                return f"has {show_value(spaced[0])}: leave out the spaces around the name."
        return ""


class ScopeOptions(Options):
    hosts = Names()
    """
    Read only the allocations on these hosts, and the servers on them. If it is empty, all hosts are
    read.

    Each entry is the name or UUID of a hypervisor, the name of the host of a compute service, or
    the name or UUID of a provider whose compute node no longer exists. These are not hosts of an
    inventory.

    All consumers with allocations on these hosts are looked up directly, whether or not something
    seems wrong with them.
    """

    consumers = Names()
    """
    Read only these consumers, by UUID. The UUID of a server includes its migrations. If it is
    empty, all consumers are read.

    These consumers are looked up directly, whether or not something seems wrong with them.
    """

    projects = Names()
    """
    Read only the consumers of these projects, each by its name or UUID. The project of a server
    counts. If Nova has no such server, that of its allocation does. If it is empty, the consumers
    of all projects are read.

    Names are looked up in Keystone, which needs the permission to list projects. It is an error if
    there is no project of that name, or more than one in different domains.

    A UUID that neither Keystone nor Placement knows is an error too. If the credentials cannot read
    projects, a UUID is used unchecked, and a warning says so.
    """

    aggregates = Names()
    """
    Read only the hosts of these host aggregates, each by its name, UUID or id. If it is empty, the
    hosts of all aggregates and of none are read.

    Several aggregates add up. O(aggregates), O(availability_zones), O(cells) and O(hosts) narrow
    each other. A host must be in one of each that is not empty.

    Nova is asked once which hosts these are, before anything else is read. It is an error if an
    aggregate does not exist or has no hosts, and if no host is left.

    These hosts are read like the whole cloud, and only they. Consumers are looked up directly only
    if the listings do not show them to be in order.

    An allocation that a server of these hosts has on another host is found when that host is read.

    This option cannot be combined with O(consumers), O(shard) and O(mode=incremental).

    Since 2.0.0.
    """

    availability_zones = Names()
    """
    Read only the hosts in these availability zones, by name. Also the default zone has a name,
    V(nova) unless Nova is configured otherwise.

    While a cell does not answer, Nova does not say the zone of its hosts. Such a host is read only
    if an aggregate shows its zone, and a warning names the others.

    Otherwise it is like O(aggregates).

    Since 2.0.0.
    """

    cells = Names()
    """
    Read only the hosts of these cells, each by its key in O(cell_hosts).

    No API of Nova says which hosts a cell has, so O(cell_hosts) is required with it.

    Otherwise it is like O(aggregates).

    Since 2.0.0.
    """

    cell_hosts = CellHosts({})
    """
    The hosts of each cell, as lists of names by the name or UUID of the cell, as C(nova-manage
    cell_v2 list_hosts) lists them.

    It has an effect only with O(cells), and decides only what is read. A wrong host is still judged
    by what Nova says about it.

    A host in two cells is an error. A warning names the hosts of the named cells of which Nova
    lists no compute service.

    Since 2.0.0.
    """

    kinds = Names(choices=[kind.name for kind in KINDS])
    """
    Report only findings of these kinds. If it is empty, all kinds are reported. Protected and
    undecided consumers are always reported.

    Three kinds are searched for everywhere only if you name them here, because they take a request
    for each consumer or provider of the cloud. Otherwise, V(wrong_owner) is found only among
    consumers that are looked up directly and those for whose owner Placement has zeros,
    V(capacity_mismatch) only on the named O(hosts) and on the providers of other findings, and
    V(uneven_capacity) nowhere.

    For V(missing_project), the projects of all servers are read only if you name it here, and
    otherwise those of the consumers that are looked up directly. For V(stuck_server), servers in
    C(ERROR) are read only if you name it here, and for named O(hosts) and O(consumers).

    With V(wrong_amount), every server is compared by itself with what Nova would allocate for it.
    Otherwise only those are compared whose hosts report other sums than Placement, or have child
    providers in use.
    """

    mode = Text("full", choices=("full", "incremental"))
    """
    With V(full), Nova is asked for all servers of all hosts, and every consumer is compared with
    them.

    With V(incremental), only what changed since the last reading is read, and what had a finding
    then, see O(memory). It finds what V(full) finds, except for what was changed in a database by
    hand and for servers that were deleted and archived in between. After O(full_every), everything
    is read.

    Named O(hosts), O(consumers), O(aggregates), O(availability_zones) and O(cells) are always read
    in full, and not with V(incremental).
    """

    shard = ShardText()
    """
    Read one part of a very large cloud, for example V(2/8) for the second of eight parts. All parts
    together find the same as one run on the whole cloud, and exactly one part reports each finding.

    The hosts are divided by a hash of the UUID of their root provider. Only allocations on the
    hosts of this part are listed, but each candidate is judged by all its allocations.

    This option cannot be combined with O(hosts), O(consumers), O(aggregates), O(availability_zones)
    or O(cells).
    """


# What limits a detection to a part of a cloud, or to some findings.
SCOPE_NAMES = tuple(
    name for name, option in ScopeOptions.list_options().items() if isinstance(option, Names)
)


def parse_scope(options: Mapping[str, t.Any]) -> Scope:
    """Return the scope that the options describe.

    Raises InvalidInput for what is not a UUID or a shard, and for options that exclude each other.
    """
    hosts = {normalize_uuid(name) or name for name in options["hosts"]}
    consumers = {require_uuid(text, "consumers:") for text in options["consumers"]}
    projects = {_parse_project(text) for text in options["projects"]}
    shard = None
    if options["shard"]:
        shard = _match_shard(ScopeOptions.shard.parse(options["shard"]))
    if options["mode"] == "incremental":
        _reject_incremental(options)
    chosen = Scope(
        hosts=tuple(sorted(hosts)),
        consumers=tuple(sorted(consumers)),
        projects=tuple(sorted(projects)),
        kinds=tuple(options["kinds"]),
        also_kinds=tuple(options.get("also_kinds", ())),
        shard=shard,
        groups=HostGroups(
            **{option: _parse_group_names(options, option) for option in GROUP_OPTIONS}
        ),
    )
    _reject_contradictions(chosen)
    return chosen


def is_needed(request: str, scope: Scope) -> bool:
    """Return whether a kind that is searched, or is to be remediated, needs a request."""
    return request in collect_needs(scope.kinds, scope.also_kinds)


def needs_every_lookup(scope: Scope) -> bool:
    """Return whether each consumer is looked up, even if the listings show it to be in order."""
    return scope.is_narrow or is_needed(EVERY_CONSUMER, scope)


def _parse_group_names(options: Mapping[str, t.Any], option: str) -> tuple[str, ...]:
    """Return the names of groups of hosts, each once and in order."""
    names = set()
    for text in options[option]:
        name = text.strip()
        # An empty name must not become an empty list, which means all hosts.
        if not name:
            raise InvalidInput(f"{option}: a name is empty. Leave out {option} to read all hosts.")
        # Zones have no uuids.
        if option != "availability_zones":
            name = normalize_uuid(name) or name
        names.add(name)
    return tuple(sorted(names))


def _parse_project(text: str) -> str:
    """Return the uuid of a project as Keystone writes it, or its name as the user has written it.

    Keystone takes the spaces at both ends of a name away too.
    """
    stripped = text.strip()
    if not stripped:
        raise InvalidInput("projects: a name is empty. Give the names or UUIDs of projects.")
    # Keystone writes uuids without dashes.
    return (normalize_uuid(stripped) or "").replace("-", "") or stripped


def _reject_incremental(options: Mapping[str, t.Any]) -> None:
    """Raise InvalidInput for named hosts, consumers and groups, which are always read in full."""
    for name in ("hosts", "consumers", *GROUP_OPTIONS):
        if options[name]:
            raise InvalidInput(
                f"mode=incremental is for whole clouds and shards: leave out {name}, or use "
                "mode=full."
            )


def _reject_contradictions(scope: Scope) -> None:
    """Raise InvalidInput for parts of a scope that cannot go together."""
    named = "named hosts and consumers"
    if not scope.groups.is_empty:
        named = "named aggregates, zones and cells"
    if scope.is_limited_to_hosts and scope.shard:
        raise InvalidInput(
            f"shard={scope.shard} is a part of a whole cloud: {named} are not divided into shards."
        )
    if scope.consumers and not scope.groups.is_empty:
        raise InvalidInput(
            "consumers names each consumer by itself, wherever it has its allocations: leave out "
            "aggregates, availability_zones and cells, or consumers."
        )


def _match_shard(text: t.Any) -> Shard | None:
    """Return the shard that `text` names, as `2/8`; None if it names none."""
    match = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", str(text).strip())
    number, count = map(int, match.groups()) if match else (0, 0)
    return Shard(number, count) if 1 <= number <= count <= MAX_SHARDS else None
