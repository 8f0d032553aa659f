"""What is measured, at which sizes, and in which order. Pure."""

from __future__ import annotations

import dataclasses as d

from benchmark.layout import Scale

# The commands that are measured, by the names that the page shows.
FULL = "detect, full"
UNCHANGED = "detect, incremental, unchanged"
CHANGED = "detect, incremental, changed"
CLEANUP = "clean up, check mode"
REPLAY = "the same requests"
AUDIT = "audit"
SERVER_LIST = "server list"
ONE_STRAND = "listing, one strand"
CHOSEN_STRANDS = "listing, as chosen"
REMEDIATE = "clean up by plan"
REMEDIATE_MODULE = "orphan_remediate"
UNPROVEN = "unproven"
BY_HAND = "by hand"

# Not measured: what changes in the cloud between two commands.
CHANGE = "change"

INCREMENTAL = (UNCHANGED, CHANGED)
# The commands whose result is compared with the seeded orphans, and must match exactly.
EXACT = (FULL, UNCHANGED, CHANGED, CLEANUP)

FEW, MANY = 0.002, 0.02
CHANGED_FRACTION = 0.01

# The stages, by the names of the option `--only`.
MAIN = "main"
WORST = "worst"
TWICE = "twice"
MEMORY = "memory"
SMALL = "small"
REMEDIATION = "remediation"
SCALE = "scale"


@d.dataclass(frozen=True)
class Stage:
    """One cloud, and the steps of each round on it.

    changed, orphans: how many servers change at the step CHANGE: so many stay healthy, and so many
        become or leave orphans. At the end of a round all of them are again as before.
    processes: the numbers of API processes with which everything is measured.
    """

    name: str
    scale: Scale
    steps: tuple[str, ...]
    rounds: int
    changed: int = 0
    orphans: int = 0
    processes: tuple[int, ...] = (1, 2)

    def limit_processes(self, wanted: list[int] | None) -> Stage:
        """Return the stage with those of its numbers of API processes that are wanted."""
        kept = [number for number in self.processes if not wanted or number in wanted]
        return d.replace(self, processes=tuple(kept) or self.processes)


def list_stages(hosts: int, servers: int, rounds: int) -> list[Stage]:
    """Return all stages for a cloud of this size, which other stages vary."""
    total = hosts * servers
    changed = max(4, round(total * CHANGED_FRACTION))
    orphans = max(8, round(total * FEW))
    incremental = (FULL, UNCHANGED, CHANGE, CHANGED)
    peers = (CLEANUP, REPLAY, AUDIT, ONE_STRAND, CHOSEN_STRANDS)
    worst = (FULL, UNCHANGED, CLEANUP, AUDIT)
    once = (2,)
    return [
        Stage(MAIN, Scale(hosts, servers), incremental + peers, rounds, changed, orphans),
        Stage(TWICE, Scale(2 * hosts, servers), incremental, rounds, changed, orphans),
        Stage(WORST, Scale(hosts, servers, MANY), worst, min(rounds, 2)),
        Stage(SMALL, Scale(5, servers), (FULL, SERVER_LIST, UNCHANGED), rounds),
        Stage(MEMORY, Scale(hosts, 5 * servers), (FULL, UNCHANGED), 1, processes=once),
        Stage(REMEDIATION, Scale(hosts, servers), (), rounds, processes=once),
        Stage(SCALE, Scale(5 * hosts, servers), incremental, 1, 5 * changed, 5 * orphans),
    ]


ALL = (MAIN, TWICE, WORST, SMALL, MEMORY, REMEDIATION, SCALE)
# The run at the largest size takes long, and is separate.
BY_DEFAULT = tuple(name for name in ALL if name != SCALE)
