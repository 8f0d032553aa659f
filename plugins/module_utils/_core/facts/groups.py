# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What other services say of hosts and projects, beside Nova and Placement. Pure.

* Where Nova and Placement group the hosts differently. Nova changes its own record and Placement's
  one after the other, so only what two readings show is a finding.
* Which nodes of Ironic do not go together with their providers. nova-compute names the root
  provider of a node after the node's uuid (nova/virt/ironic/driver.py).
* What Keystone's answers about projects prove.
"""

from __future__ import annotations

import collections
import dataclasses as d
import operator
import re
from collections.abc import Iterable, Mapping

from ..._common.errors import Reason
from ..._common.text import normalize_uuid, summarize_names
from ..models.nova import Aggregate, Service
from ..models.other_services import BareMetalNode
from ..models.placement import ProviderDetails
from ..models.snapshot import Answer, Mirror, Projects, Snapshot
from .index import ListingsIndex, SnapshotIndex
from .services import COMPUTE

DISABLED_TRAIT = "COMPUTE_STATUS_DISABLED"

# The metadata by which an aggregate requires a trait of its hosts, as in Nova's guide to isolating
# aggregates: `trait:CUSTOM_LICENSED=required`.
_TRAIT_KEY = re.compile(r"trait:([A-Z0-9_]+)")


@d.dataclass(frozen=True)
class AggregateMismatch:
    """The compute nodes, by uuid, of which Placement does not say the same as Nova.

    missing: those whose host is in the host aggregate, and their provider not.
    extra: those whose provider is in it, and their host not.
    """

    missing: frozenset[str]
    extra: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.missing or self.extra)

    def keep_common(self, other: AggregateMismatch) -> AggregateMismatch:
        """Return what two readings both show."""
        return AggregateMismatch(self.missing & other.missing, self.extra & other.extra)


def list_required_traits(aggregate: Aggregate) -> list[str]:
    """Return the traits that the metadata of a host aggregate requires, sorted."""
    required = (key for key, value in aggregate.metadata.items() if value == "required")
    return sorted(match[1] for match in map(_TRAIT_KEY.fullmatch, required) if match)


def find_aggregate_mismatches(index: ListingsIndex, mirror: Mirror) -> dict[str, AggregateMismatch]:
    """Return by the uuid of a host aggregate what Placement does not say as Nova does."""
    nodes = map_comparable_nodes(index)
    mismatches = {}
    for aggregate in mirror.aggregates:
        listing = mirror.members.get(aggregate.uuid)
        if listing is not None and listing.value is not None:
            members = frozenset(listing.value)
            mismatches[aggregate.uuid] = _compare_members(index, nodes, aggregate, members)
    return {uuid: mismatch for uuid, mismatch in mismatches.items() if mismatch}


def _compare_members(
    index: ListingsIndex, nodes: Mapping[str, str], aggregate: Aggregate, members: frozenset[str]
) -> AggregateMismatch:
    missing = frozenset(nodes[host] for host in aggregate.hosts if host in nodes) - members
    # Other hosts may be in the aggregate on purpose: to use what a sharing provider in it has.
    if any(map(index.is_sharing, members)):
        return AggregateMismatch(missing, frozenset())
    # An older Nova on a database that ignores case may have a host under another spelling.
    spellings = {host.casefold() for host in aggregate.hosts}
    # A host may be out of scope, or have several compute nodes.
    others = {node for host, node in nodes.items() if host.casefold() not in spellings}
    return AggregateMismatch(missing, members & others)


def find_lacking_traits(
    index: ListingsIndex, mirror: Mirror
) -> dict[str, dict[str, frozenset[str]]]:
    """Return the compute nodes that lack a trait which their host aggregate requires.

    By the uuid of the aggregate and by trait, the uuids of the nodes.
    """
    nodes = map_comparable_nodes(index)
    lacking: dict[str, dict[str, frozenset[str]]] = {}
    for aggregate in mirror.aggregates:
        expected = {nodes[host] for host in aggregate.hosts if host in nodes}
        listings = mirror.lacking.get(aggregate.uuid, {})
        for trait in list_required_traits(aggregate):
            listing = listings.get(trait)
            found = expected.intersection(listing.value or ()) if listing else None
            if found:
                lacking.setdefault(aggregate.uuid, {})[trait] = frozenset(found)
    return lacking


def find_status_mismatches(index: ListingsIndex, mirror: Mirror) -> dict[str, Service]:
    """Return by the uuid of a compute node the service whose status its provider does not show.

    Only a service that is up counts: nova-compute sets the trait when it starts, and until then the
    scheduler leaves a host out that is down.
    """
    if mirror.disabled.value is None:
        return {}
    disabled = frozenset(mirror.disabled.value)
    before = _map_services_that_are_up(index.listings.services)
    after = _map_services_that_are_up(index.listings.services_after)
    mismatches = {}
    for host, node in map_comparable_nodes(index, by_host=True).items():
        service = after.get(host)
        # One whose status was changed meanwhile proves nothing.
        if service is None or host not in before or before[host].status != service.status:
            continue
        if (service.status == "disabled") != (node in disabled):
            mismatches[node] = service
    return mismatches


def _map_services_that_are_up(answer: Answer[tuple[Service, ...]]) -> dict[str, Service]:
    """Return the compute services that are up, by host; none of a host that has several."""
    services: dict[str, list[Service]] = collections.defaultdict(list)
    for service in answer.value or ():
        if service.binary == COMPUTE:
            services[service.host].append(service)
    return {
        host: rows[0] for host, rows in services.items() if [one.state for one in rows] == ["up"]
    }


def map_comparable_nodes(index: ListingsIndex, by_host: bool = False) -> dict[str, str]:
    """Return by host the uuid of its compute node, where Placement can be compared with Nova.

    Left out are hosts out of scope, hosts of a cell that does not answer, and those of ironic: Nova
    puts only one of their nodes into an aggregate, and nodes change their host.

    by_host: whether a shard has only its own hosts, and not all those of its own aggregates.
    """
    scope = index.listings.scope
    is_limited = scope.is_narrow or (by_host and scope.shard is not None)
    nodes = {}
    for node in index.nodes.values():
        provider = index.providers.get(node.uuid)
        if provider is None or not provider.is_host or node.host in index.unjudged_hosts:
            continue
        is_of_ironic = normalize_uuid(node.name) or len(index.list_nodes_at(node.host)) != 1
        if not is_of_ironic and (not is_limited or index.covers(node.uuid)):
            nodes[node.host] = node.uuid
    return nodes


OPENSTACK = "openstack"


def get_both_readings(index: SnapshotIndex) -> tuple[Mirror, Mirror] | None:
    """Return the groups of hosts as they were read at the beginning and at the end.

    None where nothing may be concluded from them.
    """
    first, again = index.snapshot.mirror, index.snapshot.mirror_again
    # In the wrong region, no aggregate of Nova would be one of Placement.
    if first is None or again is None or index.failed_checks:
        return None
    return first, again


def map_aggregates(mirror: Mirror) -> dict[str, Aggregate]:
    return {aggregate.uuid: aggregate for aggregate in mirror.aggregates}


def list_hosts(index: SnapshotIndex, nodes: Iterable[str]) -> str:
    """Return hosts as the subject of a sentence with its verb, such as `Host compute-1 is`."""
    hosts = sorted(index.nodes[node].host for node in nodes)
    if len(hosts) == 1:
        return f"Host {hosts[0]} is"
    return f"{len(hosts)} hosts ({summarize_names(hosts)}) are"


def describe_aggregate(aggregate: Aggregate) -> str:
    zone = f" of availability zone {aggregate.zone}" if aggregate.zone else ""
    return f"host aggregate {aggregate.name} ({aggregate.uuid}){zone}"


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
        used_by = self.node.instance if self.node else None
        return self.node is not None and bool(self.consumers) and used_by not in self.consumers


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
    known.update((uuid, answer.value) for uuid, answer in lookups.items())
    return [
        NodeView(root, uuid, known.get(uuid), tuple(sorted(index.consumers_by_tree.get(root, ()))))
        for root, uuid in sorted(find_node_roots(index).items(), key=operator.itemgetter(1))
    ]


def sees_every_node(nodes: Iterable[BareMetalNode], own_project: str | None) -> bool:
    """Return whether these credentials may see all nodes, by those that Ironic lists to them.

    Otherwise Ironic shows only those whose owner or lessee is the own project, and answers 404 for
    the others (ironic/api/controllers/v1/utils.py, check_list_policy).
    """
    return any(own_project not in (node.owner, node.lessee) for node in nodes)


def has_room(details: ProviderDetails) -> bool:
    """Return whether a server can still be scheduled to a provider."""
    return any(amount > 0 for amount in details.free.values())


def find_project(uuid: str, snapshot: Snapshot) -> tuple[str, bool | None]:
    """Return the name of a project, and whether Keystone has it; None where it did not say so."""
    projects = snapshot.surroundings.projects
    for project in projects.listing.value or ():
        if project.uuid == uuid:
            return project.name, True
    lookup = projects.lookups.get(uuid)
    if lookup is not None and lookup.value is not None:
        return lookup.value.name, True
    is_not_found = lookup is not None and lookup.status == 404
    is_gone = is_not_found and not explain_doubt(projects, snapshot.cloud.project)
    return "", False if is_gone else None


def explain_doubt(projects: Projects, own_project: str | None) -> Reason | None:
    """Return why a 404 may not mean that there is no such project; empty if it does.

    own_project: the uuid of the project of these credentials.
    """
    listed = projects.listing.value
    if listed is None:
        return Reason(
            "projects_unread",
            f"Keystone answered {projects.listing.status} when asked for all projects, so these "
            "credentials may not see the projects of others",
        )
    if own_project not in {project.uuid for project in listed}:
        return Reason(
            "own_project_not_listed",
            "Keystone does not list the project of these credentials either: check that the "
            "identity endpoint of the service catalogue is the Keystone that gave the token",
        )
    if len(listed) == 1:
        return Reason(
            "only_own_project_listed", "Keystone lists no project but that of these credentials"
        )
    # Where all projects are of one domain, that has to be the only one.
    is_only_domain = len(projects.domains.value or ()) == 1
    if is_only_domain or len({project.domain for project in listed}) > 1:
        return None
    return Reason(
        "other_domains_not_listed",
        "Keystone lists only projects of one domain, so these credentials may not see those of "
        "other domains",
    )
