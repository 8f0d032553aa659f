# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""The structure of `findings.json`, which people and the tasks that follow read."""

from __future__ import annotations

import collections
import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._findings.entries import FORMAT
from ansible_collections.osops.placement.plugins.module_utils._findings.first_seen import (
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
from ansible_collections.osops.placement.plugins.module_utils._snapshot.index import SnapshotIndex
from ansible_collections.osops.placement.plugins.module_utils._snapshot.microversions import (
    list_unmet_requirements,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Iterable, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._findings.selection import (
        Selection,
    )
    from ansible_collections.osops.placement.plugins.module_utils._findings.sightings import (
        Sighting,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
        Allocation,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import (
        Answer,
        Snapshot,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.verdict import Finding


# Of evidence that is a longer listing only the number of rows is written.
_MAX_EVIDENCE_ROWS = 10


def build_document(
    index: SnapshotIndex,
    findings: Iterable[Finding],
    selection: Selection | None = None,
    history: History | None = None,
    sighting_policy: SightingPolicy | None = None,
) -> dict[str, t.Any]:
    """Return the contents of `findings.json`.

    findings: what the rules found in the snapshot of `index`.
    selection: marks the findings that the user selects; without it all are selected.
    history: what the earlier runs remembered.
    sighting_policy: how often a finding must have been seen before it may be changed.
    """
    snapshot = index.snapshot
    history = history or History()
    by_verdict = _group_by_verdict(findings, snapshot.scope)
    confirmed = by_verdict[ORPHANED] + by_verdict[DRIFTED]
    sightings = count_sightings(
        confirmed, history.sightings, snapshot, sound=not index.failed_checks
    )
    entries = _build_dated_entries(confirmed, index, history)
    for entry in entries:
        _add_sighting(entry, sightings[entry["id"]], sighting_policy, snapshot.finished_at)
    new_kinds = [entry["kind"] for entry in entries if entry["new"]]
    _mark_selected(entries, selection)
    return {
        "format": FORMAT,
        "cloud": d.asdict(snapshot.cloud),
        "scope": d.asdict(snapshot.scope),
        "started_at": snapshot.started_at,
        "finished_at": snapshot.finished_at,
        "summary": {**_build_summary(snapshot, index, by_verdict), "new": _count_kinds(new_kinds)},
        "findings": entries,
        "protected": _build_dated_entries(by_verdict[PROTECTED], index, history),
        "undecided": _build_dated_entries(by_verdict[UNDECIDED], index, history),
        **_build_history(by_verdict, index, history, sightings),
        "capacity": describe_providers(confirmed, index),
        "held": _list_consumers_with_allocations(snapshot),
    }


def _group_by_verdict(findings: Iterable[Finding], scope: Scope) -> dict[str, list[Finding]]:
    """Return the findings of the kinds that were asked for, by verdict."""
    by_verdict: dict[str, list[Finding]] = {
        ORPHANED: [],
        DRIFTED: [],
        PROTECTED: [],
        UNDECIDED: [],
    }
    for finding in findings:
        # The kind of what is protected or undecided is the reason for it, and not one to ask for.
        unlimited = finding.verdict in (PROTECTED, UNDECIDED)
        if unlimited or scope.includes_any(finding.kind):
            by_verdict[finding.verdict].append(finding)
    return by_verdict


def _build_history(
    by_verdict: Mapping[str, list[Finding]],
    index: SnapshotIndex,
    history: History,
    sightings: Mapping[str, Sighting],
) -> dict[str, t.Any]:
    """Return what the next run has to remember, apart from the entries themselves."""
    snapshot = index.snapshot
    complete = not index.failed_absence_checks
    reported_ids: set[str] = set()
    for findings in by_verdict.values():
        reported_ids.update(finding.id for finding in findings)
    retained = retain_sightings(history.sightings, reported_ids, snapshot, complete)
    all_sightings = {}
    for identity, sighting in {**retained, **sightings}.items():
        all_sightings[identity] = sighting.as_dict()
    whole = snapshot.scope == Scope() and complete
    return {
        "known": retain_first_seen(history.first_seen, reported_ids, whole),
        "sightings": all_sightings,
    }


def _add_sighting(
    entry: dict[str, t.Any], sighting: Sighting, policy: SightingPolicy | None, at: str
) -> None:
    policy = policy or SightingPolicy()
    entry["sightings"] = sighting.count
    entry["waiting"] = policy.explain_wait(sighting, at)


def _mark_selected(entries: list[dict[str, t.Any]], selection: Selection | None) -> None:
    if selection is None:
        for entry in entries:
            entry["selected"] = True
        return
    selected_ids = selection.select_ids(entries)
    for entry in entries:
        entry["selected"] = entry["id"] in selected_ids


def _list_consumers_with_allocations(snapshot: Snapshot) -> list[str]:
    """Return which of the consumers that were named have allocations.

    Of the others nothing can be changed.
    """
    consumers = set(snapshot.allocations)
    for evidence in snapshot.evidence.values():
        allocation = evidence.allocation.value
        if allocation and allocation.resources:
            consumers.add(allocation.consumer)
    return [consumer for consumer in snapshot.scope.consumers if consumer in consumers]


def _build_summary(
    snapshot: Snapshot, index: SnapshotIndex, by_verdict: Mapping[str, list[Finding]]
) -> dict[str, t.Any]:
    confirmed = by_verdict[ORPHANED] + by_verdict[DRIFTED]
    return {
        "verdicts": {verdict: len(findings) for verdict, findings in by_verdict.items()},
        "kinds": _count_kinds(finding.kind for finding in confirmed),
        "stranded": summarize_stranded(confirmed, index),
        "capacity": summarize_capacity(index),
        "coverage": _build_coverage(snapshot, index),
    }


def _count_kinds(kinds: Iterable[str]) -> dict[str, int]:
    return dict(sorted(collections.Counter(kinds).items()))


def _build_coverage(snapshot: Snapshot, index: SnapshotIndex) -> dict[str, t.Any]:
    """Return how much was read, and whether that is enough to change anything."""
    providers = list(snapshot.providers.values())
    nodes = list(index.nodes.values())
    if snapshot.scope.shard is not None:
        # Every shard lists the whole cloud, but answers only for its own part.
        providers = [provider for provider in providers if index.covers(provider.root)]
        nodes = [node for node in nodes if index.covers(node.uuid)]
    return {
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
    }


def _build_dated_entries(
    findings: Iterable[Finding], index: SnapshotIndex, history: History
) -> list[dict[str, t.Any]]:
    entries = []
    for finding in findings:
        entries.append(_build_dated_entry(finding, index, history))
    return entries


def _build_dated_entry(
    finding: Finding, index: SnapshotIndex, history: History
) -> dict[str, t.Any]:
    """Return the entry of a finding, with when it was first seen."""
    first_seen = history.first_seen.get(finding.id, index.snapshot.finished_at)
    return {
        **_build_entry(finding, index),
        "first_seen": first_seen,
        "new": finding.id not in history.first_seen,
    }


def _build_entry(finding: Finding, index: SnapshotIndex) -> dict[str, t.Any]:
    change = None
    if finding.change:
        change = finding.change.as_dict()
    return {
        "id": finding.id,
        "kind": finding.kind,
        "verdict": finding.verdict,
        "consumer": finding.consumer,
        "reason": finding.reason,
        "server": d.asdict(finding.server) if finding.server else None,
        "migration": d.asdict(finding.migration) if finding.migration else None,
        "service": d.asdict(finding.service) if finding.service else None,
        **_describe_allocation(finding.allocation),
        "providers": _describe_providers(finding, index),
        "evidence": [describe_answer(answer) for answer in finding.evidence],
        "change": change,
    }


def _describe_allocation(allocation: Allocation | None) -> dict[str, t.Any]:
    if allocation is None:
        return dict.fromkeys(("project", "user", "type", "generation", "age_seconds"))
    return {
        "project": allocation.project,
        "user": allocation.user,
        "type": allocation.type,
        "generation": allocation.generation,
        "age_seconds": allocation.age_seconds,
    }


def _describe_providers(finding: Finding, index: SnapshotIndex) -> list[dict[str, t.Any]]:
    """Return the providers that a finding is about, each with what the consumer has there."""
    resources: dict[str, Mapping[str, int]] = {}
    for uuid in finding.providers:
        resources[uuid] = {}
    if isinstance(finding.change, Change):
        # Also the providers on which the consumer has nothing yet.
        for uuid in finding.change.after["allocations"]:
            resources[uuid] = {}
    if finding.allocation:
        resources.update(finding.allocation.resources)
    described = []
    for uuid, amounts in sorted(resources.items()):
        described.append(_describe_provider(uuid, amounts, finding.freed_providers, index))
    return described


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
    """Return one request and its answer, as the evidence of a finding has them."""
    return {
        "request": answer.request,
        "microversion": answer.microversion,
        "status": answer.status,
        "at": answer.at,
        "facts": _extract_facts(answer.value),
    }


def _extract_facts(value: t.Any) -> t.Any:
    if isinstance(value, tuple):
        if len(value) > _MAX_EVIDENCE_ROWS:
            return {"rows": len(value)}
        return [_extract_facts(row) for row in value]
    if isinstance(value, dict):
        return {key: _extract_facts(part) for key, part in value.items()}
    if d.is_dataclass(value) and not isinstance(value, type):
        return d.asdict(value)
    return value
