# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""Since when each finding is known: the memory of a run for the next one, in `findings.json` or in a file of its own."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._findings.entries import (
    ENTRY_LISTS,
    iterate_entries,
)
from ansible_collections.osops.placement.plugins.module_utils._findings.sightings import Sighting
from ansible_collections.osops.placement.plugins.module_utils._models.kinds import rename_finding

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Mapping

# What readings of single hosts or kinds leave behind would else grow for ever.
MAX_REMEMBERED = 100_000


@d.dataclass(frozen=True)
class History:
    """What the runs before knew: when each id was first seen, and how often each finding was seen as it is."""

    first_seen: Mapping[str, str] = d.field(default_factory=dict)
    sightings: Mapping[str, Sighting] = d.field(default_factory=dict)


# What a file of an earlier run that cannot be read costs.
HISTORY_LOST = "Since when findings are known is lost, and all of them count as new."


def parse_history(contents: t.Any, path: str) -> History:
    """Return what the run before has left, by the contents of the file `path`. Raises InvalidInput when they are something else."""
    return History(parse_first_seen(contents, path), parse_sightings(contents, path))


def parse_first_seen(contents: t.Any, path: str) -> dict[str, str]:
    """Return when each id was first seen, by the contents of a `findings.json` or of a file that `extract_history` made.

    Raises InvalidInput when they are something else.
    """
    try:
        known = {rename_finding(identity): seen for identity, seen in contents["known"].items()}
        for key in ENTRY_LISTS:
            known.update(
                {
                    rename_finding(entry["id"]): entry["first_seen"]
                    for entry in contents.get(key, ())
                }
            )
    except (AttributeError, KeyError, TypeError) as error:
        raise InvalidInput(
            f"{path} does not tell since when findings are known: it was edited, or is another file."
        ) from error
    if not all(isinstance(text, str) for pair in known.items() for text in pair):
        raise InvalidInput(
            f"{path} does not tell since when findings are known: it was edited, or is another file."
        )
    return known


def parse_sightings(contents: t.Any, path: str) -> dict[str, Sighting]:
    """Return how often each finding was seen, by the contents of such a file; nothing by those of version 1.0.

    Raises InvalidInput when they are something else.
    """
    try:
        return {
            rename_finding(identity): Sighting.parse(told)
            for identity, told in contents.get("sightings", {}).items()
        }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"{path} does not tell how often findings were seen: it was edited, or is another file."
        ) from error


def retain_first_seen(
    first_seen: Mapping[str, str], reported_ids: Collection[str], whole: bool
) -> dict[str, str]:
    """Return what is to be remembered of ids that a reading does not tell of, those seen last if there are too many.

    whole: whether the reading would tell of everything. Then an id is forgotten, unless its subject is told of under another kind:
    what could once not be decided is not new when it can be decided again.
    """
    subjects = {_get_subject(identity) for identity in reported_ids}
    kept = [
        (seen, identity)
        for identity, seen in first_seen.items()
        if identity not in reported_ids and (not whole or _get_subject(identity) in subjects)
    ]
    return {identity: seen for seen, identity in sorted(kept, reverse=True)[:MAX_REMEMBERED]}


def extract_history(findings: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return what is kept in a file of its own of the contents of `findings.json`."""
    seen = {entry["id"]: entry["first_seen"] for entry in iterate_entries(findings)}
    return {
        "format": findings["format"],
        "known": {**findings["known"], **seen},
        "sightings": findings["sightings"],
    }


def _get_subject(identity: str) -> str:
    return identity.partition("/")[2]
