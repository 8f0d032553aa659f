"""The page about attacks: every row has a test, and every file of attacks has a row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "attacks.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("|") and "---" not in line
]
ATTACKS = [row for row in ROWS if "::" in row[-1]]


@pytest.mark.parametrize("row", ATTACKS, ids=lambda row: row[-1].strip("`").rpartition("::")[2])
def test_attack_has_a_result_a_version_and_a_test(row: list[str]) -> None:
    _attack, result, since, test = row
    assert re.match("(held|closed)", result)
    assert since in ("1.0.0", "2.0.0", "3.0.0")
    path, _separator, function = test.strip("`").partition("::")
    code = (ROOT / "tests" / path).read_text(encoding="utf-8")
    assert f"\ndef {function}(" in code


def test_every_file_of_attacks_is_on_the_page() -> None:
    files = sorted((ROOT / "tests" / "attacks").glob("test_*.py"))
    assert files
    assert [file.name for file in files if f"attacks/{file.name}" not in PAGE] == []
