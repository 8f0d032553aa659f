# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The deletions of provider trees that a journal records, with what their providers had."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Collection, Iterable

from ..._common.errors import InvalidInput
from ..._common.uuids import normalize_uuid
from ..clients.provider_state import ProviderState, parse_provider_state
from ..models.change import DELETE_PROVIDERS, OUTCOME_BY_ACTION
from ..models.placement import Provider
from ..plan.steps import TreeStep, parse_tree_step
from .journal import AFTER, JournalRecord, parse_record


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


def _parse_tree(record: JournalRecord) -> TreeRecord:
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
    # Names are checked before anything is selected: a typo must not restore less in silence.
    every = list(trees)
    wanted = {normalize_uuid(name) or name for name in names}
    recorded: set[str] = set()
    for tree in every:
        recorded |= {tree.root.uuid, tree.root.name}
    if unknown := sorted(wanted - recorded):
        raise InvalidInput(
            "The journal has no deletion of provider "
            f"{', '.join(unknown)}. Name the root of a tree."
        )
    if not wanted:
        return every
    return [tree for tree in every if wanted & {tree.root.uuid, tree.root.name}]


def find_deleted_providers(
    records: Iterable[JournalRecord], placement_endpoint: str
) -> dict[str, str]:
    """Return the names of the providers that a journal says were deleted, by uuid."""
    return {
        provider.uuid: provider.name
        for tree in find_deleted_trees(records, placement_endpoint)
        for provider in tree.providers
    }
