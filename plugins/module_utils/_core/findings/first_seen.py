# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When each finding was first seen: what a run remembers for the next one.

It is kept in `findings.json` or in a file of its own.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Collection, Mapping

from ..._common.errors import InvalidInput
from ..models.kinds import get_finding_subject, rename_finding
from .entries import ENTRY_LISTS, FindingsDocument, HistoryDocument, iterate_entries
from .sightings import MAX_REMEMBERED, Sighting


@d.dataclass(frozen=True)
class History:
    """What the earlier runs remembered.

    first_seen: by id, when the finding was first seen.
    sightings: by id, how often the finding was seen unchanged.
    """

    first_seen: Mapping[str, str] = d.field(default_factory=dict)
    sightings: Mapping[str, Sighting] = d.field(default_factory=dict)


# The consequence of a file of an earlier run that cannot be read.
HISTORY_LOST = "The dates when findings were first seen are lost, and every finding counts as new."


def parse_history(contents: t.Any, path: str) -> History:
    """Return what the file `path` remembers, by its contents. Raises InvalidInput for others."""
    return History(parse_first_seen(contents, path), parse_sightings(contents, path))


def parse_first_seen(contents: t.Any, path: str) -> dict[str, str]:
    """Return when each id was first seen.

    contents: a `findings.json`, or a file that `extract_history` made.
    Raises InvalidInput when they are something else.
    """
    try:
        return _read_first_seen(contents)
    except (AttributeError, KeyError, TypeError) as error:
        raise InvalidInput(
            f"{path} does not say when findings were first seen: it was edited, or it is another "
            "file."
        ) from error


def _read_first_seen(contents: t.Any) -> dict[str, str]:
    first_seen = {}
    for identity, seen_at in contents["known"].items():
        first_seen[rename_finding(identity)] = seen_at
    # The entries come last: what a run has seen itself counts more than what it remembered.
    for key in ENTRY_LISTS:
        for entry in contents.get(key, ()):
            first_seen[rename_finding(entry["id"])] = entry["first_seen"]
    for identity, seen_at in first_seen.items():
        if not isinstance(identity, str) or not isinstance(seen_at, str):
            raise TypeError(identity)
    return first_seen


def parse_sightings(contents: t.Any, path: str) -> dict[str, Sighting]:
    """Return how often each finding was seen; files of version 1.0 say nothing about it.

    contents: those that `parse_first_seen` takes.
    Raises InvalidInput when they are something else.
    """
    sightings = {}
    try:
        for identity, sighting in contents.get("sightings", {}).items():
            sightings[rename_finding(identity)] = Sighting.parse(sighting)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"{path} does not say how often findings were seen: "
            "it was edited, or it is another file."
        ) from error
    return sightings


def retain_first_seen(
    first_seen: Mapping[str, str], reported_ids: Collection[str], whole: bool
) -> dict[str, str]:
    """Return when ids that a reading does not report were first seen, to be remembered.

    If there are too many, those that were first seen last are kept.
    whole: whether the reading would report everything. Then an id is forgotten, unless its subject
    is reported under another kind: what could once not be decided is not new when it can be
    decided again.
    """
    reported_subjects = {get_finding_subject(identity) for identity in reported_ids}
    kept = []
    for identity, seen_at in first_seen.items():
        if identity in reported_ids:
            continue
        if not whole or get_finding_subject(identity) in reported_subjects:
            kept.append((seen_at, identity))
    newest = sorted(kept, reverse=True)[:MAX_REMEMBERED]
    return {identity: seen_at for seen_at, identity in newest}


def extract_history(findings: FindingsDocument) -> HistoryDocument:
    """Return the part of `findings.json` that is kept in a file of its own."""
    reported = {entry["id"]: entry["first_seen"] for entry in iterate_entries(findings)}
    return {
        "format": findings["format"],
        "known": {**findings["known"], **reported},
        "sightings": findings.get("sightings", {}),
    }
