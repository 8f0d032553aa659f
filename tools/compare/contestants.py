"""The tools that are compared, each as users run it, without changing anything."""

from __future__ import annotations

import dataclasses as d
import os
import statistics
import sys
import typing as t
import urllib.parse

from benchmark.commands import CLEANED, DETECTED, FULL, Commands, Measurement
from minicloud_ctl.paths import REPOSITORY

from compare import outputs
from compare.results import AUDIT, CLEANUP, DETECT, HEAL, NAMES, NRPE, SCRIPT, SERVERS, Row
from compare.truth import Named, score

if t.TYPE_CHECKING:
    from pathlib import Path

    from benchmark.measuring import Run
    from minicloud_ctl.paths import Paths

    from compare.truth import Truth

_PROBE = REPOSITORY / "tools" / "compare" / "probe"
_TOOLS = REPOSITORY / "tools"
# In a cloud with a dead cell some tools fail, and that is a result too.
_ANY_STATUS = range(256)
_COUNTED = ("placement", "nova-api")
_NOTHING = Named(frozenset())
# Allocations can be made older, but the servers of the cloud are as young as it is.
_NO_MINIMUM_AGE = {"orphan_cleanup_min_age": 0, "orphan_cleanup_unknown_min_age": 0}

Environment = dict[str, str]


@d.dataclass(frozen=True)
class Contestant:
    """A tool.

    run: runs it once, with further environment variables.
    read: returns what it named in its output, or in the files of its last run.
    good: the exit statuses with which it ends as it should.
    """

    name: str
    run: t.Callable[[Environment], Measurement]
    read: t.Callable[[str, Truth], Named]
    good: tuple[int, ...] = (0,)


def list_contestants(paths: Paths, nrpe: Path | None, script: Path | None) -> list[Contestant]:
    """Return all tools; `nrpe` and `script` are the originals of two of them, if there are any."""
    commands = Commands(paths, _NO_MINIMUM_AGE)

    def run_nova_manage(*arguments: str) -> t.Callable[[Environment], Measurement]:
        return lambda extra: commands.run_nova_manage(*arguments, good=_ANY_STATUS, extra=extra)

    def run_python(*arguments: str) -> t.Callable[[Environment], Measurement]:
        command = [sys.executable, *arguments]

        def run(extra: Environment) -> Measurement:
            imports = filter(None, [extra.get("PYTHONPATH"), str(_TOOLS)])
            environment = {**extra, "PYTHONPATH": os.pathsep.join(imports)}
            return commands.run_command(*command, good=_ANY_STATUS, extra=environment)

        return run

    def detect(_extra: Environment) -> Measurement:
        commands.forget()
        return commands.detect(FULL)

    def clean_up(_extra: Environment) -> Measurement:
        commands.forget()
        return commands.clean_up()

    def read_findings(_output: str, _truth: Truth) -> Named:
        return outputs.read_findings(commands.read(DETECTED, "findings"))

    def read_outcomes(_output: str, _truth: Truth) -> Named:
        return outputs.read_outcomes(commands.read(CLEANED, "remediation"))

    audit = run_nova_manage("placement", "audit", "--verbose")
    heal = run_nova_manage("placement", "heal_allocations", "--dry-run", "--verbose")
    names = Contestant(NAMES, run_python("-m", "compare.check_names"), outputs.read_names_check)
    if nrpe:
        names = Contestant(NRPE, run_python("-m", "compare.run_nrpe", str(nrpe)), outputs.read_nrpe)
    check = run_python(str(script)) if script else run_python("-m", "compare.check_consumers")
    return [
        # 3: there are orphans.
        Contestant(AUDIT, audit, outputs.read_audit, good=(0, 3)),
        # 4: there is nothing to heal.
        Contestant(HEAL, heal, outputs.read_heal, good=(0, 4)),
        names,
        Contestant(SCRIPT if script else SERVERS, check, outputs.read_consumers),
        Contestant(DETECT, detect, read_findings),
        Contestant(CLEANUP, clean_up, read_outcomes),
    ]


def measure(
    contestant: Contestant, truth: Truth, rounds: int, ports: dict[int, str], home: Path
) -> Row:
    """Run a tool some times, and once more to count its requests."""
    runs = [contestant.run({}) for _round in range(rounds)]
    output = runs[-1].run.output
    failure = _find_failure(contestant, runs[-1].run)
    named = _NOTHING if failure else contestant.read(output, truth)
    scored = score(named, truth)
    return Row(
        tool=contestant.name,
        found=scored.found,
        missed=scored.missed,
        wrong=scored.wrong,
        drifted=scored.drifted,
        drifts=len(truth.drifted),
        seconds=round(statistics.median(run.run.seconds for run in runs), 1),
        requests=_count_requests(contestant, runs[-1], ports, home),
        failure=failure,
        foreign=round(max(run.run.foreign for run in runs), 2),
    )


def _find_failure(contestant: Contestant, run: Run) -> str:
    """Return the error with which a tool ended, empty if it ended as it should."""
    if run.status in contestant.good:
        return ""
    lines = run.output.strip().splitlines()
    return f"status {run.status}: {lines[-1][:200] if lines else ''}"


def _count_requests(
    contestant: Contestant, last: Measurement, ports: dict[int, str], home: Path
) -> int:
    """Return how many requests Nova and Placement got in one run; logins do not count."""
    urls = [request["url"] for request in last.requests]
    if not last.modules:
        # The tool is not ours. Its requests are counted in a run that is not timed.
        file = home / "requests.txt"
        file.write_text("", encoding="utf-8")
        contestant.run({"COMPARE_REQUESTS": str(file), "PYTHONPATH": str(_PROBE)})
        urls = [line.split()[1] for line in file.read_text(encoding="utf-8").splitlines()]
    services = [ports.get(urllib.parse.urlsplit(url).port or 0) for url in urls]
    return sum(service in _COUNTED for service in services)
