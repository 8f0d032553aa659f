# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tables that fit into the width of a terminal: one line a row."""

from __future__ import annotations

import dataclasses as d
from collections.abc import Sequence

from .lines import Line, cut_to_width, format_field, get_prose_width, measure_width

_GAP = 2

# The first characters of a UUID tell the few that stand in one table apart.
SHORT_UUID = 8


@d.dataclass(frozen=True)
class Column:
    """A column of a table.

    least: how narrow it may become; None for a column that is never cut.
    comfort: how narrow it may become before ids are shortened for it, and before any other column
        becomes narrower than its own comfort.
    short: what is left of a longer cell of a column that is either whole or this short.
    is_number: whether its cells are numbers, which stand below the end of their heading.
    """

    heading: str
    least: int | None = None
    comfort: int = 0
    short: int | None = None
    is_number: bool = False


@d.dataclass(frozen=True)
class Row:
    """A row of a table, with a cell for each column."""

    cells: tuple[str, ...]
    tone: str | None = None


def format_table(columns: Sequence[Column], rows: Sequence[Row], width: int) -> list[str]:
    """Return a table with its headings; nothing without rows."""
    if not rows:
        return []
    widths = _choose_widths(columns, rows, width)
    lines = [_format_row([column.heading for column in columns], columns, widths)]
    for row in rows:
        line = _format_row(row.cells, columns, widths)
        lines.append(Line(line, row.tone) if row.tone else line)
    return lines


def format_explained_table(
    columns: Sequence[Column], rows: Sequence[Row], reasons: Sequence[str], width: int
) -> list[str]:
    """Return a table with a reason under each row that has one; nothing without rows."""
    table = format_table(columns, rows, width)
    lines = table[:1]
    for line, reason in zip(table[1:], reasons, strict=True):
        lines.append(line)
        if reason:
            lines += format_field("why", reason, get_prose_width(width))
    return lines


def is_cut(columns: Sequence[Column], rows: Sequence[Row], width: int, heading: str) -> bool:
    """Return whether the cells of a column are shortened at this width."""
    widths = _choose_widths(columns, rows, width)
    natural = _measure_columns(columns, rows)
    place = [column.heading for column in columns].index(heading)
    return widths[place] < natural[place]


def _measure_columns(columns: Sequence[Column], rows: Sequence[Row]) -> list[int]:
    """Return the width that the longest cell of each column takes."""
    natural = []
    for place, column in enumerate(columns):
        cells = [row.cells[place] for row in rows]
        natural.append(max(measure_width(text) for text in (column.heading, *cells)))
    return natural


def _choose_widths(columns: Sequence[Column], rows: Sequence[Row], width: int) -> list[int]:
    """Return the width of each column, so that a row fits.

    Where not all fit, ids are shortened first: the first characters tell them apart, while a host
    or an amount that is cut is wrong for whoever reads it.
    """
    natural = _measure_columns(columns, rows)
    room = width - _GAP * (len(columns) - 1)
    comforts = [max(column.comfort, column.least or 0) for column in columns]
    widths = list(natural)
    _shrink_widest(columns, widths, room, comforts)
    if sum(widths) <= room:
        return widths
    widths = list(natural)
    for place, column in enumerate(columns):
        if column.short is not None:
            widths[place] = max(min(widths[place], column.short), len(column.heading))
    _shrink_widest(columns, widths, room, comforts)
    _shrink_widest(columns, widths, room, [column.least or 0 for column in columns])
    return widths


def _shrink_widest(
    columns: Sequence[Column], widths: list[int], room: int, leasts: Sequence[int]
) -> None:
    """Make the widest of the columns narrower that may be cut, until a row fits."""
    while sum(widths) > room:
        spare = []
        for place, column in enumerate(columns):
            if column.least is not None and widths[place] > leasts[place]:
                spare.append((widths[place], place))
        if not spare:
            return
        widths[max(spare)[1]] -= 1


def _format_row(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    shown = []
    for cell, column, room in zip(cells, columns, widths, strict=True):
        text = cell[:room] if column.short is not None else cut_to_width(cell, room)
        padding = " " * (room - measure_width(text))
        shown.append(padding + text if column.is_number else text + padding)
    return (" " * _GAP).join(shown).rstrip()
