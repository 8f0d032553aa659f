# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What the commands of the last lines have in common: the run as its user has started it."""

from __future__ import annotations

import os
import typing as t

from ansible import context
from ansible.parsing.splitter import parse_kv

from ansible_collections.osops.placement.plugins.module_utils._common.text import make_printable

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable

COLLECTION = "osops.placement"

SAME_OPTIONS = "and the other options of this run"

# AWX sets it in its jobs, where nobody types a command.
_AWX = "AWX_PRIVATE_DATA_DIR"


def is_awx_job() -> bool:
    return _AWX in os.environ


def format_fields(fields: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each label and its text; nothing for an empty text."""
    lines: list[str] = []
    for label, text in fields:
        if text:
            # Neither a path nor a command is broken: they are there to be copied.
            lines.append(f"{label + ':':8} {make_printable(text)}")
    return lines


def get_started_playbook() -> str:
    """Return the first playbook of this run, as the user has named it."""
    return str((context.CLIARGS.get("args") or ("",))[0])


def name_playbook(playbook: str, siblings: Iterable[str]) -> str:
    """Return the name of a playbook, as a path if the user gave one of its siblings as a path."""
    started = get_started_playbook()
    for name in siblings:
        if name in started:
            return started.replace(name, playbook)
    return f"{COLLECTION}.{playbook}"


def has_other_variables(named: Iterable[str]) -> bool:
    """Return whether this run has extra variables besides those that a command names.

    They can contain passwords, so a command does not repeat them.
    """
    for text in context.CLIARGS.get("extra_vars") or ():
        # A file, or several variables in one text.
        if str(text).lstrip()[:1] in ("@", "{", "["):
            return True
        if set(parse_kv(str(text))) - set(named):
            return True
    return False
