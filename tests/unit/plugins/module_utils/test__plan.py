# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which changes a run may make, and how many."""

from __future__ import annotations

import copy
import json
import re
import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._errors import BreakerTripped, GateClosed, InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._findings import report
from ansible_collections.osops.placement.plugins.module_utils._judge import judge
from ansible_collections.osops.placement.plugins.module_utils._model import Policy
from ansible_collections.osops.placement.plugins.module_utils._plan import SHARE_COUNTS_ABOVE, Limits, Step, check_limits, plan
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.world import World

HERE = World().snapshot().cloud
ALL_KINDS = ("deleted_server", "wrong_host", "forgotten_consumer")


def _world() -> World:
    """One orphan each of three kinds, one protected and one undecided."""
    world = World()
    here, there = world.host("compute-1"), world.host("compute-2")
    world.server(there, here, there)
    world.delete(world.server(here, here))
    world.stranger(here)
    world.server(here, there, task_state="migrating")
    world.server(here, there, node="elsewhere")
    return world


@pytest.fixture(name="findings")
def _findings() -> t.Any:
    return json.loads(json.dumps(report(_world().snapshot(), Policy())))


def _steps(findings: t.Any, kinds: t.Collection[str] = ALL_KINDS) -> tuple[Step, ...]:
    steps, _consumers = plan(findings, HERE, kinds)
    return steps


def _changes(count: int) -> tuple[Step, ...]:
    world = World()
    here = world.host("compute-1")
    world.delete(world.server(here, here))
    (finding,) = judge(world.snapshot(), Policy())
    assert finding.change
    return (Step(finding.id, finding.kind, finding.change),) * count


def test_only_findings_of_the_chosen_kinds_are_planned(findings: t.Any) -> None:
    assert sorted(step.kind for step in _steps(findings, ["deleted_server", "wrong_host"])) == ["deleted_server", "wrong_host"]


def test_with_no_kind_chosen_nothing_is_planned(findings: t.Any) -> None:
    assert _steps(findings, []) == ()


def test_what_is_protected_or_undecided_is_never_planned(findings: t.Any) -> None:
    spared = {entry["consumer"] for verdict in ("protected", "undecided") for entry in findings[verdict]}
    kinds = {entry["kind"] for verdict in ("findings", "protected", "undecided") for entry in findings[verdict]}

    assert len(spared) == 2
    assert not spared & {step.change.consumer for step in _steps(findings, kinds)}


def test_an_orphan_without_a_change_is_not_planned(findings: t.Any) -> None:
    for entry in findings["findings"]:
        entry["change"] = None

    assert _steps(findings) == ()


def test_a_planned_change_is_exactly_the_one_that_was_found(findings: t.Any) -> None:
    found = {finding.id: (finding.kind, finding.change) for finding in judge(_world().snapshot(), Policy()) if finding.change}

    assert {step.finding: (step.kind, step.change) for step in _steps(findings)} == found


def test_a_step_is_told_with_its_write_and_what_it_frees(findings: t.Any) -> None:
    (entry,) = [entry for entry in findings["findings"] if entry["kind"] == "wrong_host"]
    (step,) = _steps(findings, ["wrong_host"])

    assert json.loads(json.dumps(step.as_dict())) == {"finding": entry["id"], "kind": "wrong_host", **entry["change"]}


def test_a_closed_gate_refuses_the_whole_plan_and_says_why(findings: t.Any) -> None:
    findings["summary"]["coverage"]["closed_gates"] = ["A cell is not answering.", "Wrong region."]

    with pytest.raises(GateClosed, match=r"Nothing may be changed after this reading\. A cell is not answering\. Wrong region\."):
        plan(findings, HERE, ALL_KINDS)


def test_a_closed_gate_refuses_even_when_nothing_would_be_planned(findings: t.Any) -> None:
    findings["summary"]["coverage"]["closed_gates"] = ["A cell is not answering."]

    with pytest.raises(GateClosed):
        plan(findings, HERE, [])


@pytest.mark.parametrize("newer", [0, 2, "1", None])
def test_findings_of_another_format_are_refused(findings: t.Any, newer: t.Any) -> None:
    findings["format"] = newer

    with pytest.raises(InvalidInput, match=f"have format {newer} and this version reads format 1: detect again"):
        plan(findings, HERE, ALL_KINDS)


@pytest.mark.parametrize(("what", "there"), [("placement_endpoint", "http://elsewhere"), ("region", "RegionTwo"), ("region", None)])
def test_findings_of_another_cloud_are_refused(findings: t.Any, what: str, there: str | None) -> None:
    findings["cloud"][what] = there

    with pytest.raises(InvalidInput, match=f"of another cloud: {what} is {there} there and {getattr(HERE, what)} here"):
        plan(findings, HERE, ALL_KINDS)


def test_other_credentials_of_the_same_cloud_will_do(findings: t.Any) -> None:
    findings["cloud"]["project"] = "another"

    assert len(_steps(findings)) == 3


@pytest.mark.parametrize(
    "foreign", [None, [], "findings", 7, {}, {"changed": False}, {"format": 1}, {"format": 1, "summary": []}], ids=repr
)
def test_what_are_no_findings_is_refused(foreign: t.Any) -> None:
    with pytest.raises(InvalidInput, match="are not as orphan_detect writes them"):
        plan(foreign, HERE, ALL_KINDS)


@pytest.mark.parametrize(
    "path",
    [
        ("cloud",),
        ("cloud", "region"),
        ("summary",),
        ("summary", "coverage"),
        ("summary", "coverage", "closed_gates"),
        ("summary", "coverage", "consumers"),
        ("findings",),
        ("findings", 0, "id"),
        ("findings", 0, "kind"),
        ("findings", 0, "consumer"),
        ("findings", 0, "change"),
        ("findings", 0, "change", "consumer"),
        ("findings", 0, "change", "generation"),
        ("findings", 0, "change", "before"),
        ("findings", 0, "change", "after"),
        ("findings", 0, "change", "before", "allocations"),
        ("findings", 0, "change", "before", "consumer_generation"),
        ("findings", 0, "change", "after", "allocations"),
        ("findings", 0, "change", "after", "consumer_generation"),
    ],
    ids=str,
)
def test_findings_that_lack_something_are_refused(findings: t.Any, path: tuple[t.Any, ...]) -> None:
    *way, last = path
    inner = findings
    for part in way:
        inner = inner[part]
    del inner[last]

    with pytest.raises(InvalidInput, match="are not as orphan_detect writes them"):
        plan(findings, HERE, ALL_KINDS)


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("share", [None, 7, {}, {"resources": None}, {"resources": "VCPU"}], ids=repr)
def test_a_share_that_is_none_is_refused(findings: t.Any, side: str, share: t.Any) -> None:
    findings["findings"][0]["change"][side]["allocations"] = {"provider": share}

    with pytest.raises(InvalidInput, match="are not as orphan_detect writes them"):
        plan(findings, HERE, ALL_KINDS)


@pytest.mark.parametrize("consumer", ["", "../resource_providers", "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"])
def test_a_change_of_another_consumer_than_the_findings_is_refused(findings: t.Any, consumer: str) -> None:
    findings["findings"][0]["change"]["consumer"] = consumer

    with pytest.raises(InvalidInput, match=f"names the consumer '{consumer}', which is not the finding's"):
        plan(findings, HERE, ALL_KINDS)


def test_a_consumer_that_is_no_uuid_is_refused_also_where_the_finding_names_it(findings: t.Any) -> None:
    findings["findings"][0]["consumer"] = findings["findings"][0]["change"]["consumer"] = "../resource_providers"

    with pytest.raises(InvalidInput, match="names the consumer"):
        plan(findings, HERE, ALL_KINDS)


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_document_with_another_generation_than_its_change_is_refused(findings: t.Any, side: str) -> None:
    findings["findings"][0]["change"][side]["consumer_generation"] = 7

    with pytest.raises(InvalidInput, match="names two generations"):
        plan(findings, HERE, ALL_KINDS)


@pytest.mark.parametrize("consumers", [None, "many", []])
def test_a_number_of_consumers_that_is_none_is_refused(findings: t.Any, consumers: t.Any) -> None:
    findings["summary"]["coverage"]["consumers"] = consumers

    with pytest.raises(InvalidInput, match="are not as orphan_detect writes them"):
        plan(findings, HERE, ALL_KINDS)


def test_the_plan_comes_with_the_number_of_consumers_that_were_read(findings: t.Any) -> None:
    _planned, consumers = plan(findings, HERE, ALL_KINDS)

    assert consumers == 5


def test_planning_leaves_the_findings_as_they_are(findings: t.Any) -> None:
    before = copy.deepcopy(findings)
    plan(findings, HERE, ALL_KINDS)

    assert findings == before


@pytest.mark.parametrize(
    ("changes", "max_changes", "max_share", "consumers"),
    [
        (0, 0, 0.0, 0),
        (3, 3, 1.0, 3),
        (SHARE_COUNTS_ABOVE, 100, 0.0, SHARE_COUNTS_ABOVE),
        (21, 100, 0.1, 210),
        (21, 21, 1.0, 21),
    ],
)
def test_within_both_limits_a_run_may_go_on(changes: int, max_changes: int, max_share: float, consumers: int) -> None:
    check_limits(_changes(changes), Limits(max_changes, max_share), consumers)


@pytest.mark.parametrize(("changes", "max_changes"), [(1, 0), (4, 3), (101, 100)])
def test_one_change_too_many_is_refused(changes: int, max_changes: int) -> None:
    with pytest.raises(BreakerTripped) as refusal:
        check_limits(_changes(changes), Limits(max_changes, 1.0), 1000)

    assert f"{changes} changes are planned and max_changes is {max_changes}: nothing was changed." in str(refusal.value)
    assert f"orphan_cleanup_max_changes) to {changes} or more" in str(refusal.value)


@pytest.mark.parametrize(("changes", "max_share", "consumers"), [(21, 0.1, 209), (21, 0.0, 1_000_000), (22, 0.1, 210), (21, 0.5, 0)])
def test_too_large_a_share_is_refused(changes: int, max_share: float, consumers: int) -> None:
    with pytest.raises(BreakerTripped) as refusal:
        check_limits(_changes(changes), Limits(1000, max_share), consumers)

    assert f"{changes} of {consumers} consumers would be changed and max_share is {max_share:g}: nothing was changed." in str(refusal.value)
    assert "orphan_cleanup_max_share" in str(refusal.value)


@pytest.mark.parametrize(
    ("changes", "consumers"),
    [
        (21, 30),
        (50, 100),
        (21, 1000),
        (29, 100),
        (33, 32_999),
        (100, 3),
    ],
)
def test_the_share_that_the_refusal_asks_for_lets_the_run_go_on(changes: int, consumers: int) -> None:
    with pytest.raises(BreakerTripped) as refusal:
        check_limits(_changes(changes), Limits(1000, 0.001), consumers)
    told = re.search(r"orphan_cleanup_max_share\) to ([\d.]+) or more", str(refusal.value))
    assert told

    check_limits(_changes(changes), Limits(1000, float(told.group(1))), consumers)
