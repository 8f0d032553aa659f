"""Draws a recording as an SVG that moves by CSS alone: no script, no font, no network.

Without animation, the picture is the last screen. Each line is drawn once, hidden until its time,
and the whole text moves up by a line when the screen is full.
"""

import dataclasses as d
import html
import pathlib
import re
import typing as t

from ...tests.integration.console_shell import COLUMNS
from ...tests.integration.support import ROOT
from .recording import Take

FILE = pathlib.Path(ROOT / "docs" / "images" / "cast.svg")
ROWS = 32
_CHARACTER, _LINE, _MARGIN, _BAR = 8.4, 19, 16, 30
_SGR = re.compile("\x1b\\[([0-9;]*)m")
_OTHER = re.compile("\x1b\\[[0-9;?]*[A-Za-ln-z]")

# Seconds: for each character that somebody types, for each line of an output, before and after a
# command is typed, for the longest wait, and to read a result.
_TYPING, _SCROLLING, _PAUSE, _LONGEST, _READING, _END = 0.035, 0.06, 0.5, 0.35, 4.0, 8.0

# The colours of Ansible's messages, and of the prompt.
_STYLES = {"31": "r", "32": "g", "33": "y", "34": "b", "35": "m", "36": "c", "90": "d"}
_PROMPT = "p"
_CSS = """\
text{font:14px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace}
text{fill:#d6d9de;white-space:pre}
.r{fill:#e06c6c}.g{fill:#7fbf6a}.y{fill:#d7ba5c}.b{fill:#6ca6e0}.m{fill:#c58fd6}.c{fill:#5fb3c9}
.d{fill:#8a919c}.p{fill:#fff;font-weight:bold}
"""


@d.dataclass
class Line:
    """One line of the screen: its spans with their styles, and the second at which it appears."""

    spans: list[tuple[str, str]]
    at: float
    # The seconds for which somebody types it.
    typed: float = 0.0

    @property
    def length(self) -> int:
        return sum(len(text) for text, _style in self.spans)


def draw(takes: t.Sequence[Take]) -> str:
    """Return the recording as an SVG."""
    lines, end = _lay_out(takes)
    width = round(COLUMNS * _CHARACTER + 2 * _MARGIN)
    height = ROWS * _LINE + 2 * _MARGIN + _BAR
    rows = "\n".join(_draw_line(number, line) for number, line in enumerate(lines))
    last = max(len(lines) - ROWS, 0) * _LINE
    described = " Then: ".join(take.command for take in takes)
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" role="img"
 viewBox="0 0 {width} {height}" width="{width}" height="{height}">
<!-- SPDX-FileCopyrightText: osops.placement contributors -->
<!-- SPDX-License-Identifier: GPL-3.0-or-later -->
<title>A terminal: {html.escape(described)}</title>
<style>
{_CSS}@media (prefers-reduced-motion: no-preference){{
{_animate(lines, end)}
}}
</style>
<clipPath id="screen"><rect y="{_BAR + 4}" width="{width}" height="{height}"/></clipPath>
<rect width="{width}" height="{height}" rx="8" fill="#15181d"/>
<g fill="#3a3f47">
<circle cx="20" cy="16" r="5"/><circle cx="38" cy="16" r="5"/><circle cx="56" cy="16" r="5"/>
</g>
<g clip-path="url(#screen)"><g id="all" transform="translate(0,-{last})">
{rows}
</g></g>
</svg>
"""


def _lay_out(takes: t.Sequence[Take]) -> tuple[list[Line], float]:
    """Return the lines with their times, and the time of the end."""
    lines: list[Line] = []
    now = _PAUSE
    for take in takes:
        typed = len(take.command) * _TYPING
        lines.append(Line([("$ ", _PROMPT), (take.command, _PROMPT)], now, typed))
        now += typed + _PAUSE
        before = 0.0
        style = ""
        rest = ""
        for seconds, piece in take.pieces:
            now += min(seconds - before, _LONGEST)
            before = seconds
            *whole, rest = (rest + piece).split("\n")
            for text in whole:
                spans, style = _read_spans(text, style)
                for part in _wrap(spans):
                    lines.append(Line(part, now))
                    now += _SCROLLING
        now += _READING
    return lines, now - _READING + _END


def _read_spans(text: str, style: str) -> tuple[list[tuple[str, str]], str]:
    """Return the spans of a line, and the style at its end."""
    # What was printed before a carriage return is overwritten.
    parts = _SGR.split(_OTHER.sub("", text.rpartition("\r")[2]))
    spans = [(parts[0], style)]
    for codes, shown in zip(parts[1::2], parts[2::2], strict=True):
        style = _STYLES.get(codes.split(";")[-1], "")
        spans.append((shown, style))
    return [(shown, kind) for shown, kind in spans if shown], style


def _wrap(spans: list[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """Return the lines of the screen that these spans need, at least one."""
    lines: list[list[tuple[str, str]]] = [[]]
    room = COLUMNS
    for text, style in spans:
        while len(text) > room:
            lines[-1].append((text[:room], style))
            lines.append([])
            text, room = text[room:], COLUMNS
        lines[-1].append((text, style))
        room -= len(text)
    return lines


def _draw_line(number: int, line: Line) -> str:
    y = _BAR + _MARGIN + number * _LINE
    if not line.length:
        return ""
    spans = "".join(_draw_span(text, style) for text, style in line.spans)
    length = round(line.length * _CHARACTER, 1)
    name = f"t{number}" if line.typed else f"a{round(line.at * 100)}"
    return (
        f'<text class="{name}" x="{_MARGIN}" y="{y}" textLength="{length}" '
        f'lengthAdjust="spacingAndGlyphs" xml:space="preserve">{spans}</text>'
    )


def _draw_span(text: str, style: str) -> str:
    shown = html.escape(text, quote=False)
    return f'<tspan class="{style}">{shown}</tspan>' if style else shown


def _animate(lines: list[Line], end: float) -> str:
    """Return the rules that show each line at its time, again and again."""
    rules = []
    for at in sorted({line.at for line in lines if not line.typed}):
        name = f"a{round(at * 100)}"
        rules.append(
            f"@keyframes {name}{{0%{{opacity:0}}{_percent(at, end)}{{opacity:1}}}}"
            f".{name}{{animation:{name} {end:.1f}s step-end infinite}}"
        )
    for number, line in enumerate(lines):
        if line.typed:
            rules.append(_animate_typing(number, line, end))
    return "\n".join([*rules, _animate_scrolling(lines, end)])


def _animate_typing(number: int, line: Line, end: float) -> str:
    # Both parts are shown at first, and the second from left to right.
    first, last = _percent(line.at, end), _percent(line.at + line.typed, end)
    hidden = "clip-path:inset(0 100% 0 0)"
    return (
        f"@keyframes t{number}{{0%{{{hidden}}}"
        f"{first}{{{hidden};animation-timing-function:steps({line.length})}}"
        f"{last}{{clip-path:inset(0 0 0 0)}}}}"
        f".t{number}{{animation:t{number} {end:.1f}s step-end infinite}}"
    )


def _animate_scrolling(lines: list[Line], end: float) -> str:
    offsets = {0.0: 0}
    for number, line in enumerate(lines):
        offsets[line.at] = max(number + 1 - ROWS, 0) * _LINE
    steps = []
    for at, offset in sorted(offsets.items()):
        steps.append(f"{_percent(at, end)}{{transform:translateY(-{offset}px)}}")
    return f"@keyframes all{{{''.join(steps)}}}#all{{animation:all {end:.1f}s step-end infinite}}"


def _percent(at: float, end: float) -> str:
    return f"{100 * at / end:.2f}%"
