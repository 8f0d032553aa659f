"""The measurements, kept as JSON."""

import dataclasses as d
import typing as t
from pathlib import Path

from json_text import load_record, save_record

KEPT = Path(__file__).parent / "results.json"

FULL, INCREMENTAL, CHANGED = "full", "incremental", "changed"
REMEDIATION, SHARD, SHARDS, CELL_DOWN = "remediation", "shard", "shards", "cell_down"


@d.dataclass(frozen=True)
class Result:
    """One measured run.

    seconds: of the whole command. memory: the most that one of its processes had, in MiB.
    requests: how many were answered, by kind. files: the sizes of what it wrote, in MiB.
    """

    name: str
    seconds: float
    memory: int
    requests: t.Mapping[str, int]
    files: t.Mapping[str, float]
    findings: int


@d.dataclass
class Results:
    """The runs of one simulated cloud, by their names."""

    hosts: int
    servers: int
    cells: int
    orphans: int
    shards: int
    runs: dict[str, Result] = d.field(default_factory=dict)

    def save(self, path: Path) -> None:
        save_record(path, self)


def load(path: Path) -> Results | None:
    """Return the results of an earlier run; None without the file."""
    return load_record(Results, path) if path.exists() else None
