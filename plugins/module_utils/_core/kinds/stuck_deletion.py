# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A server whose deletion has failed, or began very long ago and has not ended."""

from __future__ import annotations

from collections.abc import Iterator

from ..._common.errors import Reason
from ..._common.text import make_printable
from ..._common.times import format_duration, seconds_between
from ..facts.index import SnapshotIndex
from ..facts.services import COMPUTE
from ..models.finding import UNDECIDED, Finding, report
from ..models.kind import CONDITION, REPORT, define_kind
from ..models.nova import Service
from ..models.other_services import DeletedServer, Deletion
from ..models.snapshot import DELETIONS, FAILED_DELETIONS, Answer
from ..options.policy import Policy

KIND = define_kind(
    __name__, __doc__, CONDITION, REPORT, needs=(DELETIONS,), named_needs=(FAILED_DELETIONS,)
)

DELETING, SOFT_DELETING = "deleting", "soft-deleting"

_MAX_MESSAGE = 200


def check(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the servers whose deletion has begun long ago, and has failed or never ended.

    Proof: A direct look-up shows that the server is still there: with the task `deleting` or
    `soft-deleting`, recorded as deleted without being so, or in ERROR after a delete action of
    which a part has failed. The delete began at least `orphan_cleanup_stuck_min_age` ago. Detection
    looks at servers in ERROR if you name this kind in `orphan_cleanup_kinds`, and for the hosts and
    consumers that you name.

    Needs: The cell of the server. Servers of a cell that does not answer are not found.

    Change: None. The finding says what blocks the deletion and the next safe step.
    """
    deletions = index.snapshot.surroundings.deletions
    for uuid, lookup in sorted(deletions.lookups.items()):
        row = lookup.value
        if row is None:
            # A 404 is the end of the deletion.
            if lookup.status != 404:
                yield _build_undecided(uuid, lookup)
            continue
        action = deletions.actions.get(uuid)
        deletion = action.value if action is not None else None
        if row.server.host in index.unjudged_hosts or not _is_stuck(row, deletion):
            continue
        recorded = deletion.action.start_time if deletion and deletion.action else None
        age = seconds_between(recorded or row.server.updated, lookup.at)
        if age is None or age < policy.stuck_min_age:
            continue
        step = _explain_next_step(row, index)
        reason = step.reword(f"{_describe_state(row, age)} {step}")
        answers = (lookup, action) if action else (lookup,)
        yield report(KIND, uuid, reason, *answers, server=row.server)


def _build_undecided(uuid: str, lookup: Answer[DeletedServer]) -> Finding:
    reason = Reason(
        "deleted_server_unread",
        f"Nova listed server {uuid} as being deleted, and answered {lookup.status} when asked for "
        "it directly.",
    )
    return Finding("stuck_deletion", UNDECIDED, uuid, reason, evidence=(lookup,))


def _is_stuck(row: DeletedServer, deletion: Deletion | None) -> bool:
    """Return whether the server should have been deleted, and nothing more will happen to it."""
    if row.vm_state == "deleted" or row.server.task_state in (DELETING, SOFT_DELETING):
        return True
    if row.server.status != "ERROR" or row.server.task_state is not None:
        return False
    # The error is that of the deletion only if nothing was done to the server after it.
    if deletion is None or deletion.action is None or not deletion.is_newest:
        return False
    return any(event.result == "Error" for event in deletion.action.events)


def _describe_state(row: DeletedServer, age: int) -> str:
    server, since = row.server, f"{format_duration(age)} ago"
    where = f" on {make_printable(server.host, _MAX_MESSAGE)}" if server.host else ""
    if row.vm_state == "deleted":
        course = f"began {since} and ended half-way"
    else:
        course = f"began {since} and has not ended" if server.task_state else f"failed {since}"
    state = f"The deletion of server {server.uuid}{where} {course}."
    if row.fault:
        state += f" Its last error: {make_printable(row.fault, _MAX_MESSAGE).rstrip('.')}."
    return state


def _explain_next_step(row: DeletedServer, index: SnapshotIndex) -> Reason:
    """Return what blocks the deletion, and what to do first; nothing that loses a live guest."""
    server = row.server
    delete = f"openstack server delete {server.uuid}"
    if row.locked:
        delete += ", as an administrator because the server is locked"
    if not server.host:
        return Reason(
            "deletion_without_host",
            f"It has no host, so that Nova deletes it from its databases alone: {delete}. Look for "
            "volumes and ports of it afterwards.",
        )
    host = make_printable(server.host, _MAX_MESSAGE)
    service = next(iter(index.list_compute_services(server.host)[0]), None)
    if service is None:
        return Reason(
            "deletion_without_service",
            f"Nova has no {COMPUTE} of {host}. Make sure that the machine is off, because a guest "
            f"may still run there, and then: {delete}. Nova deletes it from its databases alone.",
        )
    if service.state != "up" or service.forced_down:
        return _explain_down_host(row, host, service, delete)
    if row.vm_state == "deleted" or server.task_state == DELETING:
        return Reason(
            "deletion_to_begin_again",
            f"{COMPUTE} of {host} is up, and Nova ignores another delete. Restart {COMPUTE} there: "
            "it begins the deletion again when it starts. If that fails too, fix what it logs, "
            f"and then: openstack server set --state error {server.uuid}; {delete}.",
        )
    if server.task_state == SOFT_DELETING:
        return Reason(
            "deletion_task_to_end",
            f"{COMPUTE} of {host} is up, and Nova ignores another delete. End the task, which "
            f"changes nothing of the guest: openstack server set --state active {server.uuid}. "
            f"Then: {delete}.",
        )
    return Reason(
        "deletion_cause_to_mend",
        f"{COMPUTE} of {host} is up. Mend the cause first: openstack server event list "
        f"{server.uuid} names the request, by which {COMPUTE} logs it; often it is a volume or a "
        f"port that Cinder or Neutron refuses to release. Then: {delete}.",
    )


def _explain_down_host(row: DeletedServer, host: str, service: Service, delete: str) -> Reason:
    is_resumed = row.vm_state == "deleted" or row.server.task_state == DELETING
    down = "forced down" if service.forced_down else "down"
    resumed = "It ends the deletion by itself when it starts" if is_resumed else f"Then: {delete}"
    return Reason(
        "deletion_on_down_host",
        f"{COMPUTE} of {host} is {down}. If the host can come back, start {COMPUTE} there. "
        f"{resumed}. If it will not come back, make sure that the machine is off, because the "
        f"guest may still run and write to its volumes, and then: {delete}. While the service is "
        "down, Nova deletes the server from its databases alone.",
    )
