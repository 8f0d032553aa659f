"""The models: what a change does and frees, and when a migration has ended."""

from __future__ import annotations

import typing as t

import pytest

from .......plugins.module_utils._core.models.change import Change
from .......plugins.module_utils._core.models.nova import Migration


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


@pytest.mark.parametrize(("after", "action"), [({}, "remove"), ({"b": {"VCPU": 1}}, "reduce")])
def test_change_that_leaves_nothing_removes_the_consumer(
    after: dict[str, t.Any], action: str
) -> None:
    assert _change({"a": {"VCPU": 1}, "b": {"VCPU": 1}}, after).action == action


def test_change_is_described_with_documents_action_and_freed_amounts() -> None:
    assert _change({"a": {"VCPU": 1}}, {}).as_dict() == {
        "consumer": "consumer",
        "generation": 3,
        "before": {"allocations": {"a": {"resources": {"VCPU": 1}}}},
        "after": {"allocations": {}},
        "action": "remove",
        "frees": {"a": {"VCPU": 1}},
        "claims": {},
        "partner": None,
    }


@pytest.mark.parametrize(
    ("status", "over"),
    [
        *(
            (status, True)
            for status in (
                "confirmed",
                "reverted",
                "error",
                "failed",
                "completed",
                "cancelled",
                "done",
            )
        ),
        *(
            (status, False)
            for status in (
                "accepted",
                "queued",
                "preparing",
                "pre-migrating",
                "migrating",
                "post-migrating",
            )
        ),
        *(
            (status, False)
            for status in (
                "running",
                "reverting",
                "confirming",
                "finished",
                "",
                "whatever comes next",
            )
        ),
    ],
)
def test_migration_has_ended_only_in_known_terminal_states(status: str, over: bool) -> None:
    assert (
        Migration("m", "s", "migration", status, None, None, None, None, None, None).ended is over
    )
