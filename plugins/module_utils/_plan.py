# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""From findings to the changes that a run may make, and the limits that it must keep. Pure."""

from __future__ import annotations

import dataclasses as d
import math
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._change import Change
from ansible_collections.osops.placement.plugins.module_utils._errors import BreakerTripped, GateClosed, InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._findings import FORMAT
from ansible_collections.osops.placement.plugins.module_utils._model import Cloud
from ansible_collections.osops.placement.plugins.module_utils._uuid import canonical

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Mapping, Sequence

# A share of few is no sign of anything: below this many changes only max_changes counts.
SHARE_COUNTS_ABOVE = 20


@d.dataclass(frozen=True)
class Step:
    """One change of a plan: which finding it settles, and the exact write."""

    finding: str
    kind: str
    change: Change

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "finding": self.finding,
            "kind": self.kind,
            **self.change.as_dict(),
        }


@d.dataclass(frozen=True)
class Limits:
    """How much one run may change; `max_share` is a fraction of all consumers that were read, and not of named ones."""

    max_changes: int
    max_share: float


def plan(findings: Mapping[str, t.Any], cloud: Cloud, kinds: Collection[str]) -> tuple[tuple[Step, ...], int | None]:
    """Return the steps for the selected findings of the chosen `kinds`, and how many consumers were read to find them.

    None stands for a reading of named hosts or consumers: of a dead host everything is rightly an orphan.

    Raises GateClosed when the reading behind the findings was not sound, InvalidInput when they are of another cloud than
    `cloud` or not of our making.
    """
    try:
        if findings["format"] != FORMAT:
            raise InvalidInput(f"The findings have format {findings['format']} and this version reads format {FORMAT}: detect again.")
        for what in ("placement_endpoint", "region"):
            if findings["cloud"][what] != getattr(cloud, what):
                raise InvalidInput(
                    f"The findings are of another cloud: {what} is {findings['cloud'][what]} there and {getattr(cloud, what)} here."
                )
        if closed := findings["summary"]["coverage"]["closed_gates"]:
            raise GateClosed(f"Nothing may be changed after this reading. {' '.join(closed)}")
        steps = tuple(_step(entry) for entry in findings["findings"] if entry["kind"] in kinds and entry["change"] and entry["selected"])
        narrow = findings["scope"]["hosts"] or findings["scope"]["consumers"]
        # A triage reads few of the consumers; of how many they are, the hosts' own figures tell enough.
        counted = "servers" if findings["scope"]["mode"] == "triage" else "consumers"
        return steps, None if narrow else int(findings["summary"]["coverage"][counted])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"The findings are not as orphan_detect writes them ({type(error).__name__}: {error}): detect again.") from error


def check_limits(steps: Sequence[Step], limits: Limits, consumers: int | None) -> None:
    """Raise BreakerTripped when `steps` are more than one run may change, or more than it may of `consumers` read."""
    if len(steps) > limits.max_changes:
        raise BreakerTripped(
            f"{len(steps)} changes are planned and max_changes is {limits.max_changes}: nothing was changed. "
            f"Read the findings, and if they are right set max_changes (orphan_cleanup_max_changes) to {len(steps)} or more."
        )
    if consumers is None:
        return
    share = len(steps) / max(consumers, 1)
    if len(steps) > SHARE_COUNTS_ABOVE and share > limits.max_share:
        raise BreakerTripped(
            f"{len(steps)} of {consumers} consumers would be changed and max_share is {limits.max_share:g}: nothing was changed. "
            f"Read the findings, and if they are right set max_share (orphan_cleanup_max_share) to {math.ceil(share * 1000) / 1000:g} or more."
        )


def _step(entry: Mapping[str, t.Any]) -> Step:
    change = entry["change"]
    consumer = change["consumer"]
    if canonical(consumer) != consumer or consumer != entry["consumer"]:
        raise InvalidInput(f"The change of {entry['id']} names the consumer {consumer!r}, which is not the finding's: detect again.")
    for body in (change["before"], change["after"]):
        if body["consumer_generation"] != change["generation"]:
            raise InvalidInput(f"The change of {entry['id']} names two generations: detect again.")
        for share in body["allocations"].values():
            dict(share["resources"])
    return Step(finding=entry["id"], kind=entry["kind"], change=Change(consumer, change["generation"], change["before"], change["after"]))
