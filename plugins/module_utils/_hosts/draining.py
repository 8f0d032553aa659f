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
from collections.abc import Mapping

from .._core.models.nova import Flavor, Server
from .._core.models.placement import Resources

# How a server leaves a host.
LIVE, COLD, EVACUATION, STAYS = "live", "cold", "evacuation", "stays"
# What became of a server.
MOVED, GONE, LEFT, FAILED, UNDER_WAY, SKIPPED = (
    "moved",
    "gone",
    "left",
    "failed",
    "under_way",
    "skipped",
)
MOVE_OUTCOMES = (MOVED, GONE, LEFT, FAILED, UNDER_WAY, SKIPPED)
# The types that Nova gives to the migrations of each of the moves.
MIGRATION_TYPES = {LIVE: "live-migration", COLD: "migration", EVACUATION: "evacuation"}
# The instance actions that Nova records of them.
MOVE_ACTIONS = {LIVE: "live-migration", COLD: "migrate", EVACUATION: "evacuate"}
ANTI_AFFINITY, AFFINITY = "anti-affinity", "affinity"
SOFT_ANTI_AFFINITY, SOFT_AFFINITY = "soft-anti-affinity", "soft-affinity"


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
    def extra_specs(self) -> t.Mapping[str, str]:
        """The extra specs of its flavor; empty where these credentials may not see them."""
        if self.server.flavor is None or self.server.flavor.extra_specs is None:
            return {}
        return self.server.flavor.extra_specs

    @property
    def image_properties(self) -> t.Mapping[str, str]:
        return self.server.image_properties or {}


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

    @property
    def is_hard(self) -> bool:
        """Whether the scheduler refuses to violate the policy."""
        return self.policy in (ANTI_AFFINITY, AFFINITY)


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


class PredictionDocument(t.TypedDict):
    """How one server would leave the host, and where to."""

    uuid: str
    name: str
    status: str
    flavor: str
    # `live`, `cold`, `evacuation` or `stays`.
    how: str
    # The hosts that have room for this server alone, by name.
    hosts: list[str]
    # The host in a packing of all servers together; None for a server that does not fit.
    to: str | None
    reason: str
    advice: str
    warnings: list[str]


class DrainPlanDocument(t.TypedDict):
    """How all servers would leave the host."""

    host: str
    servers: list[PredictionDocument]
    # What concerns the host as a whole.
    warnings: list[str]
    # How many servers can leave, and how many of them fit together.
    movable: int
    fitting: int
    summary: str


class MoveOutcomeDocument(t.TypedDict):
    """What became of one server."""

    uuid: str
    name: str
    outcome: str
    how: str
    # Names of hosts.
    source: str
    to: str | None
    # Where the guest may be, if Nova does not show it.
    may_be_on: list[str]
    seconds: int
    attempts: int
    reason: str


# Extra specs and image properties that ask for other resource classes or for other amounts. What is
# `hw:` in an extra spec is `hw_` in an image property.
_SPECIAL_SPECS = re.compile(
    r"resources.*|pci_passthrough:.*|accel:.*"
    r"|hw[:_](cpu_policy|cpu_dedicated_mask|cpu_realtime.*|emulator_threads_policy|numa_.*"
    r"|mem_page_size|mem_encryption.*|pmem)"
)


def list_special_specs(specs: Mapping[str, str]) -> list[str]:
    """Return those extra specs or image properties that make a server more than plain."""
    return sorted(name for name in specs if _SPECIAL_SPECS.fullmatch(name))


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
