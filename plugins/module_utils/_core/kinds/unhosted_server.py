# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The server failed to boot or was offloaded, but still has an allocation."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..._common.errors import Reason
from ..facts.consumer import ConsumerView, format_providers
from ..facts.services import COMPUTE
from ..models.finding import Decision, orphaned, undecided
from ..models.kind import ORPHAN, REMEDIATE, define_kind
from ..models.nova import (
    CREATE_ACTION,
    PLACING_ACTIONS,
    RESET_ACTION,
    UNHOSTED_STATUSES,
    UNSHELVE_ACTION,
    Action,
    Server,
)
from ..models.snapshot import ACTIONS, LAST_ACTIONS
from ..options.policy import Policy

_LAST_HOST_UNKNOWN = Reason(
    "last_host_unknown", "the action that gave it its last host is not known"
)

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
    its queue. A shelve that its host has finished shows that everything requested before has
    finished too, unless the server's state was reset and it has an allocation on another host. A
    server in ERROR was never launched, or it was shelved or its unshelve failed, with neither a
    rebuild nor an evacuation since. A server in any other status with neither a host nor a task is
    undecided: delete it, or set it to ERROR, and its allocation can be proven to be an orphan.

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
    doubt = view.contradiction or _explain_possible_placement(view)
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


def _explain_possible_placement(view: ConsumerView) -> Reason | None:
    """Return which action may still give a host to a server without one; None if none can."""
    actions: list[Action] = []
    for answer in view.subject.last_actions:
        action = answer.value
        if action is None or not (action.is_finished or _is_reset_to_error(action, view)):
            return Reason("last_actions_unfinished", "its last actions may not have finished")
        actions.append(action)
    allocated_hosts = set(view.index.list_hosts_of(view.allocation.resources))
    shelving = next((action for action in actions if action.shelving_hosts), None)
    if shelving is None:
        doubt = _explain_possible_unfinished_placement(actions, allocated_hosts)
        newest_actions = actions
    else:
        position = actions.index(shelving)
        placed = bool(_list_placing_actions(actions[position:]))
        only_on_shelving_host = allocated_hosts <= shelving.shelving_hosts
        doubt = _explain_possible_queued_action(view, placed, only_on_shelving_host)
        newest_actions = actions[:position]
    return (
        doubt
        or _explain_lost_guest(view, newest_actions)
        or _explain_possible_handover(view, newest_actions, allocated_hosts)
    )


def _is_reset_to_error(action: Action, view: ConsumerView) -> bool:
    """Return whether nova-api alone did the action, without events (_reset_state).

    A reset leaves the server in ERROR or ACTIVE. It does not end the actions before it.
    """
    in_error = view.server is not None and view.server.status == "ERROR"
    return in_error and action.action == RESET_ACTION


def _list_placing_actions(actions: Sequence[Action]) -> list[Action]:
    """Return those of the actions that can give a host to a server."""
    return [action for action in actions if action.action in PLACING_ACTIONS]


def _explain_possible_unfinished_placement(
    actions: Sequence[Action], allocated_hosts: Collection[str | None]
) -> Reason | None:
    """Return which action may still give a host to a server that was not shelved, or None.

    actions: all finished, the newest first.
    """
    placing = _list_placing_actions(actions)
    if not placing:
        return _LAST_HOST_UNKNOWN
    # The reading ends at the newest one that a host began. Nothing came before a `create`.
    oldest = placing[-1]
    if not oldest.placing_hosts and oldest.action != CREATE_ACTION:
        return _LAST_HOST_UNKNOWN
    # Conductor tries a build on a second host when the first has ended its part. When that host
    # starts, Nova sets the server to ERROR, and then the host takes the build from its queue
    # (nova/compute/manager.py, _error_out_instances_whose_build_was_interrupted).
    if oldest.placing_hosts and not oldest.placing_hosts.issuperset(allocated_hosts):
        return Reason(
            "build_may_be_in_progress",
            f"a host on which it has an allocation may still process the action {oldest.action}",
        )
    return None


def _explain_possible_handover(
    view: ConsumerView, newest_actions: Sequence[Action], allocated_hosts: Collection[str | None]
) -> Reason | None:
    """Return which host may have an action in its queue that failed before a host began it.

    Conductor records the failure also when the message broker took the request and conductor never
    learned it. A host that is up has processed its queue.

    newest_actions: since a finished shelve, if there was one.
    """
    placing = _list_placing_actions(newest_actions)
    if not placing or placing[0].placing_hosts:
        return None
    silent = [
        str(host) for host in allocated_hosts if view.index.list_compute_states(host) != {"up"}
    ]
    if not silent:
        return None
    return Reason(
        "action_may_be_queued",
        f"{COMPUTE} on {', '.join(sorted(silent))} is not up and may have the action "
        f"{placing[0].action} in its queue",
    )


def _explain_lost_guest(view: ConsumerView, newest_actions: Sequence[Action]) -> Reason | None:
    """Return why the guest of a server in ERROR may be where Nova no longer has it, or None.

    Nova takes the host from a server whose guest runs only when it shelves the server. A build that
    failed never had a guest that ran (nova/compute/manager.py, _update_instance_after_spawn), and
    an unshelve that failed has destroyed it (_unshelve_instance).

    newest_actions: since a finished shelve, if there was one.
    """
    server = view.server
    if server is None or server.status != "ERROR" or not server.launched_at:
        return None
    for placing in _list_placing_actions(newest_actions):
        failed_to_unshelve = placing.action == UNSHELVE_ACTION and not placing.unshelving_hosts
        if not failed_to_unshelve:
            return Reason(
                "guest_was_launched",
                f"its guest was launched at {server.launched_at}, and nothing shows that it was "
                "shelved: its host may have been removed from the database by hand",
            )
    return None


def _explain_possible_queued_action(
    view: ConsumerView, placed: bool, only_on_shelving_host: bool
) -> Reason | None:
    """Return why an action from before a finished shelve may still give the server a host.

    Only a host that has the server shelves it, and the API takes no other action while one has a
    task (nova/compute/api.py, check_instance_state): so everything requested before has finished.
    The exceptions are a reset of the state, and an error of conductor after it has handed over
    (nova/conductor/manager.py, unshelve_instance). Both hide the task of an action that waits in
    the queue of another host. The server has an allocation on that other host. So if the server has
    allocations only on the host that shelved it, no action waits: a host takes its messages in
    their order.

    placed: whether the newest action that could give it a host was listed, and has finished.
    """
    if only_on_shelving_host:
        return None
    if not placed:
        return _LAST_HOST_UNKNOWN
    actions = view.subject.actions.value
    if actions is None or any(action.action == RESET_ACTION for action in actions):
        return Reason(
            "state_may_have_been_reset",
            "its state may have been reset, and an action from before that may still wait for a "
            "host on which it has an allocation",
        )
    return None
