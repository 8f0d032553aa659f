"""The measurements, kept as JSON.

A run of some stages does not change the results of the others.

{"stages": {name: {number of processes: the fields of `StageResult`}}}
"""

from __future__ import annotations

import dataclasses as d
import json
import statistics
import typing as t
from pathlib import Path

from json_text import format_json

from benchmark.scoring import Score

KEPT = Path(__file__).parent / "results.json"


@d.dataclass
class Observation:
    """One measured run of one command.

    seconds: wall time. cpu: processor time in seconds, without the services.
    foreign: the fraction of the machine's processor time that other processes used meanwhile.
    requests: how many requests the modules sent. peak_mib: the most memory of any module.
    modules: the seconds of each module, from the start to the end of its process.
    """

    seconds: float
    cpu: float = 0
    foreign: float = 0
    requests: int = 0
    peak_mib: float = 0
    modules: dict[str, float] = d.field(default_factory=dict)
    score: Score | None = None


@d.dataclass
class StageResult:
    """The measurements of one stage with one number of API processes.

    runs: for each command its runs, one for each round.
    endpoints: for each command how often the last run sent each type of request.
    for_healthy: for each command the single look-ups of consumers that are in no orphan.
    """

    name: str
    processes: int
    size: str
    date: str
    machine: str
    changed: int = 0
    orphans: int = 0
    runs: dict[str, list[Observation]] = d.field(default_factory=dict)
    endpoints: dict[str, list[tuple[str, int]]] = d.field(default_factory=dict)
    for_healthy: dict[str, int] = d.field(default_factory=dict)

    def add(self, command: str, observation: Observation) -> None:
        self.runs.setdefault(command, []).append(observation)

    def find_median(self, command: str) -> float | None:
        """Return the median time of a command in seconds; None if it was not measured."""
        if command not in self.runs:
            return None
        return statistics.median(run.seconds for run in self.runs[command])

    def compare(self, one: str, other: str) -> float | None:
        """Return the median of the ratios within each round; None if either was not measured.

        A load on the machine slows both within a round.
        """
        if one not in self.runs or other not in self.runs:
            return None
        rounds = zip(self.runs[one], self.runs[other], strict=False)
        return statistics.median(ours.seconds / theirs.seconds for ours, theirs in rounds)


@d.dataclass
class Results:
    """The newest results of all stages, by name and number of API processes."""

    stages: dict[str, dict[int, StageResult]] = d.field(default_factory=dict)

    def add(self, result: StageResult) -> None:
        self.stages.setdefault(result.name, {})[result.processes] = result

    def find(self, name: str, processes: int) -> StageResult | None:
        return self.stages.get(name, {}).get(processes)

    def list_all(self) -> list[StageResult]:
        found: list[StageResult] = []
        for by_processes in self.stages.values():
            found += by_processes.values()
        return found

    def replace(self, newer: Results) -> None:
        """Take the stages of a newer run, each as a whole."""
        self.stages.update(newer.stages)

    def save(self, path: Path) -> None:
        path.write_text(format_json(d.asdict(self)), encoding="utf-8")


def load(path: Path) -> Results:
    """Return the results of earlier runs; none without the file."""
    results = Results()
    if not path.exists():
        return results
    for by_processes in json.loads(path.read_text(encoding="utf-8"))["stages"].values():
        for fields in by_processes.values():
            results.add(_parse_stage(fields))
    return results


def _parse_stage(fields: dict[str, t.Any]) -> StageResult:
    runs = {}
    for command, observations in fields["runs"].items():
        runs[command] = [_parse_observation(observation) for observation in observations]
    endpoints = {}
    for command, counts in fields["endpoints"].items():
        endpoints[command] = list(map(tuple, counts))
    return StageResult(**{**fields, "runs": runs, "endpoints": endpoints})


def _parse_observation(fields: dict[str, t.Any]) -> Observation:
    score = None
    if fields["score"]:
        score = Score(**fields["score"])
    return Observation(**{**fields, "score": score})
