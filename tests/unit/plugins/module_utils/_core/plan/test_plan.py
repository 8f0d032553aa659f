"""Which changes a run may make, and how many.

And that a plan is read back unchanged, or refused.
"""

import copy
import dataclasses as d
import hashlib
import json
import re
import typing as t

import pytest

from .......plugins.module_utils._common.errors import BreakerTripped, InvalidInput, UnsoundReading
from .......plugins.module_utils._core.models.kind import REPORT
from .......plugins.module_utils._core.models.kinds import CHANGEABLE_KINDS, CONSUMER_KINDS, KINDS
from .......plugins.module_utils._core.models.snapshot import HostGroups, Scope, Shard
from .......plugins.module_utils._core.options.policy import Policy
from .......plugins.module_utils._core.options.run import FailureOptions
from .......plugins.module_utils._core.plan.limits import Limits, explain_abort, parse_limits
from .......plugins.module_utils._core.plan.plan import (
    SCOPE_NAMES,
    Plan,
    Step,
    check_cloud,
    check_scope,
    digest_others,
    list_servers_to_heal,
)
from .....reasons import has_id
from ...judging import NO_MINIMUM_AGE, build_findings, judge
from ...situations import build_world_of_every_action
from ...world import NOW, World
from .signed import parse_signed, sign

HERE = World().snapshot().cloud
ALL_KINDS = tuple(kind.name for kind in CHANGEABLE_KINDS)
OF_CONSUMERS = tuple(kind.name for kind in CONSUMER_KINDS)
ELSEWHERE = "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"


def _world() -> tuple[World, dict[str, t.Any]]:
    """Return a cloud with changes of every action, and what its snapshot has besides.

    There is also a protected and an undecided consumer.
    """
    world, details = build_world_of_every_action()
    here, there, _third = world.nodes
    world.server(here, there, task_state="migrating")
    world.server(here, there, node="elsewhere")
    return world, details


def _read_back(document: t.Any) -> t.Any:
    return json.loads(json.dumps(document))


def _report(**snapshot: t.Any) -> t.Any:
    world, details = _world()
    return _read_back(build_findings(world.snapshot(**details, **snapshot), NO_MINIMUM_AGE))


@pytest.fixture(name="findings")
def _findings() -> t.Any:
    return _report()


@pytest.fixture(name="told")
def _told(findings: t.Any) -> t.Any:
    """Return the plan of all changes of allocations."""
    return _read_back(Plan.from_findings(findings, OF_CONSUMERS).as_dict())


@pytest.fixture(name="told_all")
def _told_all(findings: t.Any) -> t.Any:
    """Return the plan that also deletes two trees of providers, one of them with three levels."""
    return _read_back(Plan.from_findings(findings, ALL_KINDS).as_dict())


def _steps(findings: t.Any, kinds: t.Collection[str] = ALL_KINDS) -> tuple[Step, ...]:
    return Plan.from_findings(findings, kinds).steps


def _plan(count: int, consumers: int | None) -> Plan:
    world = World()
    here = world.host("compute-1")
    for _number in range(count):
        world.delete(world.server(here, here))
    return d.replace(
        Plan.from_findings(build_findings(world.snapshot(), Policy()), ["deleted_server"]),
        consumers=consumers,
    )


def _at(told: t.Any, *path: t.Any) -> t.Any:
    for part in path:
        told = told[int(part) if isinstance(told, list) else part]
    return told


def _of_kind(told: t.Any, kind: str) -> t.Any:
    (entry,) = [entry for entry in told["changes"] if entry["kind"] == kind]
    return entry


# From findings


def test_all_kinds_but_the_reported_ones_change_allocations_or_trees() -> None:
    assert [kind.name for kind in KINDS if kind.by_default != REPORT] == list(ALL_KINDS)
    assert [kind.name for kind in CHANGEABLE_KINDS if kind not in CONSUMER_KINDS] == [
        "orphaned_provider",
        "name_conflict",
    ]


@pytest.mark.parametrize("kinds", [["deleted_server", "extra_host"], []], ids=str)
def test_only_findings_of_the_chosen_kinds_are_planned(findings: t.Any, kinds: list[str]) -> None:
    assert sorted(step.kind for step in _steps(findings, kinds)) == kinds


def test_protected_and_undecided_consumers_are_never_planned(findings: t.Any) -> None:
    spared = [*findings["protected"], *findings["undecided"]]
    kinds = {entry["kind"] for entry in [*findings["findings"], *spared]}
    consumers = {entry["consumer"] for entry in spared}

    assert consumers and not consumers & {step.subject for step in _steps(findings, kinds)}


def test_unselected_findings_are_not_planned(findings: t.Any) -> None:
    for entry in findings["findings"]:
        entry["selected"] = entry["kind"] == "extra_host"

    assert [step.kind for step in _steps(findings)] == ["extra_host"]


def test_orphan_without_a_change_is_not_planned(findings: t.Any) -> None:
    for entry in findings["findings"]:
        entry["change"] = None

    assert _steps(findings) == ()


def test_planned_change_is_exactly_the_one_found(findings: t.Any) -> None:
    world, details = _world()
    found = {
        finding.id: (finding.kind, finding.change)
        for finding in judge(world.snapshot(**details), NO_MINIMUM_AGE)
        if finding.change
    }
    planned = Plan.from_findings(findings, ALL_KINDS).all_steps

    assert {step.finding: (step.kind, step.change) for step in planned} == found


def test_changes_that_free_capacity_come_before_changes_that_use_it(findings: t.Any) -> None:
    actions = [step.change.action for step in _steps(findings)]

    assert actions == ["remove"] * 2 + ["reduce"] + ["rewrite"] * 3 + ["create"]


def test_equal_findings_in_any_order_make_equal_plans(findings: t.Any) -> None:
    before = Plan.from_findings(findings, ALL_KINDS)
    findings["findings"].reverse()

    assert Plan.from_findings(findings, ALL_KINDS) == before


def test_step_shows_its_write_and_what_it_frees(findings: t.Any) -> None:
    (entry,) = [entry for entry in findings["findings"] if entry["kind"] == "extra_host"]
    (step,) = _steps(findings, ["extra_host"])

    expected = {"finding": entry["id"], "kind": "extra_host", **entry["change"]}
    assert _read_back(step.as_dict()) == expected


def test_plan_says_where_and_when_its_findings_were_made(findings: t.Any) -> None:
    plan = Plan.from_findings(findings, [])

    assert (plan.placement_endpoint, plan.region) == (HERE.placement_endpoint, HERE.region)
    assert plan.detected_at == NOW


@pytest.mark.parametrize("kinds", [ALL_KINDS, ()], ids=["all", "none"])
def test_unsound_reading_refuses_the_whole_plan_even_an_empty_one(
    findings: t.Any, kinds: tuple[str, ...]
) -> None:
    findings["summary"]["coverage"]["failed_checks"] = ["One.", "Two.", "Three.", "Four."]

    with pytest.raises(UnsoundReading, match=r"One\. Two\. 2"):
        Plan.from_findings(findings, kinds)


@pytest.mark.parametrize("newer", [0, 2, "1", None])
def test_another_format_is_refused(findings: t.Any, told: t.Any, newer: t.Any) -> None:
    with pytest.raises(InvalidInput, match=f"format {newer!r}"):
        Plan.from_findings({**findings, "format": newer}, ALL_KINDS)
    with pytest.raises(InvalidInput, match=f"format {newer!r}"):
        parse_signed({**told, "format": newer})


READERS: dict[str, t.Callable[[t.Any], Plan]] = {
    "orphan_detect": lambda document: Plan.from_findings(document, ALL_KINDS),
    "orphan_plan": parse_signed,
}


@pytest.mark.parametrize(
    "foreign",
    [
        *(None, [], "findings", 7, {}, {"changed": False}),
        *({"format": 1}, {"format": 1, "summary": []}, {"format": 1, "changes": {}}),
    ],
    ids=repr,
)
@pytest.mark.parametrize("writer", READERS)
def test_document_of_another_form_is_refused(writer: str, foreign: t.Any) -> None:
    with pytest.raises(InvalidInput, match=writer):
        READERS[writer](foreign)


# What a plan is made of.
NEEDED = """
    cloud cloud.region cloud.placement_endpoint finished_at
    scope scope.hosts scope.consumers scope.shard
    summary summary.coverage summary.coverage.failed_checks summary.coverage.consumers
    findings findings.0.id findings.0.kind findings.0.selected findings.0.change
    findings.0.change.consumer findings.0.change.generation findings.0.change.partner
    findings.0.change.action findings.0.change.frees
    findings.0.change.before findings.0.change.before.allocations
    findings.0.change.before.project_id findings.0.change.before.consumer_generation
    findings.0.change.after findings.0.change.after.allocations
    findings.0.change.after.consumer_generation
"""


@pytest.mark.parametrize("place", NEEDED.split())
def test_incomplete_findings_are_refused(findings: t.Any, place: str) -> None:
    *way, last = place.split(".")
    del _at(findings, *way)[last]

    with pytest.raises(InvalidInput):
        Plan.from_findings(findings, ALL_KINDS)


RACK = HostGroups(
    aggregates=("uuid-7",), aggregate_names=("rack-7",), aggregate_numbers=("7",), hosts=("c1",)
)


@pytest.mark.parametrize(
    ("scope", "consumers"),
    [
        (Scope(), 9),
        (Scope(groups=RACK), 9),
        (Scope(hosts=("compute-1",)), None),
        (Scope(hosts=("compute-1",), groups=RACK), None),
        (Scope(consumers=(ELSEWHERE,)), None),
    ],
)
def test_consumers_are_counted_unless_hosts_or_consumers_were_named(
    scope: Scope, consumers: int | None
) -> None:
    findings = _report(scope=scope)

    assert findings["summary"]["coverage"]["consumers"] == 9
    assert Plan.from_findings(findings, ALL_KINDS).consumers == consumers


def test_plan_of_a_group_remembers_the_group() -> None:
    plan = Plan.from_findings(_report(scope=Scope(groups=RACK)), ALL_KINDS)
    document = _read_back(plan.as_dict())

    # The hosts are looked up again when it is applied.
    assert document["groups"] == {
        "aggregates": ["uuid-7"],
        "aggregate_names": ["rack-7"],
        "availability_zones": [],
        "cells": [],
    }
    assert parse_signed(document).groups == d.replace(RACK, aggregate_numbers=(), hosts=())


@pytest.mark.parametrize(
    "change",
    [
        {"aggregates": []},
        {"aggregates": ["a", "b"]},
        {"aggregates": "uuid-7"},
        {"aggregates": [""], "aggregate_names": [""]},
        {"cells": [7]},
        {"availability_zones": None},
    ],
    ids=str,
)
def test_plan_whose_groups_were_edited_is_refused(change: dict[str, t.Any]) -> None:
    document = _read_back(
        Plan.from_findings(_report(scope=Scope(groups=RACK)), ALL_KINDS).as_dict()
    )
    document["groups"] |= change

    with pytest.raises(InvalidInput, match="plan again"):
        parse_signed(document)


@pytest.mark.parametrize(
    "consumers", [None, "many", "8", [], True, 8.0, float("inf"), -1], ids=repr
)
def test_invalid_number_of_consumers_is_refused(
    findings: t.Any, told: t.Any, consumers: t.Any
) -> None:
    findings["summary"]["coverage"]["consumers"] = consumers
    told["consumers"] = consumers

    with pytest.raises(InvalidInput, match="orphan_detect"):
        Plan.from_findings(findings, ALL_KINDS)
    if consumers is not None:
        with pytest.raises(InvalidInput, match="orphan_plan"):
            parse_signed(told)


def test_planning_does_not_modify_the_findings(findings: t.Any) -> None:
    before = copy.deepcopy(findings)
    Plan.from_findings(findings, ALL_KINDS)

    assert findings == before


# From a plan


def test_written_plan_is_read_back_unchanged(findings: t.Any, told_all: t.Any) -> None:
    assert parse_signed(told_all) == Plan.from_findings(findings, ALL_KINDS)


def test_reviewed_plan_keeps_its_order(told: t.Any) -> None:
    told["changes"].reverse()

    assert parse_signed(told).as_dict() == sign(told)


def test_change_deleted_from_a_plan_stays_out(told: t.Any) -> None:
    taken = told["changes"].pop()

    assert taken["finding"] not in {step.finding for step in parse_signed(told).steps}


@pytest.mark.parametrize(
    "missing", ["placement_endpoint", "region", "detected_at", "consumers", "changes"]
)
def test_incomplete_plan_is_refused(told: t.Any, missing: str) -> None:
    del told[missing]

    with pytest.raises(InvalidInput, match=f"'{missing}' is missing"):
        parse_signed(told)


UNSHARED: list[t.Any] = [
    *(None, 7, {}, {"resources": None}, {"resources": "VCPU"}, {"resources": {}}),
    {"resources": {"VCPU": 1}, "generation": 5},
]
UNNAMED = ["", "compute-1", "../x", ELSEWHERE.upper(), ELSEWHERE.replace("-", "")]
# What a key of the first change is replaced by, and what the refusal names.
EDITS: list[tuple[str, t.Any, str | None]] = [
    *(
        (f"{side}.allocations", {ELSEWHERE: share}, None)
        for side in ("before", "after")
        for share in UNSHARED
    ),
    *(
        ("before.allocations", {ELSEWHERE: {"resources": {"VCPU": amount}}}, f"{amount} VCPU on")
        for amount in (0, -1, True, 1.0, "1", None)
    ),
    *(
        ("before.allocations", {provider: {"resources": {"VCPU": 1}}}, "by UUID")
        for provider in UNNAMED
    ),
    *(
        (f"before.{owner}", value, "as text")
        for owner in ("project_id", "user_id", "consumer_type")
        for value in (None, "", 7, ["x"])
    ),
    *(
        (key, generation, f"has (generation )?{generation}")
        for key in ("generation", "before.consumer_generation", "after.consumer_generation")
        # To Python the last two equal 1, and Placement would receive them as they are.
        for generation in (7, True, 1.0)
    ),
    *((key, {ELSEWHERE: {"VCPU": 1}}, f"itself: {key}") for key in ("frees", "claims")),
    ("action", "create", "itself: action"),
    ("force", True, "itself: force"),
    ("after.mappings", "all", "has mappings"),
    ("consumer", ELSEWHERE, "cannot resolve"),
    ("kind", "wrong_amount", "cannot resolve"),
    ("finding", f"deleted_server/{ELSEWHERE}", "cannot resolve"),
    *(
        ("partner", partner, None)
        for partner in ({}, [], 0, False, "", "somebody", 7, {"consumer": ELSEWHERE})
    ),
]


@pytest.mark.parametrize(("place", "value", "named"), EDITS, ids=repr)
def test_change_that_was_edited_is_refused(
    told: t.Any, place: str, value: t.Any, named: str | None
) -> None:
    *way, last = place.split(".")
    _at(told["changes"][0], *way)[last] = value

    with pytest.raises(InvalidInput, match=named):
        parse_signed(told)


def test_refusal_has_at_most_100_characters_of_each_name(told: t.Any) -> None:
    share = {"resources": {"C" * 101: 0}}
    told["changes"][0]["before"]["allocations"] = {"p" * 101: share}

    with pytest.raises(InvalidInput) as refused:
        parse_signed(told)
    assert f"{'p' * 99}…" in str(refused.value) and f" 0 {'C' * 97}…" in f" {refused.value}"


@pytest.mark.parametrize(
    "consumer", ["", "../resource_providers", ELSEWHERE.upper(), None, 7], ids=repr
)
def test_consumer_that_is_not_a_uuid_is_refused_even_if_the_finding_agrees(
    told: t.Any, consumer: t.Any
) -> None:
    change = told["changes"][0]
    change |= {"consumer": consumer, "finding": f"{change['kind']}/{consumer}"}

    with pytest.raises(InvalidInput):
        parse_signed(told)


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        *(
            (kind, "cannot resolve")
            for kind in ("orphaned_provider", "stale_service", "protected", "")
        ),
        # Its name of version 1.
        ("wrong_host", "extra_host"),
    ],
)
def test_kind_that_changes_no_allocation_is_refused(told: t.Any, kind: str, named: str) -> None:
    change = told["changes"][0]
    change |= {"kind": kind, "finding": f"{kind}/{change['consumer']}"}

    with pytest.raises(InvalidInput, match=named):
        parse_signed(told)


def test_existing_consumer_without_a_generation_is_refused(told: t.Any) -> None:
    """Without one Placement would treat the write as that of a new consumer."""
    change = told["changes"][0]
    change["generation"] = None
    for side in ("before", "after"):
        change[side]["consumer_generation"] = None

    with pytest.raises(InvalidInput, match="generation None"):
        parse_signed(told)


def test_consumer_changed_twice_is_refused(told: t.Any) -> None:
    again = told["changes"][0]

    with pytest.raises(InvalidInput, match=f"{again['consumer']} twice"):
        parse_signed({**told, "changes": [*told["changes"], again]})


def test_consumer_that_is_also_a_partner_is_refused(told: t.Any) -> None:
    partner = _of_kind(told, "unreverted_allocation")["partner"]
    told["changes"].append(
        {**partner, "kind": "ended_migration", "finding": f"ended_migration/{partner['consumer']}"}
    )

    with pytest.raises(InvalidInput, match=f"{partner['consumer']} twice"):
        parse_signed(told)


@pytest.mark.parametrize("whose", ["partner", "consumer"])
def test_nested_partners_and_self_partners_are_refused(told: t.Any, whose: str) -> None:
    """One would never be written, and the other would have two documents."""
    change = _of_kind(told, "unreverted_allocation")
    change["partner"][whose] = (
        copy.deepcopy(told["changes"][0]) if whose == "partner" else change["consumer"]
    )

    with pytest.raises(InvalidInput, match="one other consumer"):
        parse_signed(told)


@pytest.mark.parametrize("digit", ["0", "f"])
def test_partner_may_come_before_or_after_its_consumer(told: t.Any, digit: str) -> None:
    partner = f"{digit * 8}-0000-4000-8000-000000000000"
    change = _of_kind(told, "unreverted_allocation")
    change["partner"]["consumer"] = partner
    assert (partner < change["consumer"]) is (digit == "0")

    [step] = [step for step in parse_signed(told).steps if step.change.partner]

    assert step.change.partner and step.change.partner.consumer == partner


# Trees of providers


def test_trees_are_deleted_after_all_changes_of_allocations_children_first(findings: t.Any) -> None:
    plan = Plan.from_findings(findings, ALL_KINDS)

    assert [[provider.name for provider in step.change.providers] for step in plan.removals] == [
        ["ghost-1"],
        ["ghost-2_port", "ghost-2_agent", "ghost-2"],
    ]
    for step in plan.removals:
        assert step.finding == f"orphaned_provider/{step.subject}"
    actions = [change["action"] for change in plan.as_dict()["changes"]]
    assert actions[-3:] == ["create", "delete_providers", "delete_providers"]


def test_trees_of_other_kinds_and_unselected_trees_are_kept(findings: t.Any) -> None:
    assert Plan.from_findings(findings, OF_CONSUMERS).removals == ()
    for entry in findings["findings"]:
        entry["selected"] = False
    assert Plan.from_findings(findings, ALL_KINDS).removals == ()


def test_trees_count_against_the_limit(findings: t.Any) -> None:
    plan = Plan.from_findings(findings, ALL_KINDS)

    plan.check_limits(Limits(len(plan.all_steps), 1.0))
    with pytest.raises(BreakerTripped, check=has_id("too_many_changes")):
        plan.check_limits(Limits(len(plan.all_steps) - 1, 1.0))


STRANGER = {"uuid": ELSEWHERE, "name": "another", "generation": 1, "parent": None}
# What is done to the deletion of a tree, and to its providers, of which the last one is the root.
SPOILED: dict[str, t.Callable[[t.Any, t.Any], object]] = {
    "without the root": lambda change, tree: tree.pop(),
    "without a link": lambda change, tree: tree.pop(1),
    "without any": lambda change, tree: tree.clear(),
    "parents first": lambda change, tree: tree.reverse(),
    "with a stranger": lambda change, tree: tree.insert(-1, STRANGER),
    "twice the same": lambda change, tree: tree.insert(0, tree[0]),
    "below its own child": lambda change, tree: tree[-1].update(parent=tree[0]["uuid"]),
    "its own parent": lambda change, tree: tree[0].update(parent=tree[0]["uuid"]),
    "a part of another": lambda change, tree: tree[-1].update(parent=ELSEWHERE),
    "by name": lambda change, tree: tree[0].update(uuid="compute-1"),
    "of no generation": lambda change, tree: tree[0].update(generation=True),
    "by force": lambda change, tree: change.update(force=True),
    "as another action": lambda change, tree: change.update(action="remove"),
    "for another tree": lambda change, tree: change.update(
        finding=f"orphaned_provider/{ELSEWHERE}"
    ),
    "for an allocation": lambda change, tree: change.update(
        kind="deleted_server", finding=f"deleted_server/{tree[-1]['uuid']}"
    ),
    "for a kind that is only reported": lambda change, tree: change.update(
        kind="capacity_mismatch", finding=f"capacity_mismatch/{tree[-1]['uuid']}"
    ),
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_deletion_of_part_of_a_tree_is_refused(
    told_all: t.Any, spoil: t.Callable[[t.Any, t.Any], object]
) -> None:
    (change,) = [one for one in told_all["changes"] if len(one.get("providers", ())) == 3]
    spoil(change, change["providers"])

    with pytest.raises(InvalidInput):
        parse_signed(told_all)


def test_tree_deleted_twice_is_refused(told_all: t.Any) -> None:
    told_all["changes"].append(told_all["changes"][-1])

    with pytest.raises(InvalidInput, match="provider twice"):
        parse_signed(told_all)


# For a cloud


@pytest.mark.parametrize(
    ("what", "there"),
    [("placement_endpoint", "http://elsewhere"), ("region", "RegionTwo"), ("region", None)],
)
def test_plan_for_another_cloud_is_refused(told: t.Any, what: str, there: str | None) -> None:
    told[what] = there

    with pytest.raises(InvalidInput, match=f"its {what} is {there}, .* {getattr(HERE, what)}"):
        check_cloud(parse_signed(told), HERE)


def test_other_credentials_of_the_same_cloud_are_accepted(told: t.Any) -> None:
    check_cloud(
        parse_signed(told), d.replace(HERE, project="another", compute_endpoint="http://proxy")
    )


# Within limits


@pytest.mark.parametrize(
    ("changes", "max_changes", "max_share", "consumers"),
    [
        (0, 0, 0.0, 0),
        (3, 3, 1.0, 3),
        (20, 100, 0.0, 20),
        (21, 100, 0.1, 210),
        (21, 21, 1.0, 21),
        (21, 21, 0.0, None),
    ],
)
def test_run_within_both_limits_is_allowed(
    changes: int, max_changes: int, max_share: float, consumers: int | None
) -> None:
    _plan(changes, consumers).check_limits(Limits(max_changes, max_share))


def _get_needed_limit(refusal: pytest.ExceptionInfo[BreakerTripped]) -> float:
    """Return the limit that a refusal suggests."""
    (needed,) = re.findall(r"to ([\d.]+) or more", str(refusal.value))
    return float(needed)


@pytest.mark.parametrize("consumers", [1000, None])
@pytest.mark.parametrize(("changes", "max_changes"), [(1, 0), (4, 3), (101, 100)])
def test_one_change_above_the_limit_is_refused(
    changes: int, max_changes: int, consumers: int | None
) -> None:
    with pytest.raises(BreakerTripped, check=has_id("too_many_changes")) as refusal:
        _plan(changes, consumers).check_limits(Limits(max_changes, 1.0))

    assert refusal.value.count == _get_needed_limit(refusal) == changes
    assert f"max_changes is {max_changes}:" in str(refusal.value)
    assert str(refusal.value).startswith("1 change " if changes == 1 else f"{changes} changes ")


@pytest.mark.parametrize("groups", [HostGroups(), RACK], ids=["all", "rack"])
@pytest.mark.parametrize(
    ("changes", "max_share", "consumers"),
    [(21, 0.1, 209), (21, 0.0, 1_000_000), (22, 0.1, 210), (21, 0.5, 0)],
)
def test_too_large_a_fraction_is_refused(
    changes: int, max_share: float, consumers: int, groups: HostGroups
) -> None:
    with pytest.raises(BreakerTripped, check=has_id("too_large_share")) as refusal:
        d.replace(_plan(changes, consumers), groups=groups).check_limits(Limits(1000, max_share))

    assert refusal.value.count == changes
    assert f"{changes} of {consumers} " in str(refusal.value)
    assert f"max_share is {max_share:g}:" in str(refusal.value)
    for named in ("aggregate rack-7", "orphan_cleanup_hosts"):
        assert (named in str(refusal.value)) is (groups == RACK)


def test_limits_of_a_group_are_those_of_a_cloud() -> None:
    plan = d.replace(_plan(20, 20), groups=RACK)

    plan.check_limits(Limits(100, 0.1))
    with pytest.raises(BreakerTripped, check=has_id("too_many_changes")):
        plan.check_limits(Limits(19, 1.0))


@pytest.mark.parametrize(
    ("changes", "consumers"), [(21, 30), (50, 100), (21, 1000), (29, 100), (33, 32_999), (100, 3)]
)
def test_fraction_suggested_by_the_refusal_is_sufficient(changes: int, consumers: int) -> None:
    plan = _plan(changes, consumers)
    with pytest.raises(BreakerTripped) as refusal:
        plan.check_limits(Limits(1000, 0.001))

    plan.check_limits(Limits(1000, _get_needed_limit(refusal)))


@pytest.mark.parametrize("max_changes", [0, 1, 100])
@pytest.mark.parametrize("max_share", [0, 0.1, 1])
def test_possible_limits_are_taken_as_they_are(max_changes: int, max_share: float) -> None:
    options = {"max_changes": max_changes, "max_share": max_share}

    assert parse_limits(options) == Limits(max_changes, max_share)


@pytest.mark.parametrize(
    "wrong",
    [{"max_changes": -1}, {"max_share": -0.001}, {"max_share": 10}, {"max_share": float("nan")}],
    ids=str,
)
def test_impossible_limits_are_refused(wrong: dict[str, t.Any]) -> None:
    """10 is meant as a percentage, and would switch the limit off."""
    with pytest.raises(InvalidInput):
        parse_limits({"max_changes": 1, "max_share": 0.1, **wrong})


def test_a_run_ends_after_one_failure_at_the_earliest() -> None:
    with pytest.raises(InvalidInput):
        FailureOptions.max_failures.parse(0)


@pytest.mark.parametrize(
    ("failed", "allowed", "goes_on"),
    [(0, 1, True), (1, 1, False), (4, 5, True), (5, 5, False), (8, 5, False)],
)
def test_run_continues_while_one_more_failure_is_allowed(
    failed: int, allowed: int, goes_on: bool
) -> None:
    assert (explain_abort(failed, allowed) is None) is goes_on


# Servers that Nova is to heal


@pytest.fixture(name="bare")
def _bare() -> t.Any:
    """Return the findings about three servers without allocations, and one deleted server.

    For one of the three a change is known.
    """
    world = World()
    here = world.host("compute-1")
    world.delete(world.server(here, here))
    for _number in range(3):
        world.server(here)
    findings = _read_back(build_findings(world.snapshot(), NO_MINIMUM_AGE))
    for entry in _missing(findings)[1:]:
        entry["change"] = None
    return findings


def _missing(findings: t.Any) -> list[t.Any]:
    return [entry for entry in findings["findings"] if entry["kind"] == "missing_allocation"]


def test_servers_missing_an_allocation_are_healed_with_or_without_a_change(bare: t.Any) -> None:
    servers = [entry["consumer"] for entry in _missing(bare)]

    assert len(servers) == 3 and list_servers_to_heal(bare, Limits(3, 0)) == sorted(servers)


def test_unselected_servers_are_neither_healed_nor_counted(bare: t.Any) -> None:
    chosen, *others = _missing(bare)
    for entry in others:
        entry["selected"] = False

    assert list_servers_to_heal(bare, Limits(1, 0)) == [chosen["consumer"]]


def test_servers_above_the_limit_are_not_healed_at_all(bare: t.Any) -> None:
    with pytest.raises(BreakerTripped, check=has_id("too_many_changes")):
        list_servers_to_heal(bare, Limits(2, 1))


def test_servers_above_the_fraction_are_healed_only_if_named() -> None:
    world = World()
    here = world.host("compute-1")
    for _number in range(21):
        world.server(here)
    findings = _read_back(build_findings(world.snapshot(), NO_MINIMUM_AGE))
    findings["summary"]["coverage"]["consumers"] = 100

    with pytest.raises(BreakerTripped, check=has_id("too_large_share")):
        list_servers_to_heal(findings, Limits(100, 0.2))
    findings["scope"]["hosts"] = ["compute-1"]
    assert len(list_servers_to_heal(findings, Limits(100, 0.2))) == 21


def test_unsound_reading_heals_no_server(bare: t.Any) -> None:
    bare["summary"]["coverage"]["failed_checks"] = ["A cell is silent."]

    with pytest.raises(UnsoundReading):
        list_servers_to_heal(bare, Limits(3, 1))


@pytest.mark.parametrize(
    "wrong", ["--force", "6F7A1F5C-2A2C-4F0C-8F07-0D3A6D6F1C11", "$(reboot)", "", None, 7], ids=repr
)
def test_server_without_a_uuid_is_not_healed(bare: t.Any, wrong: t.Any) -> None:
    for entry in _missing(bare):
        entry["consumer"] = wrong

    with pytest.raises(InvalidInput):
        list_servers_to_heal(bare, Limits(3, 1))


# Shards


def test_plan_names_its_shard() -> None:
    findings = _report(scope=Scope(shard=Shard(2, 8)))
    plan = Plan.from_findings(findings, ALL_KINDS)

    assert plan.as_dict()["shard"] == {"number": 2, "count": 8}
    assert parse_signed(_read_back(plan.as_dict())) == plan


@pytest.mark.parametrize(
    "shard",
    [*({"number": number, "count": 8} for number in (0, 9, 1.0)), *({"number": 2}, "2/8", [])],
    ids=repr,
)
def test_plan_with_an_invalid_shard_is_refused(told: t.Any, shard: t.Any) -> None:
    with pytest.raises(InvalidInput):
        parse_signed({**told, "shard": shard})


@pytest.mark.parametrize(
    ("max_changes", "count"), [(100, 8), (7, 3), (2, 5), (0, 2), (5, 5), (1, 1)]
)
def test_shards_together_may_change_as_much_as_one_run(max_changes: int, count: int) -> None:
    allowed = [_most(number, count, max_changes) for number in range(1, count + 1)]

    assert sum(allowed) == max_changes
    assert allowed == sorted(allowed, reverse=True)
    assert allowed[0] - allowed[-1] <= 1


def _most(number: int, count: int, max_changes: int) -> int:
    """Return how many changes a shard may make, found by trial."""
    most = 0
    plan = d.replace(_plan(max_changes + 1, None), shard=Shard(number, count))
    for changes in range(1, max_changes + 2):
        try:
            d.replace(plan, steps=plan.steps[:changes]).check_limits(Limits(max_changes, 1.0))
        except BreakerTripped:
            return most
        most = changes
    return most


def test_shard_above_its_part_of_the_limit_says_what_is_needed() -> None:
    plan = d.replace(_plan(5, None), shard=Shard(2, 8))
    with pytest.raises(BreakerTripped, match=r"30, .* shard 2/8 .* 4") as refusal:
        plan.check_limits(Limits(30, 1.0))
    assert _get_needed_limit(refusal) == 34
    plan.check_limits(Limits(34, 1.0))
    with pytest.raises(BreakerTripped):
        plan.check_limits(Limits(33, 1.0))


@pytest.mark.parametrize(
    "edit",
    [
        lambda plan: plan["changes"].pop(),
        lambda plan: plan["changes"].reverse(),
        lambda plan: plan.update(note="approved"),
        lambda plan: plan.update(shard={"number": 1, "count": 1}),
        lambda plan: plan["changes"][0].update(generation=True),
    ],
)
def test_every_edit_of_a_plan_is_refused(told: t.Any, edit: t.Callable[[t.Any], object]) -> None:
    """That of each field is in `test_plan_properties`."""
    assert Plan.parse(told).as_dict() == told
    edit(told)

    with pytest.raises(InvalidInput, match="digest"):
        Plan.parse(told)


def test_compact_plan_of_an_earlier_version_is_refused(told: t.Any) -> None:
    with pytest.raises(InvalidInput, match="compact"):
        Plan.parse(sign({**told, "compact": 1}))


def test_plan_with_a_kind_that_may_not_be_changed_is_refused(told: t.Any) -> None:
    plan = parse_signed(told)
    kinds = {step.kind for step in plan.all_steps}

    plan.check_kinds(kinds)
    for left_out in kinds:
        with pytest.raises(InvalidInput, match=left_out):
            plan.check_kinds(kinds - {left_out})


def test_digest_is_of_the_keys_in_their_order_as_plain_ascii() -> None:
    canonical = rb'{"a":1,"b":"\u00e9"}'
    expected = hashlib.sha256(canonical).hexdigest()

    assert digest_others({"digest": "?", "b": "é", "a": 1}) == expected


def test_plan_without_a_digest_is_refused(told: t.Any) -> None:
    del told["digest"]

    with pytest.raises(InvalidInput, match="'digest' is missing"):
        Plan.parse(told)


def _may_be_planned(findings: t.Any, detected: dict[str, t.Any], named: dict[str, t.Any]) -> bool:
    """Return whether findings about this scope may be planned by a user who names that."""
    try:
        check_scope({**findings, "scope": {**findings["scope"], **detected}}, named)
    except InvalidInput as refusal:
        assert any(f" the {option} that are named " in str(refusal) for option in named)
        return False
    return True


@pytest.mark.parametrize("option", ["hosts", "consumers", "projects", "kinds"])
@pytest.mark.parametrize(
    ("detected", "named", "allowed"),
    [
        (["a"], [], True),
        (["a"], [" a "], True),
        (["a"], ["a", "b"], True),
        ([], ["a"], False),
        (["b"], ["a"], False),
        (["a", "b"], ["a"], False),
    ],
)
def test_findings_about_more_than_is_named_now_are_refused(
    findings: t.Any, option: str, detected: list[str], named: list[str], allowed: bool
) -> None:
    """Otherwise an earlier detection of the whole cloud would be changed, and not one host."""
    assert _may_be_planned(findings, {option: detected}, {option: named}) is allowed


RACK_ID, CELL_ID, PROJECT_ID = (f"0a1b2c3d-0000-4000-8000-00000000000{end}" for end in "ace")
NOTHING = {name: [] for name in (*SCOPE_NAMES, "aggregate_names", "aggregate_numbers")}
OF_RACK = {
    "groups": {
        **NOTHING,
        "aggregates": [RACK_ID],
        "aggregate_names": ["rack-7"],
        "aggregate_numbers": ["7"],
    }
}
OF_ZONE = {"groups": {**NOTHING, "availability_zones": ["az1"], "cells": [CELL_ID]}}
OF_PROJECT = {"projects": [PROJECT_ID], "project_names": ["theirs"]}


@pytest.mark.parametrize(
    ("detected", "named", "allowed"),
    [
        ({}, {}, True),
        ({"hosts": ["a"]}, {"hosts": [], "consumers": []}, True),
        ({"hosts": ["a"]}, {"hosts": ["a"], "projects": ["theirs"]}, False),
        (OF_RACK, {}, True),
        (OF_RACK, {"aggregates": ["rack-7"]}, True),
        (OF_RACK, {"aggregates": ["7"]}, True),
        (OF_RACK, {"aggregates": [RACK_ID.upper().replace("-", "")]}, True),
        (OF_RACK, {"aggregates": ["rack-7", "rack-8"]}, True),
        (OF_RACK, {"aggregates": ["rack-8"]}, False),
        (OF_RACK, {"availability_zones": ["rack-7"]}, False),
        (OF_RACK, {"hosts": ["a"]}, False),
        ({"hosts": ["rack-7"]}, {"aggregates": ["rack-7"]}, False),
        (OF_ZONE, {"availability_zones": ["az1", "az2"], "cells": [CELL_ID]}, True),
        (OF_ZONE, {"availability_zones": ["az2"], "cells": [CELL_ID]}, False),
        (OF_ZONE, {"availability_zones": ["az1"], "cells": ["cell2"]}, False),
        (OF_PROJECT, {"projects": ["theirs"]}, True),
        (OF_PROJECT, {"projects": [PROJECT_ID.replace("-", "")]}, True),
        (OF_PROJECT, {"projects": ["ours"]}, False),
        ({"projects": [PROJECT_ID]}, {"projects": [PROJECT_ID.upper()]}, True),
        ({"projects": [PROJECT_ID], "project_names": [""]}, {"projects": ["theirs"]}, False),
        *(({}, {name: ["a"]}, False) for name in ("aggregates", "availability_zones", "cells")),
    ],
)
def test_group_and_project_may_be_named_in_each_way(
    findings: t.Any, detected: dict[str, t.Any], named: dict[str, t.Any], allowed: bool
) -> None:
    assert _may_be_planned(findings, detected, named) is allowed


@pytest.mark.parametrize("groups", [{"groups": None}, {"groups": {}}, {}], ids=str)
def test_findings_without_groups_are_about_none(findings: t.Any, groups: t.Any) -> None:
    """Files of version 1.0 have no key for them."""
    del findings["scope"]["groups"]

    assert not _may_be_planned(findings, groups, {"cells": ["a"]})
    findings["scope"] |= groups
    assert Plan.from_findings(findings, ALL_KINDS).groups == HostGroups()
