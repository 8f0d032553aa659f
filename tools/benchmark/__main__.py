# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`python -m benchmark`: measures a seeded cloud at several scales, and writes the page."""

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
from benchmark.commands import AUDIT, FLOOR, FULL, REMEDIATION, Commands
from benchmark.layout import Scale
from benchmark.measuring import Failed
from benchmark.results import Cleaning, Measured, Result
from benchmark.seeding import seed

FEW, MANY = 0.002, 0.02
# The target of twice the hosts is a median, which needs more than one round.
SINGLE_ROUNDS = 2
DETECTION = "detection"
# How many changes are made with one command each; the time of all of them is extrapolated.
BY_HAND = 10


def build_parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="make bench BENCH_ARGS='...'",
        description=(
            "Compare detection with nova-manage placement audit, and remediation with its requests "
            "alone."
        ),
    )
    top.add_argument("--hosts", type=int, default=1000)
    top.add_argument("--servers", type=int, default=20, help="on each host (default: 20)")
    top.add_argument(
        "--rounds",
        type=int,
        default=5,
        help="how often each command is measured at the first two scales (default: 5)",
    )
    top.add_argument(
        "--only",
        choices=[DETECTION, REMEDIATION],
        help="measure only this, and keep the other section of the page",
    )
    top.add_argument(
        "--changes", type=int, default=500, help="how many orphans are remediated (default: 500)"
    )
    top.add_argument("--short", action="store_true", help="leave out the two large scales")
    top.add_argument(
        "--api-processes",
        type=int,
        default=2,
        metavar="N",
        help="processes of nova-api and of placement each (default: 2)",
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
        help="keep the databases of the stopped cloud, so that the next run starts sooner",
    )
    return top


def main(argv: list[str]) -> int:
    arguments = build_parser().parse_args(argv)
    # A terminated run stops its cloud like an interrupted one.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        paths = Paths.choose(arguments.home)
        try:
            originals.create(paths)
            scales = [] if arguments.only == REMEDIATION else _list_scales(arguments)
            results = [_measure(paths, *scale, arguments.api_processes) for scale in scales]
            cleaning = (
                None if arguments.only == DETECTION else _measure_remediation(paths, arguments)
            )
        finally:
            lifecycle.down(paths, purge=not arguments.keep)
    except (MinicloudError, Failed, subprocess.CalledProcessError) as error:
        print(f"bench: {error}\n{getattr(error, 'detail', '') or ''}", file=sys.stderr)
        return 1
    before = arguments.page.read_text(encoding="utf-8") if arguments.page.exists() else ""
    text = page.render(results, arguments.api_processes, before) if results else before
    if cleaning:
        text = page.replace_remediation(text, cleaning, arguments.api_processes)
    print(text)
    arguments.page.write_text(text, encoding="utf-8")
    wrong = [result for result in results for measured in result.ours if not measured.exact]
    for result in wrong:
        print(
            f"bench: at {result.scale} detection found something other than the seeded orphans.",
            file=sys.stderr,
        )
    return 1 if wrong else 0


def _measure_remediation(paths: Paths, arguments: argparse.Namespace) -> Cleaning:
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
    cloud = Commands(paths)
    cloud.detect(FULL)
    cloud.plan(changes)
    planned = cloud.read_planned()
    if len(planned) != changes:
        raise Failed(f"{len(planned)} changes are planned for {changes} seeded orphans.")
    # Not measured: it fills the services' caches, and its requests are recorded for the replay.
    cloud.remediate(changes, record=True)
    some = planned[:: max(1, changes // BY_HAND)][:BY_HAND]
    cleaning = Cleaning(
        scale,
        changes,
        Measured("orphan_remediate"),
        Measured("the same requests"),
        Measured("unproven"),
        Measured("by hand"),
    )
    ways = [
        (cleaning.ours, lambda: cloud.remediate(changes)),
        (cleaning.replayed, lambda: cloud.replay(REMEDIATION)),
        (cleaning.unproven, cloud.remediate_without_proofs),
    ]
    for number in range(arguments.rounds):
        for measured, way in ways[number % len(ways) :] + ways[: number % len(ways)]:
            restore_claims(paths)
            run = way()
            measured.add(
                run, None, cloud.read_peak_mib(REMEDIATION) if measured is cleaning.ours else None
            )
            _say(
                f"{scale}: {measured.name} {run.seconds:.2f} s ({run.foreign:.0%} of the machine "
                "was busy with other work)"
            )
            if (
                measured is cleaning.ours
                and sum(cloud.read_tally()[made] for made in ("removed", "reduced")) != changes
            ):
                raise Failed(f"Not all of {changes} changes were made: {cloud.read_tally()}")
    restore_claims(paths)
    for change in some:
        cleaning.by_hand.add(
            cloud.run_command(*openstackclient.build_unset_command(openstack, change)), None, None
        )
    _say(f"{scale}: by hand {statistics.median(cleaning.by_hand.seconds):.2f} s each")
    cleaning.ours.endpoints = requests_made.count_endpoints(
        cloud.read_requests(REMEDIATION), cloud.list_ports()
    )
    return cleaning


def _list_scales(arguments: argparse.Namespace) -> list[tuple[Scale, int, bool]]:
    """Return (scale, rounds, whether all commands are measured or only full detection)."""
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
    paths: Paths, scale: Scale, rounds: int, all_commands: bool, api_processes: int
) -> Result:
    _say(f"{scale}: seeding")
    originals.stop(paths)
    truth = seed(paths, scale)
    originals.start(paths, api_processes)
    cloud = Commands(paths)
    # Not measured: it fills the services' caches, and its requests are recorded for the floor.
    cloud.detect(FULL, record=True)
    modes = cloud.find_modes() if all_commands else [FULL]
    for mode in modes[1:]:
        cloud.detect(mode, record=True)
    names = [*modes, AUDIT, FLOOR] if all_commands else [FULL]
    measured = {name: Measured(name) for name in names}
    for number in range(rounds):
        # No command always follows the same other command.
        for name in names[number % len(names) :] + names[: number % len(names)]:
            run = cloud.measure(name)
            measured[name].add(
                run,
                cloud.score(name, run, truth),
                cloud.read_peak_mib(name) if name in modes else None,
            )
            _say(
                f"{scale}: {name} {run.seconds:.2f} s ({run.foreign:.0%} of the machine was busy "
                "with other work)"
            )
    for mode in modes:
        requests = cloud.read_requests(mode)
        measured[mode].endpoints = requests_made.count_endpoints(requests, cloud.list_ports())
        measured[mode].for_healthy = requests_made.count_for_healthy(
            requests, set(truth["involved"])
        )
    _say(f"{scale}: median of full detection {statistics.median(measured[FULL].seconds):.2f} s")
    return Result(scale, measured)


def _say(what: str) -> None:
    print(f"bench: {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
