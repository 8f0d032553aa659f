# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Text from a cloud, which is hostile until shown: names may hold escape sequences, newlines or 255 characters."""

from __future__ import annotations

import typing as t

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable


def make_printable(text: t.Any, limit: int | None = None) -> str:
    """Return `text` with every character that a terminal would act on spelled out, cut to `limit` characters."""
    shown = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in str(text)
    )
    return shown if limit is None or len(shown) <= limit else shown[: limit - 1] + "…"


def summarize_names(names: Iterable[str]) -> str:
    """Name the first three, and say how many there are besides."""
    listed = list(names)
    return ", ".join(listed[:3]) + (f" and {len(listed) - 3} more" if len(listed) > 3 else "")
