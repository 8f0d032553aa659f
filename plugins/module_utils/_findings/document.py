# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""The structure of `findings.json`: everything that a detection found, for people and for the tasks that follow."""

from __future__ import annotations

import collections
import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._findings.entries import FORMAT
from ansible_collections.osops.placement.plugins.module_utils._findings.history import Memory, remembered
from ansible_collections.osops.placement.plugins.module_utils._findings.sightings import Patience, counted, kept
from ansible_collections.osops.placement.plugins.module_utils._findings.stranded import capacity, providers_told_of, stranded
from ansible_collections.osops.placement.plugins.module_utils._models.change import Change
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Scope
from ansible_collections.osops.placement.plugins.module_utils._models.verdict import DRIFTED, ORPHANED, PROTECTED, UNDECIDED
from ansible_collections.osops.placement.plugins.module_utils._rules.engine import judge
from ansible_collections.osops.placement.plugins.module_utils._snapshot.capabilities import lacking
from ansible_collections.osops.placement.plugins.module_utils._snapshot.index import Landscape

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._findings.selection import Selection
    from ansible_collections.osops.placement.plugins.module_utils._models.policy import Policy
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Answer, Snapshot
    from ansible_collections.osops.placement.plugins.module_utils._models.verdict import Finding


# Evidence that is a whole listing is told by its length.
_ROWS_SHOWN = 10


def report(
    snapshot: Snapshot,
    policy: Policy,
    selection: Selection | None = None,
    memory: Memory | None = None,
    patience: Patience | None = None,
) -> dict[str, t.Any]:
    """Judge `snapshot` and return the contents of `findings.json`, in which the user's `selection` is marked (all without one).

    memory: what the runs before knew. patience: how often a finding must have been seen before it may be changed.
    """
    land, memory, patience = Landscape(snapshot), memory or Memory(), patience or Patience()
    known = memory.known
    by_verdict: dict[str, list[Finding]] = {verdict: [] for verdict in (ORPHANED, DRIFTED, PROTECTED, UNDECIDED)}
    for finding in judge(snapshot, policy):
        if finding.verdict in (PROTECTED, UNDECIDED) or snapshot.scope.wants(finding.kind):
            by_verdict[finding.verdict].append(finding)
    found = by_verdict[ORPHANED] + by_verdict[DRIFTED]
    told = [finding.id for findings in by_verdict.values() for finding in findings]

    def entry(finding: Finding) -> dict[str, t.Any]:
        seen = {"first_seen": known.get(finding.id, snapshot.finished_at), "new": finding.id not in known}
        return {**_entry(finding, land), **seen}

    sound, whole = not land.closed_gates, not land.closed_for_absence
    sightings = counted(found, memory.sightings, snapshot, sound)

    def with_sightings(finding: Finding) -> dict[str, t.Any]:
        seen = sightings[finding.id]
        return {**entry(finding), "sightings": seen.count, "waiting": patience.why_waiting(seen, snapshot.finished_at)}

    entries = [with_sightings(finding) for finding in found]
    selected = selection.ids(entries) if selection else {told_of["id"] for told_of in entries}
    return {
        "format": FORMAT,
        "cloud": d.asdict(snapshot.cloud),
        "scope": d.asdict(snapshot.scope),
        "started_at": snapshot.started_at,
        "finished_at": snapshot.finished_at,
        "summary": {
            **_summary(snapshot, land, by_verdict),
            "new": dict(sorted(collections.Counter(told_of["kind"] for told_of in entries if told_of["new"]).items())),
        },
        "findings": [{**told_of, "selected": told_of["id"] in selected} for told_of in entries],
        "protected": [entry(finding) for finding in by_verdict[PROTECTED]],
        "undecided": [entry(finding) for finding in by_verdict[UNDECIDED]],
        "known": remembered(known, set(told), whole=snapshot.scope == Scope() and whole),
        "sightings": {
            identity: seen.as_dict() for identity, seen in {**kept(memory.sightings, set(told), snapshot, whole), **sightings}.items()
        },
        "capacity": providers_told_of(found, land),
        "held": _held(snapshot),
    }


def _held(snapshot: Snapshot) -> list[str]:
    """Return which of the consumers that were named hold anything; of the others nothing can be changed."""
    answers = (dossier.allocation.value for dossier in snapshot.dossiers.values())
    holding = {*snapshot.holdings, *(allocation.consumer for allocation in answers if allocation and allocation.resources)}
    return [consumer for consumer in snapshot.scope.consumers if consumer in holding]


def _summary(snapshot: Snapshot, land: Landscape, by_verdict: Mapping[str, list[Finding]]) -> dict[str, t.Any]:
    found = by_verdict[ORPHANED] + by_verdict[DRIFTED]
    sharded = snapshot.scope.shard is not None
    providers = [uuid for uuid, provider in snapshot.providers.items() if not sharded or land.covers(provider.root)]
    nodes = [node for node in land.nodes.values() if not sharded or land.covers(node.uuid)]
    return {
        "verdicts": {verdict: len(findings) for verdict, findings in by_verdict.items()},
        "kinds": dict(sorted(collections.Counter(finding.kind for finding in found).items())),
        "stranded": stranded(found, land),
        "capacity": capacity(land),
        "coverage": {
            "complete": not land.closed_for_absence,
            "partial": bool(land.unjudged_hosts),
            "closed_gates": list(land.closed_gates),
            "not_provable": list(lacking(snapshot.cloud)),
            "silent_hosts": len(land.unjudged_hosts),
            "unjudged_hosts": sorted(land.unjudged_hosts),
            "retried": snapshot.retried,
            "providers": len(providers),
            "consumers": len(snapshot.holdings),
            "servers": sum(node.running_vms for node in nodes),
            "hypervisors": len(nodes),
            "looked_at_closely": len(snapshot.nominated),
            "left_out": snapshot.left_out,
        },
    }


def _entry(finding: Finding, land: Landscape) -> dict[str, t.Any]:
    allocation = finding.allocation
    given = finding.change.after["allocations"] if isinstance(finding.change, Change) else ()
    told_of = (*given, *finding.providers)
    held = {**{provider: {} for provider in told_of}, **(allocation.resources if allocation else {})}
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
        "providers": [_provider(uuid, share, finding.dropped, land) for uuid, share in sorted(held.items())],
        "evidence": [evidence_told(answer) for answer in finding.evidence],
        "change": finding.change.as_dict() if finding.change else None,
    }


def _provider(uuid: str, share: Mapping[str, int], dropped: Collection[str], land: Landscape) -> dict[str, t.Any]:
    root = land.root(uuid)
    return {
        "uuid": uuid,
        "name": land.name(uuid),
        "root": root,
        "root_name": land.name(root or uuid),
        "resources": dict(share),
        "dropped": uuid in dropped,
    }


def evidence_told(answer: Answer[t.Any]) -> dict[str, t.Any]:
    """Return one request and what it answered as a finding tells of it."""
    told = {field: getattr(answer, field) for field in ("request", "microversion", "status", "at")}
    return {**told, "facts": _facts(answer.value)}


def _facts(value: t.Any) -> t.Any:
    if isinstance(value, tuple):
        return [_facts(row) for row in value] if len(value) <= _ROWS_SHOWN else {"rows": len(value)}
    if isinstance(value, dict):
        return {key: _facts(part) for key, part in value.items()}
    return d.asdict(value) if d.is_dataclass(value) and not isinstance(value, type) else value
