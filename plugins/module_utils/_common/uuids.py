# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""UUIDs as users write them, in the canonical form that Placement returns."""

from __future__ import annotations

import uuid

from .errors import InvalidInput


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
