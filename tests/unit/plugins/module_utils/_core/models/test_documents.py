"""The files of a run have the keys that docs/findings.md describes."""

import dataclasses as d
import json
import pathlib
import re
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
from .......plugins.module_utils._core.findings.entries import FindingsDocument
from .......plugins.module_utils._core.findings.selection import Selection
from .......plugins.module_utils._core.findings.sightings import History, Sighting, extract_history
from .......plugins.module_utils._core.findings.summary import RunResult, summarize_runs
from .......plugins.module_utils._core.models.codec import convert_from_json
from .......plugins.module_utils._core.models.kinds import CHANGEABLE_KINDS
from .......plugins.module_utils._core.models.placement import ProviderState
from .......plugins.module_utils._core.models.snapshot import HostGroups, Shard
from .......plugins.module_utils._core.options.policy import Policy
from .......plugins.module_utils._core.plan.plan import Plan
from ...judging import build_findings
from ...situations import build_world_of_every_action
from ...world import World
from ...worlds import worlds

HARSH = Policy(min_age=0, unknown_min_age=0)
KINDS = [kind.name for kind in CHANGEABLE_KINDS]
ENDPOINT = "http://placement"
PAGE = (pathlib.Path(__file__).parents[6] / "docs" / "findings.md").read_text(encoding="utf-8")


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


# What has keys of its own: names, uuids and kinds, or the words of Nova and Placement.
OPAQUE = {"after", "before", "facts", "kinds", "known", "migration", "new", "server", "service"}


def find_undocumented(document: t.Any) -> set[str]:
    """Return the keys of a file, at any depth, that the page about the files does not have."""
    found = set()
    if isinstance(document, list):
        document = dict(enumerate(document))
    if isinstance(document, dict):
        for key, part in document.items():
            is_name = not isinstance(key, str) or not key.islower() or not key.isidentifier()
            if not is_name and not re.search(rf"[`.]{key}(\[\])?[`.]", PAGE):
                found.add(key)
            if key not in OPAQUE:
                found |= find_undocumented(part)
    return found


@hypothesis.given(worlds())
def test_findings_are_what_is_declared(world: World) -> None:
    findings = through_json(build_findings(world.snapshot(), HARSH))

    assert convert_from_json(FindingsDocument, findings) is findings
    assert set(findings) <= set(FindingsDocument.__annotations__)


def test_findings_of_every_action_are_documented(findings: t.Any) -> None:
    assert {entry["change"]["action"] for entry in findings["findings"] if entry["change"]} == {
        "remove",
        "reduce",
        "rewrite",
        "create",
        "delete_providers",
    }
    assert find_undocumented(findings) == set()
    assert find_undocumented(extract_history(findings)) == set()


def test_only_findings_can_be_selected_or_wait(findings: t.Any) -> None:
    for entry in findings["findings"]:
        assert {"selected", "sightings", "waiting"} <= set(entry)
    for entry in [*findings["protected"], *findings["undecided"]]:
        assert not {"selected", "sightings", "waiting"} & set(entry)


def test_a_plan_is_documented(plan: Plan) -> None:
    groups = HostGroups(aggregates=("a",), aggregate_names=("rack-7",), cells=("cell1",))

    assert find_undocumented(d.replace(plan, shard=Shard(1, 3), groups=groups).as_dict()) == set()


def _conclude(
    outcomes: Sequence[Outcome], names: Sequence[str], folder: pathlib.Path, why: str = ""
) -> tuple[dict[str, t.Any], t.Any]:
    """Return the result of the module, and the contents of its file."""
    path = folder / "outcomes.json"
    journal = Journal(str(folder), ENDPOINT)
    result = conclude_run(outcomes, names, journal, why, str(path), "made")
    return result, json.loads(path.read_text())


def test_a_remediation_is_documented(plan: Plan, tmp_path: pathlib.Path) -> None:
    outcomes = [
        Outcome(step, "skipped", Reason("told", "Why.")) for step in (*plan.steps, *plan.removals)
    ]
    _result, document = _conclude(outcomes, remediation.OUTCOMES, tmp_path)

    assert len(document["outcomes"]) == len(outcomes)
    assert find_undocumented(document) == set()


def test_a_restoration_is_documented(plan: Plan, tmp_path: pathlib.Path) -> None:
    removal = plan.removals[0]
    tree = TreeRecord(removal.finding, removal.kind, removal.change, {})
    added = ProviderAddition(tree.root, ProviderState(generation=4), ("CUSTOM_A",), ())
    write = TreeAddition(tree.finding, tree.kind, (added,))
    outcomes = [Restoration(step, "restored", write=step.change) for step in plan.steps]
    outcomes.append(Restoration(tree, "restored", write=write))
    outcomes.append(Restoration(tree, "skipped", Reason("told", "Why.")))
    _result, document = _conclude(outcomes, restore.OUTCOMES, tmp_path)

    assert find_undocumented(document) == set()


def test_a_summary_is_documented(findings: t.Any, tmp_path: pathlib.Path) -> None:
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
    assert find_undocumented(summary) == set()
