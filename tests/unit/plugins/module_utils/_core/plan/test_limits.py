"""After how many failures a run gives up, and which limits are none.

What the limits on changes refuse is tested with the plan.
"""

from __future__ import annotations

import typing as t

import pytest

from .......plugins.module_utils._common.errors import InvalidInput
from .......plugins.module_utils._core.options.run import FailureOptions
from .......plugins.module_utils._core.plan.limits import Limits, explain_abort, parse_limits


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
