"""Notifications.

They are sent only for news, and have no name that a chat would interpret.
"""

import json
import re
import typing as t

import pytest
from markdown_it import MarkdownIt

from ......plugins.module_utils._common.text import make_printable
from ......plugins.plugin_utils._report.notification import (
    MAX_NEW_FINDINGS,
    NOTICE_FORMATTERS,
    Notice,
)
from ......plugins.plugin_utils._report.view import Report
from ..hostile import HOSTILE, hostile, hostile_report, remediation_of, told


def _notice(report: Report | None, failure: str = "", remediation: t.Any = None) -> Notice:
    return Notice(report, remediation, failure, {"markdown": "/r/report.md"})


def _text(report: Report) -> str:
    (text,) = NOTICE_FORMATTERS["text"](_notice(report)).values()
    return t.cast("str", text)


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


@pytest.mark.parametrize("format_", NOTICE_FORMATTERS)
def test_notification_has_the_cloud_the_problem_and_new_findings(format_: str) -> None:
    findings = told(hostile("web-1"))
    findings["summary"]["coverage"]["failed_checks"] = ["Wrong region."]
    text = json.dumps(NOTICE_FORMATTERS[format_](_notice(Report(findings))))

    consumer = findings["findings"][0]["consumer"]
    for part in ("http://placement", "Wrong region.", "deleted_server", consumer, "web-1"):
        assert part in text, part
    assert "/r/report.md" in text


@pytest.mark.parametrize("format_", NOTICE_FORMATTERS)
def test_run_without_a_reading_is_described_by_its_failure(format_: str) -> None:
    failure = "The cloud did not answer."

    assert failure in json.dumps(NOTICE_FORMATTERS[format_](_notice(None, failure)))


@pytest.mark.parametrize(
    ("format_", "shown", "more"),
    [("json", '"deleted_server/', '"new_count": 23'), ("text", "deleted_server ", "… and 3 more")],
)
def test_remaining_new_findings_are_counted(format_: str, shown: str, more: str) -> None:
    findings = told(hostile("web-1"))
    findings["findings"] = findings["findings"][:1] * (MAX_NEW_FINDINGS + 3)
    text = json.dumps(NOTICE_FORMATTERS[format_](_notice(Report(findings))), ensure_ascii=False)

    assert text.count(shown) == MAX_NEW_FINDINGS and more in text


@pytest.mark.parametrize("format_", NOTICE_FORMATTERS)
@pytest.mark.parametrize("name", HOSTILE)
def test_notification_can_be_sent_with_any_name(format_: str, name: str) -> None:
    body = NOTICE_FORMATTERS[format_](_notice(hostile_report(name)))

    assert json.loads(json.dumps(body).encode()) == body


@pytest.mark.parametrize("name", HOSTILE)
def test_text_has_no_markup_from_a_name(name: str) -> None:
    """Slack reads mentions, links and dates in code as well, and knows no longer fences."""
    text = _text(hostile_report(name))
    tokens = MarkdownIt("gfm-like").parse(text)
    inline = [child for token in tokens for child in token.children or ()]
    shown = "\n".join(token.content for token in inline if token.type == "text")

    assert not set("<>&") & set(text)
    assert "``" not in text and all(line.count("`") % 2 == 0 for line in text.split("\n"))
    assert {token.type for token in inline} <= {"text", "code_inline"}
    assert not re.search(r"[*~@#\[\]|]|:[a-z]\w*:|//", shown)


@pytest.mark.parametrize("name", HOSTILE)
def test_text_is_a_list_with_a_line_for_each_item(name: str) -> None:
    """Teams joins lines that are not items."""
    text = _text(hostile_report(name))
    title, blank, *items = text.split("\n")

    assert title.endswith(" failed") and blank == ""
    assert all(item.startswith("- ") and item.isprintable() for item in items)
    assert len(items) == _text(hostile_report("template")).count("\n") - 1


def test_generic_notification_is_data() -> None:
    body = NOTICE_FORMATTERS["json"](_notice(hostile_report("script")))

    assert body["new"][0]["server"] == HOSTILE["script"]
    assert (body["new_count"], body["summary"]["verdicts"]["orphaned"]) == (2, 2)
    assert body["reports"] == {"markdown": "/r/report.md"}
    assert make_printable(HOSTILE["script"]) in body["troubles"][0]
