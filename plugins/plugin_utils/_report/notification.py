# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is sent to a webhook when something is new or failed: data, or a text for a chat.

Chats take names for markup and mentions. Anything from a cloud stands where they do not.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Iterator, Mapping

from ...module_utils._common.text import format_count, make_printable
from ...module_utils._core.findings.coverage import describe_unjudged_hosts
from ...module_utils._core.findings.entries import Entry, get_subject
from ...module_utils._core.models.codec import Json
from .phrases import get_server_name, humanize_amounts, join_counts, list_hosts
from .view import Report, list_troubles

# What is sent.
Payload = dict[str, t.Any]

MAX_NEW_FINDINGS = 20
_MAX_NAME, _MAX_REASON, _MAX_FACT, _MAX_TROUBLE = 80, 300, 400, 1000
_LOOKALIKES = str.maketrans("`<>&", "\u2019\u2039\u203a\uff06")
_SENT_FIELDS = ("id", "kind", "verdict", "consumer", "first_seen", "reason")


@d.dataclass(frozen=True)
class Notice:
    """What a notice says of a run.

    report: None for a run that has no findings.
    failure: what such a run failed with.
    reports: the paths of the written reports, by format.
    """

    report: Report | None
    remediation: Json | None
    failure: str
    reports: Mapping[str, str]

    @property
    def troubles(self) -> list[str]:
        """A sentence each."""
        if self.report is None:
            return [self.failure] if self.failure else []
        return list_troubles(self.report)

    @property
    def new(self) -> list[Entry]:
        """The new findings."""
        findings = self.report.findings["findings"] if self.report else []
        return [entry for entry in findings if entry["new"]]

    @property
    def notable(self) -> bool:
        """Whether anything is new or failed."""
        return bool(self.troubles or self.new)

    @property
    def title(self) -> str:
        """The headline."""
        if self.troubles:
            return "Orphaned allocations: the run failed"
        return f"Orphaned allocations: {format_count(len(self.new), 'new finding', 'new findings')}"

    def as_dict(self) -> Payload:
        """Return everything as data, as the cloud has it."""
        findings, remediation = self.report and self.report.findings, self.remediation
        tally = remediation["tally"] if remediation else {}
        return {
            "title": self.title,
            "cloud": findings["cloud"]["placement_endpoint"] if findings else "",
            "region": (findings["cloud"]["region"] or "") if findings else "",
            "troubles": self.troubles,
            "summary": findings["summary"] if findings else None,
            "tally": {name: count for name, count in tally.items() if count},
            "check_mode": bool(remediation and remediation["check_mode"]),
            "new": list(map(_convert_entry, self.new[:MAX_NEW_FINDINGS])),
            "new_count": len(self.new),
            "reports": dict(self.reports),
        }


def _convert_entry(entry: Entry) -> Payload:
    fields: Mapping[str, t.Any] = entry
    return {
        **{name: fields[name] for name in _SENT_FIELDS},
        "server": get_server_name(entry),
        "hosts": ", ".join(list_hosts(entry)),
    }


def _format_text(notice: Notice) -> Payload:
    """Return the text that Slack, Mattermost and Teams take, as a list with one line an item."""
    data = notice.as_dict()
    items = [f"failed: {_quote(trouble, _MAX_TROUBLE)}" for trouble in data["troubles"]]
    items += [f"{fact}: {_quote(text, _MAX_FACT)}" for fact, text in _list_facts(data) if text]
    for entry, sent in zip(notice.new, data["new"], strict=False):
        names = (get_subject(entry), sent["server"], sent["hosts"])
        subject = " ".join([entry["kind"], *filter(None, map(_quote, names))])
        items.append(f"{subject}: {_quote(entry['reason'], _MAX_REASON)}")
    left = data["new_count"] - MAX_NEW_FINDINGS
    if left > 0:
        items.append(f"… and {left} more")
    return {"text": "\n".join([notice.title, "", *(f"- {item}" for item in items)])}


def _list_facts(data: Payload) -> Iterator[tuple[str, str]]:
    """Yield the figures, as labels and texts."""
    summary = data["summary"]
    yield "cloud", f"{data['cloud']} {data['region']}".strip()
    if summary:
        verdicts = summary["verdicts"]
        yield "findings", ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in verdicts)
        yield "stranded", humanize_amounts(summary["stranded"]["resource_classes"])
    yield "would be" if data["check_mode"] else "outcome", join_counts(data["tally"])
    if summary:
        yield "not judged", describe_unjudged_hosts(summary["coverage"])
    # The first format that the user named; more paths would only be longer.
    yield "report", next(iter(data["reports"].values()), "")


def _quote(text: t.Any, limit: int = _MAX_NAME) -> str:
    """Return a text as a code span; an empty text for none.

    No chat takes what is in a code span for markup or a mention, but Slack reads `<`, `>` and `&`
    there too, and no other chat knows its escapes: characters that look alike stand for them.
    """
    shown = make_printable(text, limit).translate(_LOOKALIKES)
    return f"`{shown}`" if shown else ""


NOTICE_FORMATTERS = {"json": Notice.as_dict, "text": _format_text}
