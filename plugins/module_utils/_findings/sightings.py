# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""How many runs have seen a finding, and since when, without anything of it having changed: what can wait is changed at a later look. Pure."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._common.times import (
    format_duration,
    parse_duration,
    seconds_between,
)
from ansible_collections.osops.placement.plugins.module_utils._models.change import Change
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Scope

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Iterable, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Snapshot
    from ansible_collections.osops.placement.plugins.module_utils._models.verdict import Finding

# As many as `_findings.history` remembers of what a run does not tell of.
MAX_REMEMBERED = 100_000


@d.dataclass(frozen=True)
class Sighting:
    """That runs have seen a finding as it is: how many, when the first of them and the last ended, and at which generations."""

    count: int
    since: str
    last: str
    generations: tuple[int | None, ...]

    @classmethod
    def parse(cls, told: t.Any) -> Sighting:
        """Return what `as_dict` told. Raises TypeError, KeyError or ValueError for anything else."""
        known = cls(told["count"], told["since"], told["last"], tuple(told["generations"]))
        numbers = [known.count, *(number for number in known.generations if number is not None)]
        # To Python True is a number, too.
        whole = all(isinstance(number, int) and not isinstance(number, bool) for number in numbers)
        if not whole or not all(isinstance(at, str) for at in (known.since, known.last)):
            raise ValueError("it is not a sighting")
        return known

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "count": self.count,
            "since": self.since,
            "last": self.last,
            "generations": list(self.generations),
        }


@d.dataclass(frozen=True)
class SightingPolicy:
    """How many runs must have seen a finding, and for how many seconds, before it may be changed. Both must be so."""

    min_sightings: int = 1
    known_for: int = 0

    @property
    def needs_history(self) -> bool:
        return self.min_sightings > 1 or self.known_for > 0

    def explain_wait(self, seen: Sighting, at: str) -> str:
        """Say why a finding may not be changed at the time `format_timestamp`; nothing when it may."""
        whys = []
        if seen.count < self.min_sightings:
            whys.append(f"it was seen {seen.count} of {self.min_sightings} times")
        known_for = seconds_between(seen.since, at) or 0
        if known_for < self.known_for:
            whys.append(
                f"it is known for {format_duration(known_for)} of {format_duration(self.known_for)}"
            )
        return " and ".join(whys)


def sighting_policy_options() -> dict[str, dict[str, t.Any]]:
    """Return the options of `orphan_detect` that say when a finding may be changed."""
    return {
        "min_sightings": {"type": "int", "default": 1},
        "known_for": {"type": "str", "default": "0"},
    }


def parse_sighting_policy(options: Mapping[str, t.Any], history_path: str | None) -> SightingPolicy:
    """Return what the options ask for.

    history_path: the path of the file that remembers findings from run to run. Raises InvalidInput when there must be one and there is none.
    """
    asked = SightingPolicy(int(options["min_sightings"]), parse_duration(options["known_for"]))
    if asked.min_sightings < 1:
        raise InvalidInput(
            f"min_sightings (orphan_cleanup_min_sightings) is {asked.min_sightings}: it must be 1 or more."
        )
    if asked.needs_history and not history_path:
        raise InvalidInput(
            "min_sightings and known_for need a file that remembers findings from run to run, and none is given: "
            "set state (orphan_cleanup_state) or dest to a path that lasts."
        )
    return asked


def count_sightings(
    findings: Iterable[Finding], before: Mapping[str, Sighting], snapshot: Snapshot, sound: bool
) -> dict[str, Sighting]:
    """Return how often each of the findings `findings`, all orphaned or drifted, was seen, this reading included if it is sound.

    It begins anew when a generation is another one. The same reading, judged again, does not count twice.
    """
    at = snapshot.finished_at
    seen: dict[str, Sighting] = {}
    for finding in findings:
        generations = _list_generations(finding)
        known = before.get(finding.id)
        if known is None or known.generations != generations:
            known = Sighting(0, at, "", generations)
        if sound and known.last != at:
            known = d.replace(
                known, count=known.count + 1, since=known.since if known.count else at, last=at
            )
        seen[finding.id] = known
    return seen


def retain_sightings(
    before: Mapping[str, Sighting], reported_ids: Collection[str], snapshot: Snapshot, sound: bool
) -> dict[str, Sighting]:
    """Return the sightings that stay as they were: of what this reading does not tell of, because it did not look there.

    reported_ids: the ids of all that it tells of, also of what is undecided and protected. What it looked at and did not find in the same way
    begins anew; a reading that is not sound says nothing of anybody.
    """
    subjects = {identity.partition("/")[2] for identity in reported_ids}
    left = {
        identity: sighting
        for identity, sighting in before.items()
        if not sound
        or (identity not in reported_ids and not _is_covered(identity, subjects, snapshot))
    }
    newest = sorted(left, key=lambda identity: left[identity].last, reverse=True)[:MAX_REMEMBERED]
    return {identity: left[identity] for identity in newest}


def _is_covered(identity: str, subjects: Collection[str], snapshot: Snapshot) -> bool:
    """Tell whether a sound reading would have told of it."""
    kind, _slash, subject = identity.partition("/")
    scope = snapshot.scope
    if scope == Scope() or subject in subjects:
        return True
    if not scope.includes_any(kind):
        return False
    # Of other projects everything is read, and nothing is judged.
    return subject in snapshot.evidence or (subject in snapshot.allocations and not scope.projects)


def _list_generations(finding: Finding) -> tuple[int | None, ...]:
    """Return the generations of all that its change would write, or of its consumer."""
    if isinstance(finding.change, Change):
        return tuple(part.generation for part in finding.change.parts)
    if finding.change:
        return tuple(provider.generation for provider in finding.change.providers)
    return (finding.allocation.generation if finding.allocation else None,)
