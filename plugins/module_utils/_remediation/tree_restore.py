# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Aggregates and traits for the providers of a deleted tree that nova-compute has made again.

A provider that nova-compute makes has its inventory and the traits that the driver reports, and
nothing else: no aggregates and no traits that an operator set (nova/scheduler/client/report.py,
_ensure_resource_provider: "Since we just created it, it has no aggregates or traits").
Those are added again from the journal. Nothing is ever taken from a provider, no inventory is
written, and no provider is created.
"""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._clients.nova import NovaReader
from ansible_collections.osops.placement.plugins.module_utils._clients.provider_state import (
    ProviderState,
    ProviderStateReader,
    parse_provider_state,
)
from ansible_collections.osops.placement.plugins.module_utils._clients.provider_writer import (
    ProviderWriter,
)
from ansible_collections.osops.placement.plugins.module_utils._common.errors import (
    CloudError,
    InvalidInput,
    ProviderConflict,
    UnsoundReading,
)
from ansible_collections.osops.placement.plugins.module_utils._common.uuids import normalize_uuid
from ansible_collections.osops.placement.plugins.module_utils._hosts.preconditions import (
    find_tree,
    require_compute_nodes,
)
from ansible_collections.osops.placement.plugins.module_utils._models.change import (
    DELETE_PROVIDERS,
    FAILED,
    OUTCOME_BY_ACTION,
    RESTORED,
    SKIPPED,
)
from ansible_collections.osops.placement.plugins.module_utils._plan.steps import (
    TreeStep,
    parse_tree_step,
)
from ansible_collections.osops.placement.plugins.module_utils._remediation.journal import (
    AFTER,
    parse_record,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from ansible_collections.osops.placement.plugins.module_utils._clients.api import Api
    from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
        Aggregate,
        Hypervisor,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import Provider
    from ansible_collections.osops.placement.plugins.module_utils._remediation.journal import (
        Journal,
    )

RESTORE_PROVIDERS = "restore_providers"

# Traits that operators set, for no driver of Nova reports them. All others are the driver's or the
# resource tracker's, which add them and take them away as the host changes (nova/virt/driver.py,
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
_HOST_RESOURCE_CLASSES = frozenset({"VCPU", "PCPU", "MEMORY_MB", "DISK_GB"})

_RECREATE_HINT = "nova-compute makes it again when it starts; run this again then"


@d.dataclass(frozen=True)
class TreeRecord:
    """What a journal says of the deletion of a tree; the records of a plan have no states."""

    step: TreeStep
    states: t.Mapping[str, ProviderState]
    # The run has seen that the whole tree was gone. Of a run that failed, or was killed, the
    # journal does not say what it deleted.
    deleted: bool = False

    @property
    def finding(self) -> str:
        return self.step.finding

    @property
    def kind(self) -> str:
        return self.step.kind

    @property
    def subject(self) -> str:
        """The root of the tree."""
        return self.step.subject

    @property
    def root(self) -> Provider:
        return self.step.change.providers[-1]

    @property
    def providers(self) -> tuple[Provider, ...]:
        """The providers of the tree, each before those below it."""
        return self.step.change.providers[::-1]


@d.dataclass(frozen=True)
class ProviderAddition:
    """The traits and aggregates to add to one provider, and what it has before."""

    provider: Provider
    before: ProviderState
    traits: tuple[str, ...]
    aggregates: tuple[str, ...]

    def get_side(self, side: str) -> dict[str, t.Any]:
        """Return the traits and aggregates `before` or `after`."""
        added = {"before": ((), ()), "after": (self.traits, self.aggregates)}
        traits, aggregates = added[side]
        return {
            "traits": sorted(self.before.traits.union(traits)),
            "aggregates": sorted(self.before.aggregates.union(aggregates)),
        }


@d.dataclass(frozen=True)
class TreeAddition:
    """What is added to the providers of one tree."""

    finding: str
    kind: str
    additions: tuple[ProviderAddition, ...]

    def get_side(self, side: str) -> dict[str, t.Any]:
        """Return the traits and aggregates `before` or `after`, by provider."""
        return {
            addition.provider.uuid: {"name": addition.provider.name, **addition.get_side(side)}
            for addition in self.additions
        }

    def as_dict(self) -> dict[str, t.Any]:
        providers = [
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


@d.dataclass(frozen=True)
class TreeOutcome:
    """What became of one tree: an outcome, the remarks on it, and the write if there was one."""

    outcome: str
    reason: str
    write: TreeAddition | None = None
    # Some providers of the tree were changed, or may have been, before another failed.
    partly: bool = False


def find_deleted_trees(
    records: Iterable[Mapping[str, t.Any]], placement_endpoint: str
) -> list[TreeRecord]:
    """Return the deleted trees in a journal, the newest first.

    Raises InvalidInput for a journal of another cloud, and for records that were edited.
    """
    trees: dict[str, TreeRecord] = {}
    for record in records:
        if record["event"] == AFTER:
            if record.get("outcome") == OUTCOME_BY_ACTION[DELETE_PROVIDERS]:
                _mark_deleted(trees, record.get("finding"))
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


def _mark_deleted(trees: dict[str, TreeRecord], finding: t.Any) -> None:
    """Replace those of `trees` that are about a finding by the same as deleted."""
    for root, tree in trees.items():
        if tree.finding == finding:
            trees[root] = d.replace(tree, deleted=True)


def _parse_tree(record: Mapping[str, t.Any]) -> TreeRecord:
    change = {key: record[key] for key in ("action", "providers")}
    step = parse_tree_step(record["finding"], record["kind"], change)
    # A journal of version 1.0 lacks those of a provider that went just before.
    details = record.get("details", {})
    return TreeRecord(step, {uuid: parse_provider_state(state) for uuid, state in details.items()})


def select_trees(trees: Iterable[TreeRecord], names: Collection[str]) -> list[TreeRecord]:
    """Return those of `trees` whose root has one of the `names`, all of them without any.

    Raises InvalidInput for a name that no root has.

    names: names or uuids of roots.
    """
    every = list(trees)
    wanted = {normalize_uuid(name) or name for name in names}
    recorded: set[str] = set()
    for tree in every:
        recorded |= {tree.root.uuid, tree.root.name}
    if unknown := sorted(wanted - recorded):
        raise InvalidInput(
            "The journal does not tell of the deletion of provider "
            f"{', '.join(unknown)}. Give the root of a tree."
        )
    if not wanted:
        return every
    return [tree for tree in every if wanted & {tree.root.uuid, tree.root.name}]


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
            differences.append(f"no {cls} (it had {before.total})")
            continue
        for field in ("reserved", "allocation_ratio"):
            old, new = getattr(before, field), getattr(after, field)
            if old != new:
                differences.append(f"{field} of {cls} {new} (it had {old})")
    return differences


class TreeRestorer:
    """Adds what the providers of deleted trees lack.

    Without a journal, as in check mode, nothing is written.
    """

    def __init__(self, placement: Api, compute: Api, journal: Journal | None) -> None:
        self._states = ProviderStateReader(placement)
        self._writer = ProviderWriter(placement)
        self._nova = NovaReader(compute)
        self._journal = journal
        self._nodes: dict[str, Hypervisor] | None = None
        self._aggregates: dict[str, Aggregate] | None = None

    def restore_tree(self, tree: TreeRecord, providers: Mapping[str, Provider]) -> TreeOutcome:
        """Add what the providers of `tree` lack, if nova-compute has made it again.

        Raises CloudError when the providers cannot be read, JournalError when the write cannot be
        recorded.

        providers: all that Placement has.
        """
        if not tree.states:
            return TreeOutcome(
                SKIPPED,
                f"What {tree.root.name} had is not in these records of a plan: "
                "only the journal of the run that deleted it has that.",
            )
        root, reason = self._find_root(tree, providers)
        if root is None:
            return TreeOutcome(SKIPPED, reason)
        state = self._states.read(root.uuid)
        if state is None or not state.inventories:
            return TreeOutcome(
                SKIPPED,
                f"{root.name} has no inventory yet: nova-compute is about to report it; "
                "run this again then.",
            )
        additions, notes = self._find_additions(tree, root, providers)
        if not additions:
            reasons = [f"There is nothing to add to {root.name}.", *notes]
            return TreeOutcome(SKIPPED, " ".join(reasons))
        write = TreeAddition(tree.finding, tree.kind, tuple(additions))
        if self._journal is None:
            return TreeOutcome(RESTORED, " ".join(notes), write)
        self._journal.record_before([write])
        return self._write_additions(write, notes)

    def _find_root(
        self, tree: TreeRecord, providers: Mapping[str, Provider]
    ) -> tuple[Provider | None, str]:
        """Return the root that nova-compute has made again, or None and why there is none.

        It most often has the same uuid, which nova-compute keeps in its file compute_id. A host
        that lost that file, or was installed again, has another uuid and the same name.
        """
        old = tree.root
        now = _find_same_provider(old, providers)
        if now is None:
            return None, f"Provider {old.name} ({old.uuid}) does not exist: {_RECREATE_HINT}."
        if now.uuid != now.root:
            return None, (
                f"Provider {now.name} ({now.uuid}) is a part of the tree of {now.root} now, "
                "and left as it is."
            )
        if self._find_node(now.uuid) is None:
            return None, (
                f"Provider {now.name} ({now.uuid}) exists, but Nova lists no compute node "
                "with that UUID: nova-compute did not make it, "
                "or its host is not discovered yet (nova-manage cell_v2 discover_hosts)."
            )
        return now, ""

    def _find_additions(
        self, tree: TreeRecord, root: Provider, providers: Mapping[str, Provider]
    ) -> tuple[list[ProviderAddition], list[str]]:
        """Return what each provider lacks, and the notes on what is left out or different."""
        members = {provider.uuid: provider for provider in find_tree(root.uuid, providers)}
        additions: list[ProviderAddition] = []
        notes: list[str] = []
        for old in tree.providers:
            now = root if old is tree.root else _find_same_provider(old, members)
            state = self._states.read(now.uuid) if now else None
            if now is None or state is None:
                notes.append(
                    f"Provider {old.name} ({old.uuid}) does not exist: "
                    "the service that it belongs to makes it; run this again then."
                )
                continue
            if old.uuid not in tree.states:
                notes.append(f"The journal does not tell what {old.name} had.")
                continue
            addition, remarks = self._build_addition(now, tree.states[old.uuid], state, root)
            notes += remarks
            lacking = [*addition.traits, *addition.aggregates]
            if not lacking:
                continue
            if tree.deleted or _is_recreated(old, now, state):
                additions.append(addition)
            else:
                notes.append(
                    f"{now.name} lacks {', '.join(lacking)}, but the journal does not say "
                    "that it was deleted, and somebody may have taken "
                    "these from it on purpose: "
                    "add them with the OpenStack client if it needs them."
                )
        return additions, notes

    def _build_addition(
        self, now: Provider, then: ProviderState, state: ProviderState, root: Provider
    ) -> tuple[ProviderAddition, list[str]]:
        notes = []
        host = t.cast("Hypervisor", self._find_node(root.uuid)).host
        traits, reported = find_lost_traits(then, state)
        if now is root and not _HOST_RESOURCE_CLASSES & set(state.inventories):
            traits, reported = frozenset(), traits | reported
        if reported:
            names = ", ".join(sorted(reported))
            notes.append(f"{now.name}: left to the service that reports them: {names}.")
        nova_aggregates: Mapping[str, Aggregate] = {}
        if then.aggregates - state.aggregates:
            nova_aggregates = self._read_aggregates()
        aggregates, left = find_lost_aggregates(then, state, host, nova_aggregates)
        for uuid in sorted(left):
            notes.append(
                f"{now.name}: {host} is not in Nova's aggregate {nova_aggregates[uuid].name} "
                f"any more, so it is not added to {uuid}."
            )
        if differences := describe_inventory_changes(then, state):
            notes.append(
                f"{now.name}: its inventory is nova-compute's and has now {', '.join(differences)}."
            )
        return ProviderAddition(now, state, tuple(sorted(traits)), tuple(sorted(aggregates))), notes

    def _write_additions(self, write: TreeAddition, notes: list[str]) -> TreeOutcome:
        outcomes: set[str] = set()
        reasons: list[str] = []
        partly = False
        for addition in write.additions:
            outcome, reason, written = self._add_to_provider(addition)
            outcomes.add(outcome)
            partly = partly or written
            if reason:
                reasons.append(reason)
        return TreeOutcome(_combine_outcomes(outcomes), " ".join([*reasons, *notes]), write, partly)

    def _add_to_provider(self, addition: ProviderAddition) -> tuple[str, str, bool]:
        """Add to one provider what it lacks.

        Return the outcome, why it is not restored, and whether anything was written, or may have
        been.
        """
        wanted = {*addition.traits, *addition.aggregates}
        try:
            lacking, refusal = self._writer.add_traits_and_aggregates(
                addition.provider, addition.traits, addition.aggregates
            )
        except CloudError as error:
            return FAILED, str(error), True
        if not lacking:
            return RESTORED, "", True
        reason = f"Placement accepted the change of {addition.provider.name}, but does not show it."
        if refusal:
            reason = str(refusal)
        unchanged = lacking == wanted
        if unchanged and isinstance(refusal, ProviderConflict):
            return SKIPPED, reason, False
        return FAILED, reason, not unchanged

    def _find_node(self, uuid: str) -> Hypervisor | None:
        if self._nodes is None:
            try:
                nodes = require_compute_nodes(self._nova.list_hypervisors(with_servers=False))
            except UnsoundReading as error:
                raise CloudError(f"{error} Run again when it answers.") from error
            self._nodes = {node.uuid: node for node in nodes}
        return self._nodes.get(uuid)

    def _read_aggregates(self) -> Mapping[str, Aggregate]:
        if self._aggregates is None:
            listed = self._nova.list_aggregates()
            self._aggregates = {aggregate.uuid: aggregate for aggregate in listed}
        return self._aggregates


def _combine_outcomes(outcomes: AbstractSet[str]) -> str:
    """Return the outcome of a tree by those of its providers."""
    for outcome in (FAILED, RESTORED):
        if outcome in outcomes:
            return outcome
    return SKIPPED


def _is_recreated(old: Provider, now: Provider, state: ProviderState) -> bool:
    """Return whether a provider is surely not the one in the journal: a generation only grows."""
    if now.uuid != old.uuid:
        return True
    return state.generation is not None and state.generation < old.generation


def _find_same_provider(old: Provider, providers: Mapping[str, Provider]) -> Provider | None:
    """Return the provider that has the uuid of `old`, else the one that has its name.

    No two providers have the same name.
    """
    if old.uuid in providers:
        return providers[old.uuid]
    return next((entry for entry in providers.values() if entry.name == old.name), None)
