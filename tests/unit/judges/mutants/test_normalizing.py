"""A change is a mutant unless it is one that a running program cannot show."""

from __future__ import annotations

import pytest

from ....judges.mutants.normalizing import normalize

CODE = """
import dataclasses as d
import typing as t

if t.TYPE_CHECKING:
    from pathlib import Path


class Named(t.Protocol):
    @property
    def name(self) -> str: ...


@d.dataclass(frozen=True)
class Thing:
    path: Path | None = None

    @property
    def name(self) -> str:
        return str(self.path)
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Named(t.Protocol):\n    @property\n", "Named(t.Protocol):\n"),
        ("path: Path | None", "path: Path & None"),
        ("def name(self) -> str:\n", "def name(self) -> not str:\n"),
        ("import Path", "import PurePath"),
        ("frozen=True", "frozen=False"),
    ],
)
def test_what_a_running_program_cannot_show_is_no_mutant(before: str, after: str) -> None:
    assert CODE.count(before) == 1
    assert normalize(CODE.replace(before, after)) == normalize(CODE)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    @property\n    def name(self) -> str:\n", "    def name(self) -> str:\n"),
        ("@d.dataclass(frozen=True)\n", ""),
        ("= None", "= 1"),
        ("str(self.path)", "str(not self.path)"),
    ],
)
def test_every_other_change_is_one(before: str, after: str) -> None:
    assert CODE.count(before) == 1
    assert normalize(CODE.replace(before, after)) != normalize(CODE)
