# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings as Markdown, as GitHub and GitLab show it: for merge requests and job summaries.

Names from a cloud stand in code spans, where neither markup nor mentions mean anything. Sentences,
which have names in them too, are escaped.
"""

from __future__ import annotations

import re
import typing as t
from collections.abc import Iterable, Mapping, Sequence

from ...module_utils._common.text import make_printable
from ...module_utils._core.findings.coverage import (
    describe_amounts,
    describe_reading,
    describe_unjudged_hosts,
)
from ...module_utils._core.findings.entries import (
    Entry,
    FindingsDocument,
    Overcommit,
    Stranded,
    Summary,
    describe_scope,
    get_subject,
)
from ...module_utils._core.models.documents import RemediationDocument
from ...module_utils._core.models.kinds import get_finding_subject
from .order import sort_entries
from .phrases import (
    get_server_name,
    join_counts,
    list_hosts,
    list_troubles,
    map_outcomes,
    sum_freed,
)
from .quota import list_quota_lines
from .report import Report
from .units import humanize_amount, humanize_amounts, sort_resource_classes

# A comment on GitHub has room for 65 536 characters.
MAX_ROWS = 100
_MAX_NAME = 80
_MAX_REASON = 400
_MAX_COMMAND = 1000
_MAX_PROJECTS = 20

_MARKUP = re.compile(r"[\\`*_\[\]<>|~${}]")
# Where a mention, a reference, an address or a picture begins or goes on. A space without width is
# put behind these characters.
_REFERENCE = re.compile(r"[@#!%^&](?=\S)|:(?=[^\s\d])|/(?=/)|(?<=www)\.")

_TITLES: dict[t.Literal["findings", "undecided", "protected"], str] = {
    "findings": "Findings",
    "undecided": "Undecided, not changed",
    "protected": "Protected, not changed",
}


def render(report: Report) -> str:
    """Return the summary, what went wrong, tables of the entries, and the outcomes."""
    summary = report.findings["summary"]
    parts = ["# Orphaned allocations", _render_origin(report.findings)]
    for trouble in list_troubles(report):
        parts.append(f"> **Failed:** {escape_text(trouble, 2000)}")
    if reading := describe_reading(summary["coverage"]):
        parts.append(escape_text(reading, 2000))
    if amounts := describe_amounts(summary["coverage"]):
        parts.append(escape_text(amounts, 2000))
    if unjudged := describe_unjudged_hosts(summary["coverage"]):
        parts.append(f"> **Not judged:** {escape_text(unjudged, 2000)}")
    for sentence in summary["coverage"].get("unread", []):
        parts.append(f"> **Not searched:** {escape_text(sentence, 2000)}")
    parts.append(_render_summary(summary))
    parts += _render_stranded(summary["stranded"])
    parts += _render_overcommit(summary.get("overcommit", {}))
    parts += _render_entries(report)
    parts += _render_plan(report)
    parts += _render_remediation(report)
    return "\n\n".join(parts) + "\n"


def _render_origin(findings: FindingsDocument) -> str:
    """Return which cloud was read, and when."""
    cloud = findings["cloud"]
    origin = format_code_span(cloud["placement_endpoint"])
    if cloud["region"]:
        origin += f", region {format_code_span(cloud['region'])}"
    scope = escape_text(describe_scope(findings["scope"]))
    return f"{origin}, {findings['finished_at']}\n\nAll figures are about {scope}."


def format_code_span(text: t.Any, limit: int = _MAX_NAME) -> str:
    """Return `text` as a code span that is safe in a table as well; an empty text for none."""
    shown = make_printable(text, limit) if text else ""
    if not shown.strip():
        return ""
    shown = re.sub(r"(\\*)\|", _escape_bar, shown)
    # A code span ends with as many ticks as it begins with: more than any in the name.
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    ticks = "`" * (longest + 1)
    # A tick at the edge of a name would become part of the fence.
    edge = ""
    if shown.startswith(("`", " ")) or shown.endswith(("`", " ")):
        edge = " "
    return f"{ticks}{edge}{shown}{edge}{ticks}"


def _escape_bar(match: re.Match[str]) -> str:
    """Return a bar that does not cut a table, with the backslashes before it.

    A table is cut at bars before anything else is read, but not at a bar after an odd number of
    backslashes.
    """
    backslashes = match[1]
    if len(backslashes) % 2:
        backslashes += "\\"
    return rf"{backslashes}\|"


def escape_text(text: t.Any, limit: int = _MAX_REASON) -> str:
    """Return `text` so that nothing in it is markup, a link or a mention."""
    shown = _REFERENCE.sub("\\g<0>\u200b", make_printable(text, limit))
    shown = _MARKUP.sub(r"\\\g<0>", shown.replace("&", "&amp;"))
    return shown.replace("\u200b", "&#8203;")


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table. Its cells must be escaped already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _render_summary(summary: Summary) -> str:
    verdicts, coverage = summary["verdicts"], summary["coverage"]
    new = sum(summary["new"].values())
    counts = {
        "orphaned": verdicts["orphaned"],
        "drifted": verdicts["drifted"],
        "new": new,
        "undecided": verdicts["undecided"],
        "protected": verdicts["protected"],
        "consumers read": coverage["consumers"],
        "hypervisors listed": coverage["hypervisors"],
    }
    return format_table(list(counts), [[str(count) for count in counts.values()]])


def _render_stranded(stranded: Stranded) -> list[str]:
    if not stranded["resource_classes"]:
        return []
    amounts, fractions = stranded["resource_classes"], stranded["share_of_claimed"]
    # Files of older versions do not have them.
    allocated = stranded.get("allocated", {})
    rows = []
    for cls in sort_resource_classes(amounts):
        fraction = f"{fractions[cls]:.1%}" if cls in fractions else ""
        if cls in allocated:
            fraction += f" of {escape_text(humanize_amount(cls, allocated[cls]))}"
        shown = escape_text(humanize_amount(cls, amounts[cls]))
        rows.append([format_code_span(cls), shown, fraction])
    head = ["resource class", "amount", "of all allocations in the cloud"]
    parts = ["## Stranded", format_table(head, rows)]
    lines = list_quota_lines(stranded)
    if lines:
        # Each line of a list of its own would be one paragraph.
        shown = "\n".join(f"- {escape_text(line)}" for line in lines[:_MAX_PROJECTS])
        parts.append(f"Quota that projects get back where Nova counts it in Placement:\n\n{shown}")
    if len(lines) > _MAX_PROJECTS:
        parts.append(f"… and {len(lines) - _MAX_PROJECTS} more")
    return parts


def _render_overcommit(overcommit: Mapping[str, Overcommit]) -> list[str]:
    """Return a table of the resource classes of which some hosts have too much allocated."""
    rows = []
    for cls in sort_resource_classes(overcommit):
        figures = overcommit[cls]
        if figures["overcommitted"]:
            hosts = f"{figures['overcommitted']} of {figures['hosts']}"
            host = format_code_span(figures["highest_host"])
            rows.append([format_code_span(cls), hosts, f"{figures['highest']} times on {host}"])
    if not rows:
        return []
    return ["## Over-committed", format_table(["resource class", "hosts", "most"], rows)]


def _render_entries(report: Report) -> list[str]:
    parts = []
    outcomes = map_outcomes(report)
    for key, title in _TITLES.items():
        entries = sort_entries(report.findings[key])
        if not entries:
            continue
        head = ["kind", "since", "about", "server", "host", "frees", "why"]
        rows = [_build_row(entry) for entry in entries[:MAX_ROWS]]
        # Only findings have changes, and these an outcome.
        if key == "findings" and outcomes:
            head.append("outcome")
            for entry, row in zip(entries, rows, strict=False):
                row.append(outcomes.get(entry["id"], ""))
        parts += [f"## {title}: {len(entries)}", *_render_first(head, rows, len(entries))]
        parts += _render_commands(entries[:MAX_ROWS])
    return parts


def _render_commands(entries: Iterable[Entry]) -> list[str]:
    """Return the commands that fix what the entries are about, each beside its entry."""
    rows = []
    for entry in entries:
        subject = format_code_span(get_subject(entry))
        for command in entry.get("commands", []):
            # Half a command might be pasted.
            shown = format_code_span(command, _MAX_COMMAND)
            if len(command) > _MAX_COMMAND:
                shown = "too long: see the findings file"
            rows.append([entry["kind"], subject, shown])
    if not rows:
        return []
    return ["### Commands", format_table(["kind", "about", "command"], rows[:MAX_ROWS])]


def _build_row(entry: Entry) -> list[str]:
    since = f"**new**, {entry['first_seen']}" if entry["new"] else entry["first_seen"]
    reason = escape_text(entry["reason"])
    if entry.get("waiting"):
        reason += f" Not now: {escape_text(entry['waiting'])}."
    return [
        entry["kind"],
        since,
        format_code_span(get_subject(entry)),
        format_code_span(get_server_name(entry)),
        format_code_span(", ".join(list_hosts(entry))),
        escape_text(humanize_amounts(sum_freed(entry))),
        reason,
    ]


def _render_plan(report: Report) -> list[str]:
    if report.plan is None:
        return []
    changes = report.plan["changes"]
    parts = [f"## Planned changes: {len(changes)}"]
    rows = []
    for change in changes[:MAX_ROWS]:
        subject = get_finding_subject(change["finding"])
        rows.append([change["kind"], change["action"], format_code_span(subject)])
    return parts + _render_first(["kind", "action", "about"], rows, len(changes))


def _render_remediation(report: Report) -> list[str]:
    remediation = report.remediation
    if remediation is None:
        return []
    parts = ["## Outcome", _render_tally(remediation)]
    # What was made as planned is in the tally.
    explained = [outcome for outcome in remediation["outcomes"] if outcome["reason"]]
    rows = []
    for outcome in explained[:MAX_ROWS]:
        subject = format_code_span(get_finding_subject(outcome["finding"]))
        reason = escape_text(outcome["reason"])
        rows.append([outcome["outcome"], outcome["kind"], subject, reason])
    parts += _render_first(["outcome", "kind", "about", "why"], rows, len(explained))
    if report.journal:
        parts.append(f"Journal: {format_code_span(report.journal, 1000)}")
    return parts


def _render_tally(remediation: RemediationDocument) -> str:
    text = f"{join_counts(remediation['tally']) or 'nothing to do'}."
    if remediation["check_mode"]:
        return f"Check mode: nothing was written. Without check mode: {text}"
    return text


def _render_first(head: Sequence[str], rows: Sequence[Sequence[str]], count: int) -> list[str]:
    """Return a table of the first of `count` rows, and how many more there are."""
    parts = [format_table(head, rows)] if rows else []
    if count > len(rows):
        parts.append(f"… and {count - len(rows)} more")
    return parts
