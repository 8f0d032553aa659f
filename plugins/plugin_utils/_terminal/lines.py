# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines and tables that fit into the width of a terminal, and how they are printed."""

from __future__ import annotations

import collections
import dataclasses as d
import itertools
import os
import re
import textwrap
import typing as t
from collections.abc import Callable, Iterable, Sequence, Sized

from ansible import constants
from ansible.utils.display import Display, get_text_width

from ...module_utils._common.text import format_count, make_printable, summarize_names
from .._report.phrases import MAX_NAME, UUID

# The longest kind has 21 characters, and a UUID has 36.
KIND_COLUMN = 23
SUBJECT_COLUMN = 38

# How many entries are shown that would be changed, and how many of those that are not changed.
MAX_ROWS, MAX_UNCHANGED_ROWS = 100, 20

# How many reasons not to make changes now are shown.
_MAX_LEFT_ALONE = 10

# So many findings are shown in full. More of them are shown in one line each.
MAX_IN_FULL = 5

# The widest line of a sentence; a table may be wider.
MAX_PROSE = 120

# Stands behind a wide character, and is never printed.
_FILLER = "\0"

# The longest label has 7 characters.
_LABEL_WIDTH = 9

# The same reason names another server and another time for each entry.
_TIME = r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+[0-9]Z?"
_DETAIL = re.compile(f"{UUID.pattern}|{_TIME}")

# What a line is about, with Ansible's own colour for it.
CHANGED, SKIPPED, WARNING, ERROR, OK = "changed", "skipped", "warning", "error", "ok"
_COLOURS = {CHANGED: "CHANGED", SKIPPED: "SKIP", WARNING: "WARN", ERROR: "ERROR", OK: "OK"}

MAX_WIDTH = 200

# Without a terminal, as in AWX and cron. A job of AWX has one of 80 columns that nobody sees.
_DEFAULT_WIDTH = 120
_AWX = "AWX_PRIVATE_DATA_DIR"

# The main process of Ansible reads this file before it forks the process of a task, which has no
# terminal any more.
_HAS_TERMINAL = os.isatty(1)

_GAP = 2

# The first characters of a UUID tell the few that stand in one table apart.
SHORT_UUID = 8


class Line(str):
    """A line that is about something good or bad."""

    tone: str

    def __new__(cls, text: str, tone: str) -> Line:
        line = super().__new__(cls, text)
        line.tone = tone
        return line


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


# --- printing, from the process of a task


def measure_terminal() -> int:
    """Return the width for the lines that are printed."""
    width = _DEFAULT_WIDTH
    if os.environ.get("COLUMNS", "").isdecimal():
        width = int(os.environ["COLUMNS"]) or width
    elif _HAS_TERMINAL and _AWX not in os.environ:
        # Display has the width of the main process's terminal.
        width = Display().columns or width
    return min(width, MAX_WIDTH)


def is_verbose() -> bool:
    """Return whether the user wants to see everything."""
    return Display().verbosity > 0


def print_lines(drawn: Iterable[str]) -> None:
    """Print lines, each in the colour of what it is about."""
    for tone, text in group_by_tone(drawn):
        colour = getattr(constants, f"COLOR_{_COLOURS[tone]}") if tone else None
        Display().display(f"{text}\n", color=colour)


def group_by_tone(lines: Iterable[str]) -> list[tuple[str | None, str]]:
    """Return lines as pairs of a tone and a text: lines of one tone in a row are one text."""
    groups = itertools.groupby(lines, key=lambda line: getattr(line, "tone", None))
    return [(tone, "\n".join(group)) for tone, group in groups]


# --- lines


def paint(lines: Iterable[str], tone: str | None) -> list[str]:
    """Return lines in a tone; None for none."""
    return [Line(line, tone) for line in lines] if tone else list(lines)


def get_prose_width(width: int) -> int:
    """Return the width for sentences, which are hard to read on a very wide terminal."""
    return min(width, MAX_PROSE)


def measure_width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    try:
        return get_text_width(text)
    except OSError:
        # The locale of this process does not know any of the characters.
        return len(text)


def cut_to_width(name: t.Any, room: int) -> str:
    """Return a name that takes no more than `room` columns."""
    shown = make_printable(name, room)
    # A wide character, as in a Chinese name, takes two columns.
    while measure_width(shown) > room:
        shown = f"{shown.removesuffix('…')[:-1]}…"
    return shown


def wrap_text(text: str, width: int, first: str = "", others: str = "") -> list[str]:
    """Return a text as lines that are no wider than a terminal.

    first, others: what precedes the first line, and what precedes all others.
    """
    padded = text
    if measure_width(text) != len(text):
        # A line is as long as it is wide, but for the filler that can go to the next line.
        padded = "".join(char + _FILLER * (measure_width(char) - 1) for char in text)
        width -= 1
    lines = textwrap.wrap(
        padded, width, initial_indent=first, subsequent_indent=others, break_on_hyphens=False
    )
    return [line.replace(_FILLER, "") for line in lines]


def wrap_item(text: str, width: int) -> list[str]:
    """Return one of several paragraphs, whose first line stands out."""
    return wrap_text(text, width, "", "    ")


def wrap_path(text: str, width: int) -> list[str]:
    """Return a sentence that ends with a path, which is never cut: it is there to be copied."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def format_remark(text: str, width: int, tone: str | None = None) -> list[str]:
    """Return a sentence with names in it, in a tone; nothing for an empty one."""
    return paint(wrap_text(make_printable(text), width), tone)


def format_failed_checks(reasons: Iterable[str], width: int) -> list[str]:
    """Return why nothing may be changed."""
    texts = [f"NOTHING MAY BE CHANGED: {reason}" for reason in reasons]
    return [line for text in texts for line in format_remark(text, width, ERROR)]


def leave_out_reasons(document: t.Any, message: str) -> t.Any:
    """Return findings or guests without the reasons that the task fails with, at its end.

    message: what the task fails with; empty if it does not fail.
    """
    summary = document["summary"]
    coverage = summary["coverage"]
    left = [reason for reason in coverage["failed_checks"] if reason not in message]
    return {**document, "summary": {**summary, "coverage": {**coverage, "failed_checks": left}}}


# --- several lines about something


def format_row(kind: str, subject: t.Any, name: t.Any, width: int) -> str:
    """Return the first line about something: its name is cut to the room that is left for it."""
    second = cut_to_width(subject, SUBJECT_COLUMN - 1)
    room = max(width - KIND_COLUMN - SUBJECT_COLUMN, 8)
    padding = " " * (SUBJECT_COLUMN - measure_width(second))
    third = cut_to_width(name, min(MAX_NAME, room))
    return f"{kind:{KIND_COLUMN}}{second}{padding}{third}".rstrip()


def format_field(label: str, text: str, width: int) -> list[str]:
    """Return a text after its label; nothing for an empty one."""
    start = f"    {label:{_LABEL_WIDTH}}"
    return wrap_text(make_printable(text), width, start, " " * len(start))


def format_command_field(label: str, command: str) -> str:
    """Return a command on a line of its own, which is never wrapped: it is there to be copied."""
    return f"    {label:{_LABEL_WIDTH}}{make_printable(command)}"


def format_write(text: str, left: str, width: int) -> list[str]:
    """Return what would be written, or could be but for the reason `left`."""
    if left:
        return format_field("could", f"{text}; not now: {left}", width)
    return format_field("write", text, width)


def format_omitted(entries: Sized, shown: int, path: str, width: int) -> list[str]:
    """Return how many of `entries` are not shown, and which file has them."""
    left = len(entries) - shown
    return wrap_path(f"… and {left} more in {make_printable(path)}", width) if left > 0 else []


def format_reasons(
    entries: Iterable[t.Any],
    get_name: Callable[[t.Any], str] | None,
    width: int,
    title: str = "",
    tone: str | None = None,
) -> list[str]:
    """Return each reason once, with how many entries have it, or which; nothing without entries.

    get_name: returns what an entry is called; None to count the entries.
    """
    groups: dict[tuple[str, str], list[t.Any]] = collections.defaultdict(list)
    for entry in entries:
        groups[entry["kind"], _DETAIL.sub("…", entry["reason"])].append(entry)
    lines = ["", title] if groups and title else [""] * bool(groups)
    for (kind, reason), members in list(groups.items())[:MAX_UNCHANGED_ROWS]:
        # The reason of one entry names it, and that of several is about each of them.
        text = members[0]["reason"] if len(members) == 1 else reason
        about = str(len(members))
        if get_name:
            about = summarize_names(
                make_printable(get_name(each), 2 * MAX_NAME) for each in members
            )
        shown = f"{make_printable(kind)} ({about}): {make_printable(text)}"
        lines += paint(wrap_item(shown, width), tone)
    left = len(groups) - MAX_UNCHANGED_ROWS
    more = [f"… and {format_count(left, 'more reason', 'more reasons')}"] if left > 0 else []
    return lines + more


def format_left_alone(reasons: Iterable[str], width: int) -> list[str]:
    """Return why changes are not made now, each reason once; those without a reason are made."""
    counts = collections.Counter(filter(None, reasons))
    lines: list[str] = []
    for reason, count in list(counts.items())[:_MAX_LEFT_ALONE]:
        lines += wrap_text(f"Not now: {count}, because {make_printable(reason)}.", width)
    return lines


# --- tables: one line a row


def format_table(columns: Sequence[Column], rows: Sequence[Row], width: int) -> list[str]:
    """Return a table with its headings; nothing without rows."""
    if not rows:
        return []
    widths = _choose_widths(columns, rows, width)
    headings = Row(tuple(column.heading for column in columns))
    return [_draw_row(row, columns, widths) for row in (headings, *rows)]


def format_explained_table(
    columns: Sequence[Column], rows: Sequence[Row], reasons: Sequence[str], width: int
) -> list[str]:
    """Return a table with a reason under each row that has one; nothing without rows."""
    lines: list[str] = []
    for line, reason in zip(format_table(columns, rows, width), ["", *reasons], strict=False):
        lines += [line, *format_field("why", reason or "", get_prose_width(width))]
    return lines


def is_cut(columns: Sequence[Column], rows: Sequence[Row], width: int, heading: str) -> bool:
    """Return whether the cells of a column are shortened at this width."""
    widths = _choose_widths(columns, rows, width)
    natural = _measure_columns(columns, rows)
    place = [column.heading for column in columns].index(heading)
    return widths[place] < natural[place]


def _measure_columns(columns: Sequence[Column], rows: Sequence[Row]) -> list[int]:
    """Return the width that the longest cell of each column takes."""
    headings = [column.heading for column in columns]
    cells = zip(headings, *(row.cells for row in rows), strict=True)
    return [max(map(measure_width, texts)) for texts in cells]


def _choose_widths(columns: Sequence[Column], rows: Sequence[Row], width: int) -> list[int]:
    """Return the width of each column, so that a row fits.

    Where not all fit, ids are shortened first: the first characters tell them apart, while a host
    or an amount that is cut is wrong for whoever reads it.
    """
    room = width - _GAP * (len(columns) - 1)
    comforts = [max(column.comfort, column.least or 0) for column in columns]
    natural = _measure_columns(columns, rows)
    widths = _shrink_widest(columns, natural, room, comforts)
    if sum(widths) <= room:
        return widths
    for place, column in enumerate(columns):
        if column.short is not None:
            natural[place] = max(min(natural[place], column.short), len(column.heading))
    widths = _shrink_widest(columns, natural, room, comforts)
    return _shrink_widest(columns, widths, room, [column.least or 0 for column in columns])


def _shrink_widest(
    columns: Sequence[Column], natural: Sequence[int], room: int, leasts: Sequence[int]
) -> list[int]:
    """Return widths of which the widest are narrower that may be cut, until a row fits."""
    widths = list(natural)
    cuttable = [place for place, column in enumerate(columns) if column.least is not None]
    while sum(widths) > room:
        spare = [(widths[place], place) for place in cuttable if widths[place] > leasts[place]]
        if not spare:
            break
        widths[max(spare)[1]] -= 1
    return widths


def _draw_row(row: Row, columns: Sequence[Column], widths: Sequence[int]) -> str:
    shown = []
    for cell, column, room in zip(row.cells, columns, widths, strict=True):
        text = cell[:room] if column.short is not None else cut_to_width(cell, room)
        padding = " " * (room - measure_width(text))
        shown.append(padding + text if column.is_number else text + padding)
    line = (" " * _GAP).join(shown).rstrip()
    return Line(line, row.tone) if row.tone else line
