# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at
# any time.
# Do not use this from other collections or standalone plugins/modules!

"""What the snapshot proves. Pure: no request, no clock, no Ansible.

`_models.kinds` is the table of kinds; each has one function of its name: in `_rules.orphans` for
claims that nobody needs, in `_rules.drift` for those of live servers that are not as they should
be, in `_rules.conditions` for what is not about one consumer. `_rules.protections` says what is
never changed. A consumer is judged once, over its whole holding.
"""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._models.change import build_reduction
from ansible_collections.osops.placement.plugins.module_utils._models.kinds import (
    CONDITION_KINDS,
    DRIFT_KINDS,
    ORPHAN_KINDS,
    Kind,
)
from ansible_collections.osops.placement.plugins.module_utils._models.verdict import (
    DRIFTED,
    ORPHANED,
    Decision,
    Finding,
    protected,
    undecided,
)
from ansible_collections.osops.placement.plugins.module_utils._rules import (
    conditions,
    drift,
    orphans,
)
from ansible_collections.osops.placement.plugins.module_utils._rules.protections import PROTECTIONS
from ansible_collections.osops.placement.plugins.module_utils._rules.unproven import decide_unproven
from ansible_collections.osops.placement.plugins.module_utils._snapshot.capabilities import (
    explain_unprovable,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.consumer import ConsumerView
from ansible_collections.osops.placement.plugins.module_utils._snapshot.gaps import find_gap
from ansible_collections.osops.placement.plugins.module_utils._snapshot.index import SnapshotIndex

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Iterator

    from ansible_collections.osops.placement.plugins.module_utils._models.policy import Policy
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Snapshot

Proof = t.Callable[[ConsumerView, "Policy"], "Decision | None"]
Check = t.Callable[[SnapshotIndex, "Policy"], "Iterator[Finding]"]

# Each kind has one function of its name: the proof about a consumer, or the check of the whole
# snapshot.
PROOFS: t.Mapping[str, Proof] = {
    **{kind.name: getattr(orphans, kind.name) for kind in ORPHAN_KINDS},
    **{kind.name: getattr(drift, kind.name) for kind in DRIFT_KINDS},
}
CHECKS: t.Mapping[str, Check] = {
    kind.name: getattr(conditions, kind.name) for kind in CONDITION_KINDS
}


def judge(snapshot: Snapshot, policy: Policy) -> tuple[Finding, ...]:
    """Return a finding for each nominated consumer that is not healthy, in the order of their
    uuids, and then all others.
    """
    index = SnapshotIndex(snapshot)
    surveyed = (finding for check in CHECKS.values() for finding in check(index, policy))
    return (*judge_consumers(index, policy), *surveyed)


def judge_consumers(index: SnapshotIndex, policy: Policy) -> tuple[Finding, ...]:
    """Return a finding for each nominated consumer that is not healthy, in the order of their
    uuids.
    """
    findings = (_build_finding(view, policy) for view in _build_views(index))
    return tuple(finding for finding in findings if finding)


def _build_views(index: SnapshotIndex) -> Iterable[ConsumerView]:
    evidence_by_uuid = index.snapshot.evidence
    for consumer in sorted(index.snapshot.candidates):
        evidence = evidence_by_uuid.get(consumer)
        allocation = evidence.allocation.value if evidence else None
        if evidence is None or allocation is None:
            continue
        migration = index.migrations.get(consumer)
        subject = evidence_by_uuid.get(migration.server, evidence) if migration else evidence
        # One who holds nothing is a case only as a live server that should hold something.
        if allocation.resources or (migration is None and subject.server.value is not None):
            yield ConsumerView(index, allocation, evidence, subject, migration)


def _build_finding(view: ConsumerView, policy: Policy) -> Finding | None:
    kind, decision = _decide(view, policy)
    if decision is None:
        return None
    dropped = (
        frozenset()
        if decision.verdict != ORPHANED
        else decision.freed_providers or frozenset(view.allocation.resources)
    )
    return Finding(
        kind=kind,
        verdict=decision.verdict,
        subject=view.consumer,
        reason=decision.reason,
        allocation=view.allocation,
        server=decision.server or view.server,
        migration=decision.migration or view.migration,
        evidence=(view.evidence.allocation, *decision.evidence),
        change=build_reduction(view.allocation, dropped) if dropped else decision.change,
        freed_providers=dropped,
    )


def _decide(view: ConsumerView, policy: Policy) -> tuple[str, Decision | None]:
    for name, protect in PROTECTIONS.items():
        if reason := protect(view, policy):
            return name, None if view.healthy else protected(reason, *view.state_evidence)
    for kind in (*ORPHAN_KINDS, *DRIFT_KINDS):
        if decision := PROOFS[kind.name](view, policy):
            return kind.name, _downgrade_unproven(kind, decision, view)
    return ("healthy", None) if view.healthy else decide_unproven(view)


def _downgrade_unproven(kind: Kind, decision: Decision, view: ConsumerView) -> Decision:
    if decision.verdict not in (ORPHANED, DRIFTED):
        return decision
    if why_not := explain_unprovable(kind.name, view.index.snapshot.cloud):
        return undecided(f"{decision.reason} But {why_not}", *decision.evidence)
    if gap := find_gap(view, kind.needs_every_cell):
        return undecided(f"{decision.reason} But {gap}.", *decision.evidence)
    return decision
