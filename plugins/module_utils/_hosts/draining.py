# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host is drained by: its servers with all that decides where they can go, and the plan.

The words are Nova's and Placement's own. The classes are frozen, and made of JSON's types.

It is enough to see whether a server would fit on another host. What a server has to have on its own
host is in `expected`.
"""

from __future__ import annotations

import dataclasses as d
import re
import typing as t
from collections.abc import Iterable, Mapping

from .._core.models.nova import Flavor, Server
from .._core.models.placement import Resources

# How a server leaves a host.
LIVE, COLD, EVACUATION, STAYS = "live", "cold", "evacuation", "stays"
# What became of a server.
MOVE_OUTCOMES = ("moved", "gone", "left", "failed", "under_way", "skipped")
MOVED, GONE, LEFT, FAILED, UNDER_WAY, SKIPPED = MOVE_OUTCOMES
# The types that Nova gives to the migrations of each of the moves.
MIGRATION_TYPES = {LIVE: "live-migration", COLD: "migration", EVACUATION: "evacuation"}
# The instance actions that Nova records of them.
MOVE_ACTIONS = {LIVE: "live-migration", COLD: "migrate", EVACUATION: "evacuate"}
ANTI_AFFINITY, AFFINITY = "anti-affinity", "affinity"
SOFT_ANTI_AFFINITY, SOFT_AFFINITY = "soft-anti-affinity", "soft-affinity"
# Extra specs and image properties that ask for other resource classes or for other amounts. What is
# `hw:` in an extra spec is `hw_` in an image property.
_SPECIAL_SPECS = re.compile(
    r"resources.*|pci_passthrough:.*|accel:.*"
    r"|hw[:_](cpu_policy|cpu_dedicated_mask|cpu_realtime.*|emulator_threads_policy|numa_.*"
    r"|mem_page_size|mem_encryption.*|pmem)"
)


@d.dataclass(frozen=True)
class DrainServer:
    """A server with what decides whether and where it can move.

    pinned_zone: the availability zone that was requested for the server. Nova shows it from compute
        2.96 on; before, this is the zone where the server is.
    zone: the availability zone where the server is.
    fault: the message of its fault; None where Nova shows none.
    """

    server: Server
    locked: bool = False
    zone: str | None = None
    pinned_zone: str | None = None
    flavor_name: str = ""
    fault: str | None = None

    @property
    def uuid(self) -> str:
        return self.server.uuid

    @property
    def name(self) -> str:
        return self.server.name

    @property
    def is_volume_backed(self) -> bool:
        """Whether its root disk is a volume: such a server has no image."""
        return self.server.image is None and bool(self.server.volumes)

    @property
    def is_plain(self) -> bool:
        """Whether its flavor says all that it needs."""
        flavor = self.server.flavor
        special = any(_SPECIAL_SPECS.fullmatch(name) for specs in self.specs for name in specs)
        return flavor is not None and flavor.extra_specs is not None and not special

    @property
    def specs(self) -> tuple[t.Mapping[str, str], t.Mapping[str, str]]:
        """The extra specs of its flavor, and the properties of its image.

        Both are empty where these credentials may not see them.
        """
        flavor = self.server.flavor
        return (flavor and flavor.extra_specs) or {}, self.server.image_properties or {}


@d.dataclass(frozen=True)
class ServerGroup:
    """A server group with its members.

    max_per_host: how many members a host may have, for the policy `anti-affinity`.
    """

    uuid: str
    name: str
    policy: str
    members: tuple[str, ...]
    max_per_host: int = 1


@d.dataclass(frozen=True)
class MoveNeed:
    """What a server needs from its next host. One request asks for all servers with equal needs.

    resources: amounts by resource class, sorted.
    required, forbidden: names of traits.
    member_of: sets of aggregates; the host must be in one aggregate of each set.
    """

    resources: tuple[tuple[str, int], ...]
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()


@d.dataclass(frozen=True)
class MoveOption:
    """One way in which a host could take a server.

    amounts: by provider uuid, as Placement would allocate them.
    """

    host: str
    amounts: t.Mapping[str, Resources]


@d.dataclass(frozen=True)
class Way:
    """How a server would leave the host.

    how: one of LIVE, COLD, EVACUATION and STAYS. reason: why it stays, or why it goes in this way.
    advice: what the operator has to do about a server that stays.
    warnings: what the operator should know before the server moves.
    """

    how: str
    reason: str = ""
    advice: str = ""
    warnings: tuple[str, ...] = ()


@d.dataclass(frozen=True)
class DrainSettings:
    """What the operator allows.

    fenced: the word of the operator that no guest can still run on the host.
    cold_active: whether an active server that cannot move live may be shut down to move.
    excluded: the servers that are never moved, by uuid, each with until when and why.
    """

    fenced: bool = False
    cold_active: bool = False
    excluded: t.Mapping[str, str] = d.field(default_factory=dict)


PredictionDocument = dict[str, t.Any]
"""How one server would leave the host, and where to, as `host_drain` documents it.

hosts: those that have room for this server alone. to: the host in a packing of all servers
together; None for a server that does not fit.
"""

DrainPlanDocument = dict[str, t.Any]
"""How all servers would leave the host: its `servers`, and how many can leave and fit together."""

MoveOutcomeDocument = dict[str, t.Any]
"""What became of one server, as `host_drain` documents it."""


def list_traits(specs: Iterable[Mapping[str, str]], value: str = "required") -> frozenset[str]:
    """Return the traits that extra specs, properties or metadata require, or forbid."""
    named = [(name, said) for each in specs for name, said in each.items()]
    prefix = "trait:"
    return frozenset(
        name.removeprefix(prefix)
        for name, said in named
        if said == value and name.startswith(prefix)
    )


def calculate_resources(flavor: Flavor, volume_backed: bool) -> Resources:
    """Return the amounts that Nova allocates for a server of a plain flavor.

    These are VCPU, MEMORY_MB (MiB) and DISK_GB (GiB). A class of which the server needs nothing is
    left out.
    """
    # Swap is in MiB and rounded up to GiB.
    disk = flavor.ephemeral + -(-flavor.swap // 1024)
    if not volume_backed:
        disk += flavor.disk
    amounts = {"VCPU": flavor.vcpus, "MEMORY_MB": flavor.ram, "DISK_GB": disk}
    return {cls: amount for cls, amount in amounts.items() if amount}
