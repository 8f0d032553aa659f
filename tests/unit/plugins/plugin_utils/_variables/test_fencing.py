# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The operator's word that hosts are fenced: taken literally, and for the hosts of the run only."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.plugin_utils._variables.fencing import (
    read_fenced,
    select_fenced_hosts,
)

TARGETS = ["compute-1", "compute-2"]


@pytest.mark.parametrize(
    ("value", "fenced"),
    [
        (True, TARGETS),
        ("true", TARGETS),
        (" Yes ", TARGETS),
        (False, []),
        (None, []),
        ("", []),
        ("false", []),
        ("no", []),
        ([], []),
        ("compute-2", ["compute-2"]),
        ("compute-2, compute-1", TARGETS),
        (["compute-1"], ["compute-1"]),
        (["'compute-1'"], ["compute-1"]),
        # Not a host of this run, or another one after all.
        (["compute-3"], []),
        ("compute-11", []),
        ("Compute-1", []),
    ],
)
def test_only_the_hosts_of_the_run_that_are_named_are_fenced(
    value: t.Any, fenced: list[str]
) -> None:
    assert select_fenced_hosts(value, TARGETS) == fenced


@pytest.mark.parametrize(
    "value",
    [
        0,
        1,
        1.0,
        "1",
        ["yes"],
        [True],
        [None],
        "yes, compute-1",
        "[compute-1]",
        "{}",
        {"a": 1},
        "compute-1 compute-2",
        ",",
        b"true",
        [["compute-1"]],
    ],
)
def test_what_may_mean_anything_is_refused(value: t.Any) -> None:
    with pytest.raises(InvalidInput, match="neither true nor false nor a list of hosts"):
        read_fenced(value)
