# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Aggregates and traits for the providers of a deleted tree that nova-compute has made again.

A provider that nova-compute makes has its inventory and the traits that the driver reports, and nothing else: no aggregates and no traits
of an operator's (nova/scheduler/client/report.py, _ensure_resource_provider: "Since we just created it, it has no aggregates or traits").
Those are added again from the journal. Nothing is ever taken from a provider, no inventory is written, and no provider is created.
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
from ansible_collections.osops.placement.plugins.module_utils._remediation.journal import AFTER

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Iterable, Mapping

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

# Traits that operators set, for no driver of Nova reports them. All others are the driver's or the resource tracker's, which add them and
# take them away as the host changes (nova/virt/driver.py, CAPABILITY_TRAITS_MAP; nova/virt/libvirt/driver.py, static_traits;
# nova/compute/resource_tracker.py, _get_traits): an old one would promise what the host cannot do any more, and an old
# COMPUTE_STATUS_DISABLED would keep the scheduler from it.
_OPERATOR_TRAIT_PREFIXES = ("CUSTOM_", "HW_GPU_", "HW_NIC_", "STORAGE_DISK_")

# Neutron reports these of its agents' providers (neutron-lib, placement/constants.py).
_NEUTRON_TRAIT_PREFIXES = ("CUSTOM_PHYSNET_", "CUSTOM_VNIC_TYPE_")

# Nova's PCI tracker and Cyborg replace all traits of such a provider (nova/compute/pci_placement_translator.py, update_provider_tree).
_MANAGED_PROVIDER_TRAITS = frozenset({"COMPUTE_MANAGED_PCI_DEVICE", "OWNER_CYBORG"})

# A host without any of these is a bare metal node, whose traits the driver replaces by those that Ironic knows (nova/virt/ironic/driver.py).
_HOST_RESOURCE_CLASSES = frozenset({"VCPU", "PCPU", "MEMORY_MB", "DISK_GB"})

_RECREATE_HINT = "nova-compute makes it again when it starts; run this again then"


@d.dataclass(frozen=True)
class TreeRecord:
    """What a journal tells of the deletion of a tree; without states where only the plan is known."""

    step: TreeStep
    states: t.Mapping[str, ProviderState]
    # The run has seen that all of it was gone. Of a run that failed, or was killed, the journal does not say what it deleted.
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
    """What one provider is given, and what it has before."""

    provider: Provider
    before: ProviderState
    traits: tuple[str, ...]
    aggregates: tuple[str, ...]

    def get_side(self, side: str) -> dict[str, t.Any]:
        more = {"before": ((), ()), "after": (self.traits, self.aggregates)}[side]
        return {
            "traits": sorted(self.before.traits.union(more[0])),
            "aggregates": sorted(self.before.aggregates.union(more[1])),
        }


@d.dataclass(frozen=True)
class TreeAddition:
    """What the providers of one tree are given."""

    finding: str
    kind: str
    additions: tuple[ProviderAddition, ...]

    def get_side(self, side: str) -> dict[str, t.Any]:
        return {
            known.provider.uuid: {"name": known.provider.name, **known.get_side(side)}
            for known in self.additions
        }

    def as_dict(self) -> dict[str, t.Any]:
        providers = [
            {
                "uuid": known.provider.uuid,
                "name": known.provider.name,
                "generation": known.before.generation,
                "before": known.get_side("before"),
                "after": known.get_side("after"),
            }
            for known in self.additions
        ]
        return {
            "finding": self.finding,
            "kind": self.kind,
            "action": RESTORE_PROVIDERS,
            "providers": providers,
        }


@d.dataclass(frozen=True)
class TreeOutcome:
    """What became of one tree: an outcome, what there is to say about it, and the write if there was one."""

    outcome: str
    reason: str
    write: TreeAddition | None = None
    # Some providers of it were changed, or may have been, before another failed.
    partly: bool = False


def find_deleted_trees(
    records: Iterable[Mapping[str, t.Any]], placement_endpoint: str
) -> list[TreeRecord]:
    """Return the deleted trees that a journal tells of, the newest first.

    Raises InvalidInput for a journal of another cloud, and for records that were edited.
    """
    trees: dict[str, TreeRecord] = {}
    for entry in records:
        if entry["event"] == AFTER and entry.get("outcome") == OUTCOME_BY_ACTION[DELETE_PROVIDERS]:
            trees |= {
                root: d.replace(tree, deleted=True)
                for root, tree in trees.items()
                if tree.finding == entry.get("finding")
            }
        if entry["event"] == AFTER or entry.get("action") != DELETE_PROVIDERS:
            continue
        try:
            tree, there = _parse_tree(entry), entry["placement_endpoint"]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(
                f"A record of the journal is not as orphan_remediate writes it ({type(error).__name__}: {error})."
            ) from error
        if there != placement_endpoint:
            raise InvalidInput(
                f"The journal is of another cloud: its Placement is {there}, and that of this connection {placement_endpoint}."
            )
        known = trees.pop(tree.subject, None)
        # The record of a plan, which does not have the states, must not hide that of a run.
        trees[tree.subject] = known if known and not tree.states else tree
    return list(trees.values())[::-1]


def _parse_tree(entry: Mapping[str, t.Any]) -> TreeRecord:
    step = parse_tree_step(
        entry["finding"], entry["kind"], {key: entry[key] for key in ("action", "providers")}
    )
    details = entry.get("details", {})
    # A journal of version 1.0 lacks those of a provider that went just before.
    return TreeRecord(step, {uuid: parse_provider_state(known) for uuid, known in details.items()})


def select_trees(trees: Iterable[TreeRecord], names: Collection[str]) -> list[TreeRecord]:
    """Return those of `group_by_tree` whose root has one of the `names` or uuids, all without any. Raises InvalidInput for unknown ones."""
    every = list(trees)
    wanted = {normalize_uuid(name) or name for name in names}
    known = {name for tree in every for name in (tree.root.uuid, tree.root.name)}
    if unknown := sorted(wanted - known):
        raise InvalidInput(
            f"The journal does not tell of the deletion of provider {', '.join(unknown)}. Give the root of a tree."
        )
    return [tree for tree in every if not wanted or wanted & {tree.root.uuid, tree.root.name}]


def find_lost_traits(
    then: ProviderState, now: ProviderState
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the traits that a provider had and lacks: those to be added, and those that are left to the service that reports them."""
    lost = then.traits - now.traits
    owned = bool(_MANAGED_PROVIDER_TRAITS & (then.traits | now.traits)) or any(
        trait.startswith(_NEUTRON_TRAIT_PREFIXES) for trait in then.traits | now.traits
    )
    operators = (
        frozenset()
        if owned
        else frozenset(trait for trait in lost if trait.startswith(_OPERATOR_TRAIT_PREFIXES))
    )
    return operators, lost - operators


def find_lost_aggregates(
    then: ProviderState, now: ProviderState, host: str, aggregates: Mapping[str, Aggregate]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the aggregates that a provider was in and is not: those to be added, and those that `host` has left in Nova.

    An aggregate that Nova does not have is one of Placement alone, such as that of a shared disk.

    aggregates: Nova's, by uuid.
    """
    lost = then.aggregates - now.aggregates
    left = frozenset(
        uuid for uuid in lost if uuid in aggregates and host not in aggregates[uuid].hosts
    )
    return lost - left, left


def describe_inventory_changes(then: ProviderState, now: ProviderState) -> list[str]:
    """Say what of the inventory an operator may have set is different now. It is nova-compute's, and left as it is."""
    said = []
    for cls, before in sorted(then.inventories.items()):
        after = now.inventories.get(cls)
        if after is None:
            said.append(f"no {cls} (it had {before.total})")
            continue
        for field in ("reserved", "allocation_ratio"):
            if getattr(before, field) != getattr(after, field):
                said.append(
                    f"{field} of {cls} {getattr(after, field)} (it had {getattr(before, field)})"
                )
    return said


class TreeRestorer:
    """Gives the providers of deleted trees what they lack; without a journal (check mode) only says so."""

    def __init__(self, placement: Api, compute: Api, journal: Journal | None) -> None:
        self._states = ProviderStateReader(placement)
        self._writer = ProviderWriter(placement)
        self._nova = NovaReader(compute)
        self._journal = journal
        self._nodes: dict[str, Hypervisor] | None = None
        self._aggregates: dict[str, Aggregate] | None = None

    def restore_tree(self, tree: TreeRecord, providers: Mapping[str, Provider]) -> TreeOutcome:
        """Add what the providers of `tree` lack, if nova-compute has made it again.

        Raises CloudError when that cannot be known, JournalError when it cannot be recorded.

        providers: all that Placement has.
        """
        if not tree.states:
            return TreeOutcome(
                SKIPPED,
                f"What {tree.root.name} had is not in these records of a plan: only the journal of the run that deleted it has that.",
            )
        root, reason = self._find_root(tree, providers)
        if root is None:
            return TreeOutcome(SKIPPED, reason)
        state = self._states.read(root.uuid)
        if state is None or not state.inventories:
            return TreeOutcome(
                SKIPPED,
                f"{root.name} has no inventory yet: nova-compute is about to report it; run this again then.",
            )
        additions, notes = self._find_additions(tree, root, providers)
        if not additions:
            return TreeOutcome(
                SKIPPED, " ".join([f"There is nothing to add to {root.name}.", *notes])
            )
        write = TreeAddition(tree.finding, tree.kind, tuple(additions))
        if self._journal is None:
            return TreeOutcome(RESTORED, " ".join(notes), write)
        self._journal.record_before([write])
        return self._write_additions(write, notes)

    def _find_root(
        self, tree: TreeRecord, providers: Mapping[str, Provider]
    ) -> tuple[Provider | None, str]:
        """Return the root that nova-compute has made again, or None and why there is none.

        It most often has the same uuid, which nova-compute keeps in its file compute_id; a host that lost that file, or was installed
        again, has another one and the same name.
        """
        old = tree.root
        now = _find_same_provider(old, providers)
        if now is None:
            return None, f"Provider {old.name} ({old.uuid}) does not exist: {_RECREATE_HINT}."
        if now.uuid != now.root:
            return (
                None,
                f"Provider {now.name} ({now.uuid}) is a part of the tree of {now.root} now, and left as it is.",
            )
        if self._find_node(now.uuid) is None:
            return None, (
                f"Provider {now.name} ({now.uuid}) exists, but Nova lists no compute node with that UUID: nova-compute did not make it, "
                "or its host is not discovered yet (nova-manage cell_v2 discover_hosts)."
            )
        return now, ""

    def _find_additions(
        self, tree: TreeRecord, root: Provider, providers: Mapping[str, Provider]
    ) -> tuple[list[ProviderAddition], list[str]]:
        """Return what each provider lacks, and what else there is to say."""
        here = {known.uuid: known for known in find_tree(root.uuid, providers)}
        additions, notes = [], []
        for old in tree.providers:
            now = root if old is tree.root else _find_same_provider(old, here)
            then, state = tree.states.get(old.uuid), self._states.read(now.uuid) if now else None
            if now is None or state is None:
                notes.append(
                    f"Provider {old.name} ({old.uuid}) does not exist: the service that it belongs to makes it; run this again then."
                )
                continue
            if then is None:
                notes.append(f"The journal does not tell what {old.name} had.")
                continue
            addition, said = self._build_addition(now, then, state, root)
            notes += said
            names = [*addition.traits, *addition.aggregates]
            if names and not tree.deleted and not _is_recreated(old, now, state):
                notes.append(
                    f"{now.name} lacks {', '.join(names)}, but the journal does not say that it was deleted, and somebody may have taken "
                    "these from it on purpose: add them with the OpenStack client if it needs them."
                )
            elif names:
                additions.append(addition)
        return additions, notes

    def _build_addition(
        self, now: Provider, then: ProviderState, state: ProviderState, root: Provider
    ) -> tuple[ProviderAddition, list[str]]:
        node = t.cast("Hypervisor", self._find_node(root.uuid))
        traits, reported = find_lost_traits(then, state)
        notes = []
        if now is root and not _HOST_RESOURCE_CLASSES & set(state.inventories):
            traits, reported = frozenset(), traits | reported
        if reported:
            notes.append(
                f"{now.name}: left to the service that reports them: {', '.join(sorted(reported))}."
            )
        known = self._read_aggregates() if then.aggregates - state.aggregates else {}
        aggregates, left = find_lost_aggregates(then, state, node.host, known)
        for uuid in sorted(left):
            notes.append(
                f"{now.name}: {node.host} is not in Nova's aggregate {known[uuid].name} any more, so it is not added to {uuid}."
            )
        if different := describe_inventory_changes(then, state):
            notes.append(
                f"{now.name}: its inventory is nova-compute's and has now {', '.join(different)}."
            )
        return ProviderAddition(now, state, tuple(sorted(traits)), tuple(sorted(aggregates))), notes

    def _write_additions(self, write: TreeAddition, notes: list[str]) -> TreeOutcome:
        outcomes, reasons = set(), []
        partly = False
        for known in write.additions:
            outcome, reason, some = self._add_to_provider(known)
            outcomes.add(outcome)
            partly = partly or some
            reasons += [reason] if reason else []
        outcome = FAILED if FAILED in outcomes else RESTORED if RESTORED in outcomes else SKIPPED
        return TreeOutcome(outcome, " ".join([*reasons, *notes]), write, partly)

    def _add_to_provider(self, addition: ProviderAddition) -> tuple[str, str, bool]:
        """Give one provider what it lacks; return the outcome, why it is not restored, and whether anything was written, or may have been."""
        wanted = {*addition.traits, *addition.aggregates}
        try:
            lacking, refusal = self._writer.add_traits_and_aggregates(
                addition.provider, addition.traits, addition.aggregates
            )
        except CloudError as error:
            return FAILED, str(error), True
        if not lacking:
            return RESTORED, "", True
        why = (
            str(refusal)
            if refusal
            else f"Placement accepted the change of {addition.provider.name}, but does not show it."
        )
        nothing = lacking == wanted
        return (
            SKIPPED if nothing and isinstance(refusal, ProviderConflict) else FAILED,
            why,
            not nothing,
        )

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
            self._aggregates = {known.uuid: known for known in self._nova.list_aggregates()}
        return self._aggregates


def _is_recreated(old: Provider, now: Provider, state: ProviderState) -> bool:
    """Tell whether a provider is surely not the one that the journal tells of: its generation only ever grows."""
    return now.uuid != old.uuid or (
        state.generation is not None and state.generation < old.generation
    )


def _find_same_provider(old: Provider, providers: Mapping[str, Provider]) -> Provider | None:
    """Return the provider that has the uuid of `old`, else the one that has its name: no two have the same."""
    return providers.get(old.uuid) or next(
        (known for known in providers.values() if known.name == old.name), None
    )
