# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""The files that modules write for others to read, and how one is told from another."""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._findings.entries import FORMAT

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping

# Of each file who writes it, and what only such a file has.
_WRITERS = {
    "findings": (
        "orphan_detect",
        ("cloud", "scope", "summary.coverage", "findings", "protected", "undecided", "finished_at"),
    ),
    "plan": ("orphan_plan", ("placement_endpoint", "detected_at", "changes")),
    "remediation": ("orphan_remediate", ("check_mode", "tally", "journal", "outcomes")),
    "hosts": ("compute_host_info", ("hosts",)),
    "guests": (
        "hypervisor_guest_detect",
        ("summary.coverage.domains", "findings", "protected", "undecided"),
    ),
}


def validate_document(what: str, document: t.Any, path: str) -> Mapping[str, t.Any]:
    """Return the contents of `path`. Raises InvalidInput when they are not the findings, the plan, … (`what`) that it should hold."""
    writer, needed = _WRITERS[what]
    if (
        not isinstance(document, dict)
        or document.get("format") != FORMAT
        or not all(_has_key(document, key.split(".")) for key in needed)
    ):
        raise InvalidInput(
            f"{path} is not what {writer} of this version of the collection writes: give {what} its file."
        )
    return document


def _has_key(document: t.Any, keys: list[str]) -> bool:
    return not keys or (
        isinstance(document, dict) and keys[0] in document and _has_key(document[keys[0]], keys[1:])
    )
