# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a snapshot proves. Pure: no request, no clock, no Ansible.

Each kind has a file in `kinds`, and `kinds.registry` has their order. `facts.protections` says what
is never changed. A consumer is judged once, over all its allocations.
"""

from __future__ import annotations

from ..facts.consumer import ConsumerView, build_views
from ..facts.gaps import explain_loss, find_gap
from ..facts.index import SnapshotIndex
from ..facts.protections import PROTECTIONS
from ..facts.soundness import explain_unprovable
from ..kinds.registry import CHECKS, PROOFS
from ..models.change import build_reduction
from ..models.finding import DRIFTED, ORPHANED, Decision, Finding, protected, undecided
from ..models.kind import Kind
from ..models.kinds import DRIFT_KINDS, ORPHAN_KINDS
from ..options.policy import Policy
from .unproven import decide_unproven


def judge(index: SnapshotIndex, policy: Policy) -> tuple[Finding, ...]:
    """Return a finding for each candidate that is not healthy, and then those of all checks.

    The findings about consumers are in the order of their uuids, the others in that of `CHECKS`.
    """
    findings = list(judge_consumers(index, policy))
    for check in CHECKS.values():
        findings.extend(check(index, policy))
    return tuple(findings)


def judge_consumers(index: SnapshotIndex, policy: Policy) -> tuple[Finding, ...]:
    """Return a finding for each candidate that is not healthy, in the order of their uuids."""
    findings = [_build_finding(view, policy) for view in build_views(index)]
    return tuple(filter(None, findings))


def _build_finding(view: ConsumerView, policy: Policy) -> Finding | None:
    """Return the finding about a consumer, None when it is healthy."""
    kind, decision = _decide(view, policy)
    if decision is None:
        return None
    freed: frozenset[str] = frozenset()
    change = decision.change
    # An orphan's decision that names no providers frees all of them.
    if decision.verdict == ORPHANED:
        freed = decision.freed_providers or frozenset(view.allocation.resources)
    if freed:
        change = build_reduction(view.allocation, freed)
    return Finding(
        kind=kind,
        verdict=decision.verdict,
        subject=view.consumer,
        reason=decision.reason,
        allocation=view.allocation,
        server=decision.server or view.server,
        migration=decision.migration or view.migration,
        evidence=(view.evidence.allocation, *decision.evidence),
        change=change,
        freed_providers=freed,
    )


def _decide(view: ConsumerView, policy: Policy) -> tuple[str, Decision | None]:
    """Return the name of the first protection or kind that applies, and its decision."""
    for name, protect in PROTECTIONS.items():
        reason = protect(view, policy)
        if not reason:
            continue
        # Nothing of a healthy server would be changed, so its protection is not a finding.
        if view.healthy:
            return name, None
        return name, protected(reason, *view.state_evidence)
    for kind in (*ORPHAN_KINDS, *DRIFT_KINDS):
        if decision := PROOFS[kind.name](view, policy):
            return kind.name, _downgrade_unproven(kind, decision, view)
    if view.healthy:
        return "healthy", None
    return decide_unproven(view)


def _downgrade_unproven(kind: Kind, decision: Decision, view: ConsumerView) -> Decision:
    """Return the decision, undecided where this cloud's answers cannot prove it."""
    if decision.verdict not in (ORPHANED, DRIFTED):
        return decision
    # An older service leaves fields out of its answers that some proofs depend on.
    if why_not := explain_unprovable(kind.name, view.index.snapshot.cloud):
        return undecided(decision.reason.but(why_not), *decision.evidence)
    # While a cell is down, a proof holds only if every answer that it depends on is of other cells.
    if gap := find_gap(view, kind.cells):
        return undecided(decision.reason.but(gap), *decision.evidence)
    snapshot = view.index.snapshot
    if loss := explain_loss(view.consumer, snapshot.allocations, snapshot, view.index):
        return undecided(decision.reason.but(loss), *decision.evidence)
    return decision
