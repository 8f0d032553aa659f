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
from collections.abc import Callable, Collection, Iterable, Mapping

from ..._common.errors import InvalidInput, describe_form_error
from ..models.change import Change
from ..models.codec import Json, convert_from_json
from ..models.finding import Finding
from ..models.kinds import get_finding_subject, rename_finding
from ..models.snapshot import Scope, Snapshot
from ..options.run import SightingOptions
from .entries import ENTRY_LISTS, FindingsDocument, iterate_entries

# Readings of single hosts or kinds forget nothing: without a limit the file would grow for ever.
MAX_REMEMBERED = 100_000


_T = t.TypeVar("_T")


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
    is_enough = seen.count >= min_sightings
    return "" if is_enough else f"it was seen {seen.count} of {min_sightings} times"


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
            since = sighting.since if sighting.count else at
            sighting = d.replace(sighting, count=sighting.count + 1, since=since, last=at)
        sightings[finding.id] = sighting
    return sightings


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


@d.dataclass(frozen=True)
class History:
    """What the earlier runs remembered.

    first_seen: by id, when the finding was first seen.
    sightings: by id, how often the finding was seen unchanged.
    """

    first_seen: Mapping[str, str] = d.field(default_factory=dict)
    sightings: Mapping[str, Sighting] = d.field(default_factory=dict)

    def retain(self, reported_ids: Collection[str], snapshot: Snapshot, complete: bool) -> History:
        """Return what stays as it was, because a reading does not report it.

        What was seen once is forgotten when a complete reading of the whole cloud does not report
        it, unless its subject is reported under another kind: what could once not be decided is not
        new when it can be decided again. What a complete reading examined and did not find in the
        same way is counted from the beginning.

        reported_ids: the ids of all entries, including those that are undecided or protected.
        """
        subjects = {get_finding_subject(identity) for identity in reported_ids}
        whole = complete and snapshot.scope == Scope()
        first_seen, sightings = {}, {}
        for identity, seen_at in self.first_seen.items():
            is_forgotten = whole and get_finding_subject(identity) not in subjects
            if identity not in reported_ids and not is_forgotten:
                first_seen[identity] = seen_at
        for identity, sighting in self.sightings.items():
            if not complete or not _is_covered(identity, subjects, snapshot):
                sightings[identity] = sighting
        return History(
            _keep_newest(first_seen, lambda seen_at: seen_at),
            _keep_newest(sightings, lambda sighting: sighting.last),
        )


def _keep_newest(remembered: Mapping[str, _T], get_time: Callable[[_T], str]) -> dict[str, _T]:
    """Return those that were seen last, if there are too many."""
    rows = sorted(remembered.items(), key=lambda row: (get_time(row[1]), row[0]), reverse=True)
    return dict(rows[:MAX_REMEMBERED])


# The consequence of a file of an earlier run that cannot be read.
HISTORY_LOST = "The dates when findings were first seen are lost, and every finding counts as new."


def parse_history(contents: t.Any, path: str) -> History:
    """Return what an earlier run remembered.

    contents: a `findings.json`, or a file that `extract_history` made; files of version 1.0 say
        nothing about sightings.
    path: where they were read.
    Raises InvalidInput when they are something else.
    """
    try:
        seen = [*contents["known"].items()]
        # The entries come last: what a run has seen itself counts more than what it remembered.
        for key in ENTRY_LISTS:
            seen += [(entry["id"], entry["first_seen"]) for entry in contents.get(key, ())]
        history = {
            "first_seen": {rename_finding(identity): seen_at for identity, seen_at in seen},
            "sightings": {
                rename_finding(identity): sighting
                for identity, sighting in contents.get("sightings", {}).items()
            },
        }
        return convert_from_json(History, history)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"{path} does not say when and how often findings were seen "
            f"({describe_form_error(error)}): it was edited, or it is another file."
        ) from error


def extract_history(findings: FindingsDocument) -> Json:
    """Return the part of `findings.json` that is kept in a file of its own."""
    reported = {entry["id"]: entry["first_seen"] for entry in iterate_entries(findings)}
    return {
        "format": findings["format"],
        "known": {**findings["known"], **reported},
        "sightings": findings.get("sightings", {}),
    }
