# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`python -m simulation`: measures playbooks on a simulated cloud of any size."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from simulation.runs import measure_all
from simulation.world import World


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="make simulate SIMULATE_ARGS='...'",
        description="Measure whole playbooks on a cloud of any size, whose answers are generated.",
    )
    parser.add_argument("--hosts", type=int, default=50_000)
    parser.add_argument("--servers", type=int, default=20, help="on each host (default: 20)")
    parser.add_argument("--cells", type=int, default=70)
    parser.add_argument("--orphans", type=int, default=500)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--only", action="append", help="only this run; can be repeated")
    parser.add_argument("--home", type=Path, default=Path(".simulation"))
    arguments = parser.parse_args(argv)
    world = World(arguments.hosts, arguments.servers, arguments.cells, arguments.orphans)
    measure_all(world, arguments.home.absolute(), arguments.shards, arguments.only)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
