# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What was measured, and what follows from it for each bar. Pure."""

from __future__ import annotations

import dataclasses as d
import statistics
import typing as t

from benchmark.contestants import AUDIT, FLOOR, FULL, TRIAGE

if t.TYPE_CHECKING:
    from benchmark.layout import Scale
    from benchmark.measuring import Run
    from benchmark.scoring import Score


@d.dataclass
class Measured:
    """One contestant at one scale, over all rounds."""

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
    """How long it took to make `changes` changes; of `by_hand` each run made one of them."""

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
    def goal(self) -> Bar:
        return Bar("remediation / the same requests", 1.5, compared(self.ours, self.replayed))


@d.dataclass(frozen=True)
class Bar:
    """A figure that is to be reached; `reached` is None where it was not measured."""

    what: str
    limit: float
    reached: float | None
    unit: str = "x"

    @property
    def verdict(self) -> str:
        if self.reached is None:
            return "not measured"
        return "yes" if self.reached <= self.limit else "**no**"


def bars(results: list[Result]) -> list[Bar]:
    """`results`: few orphans, and many.

    Unless it was a short run, also twice the hosts and five times the servers.
    """
    few, many = results[0], results[1]
    twice = (
        results[2].measured[FULL].median / few.measured[FULL].median if len(results) > 2 else None
    )
    peak = max(results[3].measured[FULL].peaks_mib) if len(results) > 3 else None
    return [
        Bar("full detection / audit, few orphans", 0.7, ratio(few, FULL, AUDIT)),
        Bar("full detection / audit, many orphans", 1.0, ratio(many, FULL, AUDIT)),
        Bar("triage / audit, few orphans", 0.35, ratio(few, TRIAGE, AUDIT)),
        Bar("triage / audit, many orphans", 0.35, ratio(many, TRIAGE, AUDIT)),
        Bar("full detection / floor, few orphans", 1.3, ratio(few, FULL, FLOOR)),
        Bar("full detection / floor, many orphans", 1.3, ratio(many, FULL, FLOOR)),
        Bar("twice the hosts / the hosts", 2.2, twice),
        Bar("peak memory with five times the servers", 400, peak, " MiB"),
        Bar(
            "Placement requests for healthy consumers",
            0,
            max(result.measured[FULL].for_healthy for result in results),
            "",
        ),
        Bar(
            "orphaned shares missed or wrongly named",
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


def ratio(result: Result, one: str, other: str) -> float | None:
    """The median over the rounds of how the two compare within a round.

    What slows the machine for a while slows both.
    """
    if one not in result.measured or other not in result.measured:
        return None
    return compared(result.measured[one], result.measured[other])


def compared(one: Measured, other: Measured) -> float:
    return statistics.median(
        ours / theirs for ours, theirs in zip(one.seconds, other.seconds, strict=True)
    )
