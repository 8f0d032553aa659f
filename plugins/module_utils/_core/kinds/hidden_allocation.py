# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""More of a provider is in use than the allocations that Placement lists there.

Placement lists an allocation only together with the record of its consumer. A database that was
upgraded from before Rocky, or repaired by hand, may lack that record (`placement-status upgrade
check` calls it an incomplete consumer). The allocation still counts for the scheduler and keeps the
provider from being deleted, but no listing and no usage of a project has it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..._common.errors import Reason
from ..expected.corrections import format_amounts
from ..facts.index import SnapshotIndex
from ..models.finding import Finding, report
from ..models.kind import CONDITION, REPORT, define_kind
from ..models.snapshot import TOTALS
from ..options.policy import Policy

KIND = define_kind(__name__, __doc__, CONDITION, REPORT, needs=(TOTALS,))


def check(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the providers of which more is in use than is listed.

    Proof: The usages of the provider are more than the sum of its listed allocations, and nothing
    was written there between the two answers.

    Needs: Nothing more, because the finding is only reported.

    Change: None. `placement-manage db online_data_migrations` adds the missing records of
    consumers, with a project of zeros. The next run sees the allocations and judges them, and
    `wrong_owner` gives those of live servers to their project again.
    """
    for uuid, answer in index.snapshot.surroundings.totals.items():
        hidden = answer.value.hidden if answer.value else {}
        if hidden:
            reason = Reason(
                "in_use_but_not_listed",
                f"On {index.get_name(uuid)}, more is in use than Placement lists: "
                f"{format_amounts(hidden)}. Run `placement-manage db online_data_migrations`, "
                "which adds the missing records of consumers, and detect again.",
            )
            yield report(KIND, uuid, reason, answer, providers=(uuid,))
