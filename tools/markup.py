"""Markdown: tables, and the sections of pages that are written from results."""

import re
import typing as t
from pathlib import Path

SECTION = re.compile(r"(<!-- begin (\w+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)


def format_table(columns: t.Sequence[str], rows: t.Iterable[t.Iterable[object]]) -> str:
    """Return a table; nothing in a cell may be a bar that Markdown would take for its end."""
    head = f"{_format_row(columns)}|{'---|' * len(columns)}\n"
    return head + "".join(map(_format_row, rows))


def _format_row(cells: t.Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |\n"


def escape(text: str, characters: str = "|") -> str:
    """Return a text that these characters do not end or change."""
    for character in characters:
        text = text.replace(character, f"\\{character}")
    return text


def renew_sections(page: Path, parts: t.Mapping[str, t.Callable[[], str]]) -> str:
    """Return the text of a page with new sections; others than these stay as they are."""

    def renew(found: re.Match[str]) -> str:
        return f"{found[1]}\n{parts[found[2]]()}\n{found[3]}" if found[2] in parts else found[0]

    return SECTION.sub(renew, page.read_text(encoding="utf-8"))
