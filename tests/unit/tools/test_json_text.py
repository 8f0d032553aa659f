import json
import typing as t

import pytest

from ....tools.json_text import format_json


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        {"b": [], "a": {}},
        {"é": ['"', "\n"]},
        {"a": list(range(400)), "b": {"c": "x" * 1000}},
    ],
)
def test_a_document_is_read_as_it_was(value: t.Any) -> None:
    assert json.loads(format_json(value)) == value


def test_what_fits_is_in_one_line_and_what_does_not_has_a_line_for_each_entry() -> None:
    rows = [{"name": "x" * 300, "number": number} for number in range(4)]

    lines = format_json({2: rows, 1: (1, 2)}).splitlines()

    assert lines[:3] == ["{", ' "1": [1, 2],', ' "2": [']
    assert [json.loads(line.strip().rstrip(",")) for line in lines[3:-2]] == rows


def test_short_entries_share_lines() -> None:
    names = [f"name-{number:03}" for number in range(100)]

    lines = format_json(names).splitlines()

    assert len(lines) < 10 and max(map(len, lines)) < 400
