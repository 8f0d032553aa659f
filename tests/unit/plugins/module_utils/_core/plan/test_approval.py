# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan without its documents: exactly that plan is reconstructed, or nothing."""

from __future__ import annotations

import copy
import dataclasses as d
import json
import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._common.errors import (
    InvalidInput,
    NotApproved,
    UnsoundReading,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.kinds import (
    CHANGEABLE_KINDS,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.placement import (
    ProviderDetails,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.snapshot import (
    HostGroups,
    Scope,
)
from ansible_collections.osops.placement.plugins.module_utils._core.plan import (
    approval as approval_module,
)
from ansible_collections.osops.placement.plugins.module_utils._core.plan.approval import Approval
from ansible_collections.osops.placement.plugins.module_utils._core.plan.plan import (
    Plan,
    digest,
    is_compact,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.judging import (
    NO_MINIMUM_AGE,
    build_findings,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.world import PLENTY, World

ALL_KINDS = tuple(kind.name for kind in CHANGEABLE_KINDS)


@pytest.fixture(name="findings")
def _findings() -> t.Any:
    """Return the findings about three consumers with wrong allocations."""
    world = World()
    here, there = world.host("compute-1"), world.host("compute-2")
    world.delete(world.server(here, here))
    world.stranger(here, type="INSTANCE")
    world.server(here, here, there)
    world.server(here, here)
    found = json.loads(json.dumps(build_findings(world.snapshot(), NO_MINIMUM_AGE)))
    found["scope"]["consumers"] = [entry["consumer"] for entry in found["findings"]]
    found["held"] = list(found["scope"]["consumers"])
    return found


@pytest.fixture(name="approval")
def _approval_of(findings: t.Any) -> Approval:
    return Approval.from_plan(Plan.from_findings(findings, ALL_KINDS))


@pytest.fixture(name="told")
def _told(approval: Approval) -> t.Any:
    return json.loads(json.dumps(approval.as_dict()))


def _signed(told: t.Any) -> t.Any:
    """Return the same with a correct digest, as a forger would write it."""
    rest = {key: value for key, value in told.items() if key != "digest"}
    return {**rest, "digest": digest(rest)}


def test_compact_plan_is_read_back_unchanged(
    findings: t.Any, approval: Approval, told: t.Any
) -> None:
    assert len(told["changes"]) == told["count"] == 3
    assert Approval.parse(told) == approval
    assert is_compact(told) and not is_compact(Plan.from_findings(findings, ALL_KINDS).as_dict())


def test_compact_plan_remembers_its_groups_and_hands_them_to_the_plan(
    findings: t.Any, approval: Approval
) -> None:
    rack = HostGroups(aggregates=("uuid-7",), aggregate_names=("rack-7",))
    told = json.loads(json.dumps(d.replace(approval, groups=rack).as_dict()))

    plan, _gone = Approval.parse(told).rebuild_plan(findings)

    assert plan.groups == rack
    for edited in ({**told, "groups": {**told["groups"], "cells": ["cell1"]}}, dict(told)):
        if edited == told:
            del edited["groups"]
        with pytest.raises(InvalidInput, match="edited or cut short"):
            Approval.parse(edited)


def test_compact_plan_has_no_documents_and_is_small(told: t.Any) -> None:
    assert {key for change in told["changes"] for key in change} == {
        "finding",
        "kind",
        "consumer",
        "generation",
        "digest",
    }
    assert len(json.dumps(told["changes"])) < 300 * len(told["changes"])


def test_equal_plans_have_equal_digests_and_other_documents_differ(
    findings: t.Any, told: t.Any
) -> None:
    more = copy.deepcopy(findings)
    change = next(
        entry["change"] for entry in more["findings"] if entry["change"]["action"] == "remove"
    )
    for side in (change["before"]["allocations"], change["frees"]):
        for share in side.values():
            share.get("resources", share)["VCPU"] += 1

    other = Approval.from_plan(Plan.from_findings(more, ALL_KINDS)).as_dict()

    assert Approval.from_plan(Plan.from_findings(findings, ALL_KINDS)).as_dict() == told
    same = [
        one["digest"] == two["digest"]
        for one, two in zip(told["changes"], other["changes"], strict=True)
    ]
    assert sorted(same) == [False, True, True]
    assert told["digest"] != other["digest"]


def test_unchanged_steps_are_found_again_with_their_documents(
    findings: t.Any, approval: Approval
) -> None:
    plan, gone = approval.rebuild_plan(findings)

    assert plan == Plan.from_findings(findings, ALL_KINDS) and gone == []


def test_unapproved_steps_are_not_planned(findings: t.Any) -> None:
    approved = Plan.from_findings(findings, ALL_KINDS).steps[0]
    few = Approval.from_plan(Plan.from_findings(findings, [approved.kind]))

    plan, _gone = few.rebuild_plan(findings)

    assert [step.finding for step in plan.steps] == [approved.finding]


def test_fraction_is_that_of_the_first_reading(findings: t.Any, approval: Approval) -> None:
    whole = d.replace(approval, consumers=4711)

    assert whole.rebuild_plan(findings)[0].consumers == 4711


def test_consumer_without_allocations_is_skipped_and_reported(
    findings: t.Any, approval: Approval
) -> None:
    lost = findings["findings"].pop()
    findings["held"].remove(lost["consumer"])

    plan, gone = approval.rebuild_plan(findings)

    assert gone == [lost["id"]]
    assert len(plan.steps) == 2 and lost["id"] not in {step.finding for step in plan.steps}


def _moved(found: t.Any) -> None:
    change = found["findings"][0]["change"]
    change["generation"] += 1
    for side in ("before", "after"):
        change[side]["consumer_generation"] += 1


def _larger(found: t.Any) -> None:
    change = found["findings"][0]["change"]
    for share in (*change["before"]["allocations"].values(), *change["frees"].values()):
        share.get("resources", share)["VCPU"] += 1


def _correct(found: t.Any) -> None:
    del found["findings"][0]


def _protected(found: t.Any) -> None:
    found["protected"].append(
        {
            **found["findings"].pop(0),
            "verdict": "protected",
            "kind": "too_young",
            "reason": "It is young.",
            "change": None,
        }
    )


def _undecided(found: t.Any) -> None:
    found["undecided"].append(
        {
            **found["findings"].pop(0),
            "verdict": "undecided",
            "reason": "Nova answered 500.",
            "change": None,
        }
    )


def _of_another_kind(found: t.Any) -> None:
    entry = found["findings"][0]
    entry |= {
        "kind": "ended_migration",
        "id": f"ended_migration/{entry['consumer']}",
        "reason": "It ended.",
    }


def _not_asked(found: t.Any) -> None:
    """Return the findings of a detection that named no consumers, or others."""
    del found["findings"][0]
    found["scope"]["consumers"] = found["held"] = []


@pytest.mark.parametrize(
    ("happened", "said"),
    [
        (_moved, "it has changed since: its generation was 1 then and is 2 now."),
        (_larger, "the document to be written is no longer the one that was approved."),
        (_correct, "it is healthy now."),
        (_protected, "it is protected now (too_young): It is young."),
        (_undecided, "now (deleted_server): Nova answered 500."),
        (_of_another_kind, "it is orphaned now (ended_migration): It ended."),
        (_not_asked, "it is no longer found."),
    ],
)
def test_one_step_that_differs_refuses_all(
    findings: t.Any, approval: Approval, happened: t.Callable[[t.Any], None], said: str
) -> None:
    findings["findings"].sort(key=lambda entry: entry["kind"] != "deleted_server")
    happened(findings)

    with pytest.raises(
        NotApproved,
        match=r"1 of 3 changes no longer matches what was approved: nothing was changed",
    ) as refused:
        approval.rebuild_plan(findings)

    assert said in str(refused.value)


def test_live_server_named_by_a_forger_refuses_all(findings: t.Any, told: t.Any) -> None:
    live = "11111111-2222-4333-8444-555555555555"
    forged = {
        **told["changes"][0],
        "kind": "deleted_server",
        "consumer": live,
        "finding": f"deleted_server/{live}",
    }
    findings["scope"]["consumers"].append(live)
    findings["held"].append(live)

    approval = Approval.parse(_signed({**told, "changes": [*told["changes"], forged], "count": 4}))

    with pytest.raises(NotApproved, match=f"{live}: it is healthy now"):
        approval.rebuild_plan(findings)


def test_many_reasons_are_counted(
    findings: t.Any, approval: Approval, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approval_module, "_MAX_REASONS", 1)
    findings["findings"] = []

    with pytest.raises(NotApproved, match=r"3 of 3 changes .* And 2 more"):
        approval.rebuild_plan(findings)


@pytest.mark.parametrize("what", ["placement_endpoint", "region"])
def test_findings_of_another_cloud_are_refused(
    findings: t.Any, approval: Approval, what: str
) -> None:
    findings["cloud"][what] = "elsewhere"

    with pytest.raises(
        InvalidInput, match=f"for another cloud: its {what} is .*, and this cloud's is elsewhere"
    ):
        approval.rebuild_plan(findings)


def test_unsound_reading_refuses_all(findings: t.Any, approval: Approval) -> None:
    findings["summary"]["coverage"]["failed_checks"] = ["A cell does not answer."]

    with pytest.raises(UnsoundReading, match="A cell does not answer"):
        approval.rebuild_plan(findings)


def test_forbidden_kinds_are_refused(approval: Approval) -> None:
    approval.check_kinds(ALL_KINDS)

    with pytest.raises(InvalidInput, match="changes deleted_server, extra_host, which kinds"):
        approval.check_kinds(["unknown_consumer"])


def test_all_approved_consumers_are_named_for_the_next_reading(
    approval: Approval, told: t.Any
) -> None:
    assert approval.scope == {
        "consumers": sorted(change["consumer"] for change in told["changes"]),
        "kinds": [],
    }


def test_provider_tree_requires_a_full_reading() -> None:
    world = World()
    here, orphaned = world.host("compute-1"), world.provider("ghost-1")
    world.server(here, here)
    details = {
        orphaned: ProviderDetails(
            {"VCPU": PLENTY, "MEMORY_MB": PLENTY}, traits=frozenset({"COMPUTE_NODE"})
        )
    }
    found = json.loads(json.dumps(build_findings(world.snapshot(details=details), NO_MINIMUM_AGE)))

    approval = Approval.parse(
        json.loads(
            json.dumps(
                Approval.from_plan(Plan.from_findings(found, ["orphaned_provider"])).as_dict()
            )
        )
    )

    assert approval.scope == {"consumers": [], "kinds": ["orphaned_provider"]}
    assert [step.subject for step in approval.rebuild_plan(found)[0].removals] == [orphaned]
    found["findings"] = []
    with pytest.raises(NotApproved, match="it is no longer found"):
        approval.rebuild_plan(found)


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (("changes", 0, "generation"), 7),
        (("changes", 0, "generation"), True),
        (("changes", 0, "digest"), "0" * 64),
        (("changes", 0, "consumer"), "11111111-2222-4333-8444-555555555555"),
        (("changes", 0, "kind"), "extra_host"),
        (("placement_endpoint",), "http://elsewhere/"),
        (("region",), "RegionTwo"),
        (("consumers",), 100000),
        (("count",), 2),
        (("detected_at",), "2027-01-01T00:00:00Z"),
        (("digest",), "0" * 64),
        (("more",), 1),
    ],
)
def test_edited_plan_is_refused(told: t.Any, at: tuple[t.Any, ...], value: t.Any) -> None:
    part = told
    for step in at[:-1]:
        part = part[step]
    part[at[-1]] = value

    with pytest.raises(InvalidInput, match="The compact plan"):
        Approval.parse(told)


def test_removed_step_is_noticed(told: t.Any) -> None:
    del told["changes"][0]

    with pytest.raises(InvalidInput, match="edited or cut short"):
        Approval.parse(told)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "unconfirmed_resize", "finding": "unconfirmed_resize/{consumer}"},
        {"kind": "healthy", "finding": "healthy/{consumer}"},
        {"finding": "extra_host/{consumer}"},
        {"consumer": "compute-1", "finding": "{kind}/compute-1"},
        {"consumer": None, "finding": "{kind}/"},
        {"consumer": "", "finding": "{kind}/"},
        {"kind": "orphaned_provider", "finding": "orphaned_provider/", "consumer": None},
        {"digest": "none"},
        {"digest": None},
        {"kind": ["deleted_server"]},
        {"before": {}},
    ],
)
def test_signed_change_without_effect_is_refused(told: t.Any, change: dict[str, t.Any]) -> None:
    entry = next(entry for entry in told["changes"] if entry["kind"] == "deleted_server")
    given = dict(entry)
    entry |= {
        key: value.format(**given) if isinstance(value, str) else value
        for key, value in change.items()
    }

    with pytest.raises(InvalidInput, match="The compact plan"):
        Approval.parse(_signed(told))


@pytest.mark.parametrize(
    "spoil",
    [
        {"changes": "all"},
        {"changes": [1]},
        {"format": 2},
        {"consumers": -1},
        {"consumers": "9"},
        {"count": 4},
    ],
)
def test_signed_plan_of_another_shape_is_refused(told: t.Any, spoil: dict[str, t.Any]) -> None:
    with pytest.raises(InvalidInput, match="The compact plan"):
        Approval.parse(_signed({**told, **spoil}))


def test_change_named_twice_is_refused(told: t.Any) -> None:
    with pytest.raises(InvalidInput, match="does not list each of its changes exactly once"):
        Approval.parse(_signed({**told, "changes": told["changes"] * 2, "count": 6}))


def test_plan_that_is_too_large_exports_only_its_length(
    findings: t.Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approval_module, "MAX_COMPACT_CHANGES", 2)
    told = Approval.from_plan(Plan.from_findings(findings, ALL_KINDS)).as_dict()

    assert (told["count"], told["changes"]) == (3, None)
    with pytest.raises(
        InvalidInput,
        match=r"has 3 changes, more than the 2 that can be passed .* keep plan.json",
    ):
        Approval.parse(told)


def test_thousand_changes_need_less_than_300_kib(told: t.Any) -> None:
    assert len(json.dumps(told["changes"][0])) * approval_module.MAX_COMPACT_CHANGES < 300 * 1024


def test_compact_plan_is_not_accepted_as_a_plan(told: t.Any) -> None:
    with pytest.raises(InvalidInput, match="is a compact plan"):
        Plan.parse(told)


def test_named_consumers_with_allocations_are_returned() -> None:
    world = World()
    here = world.host("compute-1")
    healthy, other = world.server(here, here), world.server(here, here)
    named = Scope(consumers=(healthy, "11111111-2222-4333-8444-555555555555"))

    assert build_findings(world.snapshot(scope=named), NO_MINIMUM_AGE)["held"] == [healthy]
    assert build_findings(world.snapshot(scope=Scope(hosts=(other,))), NO_MINIMUM_AGE)["held"] == []
