"""The section of docs/judges.md about the real stack, from what its tests have measured."""

from __future__ import annotations

import json
import pathlib
import typing as t

from ....tools.markup import format_table

RESULTS = pathlib.Path(__file__).parents[1] / "results" / "stack.json"


def format_stack(results: pathlib.Path = RESULTS) -> str:
    """Return the section as Markdown."""
    if not results.exists():
        return "`make test-stack` has not run yet.\n"
    rows = []
    for name, measured in json.loads(results.read_bytes()).items():
        subject = name.removeprefix("test_").replace("_", " ")
        rows.append([subject, measured["seconds"], _format_measured(measured)])
    return format_table(["test", "seconds", "measured"], rows)


def _format_measured(measured: t.Mapping[str, t.Any]) -> str:
    told = []
    for key, value in measured.items():
        if key != "seconds":
            told.append(f"{key.replace('_', ' ')}: {_format_value(value)}")
    return "; ".join(told)


def _format_value(value: t.Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_format_value(part)}" for key, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(_format_value, value)) or "none"
    return str(value)
