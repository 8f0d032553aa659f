# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings as JUnit XML, for viewers of test results: one suite a kind, one failure a finding.

It follows the schema of Ant's JUnit task, the strictest of those in use:
https://github.com/windyroad/JUnit-Schema
"""

from __future__ import annotations

import collections
import xml.etree.ElementTree as ET

from ...module_utils._common.text import make_printable
from ...module_utils._common.times import seconds_between
from ...module_utils._core.findings.coverage import describe_unjudged_hosts
from ...module_utils._core.findings.entries import Entry, describe_scope, get_subject
from .order import list_sorted_entries
from .phrases import (
    get_server_name,
    list_hosts,
    list_remediated_findings,
    list_troubles,
    map_outcomes,
    sum_freed,
)
from .report import Report
from .units import format_amounts

# The suite of the run itself. With it a run without findings has a test as well: to many readers a
# report without tests is an error.
_RUN = "run"
_PACKAGE = "osops.placement"


def render(report: Report) -> str:
    """Return a document in which what a run has remediated is a test that passed."""
    outcomes, remediated = map_outcomes(report), list_remediated_findings(report.remediation)
    suites: dict[str, list[ET.Element]] = collections.defaultdict(list)
    suites[_RUN] = _build_run_cases(report)
    for entry in list_sorted_entries(report.findings):
        outcome = outcomes.get(entry["id"], "")
        suites[entry["kind"]].append(_convert_entry(entry, outcome, entry["id"] in remediated))
    root = ET.Element("testsuites")
    for number, (name, cases) in enumerate(suites.items()):
        suite = ET.SubElement(
            root,
            "testsuite",
            {
                "name": name,
                "package": _PACKAGE,
                "id": str(number),
                "hostname": "localhost",
                **_format_times(report, name == _RUN),
                **_count_results(cases),
            },
        )
        suite.append(_build_properties(report))
        suite.extend(cases)
        for output in ("system-out", "system-err"):
            ET.SubElement(suite, output)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _build_run_cases(report: Report) -> list[ET.Element]:
    """Return the cases of the run itself: what went wrong, and what was not judged."""
    cases: list[ET.Element] = []
    for number, trouble in enumerate(list_troubles(report), 1):
        test_case = _create_test_case(_RUN, f"trouble {number}")
        ET.SubElement(test_case, "error", {"type": "trouble", "message": make_printable(trouble)})
        cases.append(test_case)
    # With a test that passed, a run without findings is not an empty report.
    if not cases:
        cases.append(_create_test_case(_RUN, "sound reading"))
    if unjudged := describe_unjudged_hosts(report.findings["summary"]["coverage"]):
        test_case = _create_test_case(_RUN, "whole cloud judged")
        ET.SubElement(test_case, "skipped", {"message": make_printable(unjudged)})
        cases.append(test_case)
    return cases


def _convert_entry(entry: Entry, outcome: str, remediated: bool) -> ET.Element:
    subject = make_printable(get_subject(entry))
    name = make_printable(get_server_name(entry))
    test_case = _create_test_case(entry["kind"], f"{subject} {name}".rstrip())
    reason = make_printable(entry["reason"])
    if entry["verdict"] in ("protected", "undecided"):
        ET.SubElement(test_case, "skipped", {"message": f"{entry['verdict']}: {reason}"})
    elif not remediated:
        failure = ET.SubElement(test_case, "failure", {"type": entry["verdict"], "message": reason})
        details = _list_details(entry, outcome)
        failure.text = "\n".join(f"{label}: {make_printable(text)}" for label, text in details)
    return test_case


def _list_details(entry: Entry, outcome: str) -> list[tuple[str, str]]:
    """Return the details of an entry that there are, as labels and texts."""
    first_seen = f"{entry['first_seen']}{', new' if entry['new'] else ''}"
    details = [
        ("id", entry["id"]),
        ("first seen", first_seen),
        ("hosts", ", ".join(list_hosts(entry))),
        ("frees", format_amounts(sum_freed(entry))),
        ("waiting", entry.get("waiting", "")),
        ("outcome", outcome),
    ]
    return [(label, text) for label, text in details if text]


def _create_test_case(kind: str, name: str) -> ET.Element:
    return ET.Element("testcase", {"classname": f"{_PACKAGE}.{kind}", "name": name, "time": "0"})


def _count_results(cases: list[ET.Element]) -> dict[str, str]:
    counts = {"tests": str(len(cases))}
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        counts[name] = str(sum(test_case.find(tag) is not None for test_case in cases))
    return counts


def _format_times(report: Report, whole: bool) -> dict[str, str]:
    """Return when the run started and, for the suite of the `whole` run, how long it took."""
    started, finished = report.findings["started_at"], report.findings["finished_at"]
    seconds = 0
    if whole:
        seconds = seconds_between(started, finished) or 0
    # The schema knows no time zone.
    return {"timestamp": started.removesuffix("Z"), "time": str(seconds)}


def _build_properties(report: Report) -> ET.Element:
    cloud = report.findings["cloud"]
    values = {
        "placement_endpoint": cloud["placement_endpoint"],
        "region": cloud["region"] or "",
        "scope": describe_scope(report.findings["scope"]),
        "journal": report.journal or "",
    }
    properties = ET.Element("properties")
    for name, value in values.items():
        ET.SubElement(properties, "property", {"name": name, "value": make_printable(value)})
    return properties
