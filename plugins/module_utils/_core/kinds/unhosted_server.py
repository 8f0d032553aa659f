# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The server failed to boot or was offloaded, but still has an allocation."""

from __future__ import annotations

from ..._common.errors import Reason
from ..facts.consumer import ConsumerView, format_providers
from ..facts.moves import explain_possible_placement
from ..models.finding import Decision, orphaned, undecided
from ..models.kind import ORPHAN, REMEDIATE, define_kind
from ..models.nova import UNHOSTED_STATUSES, Server
from ..models.snapshot import ACTIONS, LAST_ACTIONS
from ..options.policy import Policy

KIND = define_kind(
    __name__, __doc__, ORPHAN, REMEDIATE, needs=(ACTIONS, LAST_ACTIONS), was="hostless_server"
)


def prove(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the server has no host while its allocation remains.

    Proof: The server is in ERROR or SHELVED_OFFLOADED and has no host, no node and no task. The
    listing of compute nodes does not show it, and no migration of it is under way. Every provider
    on which it has an allocation belongs to a compute node of this Nova, or has the trait
    `COMPUTE_NODE` or `OWNER_NOVA`. The newest action that could give it a host and that a host
    began has finished, and so has every action since, so no host can still take the server up. No
    host takes part in a reset to ERROR. If an action since failed before a host began it,
    nova-compute is up on each host on which the server has an allocation, so the action is not in
    its queue. A server with a fault and without any action was given up before it was handed to a
    host, as when the quota was exceeded meanwhile (LP 1806064). A shelve that its host has finished
    shows that everything requested before has finished too, unless the server's state was reset and
    it has an allocation on another host. A server in ERROR was never launched, or it was shelved or
    its unshelve failed, with neither a rebuild nor an evacuation since. A server in any other
    status with neither a host nor a task is undecided: delete it, or set it to ERROR, and its
    allocation can be proven to be an orphan.

    Needs: The cells of the hosts on which the server has allocations, and of the hosts that its
    migrations name. The server and its actions are read from its own cell.

    Change: All its allocations are removed. Nova allocates again when the server is
    unshelved, or is rebuilt after it once ran.
    """
    server, subject = view.server, view.subject
    if view.migration or server is None or server.host:
        return None
    if server.status not in UNHOSTED_STATUSES:
        return _decide_lost_host(server, view)
    # A server that has a node may be there.
    if server.node:
        return None
    # On any other provider the allocation may be another service's.
    if not view.trees or not view.trees.keys() <= {*view.index.nodes, *view.index.nova_roots}:
        return None
    evidence = (*view.server_answers, *subject.last_actions)
    doubt = view.contradiction or explain_possible_placement(view)
    was_read = server.task_known and server.host_known and subject.migrations.value is not None
    if not doubt and not was_read:
        doubt = Reason(
            "server_fields_missing", "Nova's answers leave out its task, its host or its migrations"
        )
    if doubt:
        reason = doubt.reword(
            f"Server {server.uuid} is {server.status} and seems to have no host, but {doubt}."
        )
        return undecided(reason, *evidence)
    reason = Reason(
        "server_without_host",
        f"Server {server.uuid} is {server.status} and has no host, and every action that could "
        "give it one has finished.",
    )
    return orphaned(reason, *evidence)


def _decide_lost_host(server: Server, view: ConsumerView) -> Decision | None:
    """Decide on a server without a host in a status that only a server on a host should have."""
    if not server.host_known or not server.task_known:
        return None
    reason = Reason(
        "lost_host",
        f"Server {server.uuid} is {server.status} with neither a task nor a host, and has an "
        f"allocation on {format_providers(view)}. Nova can neither start nor move it. If no "
        "host runs its guest any more, delete it, or set it to ERROR, and its allocation can be "
        "proven to be an orphan.",
    )
    return undecided(reason, *view.server_answers)
