"""`make mutants`: how many small changes of the code the unit tests find.

It writes `tests/judges/results/mutants.json`. The exit status is 1 if fewer than 95 % are found, or
if one survives without a reason in `survivors.json`.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import importlib.metadata
import json
import queue
import signal
import sys
import typing as t
from pathlib import Path

from ....tools.json_text import format_json
from .judging import OUTCOMES, SURVIVED, Judge, JudgingError
from .sampling import MODULES, ROOM, Mutant, draw_mutants, list_modules

ROOT = Path(__file__).resolve().parents[3]
CACHE = ROOT / ".cache" / "mutants"
# The outcome of each mutant as soon as it is known: a run that was interrupted can be continued.
OUTCOMES_FILE = CACHE / "outcomes.jsonl"
# How long each test file takes without a mutant.
SECONDS_FILE = CACHE / "seconds.json"
RESULTS = ROOT / "tests" / "judges" / "results" / "mutants.json"
REASONS = Path(__file__).with_name("survivors.json")

BAR = 0.95


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make mutants MUTANTS_ARGS='...'",
        description="Change the code in small ways, and count how many the unit tests find.",
    )
    parser.add_argument("--sample", type=int, default=400, help="how many mutants (default: 400)")
    parser.add_argument("--seed", type=int, default=43, help="chooses the sample (default: 43)")
    parser.add_argument("--workers", type=int, default=2, help="at a time (default: 2)")
    parser.add_argument(
        "--continue",
        action="store_true",
        dest="go_on",
        help="do not judge again what the last run, interrupted or not, has killed or explained",
    )
    return parser


def main(argv: list[str]) -> int:
    arguments = build_parser().parse_args(argv)
    # A terminated run ends its tests like an interrupted one.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    sample = draw_mutants(ROOT, arguments.seed, arguments.sample)
    if not arguments.go_on:
        OUTCOMES_FILE.unlink(missing_ok=True)
        SECONDS_FILE.unlink(missing_ok=True)
    known = _read_known()
    left = [mutant for mutant in sample if mutant.id not in known]
    say(f"{len(sample)} mutants, {len(sample) - len(left)} of them judged before")
    try:
        outcomes = known | _judge_all(left, arguments.workers)
    except JudgingError as error:
        say(str(error))
        return 1
    results = _summarize(sample, outcomes, arguments.seed)
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(format_json(results), encoding="utf-8")
    return _conclude(results)


def say(text: str) -> None:
    print(text, flush=True)


def _read_known() -> dict[str, str]:
    """Return the outcomes that need no second look: of killed mutants, and of explained ones."""
    explained = json.loads(REASONS.read_text(encoding="utf-8"))
    known = {}
    if OUTCOMES_FILE.exists():
        for line in OUTCOMES_FILE.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if entry["outcome"] != SURVIVED or entry["id"] in explained:
                known[entry["id"]] = entry["outcome"]
    return known


def _judge_all(mutants: list[Mutant], workers: int) -> dict[str, str]:
    """Return the outcome of each mutant."""
    if not mutants:
        return {}
    seconds = _measure()
    judges = []
    free: queue.Queue[Judge] = queue.Queue()
    for number in range(workers):
        judge = Judge.in_copy(ROOT, CACHE / f"tree-{number + 1}")
        judge.seconds = seconds
        judges.append(judge)
        free.put(judge)
    outcomes: dict[str, str] = {}

    def judge_one(mutant: Mutant) -> tuple[Mutant, str]:
        judge = free.get()
        try:
            return mutant, judge.judge(mutant)
        finally:
            free.put(judge)

    with (
        OUTCOMES_FILE.open("a", encoding="utf-8") as file,
        concurrent.futures.ThreadPoolExecutor(workers) as pool,
    ):
        try:
            for future in concurrent.futures.as_completed(
                [pool.submit(judge_one, mutant) for mutant in mutants]
            ):
                mutant, outcome = future.result()
                outcomes[mutant.id] = outcome
                file.write(f"{json.dumps({'id': mutant.id, 'outcome': outcome})}\n")
                file.flush()
                say(f"{len(outcomes)}/{len(mutants)} {outcome}: {mutant.id}")
                if outcome == SURVIVED:
                    say(f"  line {mutant.line}: {mutant.before}\n  became: {mutant.after}")
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for judge in judges:
                judge.close()
    return outcomes


def _measure() -> dict[str, float]:
    """Return how long each test file takes; a continued run uses what the one before measured."""
    if not SECONDS_FILE.exists():
        say("The unit tests run once without a mutant.")
        judge = Judge.in_copy(ROOT, CACHE / "tree-1")
        try:
            seconds = judge.measure()
        finally:
            judge.close()
        SECONDS_FILE.write_text(json.dumps(seconds), encoding="utf-8")
    measured: dict[str, float] = json.loads(SECONDS_FILE.read_text(encoding="utf-8"))
    return measured


def _summarize(sample: list[Mutant], outcomes: t.Mapping[str, str], seed: int) -> dict[str, t.Any]:
    """Return the figures of a run, and every survivor with its reason."""
    reasons = json.loads(REASONS.read_text(encoding="utf-8"))
    rooms: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    survivors = []
    for mutant in sample:
        outcome = outcomes[mutant.id]
        rooms[mutant.module.rpartition("/")[0]][outcome] += 1
        if outcome == SURVIVED:
            place = {"id": mutant.id, "file": f"{ROOM}/{mutant.module}", "line": mutant.line}
            change = {"before": mutant.before, "after": mutant.after}
            survivors.append({**place, **change, "reason": reasons.get(mutant.id, "")})
    return {
        "tool": f"cosmic-ray {importlib.metadata.version('cosmic-ray')}",
        "seed": seed,
        "modules": {"patterns": list(MODULES), "count": len(list_modules(ROOT))},
        "mutants": len(sample),
        "killed": len(sample) - len(survivors),
        "rooms": {room: {name: found[name] for name in OUTCOMES} for room, found in rooms.items()},
        "survivors": survivors,
    }


def _conclude(results: t.Mapping[str, t.Any]) -> int:
    killed, mutants = results["killed"], results["mutants"]
    unexplained = [entry["id"] for entry in results["survivors"] if not entry["reason"]]
    say(f"{killed} of {mutants} mutants are killed by the unit tests ({killed / mutants:.1%}).")
    for mutant_id in unexplained:
        say(f"It survived, and survivors.json has no reason: {mutant_id}")
    return 1 if unexplained or killed < BAR * mutants else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
