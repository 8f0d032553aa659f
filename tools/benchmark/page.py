# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page about a run, for people who were not there."""

from __future__ import annotations

import datetime
import os
import platform
import re
import statistics
import typing as t
from pathlib import Path

from minicloud_ctl.releases import NEWEST

from benchmark.contestants import AUDIT, FLOOR, FULL, TRIAGE
from benchmark.results import Bar, Cleaning, Measured, Result, bars, compared, ratio

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_HEAD = """\
<!--
Copyright (c) 2026, osops.placement contributors
GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
SPDX-License-Identifier: GPL-3.0-or-later
-->

# Benchmark

Written by `make bench` on {date}. It starts a real Keystone, Placement and Nova, fills them with \
a cloud that is cloned row by row from
servers that Nova itself has booted, moved, evacuated and deleted, and measures in turn:

| name | what it is |
|---|---|
| full | the module `orphan_detect` in a process of its own, as Ansible runs it: from its start \
to the written `findings.json` |
| triage | the same in the mode `triage` |
| audit | `nova-manage placement audit --verbose`, which reads Nova's database directly and \
proves nothing, from start to end |
| floor | the requests of *full*, recorded once and sent again by Python's own HTTP client, as \
many at once, nothing read but the status |

{machine}

The orphans are, a quarter each, claims of deleted servers, of confirmed migrations, of evacuated \
servers on the host they left, and of
servers on a wrong host. {past} An answer other than exactly these orphans would be an error of \
the run.

"""

_PAST = (
    "Besides, 2 % of the servers have a confirmed migration behind them, and some wait for their "
    "resize to be confirmed: "
    "these hold two hosts, and rightly so."
)

_REMEDIATION = """\
## Remediation

Measured on {date}: {changes} orphans, each consumer a change of its own, at {scale}. Before each \
run everybody holds again what they held.

| name | what it is |
|---|---|
| {ours} | the module, given a plan, in a process of its own: from its start to the written \
`remediation.json` |
| {replayed} | its requests, recorded once and sent again by Python's own HTTP client, as many at \
once, nothing read but the status |
| {unproven} | a bare client: for each consumer in turn a GET, a write under the generation \
found, and a GET; the difference is the proofs |
| {by_hand} | `openstack resource provider allocation unset UUID`, a process for each; measured \
for {few} of them, and told for all |

{machine}

"""

_FOOT = """\
## To reproduce

    make bench                                                         # all of this
    make bench BENCH_ARGS='--only remediation'                         \
# only this section, the others stay as they are
    make bench BENCH_ARGS='--hosts 50 --servers 5 --rounds 1 --short --page page.md'   \
# a try-out, about a minute

`make bench BENCH_ARGS=--help` lists the other options. Nothing but 127.0.0.1 is listened on, and \
nothing runs on afterwards.
"""

_SECTION, _END = "## Remediation\n", "## To reproduce\n"

_ROWS = (FULL, TRIAGE, AUDIT, FLOOR)


def render(results: list[Result], api_processes: int, before: str) -> str:
    """The page about detection, and what the page said `before` of remediation."""
    parts = [
        _HEAD.format(date=_today(), machine=_machine(api_processes), past=_PAST),
        _bars(bars(results), results),
        *(_scale(result) for result in results),
        _requests(results[0]),
        _section(before),
        _FOOT,
    ]
    return "".join(parts)


def with_remediation(text: str, cleaning: Cleaning, api_processes: int) -> str:
    """The page with what it says of remediation replaced."""
    head, found, foot = text.replace(_section(text), "").partition(_END)
    return f"{head}{_remediation(cleaning, api_processes)}{found}{foot}"


def _section(text: str) -> str:
    _head, found, rest = text.partition(_SECTION)
    return found + rest.partition(_END)[0]


def _remediation(cleaning: Cleaning, api_processes: int) -> str:
    told = _REMEDIATION.format(
        date=_today(),
        changes=cleaning.changes,
        scale=cleaning.scale,
        ours=cleaning.ours.name,
        replayed=cleaning.replayed.name,
        unproven=cleaning.unproven.name,
        by_hand=cleaning.by_hand.name,
        few=len(cleaning.by_hand.seconds),
        machine=_machine(api_processes),
    )
    goal = cleaning.goal
    told += _table(
        ["figure", "bar", "measured", "reached"],
        [[goal.what, f"<= {goal.limit:g}{goal.unit}", _figure(goal), goal.verdict]],
    )
    ways = (cleaning.ours, cleaning.replayed, cleaning.unproven)
    rows = [
        [
            way.name,
            f"{way.median:.2f} s",
            ", ".join(f"{seconds:.2f}" for seconds in way.seconds),
            f"{compared(way, cleaning.replayed):.2f}",
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
    told += _busy(ways) + _table(
        ["", "median", "all rounds", "/ the same requests", "own CPU", "peak memory"], rows
    )
    return told + _requests_of(cleaning.ours)


def _machine(api_processes: int) -> str:
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
        f"All on one machine with {os.cpu_count()} cores and {memory:.0f} GiB of memory, so that "
        "whoever asks and whoever answers share them. "
        f"Nova {versions['nova']} and Placement {versions['openstack-placement']} with SQLite "
        "databases, "
        f"nova-api and placement with {api_processes} process{'es' if api_processes > 1 else ''} "
        "each that handle"
        f"{'' if api_processes > 1 else 's'} one request at a time; Python "
        f"{platform.python_version()} for us."
    )


def _bars(wanted: Iterable[Bar], results: list[Result]) -> str:
    few, many = results[0].scale, results[1].scale
    rows = [[one.what, f"<= {one.limit:g}{one.unit}", _figure(one), one.verdict] for one in wanted]
    told = (
        f"## What is to be reached\n\nFew orphans: {few}. Many: {many}. Ratios are medians over "
        "the rounds of the ratio within a round.\n\n"
    )
    return told + _table(["figure", "bar", "measured", "reached"], rows)


def _figure(wanted: Bar) -> str:
    return "-" if wanted.reached is None else f"{wanted.reached:.3g}{wanted.unit}"


def _scale(result: Result) -> str:
    present = [result.measured[name] for name in _ROWS if name in result.measured]
    rounds = len(present[0].seconds)
    rows = [_row(measured, result) for measured in present]
    columns = ["", "median", "all rounds", "/ audit", "own CPU", "peak memory", "found", "wrong"]
    told = (
        f"## {result.scale}\n\nMeasured {rounds} time{'s' if rounds > 1 else ''}, alternating.\n\n"
    )
    return told + _busy(present) + _table(columns, rows)


def _busy(measured: Iterable[Measured]) -> str:
    busy = max(share for one in measured for share in one.foreign)
    return (
        ""
        if busy < 0.1
        else (
            f"Something else took up to {busy:.0%} of the machine meanwhile: take these figures "
            "with care.\n\n"
        )
    )


def _row(measured: Measured, result: Result) -> list[str]:
    against = ratio(result, measured.name, AUDIT)
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


def _requests(result: Result) -> str:
    told = f"## Requests\n\nAt {result.scale}, the way in included.\n\n"
    for measured in result.ours:
        told += _requests_of(measured)
    return told


def _requests_of(measured: Measured) -> str:
    rows = [[f"`{endpoint}`", str(count)] for endpoint, count in measured.endpoints]
    rows.append(["all", str(sum(count for _endpoint, count in measured.endpoints))])
    return _table([measured.name, "requests"], rows)


def _today() -> datetime.date:
    return datetime.datetime.now(datetime.UTC).date()


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"
