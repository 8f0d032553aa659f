# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""JUnit XML as a reader of test results accepts it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from ansible_collections.osops.placement.plugins.module_utils._common.text import make_printable
from ansible_collections.osops.placement.plugins.plugin_utils._report.junit import render
from ansible_collections.osops.placement.plugins.plugin_utils._report.report import Report
from ansible_collections.osops.placement.tests.unit.plugins.plugin_utils.hostile import (
    HOSTILE,
    hostile,
    hostile_report,
    remediation_of,
    told,
)

# The children in their order and the attributes of each element, by the schema of Ant's JUnit task.
CHILDREN = {
    "testsuites": r"(testsuite )*",
    "testsuite": r"properties (testcase )*system-out system-err ",
    "properties": r"(property )*",
    "testcase": r"((failure|error|skipped) )?",
}
ATTRIBUTES = {
    "testsuite": {
        "name",
        "package",
        "id",
        "hostname",
        "timestamp",
        "tests",
        "failures",
        "errors",
        "skipped",
        "time",
    },
    "property": {"name", "value"},
    "testcase": {"name", "classname", "time"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "skipped": {"message"},
}


def _read(report: Report) -> ET.Element:
    return ET.fromstring(render(report).encode("utf-8"))


def _results(report: Report) -> dict[str, list[str]]:
    """Return the results of the test cases by suite."""
    return {
        suite.attrib["name"]: [
            view[0].tag if len(view) else "passed" for view in suite.iter("testcase")
        ]
        for suite in _read(report)
    }


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_name_is_text_only(name: str) -> None:
    root = _read(hostile_report(name))

    assert _results(hostile_report(name)) == {
        "run": ["error", "error"],
        "deleted_server": ["failure"],
        "extra_host": ["failure"],
        "unproven": ["skipped"],
        "booting": ["skipped"],
    }
    assert make_printable(HOSTILE[name]).strip() in str(
        root.find(".//testcase[@classname='osops.placement.booting']").attrib["name"]
    )
    assert all(text.replace("\n", "").isprintable() for text in root.itertext())


@pytest.mark.parametrize("name", ["template", "script"])
def test_every_element_is_where_readers_expect_it(name: str) -> None:
    for element in _read(hostile_report(name)).iter():
        assert re.fullmatch(
            CHILDREN.get(element.tag, ""), "".join(f"{child.tag} " for child in element)
        )
        assert set(element.attrib) == ATTRIBUTES.get(element.tag, set())


def test_counts_match_the_test_cases() -> None:
    suites = list(_read(hostile_report("script")))

    assert suites
    for suite in suites:
        cases = list(suite.iter("testcase"))
        found = [view[0].tag for view in cases if len(view)]
        counts = {
            name: int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")
        }
        told_of = {
            "failures": found.count("failure"),
            "errors": found.count("error"),
            "skipped": found.count("skipped"),
        }
        assert counts == {"tests": len(cases), **told_of}


def test_sound_reading_without_findings_is_one_passed_test() -> None:
    world = hostile("x")
    findings = {**told(world), "findings": [], "protected": [], "undecided": []}
    findings["summary"]["coverage"]["failed_checks"] = []

    assert _results(Report(findings)) == {"run": ["passed"]}


@pytest.mark.parametrize(
    ("outcome", "check_mode", "result"),
    [
        ("removed", False, "passed"),
        ("removed", True, "failure"),
        ("skipped", False, "failure"),
        ("failed", False, "failure"),
    ],
)
def test_remediated_finding_is_a_passed_test(outcome: str, check_mode: bool, result: str) -> None:
    findings = told(hostile("x"))
    results = _results(
        Report(findings, remediation=remediation_of(findings, outcome, check_mode=check_mode))
    )

    assert results["deleted_server"] == results["extra_host"] == [result]
