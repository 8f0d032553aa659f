# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Findings as Markdown, as GitHub and GitLab show it: for merge requests, job summaries and chats.

Names from a cloud stand in code spans, where neither markup nor mentions mean anything; sentences, which hold names too, are escaped.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.text import printable
from ansible_collections.osops.placement.plugins.module_utils._findings.coverage import tell_unjudged
from ansible_collections.osops.placement.plugins.module_utils._findings.entries import subject
from ansible_collections.osops.placement.plugins.plugin_utils._report.phrases import (
    freed,
    hosts,
    outcome_of,
    server_name,
    troubles,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.units import amounts

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Mapping, Sequence

    from ansible_collections.osops.placement.plugins.module_utils._findings.entries import Entry
    from ansible_collections.osops.placement.plugins.plugin_utils._report.report import Report

# A comment on GitHub has room for 65 536 characters.
ROWS = 100
_NAME = 80
_REASON = 400

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
        f"{code(findings['cloud']['placement_endpoint'])}"
        + (f", region {code(findings['cloud']['region'])}" if findings["cloud"]["region"] else "")
        + f", {findings['finished_at']}",
        *(f"> **Failed:** {prose(trouble, 2000)}" for trouble in troubles(report)),
        *(f"> **Not judged:** {prose(unjudged, 2000)}" for unjudged in filter(None, [tell_unjudged(findings["summary"]["coverage"])])),
        _summary(findings["summary"]),
        *_stranded(findings["summary"]["stranded"]),
        *_lists(report),
        *_plan(report),
        *_remediation(report),
    ]
    return "\n\n".join(parts) + "\n"


def code(text: t.Any, limit: int = _NAME) -> str:
    """Return `text` as a code span that is safe in a table as well; nothing for no text."""
    shown = printable(text, limit) if text else ""
    if not shown.strip():
        return ""
    # A table is cut at bars before anything else is read, but not at those behind an odd number of backslashes.
    shown = re.sub(r"(\\*)\|", lambda match: f"{match[1]}{match[1][:1] if len(match[1]) % 2 else ''}\\|", shown)
    ticks = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    edge = " " if shown.startswith(("`", " ")) or shown.endswith(("`", " ")) else ""
    return f"{ticks}{edge}{shown}{edge}{ticks}"


def prose(text: t.Any, limit: int = _REASON) -> str:
    """Return `text` so that nothing in it is markup, a link or a mention."""
    shown = _REFERENCE.sub("\\g<0>\u200b", printable(text, limit))
    shown = _MARKUP.sub(r"\\\g<0>", shown.replace("&", "&amp;"))
    return shown.replace("\u200b", "&#8203;")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are safe."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _summary(summary: Mapping[str, t.Any]) -> str:
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
    return table(list(counts), [[str(count) for count in counts.values()]])


def _stranded(stranded: Mapping[str, t.Any]) -> list[str]:
    shares = stranded["share_of_claimed"]
    rows = [
        [code(cls), str(amount), f"{shares[cls]:.1%}" if cls in shares else ""]
        for cls, amount in sorted(stranded["resource_classes"].items())
    ]
    return ["## Stranded", table(["resource class", "amount", "of all that is claimed"], rows)] if rows else []


def _lists(report: Report) -> list[str]:
    parts = []
    made = outcome_of(report)
    for key, title in _TITLES.items():
        found = report.findings[key]
        if not found:
            continue
        head = ["kind", "since", "about", "server", "host", "frees", "why"]
        rows = [_row(entry) for entry in found[:ROWS]]
        if key == "findings" and made:
            head.append("outcome")
            rows = [[*row, made.get(entry["id"], "")] for row, entry in zip(rows, found, strict=False)]
        parts += [f"## {title}: {len(found)}", table(head, rows), *_more(found)]
    return parts


def _row(entry: Entry) -> list[str]:
    since = f"**new**, {entry['first_seen']}" if entry["new"] else entry["first_seen"]
    about = [code(text) for text in (subject(entry), server_name(entry), ", ".join(hosts(entry)))]
    waiting = f" Not now, for {prose(entry['waiting'])}." if entry.get("waiting") else ""
    return [entry["kind"], since, *about, prose(amounts(freed(entry))), f"{prose(entry['reason'])}{waiting}"]


def _plan(report: Report) -> list[str]:
    if report.plan is None:
        return []
    changes = report.plan["changes"]
    rows = [[change["kind"], change["action"], code(change["finding"].partition("/")[2])] for change in changes[:ROWS]]
    return [f"## Planned changes: {len(changes)}", *([table(["kind", "action", "about"], rows)] if rows else []), *_more(changes)]


def _remediation(report: Report) -> list[str]:
    told = report.remediation
    if told is None:
        return []
    tally = ", ".join(f"{count} {name}" for name, count in told["tally"].items() if count) or "nothing to do"
    parts = ["## Outcome", f"Check mode, nothing was written. Without it: {tally}." if told["check_mode"] else f"{tally}."]
    left = [outcome for outcome in told["outcomes"] if outcome["reason"]]
    rows = [
        [outcome["outcome"], outcome["kind"], code(outcome["finding"].partition("/")[2]), prose(outcome["reason"])]
        for outcome in left[:ROWS]
    ]
    if rows:
        parts += [table(["outcome", "kind", "about", "why"], rows), *_more(left)]
    return [*parts, f"Journal: {code(report.journal, 1000)}"] if report.journal else parts


def _more(rows: Sequence[t.Any]) -> list[str]:
    return [f"… and {len(rows) - ROWS} more"] if len(rows) > ROWS else []
