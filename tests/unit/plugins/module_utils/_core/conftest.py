"""Nothing here waits in real time: not before it asks again, and not for a write to be shown."""

from __future__ import annotations

import typing as t

import pytest

from ......plugins.module_utils._common import clock
from ......plugins.module_utils._core.clients import api

if t.TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True, scope="module")
def no_waiting() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "_LAG", 0.0)
        patch.setattr(api, "_RETRY_PAUSES", (0.0, 0.0))
        yield
