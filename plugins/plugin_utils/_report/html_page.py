# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""A report as one HTML page that needs nothing besides.

Whatever comes from a cloud is hostile until shown. It gets into the page in two ways only: through a template that escapes it, and as
JSON that a script of known digest sets as text. The page's own policy forbids every other script, style and request.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
import typing as t
from pathlib import Path

import jinja2
from markupsafe import Markup

from ansible_collections.osops.placement.plugins.module_utils._common.text import make_printable
from ansible_collections.osops.placement.plugins.plugin_utils._report.overview import build_overview
from ansible_collections.osops.placement.plugins.plugin_utils._report.rows import (
    build_rows,
    make_details_builder,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Iterator

    from ansible_collections.osops.placement.plugins.plugin_utils._report.report import Report

_FOLDER = Path(__file__).with_name("_html_page")

# The details of so many rows are one piece of JSON, which is read when the first of them is unfolded.
_CHUNK_SIZE = 50
# What a page without its script lists, for it cannot be searched.
_PLAIN_ROWS = 500

# What could end a script element, start a comment in it, or end a line of it.
_ESCAPES = {char: f"\\u{ord(char):04X}" for char in "<>&\u2028\u2029"}

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
# How JSON writes a control character, or a backslash that is followed by what looks like one.
_CONTROL = re.compile(r"\\[bfnrtu]")


def render(report: Report) -> str:
    """Return the page. It is the same for the same report."""
    style, script = (
        (_FOLDER / name).read_text(encoding="utf-8") for name in ("page.css", "page.js")
    )
    listed = build_rows(report)
    return _load_template().render(
        policy="; ".join(
            (
                "default-src 'none'",
                f"style-src '{_compute_digest(style)}'",
                f"script-src '{_compute_digest(script)}'",
                "img-src data:",
                "base-uri 'none'",
                "form-action 'none'",
            )
        ),
        style=Markup(style),
        script=Markup(script),
        view=build_overview(report),
        plain=listed[:_PLAIN_ROWS],
        more=max(0, len(listed) - _PLAIN_ROWS),
        index=_encode_list(row.index for row in listed),
        chunk_size=_CHUNK_SIZE,
        chunks=_encode_chunks(report, listed),
    )


def _encode_chunks(report: Report, listed: t.Sequence[t.Any]) -> Iterator[Markup]:
    told = make_details_builder(report)
    for start in range(0, len(listed), _CHUNK_SIZE):
        yield _encode_list(told(row.entry) for row in listed[start : start + _CHUNK_SIZE])


def _encode_list(entries: Iterable[t.Any]) -> Markup:
    """Return a list as JSON that is text to HTML and to a script alike."""
    text = f"[{','.join(map(_encode_json, entries))}]"
    for char, escape in _ESCAPES.items():
        text = text.replace(char, escape)
    return Markup(text)


def _encode_json(data: t.Any) -> str:
    text = _ENCODER.encode(data)
    # To look at every text by itself takes twice as long as all the rest.
    return (
        text
        if text.isprintable() and not _CONTROL.search(text)
        else _ENCODER.encode(_escape_unprintable(data))
    )


def _escape_unprintable(value: t.Any) -> t.Any:
    """Return data with every character spelled out that a reader would not see, or that would move what stands beside it."""
    if isinstance(value, str):
        return value if value.isprintable() else make_printable(value)
    if isinstance(value, dict):
        return {
            _escape_unprintable(str(key)): _escape_unprintable(part) for key, part in value.items()
        }
    return (
        [_escape_unprintable(part) for part in value] if isinstance(value, list | tuple) else value
    )


def _compute_digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _finalize(value: t.Any) -> t.Any:
    return value if isinstance(value, Markup) else _escape_unprintable(str(value))


@functools.cache
def _load_template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        finalize=_finalize,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2")
