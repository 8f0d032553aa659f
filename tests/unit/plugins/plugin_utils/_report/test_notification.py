# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Notifications for chats.

They are sent only for news, and contain no name that the chat would interpret.
"""

from __future__ import annotations

import json
import re
import typing as t

import pytest
from markdown_it import MarkdownIt

from ansible_collections.osops.placement.plugins.module_utils._common.text import make_printable
from ansible_collections.osops.placement.plugins.plugin_utils._report.notification import (
    MAX_NEW_FINDINGS,
    NOTICE_FORMATTERS,
    Notice,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.report import Report
from ansible_collections.osops.placement.tests.unit.plugins.plugin_utils.hostile import (
    HOSTILE,
    hostile,
    hostile_report,
    remediation_of,
    told,
)


def _notice(report: Report | None, failure: str = "", remediation: t.Any = None) -> Notice:
    return Notice.from_report(report, remediation, failure, {"markdown": "/r/report.md"})


def _known() -> t.Any:
    """Return a sound reading in which nothing is new."""
    findings = told(hostile("x"))
    findings["summary"]["coverage"] |= {"complete": True, "failed_checks": []}
    for entry in findings["findings"]:
        entry["new"] = False
    return findings


def test_unchanged_findings_send_no_notification() -> None:
    assert not _notice(Report(_known())).notable


@pytest.mark.parametrize("what", ["new", "gate", "failure", "change", "no reading"])
def test_new_findings_and_failures_send_a_notification(what: str) -> None:
    findings, failure, remediation = _known(), "", None
    if what == "new":
        findings["findings"][0]["new"] = True
    elif what == "gate":
        findings["summary"]["coverage"]["failed_checks"] = ["Wrong region."]
    elif what == "change":
        remediation = remediation_of(findings, "failed")
    else:
        failure = "It broke."
    report = (
        None if what == "no reading" else Report(findings, remediation=remediation, failure=failure)
    )

    assert _notice(report, failure, remediation).notable


@pytest.mark.parametrize("product", NOTICE_FORMATTERS)
def test_notification_has_the_cloud_the_problem_and_new_findings(product: str) -> None:
    findings = told(hostile("web-1"))
    findings["summary"]["coverage"]["failed_checks"] = ["Wrong region."]
    text = json.dumps(NOTICE_FORMATTERS[product](_notice(Report(findings))))

    for part in (
        "http://placement",
        "Wrong region.",
        "deleted_server",
        findings["findings"][0]["consumer"],
        "web-1",
        "/r/report.md",
    ):
        assert part in text.replace("&#8203;", ""), part


@pytest.mark.parametrize("product", NOTICE_FORMATTERS)
def test_run_without_a_reading_is_described_by_its_failure(product: str) -> None:
    assert "The cloud did not answer." in json.dumps(
        NOTICE_FORMATTERS[product](_notice(None, "The cloud did not answer."))
    )


@pytest.mark.parametrize("product", NOTICE_FORMATTERS)
def test_remaining_new_findings_are_counted(product: str) -> None:
    findings = told(hostile("web-1"))
    findings["findings"] = findings["findings"][:1] * (MAX_NEW_FINDINGS + 3)
    text = json.dumps(NOTICE_FORMATTERS[product](_notice(Report(findings))), ensure_ascii=False)

    assert (
        text.count(
            f'"deleted_server/{findings["findings"][0]["consumer"]}"'
            if product == "json"
            else "deleted_server "
        )
        == MAX_NEW_FINDINGS
    )
    assert ('"new_count": 23' if product == "json" else "… and 3 more") in text


@pytest.mark.parametrize("product", NOTICE_FORMATTERS)
@pytest.mark.parametrize("name", HOSTILE)
def test_notification_can_be_sent_with_any_name(product: str, name: str) -> None:
    body = NOTICE_FORMATTERS[product](_notice(hostile_report(name)))

    assert json.loads(json.dumps(body).encode()) == body


@pytest.mark.parametrize("name", HOSTILE)
def test_slack_message_has_no_markup_from_a_name(name: str) -> None:
    """Every mention, link and date of Slack's begins with a less-than sign."""
    text = NOTICE_FORMATTERS["slack"](_notice(hostile_report(name)))["text"]

    assert "<" not in text and ">" not in text
    assert not re.search("&(?!(amp|lt|gt);)", text)
    assert text.count("\n") == NOTICE_FORMATTERS["slack"](_notice(hostile_report("template")))[
        "text"
    ].count("\n")
    assert all(line.isprintable() for line in text.replace("\u2060", "").split("\n"))


@pytest.mark.parametrize("name", HOSTILE)
def test_mattermost_message_has_no_markup_from_a_name(name: str) -> None:
    tokens = MarkdownIt("gfm-like").parse(
        NOTICE_FORMATTERS["mattermost"](_notice(hostile_report(name)))["text"]
    )
    inline = [child for token in tokens for child in token.children or ()]

    assert {token.type for token in inline} <= {"text", "code_inline", "softbreak"}
    assert not re.search(
        r"[@#]\w|:[a-z]\w*:", "\n".join(token.content for token in inline if token.type == "text")
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_teams_message_has_names_only_in_fields_without_markup(name: str) -> None:
    (attachment,) = NOTICE_FORMATTERS["teams"](_notice(hostile_report(name)))["attachments"]
    title, *lines = attachment["content"]["body"]

    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert title == {
        "type": "TextBlock",
        "text": "Orphaned allocations: the run failed",
        "weight": "Bolder",
        "size": "Medium",
        "wrap": True,
    }
    assert {line["type"] for line in lines} == {"RichTextBlock"}
    assert all(run["text"].isprintable() for line in lines for run in line["inlines"])


def test_generic_notification_is_data() -> None:
    body = NOTICE_FORMATTERS["json"](_notice(hostile_report("script")))

    assert body["new"][0]["server"] == HOSTILE["script"]
    assert (body["new_count"], body["summary"]["verdicts"]["orphaned"], body["reports"]) == (
        2,
        2,
        {"markdown": "/r/report.md"},
    )
    assert make_printable(HOSTILE["script"]) in body["troubles"][0]
