"""What the minicloud's scenarios say is true, and what a tool named of it. Pure."""

from __future__ import annotations

import dataclasses as d
import typing as t

if t.TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

# A consumer and a provider.
Pair = tuple[str, str]

# Kinds about live servers whose allocations are not as they should be. They are no orphans: their
# allocations are to be corrected and not to be removed.
DRIFTS = (
    "leaked_child",
    "leaked_port",
    "misplaced_allocation",
    "missing_allocation",
    "unreverted_allocation",
    "wrong_amount",
    "wrong_owner",
)


@d.dataclass(frozen=True)
class Truth:
    """The allocations of a cloud.

    orphans: those that nothing needs.
    needed: those that somebody needs, with the scenario that made them.
    drifted: the live servers with wrong allocations, by uuid, with their kind.
    names: the names of the providers by uuid.
    """

    orphans: frozenset[Pair]
    needed: Mapping[Pair, str]
    drifted: Mapping[str, str]
    names: Mapping[str, str]


@d.dataclass(frozen=True)
class Named:
    """What a tool named.

    pairs: allocations to remove.
    servers: servers whose allocations it calls wrong.
    """

    pairs: frozenset[Pair]
    servers: frozenset[str] = frozenset()


@d.dataclass(frozen=True)
class Score:
    """found, missed: orphans that were named, and those that were not.

    wrong: the scenarios of needed allocations that were named as orphans, one for each allocation.
    drifted: the kinds of the live servers with wrong allocations that were named.
    """

    found: int
    missed: int
    wrong: tuple[str, ...]
    drifted: tuple[str, ...]


def read_truth(records: Iterable[Mapping[str, t.Any]]) -> Truth:
    """Return the truth of the scenarios, whose records the minicloud wrote."""
    orphans: set[Pair] = set()
    needed: dict[Pair, str] = {}
    drifted: dict[str, str] = {}
    names: dict[str, str] = {}
    for record in records:
        scenario = record["scenario"]
        if scenario in DRIFTS:
            drifted[record["server"]] = scenario
        for allocation in record["allocations"]:
            pair = allocation["consumer"], allocation["provider"]
            names[allocation["provider"]] = allocation["provider_name"]
            if allocation["truth"] != "orphaned":
                needed[pair] = scenario
            elif allocation["kind"] not in DRIFTS:
                orphans.add(pair)
    return Truth(frozenset(orphans), needed, drifted, names)


def select_pairs(truth: Truth, consumers: Collection[str]) -> frozenset[Pair]:
    """Return all allocations of some consumers."""
    return frozenset(pair for pair in {*truth.orphans, *truth.needed} if pair[0] in consumers)


def score(named: Named, truth: Truth) -> Score:
    found = len(named.pairs & truth.orphans)
    wrong = sorted(truth.needed[pair] for pair in named.pairs if pair in truth.needed)
    drifted = sorted(kind for server, kind in truth.drifted.items() if server in named.servers)
    return Score(found, len(truth.orphans) - found, tuple(wrong), tuple(drifted))
