# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""After how many failures a run gives up, and which limits are none.

What the limits on changes refuse is tested with the plan.
"""

from __future__ import annotations

import types
import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._core.changes.provider_trees import (
    TreeRemover,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.change import (
    ProviderRemoval,
)
from ansible_collections.osops.placement.plugins.module_utils._core.options.policy import Policy
from ansible_collections.osops.placement.plugins.module_utils._core.plan.limits import (
    MAX_FAILURES,
    Limits,
    explain_abort,
    failures_option,
    parse_limits,
    parse_max_failures,
)
from ansible_collections.osops.placement.plugins.module_utils._core.plan.plan import TreeStep
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.placement import Placement


@pytest.mark.parametrize("max_changes", [0, 1, 100])
@pytest.mark.parametrize("max_share", [0, 0.1, 1])
def test_possible_limits_are_taken_as_they_are(max_changes: int, max_share: float) -> None:
    options = {"max_changes": max_changes, "max_share": max_share}

    assert parse_limits(options) == Limits(max_changes, max_share)


@pytest.mark.parametrize("max_changes", [-1, -100])
def test_negative_number_of_changes_is_refused(max_changes: int) -> None:
    with pytest.raises(InvalidInput, match=f"is {max_changes}: it must be 0 or more"):
        parse_limits({"max_changes": max_changes, "max_share": 0.1})


@pytest.mark.parametrize("max_share", [-0.001, 1.001, 10, float("inf"), float("nan")])
def test_share_that_is_no_fraction_is_refused(max_share: float) -> None:
    """10 is meant as a percentage, and would switch the limit off."""
    with pytest.raises(InvalidInput, match=f"is {max_share}: it must be a fraction from 0 to 1"):
        parse_limits({"max_changes": 1, "max_share": max_share})


def test_default_limit_is_the_same_everywhere() -> None:
    assert (
        parse_max_failures({"max_failures": failures_option()["max_failures"]["default"]})
        == MAX_FAILURES
        == 5
    )


@pytest.mark.parametrize("number", [0, -1])
def test_limit_below_one_failure_is_refused(number: int) -> None:
    with pytest.raises(
        InvalidInput,
        match=rf"max_failures \(orphan_cleanup_max_failures\) is {number}: it must be 1 or more",
    ):
        parse_max_failures({"max_failures": number})


@pytest.mark.parametrize(
    ("failed", "allowed", "goes_on"),
    [(0, 1, True), (1, 1, False), (4, 5, True), (5, 5, False), (8, 5, False)],
)
def test_run_continues_while_one_more_failure_is_allowed(
    failed: int, allowed: int, goes_on: bool
) -> None:
    assert (explain_abort(failed, allowed) is None) is goes_on


def test_trees_are_kept_after_too_many_failures() -> None:
    api = Placement().api()
    session = t.cast(
        "t.Any",
        types.SimpleNamespace(
            placement=api,
            compute=api,
            network=None,
            project=None,
            roles=frozenset(),
            block_storage=None,
            accelerator=None,
            cloud=None,
            require_one_clock=lambda: None,
        ),
    )
    steps = [TreeStep("orphaned_provider/x", "orphaned_provider", ProviderRemoval(()))] * 2

    outcomes = TreeRemover(session, Policy(), None, max_failures=2).remove_trees(
        steps, str, failed_before=2
    )

    assert [outcome.outcome for outcome in outcomes] == ["skipped"] * 2
    assert outcomes[0].reason.id == "too_many_failures"
