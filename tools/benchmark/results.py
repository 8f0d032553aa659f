# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The measurements, and whether they meet the targets. Pure."""

from __future__ import annotations

import dataclasses as d
import statistics
import typing as t

from benchmark.commands import AUDIT, FLOOR, FULL, TRIAGE

if t.TYPE_CHECKING:
    from benchmark.layout import Scale
    from benchmark.measuring import Run
    from benchmark.scoring import Score


@d.dataclass
class Measured:
    """One command at one scale, over all rounds."""

    name: str
    seconds: list[float] = d.field(default_factory=list)
    cpu: list[float] = d.field(default_factory=list)
    foreign: list[float] = d.field(default_factory=list)
    scores: list[Score] = d.field(default_factory=list)
    peaks_mib: list[float] = d.field(default_factory=list)
    endpoints: list[tuple[str, int]] = d.field(default_factory=list)
    for_healthy: int = 0

    def add(self, run: Run, score: Score | None, peak_mib: float | None) -> None:
        self.seconds.append(run.seconds)
        self.cpu.append(run.cpu)
        self.foreign.append(run.foreign)
        self.scores += [score] if score else []
        self.peaks_mib += [peak_mib] if peak_mib else []

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def exact(self) -> bool:
        return all(score.perfect for score in self.scores)


@d.dataclass
class Result:
    scale: Scale
    measured: dict[str, Measured]

    @property
    def ours(self) -> list[Measured]:
        return [self.measured[name] for name in (FULL, TRIAGE) if name in self.measured]


@d.dataclass
class Cleaning:
    """The times of the same changes, made in several ways; a run of `by_hand` makes one of them."""

    scale: Scale
    changes: int
    ours: Measured
    replayed: Measured
    unproven: Measured
    by_hand: Measured

    @property
    def all_by_hand(self) -> float:
        return self.changes * self.by_hand.median

    @property
    def target(self) -> Target:
        return Target("remediation / the same requests", 1.5, compare(self.ours, self.replayed))


@d.dataclass(frozen=True)
class Target:
    """A target with its measured value, which is None if it was not measured."""

    what: str
    limit: float
    value: float | None
    unit: str = "x"

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "not measured"
        return "yes" if self.value <= self.limit else "**no**"


def list_targets(results: list[Result]) -> list[Target]:
    """Return the targets with their measured values.

    `results` are those with few and with many orphans, and after a full run also those with twice
    the hosts and with five times the servers.
    """
    few, many = results[0], results[1]
    twice = (
        results[2].measured[FULL].median / few.measured[FULL].median if len(results) > 2 else None
    )
    peak = max(results[3].measured[FULL].peaks_mib) if len(results) > 3 else None
    return [
        Target("full detection / audit, few orphans", 0.7, compare_commands(few, FULL, AUDIT)),
        Target("full detection / audit, many orphans", 1.0, compare_commands(many, FULL, AUDIT)),
        Target("triage / audit, few orphans", 0.35, compare_commands(few, TRIAGE, AUDIT)),
        Target("triage / audit, many orphans", 0.35, compare_commands(many, TRIAGE, AUDIT)),
        Target("full detection / floor, few orphans", 1.3, compare_commands(few, FULL, FLOOR)),
        Target("full detection / floor, many orphans", 1.3, compare_commands(many, FULL, FLOOR)),
        Target("twice the hosts / the hosts", 2.2, twice),
        Target("peak memory with five times the servers", 400, peak, " MiB"),
        Target(
            "Placement requests for healthy consumers",
            0,
            max(result.measured[FULL].for_healthy for result in results),
            "",
        ),
        Target(
            "orphaned allocations missed or wrongly reported",
            0,
            sum(
                score.seeded - score.found + score.wrong
                for result in results
                for ours in result.ours
                for score in ours.scores
            ),
            "",
        ),
    ]


def compare_commands(result: Result, one: str, other: str) -> float | None:
    """Return the median of the ratios within each round; None if either was not measured.

    A load on the machine slows both within a round.
    """
    if one not in result.measured or other not in result.measured:
        return None
    return compare(result.measured[one], result.measured[other])


def compare(one: Measured, other: Measured) -> float:
    return statistics.median(
        ours / theirs for ours, theirs in zip(one.seconds, other.seconds, strict=True)
    )
