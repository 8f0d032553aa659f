"""Writes the page about the results."""

from __future__ import annotations

import typing as t

from markup import escape, format_table
from minicloud_ctl import releases

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from matrix.results import Results

_SERVICES = {
    "nova": "Nova",
    "openstack-placement": "Placement",
    "keystone": "Keystone",
    "glance": "Glance",
}

_HEAD = """\
<!--
Copyright (c) 2026, osops.placement contributors
GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
SPDX-License-Identifier: GPL-3.0-or-later
-->

# Tested versions

`make matrix` wrote this page.
It starts a real Keystone, Placement, Glance and Nova of each release, creates every situation of \
the tests in it, and runs the acceptance tests with each controller.
The tests detect all situations, show them in check mode, clean them up, and restore the \
allocations from the journal.
They also write and read allocations with the modules, check that a consumer that moves meanwhile \
is not changed, decommission a dead host, and run jobs with the answers of a survey as AWX writes \
them (`!unsafe`).
Each cell is a number of tests.

## OpenStack

"""

_SKIPPED = """
## Skipped

Tests of features that an older release does not have are skipped on it.

"""

_NOT_RUN = """
## Not run

"""

_FOOT = """
## To reproduce

    make matrix                                                            # all of this
    make matrix MATRIX_ARGS='--ansible-core 2.18 --openstack 2024.2'       \
# a part of it; the other cells stay as they are

`make matrix MATRIX_ARGS=--help` lists the options.
Some old libraries are compiled, which needs gcc and Python's headers.
"""


def render(results: Results) -> str:
    order = list(releases.RELEASES)
    titles = {name: releases.RELEASES[name].title or name for name in order}
    known = [name for name in order if name in results.releases]
    described = [results.releases[name] for name in known]
    cells = [cell for row in results.cells.values() for cell in row.values()]
    text = _HEAD + format_table(
        ["release", *_SERVICES.values(), "Python", "compute, maximum", "Placement, maximum"],
        [
            [
                titles[found["name"]],
                *(found["versions"][name] for name in _SERVICES),
                *(found["python"], found["compute"], found["placement"]),
            ]
            for found in described
        ],
    )
    text += "\n## Controllers\n\n" + format_table(
        ["ansible-core", "Python", "openstacksdk", *titles.values(), "run on"],
        [
            [
                *(known["exactly"] or known["ansible_core"], known["python"], known["sdk"]),
                *(results.cells[title].get(name, "not run yet") for name in order),
                _format_dates(cell.date for cell in results.cells[title].values()),
            ]
            for title, known in sorted(results.controllers.items())
        ],
    )
    minutes = sum(cell.seconds for cell in cells) / 60
    text += f"\nAll tests together took {minutes:.0f} minutes.\n"
    if failed := [
        (title, name, test)
        for title, row in results.cells.items()
        for name, cell in row.items()
        for test in cell.failed
    ]:
        text += "\n## Failed\n\n" + "".join(
            f"- {title}, OpenStack {name}: `{test}`\n" for title, name, test in failed
        )
    text += _list_skipped(results, titles)
    text += _list_not_run(results, titles)
    return text + _FOOT


def _list_skipped(results: Results, titles: Mapping[str, str]) -> str:
    lines = []
    for name, title in titles.items():
        reasons: dict[str, set[str]] = {}
        for row in results.cells.values():
            for test, why in row[name].skipped.items() if name in row else ():
                reasons.setdefault(why, set()).add(test)
        lines += [
            [title, escape(why), " ".join(f"`{test}`" for test in sorted(tests))]
            for why, tests in sorted(reasons.items())
        ]
    return _SKIPPED + format_table(["release", "reason", "tests"], lines) if lines else ""


def _list_not_run(results: Results, titles: Mapping[str, str]) -> str:
    reasons: dict[tuple[str, str], list[str]] = {}
    for title, row in results.cells.items():
        for name, cell in row.items():
            if cell.not_run:
                reasons.setdefault((title, cell.not_run), []).append(titles[name])
    lines = [
        f"- {title}, on OpenStack {', '.join(sorted(names))}: {why}.\n"
        for (title, why), names in reasons.items()
    ]
    return _NOT_RUN + "".join(lines) if lines else ""


def _format_dates(dates: Iterable[str]) -> str:
    ordered = sorted(set(dates))
    return " to ".join(ordered if len(ordered) < 2 else (ordered[0], ordered[-1]))
