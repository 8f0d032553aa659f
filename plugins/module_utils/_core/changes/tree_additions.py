# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a provider that nova-compute has created again lacks, and the write that adds it."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from ..clients.provider_state import ProviderState
from ..models.change import Side
from ..models.documents import ProviderAdditionDocument, ProviderSideDocument, TreeAdditionDocument
from ..models.placement import Provider

if t.TYPE_CHECKING:  # pragma: no cover
    from ..models.nova import Aggregate

RESTORE_PROVIDERS: t.Final = "restore_providers"

# Traits that operators set, because no driver of Nova reports them. All others are the driver's or
# the resource tracker's, which add and remove them as the host changes (nova/virt/driver.py,
# CAPABILITY_TRAITS_MAP; nova/virt/libvirt/driver.py, static_traits;
# nova/compute/resource_tracker.py, _get_traits): an old one would promise what the host cannot do
# any more, and an old COMPUTE_STATUS_DISABLED would keep the scheduler from it.
_OPERATOR_TRAIT_PREFIXES = ("CUSTOM_", "HW_GPU_", "HW_NIC_", "STORAGE_DISK_")

# Neutron reports these of its agents' providers (neutron-lib, placement/constants.py).
_NEUTRON_TRAIT_PREFIXES = ("CUSTOM_PHYSNET_", "CUSTOM_VNIC_TYPE_")

# Nova's PCI tracker and Cyborg replace all traits of such a provider
# (nova/compute/pci_placement_translator.py, update_provider_tree).
_MANAGED_PROVIDER_TRAITS = frozenset({"COMPUTE_MANAGED_PCI_DEVICE", "OWNER_CYBORG"})

# A host without any of these is a bare metal node, whose traits the driver replaces by those of
# Ironic (nova/virt/ironic/driver.py).
HOST_RESOURCE_CLASSES = frozenset({"VCPU", "PCPU", "MEMORY_MB", "DISK_GB"})


@d.dataclass(frozen=True)
class ProviderAddition:
    """The traits and aggregates to add to one provider, and what it has before."""

    provider: Provider
    before: ProviderState
    traits: tuple[str, ...]
    aggregates: tuple[str, ...]

    def get_side(self, side: Side) -> ProviderSideDocument:
        """Return the traits and aggregates `before` or `after`."""
        traits, aggregates = set(self.before.traits), set(self.before.aggregates)
        if side == "after":
            traits.update(self.traits)
            aggregates.update(self.aggregates)
        return {"traits": sorted(traits), "aggregates": sorted(aggregates)}


@d.dataclass(frozen=True)
class TreeAddition:
    """What is added to the providers of one tree."""

    finding: str
    kind: str
    additions: tuple[ProviderAddition, ...]

    def get_side(self, side: Side) -> dict[str, dict[str, object]]:
        """Return the traits and aggregates `before` or `after`, by provider."""
        return {
            addition.provider.uuid: {"name": addition.provider.name, **addition.get_side(side)}
            for addition in self.additions
        }

    def as_dict(self) -> TreeAdditionDocument:
        providers: list[ProviderAdditionDocument] = [
            {
                "uuid": addition.provider.uuid,
                "name": addition.provider.name,
                "generation": addition.before.generation,
                "before": addition.get_side("before"),
                "after": addition.get_side("after"),
            }
            for addition in self.additions
        ]
        return {
            "finding": self.finding,
            "kind": self.kind,
            "action": RESTORE_PROVIDERS,
            "providers": providers,
        }


def find_lost_traits(
    then: ProviderState, now: ProviderState
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the traits that a provider had and lacks, in two sets.

    Those of the first are to be added, those of the second are left to the service that reports
    them.
    """
    lost = then.traits - now.traits
    if _is_managed(then.traits | now.traits):
        return frozenset(), lost
    operators = frozenset(trait for trait in lost if trait.startswith(_OPERATOR_TRAIT_PREFIXES))
    return operators, lost - operators


def _is_managed(traits: AbstractSet[str]) -> bool:
    """Return whether a service replaces all traits of a provider with these."""
    if _MANAGED_PROVIDER_TRAITS & traits:
        return True
    return any(trait.startswith(_NEUTRON_TRAIT_PREFIXES) for trait in traits)


def find_lost_aggregates(
    then: ProviderState, now: ProviderState, host: str, aggregates: Mapping[str, Aggregate]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the aggregates that a provider was in and is not in now, in two sets.

    Those of the first are to be added, those of the second `host` has left in Nova. An aggregate
    that Nova does not have is one of Placement alone, such as that of a shared disk.

    aggregates: Nova's, by uuid.
    """
    lost = then.aggregates - now.aggregates
    left = frozenset(
        uuid for uuid in lost if uuid in aggregates and host not in aggregates[uuid].hosts
    )
    return lost - left, left


def describe_inventory_changes(then: ProviderState, now: ProviderState) -> list[str]:
    """Return what is different in the inventory, of what an operator may have set.

    The inventory is nova-compute's, and left as it is.
    """
    differences = []
    for cls, before in sorted(then.inventories.items()):
        after = now.inventories.get(cls)
        if after is None:
            differences.append(f"no {cls} (it was {before.total})")
            continue
        for field in ("reserved", "allocation_ratio"):
            old, new = getattr(before, field), getattr(after, field)
            if old != new:
                differences.append(f"{field} of {cls} {new} (it was {old})")
    return differences
