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
class Need:
    """What a microversion is needed for; without it no finding of `kinds` (None: of any kind) is proven."""

    service: str
    since: tuple[int, int]
    proof: str
    kinds: tuple[str, ...] | None = None

    def told(self, offered: tuple[int, int]) -> str:
        undecided = "everything" if self.kinds is None else ", ".join(self.kinds)
        return (
            f"{self.service} offers microversions up to {dotted(offered)}, and {dotted(self.since)} is needed to see "
            f"{self.proof}: {undecided} is undecided."
        )


NEEDS = (
    Need("Nova", (2, 59), "which consumers are migrations"),
    Need("Nova", (2, 69), "whether every cell answers"),
    Need("Placement", (1, 28), "the generations of consumers, without which no claim can be changed safely"),
    Need("Placement", (1, 38), "which consumers are of another service", ("forgotten_consumer",)),
)


def lacking(cloud: Cloud) -> tuple[str, ...]:
    """Return a sentence for each proof that `cloud` cannot give."""
    return tuple(need.told(offered) for need, offered in _lacked(cloud))


def without_proof(cloud: Cloud) -> tuple[str, ...]:
    """Return those sentences that mean that nothing may be changed at all."""
    return tuple(need.told(offered) for need, offered in _lacked(cloud) if need.kinds is None)


def unprovable(kind: str, cloud: Cloud) -> str | None:
    """Say why no finding of `kind` can be proven; None if it can."""
    return next((need.told(offered) for need, offered in _lacked(cloud) if need.kinds is None or kind in need.kinds), None)


def _lacked(cloud: Cloud) -> list[tuple[Need, tuple[int, int]]]:
    offered = {"Nova": cloud.compute_version, "Placement": cloud.placement_version}
    return [(need, offered[need.service]) for need in NEEDS if offered[need.service] < need.since]


def dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
