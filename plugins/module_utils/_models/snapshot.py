# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""One reading of a cloud: every question with its answer. Frozen, and made of JSON's types, so that it can be kept, compared and judged again."""

from __future__ import annotations

import dataclasses as d
import hashlib
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
    Action,
    Aggregate,
    Hypervisor,
    Migration,
    Port,
    Server,
    Service,
)
from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
    Allocation,
    Allocations,
    Inventory,
    Provider,
    ProviderDetails,
    Resources,
)

if t.TYPE_CHECKING:  # pragma: no cover
    pass


T = t.TypeVar("T")


@d.dataclass(frozen=True)
class Answer(t.Generic[T]):
    """One request to the cloud and what came back: the unit of evidence.

    `status` is the HTTP status, 0 for a question that was not asked; `value` is what was read from the body, or None when the
    body proves nothing.
    """

    request: str
    microversion: str
    status: int
    at: str
    value: T | None = None


# The request of a listing of compute nodes that was made up of what the servers of answering cells show.
LISTED_BY_SERVERS = "GET /servers?host=… of each host whose cell answers"

NOT_ASKED: Answer[t.Any] = Answer("", "", 0, "")


@d.dataclass(frozen=True)
class Evidence:
    """Every direct question that was asked about one uuid, and `NOT_ASKED` for the others.

    deleted_listing: `GET /servers/detail?deleted=True&uuid=…`, the server as Nova remembers it after its deletion.
    marker: `GET /os-migrations?limit=1&marker=…`; 200 proves that the uuid is or was a migration's, 400 proves nothing.
    markers: the same question, asked again of as many API workers as may answer.
    last_actions: each by itself, newest first: of a server without a host, its actions down to the newest that shelved it, and the newest
        that could give it a host; of one that is not where its newest move ended, the newest that unshelved it; of one whose claim a
        failed cold migration holds, those since then that can tell where its guest is.
    host_migrations: `GET /os-migrations?host=…` for each host held, to find there what the listing of all left out; several times each,
        so that more than one API worker has answered.
    shape, interfaces, ports, stock: of a server whose claim may have to be written anew, the properties of its image, its ports
        as Nova and as Neutron know them, and what the root provider of its host has.
    """

    uuid: str
    allocation: Answer[Allocation]
    migrations: Answer[tuple[Migration, ...]] = NOT_ASKED
    server: Answer[Server] = NOT_ASKED
    deleted_listing: Answer[tuple[Server, ...]] = NOT_ASKED
    actions: Answer[tuple[Action, ...]] = NOT_ASKED
    marker: Answer[bool] = NOT_ASKED
    markers: tuple[Answer[bool], ...] = ()
    last_actions: tuple[Answer[Action], ...] = ()
    host_migrations: tuple[Answer[tuple[Migration, ...]], ...] = ()
    shape: Answer[Server] = NOT_ASKED
    interfaces: Answer[tuple[str, ...]] = NOT_ASKED
    ports: Answer[tuple[Port, ...]] = NOT_ASKED
    stock: Answer[dict[str, Inventory]] = NOT_ASKED


@d.dataclass(frozen=True)
class Cloud:
    """Which cloud a reading is of.

    allocators: the types of other services in its catalogue that claim from Placement.
    other_novas: the other regions of the catalogue whose Nova has this same Placement.
    placement_version, compute_version: the newest microversions that the services offer.
    """

    placement_endpoint: str
    compute_endpoint: str
    region: str | None
    project: str | None
    allocators: tuple[str, ...]
    other_novas: tuple[str, ...] = ()
    placement_version: tuple[int, int] = (1, 39)
    compute_version: tuple[int, int] = (2, 100)


@d.dataclass(frozen=True)
class Shard:
    """One of `count` parts into which a cloud is cut; the first has the number 1.

    Who is in which part follows from a name alone, the same in every run and every Python.
    """

    number: int
    count: int

    def contains(self, name: str) -> bool:
        """Tell whether a root provider (by uuid), a migration (by uuid) or a service (by host) is in this part."""
        return int(hashlib.sha256(name.encode()).hexdigest(), 16) % self.count == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


@d.dataclass(frozen=True)
class Scope:
    """What is looked at; nothing named stands for everything.

    hosts: hypervisors by name or uuid. consumers: uuids; a server's stands for its migrations' too. projects: uuids.
    mode: `full`, or `triage`, which asks only about hosts whose figures look wrong.
    shard: the part of the cloud that is read, None for all of it; see `_collector.shards`.
    """

    hosts: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    mode: str = "full"
    shard: Shard | None = None

    @property
    def is_narrow(self) -> bool:
        """Whether it names hosts or consumers, so that nothing is read of others but what these need."""
        return bool(self.hosts or self.consumers)

    @property
    def needs_every_lookup(self) -> bool:
        """Whether everybody in it is looked at closely, whatever the listings say."""
        return self.is_narrow or "wrong_owner" in self.kinds

    def includes_any(self, *kinds: str) -> bool:
        return not self.kinds or bool(set(kinds) & set(self.kinds))


@d.dataclass(frozen=True)
class Snapshot:
    """One reading of Placement and then of Nova; all that the judge may look at.

    holdings: what each consumer holds, from the one listing that each provider has.
    trees: the roots of the trees whose holdings were read; None when all were.
    usages: what is in use of each provider, where that was asked for instead of all holdings.
    services, services_after: the compute services before and after everything else was read.
    samples: direct look-ups of live servers, preferably of other projects, to see whether these credentials may look.
    control: the deleted listing asked for one of them that is still there, and must not be in it; None without a live server.
    nominated: the consumers that the listings do not show to be in order, each with a dossier; these are judged.
    dossiers: by uuid, for those, for the servers of nominated migrations and for the migrations of nominated servers.
    details: by provider, what those have that were asked for it.
    left_out: how many more consumers the listings would have nominated, had the reading been sound.
    aggregates: the host aggregates of Nova, which every API worker knows whatever cells it knows.
    host_lookups: by name, direct look-ups of hosts that are named somewhere and that a listing of Nova does not have.
    sampled_projects: the project of each of `samples` by the listing from which it was taken.
    retried: how many broken answers were asked for again.
    """

    cloud: Cloud
    started_at: str
    finished_at: str
    providers: t.Mapping[str, Provider]
    allocations: t.Mapping[str, Allocations]
    services: Answer[tuple[Service, ...]]
    hypervisors: Answer[tuple[Hypervisor, ...]]
    migrations: Answer[tuple[Migration, ...]]
    samples: tuple[Answer[Server], ...]
    control: Answer[tuple[Server, ...]] | None
    candidates: tuple[str, ...]
    evidence: t.Mapping[str, Evidence]
    services_after: Answer[tuple[Service, ...]]
    details: t.Mapping[str, ProviderDetails] = d.field(default_factory=dict)
    scope: Scope = Scope()
    trees: tuple[str, ...] | None = None
    usages: t.Mapping[str, Resources] = d.field(default_factory=dict)
    left_out: int = 0
    aggregates: tuple[Aggregate, ...] = ()
    host_lookups: t.Mapping[str, Answer[bool]] = d.field(default_factory=dict)
    sampled_projects: tuple[str | None, ...] = ()
    retried: int = 0

    @property
    def every_cell_listed(self) -> bool:
        """Whether `hypervisors` is Nova's own listing, and not what the servers of the cells that answer show (`_collector.answering_cells`)."""
        return self.hypervisors.request != LISTED_BY_SERVERS
