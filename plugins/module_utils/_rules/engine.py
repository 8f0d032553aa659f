# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What the snapshot proves. Pure: no request, no clock, no Ansible.

`KINDS` is the table of kinds; each has one function: in `_rules.orphans` for claims that nobody needs (`ORPHANS`), in `_rules.drift` for those of
live servers that are not as they should be (`DRIFTS`), in `_rules.conditions` for what is not about one consumer (`CONDITIONS`).
`_rules.protections` says what is never changed. A consumer is judged once, over its whole holding.
"""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._models.change import change_to
from ansible_collections.osops.placement.plugins.module_utils._models.verdict import (
    DRIFTED,
    ORPHANED,
    Finding,
    Ruling,
    protected,
    undecided,
)
from ansible_collections.osops.placement.plugins.module_utils._rules import conditions, drift, orphans
from ansible_collections.osops.placement.plugins.module_utils._rules.protections import PROTECTIONS
from ansible_collections.osops.placement.plugins.module_utils._rules.unproven import unproven
from ansible_collections.osops.placement.plugins.module_utils._snapshot.capabilities import unprovable
from ansible_collections.osops.placement.plugins.module_utils._snapshot.consumer import Case
from ansible_collections.osops.placement.plugins.module_utils._snapshot.gaps import find_gap
from ansible_collections.osops.placement.plugins.module_utils._snapshot.index import Landscape

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Iterable, Iterator

    from ansible_collections.osops.placement.plugins.module_utils._models.policy import Policy
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Snapshot

REMEDIATE = "remediate"
OPT_IN = "opt-in"
REPORT = "report"


@d.dataclass(frozen=True)
class Kind:
    """A kind of finding.

    meaning: what it is, in the words of the table in the README.
    by_default: `remediate`, `opt-in` (changed when the user chooses it) or `report` (never changed).
    prove: returns the ruling if a case is of this kind, else None; or
    survey: yields what is of this kind in the whole snapshot.
    needs_every_cell: whether its proof is incomplete while any cell does not answer; else only the cells of the hosts that the consumer
        touches have to (`_snapshot.gaps`).
    """

    name: str
    meaning: str
    by_default: str
    prove: Callable[[Case, Policy], Ruling | None] | None = None
    survey: Callable[[Landscape, Policy], Iterator[Finding]] | None = None
    needs_every_cell: bool = False


ORPHANS = (
    Kind("deleted_server", "Nova remembers the server and its deletion; the claim stayed", REMEDIATE, orphans.deleted_server),
    Kind("ended_migration", "the migration is over and its server needs nothing of its claim", REMEDIATE, orphans.ended_migration),
    Kind(
        "forgotten_migration",
        "a migration whose server is deleted; only its claim is left",
        REMEDIATE,
        orphans.forgotten_migration,
        needs_every_cell=True,
    ),
    Kind("evacuated_source", "the server was evacuated and still holds the host it left", REMEDIATE, orphans.evacuated_source),
    Kind("wrong_host", "the server rests on its host and holds another one as well", REMEDIATE, orphans.wrong_host),
    Kind("unhosted_server", "the server failed to boot or is shelved away: it has no host", REMEDIATE, orphans.unhosted_server),
    Kind(
        "forgotten_consumer",
        "Nova has no memory of it at all; a conclusion from absence",
        OPT_IN,
        orphans.forgotten_consumer,
        needs_every_cell=True,
    ),
)
DRIFTS = (
    Kind("swapped_claim", "an ended migration holds the claim that its server needs", REMEDIATE, drift.swapped_claim),
    Kind("moved_server", "the server rests on its host and holds only another one", OPT_IN, drift.moved_server, needs_every_cell=True),
    Kind("missing_allocation", "the server rests on its host and holds nothing", OPT_IN, drift.missing_allocation, needs_every_cell=True),
    Kind("wrong_amount", "the server holds more or less than its flavor says", OPT_IN, drift.wrong_amount, needs_every_cell=True),
    Kind("wrong_owner", "the claim counts for another project or user than the server's", OPT_IN, drift.wrong_owner),
    Kind("leaked_child", "the server holds a child provider that nothing of it explains", REPORT, drift.leaked_child),
    Kind("hostless_server", "the server has no host and no task, and still holds a claim", REPORT, drift.hostless_server),
)
CONDITIONS = (
    Kind(
        "ghost_provider",
        "a provider that was a compute node's, with no compute node behind it",
        OPT_IN,
        survey=conditions.ghost_provider,
        needs_every_cell=True,
    ),
    Kind(
        "name_conflict",
        "another provider has the name of a compute node (LP 1817833)",
        OPT_IN,
        survey=conditions.name_conflict,
        needs_every_cell=True,
    ),
    Kind("capacity_drift", "more is claimed than there is, or the inventory is not the host's", REPORT, survey=conditions.capacity_drift),
    Kind("parked_resize", "a resize that waits to be confirmed or reverted for very long", REPORT, survey=conditions.parked_resize),
    Kind("stuck_migration", "a migration under way that has not changed for very long", REPORT, survey=conditions.stuck_migration),
    Kind("stale_service", "a compute service that is down, and disabled or without a node", REPORT, survey=conditions.stale_service),
)
KINDS = (*ORPHANS, *DRIFTS, *CONDITIONS)


def judge(snapshot: Snapshot, policy: Policy) -> tuple[Finding, ...]:
    """Return a finding for each nominated consumer that is not healthy, in the order of their uuids, and then all others."""
    land = Landscape(snapshot)
    surveyed = (finding for kind in KINDS if kind.survey for finding in kind.survey(land, policy))
    return (*judge_consumers(land, policy), *surveyed)


def judge_consumers(land: Landscape, policy: Policy) -> tuple[Finding, ...]:
    """Return a finding for each nominated consumer that is not healthy, in the order of their uuids."""
    findings = (_finding(case, policy) for case in _cases(land))
    return tuple(finding for finding in findings if finding)


def _cases(land: Landscape) -> Iterable[Case]:
    dossiers = land.snapshot.dossiers
    for consumer in sorted(land.snapshot.nominated):
        dossier = dossiers.get(consumer)
        allocation = dossier.allocation.value if dossier else None
        if dossier is None or allocation is None:
            continue
        migration = land.migrations.get(consumer)
        subject = dossiers.get(migration.server, dossier) if migration else dossier
        # One who holds nothing is a case only as a live server that should hold something.
        if allocation.resources or (migration is None and subject.server.value is not None):
            yield Case(land, allocation, dossier, subject, migration)


def _finding(case: Case, policy: Policy) -> Finding | None:
    kind, ruling = _decide(case, policy)
    if ruling is None:
        return None
    dropped = frozenset() if ruling.verdict != ORPHANED else ruling.drops or frozenset(case.allocation.resources)
    return Finding(
        kind=kind,
        verdict=ruling.verdict,
        subject=case.consumer,
        reason=ruling.reason,
        allocation=case.allocation,
        server=ruling.server or case.server,
        migration=ruling.migration or case.migration,
        evidence=(case.dossier.allocation, *ruling.evidence),
        change=change_to(case.allocation, dropped) if dropped else ruling.change,
        dropped=dropped,
    )


def _decide(case: Case, policy: Policy) -> tuple[str, Ruling | None]:
    for name, protect in PROTECTIONS.items():
        if reason := protect(case, policy):
            return name, None if case.healthy else protected(reason, *case.state_evidence)
    for kind in KINDS:
        if kind.prove and (ruling := kind.prove(case, policy)):
            return kind.name, _as_far_as_it_can_be_proven(kind, ruling, case)
    return ("healthy", None) if case.healthy else unproven(case)


def _as_far_as_it_can_be_proven(kind: Kind, ruling: Ruling, case: Case) -> Ruling:
    if ruling.verdict not in (ORPHANED, DRIFTED):
        return ruling
    if why_not := unprovable(kind.name, case.land.snapshot.cloud):
        return undecided(f"{ruling.reason} But {why_not}", *ruling.evidence)
    if gap := find_gap(case, kind.needs_every_cell):
        return undecided(f"{ruling.reason} But {gap}.", *ruling.evidence)
    return ruling
