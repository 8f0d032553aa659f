# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of a run have exactly the keys and the types that the code declares."""

from __future__ import annotations

import dataclasses as d
import json
import pathlib
import typing as t
from collections.abc import Sequence

import hypothesis
import pytest

from .......plugins.module_utils._common.errors import Reason
from .......plugins.module_utils._core.changes import remediation, restore
from .......plugins.module_utils._core.changes.journal import Journal
from .......plugins.module_utils._core.changes.outcomes import Outcome, Restoration, conclude_run
from .......plugins.module_utils._core.changes.records import (
    ProviderAddition,
    TreeAddition,
    TreeRecord,
)
from .......plugins.module_utils._core.clients.provider_state import ProviderState
from .......plugins.module_utils._core.findings.entries import FindingsDocument, HistoryDocument
from .......plugins.module_utils._core.findings.selection import Selection
from .......plugins.module_utils._core.findings.sightings import History, Sighting, extract_history
from .......plugins.module_utils._core.findings.summary import (
    RunResult,
    SummaryDocument,
    summarize_runs,
)
from .......plugins.module_utils._core.models import documents, nova
from .......plugins.module_utils._core.models.kinds import CHANGEABLE_KINDS
from .......plugins.module_utils._core.models.snapshot import Cloud, Scope, Shard
from .......plugins.module_utils._core.options.policy import Policy
from .......plugins.module_utils._core.plan.plan import Plan
from ...judging import build_findings
from ...shapes import list_mismatches
from ...situations import build_world_of_every_action
from ...world import World
from ...worlds import worlds

HARSH = Policy(min_age=0, unknown_min_age=0)
KINDS = [kind.name for kind in CHANGEABLE_KINDS]
ENDPOINT = "http://placement"


def through_json(document: t.Any) -> t.Any:
    return json.loads(json.dumps(document))


@pytest.fixture(scope="module")
def findings() -> t.Any:
    world, changes = build_world_of_every_action()
    history = History({}, {"extra_host/x": Sighting(2, "2026-01-01T00:00:00Z", "", (None, 3))})
    selection = Selection("[?kind != 'nothing']")
    return through_json(
        build_findings(world.snapshot(**changes), HARSH, selection, history=history)
    )


@pytest.fixture(scope="module")
def plan(findings: t.Any) -> Plan:
    return Plan.from_findings(findings, KINDS)


@pytest.mark.parametrize(
    ("model", "document"),
    [
        (nova.Server, documents.ServerDocument),
        (nova.Flavor, documents.FlavorDocument),
        (nova.Migration, documents.MigrationDocument),
        (nova.Service, documents.ServiceDocument),
        (Cloud, documents.CloudDocument),
        (Scope, documents.ScopeDocument),
        (Shard, documents.ShardDocument),
    ],
)
def test_a_document_has_the_fields_of_its_model(model: t.Any, document: t.Any) -> None:
    names = {field.name for field in d.fields(model)}

    assert names == set(t.get_type_hints(document))


@hypothesis.given(worlds())
def test_findings_are_what_is_declared(world: World) -> None:
    findings = through_json(build_findings(world.snapshot(), HARSH))

    assert list_mismatches(findings, FindingsDocument) == []


def test_findings_of_every_action_are_what_is_declared(findings: t.Any) -> None:
    assert {entry["change"]["action"] for entry in findings["findings"] if entry["change"]} == {
        "remove",
        "reduce",
        "rewrite",
        "create",
        "delete_providers",
    }
    assert list_mismatches(findings, FindingsDocument) == []
    assert list_mismatches(through_json(extract_history(findings)), HistoryDocument) == []


def test_only_findings_can_be_selected_or_wait(findings: t.Any) -> None:
    for entry in findings["findings"]:
        assert {"selected", "sightings", "waiting"} <= set(entry)
    for entry in [*findings["protected"], *findings["undecided"]]:
        assert not {"selected", "sightings", "waiting"} & set(entry)


def test_a_plan_is_what_is_declared(plan: Plan) -> None:
    sharded = d.replace(plan, shard=Shard(1, 3))

    assert list_mismatches(through_json(plan.as_dict()), documents.PlanDocument) == []
    assert list_mismatches(through_json(sharded.as_dict()), documents.PlanDocument) == []


def _conclude(
    outcomes: Sequence[Outcome], names: Sequence[str], folder: pathlib.Path, why: str = ""
) -> tuple[dict[str, t.Any], t.Any]:
    """Return the result of the module, and the contents of its file."""
    path = folder / "outcomes.json"
    journal = Journal(str(folder), ENDPOINT)
    result = conclude_run(outcomes, names, journal, why, str(path), "made")
    return result, json.loads(path.read_text())


def test_a_remediation_is_what_is_declared(plan: Plan, tmp_path: pathlib.Path) -> None:
    outcomes = [
        Outcome(step, "skipped", Reason("told", "Why.")) for step in (*plan.steps, *plan.removals)
    ]
    _result, document = _conclude(outcomes, remediation.OUTCOMES, tmp_path)

    assert len(document["outcomes"]) == len(outcomes)
    assert list_mismatches(document, documents.RemediationDocument) == []


def test_a_restoration_is_what_is_declared(plan: Plan, tmp_path: pathlib.Path) -> None:
    removal = plan.removals[0]
    tree = TreeRecord(removal.finding, removal.kind, removal.change, {})
    added = ProviderAddition(tree.root, ProviderState(generation=4), ("CUSTOM_A",), ())
    write = TreeAddition(tree.finding, tree.kind, (added,))
    outcomes = [Restoration(step, "restored", write=step.change) for step in plan.steps]
    outcomes.append(Restoration(tree, "restored", write=write))
    outcomes.append(Restoration(tree, "skipped", Reason("told", "Why.")))
    _result, document = _conclude(outcomes, restore.OUTCOMES, tmp_path)

    assert list_mismatches(document, documents.RestorationDocument) == []


def test_a_summary_is_what_is_declared(findings: t.Any, tmp_path: pathlib.Path) -> None:
    _result, outcomes = _conclude([], remediation.OUTCOMES, tmp_path)
    sharded = {**findings, "scope": {**findings["scope"], "shard": {"number": 1, "count": 3}}}
    summary = summarize_runs(
        [
            RunResult("whole", findings=findings, remediation=outcomes),
            RunResult("shard", findings=sharded),
            RunResult("failed", error="It failed."),
        ]
    )

    assert summary["missing_shards"]
    assert list_mismatches(through_json(summary), SummaryDocument) == []


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"number": 1, "count": 2}, []),
        ({"number": 1}, ["document lacks count"]),
        ({"number": 1, "count": 2, "more": 3}, ["document has more"]),
        ({"number": 1, "count": True}, ["document.count is True"]),
        ({"number": None, "count": "2"}, ["document.number is None", "document.count is '2'"]),
        ([], ["document is []"]),
    ],
)
def test_what_is_not_as_declared_is_found(value: t.Any, found: list[str]) -> None:
    assert list_mismatches(value, documents.ShardDocument) == found
