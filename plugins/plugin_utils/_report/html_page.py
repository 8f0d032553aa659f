# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A report as one HTML page that needs nothing besides.

Anything from a cloud is treated as hostile. It gets into the page in two ways only: through a
template that escapes it, and as JSON that a script of known digest sets as text. The page's own
policy forbids every other script, style and request.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
import typing as t
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import jinja2
from markupsafe import Markup

from ...module_utils._common.text import make_printable
from .overview import build_overview
from .report import Report
from .rows import Row, build_rows, make_details_builder

_FOLDER = Path(__file__).with_name("_html_page")

# How many rows have their details in one piece of JSON, which is parsed when the first of them is
# unfolded.
_CHUNK_SIZE = 50
# How many rows the page lists without its script: they cannot be searched.
_PLAIN_ROWS = 500

# What could end a script element, start a comment in it, or end a line of it.
_ESCAPES = {char: f"\\u{ord(char):04X}" for char in "<>&\u2028\u2029"}

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
# How JSON writes a control character, or a backslash that is followed by what looks like one.
_CONTROL = re.compile(r"\\[bfnrtu]")


def render(report: Report) -> str:
    """Return the page. It is the same for the same report."""
    style = (_FOLDER / "page.css").read_text(encoding="utf-8")
    script = (_FOLDER / "page.js").read_text(encoding="utf-8")
    policy = (
        "default-src 'none'",
        f"style-src '{_compute_digest(style)}'",
        f"script-src '{_compute_digest(script)}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    )
    rows = build_rows(report)
    return _load_template().render(
        policy="; ".join(policy),
        style=Markup(style),
        script=Markup(script),
        view=build_overview(report),
        plain=rows[:_PLAIN_ROWS],
        more=max(0, len(rows) - _PLAIN_ROWS),
        index=_encode_list(row.index for row in rows),
        chunk_size=_CHUNK_SIZE,
        chunks=_encode_chunks(report, rows),
    )


def _encode_chunks(report: Report, rows: Sequence[Row]) -> Iterator[Markup]:
    build_details = make_details_builder(report)
    for start in range(0, len(rows), _CHUNK_SIZE):
        chunk = rows[start : start + _CHUNK_SIZE]
        yield _encode_list(build_details(row.entry) for row in chunk)


def _encode_list(entries: Iterable[t.Any]) -> Markup:
    """Return a list as JSON that is text to HTML and to a script alike."""
    text = f"[{','.join(map(_encode_json, entries))}]"
    for char, escape in _ESCAPES.items():
        text = text.replace(char, escape)
    return Markup(text)


def _encode_json(data: t.Any) -> str:
    text = _ENCODER.encode(data)
    # To escape every text by itself takes twice as long as everything else together.
    if text.isprintable() and not _CONTROL.search(text):
        return text
    return _ENCODER.encode(_escape_unprintable(data))


def _escape_unprintable(value: t.Any) -> t.Any:
    """Return data with every character spelled out that is invisible or moves its neighbours."""
    if isinstance(value, str):
        return value if value.isprintable() else make_printable(value)
    if isinstance(value, dict):
        return {
            _escape_unprintable(str(key)): _escape_unprintable(part) for key, part in value.items()
        }
    if isinstance(value, list | tuple):
        return [_escape_unprintable(part) for part in value]
    return value


def _compute_digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


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
