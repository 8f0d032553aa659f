# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans the contents of a seeded cloud.

The plan says which servers are on which hosts, their allocations, and which of these are orphans.
Pure.
"""

from __future__ import annotations

import dataclasses as d
import random
import typing as t
import uuid

if t.TYPE_CHECKING:
    from collections.abc import Iterator

SERVER, MIGRATION = "server", "migration"
HOME, OTHER = "home", "other"


@d.dataclass(frozen=True)
class Scale:
    """The size of a cloud; `orphans` is their number for each live server, such as 0.002."""

    hosts: int
    servers: int
    orphans: float

    def __str__(self) -> str:
        return f"{self.hosts} hosts x {self.servers} servers, {self.orphans:.1%} orphans"


@d.dataclass(frozen=True)
class Situation:
    """A possible state of one server.

    original: the server of which it is a copy.
    allocations: all its allocations, as (consumer, host).
    orphans: the allocations that nothing needs any more; `kind` is the kind to be found for them.
    lives: whether the server is on its home.
    """

    original: str
    allocations: tuple[tuple[str, str], ...] = ((SERVER, HOME),)
    orphans: tuple[tuple[str, str], ...] = ()
    kind: str | None = None
    lives: bool = True


HEALTHY = Situation("live")
# Healthy servers that have moved, and moves under way that look like leftovers: without them, the
# cloud would be too easy.
MOVED = Situation("moved")
UNCONFIRMED = Situation("unconfirmed", ((SERVER, HOME), (MIGRATION, OTHER)))
ORPHANS = (
    Situation("deleted", orphans=((SERVER, HOME),), kind="deleted_server", lives=False),
    Situation(
        "moved", ((SERVER, HOME), (MIGRATION, OTHER)), ((MIGRATION, OTHER),), "ended_migration"
    ),
    Situation(
        "evacuated", ((SERVER, HOME), (SERVER, OTHER)), ((SERVER, OTHER),), "evacuated_source"
    ),
    Situation("live", ((SERVER, HOME), (SERVER, OTHER)), ((SERVER, OTHER),), "extra_host"),
)
MOVED_FRACTION = 0.02
UNCONFIRMED_FRACTION = 0.0005


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


def place_servers(scale: Scale) -> Iterator[Placed]:
    """Place every server, always in the same way for one scale."""
    chance = random.Random(f"{scale}")
    rare = _list_rare(scale)
    dead = [situation for situation in rare if not situation.lives]
    living = [situation for situation in rare if situation.lives]
    slots = [host for host in range(scale.hosts) for _server in range(scale.servers)]
    at = dict(zip(chance.sample(range(len(slots)), len(living)), living, strict=True))
    for slot, host in enumerate(slots):
        yield _place(at.get(slot, HEALTHY), host, scale, chance)
    for situation in dead:
        yield _place(situation, chance.randrange(scale.hosts), scale, chance)


def _list_rare(scale: Scale) -> list[Situation]:
    total = scale.hosts * scale.servers
    orphans = max(len(ORPHANS), round(total * scale.orphans))
    return [
        *(ORPHANS[number % len(ORPHANS)] for number in range(orphans)),
        *[MOVED] * round(total * MOVED_FRACTION),
        *[UNCONFIRMED] * max(1, round(total * UNCONFIRMED_FRACTION)),
    ]


def _place(situation: Situation, home: int, scale: Scale, chance: random.Random) -> Placed:
    other = (home + chance.randrange(1, scale.hosts)) % scale.hosts
    server, migration = (
        str(uuid.UUID(int=chance.getrandbits(128), version=4)) for _number in range(2)
    )
    return Placed(situation, server, migration, home, other)
