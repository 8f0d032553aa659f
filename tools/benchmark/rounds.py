"""Measures one stage: several rounds on one cloud."""

from __future__ import annotations

import datetime
import random
import sys
import typing as t

from benchmark import commands, listing, openstackclient, originals, requests_made, scoring
from benchmark import stages as s
from benchmark.commands import CLEANED, DETECTED, Commands
from benchmark.layout import plan_changes, undo_changes
from benchmark.machine import describe_machine
from benchmark.measuring import Failed
from benchmark.results import Observation, StageResult
from benchmark.seeding import SeededCloud

if t.TYPE_CHECKING:
    from collections.abc import Callable

    from minicloud_ctl.paths import Paths

    from benchmark.commands import Measurement
    from benchmark.layout import Change
    from benchmark.scoring import Score
    from benchmark.stages import Stage


def run_stage(paths: Paths, stage: Stage, with_incremental: bool) -> list[StageResult]:
    """Measure a stage with each number of API processes, on a cloud that is seeded once."""
    openstack = ""
    if s.SERVER_LIST in stage.steps:
        openstack = openstackclient.install(paths)
    say(f"{stage.name}: seeding {stage.scale}")
    originals.stop(paths)
    cloud = SeededCloud(paths, stage.scale)
    results = []
    for processes in stage.processes:
        originals.stop(paths)
        originals.start(paths, processes)
        result = begin_result(stage, processes)
        Rounds(Commands(paths), cloud, stage, result, with_incremental, openstack).run()
        results.append(result)
    return results


def begin_result(stage: Stage, processes: int) -> StageResult:
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return StageResult(
        stage.name,
        processes,
        str(stage.scale),
        today,
        describe_machine(),
        stage.changed,
        stage.orphans,
    )


def observe(measurement: Measurement, score: Score | None = None) -> Observation:
    run = measurement.run
    modules: dict[str, float] = {}
    peak = 0.0
    for module in measurement.modules:
        name = module["module"]
        modules[name] = modules.get(name, 0) + module["seconds"]
        peak = max(peak, module["peak_kib"] / 1024)
    requests = len(measurement.requests)
    return Observation(run.seconds, run.cpu, run.foreign, requests, peak, modules, score)


def say(what: str) -> None:
    print(f"bench: {what}", file=sys.stderr, flush=True)


class Rounds:
    """The rounds of one stage with one number of API processes."""

    def __init__(
        self,
        runner: Commands,
        cloud: SeededCloud,
        stage: Stage,
        result: StageResult,
        with_incremental: bool,
        openstack: str,
    ) -> None:
        self._commands = runner
        self._cloud = cloud
        self._stage = stage
        self._result = result
        self._with_incremental = with_incremental
        self._sent_by_cleanup: list[dict[str, t.Any]] = []
        self._steps: dict[str, Callable[[], Measurement]] = {
            s.FULL: self._detect_all,
            s.UNCHANGED: self._detect_changes,
            s.CHANGED: self._detect_changes,
            s.CLEANUP: runner.clean_up,
            s.REPLAY: lambda: runner.replay(self._sent_by_cleanup),
            s.AUDIT: runner.audit,
            s.SERVER_LIST: lambda: runner.list_servers(openstack),
            s.ONE_STRAND: lambda: runner.list_hypervisors(listing.ONE),
            s.CHOSEN_STRANDS: lambda: runner.list_hypervisors(listing.CHOSEN),
        }

    def run(self) -> None:
        # Not measured: it fills the caches of the services and of the disk.
        self._commands.forget()
        self._commands.detect(commands.FULL)
        for number in range(self._stage.rounds):
            self._run_round(number)

    def _run_round(self, number: int) -> None:
        self._commands.forget()
        changes: list[Change] = []
        for step in self._stage.steps:
            if step == s.CHANGE:
                changes = self._change_servers(number)
            elif self._with_incremental or step not in s.INCREMENTAL:
                self._measure(step)
        if changes:
            self._cloud.change(undo_changes(changes), undo=True)

    def _change_servers(self, number: int) -> list[Change]:
        stage = self._stage
        chance = random.Random(f"{stage.name} {number}")
        changes = plan_changes(
            self._cloud.placed, self._cloud.hosts, stage.changed, stage.orphans, chance
        )
        self._cloud.change(changes)
        return changes

    def _measure(self, step: str) -> None:
        measurement = self._steps[step]()
        score = self._score(step, measurement)
        observation = observe(measurement, score)
        self._result.add(step, observation)
        if measurement.modules:
            self._count_requests(step, measurement)
        if step == s.CLEANUP:
            self._sent_by_cleanup = measurement.requests
        say(self._format_progress(step, observation))

    def _detect_all(self) -> Measurement:
        """Detect without a memory, in the mode that keeps one for the next run."""
        if not self._with_incremental:
            return self._commands.detect(commands.FULL)
        measurement = self._commands.detect(commands.INCREMENTAL)
        self._require_reading("full")
        return measurement

    def _detect_changes(self) -> Measurement:
        measurement = self._commands.detect(commands.INCREMENTAL)
        self._require_reading("incremental")
        return measurement

    def _require_reading(self, expected: str) -> None:
        coverage = self._commands.read(DETECTED, "findings")["summary"]["coverage"]
        if coverage.get("reading") != expected:
            raise Failed(
                f"The reading was {coverage.get('reading')} instead of {expected}: "
                f"{coverage.get('why_full')}"
            )

    def _score(self, step: str, measurement: Measurement) -> Score | None:
        truth = self._cloud.truth
        if step in (s.FULL, s.UNCHANGED, s.CHANGED):
            return scoring.score_report(self._commands.read(DETECTED, "findings"), truth)
        if step == s.CLEANUP:
            found = scoring.score_report(self._commands.read(CLEANED, "findings"), truth)
            verified = self._commands.read(CLEANED, "remediation")
            return scoring.add_scores(found, scoring.score_outcomes(verified, truth))
        if step == s.AUDIT:
            return scoring.score_audit(measurement.run.output, truth)
        return None

    def _count_requests(self, step: str, measurement: Measurement) -> None:
        ports = self._commands.list_ports()
        requests = measurement.requests
        # The page shows those of this stage alone.
        if self._stage.name == s.MAIN and self._result.processes == max(self._stage.processes):
            counts = requests_made.count_endpoints(requests, ports)
            self._result.endpoints[step] = requests_made.hide_limits(counts)
        involved = set(self._cloud.truth["involved"])
        counted = requests_made.count_for_healthy(requests, involved)
        before = self._result.for_healthy.get(step, 0)
        self._result.for_healthy[step] = max(before, counted)

    def _format_progress(self, step: str, observation: Observation) -> str:
        stage = self._stage
        text = f"{stage.name}, API processes {self._result.processes}: {step} "
        text += f"{observation.seconds:.2f} s, {observation.requests} requests"
        score = observation.score
        if score:
            text += f", found {score.found} of {score.seeded}, wrong {score.wrong}"
            text += f" {score.complaint}"
        return f"{text} ({observation.foreign:.0%} of the machine was busy with other work)"
