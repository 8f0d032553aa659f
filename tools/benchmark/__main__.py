# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`python -m benchmark`: a cloud of its own, measured at several scales.

It is seeded first, and the page about it is written in the end.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import subprocess
import sys
from pathlib import Path

from minicloud_ctl import lifecycle
from minicloud_ctl.databases import keep_claims, restore_claims
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import REPOSITORY, Paths

from benchmark import openstackclient, originals, page, requests_made
from benchmark.contestants import AUDIT, FLOOR, FULL, REMEDIATION, Contestants
from benchmark.layout import Scale
from benchmark.measuring import Failed
from benchmark.results import Cleaning, Measured, Result
from benchmark.seeding import seed

FEW, MANY = 0.002, 0.02
# What one round more costs is worth it where a bar is judged by the median.
SINGLE_ROUNDS = 2
DETECTION = "detection"
# How many are removed with a command each: that tells what all of them would take.
BY_HAND = 10


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="make bench BENCH_ARGS='...'",
        description=(
            "Measure detection against nova-manage placement audit, and remediation against its "
            "requests."
        ),
    )
    top.add_argument("--hosts", type=int, default=1000)
    top.add_argument("--servers", type=int, default=20, help="on each host (default: 20)")
    top.add_argument(
        "--rounds",
        type=int,
        default=5,
        help="how often everybody is measured at the first two scales (default: 5)",
    )
    top.add_argument(
        "--only",
        choices=[DETECTION, REMEDIATION],
        help="measure this, and leave on the page what it says of the other",
    )
    top.add_argument(
        "--changes", type=int, default=500, help="how many orphans are removed (default: 500)"
    )
    top.add_argument("--short", action="store_true", help="leave out the two large scales")
    top.add_argument(
        "--api-processes",
        type=int,
        default=2,
        metavar="N",
        help="of nova-api and of placement (default: 2)",
    )
    top.add_argument(
        "--page", type=Path, default=REPOSITORY / "docs" / "benchmark.md", help="the page to write"
    )
    top.add_argument(
        "--home",
        default=str(REPOSITORY / ".minicloud" / "benchmark"),
        help="state folder of the cloud",
    )
    top.add_argument(
        "--keep",
        action="store_true",
        help="keep the databases of the stopped cloud: the next run starts sooner",
    )
    return top


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv)
    # A terminated run stops its cloud like an interrupted one.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        paths = Paths.choose(arguments.home)
        try:
            originals.make(paths)
            wanted = [] if arguments.only == REMEDIATION else _wanted(arguments)
            results = [_measure(paths, *one, arguments.api_processes) for one in wanted]
            cleaning = None if arguments.only == DETECTION else _clean(paths, arguments)
        finally:
            lifecycle.down(paths, purge=not arguments.keep)
    except (MinicloudError, Failed, subprocess.CalledProcessError) as error:
        print(f"bench: {error}\n{getattr(error, 'detail', '') or ''}", file=sys.stderr)
        return 1
    before = arguments.page.read_text(encoding="utf-8") if arguments.page.exists() else ""
    text = page.render(results, arguments.api_processes, before) if results else before
    if cleaning:
        text = page.with_remediation(text, cleaning, arguments.api_processes)
    print(text)
    arguments.page.write_text(text, encoding="utf-8")
    wrong = [result for result in results for measured in result.ours if not measured.exact]
    for result in wrong:
        print(
            f"bench: at {result.scale} something else was found than was seeded.", file=sys.stderr
        )
    return 1 if wrong else 0


def _clean(paths: Paths, arguments: argparse.Namespace) -> Cleaning:
    changes = arguments.changes
    openstack = openstackclient.install(paths)
    scale = Scale(
        arguments.hosts, arguments.servers, changes / (arguments.hosts * arguments.servers)
    )
    _say(f"{scale}: seeding")
    originals.stop(paths)
    seed(paths, scale)
    keep_claims(paths)
    originals.start(paths, arguments.api_processes)
    cloud = Contestants(paths)
    cloud.detect(FULL)
    cloud.plan(changes)
    planned = cloud.planned()
    if len(planned) != changes:
        raise Failed(f"{len(planned)} changes are planned where {changes} orphans were seeded.")
    # Not measured: it fills the services' caches, and its requests are those that are sent again.
    cloud.remediate(changes, record=True)
    some = planned[:: max(1, changes // BY_HAND)][:BY_HAND]
    told = Cleaning(
        scale,
        changes,
        Measured("orphan_remediate"),
        Measured("the same requests"),
        Measured("unproven"),
        Measured("by hand"),
    )
    ways = [
        (told.ours, lambda: cloud.remediate(changes)),
        (told.replayed, lambda: cloud.replay(REMEDIATION)),
        (told.unproven, cloud.unproven),
    ]
    for number in range(arguments.rounds):
        for measured, way in ways[number % len(ways) :] + ways[: number % len(ways)]:
            restore_claims(paths)
            run = way()
            measured.add(run, None, cloud.peak_mib(REMEDIATION) if measured is told.ours else None)
            _say(
                f"{scale}: {measured.name} {run.seconds:.2f} s ({run.foreign:.0%} of the machine "
                "was busy with something else)"
            )
            if (
                measured is told.ours
                and sum(cloud.tally()[made] for made in ("removed", "reduced")) != changes
            ):
                raise Failed(f"Not all of {changes} changes were made: {cloud.tally()}")
    restore_claims(paths)
    for change in some:
        told.by_hand.add(cloud.command(*openstackclient.unset(openstack, change)), None, None)
    _say(f"{scale}: by hand {statistics.median(told.by_hand.seconds):.2f} s each")
    told.ours.endpoints = requests_made.endpoints(
        cloud.requests(REMEDIATION), cloud.names_of_ports()
    )
    return told


def _wanted(arguments: argparse.Namespace) -> list[tuple[Scale, int, bool]]:
    """(scale, rounds, whether everybody takes part or only full detection)"""
    hosts, servers, rounds = arguments.hosts, arguments.servers, arguments.rounds
    first = [
        (Scale(hosts, servers, FEW), rounds, True),
        (Scale(hosts, servers, MANY), rounds, True),
    ]
    large = [
        (Scale(2 * hosts, servers, FEW), SINGLE_ROUNDS, False),
        (Scale(hosts, 5 * servers, FEW), 1, False),
    ]
    return first if arguments.short else [*first, *large]


def _measure(
    paths: Paths, scale: Scale, rounds: int, everybody: bool, api_processes: int
) -> Result:
    _say(f"{scale}: seeding")
    originals.stop(paths)
    truth = seed(paths, scale)
    originals.start(paths, api_processes)
    cloud = Contestants(paths)
    # Not measured: it fills the services' caches, and its requests are those of the floor.
    cloud.detect(FULL, record=True)
    modes = cloud.modes() if everybody else [FULL]
    for mode in modes[1:]:
        cloud.detect(mode, record=True)
    names = [*modes, AUDIT, FLOOR] if everybody else [FULL]
    measured = {name: Measured(name) for name in names}
    for number in range(rounds):
        # Nobody is always the one who comes after the same other.
        for name in names[number % len(names) :] + names[: number % len(names)]:
            run = cloud.measure(name)
            measured[name].add(
                run, cloud.score(name, run, truth), cloud.peak_mib(name) if name in modes else None
            )
            _say(
                f"{scale}: {name} {run.seconds:.2f} s ({run.foreign:.0%} of the machine was busy "
                "with something else)"
            )
    for mode in modes:
        noted = cloud.requests(mode)
        measured[mode].endpoints = requests_made.endpoints(noted, cloud.names_of_ports())
        measured[mode].for_healthy = requests_made.for_healthy(noted, set(truth["involved"]))
    _say(f"{scale}: median of full detection {statistics.median(measured[FULL].seconds):.2f} s")
    return Result(scale, measured)


def _say(what: str) -> None:
    print(f"bench: {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
