# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hosts of cells, from the table that nova-manage prints."""

from __future__ import annotations

import itertools
import typing as t

import pytest

from ......plugins.plugin_utils._stage.cells import describe_cell_hosts

CELL_1, CELL_2, TWIN = (f"0000000{number}-0000-4000-8000-00000000000a" for number in range(3))
RULE = f"+{'-' * 13}+{'-' * 38}+{'-' * 12}+"
HEADER = f"|  Cell Name  | {'Cell UUID':^36} |  Hostname  |"


def _print(*rows: tuple[str, str, str]) -> str:
    """Return what nova-manage prints, with a warning before the table."""
    lines = ["Deprecated: Option | is old", RULE, HEADER, RULE]
    lines += [f"| {cell:^11} | {uuid} | {host:^10} |" for cell, uuid, host in rows]
    return "\n".join([*lines, RULE, ""])


TABLE = _print(
    ("cell1", CELL_1, "compute-1"),
    ("cell1", CELL_1, "compute-2"),
    ("cell | two", CELL_2, "compute-3"),
    ("twin", CELL_2, "compute-4"),
    ("twin", TWIN, "compute-5"),
)


def _describe(cells: t.Any, **result: t.Any) -> t.Mapping[str, t.Any]:
    listing: t.Any = {"rc": 0, "stdout": TABLE, "stderr": "", **result}
    return describe_cell_hosts(listing, cells)


@pytest.mark.parametrize(
    ("cells", "hosts"),
    [
        (["cell1"], {"cell1": ["compute-1", "compute-2"]}),
        # The command line gives a text for a list.
        ("cell1", {"cell1": ["compute-1", "compute-2"]}),
        (f"cell1,{TWIN}", {"cell1": ["compute-1", "compute-2"], TWIN: ["compute-5"]}),
        ([CELL_1.upper()], {CELL_1.upper(): ["compute-1", "compute-2"]}),
        (["cell | two"], {"cell | two": ["compute-3", "compute-4"]}),
    ],
    ids=itertools.count(),
)
def test_cells_are_named_by_name_or_uuid(cells: t.Any, hosts: dict[str, list[str]]) -> None:
    assert _describe(cells) == {"hosts": hosts, "fault": ""}


@pytest.mark.parametrize(
    ("cells", "result", "sentence"),
    [
        (
            ["cell9"],
            {},
            "orphan_cleanup_cells: Nova has no cell cell9 with hosts. Did you mean cell1?",
        ),
        (["twin"], {}, f"orphan_cleanup_cells: 2 cells are named twin: {CELL_2}, {TWIN}."),
        (
            ["cell1", CELL_1],
            {},
            f"orphan_cleanup_cells names one cell twice: cell1 and {CELL_1}.",
        ),
        # An empty table is no table of a cell without hosts.
        (["cell1"], {"stdout": _print()}, "orphan_cleanup_cells: Nova has no cell cell1 with"),
        (["cell1"], {"stdout": ""}, "orphan_cleanup_cells: `nova-manage cell_v2 list_hosts` print"),
        (["cell1"], {"stdout": "cell1 compute-1"}, "orphan_cleanup_cells: `nova-manage cell_v2"),
        # A row of which only a part can be read must not leave out a host.
        (
            ["cell1"],
            {"stdout": f"{TABLE}\n| cell1 | {CELL_1} | two hosts |"},
            "orphan_cleanup_cells: this line of `nova-manage cell_v2 list_hosts` cannot be read",
        ),
        (
            ["cell1"],
            {"stdout": f"{TABLE}\n| cell1 | {CELL_1} |"},
            "orphan_cleanup_cells: this line of `nova-manage cell_v2 list_hosts` cannot be read",
        ),
        (
            ["cell1"],
            {"rc": 127, "stdout": "", "stderr": "env: nova-manage: No such file"},
            "orphan_cleanup_cells: `nova-manage cell_v2 list_hosts` did not list the hosts of the "
            "cells, and said: env: nova-manage: No such file",
        ),
        # The table of a command that failed is not read.
        (["cell1"], {"rc": 1}, "orphan_cleanup_cells: `nova-manage cell_v2 list_hosts` did not"),
        (
            ["cell1"],
            {"rc": None, "unreachable": True, "msg": "no route to host"},
            "orphan_cleanup_cells: `nova-manage cell_v2 list_hosts` did not list the hosts of the "
            "cells, and said: no route to host",
        ),
    ],
    ids=itertools.count(),
)
def test_cells_that_are_not_certain_have_no_hosts(
    cells: list[str], result: dict[str, t.Any], sentence: str
) -> None:
    described = _describe(cells, **result)

    assert described["hosts"] == {}
    assert described["fault"].startswith(sentence)
    assert described["fault"].endswith("Nothing was changed.")
