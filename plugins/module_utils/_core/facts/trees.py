# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Provider trees: those without a compute node, and what keeps one from being deleted. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ..._common.errors import InvalidInput, Reason, UnsoundReading
from ..._common.text import format_count, normalize_uuid, summarize_names
from ..models.change import ProviderRemoval, sort_children_first
from ..models.finding import DRIFTED, PROTECTED, UNDECIDED, Finding
from ..models.nova import Hypervisor, Service
from ..models.placement import Allocations, Provider
from ..models.snapshot import Answer
from ..options.policy import Policy
from .index import SnapshotIndex
from .services import COMPUTE, get_listed_services, list_down_cell_hosts, may_have_unlisted_node
from .soundness import find_region_mismatch

HIDDEN = Reason(
    "tree_has_hidden_allocation",
    "More of this tree is in use than Placement lists (hidden_allocation), and as long as it is, "
    "the tree cannot be deleted.",
)


def list_roots_without_node(index: SnapshotIndex) -> list[Provider]:
    """Return the roots in scope that are not a compute node's.

    The list is empty when the reading is not sound or not of all cells, because then all
    roots may seem to be without a node.
    """
    roots = [] if index.failed_absence_checks else index.roots
    return [root for root in roots if root.uuid not in index.nodes and index.covers(root.uuid)]


def find_name_conflicts(index: SnapshotIndex) -> list[tuple[Provider, Hypervisor]]:
    """Return the roots that have the name of a compute node without a provider, with that node."""
    unlisted = [node for node in index.nodes.values() if node.uuid not in index.providers]
    by_name = {node.name: node for node in unlisted}
    roots = list_roots_without_node(index)
    return [(root, by_name[root.name]) for root in roots if root.name in by_name]


def _explain_possible_use(index: SnapshotIndex, root: Provider, policy: Policy) -> Reason | None:
    """Return why a provider without a compute node may still be needed; None if it is not."""
    if index.has_nova_trait(root.uuid):
        return index.find_possible_host(root.uuid) or index.find_possible_nova(policy)
    reason = Reason(
        "not_known_to_be_novas",
        "it has neither the trait COMPUTE_NODE nor OWNER_NOVA, so it may not be Nova's",
    )
    others = ", ".join(index.snapshot.cloud.allocators)
    return reason.reword(f"{reason}, and the service catalogue has {others}") if others else reason


def build_tree_finding(
    kind: str, index: SnapshotIndex, root: Provider, reason: Reason, policy: Policy
) -> Finding:
    """Return the finding about a root without a compute node, with the removal of its tree.

    There is a change only if the tree is certainly not needed and has no allocations.
    """
    # Excluding one provider of a tree excludes the whole tree.
    excluded = policy.explain_exclusion(
        name for name in policy.exclude_providers if root.uuid in index.find_roots(name)
    )
    if excluded:
        return Finding("excluded", PROTECTED, root.uuid, excluded.reword(f"{reason} {excluded}"))
    tree = sort_children_first(root.uuid, index.providers.values())
    obstacle = _explain_allocations(index, root, tree)
    if doubt := _explain_possible_use(index, root, policy):
        reason = reason.but(doubt)
    if obstacle:
        reason = (doubt or obstacle).reword(f"{reason} {obstacle}")
    return Finding(
        kind,
        UNDECIDED if doubt else DRIFTED,
        root.uuid,
        reason,
        providers=tuple(provider.uuid for provider in tree),
        evidence=(index.snapshot.hypervisors, index.snapshot.services),
        change=None if doubt or obstacle else ProviderRemoval(tree),
    )


def _explain_allocations(
    index: SnapshotIndex, root: Provider, tree: Iterable[Provider]
) -> Reason | None:
    """Return why the allocations on a tree keep it from being deleted; None without any."""
    if consumers := index.consumers_by_tree.get(root.uuid):
        return _describe_consumers(consumers)
    totals = index.snapshot.surroundings.totals
    answers = [totals[provider.uuid] for provider in tree if provider.uuid in totals]
    if any(answer.value is None or answer.value.hidden for answer in answers):
        return HIDDEN
    return None


def _describe_consumers(consumers: Collection[str]) -> Reason:
    """Return a sentence about the consumers that keep a tree from being deleted."""
    held = f"Consumer {min(consumers)} still has an allocation on this tree, and as long as it does"
    if len(consumers) > 1:
        held = (
            f"{len(consumers)} consumers still have allocations on this tree "
            f"({summarize_names(sorted(consumers))}), and as long as they do"
        )
    return Reason("tree_has_allocations", f"{held}, the tree cannot be deleted.")


def find_tree(name: str, providers: Mapping[str, Provider]) -> tuple[Provider, ...]:
    """Return the tree whose root has that uuid or name, children first; empty when none has it.

    The uuid of a provider is never taken for the name of another one.
    Raises InvalidInput, with the name of the root, for a provider below a root.
    """
    by_name = (entry for entry in providers.values() if entry.name == name)
    provider = providers.get(normalize_uuid(name) or "") or next(by_name, None)
    if provider is None:
        return ()
    if provider.uuid != provider.root:
        root = providers[provider.root].name if provider.root in providers else provider.root
        raise InvalidInput(
            "not_a_root",
            f"{provider.name} is in the tree of {root} ({provider.root}), and only whole trees are "
            "deleted: name the root.",
        )
    return sort_children_first(provider.uuid, providers.values())


def describe_consumers(allocations: Mapping[str, Allocations], what: str) -> str:
    """Return a sentence about the consumers with allocations on `what`, empty without any."""
    if not allocations:
        return ""
    counted = format_count(
        len(allocations), "consumer still has an allocation", "consumers still have allocations"
    )
    return f"{counted} on {what}: {summarize_names(sorted(allocations))}."


def require_compute_nodes(answer: Answer[tuple[Hypervisor, ...]]) -> tuple[Hypervisor, ...]:
    """Return the compute nodes that Nova listed.

    Raises UnsoundReading if Nova did not list them, because then any provider may be in use.
    """
    if answer.value is None:
        raise UnsoundReading(
            "compute_nodes_unread",
            f"Nova answered {answer.status} when asked for its compute nodes "
            f"({answer.request}), so it is not certain which providers are in use: check nova-api "
            "and the credentials, and run again.",
        )
    return answer.value


def check_no_compute_node(
    root: Provider,
    providers: Collection[str],
    nodes: Answer[tuple[Hypervisor, ...]],
    services: Answer[tuple[Service, ...]],
    other_novas: Collection[str],
    lookups: Mapping[str, Answer[bool]],
    search: Answer[tuple[str, ...]],
) -> None:
    """Raise UnsoundReading unless it is certain that `root` is not the provider of a compute node.

    providers: the uuids of all providers.
    other_novas: the regions with a Nova of their own on the same Placement; their compute nodes
        are not in `nodes`.
    lookups: by name, the direct lookups of the hosts whose compute node `root` may be.
    search: the search for compute nodes of that name.
    """
    listed_nodes = require_compute_nodes(nodes)
    _check_not_listed(root, listed_nodes)
    if silent_hosts := list_down_cell_hosts(services):
        raise UnsoundReading(
            "root_may_be_in_down_cell",
            "A cell does not answer, so Nova returned nothing about "
            f"{summarize_names(silent_hosts)}, and {root.name} may belong to a host there.",
        )
    # In the wrong region, no provider would seem to have a compute node.
    if mismatch := find_region_mismatch(listed_nodes, providers):
        raise UnsoundReading(mismatch)
    listed_services = get_listed_services(services)
    hosts = {node.host for node in listed_nodes}
    _check_no_unlisted_node(root, listed_services, hosts)
    if search.value == ():
        raise UnsoundReading(
            "root_is_of_unlisted_node",
            f"Nova has a compute node {root.name}, and leaves it out of its listings because it "
            f"finds no compute service of it: run nova-manage cell_v2 discover_hosts, or start "
            f"{COMPUTE} there. If it is gone, delete its service first.",
        )
    _check_lookups(root, lookups, hosts & {service.host for service in listed_services})
    if other_novas:
        raise UnsoundReading(
            "root_may_be_of_other_nova",
            f"Region {summarize_names(other_novas)} has its own Nova on the same Placement, and "
            f"{root.name} may be one of its hosts: check there, then set ignore_other_regions.",
        )


def _check_not_listed(root: Provider, nodes: Iterable[Hypervisor]) -> None:
    for node in nodes:
        if node.uuid == root.uuid:
            raise UnsoundReading(
                "is_a_listed_node",
                f"{root.name} ({root.uuid}) is a compute node of {node.host} that Nova lists. Its "
                "provider is deleted together with its service: use osops.placement.compute_host.",
            )


def _check_no_unlisted_node(
    root: Provider, services: Iterable[Service], hosts: Collection[str]
) -> None:
    """Raise UnsoundReading when `root` may belong to a service without a listed compute node."""
    for service in services:
        if may_have_unlisted_node(service, hosts, root.name):
            raise UnsoundReading(
                "root_may_be_of_service",
                f"The {COMPUTE} of {service.host} is {service.state}, but Nova lists no compute "
                f"node of it, and {root.name} may be its provider. If the host exists, run "
                "nova-manage cell_v2 discover_hosts. If it is gone, delete its service first.",
            )


def _check_lookups(
    root: Provider, lookups: Mapping[str, Answer[bool]], hosts_with_service: Collection[str]
) -> None:
    """Raise UnsoundReading if a lookup neither denies the host nor agrees with both listings."""
    for name, lookup in sorted(lookups.items()):
        # No host mapping has this name, so no cell can have the compute node. Or the host was
        # installed again and exists, but its node has another UUID than the tree.
        if lookup.status == 404 or (lookup.status == 200 and name in hosts_with_service):
            continue
        raise UnsoundReading(
            "root_lookup_failed",
            f"Nova answered {lookup.status} when asked for host {name} directly, and {root.name} "
            "may be its provider. If the API workers do not all know the same cells, restart every "
            "nova-api. If the host is gone, run nova-manage cell_v2 delete_host.",
        )
