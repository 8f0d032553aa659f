"""Waits for a condition, never for a time."""

import time
from collections.abc import Callable
from typing import TypeVar

from minicloud_ctl.errors import MinicloudError

Found = TypeVar("Found")

# After a long wait, a moment more does not matter, and each look costs the services something.
LONGEST_INTERVAL = 1.0
SHARE_OF_THE_WAIT = 0.1


def wait_for(
    what: str, probe: Callable[[], Found], timeout: float = 120.0, interval: float = 0.2
) -> Found:
    """Call ``probe`` until it returns something true, and return that.

    The longer it takes, the longer are the intervals.

    After ``timeout`` seconds, fail and name the condition.
    """
    began = time.monotonic()
    while True:
        found = probe()
        if found:
            return found
        waited = time.monotonic() - began
        if waited > timeout:
            raise MinicloudError(f"Waited {timeout:.0f} s in vain for {what}.")
        time.sleep(max(interval, min(SHARE_OF_THE_WAIT * waited, LONGEST_INTERVAL)))
