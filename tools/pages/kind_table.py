"""The table of what each kind says of itself, from the files of the kinds."""

import pathlib
import textwrap

from ...plugins.module_utils._core.kinds.registry import KINDS
from ...plugins.module_utils._core.models import kind as kind_module

FILE = pathlib.Path(kind_module.__file__).with_name("kind_table.py")

_HEAD = '''\
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What each kind says of itself in its file in `kinds`, in their order. Written by `make pages`."""

from __future__ import annotations

from .kind import CONDITION, DRIFT, EVERY, OPT_IN, ORPHAN, REMEDIATE, REPORT, Kind, Requirement

# fmt: off
KINDS = (
'''
_INDENT = " " * 9
_WIDTH = 100


def write_kind_table() -> dict[pathlib.Path, str]:
    """Return the content of the file."""
    return {FILE: f"{_HEAD}{''.join(map(_format_kind, KINDS))})\n"}


def _format_kind(kind: kind_module.Kind) -> str:
    fields = [kind.group.upper(), kind.by_default.replace("-", "_").upper()]
    for name in ("needs", "named_needs"):
        listed = ", ".join(f'"{request}"' for request in getattr(kind, name))
        if listed:
            # A tuple of one has a comma too.
            text = f"{name}=({listed}{'' if ', ' in listed else ','})"
            hanging = _INDENT + " " * len(f"{name}=(")
            fields.append(f"\n{hanging}".join(textwrap.wrap(text, _WIDTH - len(hanging))))
    if kind.cells == kind_module.EVERY:
        fields.append("cells=EVERY")
    if kind.version:
        version = kind.version
        fields.append(
            f'version=Requirement("{version.service}", {version.since}, "{version.proof}")'
        )
    if kind.was:
        fields.append(f'was="{kind.was}"')
    if kind.renamed_in != kind_module.Kind.renamed_in:
        fields.append(f'renamed_in="{kind.renamed_in}"')
    start = f'    Kind("{kind.name}", "{kind.meaning}",'
    if len(start) > _WIDTH:
        parts = textwrap.wrap(kind.meaning, _WIDTH - 12, drop_whitespace=False)
        meaning = f"\n{_INDENT}".join(f'"{part}"' for part in parts)
        start = f'    Kind("{kind.name}",\n{_INDENT}{meaning},'
    lines = [_INDENT]
    for field in fields:
        if len(lines[-1]) + len(field) + 2 > _WIDTH:
            lines.append(_INDENT)
        lines[-1] += f"{field}, "
    text = "\n".join(line.rstrip() for line in lines)
    return f"{start}\n{text[:-1]}),\n"
