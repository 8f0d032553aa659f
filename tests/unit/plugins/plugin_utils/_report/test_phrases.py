# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What projects get back of their quota, as people read it."""

from __future__ import annotations

import typing as t

import pytest

from ......plugins.plugin_utils._report.phrases import label_project, list_quota_lines


def make_stranded(**projects: dict[str, t.Any]) -> t.Any:
    quota = {}
    for uuid, fields in projects.items():
        known = {"name": "", "exists": True, "consumers": 1, "cores": 0, "ram_mib": 0}
        quota[uuid] = {**known, **fields}
    return {"quota": quota}


def test_projects_with_the_largest_amounts_come_first() -> None:
    stranded = make_stranded(
        a={"name": "web", "cores": 1, "ram_mib": 2048},
        b={"name": "db", "cores": 4},
        c={"name": "ram", "ram_mib": 512},
    )

    assert list_quota_lines(stranded) == [
        "db (b): 4 cores",
        "web (a): 1 core, 2 GiB of RAM",
        "ram (c): 512 MiB of RAM",
    ]


@pytest.mark.parametrize(
    "fields",
    [{"exists": False, "cores": 1}, {"exists": None, "cores": 1}, {"cores": 0}],
    ids=["gone", "unknown", "disk only"],
)
def test_what_gets_no_quota_back_has_no_line(fields: dict[str, t.Any]) -> None:
    assert list_quota_lines(make_stranded(a=fields)) == []


@pytest.mark.parametrize(
    ("uuid", "fields", "label"),
    [
        ("a", {"name": "web"}, "web (a)"),
        ("a", {"exists": None}, "a"),
        ("a", {"exists": False}, "a, which no longer exists"),
        ("a", {"name": "\x1b[31m"}, "\\x1b[31m (a)"),
        ("", {}, "no project"),
        ("other", {}, "other"),
    ],
)
def test_project_is_named_as_far_as_it_is_known(
    uuid: str, fields: dict[str, t.Any], label: str
) -> None:
    assert label_project(uuid, make_stranded(a=fields)) == label


def test_file_of_an_older_version_has_no_lines() -> None:
    assert list_quota_lines(t.cast("t.Any", {})) == []
    assert label_project("a", t.cast("t.Any", {})) == "a"
