# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""The files that modules write for others to read, and how they are distinguished."""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._findings.entries import FORMAT

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Mapping

# For each file the module that writes it, and the keys that only such a file has.
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
    "summary": ("orphan_summary", ("complete", "totals.verdicts", "runs", "missing_shards")),
}


def validate_document(what: str, document: t.Any, path: str) -> Mapping[str, t.Any]:
    """Return the contents of `path`.

    what: the file that it should be (`findings`, `plan`, …).
    Raises InvalidInput when it is another file, or one of another version.
    """
    writer, required_keys = _WRITERS[what]
    if not isinstance(document, dict) or not _is_complete(document, required_keys):
        raise InvalidInput(
            f"{path} is not what {writer} of this version of the collection writes: "
            f"give {what} its file."
        )
    return document


def _is_complete(document: Mapping[str, t.Any], required_keys: Iterable[str]) -> bool:
    if document.get("format") != FORMAT:
        return False
    return all(_has_key(document, dotted_key) for dotted_key in required_keys)


def _has_key(document: Mapping[str, t.Any], dotted_key: str) -> bool:
    part: t.Any = document
    for key in dotted_key.split("."):
        if not isinstance(part, dict) or key not in part:
            return False
        part = part[key]
    return True
