"""From the options of a module to the policy of the rules."""

from __future__ import annotations

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._common.errors import InvalidInput
from .......plugins.module_utils._core.facts.index import ListingsIndex
from .......plugins.module_utils._core.options.policy import (
    Policy,
    PolicyOptions,
    find_absent_allocators,
    parse_policy,
)
from ...world import World

CONSUMER = "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"


def _options(**given: t.Any) -> dict[str, t.Any]:
    return {
        **{name: option["default"] for name, option in PolicyOptions.build_spec().items()},
        **given,
    }


def test_policy_defaults_match_the_rules() -> None:
    assert parse_policy(_options()) == Policy()


def test_ages_are_durations() -> None:
    spared = parse_policy(_options(min_age="15m", unknown_min_age="7d"))

    assert (spared.min_age, spared.unknown_min_age) == (900, 604800)


@pytest.mark.parametrize("option", ["min_age", "unknown_min_age"])
def test_invalid_age_is_refused(option: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{option} is 'soon'"):
        parse_policy(_options(**{option: "soon"}))


@pytest.mark.parametrize("text", [CONSUMER, CONSUMER.upper(), CONSUMER.replace("-", "")])
def test_consumer_is_excluded_in_any_spelling_of_its_uuid(text: str) -> None:
    assert parse_policy(_options(exclude_consumers=[text])).exclude_consumers == {CONSUMER}


def test_excluded_consumer_that_is_not_a_uuid_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^exclude_consumers: 'web-1'"):
        parse_policy(_options(exclude_consumers=[CONSUMER, "web-1"]))


def test_providers_are_excluded_by_name_or_by_uuid_in_any_spelling() -> None:
    spared = parse_policy(_options(exclude_providers=["compute-1", CONSUMER.upper()]))

    assert spared.exclude_providers == {"compute-1", CONSUMER}


def test_unknown_excluded_providers_are_named() -> None:
    world = World()
    here = world.host("compute-1")
    world.host("compute-2", service="nova-2")
    names = [here, "compute-2", "nova-2", "Compute-1", "compute-1.example", "compute-3"]
    spared = parse_policy(_options(exclude_providers=names))

    unknown = ListingsIndex(world.listings()).list_unknown_names(spared.exclude_providers)

    assert unknown == ["compute-3"]


@pytest.mark.parametrize("name", ["container", "application-container"])
def test_service_is_ignored_by_either_of_its_names(name: str) -> None:
    assert parse_policy(_options(ignore_allocators=[name])).ignore_allocators == {"container"}


def test_service_not_known_to_allocate_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"'containers' .* accelerator, application-container"):
        parse_policy(_options(ignore_allocators=["container", "containers"]))


def test_service_missing_from_the_catalogue_is_named() -> None:
    cloud = d.replace(World().snapshot().cloud, allocators=("container",))

    assert find_absent_allocators(
        parse_policy(_options(ignore_allocators=["container", "reservation"])), cloud
    ) == ["reservation"]
