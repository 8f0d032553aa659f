# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""The entries of `findings.json`: the findings, and what was examined and left alone."""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._models.kinds import (
    get_finding_subject,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterator, Mapping

Entry = t.Mapping[str, t.Any]

# The version of the structure of all the files that a run writes.
FORMAT = 1

# 20 000 findings handed from task to task cost Ansible up to a gigabyte: modules return this many,
# and the files have all of them.
MAX_RETURNED = 200

# The lists of entries; those that an operator may have to act on come first.
ENTRY_LISTS = ("findings", "undecided", "protected")


def iterate_entries(findings: Mapping[str, t.Any]) -> Iterator[Entry]:
    """Yield every entry of `findings.json`."""
    for key in ENTRY_LISTS:
        yield from findings[key]


def get_subject(entry: Entry) -> str:
    """Return the uuid or the name of the object that an entry is about."""
    return str(entry["consumer"] or get_finding_subject(entry["id"]))
