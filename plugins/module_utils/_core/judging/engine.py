# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a snapshot proves. Pure: no request, no clock, no Ansible.

Each kind has a file in `kinds`, and `kinds.registry` has their order. `facts.protections` says what
is never changed. A consumer is judged once, over all its allocations.
"""

from __future__ import annotations

import itertools
import typing as t

from ..._common.errors import Reason
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
from ..models.nova import Server
from ..models.snapshot import Answer, Evidence
from ..options.policy import Policy


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
    return _decide_unproven(view)


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


def _decide_unproven(view: ConsumerView) -> tuple[str, Decision]:
    """Return the name and the decision for a consumer to which no kind applies.

    It is not healthy, so it is protected, or undecided with the reason.
    """
    if view.server is not None:
        return "unproven", undecided(_explain_server_state(view, view.server), *view.state_evidence)
    foreign = _list_foreign_providers(view)
    # While a cell is down, its compute nodes are missing from the listing too.
    if foreign and view.index.unjudged_hosts:
        reason = Reason(
            "may_belong_to_down_cell",
            f"Nova does not list all of its hosts, and {', '.join(foreign)} may belong to another.",
        )
        return "unproven", undecided(reason, *view.state_evidence)
    if foreign and view.subject.server.status == 404:
        reason = Reason(
            "of_other_nova",
            "Nova has no server with this UUID, and no compute node of this Nova is behind "
            f"{', '.join(foreign)}: the consumer does not belong to this Nova.",
        )
        return "foreign_provider", protected(reason, *view.state_evidence)
    return "unproven", undecided(_explain_missing_server(view), *view.state_evidence)


def _list_foreign_providers(view: ConsumerView) -> list[str]:
    """Return the names of its providers that neither belong nor belonged to a compute node."""
    index = view.index
    foreign = (
        providers
        for root, providers in view.trees.items()
        if root not in index.nodes and not (root and index.is_gone(root))
    )
    return sorted(map(index.get_name, itertools.chain.from_iterable(foreign)))


def _explain_server_state(view: ConsumerView, server: Server) -> Reason:
    """Return why a live server that is not healthy could not be judged."""
    if view.unlisted_move:
        return view.unlisted_move.reword(
            f"Server {server.uuid} is on {server.host}, but {view.unlisted_move}."
        )
    if not view.settled:
        where = f"on {server.host}" if server.host else "without a host"
        return Reason(
            "server_unsettled",
            f"Server {server.uuid} is {server.status} {where}, and it is certain only for a "
            "settled server which allocation it needs.",
        )
    if view.unknown_move is not None:
        return Reason(
            "unknown_move_type",
            f"Server {server.uuid} has migration {view.unknown_move.uuid} of the type "
            f"{view.unknown_move.type}, which this version does not know, so it is not certain "
            "which allocation it needs.",
        )
    if view.own_tree is None:
        return Reason(
            "compute_node_ambiguous",
            f"Server {server.uuid} is on {server.host} ({server.node}), "
            "but Nova does not list exactly one compute node of that name.",
        )
    return _explain_server_allocation(view, server)


def _explain_server_allocation(view: ConsumerView, server: Server) -> Reason:
    """Return where a settled server has allocations besides its host, or instead of it."""
    if view.own_tree not in view.trees:
        providers = ", ".join(sorted(map(view.index.get_name, view.allocation.resources)))
        return Reason(
            "settled_elsewhere",
            f"Server {server.uuid} is settled on {server.node} but has no allocation there; it has "
            f"allocations on {providers or 'no provider'}.",
        )
    other_roots = (*view.other_trees, *view.doubtful_trees)
    others = ", ".join(sorted(map(view.index.get_name, other_roots)))
    # Its guest may still be on the host where its newest migration ended.
    if not view.arrived:
        return Reason(
            "newest_move_unfinished",
            f"Nova has server {server.uuid} on {server.host}, where its newest migration did not "
            "end and nothing shows that the server was unshelved since; the server also has "
            f"allocations on {others}.",
        )
    return Reason(
        "own_allocation_incomplete",
        f"Server {server.uuid} is settled on {server.node} with an incomplete allocation there, "
        f"and also has allocations on {others}.",
    )


def _explain_missing_server(view: ConsumerView) -> Reason:
    """Return why a consumer without a live server could not be judged."""
    subject = view.subject
    if subject.server.status != 404:
        return Reason(
            "server_lookup_failed",
            f"Nova answered {subject.server.status} when asked for {subject.uuid}, "
            "and only 200 or 404 would prove anything.",
        )
    if view.contradiction:
        return view.contradiction.reword(
            f"Nova answers 404 for {subject.uuid}, but {view.contradiction}."
        )
    if view.server_migrations:
        return Reason(
            "migrations_left",
            f"Nova answers 404 for server {subject.uuid}, but still lists migrations of it.",
        )
    if status := _find_failed_status(subject):
        return Reason(
            "other_lookup_failed",
            f"Nova answers 404 for {subject.uuid}, but {status} to another request about it: "
            "nothing proves that it was deleted.",
        )
    return Reason(
        "deletion_not_proven",
        f"Nova answers 404 for {subject.uuid}, but no other answer proves that it was deleted.",
    )


def _find_failed_status(subject: Evidence) -> int:
    """Return the status of the first request that Nova could not answer; 0 if there is none."""
    answers: list[Answer[t.Any]] = [subject.deleted_listing, subject.actions, subject.marker]
    answers += [*subject.markers, *subject.rows, *subject.host_migrations]
    for answer in answers:
        # 0 was not asked, and 400 and 404 are answers of Nova.
        if answer.status not in (0, 200, 400, 404):
            return answer.status
    return 0
