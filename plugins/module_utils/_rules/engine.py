# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What the snapshot proves. Pure: no request, no clock, no Ansible.

`_models.kinds` is the table of kinds; each has one function of its name: in `_rules.orphans` for claims that nobody needs, in `_rules.drift` for those of
live servers that are not as they should be, in `_rules.conditions` for what is not about one consumer.
`_rules.protections` says what is never changed. A consumer is judged once, over its whole holding.
"""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._models.change import build_reduction
from ansible_collections.osops.placement.plugins.module_utils._models.kinds import CONDITION_KINDS, DRIFT_KINDS, ORPHAN_KINDS, Kind
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
from ansible_collections.osops.placement.plugins.module_utils._rules.unproven import decide_unproven
from ansible_collections.osops.placement.plugins.module_utils._snapshot.capabilities import explain_unprovable
from ansible_collections.osops.placement.plugins.module_utils._snapshot.consumer import Case
from ansible_collections.osops.placement.plugins.module_utils._snapshot.gaps import find_gap
from ansible_collections.osops.placement.plugins.module_utils._snapshot.index import Landscape

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Iterator

    from ansible_collections.osops.placement.plugins.module_utils._models.policy import Policy
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Snapshot

Proof = t.Callable[[Case, "Policy"], "Ruling | None"]
Check = t.Callable[[Landscape, "Policy"], "Iterator[Finding]"]

# Each kind has one function of its name: the proof about a consumer, or the check of the whole snapshot.
PROOFS: t.Mapping[str, Proof] = {
    **{kind.name: getattr(orphans, kind.name) for kind in ORPHAN_KINDS},
    **{kind.name: getattr(drift, kind.name) for kind in DRIFT_KINDS},
}
CHECKS: t.Mapping[str, Check] = {kind.name: getattr(conditions, kind.name) for kind in CONDITION_KINDS}


def judge(snapshot: Snapshot, policy: Policy) -> tuple[Finding, ...]:
    """Return a finding for each nominated consumer that is not healthy, in the order of their uuids, and then all others."""
    land = Landscape(snapshot)
    surveyed = (finding for check in CHECKS.values() for finding in check(land, policy))
    return (*judge_consumers(land, policy), *surveyed)


def judge_consumers(land: Landscape, policy: Policy) -> tuple[Finding, ...]:
    """Return a finding for each nominated consumer that is not healthy, in the order of their uuids."""
    findings = (_build_finding(case, policy) for case in _build_views(land))
    return tuple(finding for finding in findings if finding)


def _build_views(land: Landscape) -> Iterable[Case]:
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


def _build_finding(case: Case, policy: Policy) -> Finding | None:
    kind, ruling = _decide(case, policy)
    if ruling is None:
        return None
    dropped = frozenset() if ruling.verdict != ORPHANED else ruling.freed_providers or frozenset(case.allocation.resources)
    return Finding(
        kind=kind,
        verdict=ruling.verdict,
        subject=case.consumer,
        reason=ruling.reason,
        allocation=case.allocation,
        server=ruling.server or case.server,
        migration=ruling.migration or case.migration,
        evidence=(case.dossier.allocation, *ruling.evidence),
        change=build_reduction(case.allocation, dropped) if dropped else ruling.change,
        freed_providers=dropped,
    )


def _decide(case: Case, policy: Policy) -> tuple[str, Ruling | None]:
    for name, protect in PROTECTIONS.items():
        if reason := protect(case, policy):
            return name, None if case.healthy else protected(reason, *case.state_evidence)
    for kind in (*ORPHAN_KINDS, *DRIFT_KINDS):
        if ruling := PROOFS[kind.name](case, policy):
            return kind.name, _downgrade_unproven(kind, ruling, case)
    return ("healthy", None) if case.healthy else decide_unproven(case)


def _downgrade_unproven(kind: Kind, ruling: Ruling, case: Case) -> Ruling:
    if ruling.verdict not in (ORPHANED, DRIFTED):
        return ruling
    if why_not := explain_unprovable(kind.name, case.land.snapshot.cloud):
        return undecided(f"{ruling.reason} But {why_not}", *ruling.evidence)
    if gap := find_gap(case, kind.needs_every_cell):
        return undecided(f"{ruling.reason} But {gap}.", *ruling.evidence)
    return ruling
