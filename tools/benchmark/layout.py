# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a seeded cloud is to hold.

Which servers on which hosts, who claims what, and which claims are orphans. Pure.
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
    """How large a cloud is; `orphans` is their number for each server that lives, such as 0.002."""

    hosts: int
    servers: int
    orphans: float

    def __str__(self) -> str:
        return f"{self.hosts} hosts x {self.servers} servers, {self.orphans:.1%} orphans"


@d.dataclass(frozen=True)
class Situation:
    """What may be true of one server.

    original: the server that it is cloned from.
    claims: (consumer, host) of every share that is held.
    orphans: those of them that nobody needs any more, and `kind` what they must be found to be.
    lives: whether the server is on its home.
    """

    original: str
    claims: tuple[tuple[str, str], ...] = ((SERVER, HOME),)
    orphans: tuple[tuple[str, str], ...] = ()
    kind: str | None = None
    lives: bool = True


HEALTHY = Situation("live")
# Healthy servers with a past, and moves that only look like leftovers: a cloud without them would
# be too easy.
MOVED = Situation("moved")
PARKED = Situation("parked", ((SERVER, HOME), (MIGRATION, OTHER)))
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
MOVED_SHARE = 0.02
PARKED_SHARE = 0.0005


@d.dataclass(frozen=True)
class Placed:
    """One server of a seeded cloud; hosts by their number."""

    situation: Situation
    server: str
    migration: str
    home: int
    other: int

    def consumer(self, role: str) -> str:
        return self.server if role == SERVER else self.migration

    def host(self, role: str) -> int:
        return self.home if role == HOME else self.other


def plan(scale: Scale) -> Iterator[Placed]:
    """Place every server, always the same way for one scale."""
    chance = random.Random(f"{scale}")
    rare = _rare(scale)
    dead = [situation for situation in rare if not situation.lives]
    living = [situation for situation in rare if situation.lives]
    slots = [host for host in range(scale.hosts) for _server in range(scale.servers)]
    at = dict(zip(chance.sample(range(len(slots)), len(living)), living, strict=True))
    for slot, host in enumerate(slots):
        yield _placed(at.get(slot, HEALTHY), host, scale, chance)
    for situation in dead:
        yield _placed(situation, chance.randrange(scale.hosts), scale, chance)


def _rare(scale: Scale) -> list[Situation]:
    total = scale.hosts * scale.servers
    orphans = max(len(ORPHANS), round(total * scale.orphans))
    return [
        *(ORPHANS[number % len(ORPHANS)] for number in range(orphans)),
        *[MOVED] * round(total * MOVED_SHARE),
        *[PARKED] * max(1, round(total * PARKED_SHARE)),
    ]


def _placed(situation: Situation, home: int, scale: Scale, chance: random.Random) -> Placed:
    other = (home + chance.randrange(1, scale.hosts)) % scale.hosts
    server, migration = (
        str(uuid.UUID(int=chance.getrandbits(128), version=4)) for _number in range(2)
    )
    return Placed(situation, server, migration, home, other)
