"""What the measurements must not exceed. Pure."""

from __future__ import annotations

import dataclasses as d
import typing as t

from benchmark import stages as s

if t.TYPE_CHECKING:
    from benchmark.results import Results

# Returns a figure of the results with one number of API processes; None if it was not measured.
Figure = t.Callable[["Results", int], float | None]


@d.dataclass(frozen=True)
class Bar:
    """A figure and its limit for each number of API processes."""

    what: str
    limits: dict[int, float]
    measure: Figure
    unit: str = "x"


@d.dataclass(frozen=True)
class Verdict:
    """A bar for one number of API processes with its measured value."""

    what: str
    processes: int
    limit: float
    value: float | None
    unit: str

    @property
    def missed(self) -> bool:
        return self.value is not None and self.value > self.limit


def _compare(stage: str, one: str, other: str) -> Figure:
    """Return a figure: the time of one command divided by that of another, in the same rounds."""

    def measure(results: Results, processes: int) -> float | None:
        result = results.find(stage, processes)
        return result.compare(one, other) if result else None

    return measure


def _compare_sizes(larger: str, smaller: str, command: str) -> Figure:
    """Return a figure: the time of a command at one size divided by that at another."""

    def measure(results: Results, processes: int) -> float | None:
        medians = []
        for stage in (larger, smaller):
            result = results.find(stage, processes)
            medians.append(result.find_median(command) if result else None)
        if not medians[0] or not medians[1]:
            return None
        return medians[0] / medians[1]

    return measure


def _find_most_requests(command: str) -> Figure:
    """Return a figure: the most requests of a run of this command, at any size.

    Orphans are looked up again in each run, so a cloud that has some does not count.
    """

    def measure(results: Results, processes: int) -> float | None:
        counts = []
        for result in results.list_all():
            if result.processes == processes and result.name != s.WORST:
                counts += [run.requests for run in result.runs.get(command, [])]
        return max(counts, default=None)

    return measure


def _find_most_memory(stage: str) -> Figure:
    def measure(results: Results, processes: int) -> float | None:
        result = results.find(stage, processes)
        if result is None:
            return None
        return max(run.peak_mib for runs in result.runs.values() for run in runs)

    return measure


def _count_for_healthy(results: Results, processes: int) -> float | None:
    counts = []
    for result in results.list_all():
        if result.processes == processes:
            counts += [result.for_healthy.get(command, 0) for command in (s.FULL, s.CLEANUP)]
    return max(counts, default=None)


def _count_faults(results: Results, processes: int) -> float | None:
    """Count what was missed or wrongly reported, and complaints such as undecided consumers."""
    scores = []
    for result in results.list_all():
        for command in s.EXACT:
            if result.processes == processes:
                scores += [run.score for run in result.runs.get(command, []) if run.score]
    if not scores:
        return None
    faults = 0
    for score in scores:
        faults += score.seeded - score.found + score.wrong + bool(score.complaint)
    return faults


def _always(limit: float, processes: tuple[int, ...] = (1, 2)) -> dict[int, float]:
    return dict.fromkeys(processes, limit)


BARS = (
    Bar("clean up in check mode / audit", {1: 1.0, 2: 0.75}, _compare(s.MAIN, s.CLEANUP, s.AUDIT)),
    Bar(
        "incremental detection, nothing changed / audit",
        _always(0.15),
        _compare(s.MAIN, s.UNCHANGED, s.AUDIT),
    ),
    Bar(
        "incremental detection, 1 % of the servers changed / audit",
        _always(0.25),
        _compare(s.MAIN, s.CHANGED, s.AUDIT),
    ),
    Bar(
        "incremental detection, twice the hosts with the same changes / the hosts",
        _always(1.3),
        _compare_sizes(s.TWICE, s.MAIN, s.CHANGED),
    ),
    Bar(
        "requests of incremental detection, nothing changed, at any size",
        _always(25),
        _find_most_requests(s.UNCHANGED),
        "",
    ),
    Bar(
        "full detection on 5 hosts / `openstack server list`",
        _always(1.6),
        _compare(s.SMALL, s.FULL, s.SERVER_LIST),
    ),
    Bar(
        "peak memory of a module with five times the servers",
        _always(300, (2,)),
        _find_most_memory(s.MEMORY),
        " MiB",
    ),
    Bar(
        "listing of the hypervisors in as many strands as chosen / in one",
        _always(1.05),
        _compare(s.MAIN, s.CHOSEN_STRANDS, s.ONE_STRAND),
    ),
    Bar(
        "full detection, twice the hosts / the hosts",
        _always(2.2),
        _compare_sizes(s.TWICE, s.MAIN, s.FULL),
    ),
    Bar(
        "the module `orphan_remediate` / its requests",
        _always(1.5, (2,)),
        _compare(s.REMEDIATION, s.REMEDIATE_MODULE, s.REPLAY),
    ),
    Bar(
        "Placement requests of full detection for healthy consumers",
        _always(0),
        _count_for_healthy,
        "",
    ),
    Bar(
        "orphaned allocations missed, wrongly reported or undecided, in all rounds and modes",
        _always(0),
        _count_faults,
        "",
    ),
)


def judge(results: Results) -> list[Verdict]:
    """Return each bar, for each number of API processes, with its measured value."""
    verdicts = []
    for limited in BARS:
        for processes, limit in limited.limits.items():
            value = limited.measure(results, processes)
            verdicts.append(Verdict(limited.what, processes, limit, value, limited.unit))
    return verdicts
