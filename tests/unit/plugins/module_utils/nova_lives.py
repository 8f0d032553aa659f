"""Lives of servers in Nova, and what their guests need at each moment.

`tests/fixtures/nova/lives.jsonl.xz` has them, one a line. They were recorded from a model of Nova
with its operations step by step, in the order of Nova's code. Each operation was interrupted at
each step: its service died, Nova's handlers of errors ran, Placement refused what they asked, and
an operator reset the server, restarted the host, purged the database or renamed a host. Of what the
rules cannot tell apart, a few examples were kept. The model is no longer needed to judge them; it
is in the history of `nova_operations.py` beside this file. New operations are those of
`make test-nova`.
"""

from __future__ import annotations

import dataclasses as d
import functools
import json
import lzma
import pathlib
import re
import typing as t
from collections.abc import Sequence

from .....plugins.module_utils._core.facts.index import ListingsIndex
from .....plugins.module_utils._core.models.change import Change
from .....plugins.module_utils._core.models.codec import convert_from_json
from .....plugins.module_utils._core.models.finding import Finding
from .....plugins.module_utils._core.models.nova import (
    Action,
    Hypervisor,
    Migration,
    Server,
    Service,
)
from .....plugins.module_utils._core.models.placement import Allocation, Allocations, Provider
from .....plugins.module_utils._core.options.policy import Policy
from .....plugins.module_utils._core.reading.candidates import find_candidates
from .judging import NO_MINIMUM_AGE, judge
from .world import CLAIM, NOW, World

_FILE = pathlib.Path(__file__).parents[3] / "fixtures" / "nova" / "lives.jsonl.xz"
_TIME = re.compile(r"2026-11-20T12:00:00\.[0-9]{6}")
# What is recorded of a world.
_TYPES: dict[str, t.Any] = {
    "providers": dict[str, Provider],
    "nodes": dict[str, Hypervisor],
    "servers": dict[str, Server],
    "deleted": dict[str, Server],
    "migrations": dict[str, Migration],
    "allocations": dict[str, Allocation],
    "actions": dict[str, tuple[Action, ...]],
    "services": list[Service],
    "unlisted_migrations": list[str],
    "marked_deleted": list[str],
}
# The moments of a life have these numbers for what a test adds to them.
_FIRST_ADDED = 0xADDED


class Moment(World):
    """What Nova and Placement show at one moment.

    needed: what the guests of each server, and disks kept for them, use in fact, by provider.
    told: what happened since the moment before.
    """

    def __init__(self) -> None:
        super().__init__()
        self.needed: dict[str, Allocations] = {}
        self.told: list[str] = []

    @classmethod
    def read(cls, row: t.Mapping[str, t.Any]) -> Moment:
        moment = cls()
        for name, kind in _TYPES.items():
            rows = convert_from_json(kind, row[name])
            setattr(moment, name, type(getattr(moment, name))(rows))
        moment.needed, moment.told = row["needed"], row["told"]
        moment._count = _FIRST_ADDED
        return moment

    def list_held(self, consumer: str) -> Allocations:
        return self.allocations[consumer].resources if consumer in self.allocations else {}

    def find_changes(self, policy: Policy = NO_MINIMUM_AGE) -> list[Finding]:
        """Return the findings of all kinds that a run would change now."""
        snapshot = self.snapshot()
        candidates = set(find_candidates(ListingsIndex(snapshot)))
        return [
            finding
            for finding in judge(snapshot, policy)
            if isinstance(finding.change, Change) and finding.consumer in candidates
        ]

    def find_loss(self, change: Change) -> dict[str, dict[str, int]]:
        """Return what `change` removes that a server needs, by provider and class.

        Nothing may be removed from a server itself that it needs; from a migration's allocation
        only what its server, or another migration of it, has as well.
        """
        before, after = (_sum_parts(change, side) for side in ("before", "after"))
        move = self.migrations.get(change.consumer)
        server = move.server if move else change.consumer
        others: list[Allocations] = []
        if move:
            moves = [row.uuid for row in self.migrations.values() if row.server == server]
            others = [self.list_held(one) for one in {server, *moves} - {change.consumer}]
        taken: dict[str, dict[str, int]] = {}
        for provider, share in self.needed.get(server, {}).items():
            for cls, need in share.items():
                elsewhere = sum(other.get(provider, {}).get(cls, 0) for other in others)
                had, has = (
                    min(need, elsewhere + document.get(provider, {}).get(cls, 0))
                    for document in (before, after)
                )
                # If all allocations together are too small for the guest, Nova has lost the right
                # one, and this one is of an earlier size.
                if has < had and (not move or had == need):
                    taken.setdefault(provider, {})[cls] = had - has
        return taken


def _sum_parts(change: Change, side: str) -> dict[str, dict[str, int]]:
    """Return the allocations of a change's consumer and its partner on one side of it."""
    sums: dict[str, dict[str, int]] = {}
    for part in change.parts:
        for provider, share in getattr(part, side)["allocations"].items():
            held = sums.setdefault(provider, {})
            for cls, amount in share["resources"].items():
                held[cls] = held.get(cls, 0) + amount
    return sums


@d.dataclass(frozen=True)
class Life(Sequence[Moment]):
    """The moments of one server's life, made anew each time.

    about: `operation` is one of Nova's, step by step, that ends well or fails; `race` and `swap`
    are so, too, and begin where an earlier one was disturbed; `cut`, `rename` and `random` say how
    Nova was disturbed; at a `gap` everything that Nova shows speaks against what is needed.
    """

    about: str
    server: str
    rows: Sequence[t.Mapping[str, t.Any]]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: t.Any) -> t.Any:
        return Moment.read(self.rows[number])

    def let_weeks_pass(self) -> Life:
        """Return the life with all times of its first moment weeks before the next one."""
        newest = max(_TIME.findall(json.dumps(self.rows[0])))

        def age(time: re.Match[str]) -> str:
            return time[0].replace("-20T", "-01T") if time[0] <= newest else time[0]

        return d.replace(self, rows=json.loads(_TIME.sub(age, json.dumps(self.rows))))

    def __repr__(self) -> str:
        return "\n".join([self.about, *(line for row in self.rows for line in row["told"])])


@functools.cache
def _read_lines() -> list[bytes]:
    return lzma.decompress(_FILE.read_bytes()).splitlines()


def read_lives(*about: str, least: int = 1) -> t.Iterator[Life]:
    """Yield the lives about one of these, all without any, with at `least` so many moments."""
    for line in _read_lines():
        row = json.loads(line)
        life = Life(row["about"], row["server"], row["moments"])
        if len(life) >= least and (not about or life.about.startswith(about)):
            yield life


def boot(*holds: int) -> tuple[Moment, str]:
    """Return a moment with one server on the first of three hosts, and the server.

    A bystander is on the third.

    holds: the numbers of the hosts on which the server has allocations.
    """
    moment = Moment()
    hosts = [moment.host(f"compute-{number}") for number in (1, 2, 3)]
    moment.server(hosts[2], hosts[2])
    server = moment.server(hosts[0], *(hosts[number] for number in holds))
    moment.did(server, "create", NOW)
    moment.needed[server] = {hosts[0]: dict(CLAIM)}
    return moment, server
