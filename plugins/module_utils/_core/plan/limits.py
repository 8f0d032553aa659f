# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much one run may change."""

from __future__ import annotations

import dataclasses as d
import math
import typing as t
from collections.abc import Mapping

from ..._common.errors import BreakerTripped, Reason
from ..._common.text import format_count
from ..models.snapshot import Shard
from ..options.run import LimitOptions

# A fraction of few consumers says nothing: up to this many changes only max_changes counts.
MAX_SHARE_APPLIES_ABOVE = 20


@d.dataclass(frozen=True)
class Limits:
    """How much one run may change.

    max_changes: how many changes, of all shards together.
    max_share: which fraction (0 to 1) of all consumers that were read, in groups of hosts of those
        that were read there; it does not apply to named hosts or consumers.
    """

    max_changes: int
    max_share: float

    def check_count(
        self, count: int, consumers: int | None, shard: Shard | None, groups: str = ""
    ) -> None:
        """Raise BreakerTripped when one run may not make `count` changes.

        consumers: how many were read; None after a reading of named hosts or consumers.
        shard: the part of the cloud that was read; None for all of it.
        groups: the groups of hosts that were read, for people; empty for all hosts.
        """
        self._check_number(count, shard)
        # A fraction of consumers that were named says nothing.
        if consumers is not None:
            self._check_share(count, consumers, groups)

    def _check_number(self, count: int, shard: Shard | None) -> None:
        allowed = self.max_changes
        needed = count
        scope = ""
        if shard:
            # The first shards may make one change more where max_changes cannot be divided.
            allowed = (self.max_changes + shard.count - shard.number) // shard.count
            needed = max(count - 1, 0) * shard.count + shard.number
            scope = f", of which shard {shard} may make {allowed}"
        if count > allowed:
            planned = f"{count} changes are planned and max_changes is"
            if count == 1:
                planned = "1 change is planned and max_changes is"
            raise BreakerTripped(
                "too_many_changes",
                f"{planned} {self.max_changes}{scope}: "
                "nothing was changed. Review the findings, and if they are right, set max_changes "
                "(orphan_cleanup_max_changes, or host_decommission_max_changes for a host that is "
                f"being decommissioned) to {needed} or more.",
                count,
            )

    def _check_share(self, count: int, consumers: int, groups: str) -> None:
        # A cloud without consumers must not end in a division by zero.
        fraction = count / max(consumers, 1)
        if count > MAX_SHARE_APPLIES_ABOVE and fraction > self.max_share:
            # Rounded up: rounded down the option would still be exceeded.
            needed = math.ceil(fraction * 1000) / 1000
            of_groups = ""
            advice = f"set max_share (orphan_cleanup_max_share) to {needed:g} or more."
            if groups:
                of_groups = f" of {groups}"
                # On a dead host every allocation may really be an orphan.
                advice += (
                    " If these are all allocations of dead hosts, name those hosts in hosts "
                    "(orphan_cleanup_hosts), where this limit does not apply."
                )
            raise BreakerTripped(
                "too_large_share",
                f"{count} of {consumers} consumers{of_groups} would be changed and max_share is "
                f"{self.max_share:g}: nothing was changed. Review the findings, and if they are "
                f"right, {advice}",
                count,
            )


def parse_limits(options: Mapping[str, t.Any]) -> Limits:
    """Return the limits that the options describe. Raises InvalidInput for impossible ones."""
    return Limits(**LimitOptions.parse(options))


def explain_abort(failed: int, max_failures: int) -> Reason | None:
    """Return why nothing more is tried after `failed` failed changes.

    None while more of them are allowed.
    """
    if failed < max_failures:
        return None
    changes = format_count(failed, "change", "changes")
    return Reason(
        "too_many_failures",
        f"It was not tried: {changes} failed before it, and max_failures "
        f"(orphan_cleanup_max_failures) is {max_failures}.",
    )
