# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Aggregates and traits for the providers of a deleted tree that nova-compute has created again.

A provider that nova-compute makes has its inventory and the traits that the driver reports, and
nothing else: no aggregates and no traits that an operator set (nova/scheduler/client/report.py,
_ensure_resource_provider: "Since we just created it, it has no aggregates or traits").
Those are added again from the journal. Nothing is ever taken from a provider, no inventory is
written, and no provider is created.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from ..._common.errors import NO_REASON, CloudError, ProviderConflict, Reason, UnsoundReading
from ..clients.api import Api
from ..clients.nova import NovaReader
from ..clients.provider_state import ProviderStateReader
from ..clients.provider_writer import ProviderWriter
from ..facts.trees import find_tree, require_compute_nodes
from ..models.change import FAILED, RESTORED, SKIPPED
from ..models.nova import Aggregate, Hypervisor
from ..models.placement import Provider, ProviderState
from .journal import Journal
from .outcomes import Restoration
from .records import (
    HOST_RESOURCE_CLASSES,
    ProviderAddition,
    TreeAddition,
    TreeRecord,
    describe_inventory_changes,
    find_lost_aggregates,
    find_lost_traits,
)

_RECREATE_HINT = "nova-compute creates it again when it starts; restore again after that"


class TreeRestorer:
    """Adds what the providers of deleted trees lack.

    Without a journal, as in check mode, nothing is written.
    """

    def __init__(self, placement: Api, compute: Api, journal: Journal | None) -> None:
        self._states = ProviderStateReader(placement)
        self._writer = ProviderWriter(placement)
        self._nova = NovaReader(compute)
        self._journal = journal

    def restore_tree(self, tree: TreeRecord, providers: Mapping[str, Provider]) -> Restoration:
        """Add what the providers of `tree` lack, if nova-compute has created it again.

        Raises CloudError when the providers cannot be read, JournalError when the write cannot be
        recorded.

        providers: all that Placement has.
        """
        # What a provider had cannot be guessed from the plan, which has only its name.
        if not tree.states:
            reason = Reason(
                "records_of_plan",
                f"These are records of a plan, which do not contain what {tree.root.name} had: "
                "use the journal of the run that deleted it.",
            )
            return Restoration(tree, SKIPPED, reason)
        root = self._find_root(tree, providers)
        if isinstance(root, Reason):
            return Restoration(tree, SKIPPED, root)
        state = self._states.read(root.uuid)
        if state is None or not state.inventories:
            reason = Reason(
                "inventory_missing",
                f"{root.name} has no inventory yet: nova-compute reports it soon; "
                "restore again after that.",
            )
            return Restoration(tree, SKIPPED, reason)
        additions, notes = self._find_additions(tree, root, providers)
        if not additions:
            reason = Reason("nothing_to_add", f"There is nothing to add to {root.name}.")
            return Restoration(tree, SKIPPED, reason.extend(*notes))
        write = TreeAddition(tree.finding, tree.kind, tuple(additions))
        if self._journal is None:
            return Restoration(tree, RESTORED, NO_REASON.extend(*notes), write=write)
        self._journal.record_before([write])
        return self._write_additions(tree, write, notes)

    def _find_root(self, tree: TreeRecord, providers: Mapping[str, Provider]) -> Provider | Reason:
        """Return the root that nova-compute has created again, or why there is none.

        It most often has the same uuid, which nova-compute keeps in its file compute_id. A host
        that lost that file, or was installed again, has another uuid and the same name.
        """
        old = tree.root
        now = _find_same_provider(old, providers)
        if now is None:
            return Reason(
                "root_not_recreated",
                f"Provider {old.name} ({old.uuid}) does not exist: {_RECREATE_HINT}.",
            )
        if now.uuid != now.root:
            return Reason(
                "root_is_child_now",
                f"Provider {now.name} ({now.uuid}) is now a part of the tree of {now.root}, "
                "and is left as it is.",
            )
        # Somebody else may have created a provider of that name.
        if now.uuid not in self._nodes:
            return Reason(
                "not_a_compute_node",
                f"Provider {now.name} ({now.uuid}) exists, but Nova lists no compute node "
                "with that UUID: nova-compute did not create it, "
                "or its host has not been discovered yet (nova-manage cell_v2 discover_hosts).",
            )
        return now

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
                    "the service that it belongs to creates it; restore again after that."
                )
                continue
            if old.uuid not in tree.states:
                notes.append(f"The journal does not contain what {old.name} had.")
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
                    "that it was deleted, and somebody may have removed "
                    "these on purpose: "
                    "add them with the OpenStack client if it needs them."
                )
        return additions, notes

    def _build_addition(
        self, now: Provider, then: ProviderState, state: ProviderState, root: Provider
    ) -> tuple[ProviderAddition, list[str]]:
        notes = []
        host = self._nodes[root.uuid].host
        traits, reported = find_lost_traits(then, state)
        # The driver of a bare metal node replaces all its traits by those of Ironic.
        if now is root and not HOST_RESOURCE_CLASSES & set(state.inventories):
            traits, reported = frozenset(), traits | reported
        if reported:
            names = ", ".join(sorted(reported))
            notes.append(f"{now.name}: left to the service that reports these traits: {names}.")
        is_missing = bool(then.aggregates - state.aggregates)
        nova_aggregates: Mapping[str, Aggregate] = self._aggregates if is_missing else {}
        aggregates, left = find_lost_aggregates(then, state, host, nova_aggregates)
        for uuid in sorted(left):
            notes.append(
                f"{now.name}: {host} is no longer in Nova's aggregate "
                f"{nova_aggregates[uuid].name}, so {now.name} is not added to {uuid}."
            )
        if differences := describe_inventory_changes(then, state):
            notes.append(
                f"{now.name}: its inventory is left to nova-compute, and now has "
                f"{', '.join(differences)}."
            )
        return ProviderAddition(now, state, tuple(sorted(traits)), tuple(sorted(aggregates))), notes

    def _write_additions(
        self, tree: TreeRecord, write: TreeAddition, notes: list[str]
    ) -> Restoration:
        made = [self._add_to_provider(addition) for addition in write.additions]
        outcomes = [outcome for outcome, _reason, _written in made]
        combined = next(name for name in (FAILED, RESTORED, SKIPPED) if name in outcomes)
        reasons = [reason for _outcome, reason, _written in made if reason]
        reason = next(iter(reasons), NO_REASON).extend(*reasons[1:], *notes)
        partly = any(written for _outcome, _reason, written in made)
        return Restoration(tree, combined, reason, partly, write)

    def _add_to_provider(self, addition: ProviderAddition) -> tuple[str, Reason, bool]:
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
            return FAILED, error.reason, True
        if not lacking:
            return RESTORED, NO_REASON, True
        reason = Reason(
            "write_not_shown",
            f"Placement accepted the change of {addition.provider.name}, but does not show it.",
        )
        reason = refusal.reason if refusal else reason
        unchanged = lacking == wanted
        if unchanged and isinstance(refusal, ProviderConflict):
            return SKIPPED, reason, False
        return FAILED, reason, not unchanged

    @functools.cached_property
    def _nodes(self) -> dict[str, Hypervisor]:
        try:
            nodes = require_compute_nodes(self._nova.list_hypervisors(with_servers=False))
        except UnsoundReading as error:
            raise CloudError(error.reason.extend("Run again when it answers.")) from error
        return {node.uuid: node for node in nodes}

    @functools.cached_property
    def _aggregates(self) -> dict[str, Aggregate]:
        return {aggregate.uuid: aggregate for aggregate in self._nova.list_aggregates()}


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
