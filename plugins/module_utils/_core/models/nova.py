# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Nova says: services, compute nodes, servers, migrations and instance actions.

The words are their own. The classes are frozen, and made of JSON's types.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Collection

from .placement import Resources

# https://docs.openstack.org/api-ref/compute/#list-migrations; every other status is a migration
# under way, also `finished` (VERIFY_RESIZE, which keeps its source on purpose).
ENDED_MIGRATION_STATUSES = frozenset(
    {"confirmed", "reverted", "error", "failed", "completed", "cancelled", "done"}
)

# Of these, the ones after which Nova may not have cleaned up.
FAILED_MIGRATION_STATUSES = frozenset({"error", "failed"})

# Types of migrations that can fail when the guest already runs at the destination.
GUEST_LEAVING_MIGRATION_TYPES = frozenset({"evacuation", "live-migration"})

# Types of migrations in which Nova itself copies the guest, powered off, to the other host.
COLD_MIGRATION_TYPES = frozenset({"migration", "resize"})

# Of the statuses of an ended migration, the ones after which the server is at the destination.
SUCCESSFUL_MIGRATION_STATUSES = frozenset({"confirmed", "completed", "done"})

# The ones after which it is known where the server is; after a revert, at the source.
ARRIVED_MIGRATION_STATUSES = SUCCESSFUL_MIGRATION_STATUSES | {"reverted"}

# By type of migration, of all types that are known, the final statuses that say at which end the
# guest is. Nova gives them only to migrations of that type (nova/compute/manager.py and
# nova/compute/resource_tracker.py). It also sets a live migration `cancelled`, and so do operators
# who end one that is stuck. The source of an evacuation saves `completed` also for one that its
# destination did not finish: what came next shows it (ServerView.explain_failed_move_to).
CONCLUSIVE_STATUSES: t.Mapping[str, frozenset[str]] = {
    "migration": frozenset({"confirmed", "reverted"}),
    "resize": frozenset({"confirmed", "reverted"}),
    "live-migration": frozenset({"completed"}),
    "evacuation": frozenset({"done", "completed"}),
}

# The statuses of an evacuation on which nova-compute of its source acts at its next start: it
# destroys the guest of each such server that its hypervisor has, takes the server's allocation from
# its own compute node, and calls the evacuation `completed`. At the first start of a host that was
# deployed again there is no compute node yet, and the evacuation stays as it is
# (nova/compute/manager.py, _destroy_evacuated_instances).
UNFINISHED_EVACUATION_STATUSES = frozenset({"accepted", "pre-migrating", "done"})

# Statuses of a server that has no host, and gets none unless a user requests it.
UNHOSTED_STATUSES = frozenset({"SHELVED_OFFLOADED", "ERROR"})

# Instance actions that can give a host to a server that has none, with the event that the host
# itself records.
PLACING_ACTIONS = {
    "create": "compute__do_build_and_run_instance",
    "unshelve": "compute_unshelve_instance",
    "rebuild": "compute_rebuild_instance",
    "evacuate": "compute_rebuild_instance",
}

# Instance actions for which Nova makes a migration, which stays for as long as its server does.
MOVING_ACTIONS = frozenset({"migrate", "resize", "live-migration", "evacuate"})

# Statuses of a server that is being moved, or waits for a confirmation: it has a migration that is
# not over.
MOVING_STATUSES = ("MIGRATING", "RESIZE", "REVERT_RESIZE", "VERIFY_RESIZE")

# The tasks of a server that is being deleted.
DELETING_TASKS = ("deleting", "soft-deleting")

# The statuses that a task other than these gives to a server, so that one listing shows them all.
TASK_STATUSES = (
    *("MIGRATING", "RESIZE", "REVERT_RESIZE"),
    *("REBUILD", "REBOOT", "HARD_REBOOT", "PASSWORD"),
)

# The other tasks, which no status shows (nova/compute/task_states.py).
HIDDEN_TASKS = (
    *("powering-off", "powering-on", "pausing", "unpausing", "suspending", "resuming"),
    *("shelving", "shelving_image_pending_upload", "shelving_image_uploading"),
    *("shelving_offloading", "unshelving", "spawning", "rescuing", "unrescuing", "restoring"),
    *("image_snapshot", "image_snapshot_pending", "image_pending_upload", "image_uploading"),
    *("image_backup", "resize_confirming", "networking", "block_device_mapping"),
)

# The first instance action of every server.
CREATE_ACTION = "create"

# The instance action that gives a host to a shelved server, and leaves no migration behind.
UNSHELVE_ACTION = "unshelve"

# The instance action that makes the guest again. A server in ERROR without a host gets one by it.
REBUILD_ACTION = "rebuild"

# The instance action that sets the state of a server by hand, and hides the task of an action that
# may still wait for its host.
RESET_ACTION = "resetState"

# The instance action that gives another volume to a server, also as its root disk.
SWAPPING_ACTION = "swap_volume"

# Instance actions that attach or detach a port. While one runs the server has no task.
PORT_ACTIONS = frozenset({"attach_interface", "detach_interface"})

# The instance action that takes a server back to the source of a resize or cold migration.
REVERT_ACTION = "revertResize"

# The instance actions that end a resize or cold migration that is `finished`.
CONCLUDING_ACTIONS = frozenset({REVERT_ACTION, "confirmResize"})

# The instance actions that begin a resize or cold migration.
COLD_MOVING_ACTIONS = frozenset({"migrate", "resize"})

# The instance action that begins a live migration.
LIVE_MOVING_ACTION = "live-migration"

# Instance actions after which a host certainly runs the guest, with the event that it records.
STARTING_ACTIONS = {"start": "compute_start_instance", "reboot": "compute_reboot_instance"}

# Instance actions that are only possible for a server that was on a host.
SHELVING_ACTIONS = frozenset({"shelve", "shelveOffload"})

# The events that the host itself records of them (nova/compute/manager.py, shelve_instance and
# shelve_offload_instance).
SHELVING_EVENTS = frozenset({"compute_shelve_instance", "compute_shelve_offload_instance"})

# Instance actions that the API records for a delete, also for a soft delete.
DELETING_ACTIONS = frozenset({"delete", "forceDelete"})

# Instance actions that the API completes at once, so that they have no events and mean nothing for
# others that still run. `resetState` is not one of them: it hides the task of an action that may
# still wait for its host.
API_ACTIONS = frozenset({"lock", "unlock"})

# Statuses in which a server rests on its host. ERROR is never among them.
SETTLED_STATUSES = frozenset({"ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED", "RESCUE", "SHELVED"})

# Statuses of a server of which Nova neither confirms nor reverts a resize.
UNCONFIRMABLE_STATUSES = SETTLED_STATUSES | UNHOSTED_STATUSES


@d.dataclass(frozen=True)
class Service:
    """A service of Nova (`GET /os-services`).

    status: `UNKNOWN` for a service of an unreachable cell, which has little else.
    state: `up` or `down` by its last report. updated_at: the time of that report.
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
    """A compute node (`GET /os-hypervisors/detail`).

    uuid: also the uuid of its root provider.
    servers: those of the whole service, which for ironic means those of all its nodes; None where
        they were not requested.
    has, used: amounts by resource class as nova-compute last wrote them; `used` includes what the
        host reserves.
    running_vms: the number of servers as nova-compute last wrote it.
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

    # The classes of Placement that nova-compute counts as one in `used`: dedicated and shared CPUs
    # of guests. In `has` are the shared ones alone (nova/virt/libvirt/driver.py,
    # _get_vcpu_available), and nothing is reported of dedicated ones.
    PLACEMENT_CLASSES: t.ClassVar[t.Mapping[str, tuple[str, ...]]] = {
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
    def changed_at(self) -> str | None:
        """When Nova last changed the record; a record that was never updated has its creation."""
        return self.updated_at or self.created_at

    @property
    def ended(self) -> bool:
        """Whether the migration is over, with success or without."""
        return self.status in ENDED_MIGRATION_STATUSES

    @property
    def is_without_nodes(self) -> bool:
        """Whether it is a live migration that failed before conductor saved its compute nodes.

        Conductor saves both right before it asks the source to begin, and nobody takes them away
        (nova/conductor/tasks/live_migrate.py, _execute).
        """
        has_failed = self.type == "live-migration" and self.status in FAILED_MIGRATION_STATUSES
        return has_failed and not (self.source_node or self.dest_node)

    @property
    def is_unconfirmed(self) -> bool:
        """Whether it has taken the server to the destination, and can be confirmed or reverted."""
        return self.type in COLD_MIGRATION_TYPES and self.status == "finished"

    @property
    def is_unfinished_evacuation(self) -> bool:
        """Whether nova-compute of its source destroys its server there at the next start."""
        return self.type == "evacuation" and self.status in UNFINISHED_EVACUATION_STATUSES

    def has_source(self, names: t.Iterable[str | None]) -> bool:
        """Return whether one of `names` is that of its source, whatever their upper case is.

        MariaDB, in which nova-compute searches for its own name, takes no notice of upper case.
        """
        sources = {(name or "").casefold() for name in (self.source_compute, self.source_node)}
        return not sources.isdisjoint((name or "").casefold() for name in names if name)

    def is_completed_at(self, host: str | None, nodes: t.Collection[str | None]) -> bool:
        """Return whether a start of nova-compute completes this evacuation, by the names in it.

        Of several evacuations of one server, each start completes only one
        (nova/compute/manager.py, _destroy_evacuated_instances).
        """
        # Without a listed node, that of the host is not known.
        return self.source_compute == host and (not nodes or self.source_node in nodes)

    @property
    def is_inconclusive(self) -> bool:
        """Whether it is over, and its status does not say at which end the guest is.

        A final status that Nova never gives to a migration of this type counts as well: an operator
        has written it to end a migration that was stuck.
        """
        conclusive = CONCLUSIVE_STATUSES.get(self.type, frozenset())
        return self.ended and self.status not in conclusive

    @property
    def has_arrived(self) -> bool:
        """Whether its type and status say that it took the server to the destination."""
        conclusive = CONCLUSIVE_STATUSES.get(self.type, frozenset())
        return self.status in conclusive - {"reverted"}


@d.dataclass(frozen=True)
class Aggregate:
    """A host aggregate of Nova (`GET /os-aggregates`).

    id: the number by which Nova's requests name it; None where only the rest is known.
    """

    uuid: str
    name: str
    zone: str | None
    hosts: tuple[str, ...]
    metadata: t.Mapping[str, str] = d.field(default_factory=dict)
    id: int | None = None


@d.dataclass(frozen=True)
class Flavor:
    """The flavor of a server, as kept with the server; RAM and swap are in MiB, disks in GiB.

    extra_specs: None where these credentials may not see them.
    """

    vcpus: int
    ram: int
    disk: int
    ephemeral: int
    swap: int
    extra_specs: t.Mapping[str, str] | None


@d.dataclass(frozen=True)
class Server:
    """A server (`GET /servers/{id}`).

    task_known, host_known: whether the answer has the field at all; False means that None says
        nothing about the task or the host.
    flavor: None before compute microversion 2.47.
    image_properties: None before compute microversion 2.98, and for a server without an image.
    root_device: the name of its root disk, such as `/dev/vda`.
    launched_at: when a host last launched its guest, in UTC; None for one that never ran.
    pinned_zone: the availability zone to which the user bound the server; None where it is not
        bound, and before compute microversion 2.96.
    fault: the message of the fault that Nova shows for it, None without one.
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
    root_device: str | None = None
    pinned_zone: str | None = None
    launched_at: str | None = None
    fault: str | None = None

    @property
    def is_idle(self) -> bool:
        """Whether it is on a host, in a status in which it rests, and without a task."""
        # Where the answer leaves the task out, one may be under way.
        has_no_task = self.task_known and self.task_state is None
        return self.status in SETTLED_STATUSES and has_no_task and bool(self.host and self.node)


@d.dataclass(frozen=True)
class ActionEvent:
    """A step of an instance action, and the host that did it.

    finish_time: None while the step runs, and when it was cut off.
    failed_in_copy: whether its traceback shows that the driver of the source gave up a resize or
        cold migration, before or while it copied the disks.
    """

    event: str
    start_time: str | None
    finish_time: str | None
    result: str | None
    host: str | None = None
    failed_in_copy: bool = False


@d.dataclass(frozen=True)
class Action:
    """An instance action (`GET /servers/{id}/os-instance-actions`).

    events: empty where the action was not requested by itself.
    updated_at: when its newest event began or ended; None before compute microversion 2.58.
    """

    action: str
    request_id: str
    user: str | None
    start_time: str | None
    message: str | None
    events: tuple[ActionEvent, ...] = ()
    updated_at: str | None = None

    @property
    def is_finished(self) -> bool:
        """Whether no part of the action can still wait for a host.

        Conductor hands over and then records the end of its own part, so the host must have ended
        its part, or some part must have failed. Of an event that was recorded twice, as when a
        build is tried on a second host, Nova ends only the first row (nova/db/main/api.py,
        action_event_finish): the times of all rows of a name count together.
        """
        if self.action in API_ACTIONS:
            return True
        if not self.events:
            return False
        names = {event.event for event in self.events}
        host_event = PLACING_ACTIONS.get(self.action)
        host_has_begun = host_event is None or host_event in names
        if not host_has_begun and not self._has_failed():
            return False
        return all(self._has_ended(name) for name in names)

    @property
    def placing_hosts(self) -> frozenset[str | None]:
        """The hosts that began their part of an action that can give a server a host.

        None stands for a host that these credentials may not see.
        """
        host_event = PLACING_ACTIONS.get(self.action)
        return frozenset(event.host for event in self.events if event.event == host_event)

    @property
    def shelving_hosts(self) -> frozenset[str | None]:
        """The hosts that ended their part of an action that shelves, and did not fail.

        None stands for a host that these credentials may not see.
        """
        events = SHELVING_EVENTS if self.action in SHELVING_ACTIONS else ()
        return self._get_successful_hosts(events)

    @property
    def unshelving_hosts(self) -> frozenset[str | None]:
        """The hosts that created the guest of a server that was unshelved."""
        return self.successful_placing_hosts if self.action == UNSHELVE_ACTION else frozenset()

    @property
    def successful_placing_hosts(self) -> frozenset[str | None]:
        """The hosts that ended their part of an action that can give a host, and did not fail."""
        # Nova may leave out the name of an event: None is no name.
        event = PLACING_ACTIONS.get(self.action)
        return self._get_successful_hosts({event}) if event else frozenset()

    def _has_failed(self) -> bool:
        return any(event.result == "Error" for event in self.events)

    def _get_successful_hosts(self, names: Collection[str]) -> frozenset[str | None]:
        return frozenset(
            event.host
            for event in self.events
            if event.event in names and event.finish_time and event.result == "Success"
        )

    def _has_ended(self, name: str) -> bool:
        rows = [event for event in self.events if event.event == name]
        last_start = max((row.start_time or "" for row in rows), default="")
        last_finish = max((row.finish_time or "" for row in rows), default="")
        return bool(last_finish) and last_finish >= last_start
