# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The structure of `findings.json`, which people and the tasks that follow read."""

from __future__ import annotations

import collections
import typing as t
from collections.abc import Collection, Iterable, Mapping

from ..facts.index import SnapshotIndex
from ..facts.services import list_hosts_without_service
from ..facts.soundness import list_unmet_requirements
from ..models.change import Change
from ..models.codec import Json, convert_to_json
from ..models.finding import DRIFTED, ORPHANED, PROTECTED, UNDECIDED, Finding
from ..models.other_services import HostTree
from ..models.placement import Allocation
from ..models.snapshot import Answer, Scope, Snapshot
from .entries import FORMAT, Coverage, Entry, FindingsDocument, Summary
from .figures import (
    describe_providers,
    summarize_capacity,
    summarize_overcommit,
    summarize_stranded,
)
from .sightings import History, count_sightings, explain_wait

if t.TYPE_CHECKING:  # pragma: no cover
    from ..expected.amounts import AmountCounts
    from .selection import Selection


# Stands for the allocation of a finding that is not about a consumer.
_NO_ALLOCATION = Allocation("", None, None, None, None, {}, None)

_UNKNOWN_VERSIONS: Json = {"collection": "", "ansible_core": "", "openstacksdk": ""}

# Of evidence that is a longer listing only the number of rows is written.
_MAX_EVIDENCE_ROWS = 10


def build_document(
    index: SnapshotIndex,
    findings: Iterable[Finding],
    selection: Selection | None = None,
    history: History | None = None,
    min_sightings: int = 1,
    versions: Json | None = None,
    amounts: AmountCounts | None = None,
) -> FindingsDocument:
    """Return the contents of `findings.json`.

    findings: what the rules found in the snapshot of `index`.
    selection: marks the findings that the user selects; without it all are selected.
    history: what the earlier runs remembered.
    min_sightings: how many runs must have seen a finding before it may be changed.
    versions: the versions of what made the reading.
    amounts: of how many servers the amounts were checked.
    """
    snapshot = index.snapshot
    history = history or History()
    by_verdict = _group_by_verdict(findings, snapshot.scope)
    confirmed = by_verdict[ORPHANED] + by_verdict[DRIFTED]
    sightings = count_sightings(
        confirmed, history.sightings, snapshot, sound=not index.failed_checks
    )
    entries = _build_entries(confirmed, index, history)
    for entry in entries:
        sighting = sightings[entry["id"]]
        entry["sightings"] = sighting.count
        entry["waiting"] = explain_wait(sighting, min_sightings)
    elsewhere = {finding.id for finding in confirmed if _is_elsewhere(finding, index)}
    _mark_selected(entries, selection, elsewhere)
    new_kinds = [entry["kind"] for entry in entries if entry["new"]]
    reported_ids = {finding.id for rows in by_verdict.values() for finding in rows}
    kept = history.retain(reported_ids, snapshot, complete=not index.failed_absence_checks)
    sightings = {**kept.sightings, **sightings}
    return {
        "format": FORMAT,
        "versions": versions or _UNKNOWN_VERSIONS,
        "cloud": convert_to_json(snapshot.cloud),
        "scope": convert_to_json(snapshot.scope),
        "started_at": snapshot.started_at,
        "finished_at": snapshot.finished_at,
        "summary": _build_summary(index, by_verdict, new_kinds, amounts),
        "findings": entries,
        "protected": _build_entries(by_verdict[PROTECTED], index, history),
        "undecided": _build_entries(by_verdict[UNDECIDED], index, history),
        "known": dict(kept.first_seen),
        "sightings": {finding: convert_to_json(seen) for finding, seen in sightings.items()},
        "capacity": describe_providers(confirmed, index),
        "held": _list_consumers_with_allocations(snapshot),
    }


def _group_by_verdict(findings: Iterable[Finding], scope: Scope) -> dict[str, list[Finding]]:
    """Return the findings of the kinds that were asked for, by verdict."""
    verdicts = (ORPHANED, DRIFTED, PROTECTED, UNDECIDED)
    by_verdict: dict[str, list[Finding]] = {verdict: [] for verdict in verdicts}
    for finding in findings:
        # The kind of what is protected or undecided is the reason for it, and not one to ask for.
        unlimited = finding.verdict in (PROTECTED, UNDECIDED)
        if unlimited or scope.includes(finding.kind):
            by_verdict[finding.verdict].append(finding)
    return by_verdict


def _is_elsewhere(finding: Finding, index: SnapshotIndex) -> bool:
    """Return whether a finding would change only hosts that the user did not name.

    A server on a named host can have left something on another one.
    """
    scope, change = index.snapshot.scope, finding.change
    if not isinstance(change, Change) or scope.consumers or not scope.is_limited_to_hosts:
        return False
    before, after = change.before["allocations"], change.after["allocations"]
    changed = [uuid for uuid in {**before, **after} if before.get(uuid) != after.get(uuid)]
    return not any(
        index.is_sharing(uuid) or index.covers(index.get_root(uuid) or "")
        for uuid in changed or before
    )


def _mark_selected(
    entries: list[Entry], selection: Selection | None, elsewhere: Collection[str]
) -> None:
    selected_ids = None if selection is None else selection.select_ids(entries)
    for entry in entries:
        is_selected = selected_ids is None or entry["id"] in selected_ids
        entry["selected"] = is_selected and entry["id"] not in elsewhere


def _list_consumers_with_allocations(snapshot: Snapshot) -> list[str]:
    """Return which of the consumers that were named have allocations.

    Of the others nothing can be changed.
    """
    looked_up = [evidence.allocation.value for evidence in snapshot.evidence.values()]
    consumers = {each.consumer for each in looked_up if each and each.resources}
    consumers.update(snapshot.allocations)
    return [consumer for consumer in snapshot.scope.consumers if consumer in consumers]


def _build_summary(
    index: SnapshotIndex,
    by_verdict: Mapping[str, list[Finding]],
    new_kinds: Iterable[str],
    amounts: AmountCounts | None,
) -> Summary:
    confirmed = by_verdict[ORPHANED] + by_verdict[DRIFTED]
    return {
        "verdicts": {verdict: len(findings) for verdict, findings in by_verdict.items()},
        "kinds": _count_kinds(finding.kind for finding in confirmed),
        "new": _count_kinds(new_kinds),
        "stranded": summarize_stranded(confirmed, index),
        "capacity": summarize_capacity(confirmed, index),
        "overcommit": summarize_overcommit(index),
        "coverage": _build_coverage(index, amounts),
    }


def _count_kinds(kinds: Iterable[str]) -> dict[str, int]:
    return dict(sorted(collections.Counter(kinds).items()))


def _build_coverage(index: SnapshotIndex, amounts: AmountCounts | None) -> Coverage:
    """Return how much was read, and whether that is enough to change anything."""
    snapshot = index.snapshot
    providers = list(snapshot.providers.values())
    nodes = list(index.nodes.values())
    if snapshot.scope.shard is not None or not snapshot.scope.groups.is_empty:
        # The whole cloud is listed, but the reading answers only for its own part.
        providers = [provider for provider in providers if index.covers(provider.root)]
        nodes = [node for node in nodes if index.covers(node.uuid)]
    reading = snapshot.reading
    coverage: Coverage = {
        "scope": str(snapshot.scope),
        "reading": reading.mode,
        "full_at": reading.full_at or snapshot.started_at,
        "why_full": reading.why_full,
        "complete": not index.failed_absence_checks,
        "partial": bool(index.unjudged_hosts),
        "failed_checks": list(map(str, index.failed_checks)),
        "failed_check_ids": [reason.id for reason in index.failed_checks],
        "not_provable": list(map(str, list_unmet_requirements(snapshot.cloud))),
        "unread": list(snapshot.surroundings.unread),
        "silent_hosts": len(index.unjudged_hosts),
        "unjudged_hosts": sorted(index.unjudged_hosts),
        "hosts_without_service": list_hosts_without_service(snapshot),
        "retried": snapshot.retried,
        "providers": len(providers),
        "consumers": len(snapshot.allocations),
        "servers": sum(node.running_vms for node in nodes),
        "hypervisors": len(nodes),
        "looked_at_closely": len(snapshot.candidates),
        "left_out": snapshot.left_out,
    }
    if amounts is not None:
        checked = amounts.by_server + amounts.by_host
        servers = checked + sum(amounts.unchecked.values())
        coverage["amounts"] = {"servers": servers, "checked": checked, **convert_to_json(amounts)}
    return coverage


def _build_entries(
    findings: Iterable[Finding], index: SnapshotIndex, history: History
) -> list[Entry]:
    return [_build_entry(finding, index, history) for finding in findings]


def _build_entry(finding: Finding, index: SnapshotIndex, history: History) -> Entry:
    change = finding.change.as_dict() if finding.change else None
    allocation = finding.allocation or _NO_ALLOCATION
    return {
        "id": finding.id,
        "kind": finding.kind,
        "verdict": finding.verdict,
        "consumer": finding.consumer,
        "reason": str(finding.reason),
        "reason_id": finding.reason.id,
        "server": convert_to_json(finding.server),
        "migration": convert_to_json(finding.migration),
        "service": convert_to_json(finding.service),
        "project": finding.owner,
        "user": allocation.user,
        "type": allocation.type,
        "generation": allocation.generation,
        "age_seconds": allocation.age_seconds,
        "providers": _describe_providers(finding, index),
        "evidence": [describe_answer(answer) for answer in finding.evidence],
        "change": change,
        "commands": list(finding.commands),
        "first_seen": history.first_seen.get(finding.id, index.snapshot.finished_at),
        "new": finding.id not in history.first_seen,
    }


def _describe_providers(finding: Finding, index: SnapshotIndex) -> list[Json]:
    """Return the providers that a finding is about, each with what the consumer has there."""
    # Also the providers on which the consumer has nothing yet.
    after = finding.change.after["allocations"] if isinstance(finding.change, Change) else ()
    resources: dict[str, Mapping[str, int]] = {uuid: {} for uuid in (*finding.providers, *after)}
    if finding.allocation:
        resources.update(finding.allocation.resources)
    described = []
    for uuid, amounts in sorted(resources.items()):
        root = index.get_root(uuid)
        provider = {
            "uuid": uuid,
            "name": index.get_name(uuid),
            "root": root,
            "root_name": index.get_name(root or uuid),
            "resources": dict(amounts),
            "dropped": uuid in finding.freed_providers,
        }
        described.append(provider)
    return described


def describe_answer(answer: Answer[t.Any]) -> Json:
    """Return one request and its answer, as the evidence of a finding has them."""
    return {
        "request": answer.request,
        "microversion": answer.microversion,
        "status": answer.status,
        "at": answer.at,
        "facts": _extract_facts(answer.value),
    }


def _extract_facts(value: t.Any) -> t.Any:
    """Return the value of an answer as JSON; of a long listing, only how many rows it has.

    Of the tree of a host, it is which resource classes each provider has.
    """
    rows = value.providers.values() if isinstance(value, HostTree) else value
    if isinstance(value, (tuple, HostTree)) and len(rows) > _MAX_EVIDENCE_ROWS:
        return {"rows": len(rows)}
    if isinstance(value, HostTree):
        return {provider.name: sorted(provider.inventories) for provider in rows}
    if isinstance(value, tuple):
        return [_extract_facts(row) for row in value]
    if isinstance(value, dict):
        return {key: _extract_facts(part) for key, part in value.items()}
    return convert_to_json(value)
