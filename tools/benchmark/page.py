# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes the page about a run."""

from __future__ import annotations

import datetime
import os
import platform
import re
import statistics
import typing as t
from pathlib import Path

from minicloud_ctl.releases import NEWEST

from benchmark.commands import AUDIT, FLOOR, FULL, TRIAGE
from benchmark.results import (
    Cleaning,
    Measured,
    Result,
    Target,
    compare,
    compare_commands,
    list_targets,
)

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_HEAD = """\
<!--
Copyright (c) 2026, osops.placement contributors
GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
SPDX-License-Identifier: GPL-3.0-or-later
-->

# Benchmark

`make bench` wrote this page on {date}.
It starts a real Keystone, Placement and Nova, and fills them with a cloud whose rows are copies \
of servers that Nova itself booted, moved, evacuated and deleted.
It then measures, in turn:

| name | what it is |
|---|---|
| full | the module `orphan_detect` in its own process, as Ansible runs it: from its start to the \
written `findings.json` |
| triage | the same in the mode `triage` |
| audit | `nova-manage placement audit --verbose`, from start to end; it reads Nova's database \
directly and proves nothing |
| floor | the requests of *full*, recorded once and sent again by Python's own HTTP client, with \
the same concurrency; it reads only the status of each response |

{machine}

A quarter each of the orphans are allocations of deleted servers, of confirmed migrations, of \
evacuated servers on the host they left, and of servers on a wrong host.
{past}
Any result other than exactly these orphans is an error of the run.

"""

_PAST = (
    "In addition, 2 % of the servers have a confirmed migration behind them, and some wait for "
    "their resize to be confirmed and rightly have allocations on two hosts."
)

_REMEDIATION = """\
## Remediation

Measured on {date}: {changes} orphans at {scale}, with one change for each consumer.
All allocations are restored before each run.

| name | what it is |
|---|---|
| {ours} | the module with a plan, in its own process: from its start to the written \
`remediation.json` |
| {replayed} | its requests, recorded once and sent again by Python's own HTTP client, with the \
same concurrency; it reads only the status of each response |
| {unproven} | a minimal client: for each consumer in turn a GET, a write with the generation \
found, and a GET; the difference is the proofs |
| {by_hand} | `openstack resource provider allocation unset UUID`, one process for each; measured \
for {few} of them, and extrapolated to all |

{machine}

"""

_FOOT = """\
## To reproduce

    make bench                                                         # all of this
    make bench BENCH_ARGS='--only remediation'                         \
# only this section; the others stay as they are
    make bench BENCH_ARGS='--hosts 50 --servers 5 --rounds 1 --short --page page.md'   \
# a trial of about a minute

`make bench BENCH_ARGS=--help` lists the other options.
The benchmark listens only on 127.0.0.1, and stops all its processes at the end.
"""

_SECTION, _END = "## Remediation\n", "## To reproduce\n"

_ROWS = (FULL, TRIAGE, AUDIT, FLOOR)


def render(results: list[Result], api_processes: int, before: str) -> str:
    """Return the page about detection, with the section about remediation of the page `before`."""
    parts = [
        _HEAD.format(date=_today(), machine=_describe_machine(api_processes), past=_PAST),
        _format_targets(list_targets(results), results),
        *(_format_scale(result) for result in results),
        _format_requests(results[0]),
        _find_section(before),
        _FOOT,
    ]
    return "".join(parts)


def replace_remediation(text: str, cleaning: Cleaning, api_processes: int) -> str:
    """Return the page with a new section about remediation."""
    head, found, foot = text.replace(_find_section(text), "").partition(_END)
    return f"{head}{_format_remediation(cleaning, api_processes)}{found}{foot}"


def _find_section(text: str) -> str:
    _head, found, rest = text.partition(_SECTION)
    return found + rest.partition(_END)[0]


def _format_remediation(cleaning: Cleaning, api_processes: int) -> str:
    text = _REMEDIATION.format(
        date=_today(),
        changes=cleaning.changes,
        scale=cleaning.scale,
        ours=cleaning.ours.name,
        replayed=cleaning.replayed.name,
        unproven=cleaning.unproven.name,
        by_hand=cleaning.by_hand.name,
        few=len(cleaning.by_hand.seconds),
        machine=_describe_machine(api_processes),
    )
    target = cleaning.target
    text += _format_table(
        ["figure", "target", "measured", "met"],
        [
            [
                target.what,
                f"<= {target.limit:g}{target.unit}",
                _format_value(target),
                target.verdict,
            ]
        ],
    )
    ways = (cleaning.ours, cleaning.replayed, cleaning.unproven)
    rows = [
        [
            way.name,
            f"{way.median:.2f} s",
            ", ".join(f"{seconds:.2f}" for seconds in way.seconds),
            f"{compare(way, cleaning.replayed):.2f}",
            f"{statistics.median(way.cpu):.1f} s",
            f"{max(way.peaks_mib):.0f} MiB" if way.peaks_mib else "-",
        ]
        for way in ways
    ]
    hand = cleaning.by_hand
    rows.append(
        [
            hand.name,
            f"{cleaning.all_by_hand:.0f} s",
            f"{hand.median:.2f} each",
            f"{cleaning.all_by_hand / cleaning.replayed.median:.1f}",
            "-",
            "-",
        ]
    )
    text += _warn_of_load(ways) + _format_table(
        ["", "median", "all rounds", "/ the same requests", "own CPU", "peak memory"], rows
    )
    return text + _format_requests_of(cleaning.ours)


def _describe_machine(api_processes: int) -> str:
    memory = (
        int(re.findall(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text(encoding="ascii"))[0])
        / 2**20
    )
    versions = dict(
        re.findall(
            r"^(nova|openstack-placement)==(\S+)$",
            NEWEST.requirements.read_text(encoding="utf-8"),
            re.M,
        )
    )
    return (
        f"Everything ran on one machine with {os.cpu_count()} cores and {memory:.0f} GiB of "
        "memory, which the clients and the services used together.\n"
        f"Nova was {versions['nova']} and Placement {versions['openstack-placement']}, with SQLite "
        "databases.\n"
        f"nova-api and placement each had {api_processes} "
        f"process{'es' if api_processes > 1 else ''}, and each process handles one request at a "
        "time.\n"
        f"The collection ran with Python {platform.python_version()}."
    )


def _format_targets(targets: Iterable[Target], results: list[Result]) -> str:
    few, many = results[0].scale, results[1].scale
    rows = []
    for target in targets:
        limit = f"<= {target.limit:g}{target.unit}"
        rows.append([target.what, limit, _format_value(target), target.verdict])
    text = (
        f"## Targets\n\nFew orphans: {few}. Many: {many}.\n"
        "A ratio is the median of the ratios within each round.\n\n"
    )
    return text + _format_table(["figure", "target", "measured", "met"], rows)


def _format_value(target: Target) -> str:
    return "-" if target.value is None else f"{target.value:.3g}{target.unit}"


def _format_scale(result: Result) -> str:
    present = [result.measured[name] for name in _ROWS if name in result.measured]
    rounds = len(present[0].seconds)
    rows = [_format_row(measured, result) for measured in present]
    columns = ["", "median", "all rounds", "/ audit", "own CPU", "peak memory", "found", "wrong"]
    times = f"{rounds} time{'s' if rounds > 1 else ''}"
    turns = ", in turn" if len(present) > 1 else ""
    text = f"## {result.scale}\n\nMeasured {times}{turns}.\n\n"
    return text + _warn_of_load(present) + _format_table(columns, rows)


def _warn_of_load(measured: Iterable[Measured]) -> str:
    busy = max(fraction for one in measured for fraction in one.foreign)
    return (
        ""
        if busy < 0.1
        else (
            f"Other processes used up to {busy:.0%} of the machine meanwhile, so treat these "
            "figures with care.\n\n"
        )
    )


def _format_row(measured: Measured, result: Result) -> list[str]:
    against = compare_commands(result, measured.name, AUDIT)
    score = measured.scores[-1] if measured.scores else None
    return [
        measured.name,
        f"{measured.median:.2f} s",
        ", ".join(f"{seconds:.2f}" for seconds in measured.seconds),
        "-" if against is None else f"{against:.2f}",
        f"{statistics.median(measured.cpu):.1f} s",
        f"{max(measured.peaks_mib):.0f} MiB" if measured.peaks_mib else "-",
        f"{score.found} of {score.seeded}" if score else "-",
        str(score.wrong) if score else "-",
    ]


def _format_requests(result: Result) -> str:
    text = f"## Requests\n\nAt {result.scale}, with authentication and discovery.\n\n"
    for measured in result.ours:
        text += _format_requests_of(measured)
    return text


def _format_requests_of(measured: Measured) -> str:
    rows = [[f"`{endpoint}`", str(count)] for endpoint, count in measured.endpoints]
    rows.append(["all", str(sum(count for _endpoint, count in measured.endpoints))])
    return _format_table([measured.name, "requests"], rows)


def _today() -> datetime.date:
    return datetime.datetime.now(datetime.UTC).date()


def _format_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"
