# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the parameters of the allocation module to the complete allocation to write."""

from __future__ import annotations

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._common.errors import AllocationConflict, InvalidInput
from .......plugins.module_utils._core.models.placement import Allocation, Provider
from .......plugins.module_utils._core.resources.allocations import (
    check_generation,
    describe_allocation,
    remove_resources,
    set_resources,
)

CONSUMER = "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"
HERE = "0a000000-0000-4000-8000-000000000001"
CHILD = "0b000000-0000-4000-8000-000000000002"
UNLISTED = "0c000000-0000-4000-8000-000000000003"
PROVIDERS = {
    HERE: Provider(HERE, "compute-1", 1, HERE, None),
    CHILD: Provider(CHILD, "{{ compute-1 }}_pci", 1, HERE, HERE),
}
HELD = Allocation(
    CONSUMER, 4, "project", "user", None, {CHILD: {"VF": 1}, HERE: {"VCPU": 2, "DISK_GB": 1}}, 60
)
NOTHING = Allocation(CONSUMER, None, None, None, None, {}, None)


def _params(**options: t.Any) -> dict[str, t.Any]:
    unset = dict.fromkeys(
        ("resources", "project", "user", "consumer_type", "resource_provider", "resource_classes")
    )
    return {**unset, **options}


def test_present_replaces_all_allocations() -> None:
    wanted = set_resources(HELD, _params(resources={"compute-1": {"VCPU": 1}}), PROVIDERS)

    assert wanted == d.replace(HELD, resources={HERE: {"VCPU": 1}})


@pytest.mark.parametrize("name", ["compute-1", HERE, HERE.upper(), HERE.replace("-", "")])
def test_provider_is_named_by_name_or_by_uuid_in_any_spelling(name: str) -> None:
    assert set(
        set_resources(HELD, _params(resources={name: {"VCPU": 1}}), PROVIDERS).resources
    ) == {HERE}


def test_provider_with_a_template_as_its_name_is_found_by_it() -> None:
    assert set(
        set_resources(
            HELD, _params(resources={"{{ compute-1 }}_pci": {"VF": 1}}), PROVIDERS
        ).resources
    ) == {CHILD}


def test_uuid_unknown_to_placement_is_refused() -> None:
    with pytest.raises(InvalidInput, match=f"no resource provider with the UUID {UNLISTED}"):
        set_resources(HELD, _params(resources={UNLISTED: {"VCPU": 1}}), PROVIDERS)


def test_deleted_provider_has_nothing_to_remove() -> None:
    assert remove_resources(HELD, _params(resource_provider=[UNLISTED]), PROVIDERS) == HELD


def test_provider_named_twice_is_refused() -> None:
    with pytest.raises(InvalidInput, match="names a provider twice"):
        set_resources(
            HELD, _params(resources={"compute-1": {"VCPU": 1}, HERE: {"VCPU": 2}}), PROVIDERS
        )


@pytest.mark.parametrize("amount", [2, "2"])
def test_amounts_may_be_numbers_or_text_from_jinja(amount: t.Any) -> None:
    assert set_resources(
        HELD, _params(resources={"compute-1": {"VCPU": amount}}), PROVIDERS
    ).resources == {HERE: {"VCPU": 2}}


@pytest.mark.parametrize(
    "share",
    [
        {"VCPU": "many"},
        {"VCPU": "2.5"},
        {"VCPU": None},
        {"VCPU": [2]},
        ["VCPU"],
        None,
        "VCPU",
        {"VCPU": 2.5},
        {"VCPU": True},
    ],
    ids=repr,
)
def test_amounts_that_are_not_whole_numbers_are_refused(share: t.Any) -> None:
    with pytest.raises(InvalidInput, match="resources of compute-1 must be whole numbers"):
        set_resources(HELD, _params(resources={"compute-1": share}), PROVIDERS)


def test_unknown_provider_name_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no resource provider with the name 'compute-9'"):
        set_resources(HELD, _params(resources={"compute-9": {"VCPU": 1}}), PROVIDERS)


@pytest.mark.parametrize("resources", [None, {}])
def test_present_without_resources_is_refused(resources: dict[str, t.Any] | None) -> None:
    with pytest.raises(InvalidInput, match="use state=absent"):
        set_resources(HELD, _params(resources=resources), PROVIDERS)


@pytest.mark.parametrize("option", ["resource_provider", "resource_classes"])
def test_present_refuses_parameters_of_absent(option: str) -> None:
    with pytest.raises(InvalidInput, match="use resources with state=present"):
        set_resources(
            HELD,
            _params(resources={"compute-1": {"VCPU": 1}}, **{option: ["compute-1"]}),
            PROVIDERS,
        )


@pytest.mark.parametrize("given", [{}, {"project": "project"}, {"user": "user"}])
def test_new_consumer_needs_project_and_user(given: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="set project and user"):
        set_resources(NOTHING, _params(resources={"compute-1": {"VCPU": 1}}, **given), PROVIDERS)


def test_new_consumer_is_created_as_requested() -> None:
    wish = _params(
        resources={"compute-1": {"VCPU": 1}}, project="p", user="u", consumer_type="INSTANCE"
    )

    assert set_resources(NOTHING, wish, PROVIDERS) == Allocation(
        CONSUMER, None, "p", "u", "INSTANCE", {HERE: {"VCPU": 1}}, None
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ("project", "user", "INSTANCE")),
        ({"project": "p"}, ("p", "user", "INSTANCE")),
        ({"user": "u"}, ("project", "u", "INSTANCE")),
        ({"consumer_type": "CONTAINER"}, ("project", "user", "CONTAINER")),
    ],
)
def test_owner_and_type_change_only_when_given(
    given: dict[str, str], expected: tuple[str, ...]
) -> None:
    wanted = set_resources(
        d.replace(HELD, type="INSTANCE"),
        _params(resources={"compute-1": {"VCPU": 1}}, **given),
        PROVIDERS,
    )

    assert (wanted.project, wanted.user, wanted.type) == expected


@pytest.mark.parametrize(
    ("wish", "left"),
    [
        ({}, {}),
        ({"resource_provider": ["compute-1"]}, {CHILD: {"VF": 1}}),
        ({"resource_provider": [CHILD.upper()]}, {HERE: {"VCPU": 2, "DISK_GB": 1}}),
        ({"resource_provider": ["compute-1", CHILD]}, {}),
        ({"resource_provider": [UNLISTED]}, dict(HELD.resources)),
        ({"resource_provider": []}, dict(HELD.resources)),
        ({"resource_classes": ["VCPU"]}, {CHILD: {"VF": 1}, HERE: {"DISK_GB": 1}}),
        ({"resource_classes": ["VF"]}, {HERE: {"VCPU": 2, "DISK_GB": 1}}),
        ({"resource_classes": []}, dict(HELD.resources)),
        (
            {"resource_provider": ["compute-1"], "resource_classes": ["VCPU", "VF"]},
            {CHILD: {"VF": 1}, HERE: {"DISK_GB": 1}},
        ),
    ],
    ids=str,
)
def test_absent_removes_what_is_named_and_keeps_the_rest(
    wish: dict[str, t.Any], left: dict[str, t.Any]
) -> None:
    assert remove_resources(HELD, _params(**wish), PROVIDERS) == d.replace(HELD, resources=left)


def test_absent_of_an_unknown_consumer_does_nothing() -> None:
    assert remove_resources(NOTHING, _params(), PROVIDERS) == NOTHING


def test_absent_with_an_unknown_provider_name_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no resource provider with the name 'compute-9'"):
        remove_resources(HELD, _params(resource_provider=["compute-9"]), PROVIDERS)


@pytest.mark.parametrize("generation", [None, 4])
def test_expected_generation_is_accepted(generation: int | None) -> None:
    check_generation(HELD, generation)


@pytest.mark.parametrize("generation", [0, 3, 5])
def test_unexpected_generation_error_names_both_generations(generation: int) -> None:
    with pytest.raises(
        AllocationConflict, match=f"generation {generation} was expected, but it has 4"
    ):
        check_generation(HELD, generation)


def test_missing_consumer_is_refused_when_a_generation_is_expected() -> None:
    with pytest.raises(AllocationConflict, match="generation 4 was expected, but it has none"):
        check_generation(NOTHING, 4)


def test_allocation_is_described_with_names_and_root_uuids() -> None:
    allocation = d.replace(HELD, resources={UNLISTED: {"VCPU": 1}, **HELD.resources})

    assert describe_allocation(allocation, PROVIDERS) == {
        "consumer": CONSUMER,
        "generation": 4,
        "type": None,
        "project": "project",
        "user": "user",
        "age": 60,
        "providers": [
            {
                "uuid": HERE,
                "name": "compute-1",
                "root": HERE,
                "resources": {"VCPU": 2, "DISK_GB": 1},
            },
            {"uuid": CHILD, "name": "{{ compute-1 }}_pci", "root": HERE, "resources": {"VF": 1}},
            {"uuid": UNLISTED, "name": None, "root": None, "resources": {"VCPU": 1}},
        ],
    }
