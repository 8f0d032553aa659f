"""Writes the page about the results. Pure."""

from __future__ import annotations

import statistics
import typing as t

from markup import format_table

from benchmark import stages as s
from benchmark.bars import judge

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmark.bars import Verdict
    from benchmark.results import Observation, Results, StageResult

_HEAD = """\
<!--
Copyright (c) 2026, osops.placement contributors
GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
SPDX-License-Identifier: GPL-3.0-or-later
-->

# Benchmark

`make bench` wrote this page.
It starts a real Keystone, Placement and Nova, and fills them with a cloud whose rows are copies \
of servers that Nova itself booted, moved, resized, shelved, evacuated and deleted.
It then measures whole commands, as users type them, from the start of the process to its end.
Starting Ansible, importing modules and writing the reports is part of that.

"""

_METHOD = """\
## What is measured

{commands}
nova-api and Placement each run with 1 process, which handles several requests in threads, and \
then with 2 processes, each of which handles one request at a time.
The clients and the services use the same machine.
All databases are SQLite.

A round is: a full detection on a cloud without orphans, an incremental detection, changes, an \
incremental detection, and then the other commands on the cloud as it is now.
The changes are servers that were booted, deleted, moved and resized, in equal parts, some \
that wait for their resize to be confirmed and rightly have allocations on two hosts, and new \
orphans in addition.
The orphans are of all kinds that the role remediates by default, and of `unknown_consumer`, in \
equal parts.
Their allocations are two days old, so that the default minimum ages apply.
2 % of the other servers have a confirmed migration behind them.
A reading looks up again in each run what is not healthy; the requests of a run with nothing \
changed are those of a cloud where everything is.

A ratio is the median of the ratios within each round.
Of the other figures in the tables, the largest of all rounds is shown: the time in the modules, \
the processor time of all processes of the command, the requests, and the peak memory of the \
largest module.
Allocations are counted as found under their right kind, and as wrong if they are needed or \
reported under another kind.
Any result of detection other than exactly the seeded orphans is an error of the run.

"""

# The commands by their names in the tables.
COMMANDS = {
    s.FULL: "`ansible-playbook osops.placement.detect_orphans`, without a memory of an earlier run",
    s.UNCHANGED: "the same with `orphan_cleanup_mode: incremental`, right after it",
    s.CHANGED: "the same after the changes",
    s.CLEANUP: "`ansible-playbook osops.placement.cleanup_orphans --check`, which reads "
    "everything, and proves each change again",
    s.REPLAY: "the requests of the command above, recorded and sent again by Python's own HTTP "
    "client, with the same concurrency; it reads only the status of each response",
    s.AUDIT: "`nova-manage placement audit --verbose`; it reads Nova's database directly and "
    "proves nothing",
    s.SERVER_LIST: "`openstack server list`, in a project without servers",
    s.ONE_STRAND: "only the listing of all hypervisors with their servers, page after page, by a "
    "simple client",
    s.CHOSEN_STRANDS: "the same, read in parallel from as many places as a module chooses",
}
_REMEDIATION_COMMANDS = {
    s.REMEDIATE: "`ansible-playbook osops.placement.cleanup_orphans` with a reviewed plan",
    s.REMEDIATE_MODULE: "its module `orphan_remediate` alone, which makes the changes",
    s.REPLAY: "the requests of this module, recorded and sent again by Python's own HTTP client",
    s.UNPROVEN: "a minimal client: for each consumer in turn a GET, a write with the generation "
    "found, and a GET; the difference is the proofs",
    s.BY_HAND: "`openstack resource provider allocation unset UUID`, one process for each change; "
    "some are measured, and the time of all is extrapolated",
}

_ORDER = tuple(dict.fromkeys([*COMMANDS, *_REMEDIATION_COMMANDS]))

TITLES = {
    s.MAIN: "The usual case",
    s.TWICE: "Twice the hosts, the same number of changes",
    s.WORST: "The worst case: many orphans",
    s.SMALL: "A small cloud",
    s.MEMORY: "Five times the servers",
    s.SCALE: "Five times the hosts",
    s.REMEDIATION: "Remediation",
}

_FOOT = """\
## To reproduce

    make bench                                    # all of this, except the largest cloud
    make bench BENCH_ARGS=--scale                 # only the largest cloud
    make bench BENCH_ARGS='--only small'          # only one stage; the others stay as they are
    make bench BENCH_ARGS='--hosts 40 --servers 5 --rounds 1 --changes 40 \\
                           --page page.md --results page.json'   # a trial of some minutes

`make bench BENCH_ARGS=--help` lists the other options.
The exit status is 1 if a bar is missed.
The benchmark listens only on 127.0.0.1, and stops all its processes at the end.
"""


def render(results: Results) -> str:
    parts = [_HEAD, _format_bars(results), _format_extremes(results)]
    parts.append(_METHOD.format(commands=_format_commands(COMMANDS)))
    for name in s.ALL:
        by_processes = results.stages.get(name, {})
        if by_processes:
            parts.append(_format_stage(name, list(by_processes.values())))
    parts.append(_format_requests(results))
    parts.append(_FOOT)
    return "".join(parts)


def describe_verdict(verdict: Verdict) -> str:
    return (
        f"{verdict.what}, API processes {verdict.processes}: {_format_value(verdict)}, "
        f"limit {_format_limit(verdict)}"
    )


def _format_bars(results: Results) -> str:
    rows = []
    for verdict in judge(results):
        measured = _format_value(verdict), _format_limit(verdict), _format_outcome(verdict)
        rows.append([verdict.what, verdict.processes, *measured])
    columns = ["figure", "API processes", "measured", "limit", "measured / limit"]
    return f"## Bars\n\n{format_table(columns, rows)}\n"


def _format_value(verdict: Verdict) -> str:
    if verdict.value is None:
        return "not measured"
    return f"{verdict.value:.3g}{verdict.unit}"


def _format_limit(verdict: Verdict) -> str:
    return f"{verdict.limit:g}{verdict.unit}"


def _format_outcome(verdict: Verdict) -> str:
    if verdict.value is None:
        return "-"
    text = "0"
    if verdict.limit:
        text = f"{verdict.value / verdict.limit:.2f}"
    elif verdict.value:
        text = "more"
    return f"**{text}, missed**" if verdict.missed else text


def _format_extremes(results: Results) -> str:
    """Return the best and the worst case of each command, over all rounds at the same size."""
    rows = []
    for command in (s.CLEANUP, s.FULL, s.UNCHANGED, s.CHANGED, s.AUDIT):
        cases = []
        for name in (s.MAIN, s.WORST):
            for result in results.stages.get(name, {}).values():
                cases += [(run, result.processes) for run in result.runs.get(command, [])]
        if cases:
            best, worst = min(cases, key=_get_time), max(cases, key=_get_time)
            rows.append([command, _format_case(*best), _format_case(*worst)])
    if not rows:
        return ""
    text = "The best and the worst of all rounds at the first size:\n\n"
    return text + format_table(["", "best", "worst"], rows) + "\n"


def _get_time(case: tuple[Observation, int]) -> float:
    return case[0].seconds


def _format_case(run: Observation, processes: int) -> str:
    orphans = run.score.seeded if run.score else 0
    return f"{run.seconds:.1f} s ({orphans} orphans, API processes: {processes})"


def _format_stage(name: str, results: list[StageResult]) -> str:
    first = results[0]
    text = f"## {TITLES[name]}\n\n{first.size[:1].upper()}{first.size[1:]}.\n"
    if first.changed:
        text += (
            f"{first.changed} servers change in each round, and {first.orphans} become or leave "
            "orphans.\n"
        )
    text += f"Measured on {first.date} with {first.machine}.\n\n"
    if name == s.REMEDIATION:
        text += "All allocations are restored before each run.\n\n"
        text += f"{_format_commands(_REMEDIATION_COMMANDS)}\n"
    text += _warn_of_load(results)
    rows = []
    for result in results:
        for command in _ORDER:
            if command in result.runs:
                rows.append(_format_row(result, command))
    columns = ["", "API processes", "median", "all rounds", "/ audit"]
    if name == s.REMEDIATION:
        columns[-1] = "/ the same requests"
    columns += ["in modules", "own CPU", "requests", "peak memory", "found", "wrong"]
    return text + format_table(columns, rows) + "\n"


def _format_commands(commands: dict[str, str]) -> str:
    return format_table(["name", "what it is"], commands.items())


def _warn_of_load(results: Iterable[StageResult]) -> str:
    busy = 0.0
    for result in results:
        for runs in result.runs.values():
            busy = max(busy, *(run.foreign for run in runs))
    if busy < 0.1:
        return ""
    return (
        f"Other processes used up to {busy:.0%} of the machine meanwhile, so treat these "
        "figures with care.\n\n"
    )


def _format_row(result: StageResult, command: str) -> list[str]:
    runs = result.runs[command]
    return [
        command,
        str(result.processes),
        *_format_times(result, command),
        _format_ratio(result, command),
        _format_figure([sum(run.modules.values()) for run in runs], ".1f", " s"),
        _format_figure([run.cpu for run in runs], ".1f", " s"),
        _format_figure([run.requests for run in runs], ".0f"),
        _format_figure([run.peak_mib for run in runs], ".0f", " MiB"),
        *_format_score(runs),
    ]


def _format_times(result: StageResult, command: str) -> list[str]:
    seconds = [run.seconds for run in result.runs[command]]
    median = statistics.median(seconds)
    if command == s.BY_HAND:
        return [f"{median * result.orphans:.0f} s", f"{median:.2f} each"]
    return [f"{median:.2f} s", ", ".join(f"{one:.2f}" for one in seconds)]


def _format_ratio(result: StageResult, command: str) -> str:
    other = s.AUDIT
    if result.name == s.REMEDIATION:
        other = s.REPLAY
    ratio = result.compare(command, other)
    if ratio is None or command in (s.ONE_STRAND, s.CHOSEN_STRANDS):
        return "-"
    if command == s.BY_HAND:
        ratio *= result.orphans
    return f"{ratio:.2f}"


def _format_figure(values: Sequence[float], form: str, unit: str = "") -> str:
    if not any(values):
        return "-"
    return f"{max(values):{form}}{unit}"


def _format_score(runs: Sequence[Observation]) -> list[str]:
    """Return what was found and what was wrong, in the worst round."""
    scores = [run.score for run in runs if run.score]
    if not scores:
        return ["-", "-"]
    worst = max(scores, key=lambda score: score.seeded - score.found)
    wrong = max(score.wrong for score in scores)
    return [f"{worst.found} of {worst.seeded}", str(wrong)]


def _format_requests(results: Results) -> str:
    """Return the requests of each command at the first size, with the most API processes."""
    parts = []
    for name in (s.MAIN, s.REMEDIATION):
        by_processes = results.stages.get(name, {})
        if not by_processes:
            continue
        result = by_processes[max(by_processes)]
        for command in _ORDER:
            endpoints = result.endpoints.get(command)
            if not endpoints:
                continue
            rows = [[f"`{endpoint}`", str(count)] for endpoint, count in endpoints]
            rows.append(["all", str(sum(count for _endpoint, count in endpoints))])
            parts.append(format_table([command, "requests"], rows) + "\n")
    if not parts:
        return ""
    head = "## Requests\n\nWith authentication and discovery, of the last round.\n\n"
    return head + "".join(parts)
