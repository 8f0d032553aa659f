# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The values of variables, as a sentence shows them."""

from __future__ import annotations

import datetime
import typing as t
from collections.abc import Mapping, Sequence

from ...module_utils._common.text import make_printable

_MAX_SHOWN = 60


def show_value(value: t.Any) -> str:
    """Return a value as a user would write it, cut to the length that fits in a sentence."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _show_text(value)
    if isinstance(value, Mapping):
        return "a dictionary"
    if isinstance(value, Sequence):
        return "a list"
    if isinstance(value, datetime.date):
        return f"the date {value.isoformat()}"
    return make_printable(value, _MAX_SHOWN)


def _show_text(text: str) -> str:
    if not text:
        return "an empty text"
    if len(text) <= _MAX_SHOWN:
        return f"'{make_printable(text)}'"
    return f"'{make_printable(text[:_MAX_SHOWN])}…' ({len(text)} characters)"
