"""Which changes a run may make, and how many.

And that a plan is read back unchanged, or refused.
"""

from __future__ import annotations

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
from .......plugins.module_utils._core.models.placement import ProviderDetails
from .......plugins.module_utils._core.models.snapshot import HostGroups, Scope, Shard
from .......plugins.module_utils._core.options.policy import Policy
from .......plugins.module_utils._core.plan.limits import Limits
from .......plugins.module_utils._core.plan.plan import (
    Plan,
    Step,
    TreeStep,
    check_cloud,
    check_scope,
    digest_others,
    list_servers_to_heal,
)
from .....reasons import has_id
from ...judging import NO_MINIMUM_AGE, build_findings, judge
from ...world import NOW, PLENTY, World
from .signed import parse_signed, sign

HERE = World().snapshot().cloud
ALL_KINDS = tuple(kind.name for kind in CHANGEABLE_KINDS)
ELSEWHERE = "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"


def _world() -> World:
    """Return a cloud with changes of every action, with and without a partner.

    And with a protected and an undecided consumer.
    """
    world = World()
    here, there, third = (world.host(f"compute-{number}") for number in (1, 2, 3))
    world.server(third)
    world.server(here, there)
    swapped = world.server(here, there)
    world.migration(swapped, here, there, "reverted", here)
    world.server(there, here, there)
    world.delete(world.server(here, here))
    world.stranger(here, type="INSTANCE")
    world.server(here, there, task_state="migrating")
    world.server(here, there, node="elsewhere")
    return world


def _report(**snapshot: t.Any) -> t.Any:
    return json.loads(json.dumps(build_findings(_world().snapshot(**snapshot), NO_MINIMUM_AGE)))


@pytest.fixture(name="findings")
def _findings() -> t.Any:
    return _report()


@pytest.fixture(name="told")
def _told(findings: t.Any) -> t.Any:
    return json.loads(json.dumps(Plan.from_findings(findings, ALL_KINDS).as_dict()))


@pytest.fixture(name="ruins")
def _ruins() -> t.Any:
    """Return the findings about two orphaned providers and a deleted server.

    One of the providers has a child and a grandchild.
    """
    world = World()
    here = world.host("compute-1")
    world.delete(world.server(here, here))
    bare, full = world.provider("ghost-1"), world.provider("ghost-2")
    world.provider("ghost-2_port", world.provider("ghost-2_agent", full))
    of_a_host = ProviderDetails(
        {"VCPU": PLENTY, "MEMORY_MB": PLENTY}, traits=frozenset({"COMPUTE_NODE"})
    )
    return json.loads(
        json.dumps(
            build_findings(
                world.snapshot(details=dict.fromkeys((bare, full), of_a_host)), NO_MINIMUM_AGE
            )
        )
    )


@pytest.fixture(name="told_ruins")
def _told_ruins(ruins: t.Any) -> t.Any:
    return json.loads(json.dumps(Plan.from_findings(ruins, ALL_KINDS).as_dict()))


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
        told = told[part]
    return told


def _of_kind(told: t.Any, kind: str) -> t.Any:
    (entry,) = [entry for entry in told["changes"] if entry["kind"] == kind]
    return entry


# From findings


def test_changeable_kinds_are_all_but_the_report_only_ones() -> None:
    assert [kind.name for kind in KINDS if kind.by_default != REPORT] == list(ALL_KINDS)


def test_changeable_kinds_change_allocations_or_trees() -> None:
    assert [kind.name for kind in CHANGEABLE_KINDS if kind not in CONSUMER_KINDS] == [
        "orphaned_provider",
        "name_conflict",
    ]


def test_only_findings_of_the_chosen_kinds_are_planned(findings: t.Any) -> None:
    assert sorted(step.kind for step in _steps(findings, ["deleted_server", "extra_host"])) == [
        "deleted_server",
        "extra_host",
    ]


def test_plan_is_empty_without_chosen_kinds(findings: t.Any) -> None:
    assert _steps(findings, []) == ()


def test_protected_and_undecided_consumers_are_never_planned(findings: t.Any) -> None:
    spared = {
        entry["consumer"] for verdict in ("protected", "undecided") for entry in findings[verdict]
    }
    kinds = {
        entry["kind"]
        for verdict in ("findings", "protected", "undecided")
        for entry in findings[verdict]
    }

    assert spared and not spared & {step.change.consumer for step in _steps(findings, kinds)}


def test_unselected_findings_are_not_planned(findings: t.Any) -> None:
    for entry in findings["findings"]:
        entry["selected"] = entry["kind"] == "extra_host"

    assert [step.kind for step in _steps(findings)] == ["extra_host"]


def test_orphan_without_a_change_is_not_planned(findings: t.Any) -> None:
    for entry in findings["findings"]:
        entry["change"] = None

    assert _steps(findings) == ()


def test_planned_change_is_exactly_the_one_found(findings: t.Any) -> None:
    found = {
        finding.id: (finding.kind, finding.change)
        for finding in judge(_world().snapshot(), NO_MINIMUM_AGE)
        if finding.change
    }

    assert {step.finding: (step.kind, step.change) for step in _steps(findings)} == found


def test_changes_that_free_capacity_come_before_changes_that_use_it(findings: t.Any) -> None:
    actions = [step.change.action for step in _steps(findings)]

    assert actions == ["remove", "remove", "reduce", "rewrite", "rewrite", "create"]


def test_equal_findings_in_any_order_make_equal_plans(findings: t.Any) -> None:
    before = Plan.from_findings(findings, ALL_KINDS)
    findings["findings"].reverse()

    assert Plan.from_findings(findings, ALL_KINDS) == before


def test_step_shows_its_write_and_what_it_frees(findings: t.Any) -> None:
    (entry,) = [entry for entry in findings["findings"] if entry["kind"] == "extra_host"]
    (step,) = _steps(findings, ["extra_host"])

    assert json.loads(json.dumps(step.as_dict())) == {
        "finding": entry["id"],
        "kind": "extra_host",
        **entry["change"],
    }


def test_plan_says_where_and_when_its_findings_were_made(findings: t.Any) -> None:
    plan = Plan.from_findings(findings, [])

    assert (plan.placement_endpoint, plan.region, plan.detected_at) == (
        HERE.placement_endpoint,
        HERE.region,
        NOW,
    )


def test_failed_soundness_check_refuses_the_whole_plan_and_says_why(findings: t.Any) -> None:
    findings["summary"]["coverage"]["failed_checks"] = ["A cell is not answering.", "Wrong region."]

    with pytest.raises(
        UnsoundReading,
        match=(
            r"Nothing may be changed after this reading\. "
            r"A cell is not answering\. Wrong region\."
        ),
    ):
        Plan.from_findings(findings, ALL_KINDS)


def test_refusal_says_two_failed_checks_and_counts_the_others(findings: t.Any) -> None:
    findings["summary"]["coverage"]["failed_checks"] = ["One.", "Two.", "Three.", "Four."]

    with pytest.raises(UnsoundReading) as refusal:
        Plan.from_findings(findings, ALL_KINDS)
    assert str(refusal.value).endswith("reading. One. Two. 2 more checks failed.")


def test_failed_soundness_check_refuses_even_an_empty_plan(findings: t.Any) -> None:
    findings["summary"]["coverage"]["failed_checks"] = ["A cell is not answering."]

    with pytest.raises(UnsoundReading):
        Plan.from_findings(findings, [])


@pytest.mark.parametrize("newer", [0, 2, "1", None])
def test_findings_of_another_format_are_refused(findings: t.Any, newer: t.Any) -> None:
    findings["format"] = newer

    with pytest.raises(
        InvalidInput,
        match=(f"findings has format {newer!r}, and this version of the collection reads format 1"),
    ):
        Plan.from_findings(findings, ALL_KINDS)


@pytest.mark.parametrize("foreign", [None, [], "findings", 7, {}, {"changed": False}], ids=repr)
@pytest.mark.parametrize(
    ("read", "writer"),
    [
        (lambda told: Plan.from_findings(told, ALL_KINDS), "orphan_detect"),
        (Plan.parse, "orphan_plan"),
    ],
)
def test_findings_without_a_format_are_refused(
    read: t.Callable[[t.Any], Plan], writer: str, foreign: t.Any
) -> None:
    with pytest.raises(InvalidInput, match=f"does not have the form that {writer} writes"):
        read(foreign)


@pytest.mark.parametrize(
    "foreign", [{"format": 1}, {"format": 1, "summary": []}, {"format": 1, "changes": {}}], ids=repr
)
@pytest.mark.parametrize(
    ("read", "writer"),
    [
        (lambda told: Plan.from_findings(told, ALL_KINDS), "orphan_detect"),
        (Plan.parse, "orphan_plan"),
    ],
)
def test_findings_of_another_shape_are_refused(
    read: t.Callable[[t.Any], Plan], writer: str, foreign: t.Any
) -> None:
    with pytest.raises(InvalidInput, match=f"not have the form that {writer} writes"):
        read(foreign)


@pytest.mark.parametrize(
    "path",
    [
        ("cloud",),
        ("cloud", "region"),
        ("cloud", "placement_endpoint"),
        ("finished_at",),
        ("scope",),
        ("scope", "hosts"),
        ("scope", "consumers"),
        ("scope", "shard"),
        ("summary",),
        ("summary", "coverage"),
        ("summary", "coverage", "failed_checks"),
        ("summary", "coverage", "consumers"),
        ("findings",),
        ("findings", 0, "id"),
        ("findings", 0, "kind"),
        ("findings", 0, "selected"),
        ("findings", 0, "change"),
        ("findings", 0, "change", "consumer"),
        ("findings", 0, "change", "generation"),
        ("findings", 0, "change", "partner"),
        ("findings", 0, "change", "action"),
        ("findings", 0, "change", "frees"),
        ("findings", 0, "change", "before"),
        ("findings", 0, "change", "after"),
        ("findings", 0, "change", "before", "allocations"),
        ("findings", 0, "change", "before", "project_id"),
        ("findings", 0, "change", "before", "consumer_generation"),
        ("findings", 0, "change", "after", "allocations"),
        ("findings", 0, "change", "after", "consumer_generation"),
    ],
    ids=str,
)
def test_incomplete_findings_are_refused(findings: t.Any, path: tuple[t.Any, ...]) -> None:
    *way, last = path
    del _at(findings, *way)[last]

    with pytest.raises(InvalidInput):
        Plan.from_findings(findings, ALL_KINDS)


def test_plan_has_the_number_of_consumers_read(findings: t.Any) -> None:
    assert (
        Plan.from_findings(findings, ALL_KINDS).consumers
        == findings["summary"]["coverage"]["consumers"]
        == 8
    )


@pytest.mark.parametrize("scope", [Scope(hosts=("compute-1",)), Scope(consumers=(ELSEWHERE,))])
def test_plan_of_named_hosts_or_consumers_has_no_number_of_consumers(scope: Scope) -> None:
    assert Plan.from_findings(_report(scope=scope), ALL_KINDS).consumers is None


RACK = HostGroups(
    aggregates=("uuid-7",), aggregate_names=("rack-7",), aggregate_numbers=("7",), hosts=("c1",)
)


def test_plan_of_a_group_counts_the_consumers_and_remembers_the_group() -> None:
    plan = Plan.from_findings(_report(scope=Scope(groups=RACK)), ALL_KINDS)
    document = json.loads(json.dumps(plan.as_dict()))

    assert plan.consumers == 8
    # The hosts are looked up again when it is applied.
    assert document["groups"] == {
        "aggregates": ["uuid-7"],
        "aggregate_names": ["rack-7"],
        "availability_zones": [],
        "cells": [],
    }
    assert parse_signed(document).groups == HostGroups(
        aggregates=("uuid-7",), aggregate_names=("rack-7",)
    )


def test_plan_of_hosts_within_a_group_has_no_number_of_consumers() -> None:
    findings = _report(scope=Scope(hosts=("compute-1",), groups=RACK))

    assert Plan.from_findings(findings, ALL_KINDS).consumers is None


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
    plan = Plan.from_findings(_report(scope=Scope(groups=RACK)), ALL_KINDS)
    document = json.loads(json.dumps(plan.as_dict()))
    document["groups"] |= change

    with pytest.raises(InvalidInput, match="plan again"):
        parse_signed(document)


def test_too_large_a_share_of_a_group_is_refused_and_says_of_which() -> None:
    plan = d.replace(_plan(21, 100), groups=RACK)

    with pytest.raises(BreakerTripped) as error:
        plan.check_limits(Limits(100, 0.1))

    assert str(error.value) == (
        "21 of 100 consumers of aggregate rack-7 would be changed and max_share is 0.1: nothing "
        "was changed. Review the findings, and if they are right, set max_share "
        "(orphan_cleanup_max_share) to 0.21 or more. If these are all allocations of dead hosts, "
        "name those hosts in hosts (orphan_cleanup_hosts), where this limit does not apply."
    )
    d.replace(_plan(20, 20), groups=RACK).check_limits(Limits(100, 0.1))
    with pytest.raises(BreakerTripped, match="max_changes"):
        d.replace(_plan(20, 20), groups=RACK).check_limits(Limits(19, 1.0))


@pytest.mark.parametrize(
    "consumers", [None, "many", "8", [], True, 8.0, float("inf"), -1], ids=repr
)
def test_invalid_number_of_consumers_is_refused(
    findings: t.Any, told: t.Any, consumers: t.Any
) -> None:
    findings["summary"]["coverage"]["consumers"] = consumers
    told["consumers"] = consumers

    with pytest.raises(InvalidInput, match="not have the form that orphan_detect writes"):
        Plan.from_findings(findings, ALL_KINDS)
    if consumers is not None:
        with pytest.raises(InvalidInput, match="not have the form that orphan_plan writes"):
            parse_signed(told)


def test_planning_does_not_modify_the_findings(findings: t.Any) -> None:
    before = copy.deepcopy(findings)
    Plan.from_findings(findings, ALL_KINDS)

    assert findings == before


# From a plan


def test_written_plan_is_read_back_unchanged(findings: t.Any, told: t.Any) -> None:
    assert parse_signed(told) == Plan.from_findings(findings, ALL_KINDS)


def test_reviewed_plan_keeps_its_order(told: t.Any) -> None:
    told["changes"].reverse()

    assert parse_signed(told).as_dict() == sign(told)


def test_change_deleted_from_a_plan_stays_out(told: t.Any) -> None:
    taken = told["changes"].pop()

    assert taken["finding"] not in {step.finding for step in parse_signed(told).steps}


@pytest.mark.parametrize("newer", [0, 2, "1", None])
def test_plan_of_another_format_is_refused(told: t.Any, newer: t.Any) -> None:
    told["format"] = newer

    with pytest.raises(InvalidInput, match=f"plan has format {newer!r}"):
        parse_signed(told)


@pytest.mark.parametrize(
    "missing", ["placement_endpoint", "region", "detected_at", "consumers", "changes"]
)
def test_incomplete_plan_is_refused(told: t.Any, missing: str) -> None:
    del told[missing]

    with pytest.raises(InvalidInput, match=f"'{missing}' is missing"):
        parse_signed(told)


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize(
    "share",
    [
        None,
        7,
        {},
        {"resources": None},
        {"resources": "VCPU"},
        {"resources": {}},
        {"resources": {"VCPU": 1}, "generation": 5},
    ],
    ids=repr,
)
def test_invalid_allocation_is_refused(told: t.Any, side: str, share: t.Any) -> None:
    told["changes"][0][side]["allocations"] = {ELSEWHERE: share}

    with pytest.raises(InvalidInput):
        parse_signed(told)


@pytest.mark.parametrize("amount", [0, -1, True, 1.0, "1", None], ids=repr)
def test_invalid_amount_is_refused(told: t.Any, amount: t.Any) -> None:
    for share in told["changes"][0]["before"]["allocations"].values():
        share["resources"]["VCPU"] = amount

    with pytest.raises(InvalidInput, match="must have whole amounts above zero") as raised:
        parse_signed(told)
    assert f", {amount} VCPU on " in str(raised.value)


def test_refusal_has_at_most_100_characters_of_each_name(told: t.Any) -> None:
    share = {"resources": {"C" * 101: 0}}
    told["changes"][0]["before"]["allocations"] = {"p" * 101: share}

    with pytest.raises(InvalidInput) as refused:
        parse_signed(told)
    assert f"{'p' * 99}…" in str(refused.value) and f" 0 {'C' * 97}…" in f" {refused.value}"


@pytest.mark.parametrize(
    "provider", ["", "compute-1", "../x", ELSEWHERE.upper(), ELSEWHERE.replace("-", "")]
)
def test_provider_that_is_not_a_uuid_is_refused(told: t.Any, provider: str) -> None:
    told["changes"][0]["before"]["allocations"] = {provider: {"resources": {"VCPU": 1}}}

    with pytest.raises(InvalidInput, match="on providers named by UUID"):
        parse_signed(told)


@pytest.mark.parametrize(
    "consumer", ["", "../resource_providers", ELSEWHERE.upper(), None, 7], ids=repr
)
def test_consumer_that_is_not_a_uuid_is_refused_even_if_the_finding_agrees(
    told: t.Any, consumer: t.Any
) -> None:
    told["changes"][0] |= {
        "consumer": consumer,
        "finding": f"{told['changes'][0]['kind']}/{consumer}",
    }

    with pytest.raises(InvalidInput):
        parse_signed(told)


@pytest.mark.parametrize(
    "change",
    [{"consumer": ELSEWHERE}, {"kind": "wrong_amount"}, {"finding": f"deleted_server/{ELSEWHERE}"}],
    ids=str,
)
def test_change_that_differs_from_its_finding_is_refused(
    told: t.Any, change: dict[str, str]
) -> None:
    told["changes"][0] |= change

    with pytest.raises(InvalidInput, match="which it cannot resolve"):
        parse_signed(told)


@pytest.mark.parametrize("kind", ["orphaned_provider", "stale_service", "protected", ""])
def test_kind_that_changes_no_allocation_is_refused(told: t.Any, kind: str) -> None:
    told["changes"][0] |= {"kind": kind, "finding": f"{kind}/{told['changes'][0]['consumer']}"}

    with pytest.raises(InvalidInput, match="which it cannot resolve"):
        parse_signed(told)


def test_kind_of_version_1_is_refused_with_its_name_of_today(told: t.Any) -> None:
    told["changes"][0] |= {"kind": "wrong_host", "finding": f"wrong_host/{ELSEWHERE}"}

    with pytest.raises(InvalidInput, match="renamed to extra_host in version 2"):
        parse_signed(told)


@pytest.mark.parametrize("side", ["before", "after"])
def test_document_with_another_generation_than_its_change_is_refused(
    told: t.Any, side: str
) -> None:
    told["changes"][0][side]["consumer_generation"] = 7

    with pytest.raises(InvalidInput, match="has generation 7, and the change has 1"):
        parse_signed(told)


@pytest.mark.parametrize("where", ["generation", "before", "after"])
@pytest.mark.parametrize("generation", [True, 1.0])
def test_generation_that_only_equals_one_is_refused(
    told: t.Any, where: str, generation: t.Any
) -> None:
    """Python treats these as equal to 1, and Placement would receive them as they are."""
    change = told["changes"][0]
    if where == "generation":
        change[where] = generation
    else:
        change[where]["consumer_generation"] = generation

    with pytest.raises(InvalidInput, match="has generation"):
        parse_signed(told)


def test_existing_consumer_without_a_generation_is_refused(told: t.Any) -> None:
    """Without one Placement would treat the write as that of a new consumer."""
    change = told["changes"][0]
    change["generation"] = change["before"]["consumer_generation"] = change["after"][
        "consumer_generation"
    ] = None

    with pytest.raises(
        InvalidInput,
        match="starts from generation None, which contradicts its allocations before the change",
    ):
        parse_signed(told)


@pytest.mark.parametrize("told_by", ["action", "frees", "claims"])
def test_fields_that_contradict_the_documents_are_refused(told: t.Any, told_by: str) -> None:
    told["changes"][0][told_by] = "create" if told_by == "action" else {ELSEWHERE: {"VCPU": 1}}

    with pytest.raises(InvalidInput, match=f"contradicts itself: {told_by} must match"):
        parse_signed(told)


def test_change_with_unknown_fields_is_refused(told: t.Any) -> None:
    told["changes"][0]["force"] = True

    with pytest.raises(InvalidInput, match="contradicts itself: force"):
        parse_signed(told)


@pytest.mark.parametrize("owner", ["project_id", "user_id", "consumer_type"])
@pytest.mark.parametrize("value", [None, "", 7, ["x"]], ids=repr)
def test_invalid_owner_is_refused(told: t.Any, owner: str, value: t.Any) -> None:
    told["changes"][0]["before"][owner] = value

    with pytest.raises(InvalidInput, match="each as text that is not empty"):
        parse_signed(told)


def test_document_with_unknown_fields_is_refused(told: t.Any) -> None:
    told["changes"][0]["after"]["mappings"] = "all"

    with pytest.raises(
        InvalidInput,
        match="must have project_id and user_id, and may have consumer_type: it has mappings",
    ):
        parse_signed(told)


def test_consumer_changed_twice_is_refused(told: t.Any) -> None:
    told["changes"].append(told["changes"][0])

    with pytest.raises(InvalidInput, match="The plan changes consumer"):
        parse_signed(told)


def test_consumer_that_is_also_a_partner_is_refused(told: t.Any) -> None:
    partner = _of_kind(told, "unreverted_allocation")["partner"]
    told["changes"].append(
        {**partner, "kind": "ended_migration", "finding": f"ended_migration/{partner['consumer']}"}
    )

    with pytest.raises(
        InvalidInput, match=f"The plan changes consumer {partner['consumer']} twice"
    ):
        parse_signed(told)


@pytest.mark.parametrize("whose", ["partner", "consumer"])
def test_nested_partners_and_self_partners_are_refused(told: t.Any, whose: str) -> None:
    """One would never be written, and the other would have two documents."""
    change = _of_kind(told, "unreverted_allocation")
    change["partner"][whose] = (
        copy.deepcopy(told["changes"][0]) if whose == "partner" else change["consumer"]
    )

    with pytest.raises(
        InvalidInput, match="must be one other consumer, without a partner of its own"
    ):
        parse_signed(told)


@pytest.mark.parametrize("digit", ["0", "f"])
def test_partner_may_come_before_or_after_its_consumer(told: t.Any, digit: str) -> None:
    partner = f"{digit * 8}-0000-4000-8000-000000000000"
    change = _of_kind(told, "unreverted_allocation")
    change["partner"]["consumer"] = partner
    assert (partner < change["consumer"]) is (digit == "0")

    [step] = [step for step in parse_signed(told).steps if step.change.partner]

    assert step.change.partner and step.change.partner.consumer == partner


@pytest.mark.parametrize(
    "partner", [{}, [], 0, False, "", "somebody", 7, {"consumer": ELSEWHERE}], ids=repr
)
def test_invalid_partner_is_refused(told: t.Any, partner: t.Any) -> None:
    told["changes"][0]["partner"] = partner

    with pytest.raises(InvalidInput):
        parse_signed(told)


# Trees of providers


def test_trees_are_deleted_after_all_changes_of_allocations_children_first(ruins: t.Any) -> None:
    plan = Plan.from_findings(ruins, ALL_KINDS)

    assert [step.kind for step in plan.steps] == ["deleted_server"]
    assert [[provider.name for provider in step.change.providers] for step in plan.removals] == [
        ["ghost-1"],
        ["ghost-2_port", "ghost-2_agent", "ghost-2"],
    ]
    assert [change["action"] for change in plan.as_dict()["changes"]] == [
        "remove",
        "delete_providers",
        "delete_providers",
    ]


def test_trees_are_deleted_only_when_their_kind_is_chosen(ruins: t.Any) -> None:
    assert Plan.from_findings(ruins, [kind.name for kind in CONSUMER_KINDS]).removals == ()


def test_unselected_trees_are_kept(ruins: t.Any) -> None:
    for entry in ruins["findings"]:
        entry["selected"] = False

    assert Plan.from_findings(ruins, ALL_KINDS).removals == ()


def test_written_tree_deletion_is_read_back_unchanged(ruins: t.Any, told_ruins: t.Any) -> None:
    assert parse_signed(told_ruins) == Plan.from_findings(ruins, ALL_KINDS)


def test_trees_count_against_the_limit(ruins: t.Any) -> None:
    with pytest.raises(BreakerTripped, check=has_id("too_many_changes")):
        Plan.from_findings(ruins, ALL_KINDS).check_limits(Limits(2, 1.0))


def _without_the_root(change: t.Any) -> None:
    change["providers"].pop()


def _without_a_link(change: t.Any) -> None:
    del change["providers"][1]


def _without_any(change: t.Any) -> None:
    change["providers"].clear()


def _parents_first(change: t.Any) -> None:
    change["providers"].reverse()


def _with_a_stranger(change: t.Any) -> None:
    change["providers"].insert(
        -1, {"uuid": ELSEWHERE, "name": "another", "generation": 1, "parent": None}
    )


def _twice_the_same(change: t.Any) -> None:
    change["providers"].insert(0, change["providers"][0])


def _below_its_own_child(change: t.Any) -> None:
    change["providers"][-1]["parent"] = change["providers"][0]["uuid"]


def _its_own_parent(change: t.Any) -> None:
    change["providers"][0]["parent"] = change["providers"][0]["uuid"]


def _a_part_of_another(change: t.Any) -> None:
    change["providers"][-1]["parent"] = ELSEWHERE


def _by_name(change: t.Any) -> None:
    change["providers"][0]["uuid"] = "compute-1"


def _of_no_generation(change: t.Any) -> None:
    change["providers"][0]["generation"] = True


def _by_force(change: t.Any) -> None:
    change["force"] = True


def _as_a_claim(change: t.Any) -> None:
    change["action"] = "remove"


def _for_a_claim(change: t.Any) -> None:
    change |= {
        "kind": "deleted_server",
        "finding": f"deleted_server/{change['providers'][-1]['uuid']}",
    }


def _for_another(change: t.Any) -> None:
    change["finding"] = f"orphaned_provider/{ELSEWHERE}"


def _reported(change: t.Any) -> None:
    change |= {
        "kind": "capacity_mismatch",
        "finding": f"capacity_mismatch/{change['providers'][-1]['uuid']}",
    }


@pytest.mark.parametrize(
    "spoil",
    [
        _without_the_root,
        _without_a_link,
        _without_any,
        _parents_first,
        _with_a_stranger,
        _twice_the_same,
        _below_its_own_child,
        _its_own_parent,
        _a_part_of_another,
        _by_name,
        _of_no_generation,
        _by_force,
        _as_a_claim,
        _for_a_claim,
        _for_another,
        _reported,
    ],
)
def test_deletion_of_part_of_a_tree_is_refused(
    told_ruins: t.Any, spoil: t.Callable[[t.Any], None]
) -> None:
    change = next(
        change for change in told_ruins["changes"] if len(change.get("providers", ())) == 3
    )
    spoil(change)

    with pytest.raises(InvalidInput):
        parse_signed(told_ruins)


def test_tree_deleted_twice_is_refused(told_ruins: t.Any) -> None:
    told_ruins["changes"].append(told_ruins["changes"][-1])

    with pytest.raises(InvalidInput, match="The plan deletes a provider twice"):
        parse_signed(told_ruins)


def test_subject_of_a_deletion_is_the_root(ruins: t.Any) -> None:
    removals = Plan.from_findings(ruins, ALL_KINDS).removals

    assert removals
    for step in removals:
        assert isinstance(step, TreeStep)
        assert step.finding == f"orphaned_provider/{step.subject}"


# For a cloud


@pytest.mark.parametrize(
    ("what", "there"),
    [("placement_endpoint", "http://elsewhere"), ("region", "RegionTwo"), ("region", None)],
)
def test_plan_for_another_cloud_is_refused(told: t.Any, what: str, there: str | None) -> None:
    told[what] = there

    here = getattr(HERE, what)
    with pytest.raises(
        InvalidInput, match=f"for another cloud: its {what} is {there}, and this cloud's is {here}"
    ):
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


@pytest.mark.parametrize("consumers", [1000, None])
@pytest.mark.parametrize(("changes", "max_changes"), [(1, 0), (4, 3), (101, 100)])
def test_one_change_above_the_limit_is_refused(
    changes: int, max_changes: int, consumers: int | None
) -> None:
    with pytest.raises(BreakerTripped) as refusal:
        _plan(changes, consumers).check_limits(Limits(max_changes, 1.0))

    planned = "1 change is" if changes == 1 else f"{changes} changes are"
    assert f"{planned} planned and max_changes is {max_changes}: nothing was changed." in str(
        refusal.value
    )
    assert f"to {changes} or more." in str(refusal.value)


@pytest.mark.parametrize(
    ("changes", "max_share", "consumers"),
    [(21, 0.1, 209), (21, 0.0, 1_000_000), (22, 0.1, 210), (21, 0.5, 0)],
)
def test_too_large_a_fraction_is_refused(changes: int, max_share: float, consumers: int) -> None:
    with pytest.raises(BreakerTripped) as refusal:
        _plan(changes, consumers).check_limits(Limits(1000, max_share))

    assert (
        f"{changes} of {consumers} consumers would be changed and max_share is {max_share:g}: "
        "nothing was changed."
    ) in str(refusal.value)
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
def test_fraction_suggested_by_the_refusal_is_sufficient(changes: int, consumers: int) -> None:
    plan = _plan(changes, consumers)
    with pytest.raises(BreakerTripped) as refusal:
        plan.check_limits(Limits(1000, 0.001))
    told = re.search(r"orphan_cleanup_max_share\) to ([\d.]+) or more", str(refusal.value))
    assert told

    plan.check_limits(Limits(1000, float(told.group(1))))


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
    findings = json.loads(json.dumps(build_findings(world.snapshot(), NO_MINIMUM_AGE)))
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
    findings = json.loads(json.dumps(build_findings(world.snapshot(), NO_MINIMUM_AGE)))
    findings["summary"]["coverage"]["consumers"] = 100

    with pytest.raises(BreakerTripped, check=has_id("too_large_share")):
        list_servers_to_heal(findings, Limits(100, 0.2))
    findings["scope"]["hosts"] = ["compute-1"]
    assert len(list_servers_to_heal(findings, Limits(100, 0.2))) == 21


def test_unsound_reading_heals_no_server(bare: t.Any) -> None:
    bare["summary"]["coverage"]["failed_checks"] = ["A cell is not answering."]

    with pytest.raises(UnsoundReading, match=r"A cell is not answering\."):
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


def _of_shard(number: int, count: int, changes: int) -> Plan:
    return d.replace(_plan(changes, None), shard=Shard(number, count))


def test_plan_names_its_shard() -> None:
    findings = _report(scope=Scope(shard=Shard(2, 8)))
    plan = Plan.from_findings(findings, ALL_KINDS)

    assert plan.as_dict()["shard"] == {"number": 2, "count": 8}
    assert parse_signed(json.loads(json.dumps(plan.as_dict()))) == plan


@pytest.mark.parametrize(
    "shard",
    [
        {"number": 0, "count": 8},
        {"number": 9, "count": 8},
        {"number": 1.0, "count": 8},
        {"number": 2},
        "2/8",
        [],
    ],
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
    plan = _of_shard(number, count, max_changes + 1)
    for changes in range(1, max_changes + 2):
        try:
            d.replace(plan, steps=plan.steps[:changes]).check_limits(Limits(max_changes, 1.0))
        except BreakerTripped:
            return most
        most = changes
    return most


def test_shard_above_its_part_of_the_limit_says_what_is_needed() -> None:
    plan = _of_shard(2, 8, 5)
    with pytest.raises(
        BreakerTripped, match="max_changes is 30, of which shard 2/8 may make 4"
    ) as refusal:
        plan.check_limits(Limits(30, 1.0))
    found = re.search(r"decommissioned\) to (\d+) or more", str(refusal.value))
    assert found and found.group(1) == "34"
    plan.check_limits(Limits(34, 1.0))
    with pytest.raises(BreakerTripped):
        plan.check_limits(Limits(33, 1.0))


@pytest.mark.parametrize(
    "edit",
    [
        lambda plan: plan["changes"].pop(),
        lambda plan: plan["changes"].reverse(),
        lambda plan: plan.update(consumers=10**9),
        lambda plan: plan.update(consumers=None),
        lambda plan: plan.update(detected_at="2027-01-01T00:00:00Z"),
        lambda plan: plan.update(shard={"number": 1, "count": 1}),
        lambda plan: plan.update(note="approved"),
        lambda plan: plan["changes"][0]["before"].update(project_id="theirs"),
        lambda plan: plan["changes"][0].update(generation=True),
        lambda plan: plan.update(digest="0" * 64),
    ],
)
def test_every_edit_of_a_plan_is_refused(told: t.Any, edit: t.Callable[[t.Any], object]) -> None:
    assert Plan.parse(told).as_dict() == told
    edit(told)

    with pytest.raises(InvalidInput, match=r"was edited .*: nothing was changed\."):
        Plan.parse(told)


def test_compact_plan_of_an_earlier_version_is_refused(told: t.Any) -> None:
    with pytest.raises(InvalidInput, match="plan again"):
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


@pytest.mark.parametrize("option", ["hosts", "consumers", "projects", "kinds"])
@pytest.mark.parametrize(
    ("detected", "named", "is_refused"),
    [
        (["a"], [], False),
        (["a"], [" a "], False),
        (["a"], ["a", "b"], False),
        ([], ["a"], True),
        (["b"], ["a"], True),
        (["a", "b"], ["a"], True),
    ],
)
def test_findings_about_more_than_is_named_now_are_refused(
    findings: t.Any, option: str, detected: list[str], named: list[str], is_refused: bool
) -> None:
    findings["scope"][option] = detected
    if not is_refused:
        check_scope(findings, {option: named})
        return
    with pytest.raises(InvalidInput, match=f"not only about the {option}"):
        check_scope(findings, {option: named})


GROUPS = {
    "aggregates": ["0a1b2c3d-0000-4000-8000-00000000000a"],
    "aggregate_names": ["rack-7"],
    "aggregate_numbers": ["7"],
    "availability_zones": ["az1"],
    "cells": ["0a1b2c3d-0000-4000-8000-00000000000c"],
}


@pytest.mark.parametrize(
    ("option", "named", "is_refused"),
    [
        ("aggregates", ["rack-7"], False),
        ("aggregates", ["7"], False),
        ("aggregates", ["0A1B2C3D000040008000 00000000000a".replace(" ", "")], False),
        ("aggregates", ["rack-8"], True),
        ("aggregates", ["rack-7", "rack-8"], False),
        ("availability_zones", ["az1"], False),
        ("availability_zones", ["az2"], True),
        ("cells", ["0a1b2c3d-0000-4000-8000-00000000000c"], False),
        ("cells", ["rack-7"], True),
        ("projects", ["theirs"], False),
        ("projects", ["0a1b2c3d00004000800000000000000e"], False),
        ("projects", ["ours"], True),
    ],
)
def test_group_and_project_may_be_named_in_each_way(
    findings: t.Any, option: str, named: list[str], is_refused: bool
) -> None:
    findings["scope"]["groups"] = {**GROUPS, "hosts": []}
    findings["scope"]["projects"] = ["0a1b2c3d-0000-4000-8000-00000000000e"]
    findings["scope"]["project_names"] = ["theirs"]
    if not is_refused:
        check_scope(findings, {option: named})
        return
    with pytest.raises(InvalidInput, match=f"not only about the {option}"):
        check_scope(findings, {option: named})


@pytest.mark.parametrize("groups", [None, {}, ...])
def test_findings_without_groups_are_about_none(findings: t.Any, groups: t.Any) -> None:
    """Files of version 1.0 have no key for them."""
    findings["scope"]["groups"] = groups
    if groups is ...:
        del findings["scope"]["groups"]

    assert Plan.from_findings(findings, ALL_KINDS).groups == HostGroups()
    with pytest.raises(InvalidInput, match="not only about the cells"):
        check_scope(findings, {"cells": ["a"]})
