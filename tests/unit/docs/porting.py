"""Reads the tables of the porting guides."""

import re
from pathlib import Path

_DOCS = Path(__file__).parents[3] / "docs"
GUIDE = _DOCS / "porting-to-2.0.md"
NEXT_GUIDE = _DOCS / "porting-to-3.0.md"

_CODE = re.compile(r"`([^`]+)`")


def read_rows(heading: str, guide: Path = GUIDE) -> list[list[str]]:
    """Return the cells of the table under a heading, row by row, without its head."""
    section = guide.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2]
    lines = section.partition("\n## ")[0].splitlines()
    rows = [_split_cells(line) for line in lines if line.startswith("|")]
    # The head and the line below it.
    return rows[2:]


def _split_cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split(" |")]


def find_names(cell: str) -> list[str]:
    """Return what is in backticks in a cell."""
    return _CODE.findall(cell)


def find_message(cell: str) -> str:
    """Return the message of a cell."""
    (message,) = find_names(cell)
    return message
