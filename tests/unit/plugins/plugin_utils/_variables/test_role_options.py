# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of a role as options of modules."""

from __future__ import annotations

import datetime
import typing as t
from pathlib import Path

import pytest
import yaml

from ansible_collections.osops.placement.plugins.module_utils._core.clients.argspec import (
    connection_options,
)
from ansible_collections.osops.placement.plugins.module_utils._core.options.policy import (
    policy_options,
)
from ansible_collections.osops.placement.plugins.plugin_utils._variables.role_options import (
    OPTION_GROUPS,
    convert_option,
    is_answered,
    list_role_variables,
)

ROOT = Path(__file__).parents[5]
ROLES = ("orphan_cleanup", "host_decommission", "hypervisor_cleanup")


def test_the_groups_have_the_options_of_the_modules() -> None:
    assert set(OPTION_GROUPS["connection"]) == set(connection_options())
    assert set(OPTION_GROUPS["policy"]) == set(policy_options())


@pytest.mark.parametrize("group", OPTION_GROUPS)
@pytest.mark.parametrize("role", ROLES)
def test_a_role_hands_on_its_own_variables(role: str, group: str) -> None:
    variables = yaml.safe_load((ROOT / "roles" / role / "vars" / "main.yml").read_text())

    assert (
        variables[f"_{role}_{group}"]
        == f"{{{{ lookup('osops.placement.role_options', '{role}', group='{group}') }}}}"
    )
    assert list_role_variables(role, group) == {
        option: f"{role}_{option}" for option in OPTION_GROUPS[group]
    }


DAY = datetime.date(2026, 12, 31)
TIME = datetime.datetime(2026, 12, 31, 18, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], []),
        (["a"], ["a"]),
        ([{"name": "a", "until": DAY}], [{"name": "a", "until": "2026-12-31"}]),
        ([{"name": "a", "until": TIME}], [{"name": "a", "until": "2026-12-31T18:00:00+00:00"}]),
        ([{"name": "a", "until": "2026-12-31"}, "b"], [{"name": "a", "until": "2026-12-31"}, "b"]),
        ('["a", "b"]', ["a", "b"]),
        ('[{"name": "a", "until": "2026-12-31"}]', [{"name": "a", "until": "2026-12-31"}]),
        # The modules split a text, and refuse what is not a list.
        ("a,b", "a,b"),
        ("", ""),
        (None, None),
    ],
)
@pytest.mark.parametrize("option", ["exclude_consumers", "exclude_providers"])
def test_exclusions_are_a_list_without_dates(option: str, given: t.Any, expected: t.Any) -> None:
    assert convert_option(option, given) == expected


@pytest.mark.parametrize("value", ["admin", {"auth": {}}, 120, False, None, "[x]"])
def test_any_other_option_is_handed_on_as_it_is(value: t.Any) -> None:
    assert convert_option("cloud", value) is value


@pytest.mark.parametrize(
    ("option", "value", "answered"),
    [
        ("min_age", "", False),
        ("unknown_min_age", None, False),
        ("min_age", 0, True),
        ("min_age", "0", True),
        ("min_age", 3600, True),
        ("min_age", False, True),
        ("region_name", "", True),
        ("exclude_consumers", "", True),
        ("exclude_providers", None, True),
    ],
)
def test_an_age_without_an_answer_is_that_of_the_module(
    option: str, value: t.Any, answered: bool
) -> None:
    """An empty exclusion is not left out: it may be one that is misspelt."""
    assert is_answered(option, value) is answered
