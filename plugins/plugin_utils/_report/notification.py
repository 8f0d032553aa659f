# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What is sent to a webhook when something is new or failed.

Chats take names for markup and mentions: what comes from a cloud stands where they do not.
"""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.text import make_printable
from ansible_collections.osops.placement.plugins.module_utils._findings.coverage import (
    describe_unjudged_hosts,
)
from ansible_collections.osops.placement.plugins.module_utils._findings.entries import get_subject
from ansible_collections.osops.placement.plugins.plugin_utils._report.markdown import (
    escape_text,
    format_code_span,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.phrases import (
    get_server_name,
    list_hosts,
    list_troubles,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.units import format_amounts

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping

    from ansible_collections.osops.placement.plugins.module_utils._findings.entries import Entry
    from ansible_collections.osops.placement.plugins.plugin_utils._report.report import Report

MAX_NEW_FINDINGS = 20
_MAX_REASON = 300
_MAX_FACT = 400


@d.dataclass(frozen=True)
class Notice:
    """What there is to tell.

    cloud, region: empty when not even that could be found out.
    troubles: a sentence each. new: the first of the findings that are; count: of all of them.
    reports: the paths of what was written, by format.
    """

    cloud: str
    region: str
    troubles: tuple[str, ...]
    new: tuple[Entry, ...]
    count: int
    summary: Mapping[str, t.Any] | None
    tally: Mapping[str, int]
    check_mode: bool
    reports: Mapping[str, str]

    @classmethod
    def from_report(
        cls,
        report: Report | None,
        remediation: Mapping[str, t.Any] | None,
        failure: str,
        reports: Mapping[str, str],
    ) -> Notice:
        """Make the notice of a run; without a report, of one that has no findings to tell of."""
        done = remediation or {}
        tally = {name: count for name, count in done.get("tally", {}).items() if count}
        check_mode = bool(done.get("check_mode"))
        if report is None:
            return cls(
                "", "", (failure,) if failure else (), (), 0, None, tally, check_mode, reports
            )
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
        told = f"{self.count} new findings" if self.count != 1 else "1 new finding"
        return f"Orphaned allocations: {'the run failed' if self.troubles else told}"

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The figures, by what they are called."""
        told = [("cloud", f"{self.cloud} {self.region}".strip())]
        if self.summary:
            told.append(
                (
                    "findings",
                    ", ".join(
                        f"{count} {verdict}" for verdict, count in self.summary["verdicts"].items()
                    ),
                )
            )
            told.append(("stranded", format_amounts(self.summary["stranded"]["resource_classes"])))
        if self.tally:
            outcome = ", ".join(f"{count} {name}" for name, count in self.tally.items())
            told.append(("would be" if self.check_mode else "outcome", outcome))
        if self.summary:
            told.append(("not judged", describe_unjudged_hosts(self.summary["coverage"])))
        told += [("report", path) for path in list(self.reports.values())[:1]]
        return [(name, text) for name, text in told if text]

    @property
    def more(self) -> str:
        return f"… and {self.count - len(self.new)} more" if self.count > len(self.new) else ""


def _format_slack(notice: Notice) -> dict[str, t.Any]:
    """Return text in Slack's own markup, in which three characters begin everything, mentions included."""

    def plain(text: t.Any, limit: int = _MAX_REASON) -> str:
        return (
            make_printable(text, limit)
            .replace("&", "&amp;")
            .replace("<", "&lt;")
            .replace(">", "&gt;")
        )

    def name(text: t.Any, limit: int = 80) -> str:
        return f"`{plain(text, limit).replace('`', chr(0x2019))}`"

    lines = [
        f"*{notice.title}*",
        *(f":warning: {_escape_slack_markup(plain(trouble, 1000))}" for trouble in notice.troubles),
        *(f"{fact}: {name(text, _MAX_FACT)}" for fact, text in notice.facts),
        *(
            f"• {' '.join([entry['kind'], *map(name, _list_subject_names(entry))])}: {_escape_slack_markup(plain(entry['reason']))}"
            for entry in notice.new
        ),
        notice.more,
    ]
    return {
        "text": "\n".join(filter(None, lines)),
        "mrkdwn": True,
        "parse": "none",
        "link_names": False,
        "unfurl_links": False,
    }


def _escape_slack_markup(text: str) -> str:
    """Return text of Slack's without what would make it bold, slanted or code."""
    return "".join(f"\u2060{char}\u2060" if char in "*_~`" else char for char in text)


def _format_mattermost(notice: Notice) -> dict[str, t.Any]:
    lines = [
        f"#### {notice.title}",
        *(f"> {escape_text(trouble, 1000)}" for trouble in notice.troubles),
        *(f"* {fact}: {format_code_span(text, _MAX_FACT)}" for fact, text in notice.facts),
        *(
            f"* {' '.join([entry['kind'], *map(format_code_span, _list_subject_names(entry))])}: {escape_text(entry['reason'], _MAX_REASON)}"
            for entry in notice.new
        ),
        notice.more,
    ]
    return {"text": "\n".join(filter(None, lines))}


def _format_teams(notice: Notice) -> dict[str, t.Any]:
    """Return an Adaptive Card. Its text runs, other than its text blocks, know no markup."""

    def line(*runs: tuple[str, bool]) -> dict[str, t.Any]:
        told = [
            {"type": "TextRun", "text": text, **({"weight": "Bolder"} if bold else {})}
            for text, bold in runs
        ]
        return {"type": "RichTextBlock", "inlines": told}

    def entry_line(entry: Entry) -> dict[str, t.Any]:
        about = " ".join(make_printable(text, 80) for text in _list_subject_names(entry))
        return line(
            (f"{entry['kind']} {about} ", True),
            (make_printable(entry["reason"], _MAX_REASON), False),
        )

    body = [
        {
            "type": "TextBlock",
            "text": notice.title,
            "weight": "Bolder",
            "size": "Medium",
            "wrap": True,
        },
        *(line((make_printable(trouble, 1000), True)) for trouble in notice.troubles),
        *(
            line((f"{fact}: ", True), (make_printable(text, _MAX_FACT), False))
            for fact, text in notice.facts
        ),
        *map(entry_line, notice.new),
        *([line((notice.more, False))] if notice.more else []),
    ]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
    }
    return {
        "type": "message",
        "attachments": [
            {
                "contentType": "application/vnd.microsoft.card.adaptive",
                "contentUrl": None,
                "content": card,
            }
        ],
    }


def _format_json(notice: Notice) -> dict[str, t.Any]:
    """Return everything as data, as the cloud has it."""
    told = ("id", "kind", "verdict", "consumer", "first_seen", "reason")
    return {
        "title": notice.title,
        "cloud": notice.cloud,
        "region": notice.region,
        "troubles": list(notice.troubles),
        "summary": notice.summary,
        "tally": dict(notice.tally),
        "check_mode": notice.check_mode,
        "new": [
            {
                **{key: entry[key] for key in told},
                "server": get_server_name(entry),
                "hosts": ", ".join(list_hosts(entry)),
            }
            for entry in notice.new
        ],
        "new_count": notice.count,
        "reports": dict(notice.reports),
    }


def _list_subject_names(entry: Entry) -> list[str]:
    return [
        text
        for text in (get_subject(entry), get_server_name(entry), ", ".join(list_hosts(entry)))
        if text
    ]


NOTICE_FORMATTERS = {
    "slack": _format_slack,
    "mattermost": _format_mattermost,
    "teams": _format_teams,
    "json": _format_json,
}
