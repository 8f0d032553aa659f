# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is sent to a webhook when something is new or failed: data, or a text for a chat.

Chats take names for markup and mentions. Anything from a cloud stands where they do not.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Mapping

from ...module_utils._common.text import make_printable
from ...module_utils._core.findings.coverage import describe_unjudged_hosts
from ...module_utils._core.findings.entries import Entry, Summary, get_subject
from ...module_utils._core.models.documents import RemediationDocument
from .phrases import get_server_name, list_hosts, list_troubles
from .report import Report
from .units import humanize_amounts

# What is sent.
Payload = dict[str, t.Any]

MAX_NEW_FINDINGS = 20
_MAX_NAME, _MAX_REASON, _MAX_FACT, _MAX_TROUBLE = 80, 300, 400, 1000
_LOOKALIKES = str.maketrans("`<>&", "\u2019\u2039\u203a\uff06")
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


def _format_text(notice: Notice) -> Payload:
    """Return the text that Slack, Mattermost and Teams take, as a list with one line an item."""
    items = [f"failed: {_quote(trouble, _MAX_TROUBLE)}" for trouble in notice.troubles]
    items += [f"{fact}: {_quote(text, _MAX_FACT)}" for fact, text in notice.facts]
    for entry in notice.new:
        subject = " ".join([entry["kind"], *map(_quote, _list_subject_names(entry))])
        items.append(f"{subject}: {_quote(entry['reason'], _MAX_REASON)}")
    if notice.more:
        items.append(notice.more)
    return {"text": "\n".join([notice.title, "", *(f"- {item}" for item in items)])}


def _quote(text: t.Any, limit: int = _MAX_NAME) -> str:
    """Return a text as a code span; an empty text for none.

    No chat takes what is in a code span for markup or a mention, but Slack reads `<`, `>` and `&`
    there too, and no other chat knows its escapes: characters that look alike stand for them.
    """
    shown = make_printable(text, limit).translate(_LOOKALIKES)
    return f"`{shown}`" if shown else ""


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
    "json": _format_json,
    "text": _format_text,
}
