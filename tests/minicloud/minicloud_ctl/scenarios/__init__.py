"""Real situations, each made by a function in a registry.

The modules by theme register themselves when they are imported.
"""

from minicloud_ctl.scenarios import (  # noqa: F401
    deleted,
    drift,
    evacuations,
    failed_moves,
    foreign,
    live,
    moves,
    nodes,
    others,
)
from minicloud_ctl.scenarios.registry import REGISTRY

__all__ = ["REGISTRY"]
