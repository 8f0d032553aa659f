# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The order in which the terminal and every report list the entries."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Iterable, Mapping

from ...module_utils._core.findings.entries import Entry
from ...module_utils._core.models.kinds import KINDS
from .phrases import list_hosts

if t.TYPE_CHECKING:  # pragma: no cover
    # Texts and numbers that compare as a reader expects: compute-9 comes before compute-10.
    _NaturalKey = list[tuple[str, int]]

_RANKS = {kind.name: rank for rank, kind in enumerate(KINDS)}


def sort_entries(entries: Iterable[Entry]) -> list[Entry]:
    """Return entries by kind, in the order of the table of kinds, then by host, the oldest first.

    What an entry is protected or undecided for is not in that table: such kinds come last, in the
    order of their names.
    """
    return sorted(entries, key=_make_sort_key)


def sort_kinds(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return kinds with their numbers in the order of the table of kinds."""
    return sorted(counts.items(), key=lambda pair: _rank_kind(pair[0]))


def _make_sort_key(entry: Entry) -> tuple[tuple[int, str], list[_NaturalKey], int, str]:
    hosts = [make_natural_key(host) for host in list_hosts(entry)]
    return _rank_kind(entry["kind"]), hosts, -(entry["age_seconds"] or 0), entry["id"]


def _rank_kind(kind: str) -> tuple[int, str]:
    return _RANKS.get(kind, len(_RANKS)), kind


def make_natural_key(name: str) -> _NaturalKey:
    """Return a key by which numbers in names are compared as numbers."""
    key = []
    for text, digits in re.findall(r"([^0-9]*)([0-9]*)", name):
        # Python limits how long a text may be that it reads as a number.
        key.append((text, int(digits[:18] or 0)))
    return key
