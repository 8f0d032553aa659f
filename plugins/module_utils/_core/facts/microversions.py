# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which proofs a cloud cannot give because its services are older than they need. Pure."""

from __future__ import annotations

import dataclasses as d

from ..._common.errors import Reason
from ..models.snapshot import Cloud


@d.dataclass(frozen=True)
class Requirement:
    """What a microversion is needed for.

    Without it no finding of `kinds` is proven; None stands for any kind.
    """

    service: str
    since: tuple[int, int]
    proof: str
    kinds: tuple[str, ...] | None = None

    def explain(self, offered: tuple[int, int]) -> Reason:
        """Return the sentence that says what is undecided while the service offers only this."""
        undecided = ", ".join(self.kinds) if self.kinds is not None else "everything"
        return Reason(
            "microversion_too_old",
            f"{self.service} offers microversions up to {format_version(offered)}, "
            f"but {format_version(self.since)} is needed to see {self.proof}: "
            f"{undecided} is undecided.",
        )


REQUIREMENTS = (
    Requirement("Nova", (2, 59), "which consumers are migrations"),
    Requirement("Nova", (2, 69), "whether every cell answers"),
    Requirement(
        "Placement",
        (1, 28),
        "the generations of consumers, without which no allocation can be changed safely",
    ),
    # Before consumer types, a consumer of another service looks like a server unknown to Nova.
    Requirement(
        "Placement", (1, 38), "which consumers belong to another service", ("unknown_consumer",)
    ),
)


def list_unmet_requirements(cloud: Cloud) -> tuple[Reason, ...]:
    """Return a sentence for each proof that `cloud` cannot give."""
    sentences = [requirement.explain(offered) for requirement, offered in _list_unmet(cloud)]
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
    return tuple(one.explain(offered) for one, offered in _list_unmet(cloud) if one.kinds is None)


def explain_unprovable(kind: str, cloud: Cloud) -> Reason | None:
    """Return why no finding of `kind` can be proven, or None if one can."""
    for requirement, offered in _list_unmet(cloud):
        if requirement.kinds is None or kind in requirement.kinds:
            return requirement.explain(offered)
    return None


def _list_unmet(cloud: Cloud) -> list[tuple[Requirement, tuple[int, int]]]:
    """Return the unmet requirements, each with the newest microversion that its service offers."""
    offered_by_service = {"Nova": cloud.compute_version, "Placement": cloud.placement_version}
    unmet = []
    for requirement in REQUIREMENTS:
        offered = offered_by_service[requirement.service]
        if offered < requirement.since:
            unmet.append((requirement, offered))
    return unmet


def format_version(version: tuple[int, int]) -> str:
    """Return a microversion as the APIs write it, such as `2.69`."""
    return f"{version[0]}.{version[1]}"
