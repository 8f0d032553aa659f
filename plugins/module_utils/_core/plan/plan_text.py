# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A compact plan as one text, which is the same in the next job. Pure.

AWX writes the artifacts of a job into the variables of the next one as YAML, with the tag `!unsafe`
at each text. From ansible-core 2.19 on, such a text is read as if it had no quotes: a time becomes
a timestamp, and a region NO becomes False. No YAML reader takes this text for anything but a text,
and it has nothing that a template would evaluate.
"""

from __future__ import annotations

import base64
import json
import typing as t
import zlib
from collections.abc import Mapping

from ..._common.errors import InvalidInput
from ..._common.text import unpack_whole

if t.TYPE_CHECKING:  # pragma: no cover
    from ..models.documents import Unchecked

_PREFIX = "osops.placement.plan:"

# The version of this form; the document inside has a format of its own.
_VERSION = "1"

# A plan with the most changes has about 300 KiB, and a short text can unpack to more than memory.
_MAX_BYTES = 4 * 1024 * 1024

_DAMAGED = (
    "The compact plan was edited or cut short: its text cannot be unpacked. Only the complete plan "
    "that was approved is applied."
)


def format_plan_text(document: Mapping[str, t.Any]) -> str:
    """Return a compact plan as a text without spaces."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    packed = zlib.compress(canonical.encode(), 9)
    return f"{_PREFIX}{_VERSION}:{base64.b64encode(packed).decode()}"


def is_plan_text(value: t.Any) -> t.TypeGuard[str]:
    """Return whether `value` is meant as a plan that `format_plan_text` wrote."""
    return isinstance(value, str) and value.lstrip().startswith(_PREFIX)


def parse_plan_text(text: str) -> Unchecked:
    """Return the document of which `format_plan_text` made `text`.

    Raises InvalidInput for a text of another version, and for one that was edited or cut short.
    Whether the document is a compact plan is checked by `Approval.parse`.
    """
    # A block of YAML ends with a line break.
    version, _colon, packed = text.strip().removeprefix(_PREFIX).partition(":")
    if version != _VERSION:
        raise InvalidInput(
            f"The compact plan has version {version!r} of its text; this version of the collection "
            f"reads version {_VERSION}."
        )
    try:
        decoded = base64.b64decode(packed, validate=True)
        # Python ignores bits without a meaning, and before 3.13 also what follows the padding.
        if base64.b64encode(decoded).decode() != packed:
            raise InvalidInput(_DAMAGED)
        document = json.loads(unpack_whole(decoded, _MAX_BYTES))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(_DAMAGED) from error
    # Anything else, such as null, would be taken for a plan of another kind, or for none.
    if not isinstance(document, dict) or document.get("compact") is not True:
        raise InvalidInput("The text of the compact plan does not have a compact plan in it.")
    return document
