"""What runs Nova's operations, and judges what the rules make of every state on the way.

There are services that die and start again, an API that refuses, operators who reset a state.
"""

from __future__ import annotations

import collections
import dataclasses as d
import typing as t
from collections.abc import Callable

import hypothesis.strategies as st

from .....plugins.module_utils._core.facts.index import ListingsIndex
from .....plugins.module_utils._core.models.change import Change
from .....plugins.module_utils._core.models.finding import Finding
from .....plugins.module_utils._core.models.nova import SETTLED_STATUSES, UNSHELVE_ACTION, Migration
from .....plugins.module_utils._core.models.placement import Allocations
from .....plugins.module_utils._core.reading.candidates import find_candidates
from . import nova_operations as ops
from .judging import NO_MINIMUM_AGE, judge
from .nova_model import API, CONDUCTOR, Aborted, Failed, Nova, RolledBack, Step, Steps
from .world import World

TO_THE_END = 99

# Each operation, and what comes before it.
OPERATIONS: dict[str, tuple[str, ...]] = {
    "boot": (),
    "resize": (),
    "migrate": (),
    "live_migrate": (),
    "evacuate": ("down",),
    "confirm": ("migrate",),
    "confirm of a larger flavor": ("resize",),
    "revert": ("migrate",),
    "revert of a larger flavor": ("resize",),
    "revert of a smaller flavor": ("resize", "confirm", "resize"),
    "resize to a smaller flavor": ("resize", "confirm"),
    "rebuild": (),
    "shelve": (),
    "unshelve": ("shelve",),
    "delete": (),
    "delete of an unconfirmed resize": ("migrate",),
    "delete with the host down": ("down",),
    "soft_delete": (),
    "restore": ("soft_delete",),
}


# How an operator changes the names of a machine, each a function of its root. A new one can have
# the name that it had.
RENAMINGS: dict[str, Callable[[Nova, str], None]] = {
    "rename": lambda nova, root: nova.world.rename_host(root, "new", "new"),
    "rename with its provider": lambda nova, root: nova.world.rename_host(
        root, "new", "new", provider=True
    ),
    "rename the host": lambda nova, root: nova.world.rename_host(root, host="new"),
    "rename the node": lambda nova, root: nova.world.rename_host(root, node="new"),
    "add a domain": lambda nova, root: nova.world.rename_host(
        root, node=f"{nova.world.nodes[root].name}.example.org"
    ),
    "change the case": lambda nova, root: nova.world.rename_host(
        root, nova.world.nodes[root].host.upper(), nova.world.nodes[root].name.upper()
    ),
    "replace": lambda nova, root: replace_machine(nova, root),
}


def replace_machine(nova: Nova, root: str) -> None:
    """Rename a machine, and give its name to a new one."""
    name = nova.world.nodes[root].name
    nova.world.rename_host(root, "new", "new", provider=True)
    nova.add_machine(name)


# The operations that involve a host by its name.
MOVES = tuple(
    name
    for name in OPERATIONS
    if name.startswith(("resize", "migrate", "live", "evac", "confirm", "revert", "unshelve"))
)


class Operation:
    """An operation under way: its server, and its current step."""

    def __init__(self, name: str, server: str | None, steps: Steps) -> None:
        self.name = name
        self.server = server
        self.steps = steps
        self.at: Step | None = None


class Life:
    """A server's life. `watch` is called after each step."""

    def __init__(self, nova: Nova, watch: Callable[[Life], None] = lambda life: None) -> None:
        self.nova = nova
        self.watch = watch
        self.running: list[Operation] = []
        self.told: list[str] = []
        self.server = nova.create()

    # Operations.

    def start(self, name: str, steps: Steps, server: str | None = None) -> Operation:
        operation = Operation(name, server, steps)
        self.running.append(operation)
        self._tell(name)
        self._next(operation, lambda: next(steps))
        return operation

    def go(self, operation: Operation, count: int = TO_THE_END, until: str = "") -> None:
        """Let it make `count` steps, or reach the step `until`.

        It waits for a service that is down.
        """
        while (
            count
            and operation in self.running
            and not self.blocked(operation)
            and not (operation.at and operation.at.done == until)
        ):
            self._next(operation, lambda: next(operation.steps))
            count -= 1

    def fail(self, operation: Operation, error: type[Failed] = Failed) -> None:
        """Let its next step fail."""
        if operation in self.running and not self.blocked(operation):
            self._tell(error.__name__)
            self.nova.stays(operation.server or "")
            self._next(operation, lambda: operation.steps.throw(error()))

    def blocked(self, operation: Operation) -> bool:
        at = operation.at
        return (
            at is not None
            and at.where not in (API, CONDUCTOR)
            and at.where not in self.nova.up
            and operation.name != "init_host"
        )

    def cut(self, operation: Operation, alone: bool = False) -> None:
        """Kill the service that it runs in.

        `alone`: libvirt ends a live migration that was running.
        """
        at = operation.at
        if at is None or operation not in self.running:
            return
        if at.where in self.nova.hosts:
            self.kill(at.where, alone)
            return
        self._tell(f"killed {at.where}")
        for other in [
            other
            for other in self.running
            if other.at and other.at.where == at.where and not other.at.queued
        ]:
            self._forget(other)
        self.watch(self)

    def kill(self, host: str, alone: bool = False) -> None:
        self._tell(
            "killed nova-compute of "
            f"{self.nova.world.nodes[host].name}{' (libvirt goes on)' if alone else ''}"
        )
        self.nova.up.discard(host)
        for operation in [
            operation
            for operation in self.running
            if operation.at and operation.at.where == host and not operation.at.queued
        ]:
            if (
                alone
                and operation.at == Step(host, "running")
                and operation.server
                and self.nova.has_guest(operation.server, host)
            ):
                for there in list(self.nova.coming.get(operation.server, {})):
                    ops.switch(self.nova, operation.server, host, there)
                    break
            self._forget(operation)
        self.watch(self)

    def restart(self, host: str) -> Operation | None:
        """Start a nova-compute; messages for it wait until it is ready."""
        if host in self.nova.up or any(
            operation.name == "init_host" and operation.server == host for operation in self.running
        ):
            return None
        return self.start("init_host", ops.init_host(self.nova, host), host)

    def reset(self, vm: str) -> None:
        """os-resetState (nova/api/openstack/compute/admin_actions.py)."""
        if self.server in self.nova.world.servers:
            self._tell(f"reset to {vm}")
            self.nova.act(self.server, "resetState")
            self.nova.save(self.server, vm=vm, task=None)
            self.nova.forget_revert(self.server)
            # These check the task before they begin, the others do not.
            if any(
                operation.name in ("resize", "migrate", "evacuate") for operation in self.running
            ):
                self.nova.stays(self.server)
            self.watch(self)

    def poll_all(self) -> None:
        """Run the periodic tasks of every nova-compute that runs."""
        for host in sorted(self.nova.up):
            self.go(self.start("poll", ops.poll(self.nova, host), self.server))

    def happens(self, what: str, change: Callable[[], object]) -> None:
        self._tell(what)
        change()
        self.watch(self)

    def possible(self) -> dict[str, Callable[[str, bool], Steps]]:
        """Return the operations that the API allows now, by name.

        They are functions of a destination and a choice.

        See check_instance_state.
        """
        nova, server = self.nova, self.server
        if server not in nova.world.servers:
            return {}
        vm, task, host = nova.vm[server], nova.task(server), nova.host(server)
        others = tuple(known for known in nova.hosts if known != host)
        free, rests = task is None and host is not None, vm in ("active", "stopped")
        unconfirmed = nova.with_status(server, "finished")
        table: dict[str, tuple[bool, Callable[[str, bool], Steps]]] = {
            "resize": (
                free and rests and host in nova.up,
                lambda to, yes: ops.resize(nova, server, (to,), not nova.large(server), yes),
            ),
            "migrate": (
                free and rests and host in nova.up,
                lambda to, yes: ops.resize(
                    nova, server, others[:: 1 if yes else -1], nova.large(server)
                ),
            ),
            "live_migrate": (
                free and vm == "active",
                lambda to, yes: ops.live_migrate(nova, server, others[yes], yes),
            ),
            "evacuate": (
                host is not None and host not in nova.up and vm in ("active", "stopped", "error"),
                lambda to, yes: ops.evacuate(nova, server, others[yes], to == others[yes], yes),
            ),
            "confirm": (
                free
                and vm == "resized"
                and bool(unconfirmed)
                and nova.place(unconfirmed or "", "source") in nova.up,
                lambda to, yes: ops.confirm(nova, server),
            ),
            "revert": (
                free and vm == "resized" and bool(unconfirmed),
                lambda to, yes: ops.revert(nova, server),
            ),
            "rebuild": (
                free and vm in ("active", "stopped", "error"),
                lambda to, yes: ops.rebuild(nova, server),
            ),
            "shelve": (free and rests, lambda to, yes: ops.shelve(nova, server, yes)),
            "shelve_offload": (
                free and vm == "shelved",
                lambda to, yes: ops.shelve_offload(nova, server),
            ),
            "unshelve": (
                task is None and vm.startswith("shelved"),
                lambda to, yes: ops.unshelve(nova, server, to, yes),
            ),
            "soft_delete": (free and vm == "active", lambda to, yes: ops.soft_delete(nova, server)),
            "restore": (free and vm == "soft-delete", lambda to, yes: ops.restore(nova, server)),
            "delete": (vm != "deleted", lambda to, yes: ops.delete(nova, server)),
        }
        return {name: begin for name, (may, begin) in table.items() if may}

    def _next(self, operation: Operation, advance: Callable[[], Step]) -> None:
        try:
            operation.at = advance()
            self._tell(f"  {operation.at.done}")
        except (Failed, StopIteration) as end:
            self._tell(f"  {operation.name} {'failed' if isinstance(end, Failed) else 'ended'}")
            self._forget(operation)
        self.watch(self)

    def _forget(self, operation: Operation) -> None:
        if operation in self.running:
            self.running.remove(operation)
        operation.steps.close()
        if not any(other.server == operation.server for other in self.running):
            self.nova.stays(operation.server or "")

    def _tell(self, what: str) -> None:
        self.told.append(what)

    def __repr__(self) -> str:
        return "\n".join(self.told)


def booted(nova: Nova, watch: Callable[[Life], None] = lambda life: None) -> Life:
    life = Life(nova, watch)
    life.go(life.start("boot", ops.boot(nova, life.server, nova.hosts[:1]), life.server))
    return life


def begun_with(nova: Nova, operation: str, home: int = 0) -> tuple[Life, Operation]:
    """Return a life with one of `OPERATIONS` just requested.

    `home` is the destination of its server, if it has one.
    """
    life = Life(nova) if operation == "boot" else booted(nova)
    for before in OPERATIONS[operation]:
        do(life, before, home)
    return life, begin(life, operation.partition(" ")[0], home)


def begin(life: Life, name: str, home: int) -> Operation:
    if name == "boot":
        return life.start(name, ops.boot(life.nova, life.server, life.nova.hosts[:2]), life.server)
    return life.start(name, life.possible()[name](life.nova.hosts[home], True), life.server)


def do(life: Life, what: str, home: int) -> None:
    """Run `what`.

    An operation goes to the host number `home`, or to the one that it names itself ("migrate to
    host 2").
    """
    nova = life.nova
    what, _to, place = what.partition(" to host ")
    home = int(place) if place else home
    if what == "start":
        for host in nova.hosts:
            if operation := life.restart(host):
                life.go(operation)
    elif what == "finish":
        for operation in list(life.running):
            life.go(operation)
    elif what.startswith("reset"):
        life.reset("error" if what.endswith("error") else "active")
    elif what == "down":
        if life.server in nova.world.servers and (host := nova.host(life.server)):
            life.kill(host)
    elif what == "purge":
        life.happens(what, nova.purge)
    elif what == "poll":
        life.poll_all()
    elif what in RENAMINGS:
        life.happens(
            f"{what} {nova.world.nodes[nova.hosts[home]].name}",
            lambda: RENAMINGS[what](nova, nova.hosts[home]),
        )
    elif what in life.possible():
        life.go(begin(life, what, home))


@st.composite
def lives(
    draw: st.DrawFn,
    watch: Callable[[Life], None],
    length: int = 8,
    clean: Callable[[Life], None] | None = None,
    renames: bool = False,
) -> Life:
    """Draw operations one after the other, and the reactions to each.

    Any of them may be interrupted, fail or be left alone after any step.

    renames: whether an operator also changes names, of hosts that a move has already left.
    """
    nova = Nova(pooled=draw(st.booleans()), devices=draw(st.booleans()))
    if renames:
        home = draw(st.sampled_from([1, 2]))
        life, begun = begun_with(nova, draw(st.sampled_from(MOVES)), home)
        life.watch = watch
        _interrupted(draw, life, begun)
    elif draw(st.sampled_from([True, True, True, False])):
        life = booted(nova, watch)
    else:
        life = Life(nova, watch)
        _interrupted(
            draw, life, life.start("boot", ops.boot(nova, life.server, nova.hosts[:2]), life.server)
        )
    for _number in range(draw(st.integers(1, length))):
        _event(draw, life, clean)
        if renames:
            _change_names(draw, life)
    return life


def _change_names(draw: st.DrawFn, life: Life) -> None:
    nova = life.nova
    kind = draw(st.sampled_from(["nothing", "nothing", "rename", "new machine"]))
    free = nova.list_free_names()
    if kind == "rename":
        root = draw(st.sampled_from(nova.hosts))
        new, old = f"new-{len(life.told)}", nova.world.nodes[root]
        host = draw(st.sampled_from([None, new, old.host.upper(), f"{old.host}.example.org"]))
        node = draw(st.sampled_from([None, new, old.name.upper(), f"{old.name}.example.org"]))
        provider = draw(st.booleans())
        life.happens(
            f"rename {old.name} to {host}, {node}{', with its provider' * provider}",
            lambda: nova.world.rename_host(root, host, node, provider),
        )
    elif kind == "new machine" and free:
        life.happens(f"new machine {free[0]}", lambda: nova.add_machine(free[0]))


def _event(draw: st.DrawFn, life: Life, clean: Callable[[Life], None] | None) -> None:
    nova = life.nova
    down = [host for host in nova.hosts if host not in nova.up]
    running = [operation for operation in life.running if not life.blocked(operation)]
    possible = life.possible()
    kinds = (
        ["operation"] * 4 * bool(possible)
        + ["go on"] * 4 * bool(running)
        + ["restart"] * 2 * bool(down)
    )
    kinds += (
        ["reset"] * 2
        + ["kill", "placement", "poll", "purge", "mark deleted"]
        + ["clean"] * bool(clean)
    )
    kind = draw(st.sampled_from(kinds))
    if kind == "operation":
        name = draw(st.sampled_from(sorted(possible)))
        to, choice = draw(st.sampled_from(nova.hosts)), draw(st.booleans())
        _interrupted(draw, life, life.start(name, possible[name](to, choice), life.server))
    elif kind == "go on":
        _interrupted(draw, life, draw(st.sampled_from(running)))
    elif kind == "restart":
        operation = life.restart(draw(st.sampled_from(down)))
        if operation:
            _interrupted(draw, life, operation)
    elif kind == "reset":
        life.reset(draw(st.sampled_from(["active", "active", "error"])))
    elif kind == "kill":
        life.kill(draw(st.sampled_from(nova.hosts)), draw(st.booleans()))
    elif kind == "placement":
        mode = draw(st.sampled_from(["answers", "answers", "refuses", "raises"]))
        life.happens(f"Placement {mode}", lambda: setattr(nova, "placement", mode))
    elif kind == "poll":
        host = draw(st.sampled_from(nova.hosts))
        if host in nova.up:
            life.start("poll", ops.poll(nova, host), life.server)
    elif kind == "purge":
        life.happens("purge", nova.purge)
    elif kind == "mark deleted":
        life.happens("marked as deleted by hand", lambda: nova.mark_deleted(life.server))
    elif clean:
        life.told.append("clean")
        clean(life)


def _interrupted(draw: st.DrawFn, life: Life, operation: Operation) -> None:
    """Let an operation continue for some steps, and then interrupt it.

    Mostly it continues to its end.
    """
    life.go(operation, draw(st.sampled_from([TO_THE_END, TO_THE_END, *range(16)])))
    if operation not in life.running or life.blocked(operation):
        return
    kind = draw(st.sampled_from(["leave", "fail", "roll back", "abort", "cut", "cut alone"]))
    if kind == "fail":
        life.fail(operation)
    elif kind == "roll back":
        life.fail(operation, RolledBack)
    elif kind == "abort" and operation.name == "live_migrate":
        life.fail(operation, Aborted)
    elif kind.startswith("cut"):
        life.cut(operation, kind == "cut alone")
    life.go(operation, draw(st.sampled_from([TO_THE_END, TO_THE_END, *range(4)])))


# The changes of the rules for this Nova, compared with the truth.


def changing(nova: Nova) -> list[Finding]:
    """Return the findings of all kinds that a run would change."""
    snapshot = nova.world.snapshot()
    candidates = set(find_candidates(ListingsIndex(snapshot)))
    found = judge(snapshot, NO_MINIMUM_AGE)
    return [
        finding
        for finding in found
        if isinstance(finding.change, Change) and finding.consumer in candidates
    ]


def lost(nova: Nova, change: Change) -> dict[str, dict[str, int]]:
    """Return what `change` removes that a server needs, by provider and class.

    Nothing may be removed from a server itself that it needs; from a migration's allocation only
    what its server, or another migration of it, has as well.
    """
    before, after = (_together(change, side) for side in ("before", "after"))
    move = nova.world.migrations.get(change.consumer)
    server = move.server if move else change.consumer
    others: list[Allocations] = []
    if move:
        migrations = [
            row.uuid
            for row in nova.world.migrations.values()
            if row.server == server and row.uuid != change.consumer
        ]
        others = [nova.held(other) for other in (server, *migrations)]
    taken: dict[str, dict[str, int]] = {}
    for provider, share in nova.needed(server).items():
        for cls, need in share.items():
            elsewhere = sum(other.get(provider, {}).get(cls, 0) for other in others)
            had, has = (
                min(need, elsewhere + document.get(provider, {}).get(cls, 0))
                for document in (before, after)
            )
            # If all allocations together are too small for the guest, Nova has lost the right one,
            # and this one is of an earlier size.
            if has < had and (not move or had == need):
                taken.setdefault(provider, {})[cls] = had - has
    return taken


def _together(change: Change, side: str) -> dict[str, dict[str, int]]:
    """Return the allocations of a change's consumer and its partner on one side of it."""
    sums = _together(change.partner, side) if change.partner else {}
    for provider, share in getattr(change, side)["allocations"].items():
        for cls, amount in share["resources"].items():
            held = sums.setdefault(provider, {})
            held[cls] = held.get(cls, 0) + amount
    return sums


def make(nova: Nova, change: Change) -> None:
    if change.partner:
        make(nova, change.partner)
    nova.put(
        change.consumer,
        {provider: share["resources"] for provider, share in change.after["allocations"].items()},
    )


def _order_of_times(world: World) -> dict[str | None, int]:
    """Return the order of the times that are compared with each other.

    Lives may differ in all other times.
    """
    moved = {time for row in world.migrations.values() for time in (row.created_at, row.updated_at)}
    unshelved = {
        action.start_time
        for did in world.actions.values()
        for action in did
        if action.action == UNSHELVE_ACTION
    }
    return {time: place for place, time in enumerate(sorted(moved | unshelved, key=str))}


def _shares(allocations: Allocations) -> list[t.Any]:
    return [(provider, *share.items()) for provider, share in allocations.items()]


class Watch:
    """Checks each state of each life, and the same state only once.

    It counts what it has seen.
    """

    def __init__(self) -> None:
        self.kinds: collections.Counter[str] = collections.Counter()
        self.moves: collections.Counter[str] = collections.Counter()
        self.complete: set[tuple[str, str]] = set()
        self._seen: set[int] = set()

    def __call__(self, life: Life) -> None:
        nova, world = life.nova, life.nova.world
        order = _order_of_times(world)
        state = hash(
            (
                *(
                    (row.uuid, row.status, row.task_state, row.host, row.node)
                    for row in world.servers.values()
                ),
                *world.deleted,
                *world.marked_deleted,
                *(
                    (
                        d.replace(row, created_at=None, updated_at=None),
                        order[row.created_at],
                        order[row.updated_at],
                    )
                    for row in world.migrations.values()
                ),
                *world.unlisted_migrations,
                *((root, node.host, node.name) for root, node in world.nodes.items()),
                *(provider.name for provider in world.providers.values()),
                *((service.host, service.state) for service in world.services),
                *sorted(nova.up),
                *(
                    (consumer, *_shares(held.resources))
                    for consumer, held in world.allocations.items()
                ),
                *(
                    (server, place, *_shares(share))
                    for server, places in nova.copies.items()
                    for place, share in places.items()
                ),
                *(
                    (server, place, *_shares(share))
                    for server, places in nova.coming.items()
                    for place, share in places.items()
                ),
                *(
                    (
                        *(
                            action.action,
                            action.is_finished,
                            action.placing_hosts,
                            action.shelving_hosts,
                            action.unshelving_hosts,
                            order.get(action.start_time),
                        ),
                        *(
                            (event.event, event.host, event.result, event.failed_in_copy)
                            for event in action.events
                        ),
                    )
                    for server, row in world.servers.items()
                    for action in world.actions.get(server, ())
                    if not row.host
                    or nova.host(server) not in nova.held(server)
                    or action.action == UNSHELVE_ACTION
                ),
            )
        )
        if state in self._seen:
            return
        for name, is_it in half_way.items():
            self.moves[name] += is_it(Situation(nova, life.server))
        for finding in changing(nova):
            assert finding.change
            self.kinds[finding.kind] += 1
            taken = lost(nova, finding.change)
            assert not taken, (
                f"{life}\n{finding.kind} of {finding.consumer} takes {taken}: {finding.reason}"
            )
        self._seen.add(state)

    def clean(self, life: Life) -> None:
        """Make all changes at once, and check again."""
        for finding in changing(life.nova):
            assert finding.change
            make(life.nova, finding.change)
        self(life)


class Situation:
    """The words that describe halfway ops."""

    def __init__(self, nova: Nova, server: str) -> None:
        self.nova = nova
        self.server = server
        self.row = nova.world.servers.get(server)
        self.home = nova.host(server) if self.row else None
        self.rests = bool(
            self.row
            and self.row.status in SETTLED_STATUSES
            and self.row.task_state is None
            and self.home
        )

    def holds_home(self) -> bool:
        return self.home in self.nova.held(self.server)

    def guest_home(self) -> bool:
        return self.nova.has_guest(self.server, self.home)

    def moved(self, kinds: t.Collection[str], *statuses: str) -> list[Migration]:
        """Return the moves of the server that ended so."""
        rows = self.nova.world.migrations.values()
        return [
            row
            for row in rows
            if row.server == self.server and row.type in kinds and row.status in statuses
        ]

    def needs_allocation_of(self, kinds: t.Collection[str], *statuses: str) -> bool:
        """The server is on its host without an allocation there.

        Such a migration has what the guest needs.
        """
        if not self.rests or self.holds_home() or not self.guest_home():
            return False
        return any(self.home in self.nova.held(row.uuid) for row in self.moved(kinds, *statuses))

    def unshelved_elsewhere(self) -> bool:
        """The server is where it was unshelved, and no move of it ended there."""
        ends = {
            row.dest_compute
            for row in self.moved((*COLD, *LIVE, *EVACUATION), "confirmed", "completed", "done")
        }
        did = self.nova.world.actions.get(self.server, ())
        return (
            self.rests
            and self.row is not None
            and bool(ends)
            and any(self.row.host in action.unshelving_hosts for action in did)
            and not ({self.row.host} & ends)
        )

    def left_a_failed_move(self) -> bool:
        """The server is elsewhere than the destination of a failed live migration or evacuation.

        It was there through another move.
        """
        failed = {row.dest_compute for row in self.moved((*LIVE, *EVACUATION), "error", "failed")}
        left = {row.source_compute for row in self.moved((*COLD, *LIVE), "confirmed", "completed")}
        left |= {row.dest_compute for row in self.moved(COLD, "reverted")}
        return self.rests and self.row is not None and bool((failed & left) - {self.row.host})

    def holds_own_move(self) -> bool:
        """A failed move within the host still has an allocation there."""
        failed = (
            row for row in self.moved(COLD, "error") if row.source_compute == row.dest_compute
        )
        return any(self.home in self.nova.held(row.uuid) for row in failed)


COLD, LIVE, EVACUATION = ("resize", "migration"), ("live-migration",), ("evacuation",)

half_way: dict[str, Callable[[Situation], bool]] = {
    "live migration reset at start-up": lambda now: now.needs_allocation_of(LIVE, "error"),
    "live migration rolled back without its claim": lambda now: now.needs_allocation_of(
        LIVE, "failed", "cancelled"
    ),
    "cold migration rolled back without its claim": lambda now: now.needs_allocation_of(
        COLD, "error"
    ),
    "resize reverted without its claim": lambda now: now.needs_allocation_of(COLD, "reverted"),
    "cold migration cut while it powered off": lambda now: (
        now.rests and bool(now.moved(COLD, "migrating"))
    ),
    "libvirt went on without Nova": lambda now: (
        now.rests
        and not now.guest_home()
        and bool(now.moved(LIVE, "error"))
        and bool(now.nova.copies.get(now.server))
    ),
    "unconfirmed resize with an errored migration": lambda now: (
        now.row is not None and now.row.status == "VERIFY_RESIZE" and bool(now.moved(COLD, "error"))
    ),
    "resize within a host rolled back without its claim": lambda now: (
        now.rests and now.guest_home() and now.holds_own_move()
    ),
    "evacuated and not yet moved": lambda now: (
        now.rests and not now.guest_home() and bool(now.moved(EVACUATION, "pre-migrating"))
    ),
    "evacuation completed by the source before its end": lambda now: (
        now.rests
        and bool(now.moved(EVACUATION, "completed"))
        and now.holds_home()
        and not now.guest_home()
    ),
    "unshelved where no move ended": Situation.unshelved_elsewhere,
    "left where a move had failed to": Situation.left_a_failed_move,
    "deleted in the middle of a move": lambda now: (
        now.row is None
        and bool(set(now.nova.world.allocations) & now.nova.world.unlisted_migrations)
    ),
}
