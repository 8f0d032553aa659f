# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether what was found is what was seeded: a benchmark of a wrong answer is none. Pure."""

from __future__ import annotations

import dataclasses as d
import re
import typing as t

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_AUDITED = re.compile(
    r"Allocations for consumer UUID (\S+) on Resource Provider (\S+) can be deleted"
)


@d.dataclass(frozen=True)
class Score:
    """Orphaned shares by (consumer, provider).

    Those there are, those that were found, and those wrongly named.
    """

    seeded: int
    found: int
    wrong: int
    complaint: str = ""

    @property
    def perfect(self) -> bool:
        return self.found == self.seeded and not self.wrong and not self.complaint


def of_report(report: Mapping[str, t.Any], truth: Mapping[str, t.Any]) -> Score:
    """Score our own `findings.json`; a right share under a wrong kind counts as not found."""
    shares = [
        (finding["consumer"], provider["uuid"], finding["kind"])
        for finding in report["findings"]
        if finding["change"]
        for provider in finding["providers"]
        if provider["dropped"]
    ]
    gates = report["summary"]["coverage"]["failed_checks"]
    unproven = len(report["undecided"])
    complaint = "; ".join([*gates, *([f"{unproven} undecided"] if unproven else [])])
    return _score(shares, _seeded(truth), complaint)


def of_audit(output: str, truth: Mapping[str, t.Any]) -> Score:
    kinds = {(consumer, provider): kind for consumer, provider, kind in _seeded(truth)}
    return _score(
        [(*share, kinds.get(share, "")) for share in _AUDITED.findall(output)], _seeded(truth), ""
    )


def _seeded(truth: Mapping[str, t.Any]) -> set[tuple[str, str, str]]:
    return {
        (consumer, provider, orphan["kind"])
        for consumer, orphan in truth["orphans"].items()
        for provider in orphan["providers"]
    }


def _score(
    named: Iterable[tuple[str, str, str]], seeded: set[tuple[str, str, str]], complaint: str
) -> Score:
    found = set(named)
    return Score(len(seeded), len(found & seeded), len(found - seeded), complaint)
