"""Markdown as GitHub and GitLab read it.

CommonMark with tables, in which every address becomes a link.
"""

import re
import typing as t
from collections.abc import Iterator

import pytest
from markdown_it import MarkdownIt

from ......plugins.module_utils._common.text import make_printable
from ......plugins.plugin_utils._report.markdown import escape_text, format_code_span, render
from ......plugins.plugin_utils._report.view import Report
from ..hostile import HOSTILE, hostile, hostile_report, remediation_of, told

AMOUNTS = "1 VCPU, 512 MiB, 1 GiB disk"
CHECK_MODE = "Check mode: nothing was written. Without check mode: 2 removed."
READER = MarkdownIt("gfm-like")

# The elements that our documents may render to.
OURS = {"text", "code_inline", "strong_open", "strong_close"}


def _inline(document: str) -> Iterator[t.Any]:
    for token in READER.parse(document):
        yield from token.children or ()


def _rows(document: str) -> list[list[str]]:
    """Return the cells of all rows, with the text that a reader sees."""
    rows: list[list[str]] = []
    for token in READER.parse(document):
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and rows:
            rows[-1].append(
                "".join(child.content for child in token.children or ()).replace("\u200b", "")
            )
    return rows


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_name_contains_no_markup(name: str) -> None:
    document, harmless = render(hostile_report(name)), render(hostile_report("quotes"))
    types, usual = ([token.type for token in _inline(each)] for each in (document, harmless))

    assert set(types) <= OURS
    blocks = {token.type for token in READER.parse(document)}
    assert not blocks & {"html_block", "fence", "code_block"}
    assert types.count("strong_open") == usual.count("strong_open")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_name_adds_no_rows_or_cells(name: str) -> None:
    rows, usual = _rows(render(hostile_report(name))), _rows(render(hostile_report("quotes")))

    assert [len(row) for row in rows] == [len(row) for row in usual]


@pytest.mark.parametrize("name", HOSTILE)
def test_name_is_displayed_exactly(name: str) -> None:
    """A bar behind an odd number of backslashes gets one more backslash."""
    shown = make_printable(HOSTILE[name], 80)
    cells = f"{format_code_span(HOSTILE[name])} | {escape_text(HOSTILE[name])}"
    seen = _rows(f"| name | why |\n| --- | --- |\n| {cells} |")[1]

    assert seen[0].strip() == re.sub(r"(?<!\\)((?:\\\\)*\\)\|", r"\1\\|", shown).strip()
    assert seen[1].strip() == make_printable(HOSTILE[name], 400).strip()


@pytest.mark.parametrize("name", HOSTILE)
def test_no_mention_remains_outside_of_code(name: str) -> None:
    """GitHub and GitLab search the displayed text for mentions, whatever was escaped."""
    seen = "\n".join(
        token.content for token in _inline(render(hostile_report(name))) if token.type == "text"
    )

    assert not re.search(r"[@#!%&]\w|:[a-z]\w*:|www\.\w", seen)


def test_finding_shows_freed_amounts_and_outcome() -> None:
    findings, first_seen = told(hostile("x")), "2026-01-02T03:04:05Z"
    findings["findings"][0] |= {"new": False, "first_seen": first_seen}
    rows = _rows(render(Report(findings, remediation=remediation_of(findings, "removed"))))
    (row,) = (row for row in rows if row[0] == "deleted_server")

    assert row[1:6] == [first_seen, findings["findings"][0]["consumer"], "x", "x", AMOUNTS]
    assert row[7] == "removed"
    assert [row[1] for row in rows if row[0] == "extra_host"] == [f"new, {findings['finished_at']}"]


def test_remaining_findings_are_counted() -> None:
    findings = told(hostile("x"))
    findings["findings"] = findings["findings"][:1] * 103

    assert "… and 3 more" in render(Report(findings))


def test_command_is_shown_whole_or_not_at_all() -> None:
    findings = told(hostile("x"))
    command = "traits=$(openstack trait list `uuid` | grep -vx X) && openstack trait set uuid"
    findings["findings"][0]["commands"] = [command, "x" * 2000]
    rows = _rows(render(Report(findings)))

    shown = rows[rows.index(["kind", "about", "command"]) + 1 :]
    assert shown[0][2] == command and shown[1][2].startswith("too long")


def test_over_committed_hosts_are_counted_by_class() -> None:
    findings = told(hostile("x"))
    figures = {"hosts": 9, "overcommitted": 2, "highest": 3.5, "highest_host": "compute-1"}
    findings["summary"]["overcommit"] = {
        "VCPU": figures,
        "DISK_GB": {**figures, "overcommitted": 0},
    }
    rows = _rows(render(Report(findings)))

    shown = rows[rows.index(["resource class", "hosts", "most"]) + 1 :]
    # The title of the next part follows the last row.
    assert shown[0][:3] == ["VCPU", "2 of 9", "3.5 times on compute-1"]
    assert shown[1][0] == "kind"


@pytest.mark.parametrize("check_mode", [True, False])
def test_outcome_says_whether_anything_was_written(check_mode: bool) -> None:
    findings = told(hostile("x"))
    remediation = remediation_of(findings, "removed", check_mode=check_mode)
    document = render(Report(findings, remediation=remediation, journal="/j.jsonl"))

    assert (CHECK_MODE in document) == check_mode
    assert ("\n2 removed.\n" in document) != check_mode
    assert "Journal: `/j.jsonl`" in document
