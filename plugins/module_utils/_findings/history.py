# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Since when each finding is known: the memory of a run for the next one, in `findings.json` or in a file of its own."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._findings.entries import LISTS, entries
from ansible_collections.osops.placement.plugins.module_utils._findings.sightings import Sighting

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Mapping

# What readings of single hosts or kinds leave behind would else grow for ever.
MOST = 100_000


@d.dataclass(frozen=True)
class Memory:
    """What the runs before knew: when each id was first seen, and how often each finding was seen as it is."""

    known: Mapping[str, str] = d.field(default_factory=dict)
    sightings: Mapping[str, Sighting] = d.field(default_factory=dict)


# What a file of an earlier run that cannot be read costs.
LOST = "Since when findings are known is lost, and all of them count as new."


def read_memory(contents: t.Any, path: str) -> Memory:
    """Return what the run before has left, by the contents of the file `path`. Raises InvalidInput when they are something else."""
    return Memory(known_in(contents, path), sightings_in(contents, path))


def known_in(contents: t.Any, path: str) -> dict[str, str]:
    """Return when each id was first seen, by the contents of a `findings.json` or of a file that `memory` made.

    Raises InvalidInput when they are something else.
    """
    try:
        known = dict(contents["known"].items())
        for key in LISTS:
            known.update({entry["id"]: entry["first_seen"] for entry in contents.get(key, ())})
    except (AttributeError, KeyError, TypeError) as error:
        raise InvalidInput(f"{path} does not tell since when findings are known: it was edited, or is another file.") from error
    if not all(isinstance(text, str) for pair in known.items() for text in pair):
        raise InvalidInput(f"{path} does not tell since when findings are known: it was edited, or is another file.")
    return known


def sightings_in(contents: t.Any, path: str) -> dict[str, Sighting]:
    """Return how often each finding was seen, by the contents of such a file; nothing by those of version 1.0.

    Raises InvalidInput when they are something else.
    """
    try:
        return {identity: Sighting.read(told) for identity, told in contents.get("sightings", {}).items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"{path} does not tell how often findings were seen: it was edited, or is another file.") from error


def remembered(known: Mapping[str, str], told: Collection[str], whole: bool) -> dict[str, str]:
    """Return what is to be remembered of ids that a reading does not tell of, those seen last if there are too many.

    whole: whether the reading would tell of everything. Then an id is forgotten, unless its subject is told of under another kind:
    what could once not be decided is not new when it can be decided again.
    """
    subjects = {_subject(identity) for identity in told}
    kept = [(seen, identity) for identity, seen in known.items() if identity not in told and (not whole or _subject(identity) in subjects)]
    return {identity: seen for seen, identity in sorted(kept, reverse=True)[:MOST]}


def memory(found: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return what is kept in a file of its own of the contents of `findings.json`."""
    seen = {entry["id"]: entry["first_seen"] for entry in entries(found)}
    return {"format": found["format"], "known": {**found["known"], **seen}, "sightings": found["sightings"]}


def _subject(identity: str) -> str:
    return identity.partition("/")[2]
