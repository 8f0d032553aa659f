# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Which proofs a cloud cannot give because its services are older than they need. Pure."""

from __future__ import annotations

import dataclasses as d
import typing as t

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Cloud


@d.dataclass(frozen=True)
class Requirement:
    """What a microversion is needed for; without it no finding of `kinds` (None: of any kind) is proven."""

    service: str
    since: tuple[int, int]
    proof: str
    kinds: tuple[str, ...] | None = None

    def explain(self, offered: tuple[int, int]) -> str:
        undecided = "everything" if self.kinds is None else ", ".join(self.kinds)
        return (
            f"{self.service} offers microversions up to {format_version(offered)}, and {format_version(self.since)} is needed to see "
            f"{self.proof}: {undecided} is undecided."
        )


REQUIREMENTS = (
    Requirement("Nova", (2, 59), "which consumers are migrations"),
    Requirement("Nova", (2, 69), "whether every cell answers"),
    Requirement(
        "Placement",
        (1, 28),
        "the generations of consumers, without which no claim can be changed safely",
    ),
    Requirement(
        "Placement", (1, 38), "which consumers are of another service", ("unknown_consumer",)
    ),
)


def list_unmet_requirements(cloud: Cloud) -> tuple[str, ...]:
    """Return a sentence for each proof that `cloud` cannot give."""
    return tuple(need.explain(offered) for need, offered in _find_unmet(cloud))


def list_blocking_requirements(cloud: Cloud) -> tuple[str, ...]:
    """Return those sentences that mean that nothing may be changed at all."""
    return tuple(
        need.explain(offered) for need, offered in _find_unmet(cloud) if need.kinds is None
    )


def explain_unprovable(kind: str, cloud: Cloud) -> str | None:
    """Say why no finding of `kind` can be proven; None if it can."""
    return next(
        (
            need.explain(offered)
            for need, offered in _find_unmet(cloud)
            if need.kinds is None or kind in need.kinds
        ),
        None,
    )


def _find_unmet(cloud: Cloud) -> list[tuple[Requirement, tuple[int, int]]]:
    offered = {"Nova": cloud.compute_version, "Placement": cloud.placement_version}
    return [
        (need, offered[need.service]) for need in REQUIREMENTS if offered[need.service] < need.since
    ]


def format_version(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
