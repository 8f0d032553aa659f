# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is sent to a webhook when something is new or failed.

Chats take names for markup and mentions. Anything from a cloud stands where they do not.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Callable, Mapping

from ...module_utils._common.text import make_printable
from ...module_utils._core.findings.coverage import describe_unjudged_hosts
from ...module_utils._core.findings.entries import Entry, Summary, get_subject
from ...module_utils._core.models.documents import RemediationDocument
from .markdown import escape_text, format_code_span
from .phrases import get_server_name, list_hosts, list_troubles
from .report import Report
from .units import humanize_amounts

# What is sent. Its shape is that of the service that gets it.
Payload = dict[str, t.Any]

MAX_NEW_FINDINGS = 20
_MAX_REASON = 300
_MAX_FACT = 400
_SENT_FIELDS = ("id", "kind", "verdict", "consumer", "first_seen", "reason")


@d.dataclass(frozen=True)
class Notice:
    """What a notice says of a run.

    cloud, region: empty when the run did not come so far.
    troubles: a sentence each.
    new: the first of the new findings; count: how many there are in all.
    summary: that of the findings; None without findings.
    tally: how many changes had each outcome.
    reports: the paths of the written reports, by format.
    """

    cloud: str
    region: str
    troubles: tuple[str, ...]
    new: tuple[Entry, ...]
    count: int
    summary: Summary | None
    tally: Mapping[str, int]
    check_mode: bool
    reports: Mapping[str, str]

    @classmethod
    def from_report(
        cls,
        report: Report | None,
        remediation: RemediationDocument | None,
        failure: str,
        reports: Mapping[str, str],
    ) -> Notice:
        """Return the notice of a run; without a `report`, of a run that has no findings."""
        tally: dict[str, int] = {}
        check_mode = False
        if remediation is not None:
            tally = {name: count for name, count in remediation["tally"].items() if count}
            check_mode = remediation["check_mode"]
        if report is None:
            troubles = (failure,) if failure else ()
            return cls("", "", troubles, (), 0, None, tally, check_mode, reports)
        new = [entry for entry in report.findings["findings"] if entry["new"]]
        cloud = report.findings["cloud"]
        return cls(
            cloud["placement_endpoint"],
            cloud["region"] or "",
            tuple(list_troubles(report)),
            tuple(new[:MAX_NEW_FINDINGS]),
            len(new),
            report.findings["summary"],
            tally,
            check_mode,
            reports,
        )

    @property
    def notable(self) -> bool:
        """Whether anything is new or failed."""
        return bool(self.troubles or self.count)

    @property
    def title(self) -> str:
        """The headline."""
        if self.troubles:
            return "Orphaned allocations: the run failed"
        if self.count == 1:
            return "Orphaned allocations: 1 new finding"
        return f"Orphaned allocations: {self.count} new findings"

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The figures, as labels and texts."""
        facts = [("cloud", f"{self.cloud} {self.region}".strip())]
        if self.summary:
            stranded = self.summary["stranded"]["resource_classes"]
            facts.append(("findings", _join_counts(self.summary["verdicts"])))
            facts.append(("stranded", humanize_amounts(stranded)))
        if self.tally:
            label = "would be" if self.check_mode else "outcome"
            facts.append((label, _join_counts(self.tally)))
        if self.summary:
            facts.append(("not judged", describe_unjudged_hosts(self.summary["coverage"])))
        # The first format that the user named; more paths would only be longer.
        for path in list(self.reports.values())[:1]:
            facts.append(("report", path))
        return [(label, text) for label, text in facts if text]

    @property
    def more(self) -> str:
        """How many new findings are left out, empty for none."""
        left = self.count - len(self.new)
        if left <= 0:
            return ""
        return f"… and {left} more"


def _join_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _format_slack(notice: Notice) -> Payload:
    """Return text in Slack's own markup: all of it begins with three characters, mentions too."""
    marks = (f"*{notice.title}*", ":warning: ", "", "• ")
    return {
        "text": _format_text(notice, marks, _format_slack_sentence, _format_slack_name),
        "mrkdwn": True,
        # Without these Slack makes links and mentions of names by itself.
        "parse": "none",
        "link_names": False,
        "unfurl_links": False,
    }


def _format_text(
    notice: Notice,
    marks: tuple[str, str, str, str],
    sentence: Callable[[t.Any, int], str],
    name: Callable[..., str],
) -> str:
    """Return a notice as text in the markup of a chat.

    marks: the title, and what begins a trouble, a fact and a finding.
    sentence, name: return what the cloud said so that nothing in it is markup, cut to a length.
    """
    title, trouble_mark, fact_mark, finding_mark = marks
    lines = [title]
    for trouble in notice.troubles:
        lines.append(f"{trouble_mark}{sentence(trouble, 1000)}")
    for fact, text in notice.facts:
        lines.append(f"{fact_mark}{fact}: {name(text, _MAX_FACT)}")
    for entry in notice.new:
        subject = " ".join([entry["kind"], *map(name, _list_subject_names(entry))])
        lines.append(f"{finding_mark}{subject}: {sentence(entry['reason'], _MAX_REASON)}")
    lines.append(notice.more)
    return "\n".join(filter(None, lines))


def _format_slack_name(text: t.Any, limit: int = 80) -> str:
    # Slack has no escape for a tick within code: a typographic apostrophe looks most like it.
    plain = _escape_slack_text(text, limit).replace("`", chr(0x2019))
    return f"`{plain}`"


def _format_slack_sentence(text: t.Any, limit: int) -> str:
    return _escape_slack_markup(_escape_slack_text(text, limit))


def _escape_slack_text(text: t.Any, limit: int) -> str:
    shown = make_printable(text, limit)
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _escape_slack_markup(text: str) -> str:
    """Return text for Slack in which nothing makes it bold, slanted or code."""
    for char in "*_~`":
        text = text.replace(char, f"\u2060{char}\u2060")
    return text


def _format_mattermost(notice: Notice) -> Payload:
    marks = (f"#### {notice.title}", "> ", "* ", "* ")
    return {"text": _format_text(notice, marks, escape_text, format_code_span)}


def _format_teams(notice: Notice) -> Payload:
    """Return an Adaptive Card. Its text runs, other than its text blocks, have no markup."""
    title = {
        "type": "TextBlock",
        "text": notice.title,
        "weight": "Bolder",
        "size": "Medium",
        "wrap": True,
    }
    body: list[Payload] = [title]
    for trouble in notice.troubles:
        body.append(_build_teams_line(bold=make_printable(trouble, 1000)))
    for fact, text in notice.facts:
        body.append(_build_teams_line(f"{fact}: ", make_printable(text, _MAX_FACT)))
    for entry in notice.new:
        names = " ".join(make_printable(name, 80) for name in _list_subject_names(entry))
        reason = make_printable(entry["reason"], _MAX_REASON)
        body.append(_build_teams_line(f"{entry['kind']} {names} ", reason))
    if notice.more:
        body.append(_build_teams_line(plain=notice.more))
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
    }
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return {"type": "message", "attachments": [attachment]}


def _build_teams_line(bold: str | None = None, plain: str | None = None) -> Payload:
    """Return a block with a bold run and a plain one, either of which may be missing."""
    runs = []
    if bold is not None:
        runs.append({"type": "TextRun", "text": bold, "weight": "Bolder"})
    if plain is not None:
        runs.append({"type": "TextRun", "text": plain})
    return {"type": "RichTextBlock", "inlines": runs}


def _format_json(notice: Notice) -> Payload:
    """Return everything as data, as the cloud has it."""
    return {
        "title": notice.title,
        "cloud": notice.cloud,
        "region": notice.region,
        "troubles": list(notice.troubles),
        "summary": notice.summary,
        "tally": dict(notice.tally),
        "check_mode": notice.check_mode,
        "new": [_convert_entry(entry) for entry in notice.new],
        "new_count": notice.count,
        "reports": dict(notice.reports),
    }


def _convert_entry(entry: Entry) -> Payload:
    fields: Mapping[str, t.Any] = entry
    return {
        **{name: fields[name] for name in _SENT_FIELDS},
        "server": get_server_name(entry),
        "hosts": ", ".join(list_hosts(entry)),
    }


def _list_subject_names(entry: Entry) -> list[str]:
    names = (get_subject(entry), get_server_name(entry), ", ".join(list_hosts(entry)))
    return [name for name in names if name]


NOTICE_FORMATTERS = {
    "slack": _format_slack,
    "mattermost": _format_mattermost,
    "teams": _format_teams,
    "json": _format_json,
}
