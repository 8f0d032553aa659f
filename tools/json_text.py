"""JSON of results and fixtures: a record has a line, so that differences are read by records."""

import dataclasses as d
import json
import typing as t
from pathlib import Path

from ansible_collections.osops.placement.plugins.module_utils._core.models.codec import (
    convert_from_json,
)

_T = t.TypeVar("_T")
_WIDTH = 1000
# Entries up to this length share lines up to that length.
_SHORT, _SHARED = 60, 300


def format_json(value: t.Any, sort_keys: bool = True) -> str:
    """Return a JSON document, which ends with a line break."""
    return f"{_format(value, '', sort_keys)}\n"


def save_record(path: Path, record: t.Any) -> None:
    """Write a dataclass."""
    path.write_text(format_json(d.asdict(record)), encoding="utf-8")


def load_record(kind: type[_T], path: Path) -> _T:
    """Return the dataclass that was written."""
    return convert_from_json(kind, json.loads(path.read_text(encoding="utf-8")))


def _format(value: t.Any, indent: str, sort_keys: bool) -> str:
    text = json.dumps(value, sort_keys=sort_keys, ensure_ascii=False)
    if len(indent) + len(text) <= _WIDTH or not isinstance(value, dict | list | tuple):
        return text
    inner = f"{indent} "
    if not isinstance(value, dict):
        parts = [_format(entry, inner, sort_keys) for entry in value]
        opening, closing = "[]"
    else:
        parts = []
        for key in sorted(value) if sort_keys else value:
            parts.append(f"{json.dumps(str(key))}: {_format(value[key], inner, sort_keys)}")
        opening, closing = "{}"
    body = f",\n{inner}".join(_pack(parts))
    return f"{opening}\n{inner}{body}\n{indent}{closing}"


def _pack(parts: list[str]) -> list[str]:
    """Let short entries share a line, such as names."""
    lines: list[str] = []
    for part in parts:
        if lines and len(part) <= _SHORT and len(lines[-1]) + len(part) <= _SHARED:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
    return lines
