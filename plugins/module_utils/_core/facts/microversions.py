# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which proofs a cloud cannot give because its services are older than they need. Pure."""

from __future__ import annotations

from ..._common.errors import Reason
from ..models.kind import Requirement
from ..models.kinds import KINDS
from ..models.snapshot import Cloud

# What nothing is proven without.
_OF_EVERY_KIND = (
    Requirement("Nova", (2, 59), "which consumers are migrations"),
    Requirement("Nova", (2, 69), "whether every cell answers"),
    Requirement(
        "Placement",
        (1, 28),
        "the generations of consumers, without which no allocation can be changed safely",
    ),
)
# Each with the kind that is not proven without it; None stands for any kind.
REQUIREMENTS: tuple[tuple[Requirement, str | None], ...] = (
    *((requirement, None) for requirement in _OF_EVERY_KIND),
    *((kind.version, kind.name) for kind in KINDS if kind.version is not None),
)


def list_unmet_requirements(cloud: Cloud) -> tuple[Reason, ...]:
    """Return a sentence for each proof that `cloud` cannot give."""
    sentences = [sentence for _kind, sentence in _list_unmet(cloud)]
    if not cloud.tells_time:
        sentences.append(
            Reason(
                "placement_sends_no_time",
                f"Placement at {cloud.placement_endpoint} sends neither a Date nor its own time "
                "(Last-Modified of GET /), so no age is known and nothing is old enough to be "
                "changed: look for a proxy that removes these headers.",
            )
        )
    return tuple(sentences)


def list_blocking_requirements(cloud: Cloud) -> tuple[Reason, ...]:
    """Return those sentences that mean that nothing may be changed at all."""
    return tuple(sentence for kind, sentence in _list_unmet(cloud) if kind is None)


def explain_unprovable(kind: str, cloud: Cloud) -> Reason | None:
    """Return why no finding of `kind` can be proven, or None if one can."""
    for unproven, sentence in _list_unmet(cloud):
        if unproven in (None, kind):
            return sentence
    return None


def _list_unmet(cloud: Cloud) -> list[tuple[str | None, Reason]]:
    """Return the kinds of the unmet requirements, each with what is undecided, as a sentence."""
    offered_by_service = {"Nova": cloud.compute_version, "Placement": cloud.placement_version}
    unmet: list[tuple[str | None, Reason]] = []
    for requirement, kind in REQUIREMENTS:
        offered = offered_by_service[requirement.service]
        if offered < requirement.since:
            sentence = Reason(
                "microversion_too_old",
                f"{requirement.service} offers microversions up to {format_version(offered)}, "
                f"but {format_version(requirement.since)} is needed to see {requirement.proof}: "
                f"{kind or 'everything'} is undecided.",
            )
            unmet.append((kind, sentence))
    return unmet


def format_version(version: tuple[int, int]) -> str:
    """Return a microversion as the APIs write it, such as `2.69`."""
    return f"{version[0]}.{version[1]}"
