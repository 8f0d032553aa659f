# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The project or user that Placement records for the allocation is not the one that Nova has for
the server.
"""

from __future__ import annotations

from ..._common.errors import Reason
from ..facts.consumer import ConsumerView, has_wrong_owner
from ..models.change import build_change
from ..models.finding import Decision, drifted
from ..models.kind import DRIFT, OPT_IN, define_kind
from ..models.snapshot import ACTIONS, EVERY_CONSUMER, UNOWNED
from ..options.policy import Policy

KIND = define_kind(
    __name__, __doc__, DRIFT, OPT_IN, needs=(ACTIONS, UNOWNED), named_needs=(EVERY_CONSUMER,)
)


def prove(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the allocation is recorded for another project or user than the server's.

    Proof: The server is settled on its host, and has an allocation on that host and on no other.
    Placement records another project or user for the allocation than Nova for the server.
    Every full reading asks Placement whether anything is allocated for project
    00000000-0000-0000-0000-000000000000, which stands for an owner that it does not know, and looks
    for these servers. Others with a wrong owner are found among the consumers that are looked up,
    which are all if you name this kind in `orphan_cleanup_kinds`.

    Needs: The cells of the hosts on which the server is or has allocations, and of the hosts that
    its migrations name. The server is read from its own cell.

    Change: The project and user of the allocation become the server's; the amounts stay.
    """
    server, allocation = view.server, view.allocation
    if server is None or not has_wrong_owner(view):
        return None
    # Nova can count quota usage from Placement (nova/quota.py, count_usage_from_placement), so the
    # wrong project is charged.
    reason = Reason(
        "owner_differs",
        f"The allocation of server {view.consumer} is recorded for project {allocation.project} "
        f"and user {allocation.user}, but the server belongs to project {server.project} "
        f"and user {server.user}.",
    )
    return drifted(
        reason,
        *view.server_answers,
        change=build_change(allocation, project=server.project, user=server.user),
    )
