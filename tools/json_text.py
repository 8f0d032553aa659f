# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON of results and fixtures: a line for whatever fits into one, so that differences are read."""

from __future__ import annotations

import json
import typing as t

_WIDTH = 300


def format_json(value: t.Any) -> str:
    """Return a JSON document with sorted keys, which ends with a line break."""
    return f"{_format(value, '')}\n"


def _format(value: t.Any, indent: str) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if len(indent) + len(text) <= _WIDTH or not isinstance(value, dict | list | tuple):
        return text
    inner = f"{indent} "
    if not isinstance(value, dict):
        parts = [_format(entry, inner) for entry in value]
        opening, closing = "[]"
    else:
        parts = [f"{json.dumps(str(key))}: {_format(value[key], inner)}" for key in sorted(value)]
        opening, closing = "{}"
    body = f",\n{inner}".join(parts)
    return f"{opening}\n{inner}{body}\n{indent}{closing}"
