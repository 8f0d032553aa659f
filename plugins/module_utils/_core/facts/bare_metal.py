# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The nodes of Ironic beside their providers: which of them do not go together.

nova-compute names the root provider of a node after the node's uuid
(nova/virt/ironic/driver.py).
"""

from __future__ import annotations

import dataclasses as d
import re
from collections.abc import Iterable, Mapping

from ..._common.uuids import normalize_uuid
from ..models.placement import ProviderDetails
from ..models.snapshot import Answer
from ..models.surroundings import BareMetalNode
from .listings_index import ListingsIndex


@d.dataclass(frozen=True)
class NodeView:
    """One provider of a node, with what Ironic and Placement say of it.

    root: the uuid of the provider. uuid: that of the node.
    node: None where Ironic does not list it.
    consumers: those with an allocation on the provider, sorted.
    """

    root: str
    uuid: str
    node: BareMetalNode | None
    consumers: tuple[str, ...]

    @property
    def free_class(self) -> str:
        """The resource class of which the provider has one unit; empty where it is not known."""
        if self.node is None or not self.node.resource_class:
            return ""
        return normalize_class(self.node.resource_class)

    @property
    def has_foreign_consumer(self) -> bool:
        """Whether what has the allocation is not what the node is in use by."""
        return self.node is not None and bool(self.consumers) and not self.is_used_by_consumer

    @property
    def is_used_by_consumer(self) -> bool:
        """Whether the node is in use by a consumer of its provider."""
        return self.node is not None and self.node.instance in self.consumers


def normalize_class(name: str) -> str:
    """Return the resource class of Placement for one of Ironic, as Nova builds it.

    See `normalize_name` of os-resource-classes.
    """
    return "CUSTOM_" + re.sub("[^A-Z0-9]+", "_", name.upper())


def find_node_roots(index: ListingsIndex) -> dict[str, str]:
    """Return by uuid the root providers of bare metal nodes in scope, with the uuid of the node.

    A provider without a compute node counts only beside a single Nova, because the node may belong
    to the Ironic of another region.
    """
    roots = {}
    alone = not index.listings.cloud.other_novas
    for root in index.roots:
        uuid = normalize_uuid(root.name)
        if uuid and index.covers(root.uuid) and (alone or root.uuid in index.nodes):
            roots[root.uuid] = uuid
    return roots


def build_node_views(
    index: ListingsIndex,
    nodes: Answer[tuple[BareMetalNode, ...]],
    lookups: Mapping[str, Answer[BareMetalNode]],
) -> list[NodeView]:
    """Return the providers of nodes with their nodes, sorted by the uuid of the node.

    lookups: by uuid, direct lookups of nodes, which count for more than the listing.
    """
    known: dict[str, BareMetalNode | None] = {node.uuid: node for node in nodes.value or ()}
    for uuid, answer in lookups.items():
        known[uuid] = answer.value
    views = []
    for root, uuid in find_node_roots(index).items():
        consumers = tuple(sorted(index.consumers_by_tree.get(root, ())))
        views.append(NodeView(root, uuid, known.get(uuid), consumers))
    return sorted(views, key=lambda view: view.uuid)


def sees_every_node(nodes: Iterable[BareMetalNode], own_project: str | None) -> bool:
    """Return whether these credentials may see all nodes, by those that Ironic lists to them.

    Otherwise Ironic shows only those whose owner or lessee is the own project, and answers 404 for
    the others (ironic/api/controllers/v1/utils.py, check_list_policy).
    """
    return any(own_project not in (node.owner, node.lessee) for node in nodes)


def has_room(details: ProviderDetails) -> bool:
    """Return whether a server can still be scheduled to a provider."""
    return any(amount > 0 for amount in details.free.values())
