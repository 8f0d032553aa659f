# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many runs have seen a finding unchanged, and since when. Pure.

A finding that has not been seen often enough waits for a later run.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Collection, Iterable, Mapping

from ..._common.errors import InvalidInput
from ..models.change import Change
from ..models.kinds import get_finding_subject
from ..models.snapshot import Scope, Snapshot
from ..models.verdict import Finding
from .entries import SightingDocument

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


def sighting_options() -> dict[str, dict[str, t.Any]]:
    """Return the option of `orphan_detect` that says when a finding may be changed."""
    return {"min_sightings": {"type": "int", "default": 1}}


def parse_min_sightings(options: Mapping[str, t.Any], history_path: str | None) -> int:
    """Return how many runs must have seen a finding before it may be changed.

    history_path: the path of the file that remembers findings from run to run.
    Raises InvalidInput when that file is needed and there is none.
    """
    number = int(options["min_sightings"])
    if number < 1:
        raise InvalidInput(
            f"min_sightings (orphan_cleanup_min_sightings) is {number}: it must be 1 or more."
        )
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
    if not scope.includes_any(kind):
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
