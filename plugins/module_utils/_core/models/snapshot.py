# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One reading of a cloud: every request with its answer.

`Listings` are its first part, `Snapshot` is the finished reading. The classes are frozen, and made
of JSON's types, so that a reading can be kept, compared and judged again.
"""

from __future__ import annotations

import dataclasses as d
import hashlib
import typing as t

from ..._common.errors import InvalidInput, describe_form_error
from ..._common.text import format_count, make_printable, summarize_names
from .codec import Json, convert_from_json, convert_to_json
from .minimum_python import require_python
from .nova import Action, Aggregate, Hypervisor, Migration, Server, Service
from .other_services import (
    AcceleratorRequest,
    Attachment,
    BareMetalNode,
    DeletedServer,
    Deletion,
    DeviceProfile,
    HostTree,
    Project,
    RootVolume,
    ServerPort,
)
from .placement import (
    Allocation,
    Allocations,
    Provider,
    ProviderAggregates,
    ProviderDetails,
    Resources,
    Totals,
    list_compute_classes,
)

# The classes below cannot be built by an older one.
require_python()

T = t.TypeVar("T")


@d.dataclass(frozen=True)
class Answer(t.Generic[T]):
    """One request to the cloud and its answer: the unit of evidence.

    status: the HTTP status; 0 for a request that was not sent.
    value: what was read from the body; None when the body proves nothing.
    """

    request: str
    microversion: str
    status: int
    at: str
    value: T | None = None


# Stands for the request when compute nodes are listed by the servers of the cells that answer.
LISTED_BY_SERVERS = "GET /servers?host=… of each host whose cell answers"

# Stands for the request when only those compute nodes are read that a candidate names.
READ_ONE_BY_ONE = "GET /os-hypervisors/… of each compute node that a candidate names"

# The same in an incremental reading, which remembers the other compute nodes.
READ_OR_REMEMBERED = f"{READ_ONE_BY_ONE}; the others are remembered"

NOT_ASKED: Answer[t.Any] = Answer("", "", 0, "")


@d.dataclass(frozen=True)
class Evidence:
    """The direct lookups of one uuid, with `NOT_ASKED` for those that were not sent.

    deleted_listing: `GET /servers/detail?deleted=True&uuid=…`, the server as Nova remembers it
        after its deletion.
    marker: `GET /os-migrations?limit=1&marker=…`; 200 proves that the uuid is or was a migration's,
        400 proves nothing.
    markers: the same request, repeated so that as many API workers as possible answer.
    rows: `GET /servers?uuid=…&soft_deleted=True`, which searches every cell for a server whose
        instance mapping may be lost; several times, so that more than one API worker has answered.
        Only where not every host was asked for its servers.
    last_actions: each read by itself, newest first. Of a server without a host: its actions back to
        the newest that shelved it, and the newest that could give it a host. Of a server that is
        not where its newest move ended: the newest action that unshelved it. Of a server with a
        live migration that failed early: the action that began it. Of a server whose
        allocation belongs to a failed cold migration: those actions since then that can show where
        its guest is.
    host_migrations: `GET /os-migrations?host=…` for each host with an allocation of the consumer,
        because the listing of all migrations may leave some out; several times each, so that more
        than one API worker has answered.
    shape, interfaces, server_ports: of a server whose amounts have to be known, the properties of
        its image, and its ports as Neutron shows them to Nova and to us.
    attachments, root_volume: of such a server with volumes, the volumes as Nova has attached them,
        and the one that it boots from. Nova's own listing of actions then shows whether a volume
        was swapped.
    device_profiles, accelerators: of such a server whose flavor or ports name device profiles of
        Cyborg, these profiles, and the devices that Cyborg has for the server.
    port_actions: of a server with bandwidth that its ports do not explain, the newest actions that
        attach or detach a port, each read by itself and after the ports.
    former_tree, host_servers, own_usages: of a server whose only allocation is on a root provider
        without a compute node, the allocations on that tree by consumer, the servers of its host,
        and the usages of the root provider of its host.
    """

    uuid: str
    allocation: Answer[Allocation]
    migrations: Answer[tuple[Migration, ...]] = NOT_ASKED
    server: Answer[Server] = NOT_ASKED
    deleted_listing: Answer[tuple[Server, ...]] = NOT_ASKED
    actions: Answer[tuple[Action, ...]] = NOT_ASKED
    marker: Answer[bool] = NOT_ASKED
    markers: tuple[Answer[bool], ...] = ()
    rows: tuple[Answer[tuple[str, ...]], ...] = ()
    last_actions: tuple[Answer[Action], ...] = ()
    host_migrations: tuple[Answer[tuple[Migration, ...]], ...] = ()
    shape: Answer[Server] = NOT_ASKED
    interfaces: Answer[tuple[str, ...]] = NOT_ASKED
    server_ports: Answer[tuple[ServerPort, ...]] = NOT_ASKED
    attachments: Answer[tuple[Attachment, ...]] = NOT_ASKED
    root_volume: Answer[RootVolume] = NOT_ASKED
    device_profiles: tuple[Answer[DeviceProfile], ...] = ()
    accelerators: Answer[tuple[AcceleratorRequest, ...]] = NOT_ASKED
    port_actions: tuple[Answer[Action], ...] = ()
    former_tree: Answer[dict[str, Allocations]] = NOT_ASKED
    host_servers: Answer[tuple[str, ...]] = NOT_ASKED
    own_usages: Answer[Resources] = NOT_ASKED


Request = t.NewType("Request", str)
"""A request of a reading, by the name that its answer has in a snapshot."""


# About one consumer: the fields of `Evidence`.
ALLOCATION = Request("allocation")
MIGRATIONS = Request("migrations")
SERVER = Request("server")
DELETED = Request("deleted_listing")
ACTIONS = Request("actions")
MARKER = Request("marker")
MARKERS = Request("markers")
ROWS = Request("rows")
LAST_ACTIONS = Request("last_actions")
HOST_MIGRATIONS = Request("host_migrations")
SHAPE = Request("shape")
INTERFACES = Request("interfaces")
PORTS = Request("server_ports")
ATTACHMENTS = Request("attachments")
ROOT_VOLUME = Request("root_volume")
DEVICE_PROFILES = Request("device_profiles")
ACCELERATORS = Request("accelerators")
PORT_ACTIONS = Request("port_actions")
FORMER_TREE = Request("former_tree")
HOST_SERVERS = Request("host_servers")
OWN_USAGES = Request("own_usages")

# Once for all consumers that they concern: the fields of `Snapshot`.
HOST_TREE = Request("host_trees")
HOST_ALLOCATIONS = Request("host_allocations")
HOST_TOTALS = Request("host_totals")
UNLISTED_MOVES = Request("unlisted_moves")

# All that decides on the amounts of a server, from the tree of its host to its devices.
AMOUNTS = Request("amounts")

# About more than one consumer, where a kind needs it.
# Each consumer in scope, even if the listings show it to be in order.
EVERY_CONSUMER = Request("every_consumer")
# Those that Placement has for no project.
UNOWNED = Request("unowned")
# The servers, with their flavors, of hosts that use more or less than is allocated there; of hosts
# with allocations on child providers; and of all hosts, compared with their allocations.
USAGE = Request("usage")
CHILDREN = Request("children")
FLAVORS = Request("flavors")
# Each server with bandwidth.
BANDWIDTH = Request("bandwidth")
# The inventories and traits of root providers without a compute node; the inventories of all.
FORMER_ROOTS = Request("former_roots")
# The providers that compute nodes lack, and those with their names.
MISSING_PROVIDERS = Request("missing_providers")
INVENTORIES = Request("inventories")
# The groups of hosts in Placement, and the traits that follow from them and from the services.
MEMBERS = Request("members")
TRAITS = Request("traits")
# What is read last.
NODES = Request("nodes")
TOTALS = Request("totals")
PROJECTS = Request("projects")
PROJECT_SERVERS = Request("project_servers")
DELETIONS = Request("deletions")
FAILED_DELETIONS = Request("failed_deletions")
EVACUATED = Request("evacuated")


@d.dataclass(frozen=True)
class HostAllocations:
    """What shows whether a server on a host lacks an allocation there.

    tree: the allocations on the tree of the host, by consumer.
    servers: the servers on the host.
    actions: of the servers without an allocation there, by uuid.
    lookups: those servers of which a migration that is over has an allocation there, by uuid.
    """

    tree: Answer[dict[str, Allocations]]
    servers: Answer[tuple[str, ...]]
    actions: t.Mapping[str, Answer[tuple[Action, ...]]] = d.field(default_factory=dict)
    lookups: t.Mapping[str, Answer[Server]] = d.field(default_factory=dict)

    def list_servers_without(
        self,
        root: str,
        listed: t.Iterable[str],
        list_migrations: t.Callable[[str], Answer[tuple[Migration, ...]]],
    ) -> list[str]:
        """Return the servers on the host without the allocation that a server has there, sorted.

        Those are left out of which a listed migration under way has one. What one that is over has
        there may be left over from an earlier move. Nova adds the bandwidth of a port that is
        attached later, on a child, also to a server that has nothing else on the host.

        root: the root provider of the host.
        listed: further servers on the host, as the listing of compute nodes shows them.
        list_migrations: returns the listed migrations of a server.
        """
        consumers = set()
        for consumer, allocations in (self.tree.value or {}).items():
            if list_compute_classes(allocations, root):
                consumers.add(consumer)
        lacking = []
        for server in sorted({*(self.servers.value or ()), *listed}):
            moves = list_migrations(server).value or ()
            under_way = [move.uuid for move in moves if not move.ended]
            if consumers.isdisjoint({server, *under_way}):
                lacking.append(server)
        return lacking

    def list_left_behind(self, moves: t.Iterable[Migration]) -> list[Allocations]:
        """Return what those of the `moves` that are over have in the tree."""
        tree = self.tree.value or {}
        return [tree[move.uuid] for move in moves if move.ended and move.uuid in tree]


@d.dataclass(frozen=True)
class BareMetal:
    """What Ironic says of the nodes whose providers were read, and what was looked up for it.

    nodes: all nodes that Ironic lists; `NOT_ASKED` where no provider is a node's.
    lookups: by uuid, direct lookups of nodes that have a provider, and are not in that listing or
        do not seem to match the provider; read last.
    free: by resource class, the providers on which one unit of it can still be allocated.
    allocations: by consumer, read after the nodes.
    servers: by uuid, those by which a node without an allocation is in use.
    details: by provider, inventories and usages that were read after the nodes.
    left_out: how many providers were not looked up because they were too many.
    unseen: how many nodes these credentials may not see, so that their absence proves nothing.
    """

    nodes: Answer[tuple[BareMetalNode, ...]] = NOT_ASKED
    lookups: t.Mapping[str, Answer[BareMetalNode]] = d.field(default_factory=dict)
    free: t.Mapping[str, Answer[tuple[str, ...]]] = d.field(default_factory=dict)
    allocations: t.Mapping[str, Answer[Allocation]] = d.field(default_factory=dict)
    servers: t.Mapping[str, Answer[Server]] = d.field(default_factory=dict)
    details: t.Mapping[str, ProviderDetails] = d.field(default_factory=dict)
    left_out: int = 0
    unseen: int = 0


@d.dataclass(frozen=True)
class Projects:
    """What Keystone says of the projects that own servers and allocations.

    lookups: by uuid, direct lookups of projects.
    listing: the projects that these credentials may list; read where a lookup was a 404, or where
        a listing costs less than the lookups.
    domains: the domains that they may list; read where all these projects are of one domain.
    servers: by uuid of a project, the servers that Nova lists for it. Only where Nova was asked for
        the servers of all projects, and only of the projects that Keystone does not have.
    """

    lookups: t.Mapping[str, Answer[Project]] = d.field(default_factory=dict)
    listing: Answer[tuple[Project, ...]] = NOT_ASKED
    domains: Answer[tuple[str, ...]] = NOT_ASKED
    servers: t.Mapping[str, tuple[str, ...]] = d.field(default_factory=dict)


@d.dataclass(frozen=True)
class Deletions:
    """The servers that Nova should have deleted or finished, and did not.

    listings: the listings that name them, without those of the servers of one host.
    lookups, actions: by server, a direct lookup, and its newest delete action.
    left_out: how many servers were not looked up because they were too many.
    busy: by server, those in BUILD or with another task than to be deleted, as listed.
    """

    listings: tuple[Answer[tuple[DeletedServer, ...]], ...] = ()
    lookups: t.Mapping[str, Answer[DeletedServer]] = d.field(default_factory=dict)
    actions: t.Mapping[str, Answer[Deletion]] = d.field(default_factory=dict)
    left_out: int = 0
    busy: t.Mapping[str, Answer[Server]] = d.field(default_factory=dict)


@d.dataclass(frozen=True)
class Surroundings:
    """What was read after the candidates, and is about no allocation in doubt.

    evacuated: by uuid, direct lookups of the servers with an unfinished evacuation that may be on
        its source.
    totals: by provider, where more seemed to be in use than is listed.
    unread: a sentence for each thing that a service did not answer.
    """

    bare_metal: BareMetal = BareMetal()
    projects: Projects = Projects()
    deletions: Deletions = Deletions()
    evacuated: t.Mapping[str, Answer[Server]] = d.field(default_factory=dict)
    totals: t.Mapping[str, Answer[Totals]] = d.field(default_factory=dict)
    unread: tuple[str, ...] = ()


@d.dataclass(frozen=True)
class Cloud:
    """The cloud that was read.

    allocators: the types of other services in its catalogue that allocate from Placement.
    other_novas: the other regions of the catalogue whose Nova uses the same Placement.
    placement_version, compute_version: the newest microversions that the services support.
    tells_time: whether the answers of Placement have a time, without which no age is known.
    """

    placement_endpoint: str
    compute_endpoint: str
    region: str | None
    project: str | None
    allocators: tuple[str, ...]
    other_novas: tuple[str, ...] = ()
    placement_version: tuple[int, int] = (1, 39)
    compute_version: tuple[int, int] = (2, 100)
    tells_time: bool = True


@d.dataclass(frozen=True)
class Shard:
    """One of `count` parts of a cloud; the first has the number 1.

    The part follows from a name alone, and is the same in every run and with every Python.
    """

    number: int
    count: int

    def contains(self, name: str) -> bool:
        """Return whether a root provider or migration (by uuid) or service (by host) is in it."""
        digest = hashlib.sha256(name.encode()).hexdigest()
        return int(digest, 16) % self.count == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


@d.dataclass(frozen=True)
class HostGroups:
    """The groups of hosts that the user names; a host must be in one of each that is not empty.

    aggregates: host aggregates by uuid; as the user has named them until they are looked up.
    aggregate_names, aggregate_numbers: the name and the id of each of `aggregates`, in the same
        order.
    availability_zones: by name.
    cells: as the user has named them. No API says which hosts a cell has.
    hosts: the hosts of compute services that are in these groups; empty until they are looked up.
    """

    aggregates: tuple[str, ...] = ()
    aggregate_names: tuple[str, ...] = ()
    aggregate_numbers: tuple[str, ...] = ()
    availability_zones: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no group is named, so that all hosts are meant."""
        return not (self.aggregates or self.availability_zones or self.cells)

    def __str__(self) -> str:
        """Return the groups for people, such as `aggregate rack-7 within availability zone az1`."""
        parts = [
            _name_groups("aggregate", "aggregates", self.aggregate_names or self.aggregates),
            _name_groups("availability zone", "availability zones", self.availability_zones),
            _name_groups("cell", "cells", self.cells),
        ]
        return " within ".join(filter(None, parts))


def _name_groups(one: str, many: str, names: t.Sequence[str]) -> str:
    if not names:
        return ""
    shown = summarize_names(make_printable(name, 100) for name in names)
    return f"{one if len(names) == 1 else many} {shown}"


# All hosts.
NO_GROUPS = HostGroups()


@d.dataclass(frozen=True)
class Scope:
    """The part of the cloud that is read; an empty field excludes nothing.

    hosts: hypervisors by name or uuid.
    consumers: uuids; a server's stands for its migrations' too.
    projects: uuids.
    mode: `full`; in files of version 2.0 also `triage`, for which hosts were left out.
    shard: the part of the cloud that is read; None for all of it (see `reading.allocations`).
    project_names: the name of each of `projects`, in the same order; empty where it is not known.
    groups: the hosts that are read, by their aggregates, zones and cells.
    also_kinds: kinds that are searched as if `kinds` named them, unless that names others.
    """

    hosts: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    mode: str = "full"
    shard: Shard | None = None
    project_names: tuple[str, ...] = ()
    groups: HostGroups = NO_GROUPS
    # It leaves nothing out: a reading of the whole cloud is one with it, too.
    also_kinds: tuple[str, ...] = d.field(default=(), compare=False)

    @property
    def is_narrow(self) -> bool:
        """Whether hosts or consumers are named: of others, only what these need is read."""
        return bool(self.hosts or self.consumers)

    @property
    def is_limited_to_hosts(self) -> bool:
        """Whether only some hosts are read, each by itself or with all those of a group."""
        return self.is_narrow or not self.groups.is_empty

    @property
    def needs_servers_of_every_host(self) -> bool:
        """Whether the compute nodes are listed with the servers of all hosts."""
        return not self.is_limited_to_hosts

    def includes(self, kind: str) -> bool:
        """Return whether findings of a kind are reported."""
        return not self.kinds or kind in self.kinds

    def __str__(self) -> str:
        """Return what is read for people, such as `the whole cloud`."""
        about = _count_names(self.hosts, "host", "hosts")
        about += _count_names(self.consumers, "consumer", "consumers")
        if self.shard:
            about.append(f"shard {self.shard.number} of {self.shard.count} of the cloud")
        if self.mode == "triage":
            about.append("the hosts whose figures look wrong")
        text = " and ".join(about) or "the whole cloud"
        if about and not self.groups.is_empty:
            text += f" within {self.groups}"
        elif not self.groups.is_empty:
            text = f"{format_count(len(self.groups.hosts), 'host', 'hosts')} of {self.groups}"
        # These choose among what was found, and not what is read.
        chosen = _count_names(self.projects, "project", "projects")
        chosen += _count_names(self.kinds, "kind", "kinds")
        return ", ".join([text, *(f"findings of {names} only" for names in chosen)])


def _count_names(names: t.Sequence[str], one: str, many: str) -> list[str]:
    if not names:
        return []
    return [f"{format_count(len(names), one, many)} ({summarize_names(sorted(names))})"]


@d.dataclass(frozen=True)
class Reading:
    """How much of the cloud was read again.

    mode: `full`, or `incremental`, which reads only what changed since an earlier reading.
    full_at: when the last full reading began; None if it is this one.
    previous_at: when the reading before this one began, by Nova's clock; None for a full one.
    why_full: why a full reading was necessary although an incremental one was asked for; a
        sentence, or empty.
    """

    mode: str = "full"
    full_at: str | None = None
    previous_at: str | None = None
    why_full: str = ""

    @property
    def is_incremental(self) -> bool:
        """Whether only what changed was read."""
        return self.mode == "incremental"


@d.dataclass(frozen=True)
class Mirror:
    """How Nova and Placement each group the hosts. Each `Answer` about providers has their uuids.

    aggregates: the host aggregates of Nova.
    members: by the uuid of a host aggregate, the providers that are in it in Placement.
    lacking: by the uuid of a host aggregate and then by trait, those of its providers in Placement
        that lack a trait which its metadata requires.
    disabled: the providers with the trait COMPUTE_STATUS_DISABLED.
    provider_aggregates: by the uuid of a provider, all its aggregates; only where they are needed.
    """

    aggregates: tuple[Aggregate, ...] = ()
    members: t.Mapping[str, Answer[tuple[str, ...]]] = d.field(default_factory=dict)
    lacking: t.Mapping[str, t.Mapping[str, Answer[tuple[str, ...]]]] = d.field(default_factory=dict)
    disabled: Answer[tuple[str, ...]] = NOT_ASKED
    provider_aggregates: t.Mapping[str, Answer[ProviderAggregates]] = d.field(default_factory=dict)


@d.dataclass(frozen=True, kw_only=True)
class Listings:
    """What Placement and Nova list: the cloud as a whole, before any consumer is looked up.

    A listing only names candidates. No rule reads listings: rules read a `Snapshot`.

    cloud, scope: the cloud, and the part of it that is read.
    started_at: the time before the first request.
    reading: how much was read again. In an incremental reading the allocations of the providers
        that did not change, and the compute nodes that no candidate names, are remembered.
    providers: all resource providers, by uuid.
    allocations: by consumer, from the one listing that each provider has.
    trees: the roots of the trees whose allocations were read; None when all were.
    services, services_after: the compute services before and after everything else was read.
    hypervisors: the compute nodes, each with the servers of its host where Nova was asked for them.
    migrations: all migrations that Nova still has.
    samples: direct lookups of live servers, preferably of other projects, which show whether these
        credentials may see them.
    sampled_projects: the project of each of `samples` by the listing from which it was taken.
    control: the listing of deleted servers for one of the samples, which is still there and must
        not be in that listing; None without a live server.
    aggregates: the host aggregates of Nova, which every API worker knows, whatever cells it knows.
    host_lookups: by name, direct lookups of hosts that are named in some answer but are not in a
        listing of Nova.
    node_searches: by name, what says whether such a host has a compute node without a compute
        service.
    mirror: how Nova and Placement group the hosts; None where that was not read.
    """

    cloud: Cloud
    scope: Scope = Scope()
    started_at: str
    reading: Reading = Reading()
    providers: t.Mapping[str, Provider]
    allocations: t.Mapping[str, Allocations]
    trees: tuple[str, ...] | None = None
    services: Answer[tuple[Service, ...]]
    hypervisors: Answer[tuple[Hypervisor, ...]]
    migrations: Answer[tuple[Migration, ...]]
    services_after: Answer[tuple[Service, ...]]
    samples: tuple[Answer[Server], ...]
    sampled_projects: tuple[str | None, ...] = ()
    control: Answer[tuple[Server, ...]] | None
    aggregates: tuple[Aggregate, ...] = ()
    host_lookups: t.Mapping[str, Answer[bool]] = d.field(default_factory=dict)
    node_searches: t.Mapping[str, Answer[tuple[str, ...]]] = d.field(default_factory=dict)
    mirror: Mirror | None = None

    @property
    def every_cell_listed(self) -> bool:
        """Whether no cell was left out of `hypervisors`.

        Otherwise it is what the servers of the answering cells show (`reading.compute_nodes`).
        """
        return self.hypervisors.request != LISTED_BY_SERVERS

    @property
    def every_node_listed(self) -> bool:
        """Whether `hypervisors` has the compute nodes of all hosts."""
        return self.hypervisors.request not in (LISTED_BY_SERVERS, READ_ONE_BY_ONE)


@d.dataclass(frozen=True)
class ListedAmounts:
    """How many servers have the right amounts by the listings alone; the candidates left out.

    by_server: those whose own allocation is what their flavor and image request.
    by_host: those on hosts whose figures agree with the sums of all their allocations.
    unchecked: how many others there are, by what is missing (`MissingInput.name`), or
        `not_compared` for servers that this reading did not compare.
    candidates: by uuid, what is missing to know the amounts of a candidate; empty if they are as
        its flavor and image request.
    differing: the candidates whose amounts are not what their flavor and image request.
    """

    by_server: int = 0
    by_host: int = 0
    unchecked: t.Mapping[str, int] = d.field(default_factory=dict)
    candidates: t.Mapping[str, str] = d.field(default_factory=dict)
    differing: tuple[str, ...] = ()


@d.dataclass(frozen=True, kw_only=True)
class Snapshot(Listings):
    """One finished reading of Placement and then of Nova: everything that the rules may use.

    It has the listings as they are at the end of the reading: `services_after` is read after all
    lookups, `host_lookups` has the hosts that only a lookup named, and `hypervisors` the servers of
    those hosts that were asked for them later.

    candidates: the consumers that the listings do not show to be in order; these are judged.
    evidence: by uuid, for the candidates, for the servers of candidates that are migrations and for
        the migrations of candidates that are servers.
    details: by uuid, for those providers of which they were read.
    host_trees: by root, the trees of the hosts of servers whose amounts have to be known.
    host_allocations: by root, what shows whether a server lacks an allocation on a host where a
        migration has one that only the marker shows to be a migration.
    host_totals: by root, whether something of the hosts of servers without an allocation is in use
        that no listed allocation has: the first such provider, or the last one.
    unlisted_moves: the servers that are being moved although Nova lists no such migration; asked
        only where a migration is known by the marker alone.
    listed_amounts: what the listings alone say of the amounts of servers.
    other_novas: the regions with another Nova on this Placement, by all endpoints of Keystone; only
        where a root provider of a Nova has no compute node.
    providers_again: by uuid, read again at the end, the trees of providers with the UUIDs or the
        names of compute nodes without a provider; None where that was not read.
    left_out: how many more candidates there would have been, had the reading been sound.
    retried: how many requests were repeated because their answer was broken.
    finished_at: the time after the last request.
    mirror_again: of `mirror`, what did not agree, read once more at the end.
    surroundings: what other services say, and servers that are being deleted.
    """

    candidates: tuple[str, ...]
    evidence: t.Mapping[str, Evidence]
    details: t.Mapping[str, ProviderDetails] = d.field(default_factory=dict)
    host_trees: t.Mapping[str, Answer[HostTree]] = d.field(default_factory=dict)
    host_allocations: t.Mapping[str, HostAllocations] = d.field(default_factory=dict)
    host_totals: t.Mapping[str, Answer[Totals]] = d.field(default_factory=dict)
    unlisted_moves: Answer[tuple[str, ...]] = NOT_ASKED
    listed_amounts: ListedAmounts = ListedAmounts()
    other_novas: Answer[tuple[str, ...]] = NOT_ASKED
    providers_again: t.Mapping[str, Provider] | None = None
    left_out: int = 0
    retried: int = 0
    finished_at: str
    mirror_again: Mirror | None = None
    surroundings: Surroundings = Surroundings()


FORMAT = 2


def encode(snapshot: Snapshot) -> Json:
    """Return `snapshot` as JSON's types, so that it can be judged again anywhere."""
    return {"format": FORMAT, "snapshot": convert_to_json(snapshot)}


def decode(document: t.Any) -> Snapshot:
    """Return the snapshot of which `encode` made `document`.

    Raises InvalidInput when `document` is not a snapshot, or has another format.
    """
    try:
        if document["format"] != FORMAT:
            raise InvalidInput(
                f"The snapshot has format {document['format']}, "
                f"but this version reads format {FORMAT}: "
                "judge it with the version that wrote it, or read the cloud again."
            )
        return convert_from_json(Snapshot, document["snapshot"])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"This is not a snapshot that orphan_detect wrote ({describe_form_error(error)}). "
            "Set snapshot_src to a whole file of snapshot_dest."
        ) from error
