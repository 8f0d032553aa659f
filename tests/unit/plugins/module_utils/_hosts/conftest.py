"""Nothing here waits in real time, as in the core."""

from __future__ import annotations

from .._core.conftest import no_waiting

__all__ = ["no_waiting"]
