# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The types of the fields of a compact plan. Pure.

A plan comes to a job through files, variables and YAML readers that take a text for something else.
"""

from __future__ import annotations

import re
import typing as t
from collections.abc import Callable, Mapping

from ..._common.errors import InvalidInput
from ..models.documents import Unchecked

if t.TYPE_CHECKING:  # pragma: no cover
    # Whether a value is of the type, and the type in words.
    FieldType = tuple[Callable[[t.Any], bool], str]

_DIGEST = re.compile(r"[0-9a-f]{64}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def _is_text(value: t.Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_text_or_none(value: t.Any) -> bool:
    return value is None or isinstance(value, str)


def _is_count(value: t.Any) -> bool:
    # To Python True is 1.
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_count_or_none(value: t.Any) -> bool:
    return value is None or _is_count(value)


def _is_time(value: t.Any) -> bool:
    return isinstance(value, str) and bool(_TIME.fullmatch(value))


def _is_digest(value: t.Any) -> bool:
    return isinstance(value, str) and bool(_DIGEST.fullmatch(value))


_TEXT: FieldType = (_is_text, "a text")
_TEXT_OR_NONE: FieldType = (_is_text_or_none, "a text, or null")
_COUNT: FieldType = (_is_count, "a number from 0 on")
_COUNT_OR_NONE: FieldType = (_is_count_or_none, "a number from 0 on, or null")

# `format` and `changes` are checked before the types are.
PLAN_TYPES: Mapping[str, FieldType] = {
    "placement_endpoint": _TEXT,
    "region": _TEXT_OR_NONE,
    "detected_at": (_is_time, "a time in UTC such as 2026-11-20T03:04:05Z"),
    "consumers": _COUNT_OR_NONE,
    "count": _COUNT,
    "digest": (_is_digest, "a SHA-256"),
}
CHANGE_TYPES: Mapping[str, FieldType] = {
    "finding": _TEXT,
    "kind": _TEXT,
    "consumer": _TEXT_OR_NONE,
    "generation": _COUNT_OR_NONE,
    "digest": (_is_digest, "a SHA-256"),
}


def check_types(document: Unchecked, types: Mapping[str, FieldType]) -> None:
    """Raise InvalidInput when a field of the document is not of its type."""
    for field, (is_valid, description) in types.items():
        value = document[field]
        if not is_valid(value):
            raise InvalidInput(
                f"The compact plan has {value!r} as {field}, which must be {description}. It was "
                "edited, or a YAML reader has taken a text for something else: pass on "
                "orphan_cleanup_plan as the first job exports it."
            )
