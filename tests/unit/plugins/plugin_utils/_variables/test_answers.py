# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers of a survey: what is certain is read, and everything else is refused."""

from __future__ import annotations

import datetime
import typing as t

import pytest
from ansible.errors import AnsibleFilterError

from ......plugins.filter.host_names import host_names
from ......plugins.module_utils._common.errors import InvalidInput
from ......plugins.plugin_utils._variables.answers import read_fenced, select_fenced_hosts


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        (None, []),
        ("", []),
        (" \n", []),
        ([], []),
        ([""], []),
        ("compute-1", ["compute-1"]),
        (" compute-1 , compute-2,", ["compute-1", "compute-2"]),
        (["compute-1", "compute-2"], ["compute-1", "compute-2"]),
        (["compute-1, compute-2"], ["compute-1", "compute-2"]),
        # A reader that leaves texts as they are.
        ("12345", ["12345"]),
        ("no, on", ["no", "on"]),
        ("'12345'", ["12345"]),
        ("'no', \"on\" ,compute-1", ["no", "on", "compute-1"]),
        ("'it", ["'it"]),
        ("'", ["'"]),
    ],
)
def test_names_are_read(answer: t.Any, names: list[str]) -> None:
    assert host_names(answer, "placement_hosts") == names


@pytest.mark.parametrize(
    "answer",
    [
        12345,
        0,
        1.5,
        True,
        False,
        datetime.date(2026, 11, 20),
        datetime.datetime(2026, 11, 20, 3, 4, 5, tzinfo=datetime.UTC),
        {"compute-1": None},
        ["compute-1", 12345],
        ["compute-1", None],
        [["compute-1"]],
    ],
)
def test_names_that_became_something_else_are_not_guessed(answer: t.Any) -> None:
    with pytest.raises(AnsibleFilterError, match=r"placement_hosts is .* not a name: .* in quotes"):
        host_names(answer, "placement_hosts")


@pytest.mark.parametrize("answer", [",", "''", ' "" ,', ["compute-1", "''"]])
def test_an_answer_without_a_name_does_not_mean_all_hosts(answer: t.Any) -> None:
    with pytest.raises(AnsibleFilterError, match=r"placement_hosts is .* does not name a host"):
        host_names(answer, "placement_hosts")


@pytest.mark.parametrize(
    ("answer", "names"),
    [("a,b", ["a,b"]), ("'12345'", ["12345"]), (["a", " 'b' "], ["a", "b"]), ("", [])],
)
def test_a_text_can_be_one_name(answer: t.Any, names: list[str]) -> None:
    assert host_names(answer, "host_decommission_target", split=False) == names


# The operator's word that hosts are fenced: taken literally, and for the hosts of the run only.

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
