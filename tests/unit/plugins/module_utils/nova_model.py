"""A model of Nova's rows and allocations, beside the true state of the guests.

The operations (`nova_operations`) change a `Nova`. A `World` is what its APIs would show; what a
server needs (`needed`) is known from where its guests and disks are, and from nothing that the
rules can see.
"""

from __future__ import annotations

import dataclasses as d
import typing as t

from .....plugins.module_utils._core.models.nova import Action, ActionEvent
from .....plugins.module_utils._core.models.placement import Allocation, Allocations
from .world import NOW, OLD, PROJECT, World

API, CONDUCTOR = "nova-api", "nova-conductor"
EVACUATED = "left by evacuation"
KEPT = object()

# nova/api/openstack/common.py, _STATE_MAP: by vm_state, and by the task if that says more.
STATUS = {
    "active": "ACTIVE",
    "stopped": "SHUTOFF",
    "building": "BUILD",
    "error": "ERROR",
    "resized": "VERIFY_RESIZE",
    "shelved": "SHELVED",
    "shelved_offloaded": "SHELVED_OFFLOADED",
    "soft-delete": "SOFT_DELETED",
    "deleted": "DELETED",
}
TASK_STATUS = {
    "rebuild": "REBUILD",
    "migrating": "MIGRATING",
    "resize_reverting": "REVERT_RESIZE",
    "resize": "RESIZE",
}

SMALL = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
LARGE = {"VCPU": 4, "MEMORY_MB": 2048, "DISK_GB": 10}


class Failed(Exception):
    """Something that an operation did not expect: its handlers run.

    in_copy: whether the driver of a source raised it while it copied the disks of a resize.
    """

    in_copy = False


class RolledBack(Failed):
    """An InstanceFaultRollback, or a driver's NotImplementedError.

    The server returns to its earlier state.
    """


class Preempted(Failed):
    """An UnexpectedTaskStateError.

    Something else, such as a reset of the state, has changed the task meanwhile.
    """


class Gone(Failed):
    """An InstanceNotFound or a MigrationNotFound."""


class Aborted(Failed):
    """The driver reports that a live migration was aborted, or failed before the guest left."""


@d.dataclass(frozen=True)
class Step:
    """The progress of an operation: what was just done, and which service continues.

    If it is `queued` for that service, it survives its restart.
    """

    where: str
    done: str
    queued: bool = False


Steps = t.Generator[Step, None, t.Any]


class Nova:
    """Three compute nodes, and what is on them.

    A guest's place is the uuid of the node's root provider.

    up: the hosts whose nova-compute runs.
    placement: whether it answers, refuses what Nova asks (which Nova often only logs), or raises.
    copies: for each server, by place, the share that a guest or a disk there lives on; a disk kept
    for a revert has its own place, and so has the guest on a host that was left by evacuation,
    which is needed as soon as nova-compute runs there and has not destroyed it.
    coming: the same, of a place that an operation under way has claimed and goes on to use.
    strict: also what Nova itself has given up, or errored, is needed while the guest, or its last
    disk, is there in fact.
    """

    def __init__(self, pooled: bool = False, devices: bool = False, strict: bool = True) -> None:
        self.strict = strict
        self.world = World()
        self.hosts = tuple(self.world.host(f"compute-{number}") for number in (1, 2, 3))
        self.pool = self.world.provider("pool", sharing=True) if pooled else None
        self.devices = {
            host: [
                self.world.provider(f"{self.world.nodes[host].name}_{name}", host)
                for name in ("a", "b")
            ]
            for host in self.hosts
            if devices
        }
        self.up = set(self.hosts)
        self.placement = "answers"
        self.vm: dict[str, str] = {}
        self.copies: dict[str, dict[t.Any, Allocations]] = {}
        self.coming: dict[str, dict[str, Allocations]] = {}
        self.flavors: dict[str, t.Any] = {}
        self._ticks = 0
        self.world.server(self.hosts[2], self.hosts[2], name="bystander")

    # The true state.

    def share(self, host: str, large: bool, device: int = 0) -> Allocations:
        """Return what the scheduler allocates on `host`.

        Disk is from the pool if there is one, and a device of the host is added if it has some.
        """
        flavor = dict(LARGE if large else SMALL)
        claim: dict[str, dict[str, int]] = {host: flavor}
        if self.pool:
            claim[self.pool] = {"DISK_GB": flavor.pop("DISK_GB")}
        if self.devices:
            claim[self.devices[host][device]] = {"CUSTOM_VF": 1}
        return claim

    def needed(self, server: str) -> dict[str, dict[str, int]]:
        """Return the amounts by provider and class that `server` uses.

        These are its guests, the disks kept for a revert, and guests on their way.

        The pool counts the largest of them, since Nova itself does not allocate it twice for an
        evacuation.
        """
        need: dict[str, dict[str, int]] = {}
        if server not in self.world.servers:
            return need
        present = [
            claim
            for place, claim in self.copies.get(server, {}).items()
            if not self.is_given_up(place)
        ]
        for claim in (*present, *self.coming.get(server, {}).values()):
            for provider, share in claim.items():
                known = need.setdefault(provider, {})
                for cls, amount in share.items():
                    known[cls] = (
                        max(known.get(cls, 0), amount)
                        if provider == self.pool
                        else known.get(cls, 0) + amount
                    )
        return need

    def is_given_up(self, place: t.Any) -> bool:
        """Return whether it is of an evacuated guest on a host that is still down."""
        return isinstance(place, tuple) and place[0] == EVACUATED and place[1] not in self.up

    def give_up(self, server: str, host: str) -> None:
        """Evacuate: from now on Nova takes only the guest on `host` for this server's."""
        here = self.copies.get(server, {})
        for place in [place for place in here if place != host]:
            claim = here.pop(place)
            if not isinstance(place, tuple):
                here[EVACUATED, place] = claim

    def arrive(self, server: str, host: str) -> None:
        """Put a guest, or its disk, on `host`."""
        claim = self.coming.get(server, {}).pop(host, None) or self.share(host, self.large(server))
        here = self.copies.setdefault(server, {})
        here.pop((EVACUATED, host), None)
        here[host] = claim

    def remake(self, server: str, host: str) -> None:
        """Replace the disk, on the existing allocation."""
        here = self.copies.setdefault(server, {})
        here.setdefault(
            host,
            {
                uuid: share
                for uuid, share in self.held(server).items()
                if self.world.providers[uuid].root == host
            },
        )
        self.forget_revert(server)

    def stays(self, server: str) -> None:
        """Nothing more arrives for `server`: its operation fails."""
        self.coming.pop(server, None)

    def leave(self, server: str, *places: t.Any) -> None:
        for place in places:
            self.copies.get(server, {}).pop(place, None)

    def keep_for_revert(self, server: str, host: str) -> None:
        """Keep the disk on `host` for a revert."""
        here = self.copies.get(server, {})
        if host not in here:
            raise Failed(f"no guest of {server} on {host}")
        here["kept for a revert", host] = here.pop(host)

    def restore_kept_disk(self, server: str, host: str) -> None:
        here = self.copies.setdefault(server, {})
        if ("kept for a revert", host) in here:
            here[host] = here.pop(("kept for a revert", host))

    def forget_revert(self, server: str) -> None:
        """Forget the revert of a server that is no longer VERIFY_RESIZE.

        A disk kept for it is needed only if it is the last one.
        """
        here = self.copies.get(server, {})
        if self.host(server) in here:
            self.leave(server, *(place for place in list(here) if place[0] == "kept for a revert"))

    def has_guest(self, server: str, host: str | None) -> bool:
        return host in self.copies.get(server, {})

    def large(self, server: str) -> bool:
        return bool(self.flavors.get(server))

    # An operator who changes names in the databases.

    def list_free_names(self) -> list[str]:
        """Return the names that another machine can take over."""
        taken = {provider.name for provider in self.world.providers.values()}
        for node in self.world.nodes.values():
            taken |= {node.host, node.name}
        return sorted({"compute-1", "compute-2", "compute-3"} - taken)

    def add_machine(self, name: str) -> None:
        """Add a new machine, which may have the name that another one had."""
        root = self.world.host(name)
        self.hosts = (*self.hosts, root)
        self.up.add(root)
        if self.devices:
            self.devices[root] = [
                self.world.provider(f"{name}_{device}", root) for device in ("new_a", "new_b")
            ]

    # Nova's rows.

    def create(self) -> str:
        server = self.world.server(None, status="BUILD")
        self.vm[server], self.flavors[server] = "building", False
        self.save(server, task="scheduling")
        return server

    def task(self, server: str) -> str | None:
        return self._row(server).task_state

    def host(self, server: str) -> str | None:
        """Return the root of the node where Nova has `server`."""
        name = self._row(server).node
        return next((root for root, node in self.world.nodes.items() if node.name == name), None)

    def save(
        self,
        server: str,
        vm: str | None = None,
        task: t.Any = KEPT,
        host: t.Any = KEPT,
        expected: tuple[str | None, ...] | None = None,
    ) -> None:
        """nova/objects/instance.py, save: `expected` are the allowed current tasks."""
        row = self._row(server)
        if expected is not None and row.task_state not in expected:
            self.stays(server)
            raise Preempted(row.task_state)
        self.vm[server] = vm or self.vm[server]
        task = row.task_state if task is KEPT else task
        status = STATUS[self.vm[server]]
        if status in ("ACTIVE", "SHUTOFF", "ERROR", "VERIFY_RESIZE"):
            told = (told for prefix, told in TASK_STATUS.items() if (task or "").startswith(prefix))
            status = (
                next(told, status)
                if status != "ERROR" or (task or "").startswith("rebuild")
                else status
            )
        node = self.world.nodes.get(host) if host is not KEPT else None
        where = (
            {}
            if host is KEPT
            else {"host": node.host if node else None, "node": node.name if node else None}
        )
        self.world.servers[server] = d.replace(
            row, status=status, task_state=task, updated=self._time(), **where
        )

    def destroy(self, server: str) -> None:
        """nova/objects/instance.py, destroy: the rows of its migrations are deleted too."""
        self._row(server)
        self.world.delete(server)
        for migration in [
            known.uuid for known in self.world.migrations.values() if known.server == server
        ]:
            del self.world.migrations[migration]
            self.world.unlisted_migrations.add(migration)

    def mark_deleted(self, server: str) -> None:
        """Mark it as deleted in the database, as an operator does.

        Only its own row, and not as Nova does.
        """
        if server in self.world.servers:
            self.world.delete_by_hand(server)

    def purge(self) -> None:
        """nova-manage db archive_deleted_rows --purge."""
        self.world.deleted.clear()
        self.world.marked_deleted.clear()
        self.world.unlisted_migrations.clear()

    def migration(
        self, server: str, kind: str, status: str, dest: str | None = None, **fields: t.Any
    ) -> str:
        source = self.host(server)
        migration = self.world.migration(
            server, source or self.hosts[0], dest or "", status, type=kind
        )
        self.set(migration, created_at=self._time(), **fields)
        return migration

    def set(self, migration: str, dest: str | None = None, **fields: t.Any) -> None:
        """Save fields of a migration's row."""
        if migration not in self.world.migrations:
            raise Gone(migration)
        if dest:
            fields |= {
                "dest_compute": self.world.nodes[dest].host,
                "dest_node": self.world.nodes[dest].name,
            }
        self.world.migrations[migration] = d.replace(
            self.world.migrations[migration], updated_at=self._time(), **fields
        )

    def with_status(self, server: str, *statuses: str, kind: str | None = None) -> str | None:
        """Return the oldest migration of `server` in one of `statuses`.

        As in nova/objects/migration.py, get_by_instance_and_status.
        """
        rows = (
            row
            for row in self.world.migrations.values()
            if row.server == server and row.status in statuses
        )
        return next((row.uuid for row in rows if kind in (None, row.type)), None)

    def place(self, migration: str, end: str) -> str | None:
        """Return the root of the `source` or the `dest` of a migration."""
        if migration not in self.world.migrations:
            raise Gone(migration)
        name = getattr(self.world.migrations[migration], f"{end}_compute")
        return next((root for root, node in self.world.nodes.items() if node.host == name), None)

    def _row(self, server: str) -> t.Any:
        if server not in self.world.servers:
            raise Gone(server)
        return self.world.servers[server]

    # Instance actions, newest first.

    def act(self, server: str, action: str) -> None:
        known = self.world.actions.get(server, ())
        self.world.actions[server] = (
            Action(action, f"req-{len(known)}", "user", self._time(), None),
            *known,
        )

    def event_begins(self, server: str, name: str, host: str | None = None) -> str:
        """Record an event of the newest action, on the host with the root `host` if given.

        Returns its request.
        """
        newest, *older = self.world.actions[server]
        event = ActionEvent(
            name, self._time(), None, None, self.world.nodes[host].host if host else None
        )
        self.world.actions[server] = (d.replace(newest, events=(*newest.events, event)), *older)
        return newest.request_id

    def event_ends(
        self, server: str, request: str, name: str, result: str, in_copy: bool = False
    ) -> None:
        """End the first of several events of one name.

        As Nova does: nova/db/main/api.py, action_event_finish.
        """

        def ended(action: Action) -> Action:
            first = next(
                (number for number, event in enumerate(action.events) if event.event == name), None
            )
            if action.request_id != request or first is None:
                return action
            end = d.replace(
                action.events[first],
                finish_time=self._time(),
                result=result,
                failed_in_copy=in_copy,
            )
            return d.replace(
                action, events=(*action.events[:first], end, *action.events[first + 1 :])
            )

        self.world.actions[server] = tuple(map(ended, self.world.actions.get(server, ())))

    def _time(self) -> str:
        self._ticks += 1
        return f"{NOW[:-1]}.{self._ticks:06}"

    # Placement, as nova/scheduler/client/report.py uses it.

    def held(self, consumer: str) -> Allocations:
        return (
            self.world.allocations[consumer].resources if consumer in self.world.allocations else {}
        )

    def put(self, consumer: str, resources: Allocations) -> None:
        """Write once: the consumer's generation increases.

        An emptied consumer is deleted, and starts again at 1.
        """
        before = self.world.allocations.pop(consumer, None)
        if resources:
            generation = ((before.generation or 0) if before else 0) + 1
            self.world.allocations[consumer] = Allocation(
                consumer, generation, PROJECT, "user", None, dict(resources), OLD
            )

    def claim(self, server: str, host: str, large: bool, device: int = 0) -> None:
        """claim_resources, which may find an existing allocation of the server.

        Only providers without an allocation are added to that.
        """
        if not self._answered():
            raise Failed("no valid host")
        claim = self.share(host, large, device)
        self.coming.setdefault(server, {})[host] = claim
        self.put(server, {**claim, **self.held(server)})

    def move(self, source: str, target: str) -> bool:
        """move_allocations: the allocation of the target is overwritten."""
        if not self.held(source):
            if self.held(target):
                return True
            raise Failed("nothing to move")
        if not self._answered():
            return False
        self.put(target, self.held(source))
        self.put(source, {})
        return True

    def remove_tree(self, server: str, root: str | None) -> bool:
        """remove_provider_tree_from_instance_allocation."""
        if not self._answered():
            return False
        of_tree = {uuid for uuid, provider in self.world.providers.items() if provider.root == root}
        self.put(
            server,
            {uuid: share for uuid, share in self.held(server).items() if uuid not in of_tree},
        )
        return True

    def remove(self, consumer: str) -> None:
        """delete_allocation_for_instance."""
        if self.held(consumer) and not self._answered():
            raise Failed("the allocation was not deleted")
        self.put(consumer, {})

    def _answered(self) -> bool:
        if self.placement == "raises":
            raise Failed("Placement")
        return self.placement == "answers"
