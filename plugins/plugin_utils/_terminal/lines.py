# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines for a terminal: how they are laid out, and what they are about."""

from __future__ import annotations

import collections
import itertools
import re
import textwrap
import typing as t
from collections.abc import Callable, Iterable, Sized

from ansible.utils.display import get_text_width

from ...module_utils._common.text import format_count, make_printable, summarize_names
from .._report.phrases import MAX_NAME, UUID

if t.TYPE_CHECKING:  # pragma: no cover
    from ...module_utils._core.findings.entries import Entry
    from ...module_utils._core.models.codec import Json

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

# What a line is about. The action that prints it chooses one of Ansible's own colours for it.
CHANGED, SKIPPED, WARNING, ERROR, OK = "changed", "skipped", "warning", "error", "ok"


class Line(str):
    """A line that is about something good or bad."""

    tone: str

    def __new__(cls, text: str, tone: str) -> Line:
        line = super().__new__(cls, text)
        line.tone = tone
        return line


def paint(lines: Iterable[str], tone: str | None) -> list[str]:
    """Return lines in a tone; None for none."""
    return [Line(line, tone) for line in lines] if tone else list(lines)


def group_by_tone(lines: Iterable[str]) -> list[tuple[str | None, str]]:
    """Return lines as pairs of a tone and a text: lines of one tone in a row are one text."""
    groups = itertools.groupby(lines, key=lambda line: getattr(line, "tone", None))
    return [(tone, "\n".join(group)) for tone, group in groups]


def format_write(text: str, left: str, width: int) -> list[str]:
    """Return what would be written, or could be but for the reason `left`."""
    if left:
        return format_field("could", f"{text}; not now: {left}", width)
    return format_field("write", text, width)


def format_server(entry: Entry | Json, width: int) -> str:
    """Return the name of the server as the third column, empty for none."""
    if not entry["server"]:
        return ""
    return format_third_column(entry["server"]["name"], width)


def format_row(kind: str, subject: str, name: str) -> str:
    """Return the first line about something; `name` fits already (`format_third_column`)."""
    padding = " " * (SUBJECT_COLUMN - measure_width(subject))
    return f"{kind:{KIND_COLUMN}}{subject}{padding}{name}".rstrip()


def format_second_column(name: t.Any) -> str:
    """Return a name as the second column, with a space left before the third."""
    return cut_to_width(name, SUBJECT_COLUMN - 1)


def format_third_column(name: t.Any, width: int) -> str:
    """Return a name as the third column, cut to the room that is left for it."""
    room = max(width - KIND_COLUMN - SUBJECT_COLUMN, 8)
    return cut_to_width(name, min(MAX_NAME, room))


def cut_to_width(name: t.Any, room: int) -> str:
    """Return a name that takes no more than `room` columns."""
    shown = make_printable(name, room)
    # A wide character, as in a Chinese name, takes two columns.
    while measure_width(shown) > room:
        shown = f"{shown.removesuffix('…')[:-1]}…"
    return shown


def measure_width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    try:
        return get_text_width(text)
    except OSError:
        # The locale of this process does not know any of the characters.
        return len(text)


def format_failed_checks(reasons: Iterable[str], width: int) -> list[str]:
    """Return why nothing may be changed."""
    lines: list[str] = []
    for reason in reasons:
        lines += format_remark(f"NOTHING MAY BE CHANGED: {reason}", width, ERROR)
    return lines


def format_remark(text: str, width: int, tone: str | None = None) -> list[str]:
    """Return a sentence with names in it, in a tone; nothing for an empty one."""
    return paint(wrap(make_printable(text), width), tone)


def leave_out_reasons(document: t.Any, message: str) -> t.Any:
    """Return findings or guests without the reasons that the task fails with, at its end.

    message: what the task fails with; empty if it does not fail.
    """
    summary = document["summary"]
    coverage = summary["coverage"]
    left = [reason for reason in coverage["failed_checks"] if reason not in message]
    return {**document, "summary": {**summary, "coverage": {**coverage, "failed_checks": left}}}


def format_field(label: str, text: str, width: int) -> list[str]:
    return wrap(
        make_printable(text), width, f"    {label:{_LABEL_WIDTH}}", " " * (4 + _LABEL_WIDTH)
    )


def format_command_field(label: str, command: str) -> str:
    """Return a command on a line of its own, which is never wrapped: it is there to be copied."""
    return f"    {label:{_LABEL_WIDTH}}{make_printable(command)}"


def wrap_text(text: str, width: int) -> list[str]:
    return wrap(text, width)


def wrap_item(text: str, width: int) -> list[str]:
    """Return one of several paragraphs, whose first line stands out."""
    return wrap(text, width, "", "    ")


def wrap_path(text: str, width: int) -> list[str]:
    """Return a sentence that ends with a path, which is never cut: it is there to be copied."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def wrap(text: str, width: int, first: str = "", others: str = "") -> list[str]:
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


def get_prose_width(width: int) -> int:
    """Return the width for sentences, which are hard to read on a very wide terminal."""
    return min(width, MAX_PROSE)


def format_omitted(entries: Sized, shown: int, path: str, width: int) -> list[str]:
    """Return how many of `entries` are not shown, and which file has them."""
    left = len(entries) - shown
    if left <= 0:
        return []
    return wrap_path(f"… and {left} more in {make_printable(path)}", width)


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
            names = [make_printable(get_name(member), 2 * MAX_NAME) for member in members]
            about = summarize_names(names)
        shown = f"{make_printable(kind)} ({about}): {make_printable(text)}"
        lines += paint(wrap_item(shown, width), tone)
    left = len(groups) - MAX_UNCHANGED_ROWS
    if left > 0:
        lines.append(f"… and {format_count(left, 'more reason', 'more reasons')}")
    return lines


def format_left_alone(reasons: Iterable[str], width: int) -> list[str]:
    """Return why changes are not made now, each reason once; those without a reason are made."""
    counts = collections.Counter(filter(None, reasons))
    lines: list[str] = []
    for reason, count in list(counts.items())[:_MAX_LEFT_ALONE]:
        lines += wrap_text(f"Not now: {count}, because {make_printable(reason)}.", width)
    return lines
