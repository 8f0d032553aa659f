"""Plans the contents of a seeded cloud, and what changes in it.

The plan says which servers are on which hosts, their allocations, and which of these are orphans.
Pure.
"""

from __future__ import annotations

import dataclasses as d
import random
import typing as t
import uuid

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SERVER, MIGRATION = "server", "migration"
HOME, OTHER = "home", "other"
TINY, SMALL = "m1.tiny", "m1.small"


@d.dataclass(frozen=True)
class Scale:
    """The size of a cloud; `orphans` is their number for each live server, such as 0.002."""

    hosts: int
    servers: int
    orphans: float = 0

    def __str__(self) -> str:
        orphans = "no orphans"
        if self.orphans:
            orphans = f"{self.orphans:.1%} orphans"
        return f"{self.hosts} hosts x {self.servers} servers, {orphans}"

    @property
    def total(self) -> int:
        return self.hosts * self.servers


@d.dataclass(frozen=True)
class Situation:
    """A possible state of one server.

    original: the server of which it is a copy; None for a consumer that Nova has never known.
    allocations: all its allocations, as (consumer, host).
    orphans: the allocations that nothing needs any more; `kind` is the kind to be found for them.
    lives: whether the server is on its home.
    flavor: what it has on each host.
    """

    original: str | None
    allocations: tuple[tuple[str, str], ...] = ((SERVER, HOME),)
    orphans: tuple[tuple[str, str], ...] = ()
    kind: str | None = None
    lives: bool = True
    flavor: str = TINY


HEALTHY = Situation("live")
# Healthy servers that have moved, and moves under way that look like leftovers: without them, the
# cloud would be too easy.
MOVED = Situation("moved")
RESIZED = Situation("resized", flavor=SMALL)
DELETED = Situation("deleted", (), lives=False)
UNCONFIRMED = Situation("unconfirmed", ((SERVER, HOME), (MIGRATION, OTHER)))
MOVED_FRACTION = 0.02
UNCONFIRMED_FRACTION = 0.0005
# Of the servers that change and stay healthy.
UNCONFIRMED_CHANGES = 0.05

_BOTH_HOSTS = ((SERVER, HOME), (SERVER, OTHER))
DELETED_SERVER = Situation("deleted", orphans=((SERVER, HOME),), kind="deleted_server", lives=False)
ENDED_MIGRATION = Situation(
    "moved", ((SERVER, HOME), (MIGRATION, OTHER)), ((MIGRATION, OTHER),), "ended_migration"
)
DELETED_MIGRATION = Situation(
    "moved_deleted", ((MIGRATION, OTHER),), ((MIGRATION, OTHER),), "deleted_migration", lives=False
)
EVACUATED_SOURCE = Situation("evacuated", _BOTH_HOSTS, ((SERVER, OTHER),), "evacuated_source")
EXTRA_HOST = Situation("live", _BOTH_HOSTS, ((SERVER, OTHER),), "extra_host")
UNHOSTED_SERVER = Situation(
    "shelved", orphans=((SERVER, HOME),), kind="unhosted_server", lives=False
)
# The migration has the allocation that the server needs. The server's own is the wrong one.
UNREVERTED_ALLOCATION = Situation(
    "unreverted", ((SERVER, OTHER), (MIGRATION, HOME)), ((SERVER, OTHER),), "unreverted_allocation"
)
UNKNOWN_CONSUMER = Situation(None, orphans=((SERVER, HOME),), kind="unknown_consumer", lives=False)
# All kinds that the role remediates by default, and the one that rests on absence alone.
ORPHANS = (
    DELETED_SERVER,
    ENDED_MIGRATION,
    DELETED_MIGRATION,
    EVACUATED_SOURCE,
    EXTRA_HOST,
    UNHOSTED_SERVER,
    UNREVERTED_ALLOCATION,
    UNKNOWN_CONSUMER,
)
ORPHAN_KINDS = tuple(situation.kind for situation in ORPHANS)
ORIGINALS = frozenset(
    situation.original
    for situation in (HEALTHY, MOVED, RESIZED, DELETED, UNCONFIRMED, *ORPHANS)
    if situation.original
)


@d.dataclass(frozen=True)
class Placed:
    """One server of a seeded cloud; its hosts are numbers."""

    situation: Situation
    server: str
    migration: str
    home: int
    other: int

    def consumer(self, role: str) -> str:
        return self.server if role == SERVER else self.migration

    def host(self, role: str) -> int:
        return self.home if role == HOME else self.other


@d.dataclass(frozen=True)
class Transition:
    """What becomes of a healthy server.

    after: its situation then.
    leaves: whether its host becomes the `other` one of this situation.
    exists: whether the server exists before. Otherwise a new one comes into existence.
    in_nova: whether Nova saves the server. Otherwise only its allocations change.
    writes: the hosts, by their role afterwards, on whose providers Placement wrote an allocation.
        Only that increments the generation of a provider; `DELETE /allocations` does not.
    """

    after: Situation
    leaves: bool = False
    exists: bool = True
    in_nova: bool = True
    writes: tuple[str, ...] = ()


_BOTH = (HOME, OTHER)
HEALTHY_TRANSITIONS = (
    Transition(HEALTHY, exists=False, writes=(HOME,)),
    Transition(DELETED),
    Transition(MOVED, leaves=True, writes=_BOTH),
    Transition(RESIZED, leaves=True, writes=_BOTH),
)
UNCONFIRMED_TRANSITION = Transition(UNCONFIRMED, leaves=True, writes=_BOTH)
ORPHANING_TRANSITIONS = (
    Transition(DELETED_SERVER),
    Transition(ENDED_MIGRATION, leaves=True, writes=_BOTH),
    Transition(DELETED_MIGRATION, leaves=True, writes=_BOTH),
    Transition(EVACUATED_SOURCE, leaves=True, writes=_BOTH),
    Transition(EXTRA_HOST, in_nova=False, writes=_BOTH),
    Transition(UNHOSTED_SERVER),
    Transition(UNREVERTED_ALLOCATION, writes=_BOTH),
    Transition(UNKNOWN_CONSUMER, exists=False, in_nova=False, writes=(HOME,)),
)


@d.dataclass(frozen=True)
class Change:
    """One server before and after; None where it does not exist.

    in_nova: whether Nova saves the server.
    written: the numbers of the hosts on whose providers Placement wrote an allocation.
    """

    before: Placed | None
    after: Placed | None
    in_nova: bool
    written: tuple[int, ...]


def place_servers(scale: Scale) -> Iterator[Placed]:
    """Place every server, always in the same way for one scale."""
    chance = random.Random(f"{scale}")
    rare = _list_rare(scale)
    dead = [situation for situation in rare if not situation.lives]
    living = [situation for situation in rare if situation.lives]
    slots = [host for host in range(scale.hosts) for _server in range(scale.servers)]
    at = dict(zip(chance.sample(range(len(slots)), len(living)), living, strict=True))
    for slot, host in enumerate(slots):
        yield _place(at.get(slot, HEALTHY), host, scale.hosts, chance)
    for situation in dead:
        yield _place(situation, chance.randrange(scale.hosts), scale.hosts, chance)


def _list_rare(scale: Scale) -> list[Situation]:
    moved = round(scale.total * MOVED_FRACTION)
    # In a cloud without orphans nothing is left to be looked up again. What only looks like an
    # orphan comes with the changes.
    orphans = unconfirmed = 0
    if scale.orphans:
        # Each kind at least once.
        orphans = max(len(ORPHANS), round(scale.total * scale.orphans))
        unconfirmed = max(1, round(scale.total * UNCONFIRMED_FRACTION))
    return [*_take(ORPHANS, orphans), *[MOVED] * moved, *[UNCONFIRMED] * unconfirmed]


_T = t.TypeVar("_T")


def _take(kinds: Sequence[_T], number: int) -> list[_T]:
    """Return so many, with as many of each as possible."""
    return [kinds[index % len(kinds)] for index in range(number)]


def _place(situation: Situation, home: int, hosts: int, chance: random.Random) -> Placed:
    server, migration = _make_uuid(chance), _make_uuid(chance)
    return Placed(situation, server, migration, home, _choose_other(home, hosts, chance))


def _make_uuid(chance: random.Random) -> str:
    return str(uuid.UUID(int=chance.getrandbits(128), version=4))


def _choose_other(host: int, hosts: int, chance: random.Random) -> int:
    return (host + chance.randrange(1, hosts)) % hosts


def plan_changes(
    placed: Iterable[Placed], hosts: int, changed: int, orphans: int, chance: random.Random
) -> list[Change]:
    """Plan what becomes of some servers: so many stay healthy, and so many leave orphans."""
    unconfirmed = max(1, round(changed * UNCONFIRMED_CHANGES))
    transitions = [
        *_take(HEALTHY_TRANSITIONS, changed - unconfirmed),
        *[UNCONFIRMED_TRANSITION] * unconfirmed,
        *_take(ORPHANING_TRANSITIONS, orphans),
    ]
    healthy = [server for server in placed if server.situation is HEALTHY]
    existing = iter(chance.sample(healthy, sum(kind.exists for kind in transitions)))
    changes = []
    for transition in transitions:
        before = None
        if transition.exists:
            before = next(existing)
        changes.append(_change(before, transition, hosts, chance))
    return changes


def _change(
    before: Placed | None, transition: Transition, hosts: int, chance: random.Random
) -> Change:
    after = before or _place(HEALTHY, chance.randrange(hosts), hosts, chance)
    after = d.replace(after, situation=transition.after)
    if transition.leaves:
        destination = _choose_other(after.home, hosts, chance)
        after = d.replace(after, home=destination, other=after.home)
    written = tuple(after.host(role) for role in transition.writes)
    return Change(before, after, transition.in_nova, written)


def undo_changes(changes: Iterable[Change]) -> list[Change]:
    """Return the changes after which everything is as before, except the generations."""
    undone = []
    for change in changes:
        written = set(change.written)
        if change.before:
            written.add(change.before.home)
        undone.append(Change(change.after, change.before, change.in_nova, tuple(written)))
    return undone


def apply_changes(placed: Iterable[Placed], changes: Iterable[Change]) -> list[Placed]:
    """Return all servers as they are after the changes."""
    servers = {server.server: server for server in placed}
    for change in changes:
        if change.before:
            del servers[change.before.server]
        if change.after:
            servers[change.after.server] = change.after
    return list(servers.values())
