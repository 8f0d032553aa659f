# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compares JSON with the type that the code declares for it."""

from __future__ import annotations

import types
import typing as t


def list_mismatches(value: t.Any, declared: t.Any, where: str = "document") -> list[str]:
    """Return where `value` is not what is declared: keys, and the types of all values."""
    origin, arguments = t.get_origin(declared), t.get_args(declared)
    if declared is t.Any:
        return []
    if t.is_typeddict(declared):
        return _list_key_mismatches(value, declared, where)
    if origin in (t.Union, types.UnionType):
        return _find_best_match(value, arguments, where)
    if origin is t.Literal:
        return [] if value in arguments else [f"{where} is {value!r}"]
    if origin is list:
        if not isinstance(value, list):
            return [f"{where} is {value!r}"]
        parts = enumerate(value)
        return _join(list_mismatches(part, arguments[0], f"{where}[{n}]") for n, part in parts)
    if origin is dict:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            return [f"{where} is {value!r}"]
        pairs = value.items()
        return _join(list_mismatches(part, arguments[1], f"{where}.{key}") for key, part in pairs)
    # To Python True is an int; in JSON an int is a number with any fraction.
    if isinstance(value, bool) and declared is not bool:
        return [f"{where} is {value!r}"]
    accepted = (int, float) if declared is float else declared
    return [] if isinstance(value, accepted) else [f"{where} is {value!r}"]


def _list_key_mismatches(value: t.Any, declared: t.Any, where: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{where} is {value!r}"]
    found = []
    # `__required_keys__` does not see NotRequired in annotations that are text.
    hints = t.get_type_hints(declared, include_extras=True)
    for key, hint in hints.items():
        if t.get_origin(hint) is t.NotRequired:
            (hint,) = t.get_args(hint)
        elif key not in value:
            found.append(f"{where} lacks {key}")
        if key in value:
            found += list_mismatches(value[key], hint, f"{where}.{key}")
    found += [f"{where} has {key}" for key in value if key not in hints]
    return found


def _find_best_match(value: t.Any, choices: t.Iterable[t.Any], where: str) -> list[str]:
    found = [list_mismatches(value, choice or types.NoneType, where) for choice in choices]
    return min(found, key=len)


def _join(lists: t.Iterable[list[str]]) -> list[str]:
    return [text for texts in lists for text in texts]
