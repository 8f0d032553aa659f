"""What tests say about reasons: their IDs, and not their words."""

from __future__ import annotations

import typing as t
from collections.abc import Callable


def has_id(identity: str) -> Callable[[t.Any], bool]:
    """Return the `check` of `pytest.raises` for an error that has the reason with this ID."""
    return lambda error: error.reason.id == identity
