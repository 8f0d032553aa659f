"""`python -m simulation`: measures playbooks on a simulated cloud, and writes the table."""

import argparse
import shutil
import sys
from pathlib import Path

from running import REPOSITORY

from simulation import page, results
from simulation.results import Results
from simulation.runs import Failed, Runs, serve
from simulation.world import World


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make simulate SIMULATE_ARGS='...'",
        description="Measure whole playbooks on a cloud of any size, whose answers are generated.",
    )
    parser.add_argument("--hosts", type=int, default=50_000)
    parser.add_argument("--servers", type=int, default=20, help="on each host (default: 20)")
    parser.add_argument("--cells", type=int, default=70)
    parser.add_argument("--orphans", type=int, default=1000)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument(
        "--only",
        action="append",
        metavar="RUN",
        help="measure only this run, and keep the results of the others; can be repeated",
    )
    parser.add_argument("--home", type=Path, default=REPOSITORY / ".simulation")
    parser.add_argument("--results", type=Path, default=results.KEPT)
    parser.add_argument("--page", type=Path, default=REPOSITORY / "docs" / "large-clouds.md")
    return parser


def main(argv: list[str]) -> int:
    arguments = build_parser().parse_args(argv)
    measured = Results(
        arguments.hosts, arguments.servers, arguments.cells, arguments.orphans, arguments.shards
    )
    kept = results.load(arguments.results)
    if kept is not None and arguments.only:
        measured.runs.update(kept.runs)
    shutil.rmtree(arguments.home, ignore_errors=True)
    arguments.home.mkdir(parents=True)
    cloud = serve(World(arguments.hosts, arguments.servers, arguments.cells, arguments.orphans))
    runs = Runs(cloud, arguments.home.absolute(), arguments.shards)
    for name, measure in runs.table.items():
        if arguments.only and name not in arguments.only:
            continue
        print(f"simulate: {name} …", file=sys.stderr, flush=True)
        try:
            result = measure()
        except Failed as error:
            print(f"simulate: {error}", file=sys.stderr)
            return 1
        print(f"simulate: {result.seconds} s, {result.memory} MiB", file=sys.stderr, flush=True)
        measured.runs[name] = result
        measured.save(arguments.results)
    page.write(arguments.page, measured)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
