# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hosts of cells, from what `nova-manage cell_v2 list_hosts` prints.

It reads the API database of Nova, so it also lists the hosts of a cell that does not answer.
Source: `CellV2Commands.list_hosts` in nova/cmd/manage.py. The table has the columns Cell Name, Cell
UUID and Hostname.
"""

from __future__ import annotations

import dataclasses as d
import re
import typing as t
from collections.abc import Iterable, Mapping, Sequence

from ...module_utils._common.errors import InvalidInput
from ...module_utils._common.text import make_printable, suggest_names
from ...module_utils._common.uuids import normalize_uuid

if t.TYPE_CHECKING:  # pragma: no cover
    from .nova_manage import TaskResult

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# A name of a cell can have any character, but the other two columns cannot have a bar.
_ROW = re.compile(rf"\| (.*?) *\| +({_UUID}) +\| +(\S+) +\|")
# In the language of the host.
_HEADER = re.compile(r"\|[^|]+\|[^|]+\|[^|]+\|")
_RULE = re.compile(r"\+[-+]+\+")
_ADVICE = (
    "Set orphan_cleanup_cell_hosts to the hosts of each cell instead, or correct "
    "orphan_cleanup_nova_manage and orphan_cleanup_nova_manage_host."
)


@d.dataclass(frozen=True)
class CellHost:
    """A row of the table: a host, and the cell that it is in."""

    cell: str
    uuid: str
    host: str


def find_cell_hosts(listing: TaskResult, cells: Sequence[str]) -> dict[str, list[str]]:
    """Return the hosts of the cells, by the name or uuid with which each cell is named.

    listing: the result of the task that ran the command.
    Raises InvalidInput when the command failed, when its table cannot be read to the end, and for a
    cell that it does not list.
    """
    if listing.get("rc") != 0:
        said = " ".join(str(listing.get("stderr") or listing.get("msg") or "nothing").split())
        shown = make_printable(said, 500).rstrip(".")
        raise InvalidInput(
            "orphan_cleanup_cells: `nova-manage cell_v2 list_hosts` did not list the hosts of the "
            f"cells, and said: {shown}. {_ADVICE}"
        )
    rows = parse_host_table(str(listing.get("stdout") or ""))
    hosts_by_cell: dict[str, list[str]] = {}
    names_by_uuid: dict[str, str] = {}
    for name in cells:
        uuid = _find_cell(name, rows)
        if uuid in names_by_uuid:
            raise InvalidInput(
                f"orphan_cleanup_cells names one cell twice: {make_printable(names_by_uuid[uuid])} "
                f"and {make_printable(name)}."
            )
        names_by_uuid[uuid] = name
        hosts_by_cell[name] = sorted(row.host for row in rows if row.uuid == uuid)
    return hosts_by_cell


def parse_host_table(text: str) -> list[CellHost]:
    """Return the rows of the table. Raises InvalidInput if one of its lines is not understood."""
    rows = []
    has_header = False
    for line in text.splitlines():
        # Warnings of Python and of oslo come before the table.
        if not line.startswith(("|", "+")) or _RULE.fullmatch(line.rstrip()):
            continue
        row = _ROW.fullmatch(line.rstrip())
        if row is None and not has_header and _HEADER.fullmatch(line.rstrip()):
            has_header = True
            continue
        if row is None:
            raise InvalidInput(
                "orphan_cleanup_cells: this line of `nova-manage cell_v2 list_hosts` cannot be "
                f"read: {make_printable(line, 200)} {_ADVICE}"
            )
        rows.append(CellHost(row[1].strip(), row[2], row[3]))
    if not has_header:
        raise InvalidInput(
            "orphan_cleanup_cells: `nova-manage cell_v2 list_hosts` printed no table of hosts. "
            f"{_ADVICE}"
        )
    return rows


def _find_cell(name: str, rows: Iterable[CellHost]) -> str:
    """Return the uuid of the cell that has a name or uuid."""
    wanted = normalize_uuid(name) or name
    uuids = {row.uuid for row in rows if wanted in (row.cell, row.uuid)}
    shown = make_printable(name, 100)
    if not uuids:
        advice = suggest_names(name, [row.cell for row in rows])
        raise InvalidInput(
            f"orphan_cleanup_cells: Nova has no cell {shown} with hosts. {advice}".rstrip()
        )
    if len(uuids) > 1:
        raise InvalidInput(
            f"orphan_cleanup_cells: {len(uuids)} cells are named {shown}: "
            f"{', '.join(sorted(uuids))}. Give the UUID of the one that you mean."
        )
    return uuids.pop()


def describe_cell_hosts(listing: TaskResult, cells: t.Any) -> Mapping[str, t.Any]:
    """Return the hosts of the cells, or why they are not certain: `hosts` and `fault`."""
    # The command line gives a text for a list.
    names = cells.split(",") if isinstance(cells, str) else [str(cell) for cell in cells]
    try:
        return {"hosts": find_cell_hosts(listing, names), "fault": ""}
    except InvalidInput as error:
        return {"hosts": {}, "fault": f"{error} Nothing was changed."}
