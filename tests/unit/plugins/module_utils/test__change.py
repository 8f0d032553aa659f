# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documents as Placement takes them, and the changes made of them."""

from __future__ import annotations

import json

import pytest

from ansible_collections.osops.placement.plugins.module_utils._change import change_to, document
from ansible_collections.osops.placement.plugins.module_utils._model import Allocation

HELD = {"b": {"VCPU": 2, "MEMORY_MB": 512}, "a": {"VCPU": 1}}


def _allocation(generation: int | None = 3, type: str | None = None) -> Allocation:
    return Allocation("consumer", generation, "project", "user", type, HELD, 7200)


def test_a_document_is_what_placement_takes() -> None:
    assert document(_allocation()) == {
        "allocations": {"a": {"resources": {"VCPU": 1}}, "b": {"resources": {"MEMORY_MB": 512, "VCPU": 2}}},
        "consumer_generation": 3,
        "project_id": "project",
        "user_id": "user",
    }


def test_an_untyped_consumer_has_no_type_in_its_document() -> None:
    assert "consumer_type" not in document(_allocation(type=None))


def test_a_typed_consumer_keeps_its_type() -> None:
    assert document(_allocation(type="INSTANCE"))["consumer_type"] == "INSTANCE"


def test_a_new_consumer_has_generation_null() -> None:
    assert document(_allocation(generation=None))["consumer_generation"] is None


def test_equal_allocations_make_identical_documents_whatever_the_order_of_their_shares() -> None:
    other = {"a": {"VCPU": 1}, "b": {"MEMORY_MB": 512, "VCPU": 2}}

    assert json.dumps(document(_allocation())) == json.dumps(document(Allocation("consumer", 3, "project", "user", None, other, 7200)))


def test_a_change_drops_the_named_providers_and_leaves_the_others_as_they_are() -> None:
    change = change_to(_allocation(), {"a"})

    assert change.before == document(_allocation())
    assert change.after == {**change.before, "allocations": {"b": change.before["allocations"]["b"]}}
    assert (change.consumer, change.generation, change.action) == ("consumer", 3, "reduce")


def test_a_change_that_drops_everything_removes_the_consumer() -> None:
    change = change_to(_allocation(type="MIGRATION"), {"a", "b"})

    assert change.after == {**change.before, "allocations": {}}
    assert change.action == "remove"


def test_a_change_keeps_the_guard_and_the_owner() -> None:
    after = change_to(_allocation(), {"a", "b"}).after

    assert (after["consumer_generation"], after["project_id"], after["user_id"]) == (3, "project", "user")


def test_a_consumer_without_generation_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="consumer holds nothing"):
        change_to(_allocation(generation=None), {"a"})
