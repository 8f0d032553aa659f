# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Findings as JUnit XML, for what shows the results of tests: a suite a kind, a failure for whatever is found.

It holds to the schema of Ant's JUnit task, the strictest of those in use: https://github.com/windyroad/JUnit-Schema
"""

from __future__ import annotations

import collections
import typing as t
import xml.etree.ElementTree as ET

from ansible_collections.osops.placement.plugins.module_utils._common.text import make_printable
from ansible_collections.osops.placement.plugins.module_utils._common.times import seconds_between
from ansible_collections.osops.placement.plugins.module_utils._findings.coverage import (
    describe_unjudged_hosts,
)
from ansible_collections.osops.placement.plugins.module_utils._findings.entries import (
    get_subject,
    iterate_entries,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.phrases import (
    get_server_name,
    list_hosts,
    list_remediated_findings,
    list_troubles,
    map_outcomes,
    sum_freed,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.units import format_amounts

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._findings.entries import Entry
    from ansible_collections.osops.placement.plugins.plugin_utils._report.report import Report

# So that a run without findings has a test as well: to many readers a report without tests is an error.
_RUN = "run"
_PACKAGE = "osops.placement"


def render(report: Report) -> str:
    """Return a document in which what a run has put right is a test that passed."""
    made, settled = map_outcomes(report), list_remediated_findings(report)
    kinds: dict[str, list[ET.Element]] = collections.defaultdict(list)
    for trouble in list_troubles(report):
        view = _create_test_case(_RUN, f"trouble {len(kinds[_RUN]) + 1}")
        ET.SubElement(view, "error", {"type": "trouble", "message": make_printable(trouble)})
        kinds[_RUN].append(view)
    if not kinds[_RUN]:
        kinds[_RUN].append(_create_test_case(_RUN, "sound reading"))
    if unjudged := describe_unjudged_hosts(report.findings["summary"]["coverage"]):
        view = _create_test_case(_RUN, "whole cloud judged")
        ET.SubElement(view, "skipped", {"message": make_printable(unjudged)})
        kinds[_RUN].append(view)
    for entry in iterate_entries(report.findings):
        kinds[entry["kind"]].append(
            _convert_entry(entry, made.get(entry["id"], ""), entry["id"] in settled)
        )
    root = ET.Element("testsuites")
    for number, (name, cases) in enumerate(kinds.items()):
        about = {"name": name, "package": _PACKAGE, "id": str(number), "hostname": "localhost"}
        suite = ET.SubElement(
            root,
            "testsuite",
            {**about, **_format_times(report, name == _RUN), **_count_results(cases)},
        )
        suite.append(_build_properties(report))
        suite.extend(cases)
        for output in ("system-out", "system-err"):
            ET.SubElement(suite, output)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _convert_entry(entry: Entry, outcome: str, settled: bool) -> ET.Element:
    about = make_printable(get_subject(entry))
    name = make_printable(get_server_name(entry))
    view = _create_test_case(entry["kind"], f"{about} {name}".rstrip())
    reason = make_printable(entry["reason"])
    if entry["verdict"] in ("protected", "undecided"):
        ET.SubElement(view, "skipped", {"message": f"{entry['verdict']}: {reason}"})
    elif not settled:
        failure = ET.SubElement(view, "failure", {"type": entry["verdict"], "message": reason})
        failure.text = "\n".join(
            f"{label}: {make_printable(text)}"
            for label, text in _list_details(entry, outcome)
            if text
        )
    return view


def _list_details(entry: Entry, outcome: str) -> list[tuple[str, str]]:
    return [
        ("id", entry["id"]),
        ("first seen", f"{entry['first_seen']}{', new' if entry['new'] else ''}"),
        ("hosts", ", ".join(list_hosts(entry))),
        ("frees", format_amounts(sum_freed(entry))),
        ("waiting", entry.get("waiting", "")),
        ("outcome", outcome),
    ]


def _create_test_case(kind: str, name: str) -> ET.Element:
    return ET.Element("testcase", {"classname": f"{_PACKAGE}.{kind}", "name": name, "time": "0"})


def _count_results(cases: list[ET.Element]) -> dict[str, str]:
    counted = {
        f"{name}s": sum(view.find(name) is not None for view in cases)
        for name in ("failure", "error")
    }
    skipped = sum(view.find("skipped") is not None for view in cases)
    return {
        name: str(count)
        for name, count in {"tests": len(cases), **counted, "skipped": skipped}.items()
    }


def _format_times(report: Report, whole: bool) -> dict[str, str]:
    started, finished = report.findings["started_at"], report.findings["finished_at"]
    return {
        "timestamp": started.removesuffix("Z"),
        "time": str(seconds_between(started, finished) or 0) if whole else "0",
    }


def _build_properties(report: Report) -> ET.Element:
    cloud = report.findings["cloud"]
    told = {
        "placement_endpoint": cloud["placement_endpoint"],
        "region": cloud["region"] or "",
        "journal": report.journal or "",
    }
    properties = ET.Element("properties")
    for name, value in told.items():
        ET.SubElement(properties, "property", {"name": name, "value": make_printable(value)})
    return properties
