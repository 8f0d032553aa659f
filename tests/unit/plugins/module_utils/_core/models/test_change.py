"""Documents as Placement accepts them, and the changes made of them."""

import json
import typing as t

import pytest

from .......plugins.module_utils._core.models.change import (
    Change,
    build_body,
    build_change,
    build_reduction,
    is_same_allocation,
)
from .......plugins.module_utils._core.models.placement import Allocation

HELD = {"b": {"VCPU": 2, "MEMORY_MB": 512}, "a": {"VCPU": 1}}


def _allocation(generation: int | None = 3, type: str | None = None) -> Allocation:
    return Allocation("consumer", generation, "project", "user", type, HELD, 7200)


def test_document_is_what_placement_accepts() -> None:
    assert build_body(_allocation()) == {
        "allocations": {
            "a": {"resources": {"VCPU": 1}},
            "b": {"resources": {"MEMORY_MB": 512, "VCPU": 2}},
        },
        "consumer_generation": 3,
        "project_id": "project",
        "user_id": "user",
    }


def test_consumer_keeps_its_type_and_its_missing_generation() -> None:
    body = build_body(_allocation(generation=None, type="INSTANCE"))

    assert (body["consumer_type"], body["consumer_generation"]) == ("INSTANCE", None)


def test_equal_allocations_make_identical_documents_in_any_order() -> None:
    other = {"a": {"VCPU": 1}, "b": {"MEMORY_MB": 512, "VCPU": 2}}

    assert json.dumps(build_body(_allocation())) == json.dumps(
        build_body(Allocation("consumer", 3, "project", "user", None, other, 7200))
    )


@pytest.mark.parametrize(("dropped", "action"), [("a", "reduce"), ("ab", "remove")])
def test_change_drops_the_named_providers_and_keeps_everything_else(
    dropped: str, action: str
) -> None:
    change = build_reduction(_allocation(type="MIGRATION"), set(dropped))

    assert change.before == build_body(_allocation(type="MIGRATION"))
    kept = {
        uuid: each for uuid, each in change.before["allocations"].items() if uuid not in dropped
    }
    assert change.after == {**change.before, "allocations": kept}
    assert (change.consumer, change.generation, change.action) == ("consumer", 3, action)


def test_consumer_without_generation_cannot_be_changed() -> None:
    with pytest.raises(ValueError):
        build_reduction(_allocation(generation=None), {"a"})


NOTHING = Allocation("consumer", None, None, None, None, {}, None)


def test_allocations_are_equal_whatever_their_generation() -> None:
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
def test_allocations_with_another_owner_or_other_amounts_differ(other: dict[str, t.Any]) -> None:
    one = build_body(_allocation())

    assert not is_same_allocation(one, one | other)
    assert not is_same_allocation(one | other, one)


def test_empty_allocations_are_equal_whatever_their_owner() -> None:
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
def test_change_is_named_by_its_effect(change: Change, action: str) -> None:
    assert change.action == action


def test_amounts_given_up_by_a_partner_do_not_make_a_change_a_reduction() -> None:
    """Together the two use nothing more, but the server gets what the migration had."""
    partner = _rewritten(
        Allocation("partner", 1, "project", "user", None, {"c": {"VCPU": 1}}, 7200), resources={}
    )
    change = _rewritten(_allocation(), resources={"c": {"VCPU": 1}}, partner=partner)

    assert (change.action, change.allocates) == ("rewrite", {})


def test_change_frees_and_allocates_by_provider_and_class() -> None:
    change = _rewritten(
        _allocation(),
        resources={"b": {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 3}, "c": {"VCPU": 4}},
    )

    assert change.frees == {"a": {"VCPU": 1}, "b": {"VCPU": 1}}
    assert change.allocates == {"b": {"DISK_GB": 3}, "c": {"VCPU": 4}}


def test_change_starts_from_the_current_allocations_even_if_empty() -> None:
    change = _rewritten(resources=HELD, project="project", user="user")

    assert (
        change.generation,
        change.before["allocations"],
        change.before["consumer_generation"],
    ) == (None, {}, None)
    assert (change.before["project_id"], change.before["user_id"]) == ("project", "user")
    assert change.after == build_body(_allocation(generation=None))
