# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Text from a cloud, made safe to show.

Names of users may contain escape sequences, newlines or 255 characters.
"""

from __future__ import annotations

import datetime
import difflib
import typing as t
import uuid
from collections.abc import Iterable, Mapping, Sequence

from .errors import InvalidInput

# How much a name must be like another to be the one that was meant, from 0 to 1.
_LIKENESS = 0.7
# The sentences of failed checks have up to so many characters together, so that a message has 400.
_MAX_CHECKS = 330
_MAX_SHOWN = 60


def make_printable(text: t.Any, limit: int | None = None) -> str:
    """Return `text` with each control character escaped, so that a terminal does not act on it.

    Text of more than `limit` characters is cut to that length.
    """
    shown = "".join(_escape_unprintable(character) for character in str(text))
    if limit is None or len(shown) <= limit:
        return shown
    return shown[: limit - 1] + "…"


def _escape_unprintable(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def format_count(count: int, one: str, many: str) -> str:
    """Return a number with what is counted: `one` is for 1, `many` for any other number."""
    return f"1 {one}" if count == 1 else f"{count} {many}"


def summarize_names(names: Iterable[str]) -> str:
    """Return the first three names, and how many more there are."""
    listed = list(names)
    shown = ", ".join(listed[:3])
    return f"{shown} and {len(listed) - 3} more" if len(listed) > 3 else shown


def summarize_checks(sentences: Iterable[str]) -> str:
    """Return the sentences of failed checks, at most two, and how many more failed.

    A second one is left out where both are long.
    """
    listed = list(sentences)
    shown = listed[:2]
    if len(" ".join(shown)) > _MAX_CHECKS:
        shown = listed[:1]
    left = len(listed) - len(shown)
    if left:
        shown.append(f"{format_count(left, 'more check', 'more checks')} failed.")
    return " ".join(shown)


def suggest_names(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the names that are like `name`, or else with all that are known.

    Empty if none is known.
    """
    listed = sorted(set(known))
    if not listed:
        return ""
    # By their lower case, because many names differ in that alone.
    by_lower: dict[str, str] = {}
    for entry in listed:
        by_lower.setdefault(entry.lower(), entry)
    close = difflib.get_close_matches(name.lower(), list(by_lower), 3, _LIKENESS)
    if close:
        return f"Did you mean {' or '.join(make_printable(by_lower[key], 100) for key in close)}?"
    shown = summarize_names(make_printable(entry, 100) for entry in listed)
    return f"The only one is {shown}." if len(listed) == 1 else f"There are {shown}."


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


def normalize_uuid(text: str) -> str | None:
    """Return `text` as Placement writes uuids; None when it is not a uuid."""
    try:
        # It also accepts upper case, braces and missing dashes.
        return str(uuid.UUID(text))
    except ValueError:
        return None


def require_uuid(text: str, option: str) -> str:
    """Return `text` as Placement writes uuids.

    Raises InvalidInput, which names the `option`, when `text` is not a uuid.
    """
    canonical = normalize_uuid(text)
    if canonical is None:
        raise InvalidInput(f"{option} {text!r} is not a valid UUID.")
    return canonical
