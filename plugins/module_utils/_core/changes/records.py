# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a journal has: changes of allocations, and deletions of provider trees."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Collection, Iterable, Mapping

from ..._common.errors import InvalidInput
from ..._common.text import normalize_uuid
from ..models.change import BLOCKED, DELETE_PROVIDERS, OUTCOME_BY_ACTION, SKIPPED, Side
from ..models.codec import Json
from ..models.nova import Aggregate
from ..models.placement import Provider, ProviderState, parse_provider_state
from ..plan.plan import Plan, Step, TreeStep, parse_step, parse_tree_step
from ..run.pack import read_packed
from .journal import AFTER, PLANNED, JournalRecord, build_record, parse_record, read_journal

# What a record says of a change of allocations.
_CHANGE_KEYS = ("consumer", "generation", "before", "after", "partner", "action", "frees", "claims")


def read_restorable(journal: t.Any) -> tuple[list[JournalRecord], bool]:
    """Return the records from which changes are restored, as `read_journal` does.

    journal: also a pack without a journal, of a job that was killed. Its plan stands for a journal
    of all its changes.
    """
    packed = read_packed(journal, "journal", "plan")
    if packed is None or packed[0] == "journal":
        return read_journal(journal)
    plans = map(Plan.parse, packed[1])
    return [
        build_record(PLANNED, step, plan.placement_endpoint)
        for plan in plans
        for step in plan.all_steps
    ], False


def find_changes(
    records: Iterable[JournalRecord], placement_endpoint: str, consumers: Collection[str]
) -> list[Step]:
    """Return the changes of the `consumers` in a journal, of all without any, the newest first.

    A change that Placement refused because its consumer had changed was not made by this run,
    whatever the consumer has now.
    Raises InvalidInput for a journal of another cloud, and for consumers that are not in it.
    """
    steps: list[Step] = []
    for record in records:
        if record.get("action") in (DELETE_PROVIDERS, RESTORE_PROVIDERS):
            continue
        if record["event"] != AFTER:
            steps.append(parse_record(record, placement_endpoint, _parse_change))
        else:
            _forget_skipped(steps, record)
    recorded = {part.consumer for step in steps for part in step.change.parts}
    if unknown := sorted(set(consumers) - recorded):
        raise InvalidInput(f"The journal has no change of consumer {', '.join(unknown)}.")
    return [
        step
        for step in reversed(steps)
        if not consumers or any(part.consumer in consumers for part in step.change.parts)
    ]


def _parse_change(record: JournalRecord) -> Step:
    document = {key: record[key] for key in _CHANGE_KEYS}
    return parse_step(record["finding"], record["kind"], document)


def _forget_skipped(steps: list[Step], record: JournalRecord) -> None:
    """Remove the last of `steps` that a record is about, if that was not made."""
    if record.get("outcome") not in (SKIPPED, BLOCKED):
        return
    for position in reversed(range(len(steps))):
        if steps[position].finding == record.get("finding"):
            del steps[position]
            return


@d.dataclass(frozen=True)
class TreeRecord(TreeStep):
    """What a journal says of the deletion of a tree; the records of a plan have no states."""

    states: t.Mapping[str, ProviderState]
    # The run has seen that the whole tree was gone. Of a run that failed, or was killed, the
    # journal does not say what it deleted.
    deleted: bool = False

    @property
    def root(self) -> Provider:
        return self.change.providers[-1]

    @property
    def providers(self) -> tuple[Provider, ...]:
        """The providers of the tree, each before those below it."""
        return self.change.providers[::-1]


def find_deleted_trees(
    records: Iterable[JournalRecord], placement_endpoint: str
) -> list[TreeRecord]:
    """Return the deleted trees in a journal, the newest first.

    Raises InvalidInput for a journal of another cloud, and for records that were edited.
    """
    trees: dict[str, TreeRecord] = {}
    for record in records:
        if record["event"] == AFTER:
            if record.get("outcome") == OUTCOME_BY_ACTION[DELETE_PROVIDERS]:
                gone = [each for each in trees.values() if each.finding == record.get("finding")]
                trees.update({each.subject: d.replace(each, deleted=True) for each in gone})
            continue
        if record.get("action") != DELETE_PROVIDERS:
            continue
        tree = parse_record(record, placement_endpoint, _parse_tree)
        earlier = trees.pop(tree.subject, None)
        # The record of a plan, which does not have the states, must not hide that of a run.
        if earlier is not None and not tree.states:
            tree = earlier
        trees[tree.subject] = tree
    return list(reversed(trees.values()))


def _parse_tree(record: JournalRecord) -> TreeRecord:
    change = {key: record[key] for key in ("action", "providers")}
    step = parse_tree_step(record["finding"], record["kind"], change)
    # A journal of version 1.0 lacks those of a provider that went just before.
    details = record.get("details", {})
    states = {uuid: parse_provider_state(state) for uuid, state in details.items()}
    return TreeRecord(step.finding, step.kind, step.change, states)


def select_trees(trees: Iterable[TreeRecord], names: Collection[str]) -> list[TreeRecord]:
    """Return those of `trees` whose root has one of the `names`, all of them without any.

    Raises InvalidInput for a name that no root has.

    names: names or uuids of roots.
    """
    # Names are checked before anything is selected: a typo must not restore less in silence.
    every = list(trees)
    wanted = {normalize_uuid(name) or name for name in names}
    recorded = {name for tree in every for name in (tree.root.uuid, tree.root.name)}
    if unknown := sorted(wanted - recorded):
        raise InvalidInput(
            "The journal has no deletion of provider "
            f"{', '.join(unknown)}. Name the root of a tree."
        )
    return [tree for tree in every if not wanted or wanted & {tree.root.uuid, tree.root.name}]


def find_deleted_providers(
    records: Iterable[JournalRecord], placement_endpoint: str
) -> dict[str, str]:
    """Return the names of the providers that a journal says were deleted, by uuid."""
    return {
        provider.uuid: provider.name
        for tree in find_deleted_trees(records, placement_endpoint)
        for provider in tree.providers
    }


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

    def get_side(self, side: Side) -> Json:
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

    def as_dict(self) -> Json:
        providers: list[Json] = [
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
    # A service replaces all traits of such a provider.
    if any(
        trait in _MANAGED_PROVIDER_TRAITS or trait.startswith(_NEUTRON_TRAIT_PREFIXES)
        for trait in then.traits | now.traits
    ):
        return frozenset(), lost
    operators = frozenset(trait for trait in lost if trait.startswith(_OPERATOR_TRAIT_PREFIXES))
    return operators, lost - operators


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
