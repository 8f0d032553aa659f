# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Findings as Markdown, as GitHub and GitLab show it: for merge requests, job summaries and chats.

Names from a cloud stand in code spans, where neither markup nor mentions mean anything; sentences, which hold names too, are escaped.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.text import make_printable
from ansible_collections.osops.placement.plugins.module_utils._findings.coverage import (
    describe_unjudged_hosts,
)
from ansible_collections.osops.placement.plugins.module_utils._findings.entries import get_subject
from ansible_collections.osops.placement.plugins.plugin_utils._report.phrases import (
    get_server_name,
    list_hosts,
    list_troubles,
    map_outcomes,
    sum_freed,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.units import format_amounts

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Mapping, Sequence

    from ansible_collections.osops.placement.plugins.module_utils._findings.entries import Entry
    from ansible_collections.osops.placement.plugins.plugin_utils._report.report import Report

# A comment on GitHub has room for 65 536 characters.
MAX_ROWS = 100
_MAX_NAME = 80
_MAX_REASON = 400

_MARKUP = re.compile(r"[\\`*_\[\]<>|~${}]")
# Before these a mention, a reference, an address or a picture begins, or goes on; the space between has no width.
_REFERENCE = re.compile(r"[@#!%^&](?=\S)|:(?=[^\s\d])|/(?=/)|(?<=www)\.")

_TITLES = {
    "findings": "Findings",
    "undecided": "Undecided, and left alone",
    "protected": "Protected, and left alone",
}


def render(report: Report) -> str:
    """Return the summary, what went wrong, tables of what was found, and what became of it."""
    findings = report.findings
    parts = [
        "# Orphaned allocations",
        f"{format_code_span(findings['cloud']['placement_endpoint'])}"
        + (
            f", region {format_code_span(findings['cloud']['region'])}"
            if findings["cloud"]["region"]
            else ""
        )
        + f", {findings['finished_at']}",
        *(f"> **Failed:** {escape_text(trouble, 2000)}" for trouble in list_troubles(report)),
        *(
            f"> **Not judged:** {escape_text(unjudged, 2000)}"
            for unjudged in filter(None, [describe_unjudged_hosts(findings["summary"]["coverage"])])
        ),
        _render_summary(findings["summary"]),
        *_render_stranded(findings["summary"]["stranded"]),
        *_render_entries(report),
        *_render_plan(report),
        *_render_remediation(report),
    ]
    return "\n\n".join(parts) + "\n"


def format_code_span(text: t.Any, limit: int = _MAX_NAME) -> str:
    """Return `text` as a code span that is safe in a table as well; nothing for no text."""
    shown = make_printable(text, limit) if text else ""
    if not shown.strip():
        return ""
    # A table is cut at bars before anything else is read, but not at those behind an odd number of backslashes.
    shown = re.sub(
        r"(\\*)\|", lambda match: f"{match[1]}{match[1][:1] if len(match[1]) % 2 else ''}\\|", shown
    )
    ticks = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    edge = " " if shown.startswith(("`", " ")) or shown.endswith(("`", " ")) else ""
    return f"{ticks}{edge}{shown}{edge}{ticks}"


def escape_text(text: t.Any, limit: int = _MAX_REASON) -> str:
    """Return `text` so that nothing in it is markup, a link or a mention."""
    shown = _REFERENCE.sub("\\g<0>\u200b", make_printable(text, limit))
    shown = _MARKUP.sub(r"\\\g<0>", shown.replace("&", "&amp;"))
    return shown.replace("\u200b", "&#8203;")


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are safe."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _render_summary(summary: Mapping[str, t.Any]) -> str:
    verdicts, coverage = summary["verdicts"], summary["coverage"]
    new = sum(summary["new"].values())
    counts = {
        "orphaned": verdicts["orphaned"],
        "not as it should be": verdicts["drifted"],
        "of these new": new,
        "undecided": verdicts["undecided"],
        "protected": verdicts["protected"],
        "consumers": coverage["consumers"],
        "hypervisors": coverage["hypervisors"],
    }
    return format_table(list(counts), [[str(count) for count in counts.values()]])


def _render_stranded(stranded: Mapping[str, t.Any]) -> list[str]:
    shares = stranded["share_of_claimed"]
    rows = [
        [format_code_span(cls), str(amount), f"{shares[cls]:.1%}" if cls in shares else ""]
        for cls, amount in sorted(stranded["resource_classes"].items())
    ]
    return (
        ["## Stranded", format_table(["resource class", "amount", "of all that is claimed"], rows)]
        if rows
        else []
    )


def _render_entries(report: Report) -> list[str]:
    parts = []
    made = map_outcomes(report)
    for key, title in _TITLES.items():
        found = report.findings[key]
        if not found:
            continue
        head = ["kind", "since", "about", "server", "host", "frees", "why"]
        rows = [_build_row(entry) for entry in found[:MAX_ROWS]]
        if key == "findings" and made:
            head.append("outcome")
            rows = [
                [*row, made.get(entry["id"], "")] for row, entry in zip(rows, found, strict=False)
            ]
        parts += [f"## {title}: {len(found)}", format_table(head, rows), *_render_omitted(found)]
    return parts


def _build_row(entry: Entry) -> list[str]:
    since = f"**new**, {entry['first_seen']}" if entry["new"] else entry["first_seen"]
    about = [
        format_code_span(text)
        for text in (get_subject(entry), get_server_name(entry), ", ".join(list_hosts(entry)))
    ]
    waiting = f" Not now, for {escape_text(entry['waiting'])}." if entry.get("waiting") else ""
    return [
        entry["kind"],
        since,
        *about,
        escape_text(format_amounts(sum_freed(entry))),
        f"{escape_text(entry['reason'])}{waiting}",
    ]


def _render_plan(report: Report) -> list[str]:
    if report.plan is None:
        return []
    changes = report.plan["changes"]
    rows = [
        [change["kind"], change["action"], format_code_span(change["finding"].partition("/")[2])]
        for change in changes[:MAX_ROWS]
    ]
    return [
        f"## Planned changes: {len(changes)}",
        *([format_table(["kind", "action", "about"], rows)] if rows else []),
        *_render_omitted(changes),
    ]


def _render_remediation(report: Report) -> list[str]:
    told = report.remediation
    if told is None:
        return []
    tally = (
        ", ".join(f"{count} {name}" for name, count in told["tally"].items() if count)
        or "nothing to do"
    )
    parts = [
        "## Outcome",
        f"Check mode, nothing was written. Without it: {tally}."
        if told["check_mode"]
        else f"{tally}.",
    ]
    left = [outcome for outcome in told["outcomes"] if outcome["reason"]]
    rows = [
        [
            outcome["outcome"],
            outcome["kind"],
            format_code_span(outcome["finding"].partition("/")[2]),
            escape_text(outcome["reason"]),
        ]
        for outcome in left[:MAX_ROWS]
    ]
    if rows:
        parts += [format_table(["outcome", "kind", "about", "why"], rows), *_render_omitted(left)]
    return (
        [*parts, f"Journal: {format_code_span(report.journal, 1000)}"] if report.journal else parts
    )


def _render_omitted(rows: Sequence[t.Any]) -> list[str]:
    return [f"… and {len(rows) - MAX_ROWS} more"] if len(rows) > MAX_ROWS else []
