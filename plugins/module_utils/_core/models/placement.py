# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Placement says: providers, inventories and allocations, in its own words.

The classes are frozen, and made of JSON's types.
"""

from __future__ import annotations

import dataclasses as d
import re
import typing as t
from collections.abc import Iterable, Mapping

from ..._common.text import normalize_uuid

Resources = t.Mapping[str, int]
"""Amounts by resource class, such as `{"VCPU": 2, "MEMORY_MB": 2048}`."""

Allocations = t.Mapping[str, Resources]
"""Amounts by provider uuid: everything that one consumer has."""

# All resource classes that are not `CUSTOM_…` (os_resource_classes); no release has removed one.
STANDARD_CLASSES = frozenset(
    {
        "VCPU",
        "MEMORY_MB",
        "DISK_GB",
        "PCI_DEVICE",
        "SRIOV_NET_VF",
        "NUMA_SOCKET",
        "NUMA_CORE",
        "NUMA_THREAD",
        "NUMA_MEMORY_MB",
        "IPV4_ADDRESS",
        "VGPU",
        "VGPU_DISPLAY_HEAD",
        "NET_BW_EGR_KILOBIT_PER_SEC",
        "NET_BW_IGR_KILOBIT_PER_SEC",
        "PCPU",
        "MEM_ENCRYPTION_CONTEXT",
        "FPGA",
        "PGPU",
        "NET_PACKET_RATE_KILOPACKET_PER_SEC",
        "NET_PACKET_RATE_EGR_KILOPACKET_PER_SEC",
        "NET_PACKET_RATE_IGR_KILOPACKET_PER_SEC",
    }
)

_TRAIT = re.compile("[A-Z0-9_]{1,255}")

# The traits that only Nova gives to a provider, and gives to the root provider of each compute
# node: COMPUTE_NODE since Train (nova/compute/resource_tracker.py), OWNER_NOVA since 2026.
NOVA_TRAITS = frozenset({"COMPUTE_NODE", "OWNER_NOVA"})


@d.dataclass(frozen=True)
class Provider:
    """A resource provider (`GET /resource_providers`)."""

    uuid: str
    name: str
    generation: int
    root: str
    parent: str | None
    sharing: bool = False

    @property
    def is_host(self) -> bool:
        """Whether this may be the provider of a host: a root that is not a sharing provider."""
        return self.root == self.uuid and not self.sharing


@d.dataclass(frozen=True)
class Inventory:
    """What a provider has of one resource class (`GET /resource_providers/{uuid}/inventories`)."""

    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float

    @property
    def capacity(self) -> int:
        """The most that can be in use, rounded down to a whole number as Placement does it."""
        return int((self.total - self.reserved) * self.allocation_ratio)

    def accepts(self, amount: int) -> bool:
        """Return whether one consumer may have this amount, whatever is in use."""
        return self.min_unit <= amount <= self.max_unit and amount % self.step_size == 0


@d.dataclass(frozen=True)
class ProviderState:
    """The inventories, traits and aggregates of a provider at one generation.

    generation: None from a journal of version 1.0, which does not have it here.
    """

    inventories: t.Mapping[str, Inventory] = d.field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    generation: int | None = None

    def as_dict(self) -> dict[str, t.Any]:
        """Return the state as a journal keeps it; `parse_provider_state` reads it."""
        return {
            "generation": self.generation,
            "inventories": {cls: d.asdict(one) for cls, one in sorted(self.inventories.items())},
            "traits": sorted(self.traits),
            "aggregates": sorted(self.aggregates),
        }


@d.dataclass(frozen=True)
class ProviderDetails:
    """Inventories, usages, traits and aggregates of a provider; what was not requested is empty."""

    inventories: t.Mapping[str, Inventory] = d.field(default_factory=dict)
    usages: Resources = d.field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()

    @property
    def free(self) -> dict[str, int]:
        """The amounts by resource class that can still be allocated.

        An amount is below zero where more is in use than there is.
        """
        return {
            cls: inventory.capacity - self.usages.get(cls, 0)
            for cls, inventory in self.inventories.items()
        }


@d.dataclass(frozen=True)
class Totals:
    """What is in use on a provider, and the sum of the allocations that Placement lists there.

    Both are of one moment: nothing was written on the provider between the answers.
    """

    used: Resources
    listed: Resources

    @property
    def hidden(self) -> Resources:
        """The amounts by resource class that no listed allocation has."""
        return subtract_amounts({"": self.used}, {"": self.listed}).get("", {})


@d.dataclass(frozen=True)
class ProviderAggregates:
    """The aggregates of one provider (`GET /resource_providers/{uuid}/aggregates`).

    generation: that of the provider, with which the aggregates can be set.
    """

    generation: int
    aggregates: tuple[str, ...]


@d.dataclass(frozen=True)
class ProviderSummary:
    """What a list of allocation candidates says of a provider in the tree of a candidate."""

    root: str
    traits: frozenset[str]
    capacity: Resources
    used: Resources


@d.dataclass(frozen=True)
class AllocationCandidates:
    """Where Placement would put an allocation (`GET /allocation_candidates`).

    allocations: the possible allocations. summaries: by uuid, the providers of their trees.
    """

    allocations: tuple[Allocations, ...]
    summaries: t.Mapping[str, ProviderSummary]


@d.dataclass(frozen=True)
class Allocation:
    """Everything that is allocated to one consumer (`GET /allocations/{consumer}`).

    generation, resources: None and empty when Placement does not know the consumer.
    type: None when the consumer has no type ("unknown" to Placement).
    age_seconds: the time since the newest write, by Placement's own clock.
    """

    consumer: str
    generation: int | None
    project: str | None
    user: str | None
    type: str | None
    resources: Allocations
    age_seconds: int | None


_INVENTORY_FIELDS = [field.name for field in d.fields(Inventory)]


def parse_inventories(entries: Mapping[str, Mapping[str, t.Any]]) -> dict[str, Inventory]:
    """Return inventories by resource class; fields of newer versions of Placement are left out."""
    return {
        resource_class: Inventory(**{field: entry[field] for field in _INVENTORY_FIELDS})
        for resource_class, entry in entries.items()
    }


def parse_provider_state(entry: Mapping[str, t.Any]) -> ProviderState:
    """Return the state that `ProviderState.as_dict` wrote.

    Raises ValueError for names that cannot be right, or what Python raises (KeyError, TypeError,
    AttributeError) for another shape.
    """
    traits, aggregates = frozenset(entry["traits"]), frozenset(entry["aggregates"])
    for trait in traits:
        if not _TRAIT.fullmatch(trait):
            raise ValueError(f"{trait!r} is not the name of a trait")
    for aggregate in aggregates:
        if normalize_uuid(aggregate) != aggregate:
            raise ValueError(f"{aggregate!r} is not the UUID of an aggregate")
    inventories = parse_inventories(entry["inventories"])
    generation = entry.get("generation")
    known = None if generation is None else int(generation)
    return ProviderState(inventories, traits, aggregates, known)


DISK = "DISK_GB"


def list_compute_classes(allocations: Allocations, root: str | None) -> frozenset[str]:
    """Return the resource classes that `allocations` has on the root provider of a host.

    Disk is left out: an allocation of nothing but disk is not that of a server on its host.
    """
    return frozenset(allocations.get(root or "", {})) - {DISK}


def add_amounts(sums: dict[str, int], amounts: Resources) -> None:
    """Add `amounts` to `sums`, each to that of its own resource class."""
    for cls, amount in amounts.items():
        sums[cls] = sums.get(cls, 0) + amount


def sum_amounts(amounts: Iterable[Resources]) -> dict[str, int]:
    """Return the sums of the amounts, sorted by resource class."""
    sums: dict[str, int] = {}
    for resources in amounts:
        add_amounts(sums, resources)
    return dict(sorted(sums.items()))


def sum_amounts_by_key(amounts: Iterable[tuple[str, Resources]]) -> dict[str, dict[str, int]]:
    """Return the sums of the amounts for each key, such as a provider or a project."""
    sums: dict[str, dict[str, int]] = {}
    for key, resources in amounts:
        add_amounts(sums.setdefault(key, {}), resources)
    return sums


def subtract_amounts(
    here: t.Mapping[str, Resources], there: t.Mapping[str, Resources]
) -> dict[str, dict[str, int]]:
    """Return the amounts that are `here` and not `there`, by provider, without zeros."""
    differences: dict[str, dict[str, int]] = {}
    for provider, amounts in here.items():
        subtracted = there.get(provider, {})
        for cls, amount in amounts.items():
            difference = amount - subtracted.get(cls, 0)
            if difference > 0:
                differences.setdefault(provider, {})[cls] = difference
    return differences
