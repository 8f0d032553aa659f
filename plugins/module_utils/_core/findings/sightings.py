# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many runs have seen a finding unchanged, and since when. Pure.

A finding that has not been seen often enough waits for a later run.

It is kept in `findings.json` or in a file of its own.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Collection, Iterable, Mapping

from ..._common.errors import InvalidInput
from ..models.change import Change
from ..models.kinds import get_finding_subject, rename_finding
from ..models.snapshot import Scope, Snapshot
from ..models.verdict import Finding
from ..options.run import SightingOptions
from .entries import (
    ENTRY_LISTS,
    FindingsDocument,
    HistoryDocument,
    SightingDocument,
    iterate_entries,
)

# Readings of single hosts or kinds forget nothing: without a limit the file would grow for ever.
MAX_REMEMBERED = 100_000


@d.dataclass(frozen=True)
class Sighting:
    """How often runs have seen a finding unchanged.

    count: how many runs.
    since, last: when the first and the last of these runs ended, in UTC.
    generations: those of the consumers or providers that the change would write.
    """

    count: int
    since: str
    last: str
    generations: tuple[int | None, ...]

    @classmethod
    def parse(cls, document: t.Any) -> Sighting:
        """Return what `as_dict` returned. Raises TypeError, KeyError or ValueError otherwise."""
        sighting = cls(
            document["count"],
            document["since"],
            document["last"],
            tuple(document["generations"]),
        )
        known = [number for number in sighting.generations if number is not None]
        has_numbers = all(map(_is_integer, (sighting.count, *known)))
        has_times = isinstance(sighting.since, str) and isinstance(sighting.last, str)
        if not has_numbers or not has_times:
            raise ValueError("it is not a sighting")
        return sighting

    def as_dict(self) -> SightingDocument:
        return t.cast("SightingDocument", {**vars(self), "generations": list(self.generations)})


def parse_min_sightings(options: Mapping[str, t.Any], history_path: str | None) -> int:
    """Return how many runs must have seen a finding before it may be changed.

    history_path: the path of the file that remembers findings from run to run.
    Raises InvalidInput when that file is needed and there is none.
    """
    number: int = SightingOptions.min_sightings.parse(options["min_sightings"])
    if number > 1 and not history_path:
        raise InvalidInput(
            "min_sightings needs a file that keeps findings from run to run, and no such file is "
            "configured: set state (orphan_cleanup_state) or dest to a path that is not removed "
            "between runs."
        )
    return number


def explain_wait(seen: Sighting, min_sightings: int) -> str:
    """Say why a finding may not be changed yet, empty when it may."""
    if seen.count >= min_sightings:
        return ""
    return f"it was seen {seen.count} of {min_sightings} times"


def count_sightings(
    findings: Iterable[Finding], before: Mapping[str, Sighting], snapshot: Snapshot, sound: bool
) -> dict[str, Sighting]:
    """Return how often each of the orphaned or drifted `findings` was seen, by id.

    This reading counts if it is sound. The count starts again when a generation has changed.
    The same reading, judged again, does not count twice.
    """
    at = snapshot.finished_at
    sightings: dict[str, Sighting] = {}
    for finding in findings:
        generations = _list_generations(finding)
        sighting = before.get(finding.id)
        if sighting is None or sighting.generations != generations:
            sighting = Sighting(0, at, "", generations)
        if sound and sighting.last != at:
            sighting = _count_run(sighting, at)
        sightings[finding.id] = sighting
    return sightings


def _count_run(sighting: Sighting, at: str) -> Sighting:
    """Return the sighting with one more run, which ended at `at`."""
    if sighting.count == 0:
        return d.replace(sighting, count=1, since=at, last=at)
    return d.replace(sighting, count=sighting.count + 1, last=at)


def retain_sightings(
    before: Mapping[str, Sighting], reported_ids: Collection[str], snapshot: Snapshot, sound: bool
) -> dict[str, Sighting]:
    """Return the sightings that stay as they were, because this reading did not examine them.

    reported_ids: the ids of all entries, including those that are undecided or protected.
    What the reading examined and did not find in the same way starts again. A reading that is not
    sound says nothing about any of them.
    """
    reported_subjects = {get_finding_subject(identity) for identity in reported_ids}
    kept = {}
    for identity, sighting in before.items():
        if sound and identity in reported_ids:
            continue
        if sound and _is_covered(identity, reported_subjects, snapshot):
            continue
        kept[identity] = sighting
    newest = sorted(kept, key=lambda identity: kept[identity].last, reverse=True)[:MAX_REMEMBERED]
    return {identity: kept[identity] for identity in newest}


def _is_covered(identity: str, subjects: Collection[str], snapshot: Snapshot) -> bool:
    """Return whether a sound reading would have reported the finding."""
    kind, _slash, subject = identity.partition("/")
    scope = snapshot.scope
    if scope == Scope() or subject in subjects:
        return True
    if not scope.includes(kind):
        return False
    if subject in snapshot.evidence:
        return True
    # With named projects the allocations of the others are read too, but not judged.
    return subject in snapshot.allocations and not scope.projects


def _list_generations(finding: Finding) -> tuple[int | None, ...]:
    """Return the generations of everything that the change writes, or that of the consumer."""
    if isinstance(finding.change, Change):
        return tuple(part.generation for part in finding.change.parts)
    if finding.change:
        return tuple(provider.generation for provider in finding.change.providers)
    if finding.allocation:
        return (finding.allocation.generation,)
    return (None,)


def _is_integer(number: t.Any) -> bool:
    # To Python True is a number, too.
    return isinstance(number, int) and not isinstance(number, bool)


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
