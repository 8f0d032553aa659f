# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Lines for a terminal: how they are laid out, and what they are about."""

from __future__ import annotations

import itertools
import textwrap
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.text import printable
from ansible_collections.osops.placement.plugins.module_utils._findings.coverage import tell_unjudged
from ansible_collections.osops.placement.plugins.plugin_utils._report.phrases import NAME

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._findings.entries import Entry

# So many entries are shown that something would be done about, and so many of those that are left alone.
ROWS, SPARED_ROWS = 100, 20

_LABEL = 9

# What a line is about; the colours of Ansible's own that stand for it are chosen where it is printed.
CHANGED, SPARED, DOUBTFUL, WRONG, FINE = "changed", "spared", "doubtful", "wrong", "fine"


class Line(str):
    """A line that is about something good or bad."""

    tone: str

    def __new__(cls, text: str, tone: str) -> Line:
        line = super().__new__(cls, text)
        line.tone = tone
        return line


def toned(lines: Iterable[str]) -> list[tuple[str | None, str]]:
    """Return the text of lines, those of one tone in a row together."""
    runs = itertools.groupby(lines, key=lambda line: getattr(line, "tone", None))
    return [(tone, "\n".join(run)) for tone, run in runs]


def write(text: str, left: str, width: int) -> list[str]:
    """Return what would be written, or could be but for the reason `left`."""
    return field("could" if left else "write", f"{text}; not now, for {left}" if left else text, width)


def server(entry: Entry, width: int) -> str:
    return third_column(entry["server"]["name"], width) if entry["server"] else ""


def third_column(name: t.Any, width: int) -> str:
    """Return a name as the third column, in what room there is for it."""
    return printable(name, min(NAME, max(width - 58, 8)))


def gates(coverage: Mapping[str, t.Any], width: int) -> list[str]:
    """Return why nothing may be changed, and what was not judged."""
    told = [wrapped(f"NOTHING MAY BE CHANGED: {printable(gate)}", width) for gate in coverage["closed_gates"]]
    unjudged = wrapped(printable(tell_unjudged(coverage)), width)
    return [*(Line(line, WRONG) for line in itertools.chain.from_iterable(told)), *(Line(line, DOUBTFUL) for line in unjudged)]


def field(label: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        printable(text),
        width,
        initial_indent=f"    {label:{_LABEL}}",
        subsequent_indent=" " * (4 + _LABEL),
        break_on_hyphens=False,
    )


def wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False)


def path_line(text: str, width: int) -> list[str]:
    """Return a sentence that ends with a path, which is never cut: it is there to be copied."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def more(entries: Iterable[Entry], shown: int, path: str, width: int) -> list[str]:
    left = len(list(entries)) - shown
    return path_line(f"… and {left} more in {printable(path)}", width) if left > 0 else []
