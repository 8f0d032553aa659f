# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documents as Placement takes them, and the changes made of them."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._models.change import (
    Change,
    build_body,
    build_change,
    build_reduction,
    is_same_allocation,
)
from ansible_collections.osops.placement.plugins.module_utils._models.placement import Allocation

HELD = {"b": {"VCPU": 2, "MEMORY_MB": 512}, "a": {"VCPU": 1}}


def _allocation(generation: int | None = 3, type: str | None = None) -> Allocation:
    return Allocation("consumer", generation, "project", "user", type, HELD, 7200)


def test_a_document_is_what_placement_takes() -> None:
    assert build_body(_allocation()) == {
        "allocations": {
            "a": {"resources": {"VCPU": 1}},
            "b": {"resources": {"MEMORY_MB": 512, "VCPU": 2}},
        },
        "consumer_generation": 3,
        "project_id": "project",
        "user_id": "user",
    }


def test_an_untyped_consumer_has_no_type_in_its_document() -> None:
    assert "consumer_type" not in build_body(_allocation(type=None))


def test_a_typed_consumer_keeps_its_type() -> None:
    assert build_body(_allocation(type="INSTANCE"))["consumer_type"] == "INSTANCE"


def test_a_new_consumer_has_generation_null() -> None:
    assert build_body(_allocation(generation=None))["consumer_generation"] is None


def test_equal_allocations_make_identical_documents_whatever_the_order_of_their_shares() -> None:
    other = {"a": {"VCPU": 1}, "b": {"MEMORY_MB": 512, "VCPU": 2}}

    assert json.dumps(build_body(_allocation())) == json.dumps(
        build_body(Allocation("consumer", 3, "project", "user", None, other, 7200))
    )


def test_a_change_drops_the_named_providers_and_leaves_the_others_as_they_are() -> None:
    change = build_reduction(_allocation(), {"a"})

    assert change.before == build_body(_allocation())
    assert change.after == {
        **change.before,
        "allocations": {"b": change.before["allocations"]["b"]},
    }
    assert (change.consumer, change.generation, change.action) == ("consumer", 3, "reduce")


def test_a_change_that_drops_everything_removes_the_consumer() -> None:
    change = build_reduction(_allocation(type="MIGRATION"), {"a", "b"})

    assert change.after == {**change.before, "allocations": {}}
    assert change.action == "remove"


def test_a_change_keeps_the_guard_and_the_owner() -> None:
    after = build_reduction(_allocation(), {"a", "b"}).after

    assert (after["consumer_generation"], after["project_id"], after["user_id"]) == (
        3,
        "project",
        "user",
    )


def test_a_consumer_without_generation_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="consumer has no allocation"):
        build_reduction(_allocation(generation=None), {"a"})


NOTHING = Allocation("consumer", None, None, None, None, {}, None)


def test_a_claim_is_the_same_whatever_its_generation() -> None:
    assert is_same_allocation(
        build_body(_allocation(generation=3)), build_body(_allocation(generation=4))
    )


@pytest.mark.parametrize(
    "other",
    [
        {"project_id": "theirs"},
        {"user_id": "another"},
        {"consumer_type": "INSTANCE"},
        {"allocations": {}},
    ],
)
def test_a_claim_of_another_owner_or_of_other_shares_is_another(other: dict[str, t.Any]) -> None:
    one = build_body(_allocation())

    assert not is_same_allocation(one, one | other)
    assert not is_same_allocation(one | other, one)


def test_nothing_is_nothing_whoever_it_counts_for() -> None:
    assert is_same_allocation(
        build_body(NOTHING),
        build_body(NOTHING) | {"project_id": "theirs", "consumer_type": "INSTANCE"},
    )


def _rewritten(before: Allocation = NOTHING, **anew: t.Any) -> Change:
    return build_change(before, **anew)


@pytest.mark.parametrize(
    ("change", "action"),
    [
        (_rewritten(_allocation(), resources={}), "remove"),
        (_rewritten(_allocation(), resources={}, project="theirs"), "remove"),
        (_rewritten(_allocation(), resources={"a": {"VCPU": 1}}), "reduce"),
        (
            _rewritten(_allocation(), resources={**HELD, "b": {"VCPU": 1, "MEMORY_MB": 512}}),
            "reduce",
        ),
        (_rewritten(_allocation(), resources={"a": {"VCPU": 2}}), "rewrite"),
        (_rewritten(_allocation(), resources={"c": {"VCPU": 1}}), "rewrite"),
        (_rewritten(_allocation(), resources={"a": {"VCPU": 1}}, project="theirs"), "rewrite"),
        (_rewritten(_allocation(), user="another"), "rewrite"),
        (_rewritten(resources=HELD, project="project", user="user"), "create"),
    ],
)
def test_a_change_is_named_by_what_it_does(change: Change, action: str) -> None:
    assert change.action == action


def test_what_a_partner_gives_up_does_not_make_a_claim_a_reduction() -> None:
    """Together the two take nothing anew, but the server takes what was the migration's."""
    partner = _rewritten(
        Allocation("partner", 1, "project", "user", None, {"c": {"VCPU": 1}}, 7200), resources={}
    )
    change = _rewritten(_allocation(), resources={"c": {"VCPU": 1}}, partner=partner)

    assert (change.action, change.allocates) == ("rewrite", {})


def test_a_change_frees_and_claims_by_provider_and_class() -> None:
    change = _rewritten(
        _allocation(),
        resources={"b": {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 3}, "c": {"VCPU": 4}},
    )

    assert change.frees == {"a": {"VCPU": 1}, "b": {"VCPU": 1}}
    assert change.allocates == {"b": {"DISK_GB": 3}, "c": {"VCPU": 4}}


def test_a_change_starts_from_what_is_held_also_from_nothing() -> None:
    change = _rewritten(resources=HELD, project="project", user="user")

    assert (
        change.generation,
        change.before["allocations"],
        change.before["consumer_generation"],
    ) == (None, {}, None)
    assert (change.before["project_id"], change.before["user_id"]) == ("project", "user")
    assert change.after == build_body(_allocation(generation=None))
