"""The results of a comparison, and the file in which they are kept."""

import dataclasses as d
from pathlib import Path

from json_text import load_record, save_record

KEPT = Path(__file__).with_name("results.json")

AUDIT = "audit"
HEAL = "heal"
# The originals of two tools, and their new statements.
NRPE, NAMES = "nrpe", "names"
SCRIPT, SERVERS = "script", "servers"
DETECT = "detect"
CLEANUP = "cleanup"


@d.dataclass(frozen=True)
class Row:
    """What one tool found in one cloud.

    found, missed: orphaned allocations that it named and did not name.
    wrong: the scenarios of the needed allocations that it named as orphaned.
    drifted, drifts: the kinds of the live servers with wrong allocations that it named, and the
        number of such servers.
    seconds: the median of all runs.
    requests: those that Nova and Placement got in one run.
    failure: the error with which it ended, empty if it ended as it should.
    foreign: the fraction of the machine that other processes used meanwhile.
    """

    tool: str
    found: int
    missed: int
    wrong: tuple[str, ...]
    drifted: tuple[str, ...]
    drifts: int
    seconds: float
    requests: int
    failure: str = ""
    foreign: float = 0.0


@d.dataclass(frozen=True)
class Results:
    """The rows of the cloud, and of the same cloud with a dead cell.

    date: the day, such as 2026-11-23.
    rounds: how often each tool was run in the cloud.
    needed: the number of allocations that somebody needs.
    """

    date: str
    rounds: int
    needed: int
    cloud: tuple[Row, ...]
    dead_cell: tuple[Row, ...]

    def save(self, path: Path) -> None:
        save_record(path, self)


def load(path: Path) -> Results:
    return load_record(Results, path)
