# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Many blockers and leftovers of hosts and hypervisors: one line each, and each reason once."""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Sequence

from ...module_utils._common.text import make_printable
from ...module_utils._core.models.codec import Unchecked
from .._report.phrases import MAX_NAME, explain_kind
from .._report.view import make_natural_key
from .._terminal.lines import (
    CHANGED,
    ERROR,
    MAX_ROWS,
    format_left_alone,
    format_omitted,
    format_reasons,
    get_prose_width,
    wrap_path,
)
from .._terminal.table import SHORT_UUID, Column, Row, format_table, is_cut

if t.TYPE_CHECKING:  # pragma: no cover
    from ...module_utils._core.models.codec import Json

_UUID = "UUID"
_BLOCKER_COLUMNS = (
    Column("KIND"),
    Column("NAME", least=6, comfort=16),
    Column(_UUID, short=SHORT_UUID),
    Column("WHAT TO DO", least=10, comfort=27),
)
_LEFTOVER_COLUMNS = (Column("KIND"), Column("CONSUMER"))
_GUEST_COLUMNS = (
    Column("KIND"),
    Column("HOST", least=9, comfort=24),
    Column("SERVER", least=6, comfort=16),
    Column(_UUID, short=SHORT_UUID),
    Column("SIZE"),
    Column("CHANGE"),
)

# What to do about a blocker, where it does not depend on the details that its reason gives.
_ADVICE = {
    "server": "move, evacuate or delete it",
    "migration": "wait for it, or abort it",
    "resize": "confirm or revert it",
    "service_up": "stop nova-compute",
}
_SEE_REASON = "see below"

_CHANGES = {"leftover_domain": "undefine", "leftover_directory": "quarantine"}


def format_blocker_table(blockers: Sequence[Unchecked], path: str, width: int) -> list[str]:
    """Return a line for each blocker of a host, then the reasons that say what to do."""
    rows: list[Row] = []
    for blocker in blockers[:MAX_ROWS]:
        cells = (
            make_printable(blocker["kind"]),
            make_printable(blocker["name"], MAX_NAME) or "-",
            make_printable(blocker["subject"], MAX_NAME),
            _ADVICE.get(blocker["kind"], _SEE_REASON),
        )
        rows.append(Row(cells))
    lines = format_table(_BLOCKER_COLUMNS, rows, width)
    lines += format_omitted(blockers, MAX_ROWS, path, get_prose_width(width))
    lines += _explain_short_uuids(_BLOCKER_COLUMNS, rows, path, width)
    unexplained = [blocker for blocker in blockers if blocker["kind"] not in _ADVICE]
    return lines + format_reasons(unexplained, get_blocker_name, get_prose_width(width))


def get_blocker_name(blocker: Unchecked) -> str:
    return str(blocker["name"] or blocker["subject"])


def format_leftover_table(leftovers: Sequence[Unchecked], path: str, width: int) -> list[str]:
    """Return a line for each removable leftover of a host, then the reasons."""
    rows: list[Row] = []
    for leftover in leftovers[:MAX_ROWS]:
        consumer = make_printable(leftover["consumer"] or "-", MAX_NAME)
        rows.append(Row((make_printable(leftover["kind"]), consumer)))
    lines = format_table(_LEFTOVER_COLUMNS, rows, width)
    prose = get_prose_width(width)
    lines += format_omitted(leftovers, MAX_ROWS, path, prose)
    return lines + format_reasons(leftovers, None, prose)


def format_guest_table(
    entries: Sequence[Json], path: str, kinds: Collection[str], width: int
) -> list[str]:
    """Return a line for each leftover domain or directory, then the reasons.

    kinds: those that may be changed.
    """
    prose = get_prose_width(width)
    ordered = sorted(entries, key=_rank_guest)
    rows = [_make_guest_row(entry, kinds) for entry in ordered[:MAX_ROWS]]
    lines = format_table(_GUEST_COLUMNS, rows, width)
    lines += format_omitted(ordered, MAX_ROWS, path, prose)
    lines += _explain_short_uuids(_GUEST_COLUMNS, rows, path, width)
    left = [entry for entry in entries if entry["kind"] not in kinds and not is_running(entry)]
    lines += format_left_alone([explain_kind(entry["kind"]) for entry in left], prose)
    return lines + format_reasons(ordered, None, prose)


def _rank_guest(entry: Json) -> tuple[t.Any, ...]:
    # A directory follows the domain of the same server.
    is_domain = entry["kind"] == "leftover_domain"
    return not is_running(entry), make_natural_key(entry["host"]), entry["uuid"], not is_domain


def is_running(entry: Json) -> bool:
    """Return whether an entry is about two guests of one server, which nothing changes."""
    return bool(entry["kind"] == "running_leftover")


def _make_guest_row(entry: Json, kinds: Collection[str]) -> Row:
    change = "not now"
    if entry["kind"] in kinds:
        change = _CHANGES.get(entry["kind"], "change")
    if is_running(entry):
        change = _SEE_REASON
    name = entry["server"]["name"] if entry["server"] else ""
    cells = (
        make_printable(entry["kind"]),
        make_printable(entry["host"], MAX_NAME),
        make_printable(name or "", MAX_NAME) or "-",
        make_printable(entry["uuid"], MAX_NAME),
        describe_size(entry) or "-",
        change,
    )
    return Row(cells, ERROR if is_running(entry) else CHANGED)


def describe_size(entry: Json) -> str:
    """Return the size of a directory; nothing for a domain, and where it was not measured."""
    size = entry["guest"].get("size_bytes")
    if size is None:
        return ""
    return f"{size / 1024**3:.1f} GiB"


def get_guest_name(entry: Json) -> str:
    """Return which domain or directory an entry is about."""
    return f"{entry['name']} on {entry['host']}"


def _explain_short_uuids(
    columns: Sequence[Column], rows: Sequence[Row], path: str, width: int
) -> list[str]:
    if not is_cut(columns, rows, width, _UUID):
        return []
    text = f"Whole UUIDs: {make_printable(path)}, or a wider terminal."
    return wrap_path(text, get_prose_width(width))
