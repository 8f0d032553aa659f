# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""The structure of `findings.json`: everything that a detection found, for people and for the tasks that follow."""

from __future__ import annotations

import collections
import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._findings.entries import FORMAT
from ansible_collections.osops.placement.plugins.module_utils._findings.history import (
    History,
    retain_first_seen,
)
from ansible_collections.osops.placement.plugins.module_utils._findings.sightings import (
    SightingPolicy,
    count_sightings,
    retain_sightings,
)
from ansible_collections.osops.placement.plugins.module_utils._findings.stranded import (
    describe_providers,
    summarize_capacity,
    summarize_stranded,
)
from ansible_collections.osops.placement.plugins.module_utils._models.change import Change
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Scope
from ansible_collections.osops.placement.plugins.module_utils._models.verdict import (
    DRIFTED,
    ORPHANED,
    PROTECTED,
    UNDECIDED,
)
from ansible_collections.osops.placement.plugins.module_utils._rules.engine import judge
from ansible_collections.osops.placement.plugins.module_utils._snapshot.capabilities import (
    list_unmet_requirements,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.index import SnapshotIndex

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._findings.selection import (
        Selection,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.policy import Policy
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import (
        Answer,
        Snapshot,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.verdict import Finding


# Evidence that is a whole listing is told by its length.
_MAX_EVIDENCE_ROWS = 10


def build_findings(
    snapshot: Snapshot,
    policy: Policy,
    selection: Selection | None = None,
    history: History | None = None,
    sighting_policy: SightingPolicy | None = None,
) -> dict[str, t.Any]:
    """Judge `snapshot` and return the contents of `findings.json`, in which the user's `selection` is marked (all without one).

    history: what the runs before knew. patience: how often a finding must have been seen before it may be changed.
    """
    index, history, sighting_policy = (
        SnapshotIndex(snapshot),
        history or History(),
        sighting_policy or SightingPolicy(),
    )
    known = history.first_seen
    by_verdict: dict[str, list[Finding]] = {
        verdict: [] for verdict in (ORPHANED, DRIFTED, PROTECTED, UNDECIDED)
    }
    for finding in judge(snapshot, policy):
        if finding.verdict in (PROTECTED, UNDECIDED) or snapshot.scope.includes_any(finding.kind):
            by_verdict[finding.verdict].append(finding)
    found = by_verdict[ORPHANED] + by_verdict[DRIFTED]
    told = [finding.id for findings in by_verdict.values() for finding in findings]

    def entry(finding: Finding) -> dict[str, t.Any]:
        seen = {
            "first_seen": known.get(finding.id, snapshot.finished_at),
            "new": finding.id not in known,
        }
        return {**_build_entry(finding, index), **seen}

    sound, whole = not index.failed_checks, not index.failed_absence_checks
    sightings = count_sightings(found, history.sightings, snapshot, sound)

    def with_sightings(finding: Finding) -> dict[str, t.Any]:
        seen = sightings[finding.id]
        return {
            **entry(finding),
            "sightings": seen.count,
            "waiting": sighting_policy.explain_wait(seen, snapshot.finished_at),
        }

    entries = [with_sightings(finding) for finding in found]
    selected = (
        selection.select_ids(entries) if selection else {told_of["id"] for told_of in entries}
    )
    return {
        "format": FORMAT,
        "cloud": d.asdict(snapshot.cloud),
        "scope": d.asdict(snapshot.scope),
        "started_at": snapshot.started_at,
        "finished_at": snapshot.finished_at,
        "summary": {
            **_build_summary(snapshot, index, by_verdict),
            "new": dict(
                sorted(
                    collections.Counter(
                        told_of["kind"] for told_of in entries if told_of["new"]
                    ).items()
                )
            ),
        },
        "findings": [{**told_of, "selected": told_of["id"] in selected} for told_of in entries],
        "protected": [entry(finding) for finding in by_verdict[PROTECTED]],
        "undecided": [entry(finding) for finding in by_verdict[UNDECIDED]],
        "known": retain_first_seen(known, set(told), whole=snapshot.scope == Scope() and whole),
        "sightings": {
            identity: seen.as_dict()
            for identity, seen in {
                **retain_sightings(history.sightings, set(told), snapshot, whole),
                **sightings,
            }.items()
        },
        "capacity": describe_providers(found, index),
        "held": _list_consumers_with_allocations(snapshot),
    }


def _list_consumers_with_allocations(snapshot: Snapshot) -> list[str]:
    """Return which of the consumers that were named hold anything; of the others nothing can be changed."""
    answers = (evidence.allocation.value for evidence in snapshot.evidence.values())
    allocations = {
        *snapshot.allocations,
        *(allocation.consumer for allocation in answers if allocation and allocation.resources),
    }
    return [consumer for consumer in snapshot.scope.consumers if consumer in allocations]


def _build_summary(
    snapshot: Snapshot, index: SnapshotIndex, by_verdict: Mapping[str, list[Finding]]
) -> dict[str, t.Any]:
    found = by_verdict[ORPHANED] + by_verdict[DRIFTED]
    sharded = snapshot.scope.shard is not None
    providers = [
        uuid
        for uuid, provider in snapshot.providers.items()
        if not sharded or index.covers(provider.root)
    ]
    nodes = [node for node in index.nodes.values() if not sharded or index.covers(node.uuid)]
    return {
        "verdicts": {verdict: len(findings) for verdict, findings in by_verdict.items()},
        "kinds": dict(sorted(collections.Counter(finding.kind for finding in found).items())),
        "stranded": summarize_stranded(found, index),
        "capacity": summarize_capacity(index),
        "coverage": {
            "complete": not index.failed_absence_checks,
            "partial": bool(index.unjudged_hosts),
            "failed_checks": list(index.failed_checks),
            "not_provable": list(list_unmet_requirements(snapshot.cloud)),
            "silent_hosts": len(index.unjudged_hosts),
            "unjudged_hosts": sorted(index.unjudged_hosts),
            "retried": snapshot.retried,
            "providers": len(providers),
            "consumers": len(snapshot.allocations),
            "servers": sum(node.running_vms for node in nodes),
            "hypervisors": len(nodes),
            "looked_at_closely": len(snapshot.candidates),
            "left_out": snapshot.left_out,
        },
    }


def _build_entry(finding: Finding, index: SnapshotIndex) -> dict[str, t.Any]:
    allocation = finding.allocation
    given = finding.change.after["allocations"] if isinstance(finding.change, Change) else ()
    told_of = (*given, *finding.providers)
    held = {
        **{provider: {} for provider in told_of},
        **(allocation.resources if allocation else {}),
    }
    return {
        "id": finding.id,
        "kind": finding.kind,
        "verdict": finding.verdict,
        "consumer": finding.consumer,
        "reason": finding.reason,
        "server": d.asdict(finding.server) if finding.server else None,
        "migration": d.asdict(finding.migration) if finding.migration else None,
        "service": d.asdict(finding.service) if finding.service else None,
        "project": allocation.project if allocation else None,
        "user": allocation.user if allocation else None,
        "type": allocation.type if allocation else None,
        "generation": allocation.generation if allocation else None,
        "age_seconds": allocation.age_seconds if allocation else None,
        "providers": [
            _describe_provider(uuid, share, finding.freed_providers, index)
            for uuid, share in sorted(held.items())
        ],
        "evidence": [describe_answer(answer) for answer in finding.evidence],
        "change": finding.change.as_dict() if finding.change else None,
    }


def _describe_provider(
    uuid: str, amounts: Mapping[str, int], dropped: Collection[str], index: SnapshotIndex
) -> dict[str, t.Any]:
    root = index.get_root(uuid)
    return {
        "uuid": uuid,
        "name": index.get_name(uuid),
        "root": root,
        "root_name": index.get_name(root or uuid),
        "resources": dict(amounts),
        "dropped": uuid in dropped,
    }


def describe_answer(answer: Answer[t.Any]) -> dict[str, t.Any]:
    """Return one request and what it answered as a finding tells of it."""
    told = {field: getattr(answer, field) for field in ("request", "microversion", "status", "at")}
    return {**told, "facts": _extract_facts(answer.value)}


def _extract_facts(value: t.Any) -> t.Any:
    if isinstance(value, tuple):
        return (
            [_extract_facts(row) for row in value]
            if len(value) <= _MAX_EVIDENCE_ROWS
            else {"rows": len(value)}
        )
    if isinstance(value, dict):
        return {key: _extract_facts(part) for key, part in value.items()}
    return d.asdict(value) if d.is_dataclass(value) and not isinstance(value, type) else value
