"""Run the fuzzer: `python -m ...fuzzer --minutes 60 --seed 1`, or replay a run of it.

With MINICLOUD_HOME set, the cloud of that folder is used and kept.
"""

import argparse
import collections
import dataclasses as d
import os
import sys
import tempfile
import time
import typing as t
from pathlib import Path

from ...integration.support import ROOT, Ansible, Minicloud
from .cloudlet import Cloudlet, Result
from .design import Spec, design_run
from .scenery import SCENARIOS


@d.dataclass
class Figures:
    """What all runs together came to."""

    runs: int = 0
    requests: int = 0
    mutations: int = 0
    damaged: int = 0
    removed: int = 0
    proposed_falsely: int = 0
    slowest: float = 0.0
    failures: list[int] = d.field(default_factory=list)
    forged: list[int] = d.field(default_factory=list)
    rules: collections.Counter[str] = d.field(default_factory=collections.Counter)
    endings: collections.Counter[str] = d.field(default_factory=collections.Counter)

    def add(self, result: Result) -> None:
        self.runs += 1
        self.requests += result.requests
        self.mutations += len(result.hit)
        self.damaged += len(result.applied)
        self.removed += result.removed
        self.proposed_falsely += result.proposed_falsely
        self.slowest = max(self.slowest, result.seconds)
        for ending in result.endings:
            self.endings[
                ending.partition(":")[0] + (": ok" if ending.endswith("succeeded") else ": failed")
            ] += 1

    def fail(self, result: Result, specs: t.Sequence[Spec]) -> bool:
        """Count a run that broke a rule, and return whether it is a failure.

        A service that says the same untruth each time, in its own form, convinces every client.
        """
        if specs and all(spec.forges for spec in specs) and _is_about_truth(result):
            self.forged.append(result.number)
            return False
        self.failures.append(result.number)
        for violation in result.violations:
            self.rules[violation.rule] += 1
        return True

    def __str__(self) -> str:
        return (
            f"{self.runs} runs, {self.requests} requests, {self.mutations} mutations that met a "
            f"request, {self.damaged} damaged answers, {self.removed} allocations changed, "
            f"{self.proposed_falsely} false proposals at detection, slowest run "
            f"{self.slowest:.0f} s, failed runs: {self.failures}, convinced by "
            f"forged answers: {self.forged}, rules: {dict(self.rules)}, "
            f"endings: {dict(self.endings)}"
        )


def minimise(cloudlet: Cloudlet, result: Result, attempts: int = 12) -> list[Spec]:
    """Return as few of a run's mutations as still break the same rule."""
    rules = {violation.rule for violation in result.violations}
    specs = [spec for spec in result.design.specs if spec in result.hit]
    for spec in list(specs):
        if len(specs) == 1 or attempts <= 0:
            break
        attempts -= 1
        fewer = [other for other in specs if other != spec]
        again = cloudlet.run(result.number, result.design, fewer)
        if rules & {violation.rule for violation in again.violations}:
            specs = fewer
    return specs


def _is_about_truth(result: Result) -> bool:
    """Return whether only rules about what is true were broken, and none about how it is said."""
    return all(violation.is_about_truth for violation in result.violations)


def show(title: str, seed: int, result: Result, specs: t.Sequence[Spec]) -> None:
    """Print a failed run with all that is needed to make it again."""
    print(f"{title}: --seed {seed} --run {result.number} ({result.design.scope})")
    for violation in result.violations:
        print(f"  rule: {str(violation)[:1600]}")
    for spec in specs:
        print(f"  mutation: {spec}")
    for note in result.applied[:12]:
        print(f"  answer: {note[:400]}")
    for ending in result.endings:
        print(f"  {ending[:600]}")
    sys.stdout.flush()


def fuzz(cloudlet: Cloudlet, seed: int, runs: t.Iterable[int], until: float) -> Figures:
    """Make runs until a time, print those that fail, and return what they came to."""
    figures = Figures()
    for number in runs:
        if time.monotonic() > until:
            break
        result = cloudlet.run(number, design_run(seed, number))
        figures.add(result)
        if result.violations:
            specs = minimise(cloudlet, result)
            title = "FAILED" if figures.fail(result, specs) else "FORGED"
            show(title, seed, result, specs)
        if figures.runs % 50 == 0:
            print(f"... {figures}", flush=True)
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--run", type=int, help="make only this run")
    parser.add_argument("--runs", type=int, default=10**6, help="make at most so many runs")
    parser.add_argument("--dead-cell", action="store_true", help="let one of two cells be down")
    options = parser.parse_args()
    kept = os.environ.get("MINICLOUD_HOME")
    minicloud = Minicloud(ROOT, Path(kept or ROOT / ".minicloud" / "fuzz"), kept=bool(kept))
    minicloud.run("install")
    minicloud.run("up")
    try:
        minicloud.scenario(*SCENARIOS)
        with tempfile.TemporaryDirectory() as folder:
            ansible = Ansible(ROOT, Path(folder), minicloud.environment)
            cloudlet = Cloudlet(minicloud, ansible, SCENARIOS, options.dead_cell)
            try:
                runs = range(options.runs) if options.run is None else [options.run]
                until = time.monotonic() + options.minutes * 60
                figures = fuzz(cloudlet, options.seed, runs, until)
            finally:
                cloudlet.close()
    finally:
        minicloud.forget()
    print(f"seed {options.seed}: {figures}")
    return 1 if figures.failures else 0


if __name__ == "__main__":
    sys.exit(main())
