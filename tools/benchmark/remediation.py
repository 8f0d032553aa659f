"""Measures the remediation of many orphans, and other ways to make the same changes."""

from __future__ import annotations

import dataclasses as d
import typing as t

from minicloud_ctl.databases import keep_allocations, restore_allocations

from benchmark import openstackclient, originals, requests_made, scoring
from benchmark.commands import CLEANED, REMEDIATED, Commands
from benchmark.layout import Scale
from benchmark.measuring import Failed
from benchmark.results import Observation, StageResult
from benchmark.rounds import begin_result, observe, say
from benchmark.seeding import SeededCloud
from benchmark.stages import BY_HAND, REMEDIATE, REMEDIATE_MODULE, REPLAY, UNPROVEN

if t.TYPE_CHECKING:
    from minicloud_ctl.paths import Paths

    from benchmark.commands import Measurement
    from benchmark.stages import Stage

# How many changes are made with one command each; the time of all of them is extrapolated.
_BY_HAND = 10
_MODULE = "orphan_remediate"


def run_remediation(paths: Paths, stage: Stage, changes: int) -> StageResult:
    openstack = openstackclient.install(paths)
    size = stage.scale
    scale = Scale(size.hosts, size.servers, changes / size.total)
    stage = d.replace(stage, scale=scale, orphans=changes)
    say(f"{stage.name}: seeding {scale}")
    originals.stop(paths)
    cloud = SeededCloud(paths, scale)
    keep_allocations(paths)
    (processes,) = stage.processes
    originals.start(paths, processes)
    result = begin_result(stage, processes)
    commands = Commands(paths)
    commands.forget()
    commands.clean_up()
    planned = commands.read(CLEANED, "plan")["changes"]
    if len(planned) != changes:
        raise Failed(f"{len(planned)} changes are planned for {changes} seeded orphans.")
    # Not measured: it fills the services' caches, and its requests are recorded for the replay.
    requests = _get_requests(commands.clean_up_by_plan())
    for _number in range(stage.rounds):
        restore_allocations(paths)
        _remediate(commands, cloud.truth, result)
        restore_allocations(paths)
        result.add(REPLAY, observe(commands.replay(requests)))
        restore_allocations(paths)
        result.add(UNPROVEN, observe(commands.remediate_without_proofs()))
    restore_allocations(paths)
    for change in _choose_some(planned):
        command = openstackclient.build_unset_command(openstack, change)
        result.add(BY_HAND, observe(commands.run_command(*command)))
    counts = requests_made.count_endpoints(requests, commands.list_ports())
    result.endpoints[REMEDIATE] = requests_made.hide_limits(counts)
    for name in result.runs:
        say(f"{stage.name}: {name} {result.find_median(name):.2f} s")
    return result


def _remediate(commands: Commands, truth: dict[str, t.Any], result: StageResult) -> None:
    """Make all changes, and keep the time of the playbook and of its module."""
    measurement = commands.clean_up_by_plan()
    score = scoring.score_outcomes(commands.read(REMEDIATED, "remediation"), truth)
    if not score.perfect:
        raise Failed(f"Not exactly the planned changes were made: {score}")
    observation = observe(measurement, score)
    result.add(REMEDIATE, observation)
    result.add(REMEDIATE_MODULE, Observation(observation.modules[_MODULE]))


def _get_requests(measurement: Measurement) -> list[dict[str, t.Any]]:
    """Return what the module that makes the changes sent."""
    (module,) = [module for module in measurement.modules if module["module"] == _MODULE]
    found: list[dict[str, t.Any]] = module["requests"]
    return found


def _choose_some(planned: list[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    """Choose changes that one command can make."""
    simple = [change for change in planned if change["action"] in ("remove", "reduce")]
    return simple[:: max(1, len(simple) // _BY_HAND)][:_BY_HAND]
