# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Provider trees without a compute node: which they are, and whether they may be deleted. Pure."""

from __future__ import annotations

from collections.abc import Collection

from ..._common.text import summarize_names
from ..models.change import ProviderRemoval, sort_children_first
from ..models.nova import Hypervisor
from ..models.placement import Provider
from ..models.verdict import DRIFTED, PROTECTED, UNDECIDED, Finding
from ..options.policy import Policy
from .index import SnapshotIndex


def list_roots_without_node(index: SnapshotIndex) -> list[Provider]:
    """Return the roots in scope that are not a compute node's.

    The list is empty when the reading is not sound or not of all cells, because then all
    roots may seem to be without a node.
    """
    if index.failed_absence_checks:
        return []
    return [
        root for root in index.roots if root.uuid not in index.nodes and index.covers(root.uuid)
    ]


def find_name_conflicts(index: SnapshotIndex) -> list[tuple[Provider, Hypervisor]]:
    """Return the roots that have the name of a compute node without a provider, with that node."""
    nodes_by_name = {}
    for node in index.nodes.values():
        if node.uuid not in index.providers:
            nodes_by_name[node.name] = node
    conflicts = []
    for root in list_roots_without_node(index):
        if root.name in nodes_by_name:
            conflicts.append((root, nodes_by_name[root.name]))
    return conflicts


def _explain_possible_use(index: SnapshotIndex, root: Provider) -> str:
    """Return why a provider without a compute node may still be needed; '' if it is not."""
    if index.has_nova_trait(root.uuid):
        return index.find_possible_host(root.uuid)
    reason = "it has neither the trait COMPUTE_NODE nor OWNER_NOVA, so it may not be Nova's"
    allocators = index.snapshot.cloud.allocators
    if allocators:
        reason += f", and the service catalogue has {', '.join(allocators)}"
    return reason


def build_tree_finding(
    kind: str, index: SnapshotIndex, root: Provider, reason: str, policy: Policy
) -> Finding:
    """Return the finding about a root without a compute node, with the removal of its tree.

    There is a change only if the tree is certainly not needed and has no allocations.
    """
    tree = sort_children_first(root.uuid, index.providers.values())
    uuids = tuple(provider.uuid for provider in tree)
    # Excluding one provider of a tree excludes the whole tree.
    excluded = policy.explain_exclusion(
        name for name in policy.exclude_providers if root.uuid in index.find_roots(name)
    )
    if excluded:
        return Finding("excluded", PROTECTED, root.uuid, f"{reason} {excluded}")
    verdict = DRIFTED
    change: ProviderRemoval | None = None
    consumers = index.consumers_by_tree.get(root.uuid, frozenset())
    doubt = _explain_possible_use(index, root)
    if doubt:
        verdict = UNDECIDED
        reason += f" But {doubt}."
    if consumers:
        reason += f" {_describe_consumers(consumers)}"
    if not doubt and not consumers:
        change = ProviderRemoval(tree)
    return Finding(
        kind,
        verdict,
        root.uuid,
        reason,
        providers=uuids,
        evidence=(index.snapshot.hypervisors, index.snapshot.services),
        change=change,
    )


def _describe_consumers(consumers: Collection[str]) -> str:
    """Return a sentence about the consumers that keep a tree from being deleted."""
    if len(consumers) == 1:
        return (
            f"Consumer {min(consumers)} still has an allocation on this tree, and as long as it "
            "does, the tree cannot be deleted."
        )
    return (
        f"{len(consumers)} consumers still have allocations on this tree "
        f"({summarize_names(sorted(consumers))}), and as long as they do, the tree cannot be "
        "deleted."
    )
