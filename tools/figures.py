# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`make figures`: prints figures about the style of the code, one line for each room."""

from __future__ import annotations

import ast
import dataclasses as d
import io
import statistics
import sys
import tokenize
import typing as t
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LAYOUT = (
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.COMMENT,
)
# The licence, and the note that a file is private to the collection, are not counted as comments.
LINES_OF_HEADER = 7
VERBS = frozenset((ROOT / "tools" / "verbs.txt").read_text(encoding="utf-8").split())
# The documentation of Ansible plugins is text, although Python reads it as code.
DOCUMENTATION = ("DOCUMENTATION", "EXAMPLES", "RETURN")


@d.dataclass
class Figures:
    """The counts of some files."""

    files: int = 0
    longest_file: int = 0
    lines: int = 0
    comprehensions: int = 0
    nested: int = 0
    conditionals: int = 0
    comments: int = 0
    functions: int = 0
    verbs: int = 0
    lengths: list[int] = d.field(default_factory=list)

    def add(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        self.files += 1
        self.longest_file = max(self.longest_file, len(text.splitlines()))
        tree = ast.parse(text)
        lines = _find_lines_of_code(text) - _find_lines_of_docstrings(tree)
        self.lines += len(lines)
        self.comments += _count_comments(text)
        for node in ast.walk(tree):
            if isinstance(node, COMPREHENSIONS):
                self.comprehensions += 1
                self.nested += _has_inner(node, COMPREHENSIONS)
            elif isinstance(node, ast.IfExp):
                self.conditionals += 1
                self.nested += _has_inner(node, (ast.IfExp,))
            elif isinstance(node, FUNCTIONS) and not _is_property(node):
                self._add_function(node, lines)

    def _add_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, lines: set[int]) -> None:
        self.lengths.append(len(lines.intersection(range(node.lineno, (node.end_lineno or 0) + 1))))
        # Python gives the names of the former, and Ansible that of the latter.
        if node.name.startswith("__") or node.name == "main":
            return
        self.functions += 1
        first_word = node.name.lstrip("_").partition("_")[0]
        self.verbs += first_word in VERBS

    def format_row(self) -> list[str]:
        """Return a row: counts for 100 lines of code, and the functions with a verb in percent."""
        hundred = max(self.lines, 1) / 100
        return [
            str(self.files),
            str(self.longest_file),
            str(self.lines),
            f"{self.comprehensions / hundred:.1f}",
            f"{self.conditionals / hundred:.1f}",
            str(self.nested),
            f"{self.comments / hundred:.1f}",
            f"{100 * self.verbs / max(self.functions, 1):.0f} %",
            f"{statistics.median(self.lengths or [0]):.0f}",
        ]


def _find_lines_of_code(text: str) -> set[int]:
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines


def _find_lines_of_docstrings(tree: ast.Module) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Module)) and ast.get_docstring(node):
            lines |= _get_lines(node.body[0])
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in DOCUMENTATION:
            lines |= _get_lines(node)
    return lines


def _get_lines(node: ast.stmt) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or 0) + 1))


def _count_comments(text: str) -> int:
    count = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        count += token.type == tokenize.COMMENT and token.start[0] > LINES_OF_HEADER
    return count


def _has_inner(node: ast.AST, types: tuple[type[ast.AST], ...]) -> bool:
    return any(isinstance(inner, types) for inner in ast.walk(node) if inner is not node)


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in node.decorator_list)


COLUMNS = ("lines", "comprehensions", "conditionals", "nested", "comments", "verbs", "median")
FOLDERS = ("plugin_utils", "modules", "action", "filter", "lookup")

TITLES = ("files", "longest", *COLUMNS)


def main() -> int:
    plugins = ROOT / "plugins"
    rooms = sorted({path.parent for path in (plugins / "module_utils").rglob("*.py")})
    whole = Figures()
    _print_row("", TITLES)
    _print_row("---", ["---"] * len(TITLES))
    for place in [*rooms, *(plugins / name for name in FOLDERS)]:
        figures = Figures()
        for path in sorted(place.glob("*.py") if place in rooms else place.rglob("*.py")):
            figures.add(path)
            whole.add(path)
        name = place.relative_to(plugins / "module_utils") if place in rooms else place.name
        _print_row(f"`{name}`", figures.format_row())
    _print_row("all", whole.format_row())
    return 0


def _print_row(name: str, cells: t.Sequence[str]) -> None:
    """Print a row of a Markdown table, which CONTRIBUTING.md shows."""
    columns = [name.ljust(22)]
    for cell, title in zip(cells, TITLES, strict=True):
        columns.append(cell.rjust(len(title)))
    print("|", " | ".join(columns), "|")


if __name__ == "__main__":
    sys.exit(main())
