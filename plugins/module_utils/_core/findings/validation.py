# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files that modules write for others to read, and how they are distinguished."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable

from ..._common.errors import InvalidInput
from ..models.documents import Unchecked
from .entries import ENTRY_LISTS, FORMAT

DocumentName = t.Literal["findings", "plan", "remediation", "hosts", "guests", "summary"]

# For each file the module that writes it, and the keys that only such a file has.
_WRITERS: dict[DocumentName, tuple[str, tuple[str, ...]]] = {
    "findings": (
        "orphan_detect",
        (
            "cloud.placement_endpoint",
            "scope.mode",
            "summary.coverage.failed_checks",
            "summary.kinds",
            "summary.stranded.projects",
            "summary.verdicts",
            "findings",
            "protected",
            "undecided",
            "capacity",
            "held",
            "known",
            "started_at",
            "finished_at",
        ),
    ),
    "plan": ("orphan_plan", ("placement_endpoint", "detected_at", "changes")),
    "remediation": ("orphan_remediate", ("check_mode", "tally", "journal", "outcomes")),
    "hosts": ("compute_host_info", ("hosts",)),
    "guests": (
        "hypervisor_guest_detect",
        ("summary.coverage.domains", "findings", "protected", "undecided"),
    ),
    "summary": ("orphan_report", ("complete", "totals.verdicts", "runs", "missing_shards")),
}


_NONE = type(None)
# The keys of every entry of `findings.json`, with the types of their values.
_ENTRY_KEYS: dict[str, tuple[type, ...]] = {
    "id": (str,),
    "kind": (str,),
    "verdict": (str,),
    "consumer": (str, _NONE),
    "reason": (str,),
    "server": (dict, _NONE),
    "migration": (dict, _NONE),
    "service": (dict, _NONE),
    "project": (str, _NONE),
    "user": (str, _NONE),
    "type": (str, _NONE),
    "generation": (int, _NONE),
    "age_seconds": (int, _NONE),
    "providers": (list,),
    "evidence": (list,),
    "change": (dict, _NONE),
    "first_seen": (str,),
    "new": (bool,),
}


def validate_document(what: DocumentName, document: t.Any, path: str) -> t.Any:
    """Return the contents of `path`, which everything after this may take for what they are.

    what: the file that it should be.
    Raises InvalidInput when it is another file, or one of another version.
    """
    writer, required_keys = _WRITERS[what]
    mistake = _find_mistake(document, required_keys)
    if not mistake and what == "findings":
        mistake = _find_mistake_in_entries(document)
    if mistake:
        raise InvalidInput(
            f"{path} is not a file that {writer} of this version of the collection wrote, or not "
            f"all of it ({mistake}): set {what} to the path of such a file."
        )
    return document


def _find_mistake(document: t.Any, required_keys: Iterable[str]) -> str:
    """Return what a document lacks; empty if it is complete."""
    if not isinstance(document, dict):
        return "it is not a mapping"
    if "format" not in document:
        return "it has no format"
    if document["format"] != FORMAT:
        return f"its format is {document['format']!r}, and this version reads {FORMAT}"
    for dotted_key in required_keys:
        if not _has_key(document, dotted_key):
            return f"it has no {dotted_key}"
    return ""


def _find_mistake_in_entries(document: Unchecked) -> str:
    """Return what an entry of `findings.json` lacks; empty if all are complete."""
    for name in ENTRY_LISTS:
        entries = document[name]
        if not isinstance(entries, list):
            return f"its {name} are not a list"
        for number, entry in enumerate(entries, 1):
            if not isinstance(entry, dict):
                return f"entry {number} of its {name} is not a mapping"
            for key, kinds in _ENTRY_KEYS.items():
                if key not in entry:
                    return f"entry {number} of its {name} has no {key}"
                if not isinstance(entry[key], kinds):
                    return f"{key} in entry {number} of its {name} has another type"
    return ""


def _has_key(document: Unchecked, dotted_key: str) -> bool:
    part: t.Any = document
    for key in dotted_key.split("."):
        if not isinstance(part, dict) or key not in part:
            return False
        part = part[key]
    return True
