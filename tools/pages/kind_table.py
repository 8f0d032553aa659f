# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of what each kind says of itself, from the files of the kinds."""

from __future__ import annotations

import pathlib
import textwrap

from ansible_collections.osops.placement.plugins.module_utils._core.kinds.registry import KINDS
from ansible_collections.osops.placement.plugins.module_utils._core.models import (
    kind as kind_module,
)

FILE = pathlib.Path(kind_module.__file__).with_name("kind_table.py")

_HEAD = '''\
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What each kind says of itself in its file in `kinds`, in their order. Written by `make pages`."""

from __future__ import annotations

from .kind import CONDITION, DRIFT, OPT_IN, ORPHAN, REMEDIATE, REPORT, Kind

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
    if kind.needs_every_cell:
        fields.append("needs_every_cell=True")
    if kind.was:
        fields.append(f'was="{kind.was}"')
    start = f'    Kind("{kind.name}", "{kind.meaning}",'
    if len(start) > _WIDTH:
        parts = textwrap.wrap(kind.meaning, _WIDTH - 12, drop_whitespace=False)
        meaning = f"\n{_INDENT}".join(f'"{part}"' for part in parts)
        start = f'    Kind("{kind.name}",\n{_INDENT}{meaning},'
    return f"{start}\n{_INDENT}{', '.join(fields)}),\n"
