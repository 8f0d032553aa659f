# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prints lines on the terminal of the user, from the process of a task."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ansible import constants
from ansible.utils.display import Display

from . import lines

MAX_WIDTH = 200

# Without a terminal, as in AWX and cron. A job of AWX has one of 80 columns that nobody sees.
_DEFAULT_WIDTH = 120
_AWX = "AWX_PRIVATE_DATA_DIR"

# The main process of Ansible reads this file before it forks the process of a task, which has no
# terminal any more.
_HAS_TERMINAL = os.isatty(1)

_COLOURS = {
    lines.CHANGED: "COLOR_CHANGED",
    lines.SKIPPED: "COLOR_SKIP",
    lines.WARNING: "COLOR_WARN",
    lines.ERROR: "COLOR_ERROR",
    lines.OK: "COLOR_OK",
}


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
    for tone, text in lines.group_by_tone(drawn):
        colour = getattr(constants, _COLOURS[tone]) if tone else None
        Display().display(f"{text}\n", color=colour)
