# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page about what was run."""

from __future__ import annotations

import typing as t

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matrix.results import Cell, Results

_HEAD = """\
<!--
Copyright (c) 2026, osops.placement contributors
GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
SPDX-License-Identifier: GPL-3.0-or-later
-->

# Tested versions

Written by `make matrix`, which starts a real Keystone, Placement, Glance and Nova of each release, makes every situation of the tests in it,
and runs the acceptance tests with each controller: all situations are detected, shown in check mode, cleaned up, and put back from the
journal; claims are written and read by the modules; a consumer that moves meanwhile is spared; a dead host is retired.
A cell counts tests.

## OpenStack

"""

_SKIPPED = """
## Skipped

What an older release does not offer is not tested on it.

"""

_NOT_RUN = """
## Not run

"""

# What is part of no run, and why.
NEVER: tuple[tuple[str, str], ...] = ()

_FOOT = """
## To reproduce

    make matrix                                                            # all of this
    make matrix MATRIX_ARGS='--ansible-core 2.18 --openstack 2024.2'       # some of it; the other cells stay as they are

`make matrix MATRIX_ARGS=--help` lists the options. Some old libraries have to be compiled: that needs gcc and Python's headers.
"""


def render(results: Results, releases: Sequence[str]) -> str:
    """releases: the order of the columns, the newest first."""
    known = [name for name in releases if name in results.releases]
    described = [results.releases[name] for name in known]
    cells = [cell for row in results.cells.values() for cell in row.values()]
    parts = list(described[0]["versions"]) if described else []
    text = _HEAD + _table(
        ["release", *parts, "Python", "compute, up to", "Placement, up to"],
        (
            [found["name"], *(found["versions"][part] for part in parts), found["python"], found["compute"], found["placement"]]
            for found in described
        ),
    )
    text += "\n## Controllers\n\n" + _table(
        ["ansible-core", "Python", "openstacksdk", *releases, "run on"],
        (
            [
                known["exactly"] or known["ansible_core"],
                known["python"],
                known["sdk"],
                *(str(results.cells[title].get(name, "not run")) for name in releases),
                _span(cell.date for cell in results.cells[title].values()),
            ]
            for title, known in sorted(results.controllers.items())
        ),
    )
    minutes = sum(cell.seconds for cell in cells) / 60
    text += f"\nTogether the tests took {minutes:.0f} minutes.\n"
    if failed := [(title, name, test) for title, row in results.cells.items() for name, cell in row.items() for test in cell.failed]:
        text += "\n## Failed\n\n" + "".join(f"- {title}, OpenStack {name}: `{test}`\n" for title, name, test in failed)
    text += _skipped(results, releases)
    text += _not_run(results)
    return text + _FOOT


def _skipped(results: Results, releases: Iterable[str]) -> str:
    lines = []
    for name in releases:
        reasons: dict[str, set[str]] = {}
        for row in results.cells.values():
            for test, why in row[name].skipped.items() if name in row else ():
                reasons.setdefault(why, set()).add(test)
        lines += [[name, why, " ".join(f"`{test}`" for test in sorted(tests))] for why, tests in sorted(reasons.items())]
    return _SKIPPED + _table(["release", "because", "tests"], lines) if lines else ""


def _not_run(results: Results) -> str:
    reasons: dict[tuple[str, str], list[str]] = {}
    for title, row in results.cells.items():
        for name, cell in row.items():
            if cell.not_run:
                reasons.setdefault((title, cell.not_run), []).append(name)
    lines = [f"- {title}, on OpenStack {', '.join(sorted(names))}: {why}.\n" for (title, why), names in reasons.items()]
    lines += [f"- {what}: {why}\n" for what, why in NEVER]
    return _NOT_RUN + "".join(lines) if lines else ""


def _span(dates: Iterable[str]) -> str:
    ordered = sorted(set(dates))
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str | Cell]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(str(value).replace("|", "\\|") for value in line) + " |\n" for line in lines)
