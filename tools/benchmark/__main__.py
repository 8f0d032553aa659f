"""`python -m benchmark`: measures playbooks on seeded clouds, and writes the page."""

import argparse
import subprocess
import sys
from pathlib import Path

from minicloud_ctl import lifecycle
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import REPOSITORY, Paths
from running import end_when_terminated

from benchmark import bars, originals, page, results
from benchmark.measuring import Failed
from benchmark.remediation import run_remediation
from benchmark.results import Results
from benchmark.rounds import run_stage, say
from benchmark.stages import ALL, BY_DEFAULT, REMEDIATION, SCALE, Stage, list_stages


def build_parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="make bench BENCH_ARGS='...'",
        description=(
            "Measure whole playbooks, and compare them with nova-manage placement audit and other "
            "commands. The exit status is 1 if a bar is missed."
        ),
    )
    top.add_argument("--hosts", type=int, default=1000)
    top.add_argument("--servers", type=int, default=20, help="on each host (default: 20)")
    top.add_argument(
        "--rounds", type=int, default=3, help="how often each command is measured (default: 3)"
    )
    top.add_argument(
        "--only",
        action="append",
        choices=ALL,
        help="measure only this stage, and keep the results of the others; can be repeated",
    )
    top.add_argument(
        "--scale",
        action="store_const",
        const=[SCALE],
        dest="only",
        help="measure only the cloud with five times the hosts, which is not part of other runs",
    )
    top.add_argument(
        "--without-incremental", action="store_true", help="leave out the incremental mode"
    )
    top.add_argument(
        "--api-processes",
        type=int,
        action="append",
        metavar="N",
        help="only with N processes of nova-api and of placement each; can be repeated",
    )
    top.add_argument(
        "--changes", type=int, default=500, help="how many orphans are remediated (default: 500)"
    )
    top.add_argument(
        "--page", type=Path, default=REPOSITORY / "docs" / "benchmark.md", help="the page to write"
    )
    top.add_argument(
        "--results", type=Path, default=results.KEPT, help="the file with the results of all stages"
    )
    top.add_argument(
        "--home",
        default=str(REPOSITORY / ".minicloud" / "benchmark"),
        help="state folder of the cloud",
    )
    top.add_argument(
        "--keep",
        action="store_true",
        help="keep the databases of the stopped cloud, so that the next run starts sooner",
    )
    return top


def main(argv: list[str]) -> int:
    arguments = build_parser().parse_args(argv)
    end_when_terminated()
    try:
        measured = _measure(arguments)
    except (MinicloudError, Failed, subprocess.CalledProcessError) as error:
        print(f"bench: {error}\n{getattr(error, 'detail', '') or ''}", file=sys.stderr)
        return 1
    text = page.render(results.load(arguments.results))
    arguments.page.write_text(text, encoding="utf-8")
    print(text)
    missed = [verdict for verdict in bars.judge(measured) if verdict.missed]
    for verdict in missed:
        say(f"missed: {page.describe_verdict(verdict)}")
    return 1 if missed else 0


def _measure(arguments: argparse.Namespace) -> Results:
    """Measure the chosen stages, and keep the results of each as soon as it has ended."""
    paths = Paths.choose(arguments.home)
    measured = Results()
    try:
        originals.create(paths)
        for stage in _choose_stages(arguments):
            if stage.name == REMEDIATION:
                measured.add(run_remediation(paths, stage, arguments.changes))
            else:
                for result in run_stage(paths, stage, not arguments.without_incremental):
                    measured.add(result)
            kept = results.load(arguments.results)
            kept.replace(measured)
            kept.save(arguments.results)
    finally:
        lifecycle.down(paths, purge=not arguments.keep)
    return measured


def _choose_stages(arguments: argparse.Namespace) -> list[Stage]:
    chosen = arguments.only or BY_DEFAULT
    stages = list_stages(arguments.hosts, arguments.servers, arguments.rounds)
    processes = arguments.api_processes
    return [stage.limit_processes(processes) for stage in stages if stage.name in chosen]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
