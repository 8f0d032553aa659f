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

from ansible_collections.osops.placement.plugins.module_utils._case import Landscape
from ansible_collections.osops.placement.plugins.module_utils._gates import closed_gates
from ansible_collections.osops.placement.plugins.module_utils._judge import judge
from ansible_collections.osops.placement.plugins.module_utils._ruling import ORPHANED, PROTECTED, UNDECIDED

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._model import Answer, Finding, Policy, Snapshot

# The version of the structure of all the files that a run writes.
FORMAT = 1

# 20 000 findings handed from task to task cost Ansible up to a gigabyte: modules return this many, files hold all.
RETURNED = 200

# Evidence that is a whole listing is told by its length.
_ROWS_SHOWN = 10


def report(snapshot: Snapshot, policy: Policy) -> dict[str, t.Any]:
    """Judge `snapshot` and return the contents of `findings.json`."""
    land = Landscape(snapshot)
    found = judge(snapshot, policy)
    by_verdict: dict[str, list[Finding]] = {verdict: [] for verdict in (ORPHANED, PROTECTED, UNDECIDED)}
    for finding in found:
        by_verdict[finding.verdict].append(finding)
    return {
        "format": FORMAT,
        "cloud": d.asdict(snapshot.cloud),
        "started_at": snapshot.started_at,
        "finished_at": snapshot.finished_at,
        "summary": _summary(snapshot, land, by_verdict),
        "findings": [_entry(finding, land) for finding in by_verdict[ORPHANED]],
        "protected": [_entry(finding, land) for finding in by_verdict[PROTECTED]],
        "undecided": [_entry(finding, land) for finding in by_verdict[UNDECIDED]],
    }


def totals(shares: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add amounts up by resource class."""
    sums: collections.Counter[str] = collections.Counter()
    for share in shares:
        sums.update(share)
    return dict(sorted(sums.items()))


def _summary(snapshot: Snapshot, land: Landscape, by_verdict: Mapping[str, list[Finding]]) -> dict[str, t.Any]:
    closed = closed_gates(snapshot)
    orphans = [(finding, finding.change.frees) for finding in by_verdict[ORPHANED] if finding.change]
    of_provider: dict[str, list[Mapping[str, int]]] = {}
    of_project: dict[str, list[Mapping[str, int]]] = {}
    for finding, freed in orphans:
        for provider, amounts in freed.items():
            of_provider.setdefault(land.name(provider), []).append(amounts)
            of_project.setdefault(finding.allocation.project or "", []).append(amounts)
    return {
        "verdicts": {verdict: len(findings) for verdict, findings in by_verdict.items()},
        "kinds": dict(sorted(collections.Counter(finding.kind for finding, freed in orphans).items())),
        "stranded": {
            "resource_classes": totals(amounts for finding, freed in orphans for amounts in freed.values()),
            "providers": {name: totals(amounts) for name, amounts in sorted(of_provider.items())},
            "projects": {project: totals(amounts) for project, amounts in sorted(of_project.items())},
        },
        "coverage": {
            "complete": not closed,
            "closed_gates": list(closed),
            "providers": len(snapshot.providers),
            "consumers": len(snapshot.holdings),
            "hypervisors": len(snapshot.hypervisors.value or ()),
            "looked_at_closely": len(snapshot.dossiers),
        },
    }


def _entry(finding: Finding, land: Landscape) -> dict[str, t.Any]:
    allocation = finding.allocation
    return {
        "id": finding.id,
        "kind": finding.kind,
        "verdict": finding.verdict,
        "consumer": finding.consumer,
        "reason": finding.reason,
        "server": d.asdict(finding.server) if finding.server else None,
        "migration": d.asdict(finding.migration) if finding.migration else None,
        "project": allocation.project,
        "user": allocation.user,
        "type": allocation.type,
        "generation": allocation.generation,
        "age_seconds": allocation.age_seconds,
        "providers": [
            {
                "uuid": provider,
                "name": land.name(provider),
                "root": land.root(provider),
                "root_name": land.name(land.root(provider) or provider),
                "resources": dict(share),
                "dropped": provider in finding.dropped,
            }
            for provider, share in sorted(allocation.resources.items())
        ],
        "evidence": [_evidence(answer) for answer in finding.evidence],
        "change": finding.change.as_dict() if finding.change else None,
    }


def _evidence(answer: Answer[t.Any]) -> dict[str, t.Any]:
    told = {field: getattr(answer, field) for field in ("request", "microversion", "status", "at")}
    return {**told, "facts": _facts(answer.value)}


def _facts(value: t.Any) -> t.Any:
    if isinstance(value, tuple):
        return [_facts(row) for row in value] if len(value) <= _ROWS_SHOWN else {"rows": len(value)}
    return d.asdict(value) if d.is_dataclass(value) and not isinstance(value, type) else value
