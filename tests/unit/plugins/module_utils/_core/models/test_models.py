"""The models: what a change frees, when a migration has ended, and the order of sums."""

import typing as t

import pytest

from .......plugins.module_utils._core.models.change import Change
from .......plugins.module_utils._core.models.nova import Migration
from .......plugins.module_utils._core.models.placement import sum_amounts


def _change(before: t.Mapping[str, t.Any], after: t.Mapping[str, t.Any]) -> Change:
    """Return a change between allocations, which are amounts by provider."""
    documents = [
        {"allocations": {provider: {"resources": share} for provider, share in held.items()}}
        for held in (before, after)
    ]
    return Change("consumer", 3, *documents)


@pytest.mark.parametrize(
    ("before", "after", "freed"),
    [
        ({"a": {"VCPU": 2}}, {}, {"a": {"VCPU": 2}}),
        ({"a": {"VCPU": 2}}, {"a": {"VCPU": 2}}, {}),
        ({"a": {"VCPU": 2}, "b": {"VCPU": 1}}, {"b": {"VCPU": 1}}, {"a": {"VCPU": 2}}),
        ({"a": {"VCPU": 3, "DISK_GB": 1}}, {"a": {"VCPU": 1, "DISK_GB": 1}}, {"a": {"VCPU": 2}}),
        ({"a": {"VCPU": 3, "DISK_GB": 1}}, {"a": {"VCPU": 3}}, {"a": {"DISK_GB": 1}}),
        ({"a": {"VCPU": 1}}, {"a": {"VCPU": 2}}, {}),
        ({}, {"a": {"VCPU": 2}}, {}),
    ],
    ids=str,
)
def test_change_frees_the_difference(
    before: dict[str, t.Any], after: dict[str, t.Any], freed: dict[str, t.Any]
) -> None:
    assert _change(before, after).frees == freed


OVER = ("confirmed", "reverted", "error", "failed", "completed", "cancelled", "done")
UNDER_WAY = (
    *("accepted", "queued", "preparing", "pre-migrating", "migrating", "post-migrating"),
    *("running", "reverting", "confirming", "finished", "", "whatever comes next"),
)


@pytest.mark.parametrize("status", [*OVER, *UNDER_WAY])
def test_migration_has_ended_only_in_known_terminal_states(status: str) -> None:
    migration = Migration("m", "s", "migration", status, None, None, None, None, None, None)

    assert migration.ended is (status in OVER)


def test_totals_are_ordered_by_class() -> None:
    totals = sum_amounts([{"VCPU": 1}, {"DISK_GB": 5, "VCPU": 2}])

    assert list(totals.items()) == [("DISK_GB", 5), ("VCPU", 3)]
