"""`python -m compare`: runs all tools on one small cloud, and writes the tables of the page."""

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path

from benchmark.measuring import Failed
from minicloud_ctl import lifecycle
from minicloud_ctl import state as states
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import REPOSITORY, Paths
from running import end_when_terminated, run_minicloud

from compare import page, results
from compare.contestants import list_contestants, measure
from compare.results import Results, Row
from compare.truth import Truth, read_truth

# The allocations become old enough for the default minimum ages.
_DAYS = "3"
_COMPUTES = "4"


def build_parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="make compare COMPARE_ARGS='...'",
        description=(
            "Run other tools and the collection on a small cloud with every situation, change "
            "nothing, and write what each found into docs/comparison.md."
        ),
    )
    top.add_argument("--rounds", type=int, default=3, help="how often each tool is timed")
    top.add_argument(
        "--nrpe",
        type=Path,
        metavar="PATH",
        help="run_allocation_checks.py of charm-openstack-service-checks, to be run itself",
    )
    top.add_argument(
        "--script",
        type=Path,
        metavar="PATH",
        help="orphan_allocations.py of pshchelo/stackdev, to be run itself",
    )
    top.add_argument("--page", type=Path, default=REPOSITORY / "docs" / "comparison.md")
    top.add_argument("--results", type=Path, default=results.KEPT)
    top.add_argument("--home", default=str(REPOSITORY / ".minicloud" / "compare"))
    return top


def main(argv: list[str]) -> int:
    arguments = build_parser().parse_args(argv)
    end_when_terminated()
    try:
        compared = _compare(arguments)
    except (MinicloudError, Failed, subprocess.CalledProcessError) as error:
        print(f"compare: {error}\n{getattr(error, 'detail', '') or ''}", file=sys.stderr)
        return 1
    compared.save(arguments.results)
    page.write(arguments.page, compared)
    print(page.render(compared))
    return 0


def _compare(arguments: argparse.Namespace) -> Results:
    paths = Paths.choose(arguments.home)
    # After a restart, Nova cleans up some situations.
    lifecycle.down(paths, purge=True)
    try:
        run_minicloud(paths.home, paths.venv, "up", "--computes", _COMPUTES)
        run_minicloud(paths.home, paths.venv, "scenario", "all")
        run_minicloud(paths.home, paths.venv, "age", _DAYS)
        truth = _read_truth(paths)
        cloud = _measure_all(arguments, paths, truth, arguments.rounds)
        run_minicloud(paths.home, paths.venv, "scenario", "cell_down")
        run_minicloud(paths.home, paths.venv, "age", _DAYS)
        dead_cell = _measure_all(arguments, paths, _read_truth(paths), 1)
    finally:
        lifecycle.down(paths, purge=True)
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    return Results(today, arguments.rounds, len(truth.needed), tuple(cloud), tuple(dead_cell))


def _measure_all(
    arguments: argparse.Namespace, paths: Paths, truth: Truth, rounds: int
) -> list[Row]:
    ports = {port: name for name, port in states.load(paths).ports.items()}
    rows = []
    for contestant in list_contestants(paths, arguments.nrpe, arguments.script):
        row = measure(contestant, truth, rounds, ports, paths.home)
        print(f"compare: {row}", file=sys.stderr, flush=True)
        rows.append(row)
    return rows


def _read_truth(paths: Paths) -> Truth:
    files = sorted(paths.home.glob("scenarios/*.json"))
    return read_truth(json.loads(file.read_text(encoding="utf-8")) for file in files)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
