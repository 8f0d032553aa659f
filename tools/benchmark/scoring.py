"""Compares a result with the seeded orphans, because only a right result counts. Pure."""

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
    """Orphaned allocations, counted by (consumer, provider).

    seeded: those in the cloud.
    found: those that were found under the right kind.
    wrong: the others that were reported as orphaned.
    """

    seeded: int
    found: int
    wrong: int
    complaint: str = ""

    @property
    def perfect(self) -> bool:
        return self.found == self.seeded and not self.wrong and not self.complaint


def score_report(report: Mapping[str, t.Any], truth: Mapping[str, t.Any]) -> Score:
    """Score our own `findings.json`; an allocation under a wrong kind counts as not found.

    An allocation is reported if the proposed change would free it.
    """
    reported = []
    for finding in report["findings"]:
        change = finding["change"]
        if change:
            # The deletion of a provider names no allocations.
            freed = change.get("frees") or [provider["uuid"] for provider in finding["providers"]]
            reported += [(finding["consumer"], provider, finding["kind"]) for provider in freed]
    complaints = list(report["summary"]["coverage"]["failed_checks"])
    for entry in report["undecided"]:
        if entry["consumer"] not in truth["partners"]:
            complaints.append(f"{entry['kind']} of {entry['consumer']} is undecided")
    return _score(reported, _read_seeded(truth), "; ".join(complaints))


def score_outcomes(remediation: Mapping[str, t.Any], truth: Mapping[str, t.Any]) -> Score:
    """Score our own `remediation.json`: what was freed, or would be in check mode."""
    freed = []
    for outcome in remediation["outcomes"]:
        if outcome["outcome"] not in ("skipped", "failed"):
            consumer, kind = outcome["consumer"], outcome["kind"]
            freed += [(consumer, provider, kind) for provider in outcome["frees"]]
    return _score(freed, _read_seeded(truth), "")


def add_scores(one: Score, other: Score) -> Score:
    """Return the worse of two scores of the same run."""
    complaints = [score.complaint for score in (one, other) if score.complaint]
    return Score(
        one.seeded, min(one.found, other.found), max(one.wrong, other.wrong), "; ".join(complaints)
    )


def find_audited(output: str) -> list[tuple[str, str]]:
    """Return the (consumer, provider) that `nova-manage placement audit --verbose` would delete."""
    return _AUDITED.findall(output)


def score_audit(output: str, truth: Mapping[str, t.Any]) -> Score:
    kinds = {(consumer, provider): kind for consumer, provider, kind in _read_seeded(truth)}
    return _score(
        [(*pair, kinds.get(pair, "")) for pair in find_audited(output)], _read_seeded(truth), ""
    )


def _read_seeded(truth: Mapping[str, t.Any]) -> set[tuple[str, str, str]]:
    return {
        (consumer, provider, orphan["kind"])
        for consumer, orphan in truth["orphans"].items()
        for provider in orphan["providers"]
    }


def _score(
    reported: Iterable[tuple[str, str, str]], seeded: set[tuple[str, str, str]], complaint: str
) -> Score:
    found = set(reported)
    return Score(len(seeded), len(found & seeded), len(found - seeded), complaint)
