# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a report says about the scope of its reading."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._core.models.snapshot import (
    HostGroups,
    Scope,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.overview import build_overview
from ansible_collections.osops.placement.plugins.plugin_utils._report.report import Report
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.judging import (
    NO_MINIMUM_AGE,
    build_findings,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.world import World


@pytest.mark.parametrize(
    ("scope", "lines"),
    [
        (Scope(), []),
        (Scope(hosts=("a", "b"), mode="triage"), [("hosts", "a, b"), ("mode", "triage")]),
        (
            Scope(
                groups=HostGroups(
                    ("uuid-7", "uuid-8"),
                    ("rack-7", "rack-8"),
                    ("7", "8"),
                    availability_zones=("az1",),
                    cells=("cell1",),
                    hosts=("a",),
                )
            ),
            [
                ("aggregates", "rack-7, rack-8"),
                ("availability zones", "az1"),
                ("cells", "cell1"),
            ],
        ),
    ],
    ids=["everything", "hosts", "groups"],
)
def test_overview_says_to_what_the_reading_was_narrowed(
    scope: Scope, lines: list[tuple[str, str]]
) -> None:
    findings: t.Any = build_findings(World().snapshot(scope=scope), NO_MINIMUM_AGE)

    assert build_overview(Report(json.loads(json.dumps(findings))))["scope"] == lines


def test_findings_of_a_version_without_groups_are_shown() -> None:
    findings: t.Any = json.loads(
        json.dumps(build_findings(World().snapshot(scope=Scope()), NO_MINIMUM_AGE))
    )
    del findings["scope"]["groups"]

    assert build_overview(Report(findings))["about"] == "the whole cloud"
