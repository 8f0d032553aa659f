# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Commands of OpenStack that an operator can paste into a shell, whatever names are in them."""

from __future__ import annotations

import shlex
import typing as t

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable


def build_command(words: Iterable[str], names: Iterable[str] = ()) -> str:
    """Return a command as one line; '' if one of the names must not be in a command.

    words: what this collection chose, such as the program, its options and uuids.
    names: arguments from the cloud, which come last. A terminal acts on what does not print, and a
        program takes a name that begins with a hyphen for an option.
    """
    arguments = list(names)
    for name in arguments:
        if not name or not name.isprintable() or name.startswith("-"):
            return ""
    return shlex.join([*words, *arguments])
