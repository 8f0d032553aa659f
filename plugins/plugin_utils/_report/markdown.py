# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings as Markdown, as GitHub and GitLab show it: for merge requests and job summaries.

Names from a cloud stand in code spans, where neither markup nor mentions mean anything. Sentences,
which have names in them too, are escaped.
"""

from __future__ import annotations

import functools
import re
import typing as t
from collections.abc import Iterable, Mapping

import jinja2
from markupsafe import Markup

from ...module_utils._common.text import make_printable
from ...module_utils._core.models.kinds import get_finding_subject
from .view import EntryList, Item, Report, build_environment, list_items, list_troubles

_MARKUP = re.compile(r"[\\`*_\[\]<>|~${}]")
# Where a mention, a reference, an address or a picture begins or goes on. A space without width is
# put behind these characters.
_REFERENCE = re.compile(r"[@#!%^&](?=\S)|:(?=[^\s\d])|/(?=/)|(?<=www)\.")


_LISTS: Mapping[str, EntryList] = {
    "Findings": "findings",
    "Undecided, not changed": "undecided",
    "Protected, not changed": "protected",
}


def render(report: Report) -> str:
    """Return the summary, what went wrong, tables of the entries, and the outcomes."""
    lists = [(title, list_items(report, key)) for title, key in _LISTS.items()]
    text = _load_template().render(report=report, lists=lists)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


def list_commands(items: Iterable[Item]) -> list[tuple[Item, str]]:
    """Return the commands that fix what the entries are about, each with its entry."""
    return [(item, command) for item in items for command in item.entry.get("commands", [])]


def format_code_span(text: t.Any, limit: int = 80) -> Markup:
    """Return `text` as a code span that is safe in a table as well; an empty text for none."""
    shown = make_printable(text, limit) if text else ""
    if not shown.strip():
        return Markup()
    shown = re.sub(r"(\\*)\|", _escape_bar, shown)
    # A code span ends with as many ticks as it begins with: more than any in the name.
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    ticks = "`" * (longest + 1)
    # A tick at the edge of a name would become part of the fence.
    edge = " " if {"`", " "} & {shown[0], shown[-1]} else ""
    return Markup(f"{ticks}{edge}{shown}{edge}{ticks}")


def _escape_bar(match: re.Match[str]) -> str:
    """Return a bar that does not cut a table, with the backslashes before it.

    A table is cut at bars before anything else is read, but not at a bar after an odd number of
    backslashes.
    """
    odd = "\\" * (len(match[1]) % 2)
    return rf"{match[1]}{odd}\|"


def escape_text(text: t.Any, limit: int = 400) -> Markup:
    """Return `text` so that nothing in it is markup, a link or a mention."""
    if isinstance(text, Markup):
        return text
    shown = _REFERENCE.sub("\\g<0>\u200b", make_printable(text, limit))
    shown = _MARKUP.sub(r"\\\g<0>", shown.replace("&", "&amp;"))
    return Markup(shown.replace("\u200b", "&#8203;"))


@functools.cache
def _load_template() -> jinja2.Template:
    helpers = (get_finding_subject, list_commands, list_troubles)
    # This escapes everything as Markdown that is not marked; autoescape would do so as HTML.
    environment = build_environment(helpers, escape_text, autoescape=False)
    environment.filters.update(code=format_code_span, ours=Markup, text=escape_text)
    return environment.get_template("report.md.j2")
