# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""The words of the collection as data: what Placement and Nova said, and what follows from it.

Everything here is frozen and made of JSON's types, so that a reading can be kept, compared and judged again.
The fields keep the names that the two APIs give them wherever there is one.
"""

from __future__ import annotations

import dataclasses as d
import hashlib
import typing as t

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Iterable, Mapping

Resources = t.Mapping[str, int]
"""Amounts by resource class, such as `{"VCPU": 2, "MEMORY_MB": 2048}`."""

Holding = t.Mapping[str, Resources]
"""Amounts by provider uuid: all that one consumer holds."""

T = t.TypeVar("T")

# https://docs.openstack.org/api-ref/compute/#list-migrations; every other status is a migration under way,
# `finished` (VERIFY_RESIZE, which holds its source on purpose) included.
ENDED_MIGRATION = frozenset({"confirmed", "reverted", "error", "failed", "completed", "cancelled", "done"})

# Of these, the ones after which nobody may have cleaned up.
FAILED_MIGRATION = frozenset({"error", "failed"})

# Types of migrations that can fail when the guest already runs at the destination.
MAY_LEAVE_GUEST = frozenset({"evacuation", "live-migration"})

# Types of migrations in which Nova itself copies the guest, powered off, from one host to the other.
COLD_MIGRATION = frozenset({"migration", "resize"})

# Of these, the ones after which the server is at the destination.
ARRIVED_MIGRATION = frozenset({"confirmed", "completed", "done"})

# Statuses of a server that has no host and will have none unless somebody asks for it.
UNHOSTED_STATUS = frozenset({"SHELVED_OFFLOADED", "ERROR"})

# Instance actions that can give a host to a server that has none, with the event that the host itself records.
PLACING_ACTIONS = {
    "create": "compute__do_build_and_run_instance",
    "unshelve": "compute_unshelve_instance",
    "rebuild": "compute_rebuild_instance",
    "evacuate": "compute_rebuild_instance",
}

# Instance actions for which Nova makes a migration, which stays for as long as its server does.
MOVING_ACTIONS = frozenset({"migrate", "resize", "live-migration", "evacuate"})

# The instance action that gives a host to a server that was shelved, and leaves no migration behind.
UNSHELVE_ACTION = "unshelve"

# The instance action that sets the state of a server by hand, and hides the task of an action that may still wait for its host.
RESET_ACTION = "resetState"

# The instance action that takes a server back to the source of a resize or cold migration.
REVERT_ACTION = "revertResize"

# The instance actions that begin one.
COLD_MOVING_ACTIONS = frozenset({"migrate", "resize"})

# Instance actions after which a host runs the guest for certain, with the event that it records.
STARTING_ACTIONS = {"start": "compute_start_instance", "reboot": "compute_reboot_instance"}

# Instance actions that only a server takes that was on a host.
SHELVING_ACTIONS = frozenset({"shelve", "shelveOffload"})

# The events that the host itself records of them (nova/compute/manager.py, shelve_instance and shelve_offload_instance).
SHELVING_EVENTS = frozenset({"compute_shelve_instance", "compute_shelve_offload_instance"})

# Instance actions that the API records for a delete, that of a soft delete included.
DELETING_ACTIONS = frozenset({"delete", "forceDelete"})

# Instance actions that the API completes at once, so that they have no events and mean nothing for others that still run.
# `resetState` is not one of them: it hides the task of an action that may still wait for its host.
API_ACTIONS = frozenset({"lock", "unlock"})

# The traits that only Nova gives to a provider, and gives to the root provider of each compute node: COMPUTE_NODE since Train
# (nova/compute/resource_tracker.py), OWNER_NOVA since 2026.
NOVA_TRAITS = frozenset({"COMPUTE_NODE", "OWNER_NOVA"})

# Statuses in which a server rests on its host. ERROR is never among them.
SETTLED_STATUS = frozenset({"ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED", "RESCUE", "SHELVED"})


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
class Provider:
    """A resource provider (`GET /resource_providers`)."""

    uuid: str
    name: str
    generation: int
    root: str
    parent: str | None
    sharing: bool = False

    @property
    def is_host(self) -> bool:
        """Whether it may stand for a host: a root that shares its inventory with no other tree."""
        return self.root == self.uuid and not self.sharing


@d.dataclass(frozen=True)
class Inventory:
    """What a provider has of one resource class (`GET /resource_providers/{uuid}/inventories`)."""

    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float

    @property
    def capacity(self) -> int:
        """The most that can be in use, computed and cut to a whole number as Placement does it."""
        return int((self.total - self.reserved) * self.allocation_ratio)


@d.dataclass(frozen=True)
class Details:
    """What a provider has, in use and about it; a part that was not asked for is empty."""

    inventories: t.Mapping[str, Inventory] = d.field(default_factory=dict)
    usages: Resources = d.field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()

    @property
    def free(self) -> dict[str, int]:
        """Amounts by resource class that can still be claimed; below zero where more is in use than there is."""
        return {cls: inventory.capacity - self.usages.get(cls, 0) for cls, inventory in self.inventories.items()}


@d.dataclass(frozen=True)
class Summary:
    """What a list of candidates says of a provider in the tree of one."""

    root: str
    traits: frozenset[str]
    capacity: Resources
    used: Resources


@d.dataclass(frozen=True)
class Candidates:
    """Where Placement would put an allocation (`GET /allocation_candidates`): the shares that it could have, and of whom."""

    holdings: tuple[Holding, ...]
    summaries: t.Mapping[str, Summary]


@d.dataclass(frozen=True)
class Allocation:
    """Everything that one consumer holds (`GET /allocations/{consumer}`).

    `generation` is None and `resources` empty when Placement does not know the consumer. `type` is None when it
    has none ("unknown" to Placement). `age_seconds` is the time since the newest write, by Placement's own clock.
    """

    consumer: str
    generation: int | None
    project: str | None
    user: str | None
    type: str | None
    resources: Holding
    age_seconds: int | None


@d.dataclass(frozen=True)
class Service:
    """A service of Nova (`GET /os-services`); a service of an unreachable cell has the status `UNKNOWN` and little else.

    `state` is `up` or `down` by its last report, `updated_at` the time of that report.
    """

    binary: str
    host: str
    status: str
    state: str | None
    forced_down: bool = False
    disabled_reason: str | None = None
    updated_at: str | None = None
    id: str | None = None
    zone: str | None = None


@d.dataclass(frozen=True)
class Hypervisor:
    """A compute node (`GET /os-hypervisors/detail`); `uuid` is also the uuid of its root provider.

    `servers` are those of the whole service, which for ironic means those of all its nodes; None where they were not asked for.
    `has` and `used` are amounts by resource class and `running_vms` a number of servers, all as nova-compute last wrote them;
    `used` includes what the host reserves.
    """

    uuid: str
    name: str
    host: str
    state: str
    status: str
    servers: tuple[str, ...] | None
    has: Resources = d.field(default_factory=dict)
    used: Resources = d.field(default_factory=dict)
    running_vms: int = 0

    # The classes of Placement that nova-compute counts as one: pinned and shared processors together.
    COUNTED: t.ClassVar[t.Mapping[str, tuple[str, ...]]] = {
        "VCPU": ("VCPU", "PCPU"),
        "MEMORY_MB": ("MEMORY_MB",),
        "DISK_GB": ("DISK_GB",),
    }


@d.dataclass(frozen=True)
class Migration:
    """A migration (`GET /os-migrations`)."""

    uuid: str
    server: str
    type: str
    status: str
    source_compute: str | None
    source_node: str | None
    dest_compute: str | None
    dest_node: str | None
    created_at: str | None
    updated_at: str | None

    @property
    def ended(self) -> bool:
        return self.status in ENDED_MIGRATION


@d.dataclass(frozen=True)
class Aggregate:
    """A host aggregate of Nova (`GET /os-aggregates`)."""

    uuid: str
    name: str
    zone: str | None
    hosts: tuple[str, ...]


@d.dataclass(frozen=True)
class Flavor:
    """What a server was given, as kept with the server; RAM and swap in MiB, disks in GiB.

    `extra_specs` is None where these credentials may not see them.
    """

    vcpus: int
    ram: int
    disk: int
    ephemeral: int
    swap: int
    extra_specs: t.Mapping[str, str] | None


@d.dataclass(frozen=True)
class Port:
    """A Neutron port of a server; `asks_placement` is None where these credentials may not see whether it asks for resources."""

    uuid: str
    vnic_type: str | None
    asks_placement: bool | None

    @property
    def plain(self) -> bool:
        """Whether it is known to ask neither Placement for resources nor its host for a device."""
        return self.asks_placement is False and self.vnic_type in (None, "normal")


@d.dataclass(frozen=True)
class Server:
    """A server (`GET /servers/{id}`).

    `task_known` and `host_known` tell a server without a task or a host from an answer that left the field out.
    `flavor` is None before compute microversion 2.47, `image_properties` before 2.98 and for a server without an image.
    """

    uuid: str
    name: str
    status: str
    project: str | None
    user: str | None
    host: str | None
    node: str | None
    task_state: str | None
    task_known: bool
    host_known: bool
    created: str | None
    updated: str | None
    terminated_at: str | None
    image: str | None = None
    volumes: tuple[str, ...] = ()
    flavor: Flavor | None = None
    image_properties: t.Mapping[str, str] | None = None


@d.dataclass(frozen=True)
class ActionEvent:
    """A step of an instance action, and the host that took it; without a `finish_time` it still runs, or was cut.

    failed_in_copy: whether its traceback shows that the driver of the source gave up a resize or cold migration, before or while it
        copied the disks.
    """

    event: str
    start_time: str | None
    finish_time: str | None
    result: str | None
    host: str | None = None
    failed_in_copy: bool = False


@d.dataclass(frozen=True)
class Action:
    """An instance action (`GET /servers/{id}/os-instance-actions`); its events only where it was asked for by itself."""

    action: str
    request_id: str
    user: str | None
    start_time: str | None
    message: str | None
    events: tuple[ActionEvent, ...] = ()

    @property
    def over(self) -> bool:
        """Whether nothing of it can still be waiting for a host.

        Conductor records the end of its own part before it hands over, so the host must have ended its part, or some part
        must have failed. Of an event that was recorded twice, as when a build is tried on a second host, Nova ends only the
        first row (nova/db/main/api.py, action_event_finish): the times of all rows of a name count together.
        """
        if self.action in API_ACTIONS:
            return True
        names = {event.event for event in self.events}
        handed_over = PLACING_ACTIONS.get(self.action)
        ended = handed_over is None or handed_over in names or any(event.result == "Error" for event in self.events)
        return bool(names) and ended and all(self._ended(name) for name in names)

    @property
    def taken_up_by(self) -> frozenset[str | None]:
        """The hosts that began their part of an action that can give a host; None for one that these credentials may not see."""
        handed_over = PLACING_ACTIONS.get(self.action)
        return frozenset(event.host for event in self.events if event.event == handed_over)

    @property
    def shelved_by(self) -> frozenset[str | None]:
        """The hosts that ended their part of an action that shelves, and did not fail; None for one that these credentials may not see."""
        return self._done_by(SHELVING_EVENTS) if self.action in SHELVING_ACTIONS else frozenset()

    @property
    def unshelved_on(self) -> frozenset[str | None]:
        """The hosts that made the guest of a server that was unshelved."""
        return self._done_by({PLACING_ACTIONS[UNSHELVE_ACTION]}) if self.action == UNSHELVE_ACTION else frozenset()

    def _done_by(self, names: Collection[str]) -> frozenset[str | None]:
        return frozenset(event.host for event in self.events if event.event in names and event.finish_time and event.result == "Success")

    def _ended(self, name: str) -> bool:
        rows = [event for event in self.events if event.event == name]
        finished = max((row.finish_time or "" for row in rows), default="")
        return bool(finished) and finished >= max(row.start_time or "" for row in rows)


@d.dataclass(frozen=True)
class Dossier:
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

    def has(self, name: str) -> bool:
        """Tell whether a root provider (by uuid), a migration (by uuid) or a service (by host) is in this part."""
        return int(hashlib.sha256(name.encode()).hexdigest(), 16) % self.count == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


@d.dataclass(frozen=True)
class Scope:
    """What is looked at; nothing named stands for everything.

    hosts: hypervisors by name or uuid. consumers: uuids; a server's stands for its migrations' too. projects: uuids.
    mode: `full`, or `triage`, which asks only about hosts whose figures look wrong.
    shard: the part of the cloud that is read, None for all of it; see `_shards`.
    """

    hosts: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    mode: str = "full"
    shard: Shard | None = None

    @property
    def narrow(self) -> bool:
        """Whether it names hosts or consumers, so that nothing is read of others but what these need."""
        return bool(self.hosts or self.consumers)

    @property
    def closely(self) -> bool:
        """Whether everybody in it is looked at closely, whatever the listings say."""
        return self.narrow or "wrong_owner" in self.kinds

    def wants(self, *kinds: str) -> bool:
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
    holdings: t.Mapping[str, Holding]
    services: Answer[tuple[Service, ...]]
    hypervisors: Answer[tuple[Hypervisor, ...]]
    migrations: Answer[tuple[Migration, ...]]
    samples: tuple[Answer[Server], ...]
    control: Answer[tuple[Server, ...]] | None
    nominated: tuple[str, ...]
    dossiers: t.Mapping[str, Dossier]
    services_after: Answer[tuple[Service, ...]]
    details: t.Mapping[str, Details] = d.field(default_factory=dict)
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
        """Whether `hypervisors` is Nova's own listing, and not what the servers of the cells that answer show (`_answering_cells`)."""
        return self.hypervisors.request != LISTED_BY_SERVERS


# The types of services that allocate from Placement themselves, and what each is called here: Zun (also on Nova's own providers, without a
# consumer type, and by either name), Cyborg and Blazar.
ALLOCATORS: Mapping[str, str] = {
    "container": "container",
    "application-container": "container",
    "accelerator": "accelerator",
    "reservation": "reservation",
}


@d.dataclass(frozen=True)
class Policy:
    """What the user asks of the judge; ages in seconds.

    The three for parked resizes, stuck migrations and stale services say from when on they are reported.

    ignore_allocators: the services that hold nothing on Nova's hosts, as somebody found out.
    exclusion_notes: of what is excluded with an end or a reason, what is to be said of it.
    ended_exclusions: what is excluded no longer, as sentences.
    """

    min_age: int = 3600
    forgotten_min_age: int = 86400
    parked_min_age: int = 7 * 86400
    stuck_min_age: int = 86400
    stale_min_age: int = 7 * 86400
    exclude_consumers: frozenset[str] = frozenset()
    exclude_providers: frozenset[str] = frozenset()
    ignore_allocators: frozenset[str] = frozenset()
    exclusion_notes: Mapping[str, str] = d.field(default_factory=dict)
    ended_exclusions: tuple[str, ...] = ()

    def excludes(self, names: Iterable[str]) -> str | None:
        """Name one of these providers, or of their hosts, that is excluded."""
        named = self.exclude_providers.intersection(names)
        return f"Provider {min(named)} is excluded by name{self.exclusion_note(named)}." if named else None

    def exclusion_note(self, names: Collection[str]) -> str:
        """Return until when the first of the names that are excluded is, and why, if the user said so."""
        return self.exclusion_notes.get(min(names), "") if names else ""
