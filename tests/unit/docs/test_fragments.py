"""The changelog shows the markup of module documentation as it is."""

from __future__ import annotations

import re
from pathlib import Path

FRAGMENTS = sorted((Path(__file__).parents[3] / "changelogs" / "fragments").glob("*.yml"))
MARKUP = re.compile(r"\b(?:[BCEFIMOPUV]|RV)\([^)\n]*\)")


def test_names_are_in_double_backticks() -> None:
    found = {
        path.name: MARKUP.findall(path.read_text(encoding="utf-8"))
        for path in FRAGMENTS
        if MARKUP.search(path.read_text(encoding="utf-8"))
    }

    assert found == {}
