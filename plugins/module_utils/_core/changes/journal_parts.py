# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A journal as texts that one job hands to another one, or an operator copies by hand.

AWX writes the artifacts of a job into the variables of the next one as YAML, and from ansible-core
2.19 on, such a text is read as if it had no quotes. No YAML reader takes these texts for anything
but texts, and they have nothing that a template would evaluate and no spaces where YAML breaks
lines.
"""

from __future__ import annotations

import base64
import dataclasses as d
import hashlib
import json
import re
import typing as t
import zlib
from collections.abc import Iterable, Sequence

from ..._common.errors import InvalidInput
from ..._common.text import unpack_whole

_PREFIX = "osops.placement.journal:"
# The version of this form; the records inside have a format of their own.
_VERSION = "1"
# A part in a text with other things, such as all artifacts of a job. It is not the end of a path.
_PART_IN_TEXT = re.compile(rf"(?<![/\w.]){re.escape(_PREFIX)}[A-Za-z0-9_:/-]*")
_FORM = re.compile(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3}):([0-9a-f]{64}):([A-Za-z0-9_-]+)")

# In characters. AWX drops the result of a task from the log of a job above 700 000 characters. The
# result of orphan_remediate has at most 200 outcomes besides the parts of the journal. One part is
# short enough for one argument of a command line.
MAX_PART = 100_000
MAX_TOTAL = 400_000

# So many changes fit with certainty. Measured: 155 characters a change with 1 000 changes, and 165
# with 5 000.
SAFE_CHANGES = 2000

# A short text can unpack to more than the memory of the machine.
_MAX_BYTES = 64 * 1024 * 1024


@d.dataclass(frozen=True)
class _Part:
    number: int
    count: int
    digest: str
    data: str


def split_journal(lines: bytes) -> list[str]:
    """Return the parts of a journal, none if it is too long to be handed on.

    lines: the contents of its file.
    """
    data = base64.urlsafe_b64encode(zlib.compress(lines, 9)).decode().rstrip("=")
    if len(data) > MAX_TOTAL:
        return []
    pieces = [data[start : start + MAX_PART] for start in range(0, len(data), MAX_PART)]
    digest = _hash_data(data)
    return [
        f"{_PREFIX}{_VERSION}:{number}/{len(pieces)}:{digest}:{piece}"
        for number, piece in enumerate(pieces, 1)
    ]


def is_journal_text(text: str) -> bool:
    """Return whether a text is meant as parts of a journal, and not as a path."""
    return _PART_IN_TEXT.search(text) is not None


def find_journal_parts(value: t.Any) -> list[t.Any] | None:
    """Return the parts of journals in a value, None for a path, records and anything else.

    Raises InvalidInput for a text that begins with parts and cannot be read.

    value: a list; or a text with the same list as JSON, with spaces between the parts, or with
    other things around them, such as all artifacts of a job as AWX shows them.
    """
    if isinstance(value, list):
        return value if any(map(_is_part, value)) else None
    # With ansible-core 2.18, a text with the JSON of a mapping arrives as a mapping.
    if isinstance(value, dict):
        value = json.dumps(value, default=str)
    if not isinstance(value, str) or not is_journal_text(value):
        return None
    start = value.lstrip()
    if start.startswith(_PREFIX):
        return value.split()
    if not start.startswith(("[", '"')):
        return _PART_IN_TEXT.findall(value)
    # JSON that was pasted, or given on the command line as `-e NAME=[…]`.
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"The text of the journal is neither JSON nor the parts of a journal ({error})."
        ) from error
    return parsed if isinstance(parsed, list) else [parsed]


def _is_part(entry: t.Any) -> bool:
    return isinstance(entry, str) and is_journal_text(entry)


def join_journal_parts(parts: Iterable[t.Any]) -> list[bytes]:
    """Return the contents of the journals of which these are all parts, in their order.

    Raises InvalidInput unless each journal is complete and unchanged.
    """
    journals: list[bytes] = []
    waiting: list[_Part] = []
    for position, text in enumerate(parts, 1):
        part = _parse_part(text, position)
        _check_place(part, position, waiting)
        waiting.append(part)
        if part.number == part.count:
            journals.append(_join_parts(waiting))
            waiting = []
    if waiting:
        raise InvalidInput(
            f"The journal has {waiting[0].count} parts, and part {len(waiting) + 1} is missing: "
            "pass all parts, in their order."
        )
    if not journals:
        raise InvalidInput("There is no part of a journal.")
    return journals


def _parse_part(text: t.Any, position: int) -> _Part:
    trimmed = text.strip() if isinstance(text, str) else ""
    version, _colon, rest = trimmed.removeprefix(_PREFIX).partition(":")
    match = _FORM.fullmatch(rest)
    if not trimmed.startswith(_PREFIX) or (version == _VERSION and match is None):
        raise InvalidInput(
            f"Text {position} is not a part of a journal that orphan_remediate exported: "
            "it was edited or cut short, or it is something else."
        )
    if version != _VERSION or match is None:
        raise InvalidInput(
            f"Text {position} has version {version[:20]!r} of the parts of a journal, "
            f"and this version of the collection reads version {_VERSION}."
        )
    return _Part(int(match[1]), int(match[2]), match[3], match[4])


def _check_place(part: _Part, position: int, waiting: Sequence[_Part]) -> None:
    """Raise InvalidInput unless a part continues the journal of those that wait for it."""
    expected = len(waiting) + 1
    if part.number != expected:
        raise InvalidInput(
            f"Text {position} is part {part.number} of a journal, where part {expected} belongs: "
            "pass all parts, in their order."
        )
    if waiting and (part.count, part.digest) != (waiting[0].count, waiting[0].digest):
        raise InvalidInput(
            f"Text {position} is of another journal than the part before it, or one of them was "
            "edited: pass all parts of a journal, in their order."
        )


def _join_parts(parts: Sequence[_Part]) -> bytes:
    data = "".join(part.data for part in parts)
    # Of the text itself, because several texts can decode to the same bytes.
    if _hash_data(data) != parts[0].digest:
        raise InvalidInput(
            "The journal was edited or cut short: its digest does not match. "
            "Only a complete journal is restored."
        )
    try:
        packed = base64.urlsafe_b64decode(data + "=" * (-len(data) % 4))
        return unpack_whole(packed, _MAX_BYTES)
    except ValueError as error:
        raise InvalidInput("The parts of the journal cannot be unpacked.") from error


def _hash_data(data: str) -> str:
    return hashlib.sha256(data.encode()).hexdigest()
