# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A server that hangs in its build, its deletion or another task, or after a resize."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..._common.errors import Reason
from ..._common.text import make_printable, summarize_names
from ..._common.times import format_duration, seconds_between
from ..facts.index import SnapshotIndex, list_migrations_in_scope
from ..facts.services import COMPUTE
from ..models.finding import UNDECIDED, Finding, report
from ..models.kind import CONDITION, REPORT, define_kind
from ..models.nova import DELETING_TASKS, UNCONFIRMABLE_STATUSES, Migration, Server, Service
from ..models.other_services import DeletedServer, Deletion
from ..models.snapshot import DELETIONS, FAILED_DELETIONS, Answer
from ..options.policy import Policy

KIND = define_kind(
    __name__,
    __doc__,
    CONDITION,
    REPORT,
    needs=(DELETIONS,),
    named_needs=(FAILED_DELETIONS,),
    was="stuck_deletion",
    renamed_in="3.0.0",
)

DELETING, SOFT_DELETING = DELETING_TASKS
# Tasks with which the guest may be on another host than Nova's.
_MOVE_TASKS = frozenset(
    {"migrating", "resize_prep", "resize_migrating", "resize_migrated", "resize_finish"}
)

_MAX_MESSAGE = 200


def check(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the servers that nothing but an operator will bring any further.

    Proof: One of these has lasted for at least `orphan_cleanup_stuck_min_age`. The server is in
    BUILD. Or it has a task and no migration under way, which would be a `stuck_migration`. Or it is
    looked up and rests without a task, and its resize is neither confirmed nor reverted: its state
    was reset, and Nova refuses both. Or a direct lookup shows that its deletion has not ended: it
    has the task `deleting` or `soft-deleting`, or is recorded as deleted without being so, or is in
    ERROR after a delete action of which a part has failed. Tasks that change no status, such as
    `powering-off`, are searched for on hosts that are down and in what is looked up, and everywhere
    if you name this kind in `orphan_cleanup_kinds`. Deletions that failed are searched for if you
    name this kind, and for the hosts and consumers that you name.

    Needs: The cell of the server. Servers of a cell that does not answer are not found.

    Change: None. The finding says what blocks the server and the next safe step.
    """
    yield from _check_deletions(index, policy)
    for server, answer in _list_busy(index):
        # Nova shows the present time as that of the change of a server that was never changed.
        since = server.created if server.status == "BUILD" else server.updated
        age = seconds_between(since, answer.at)
        if age is not None and age >= policy.stuck_min_age:
            step = _explain_task(server, index)
            reason = step.reword(f"{_describe_task(server, age)} {step}")
            yield report(KIND, server.uuid, reason, answer, server=server)
    for migration in list_migrations_in_scope(index):
        answer = index.get_server_lookup(migration.server)
        age = _find_age_of_reset(migration, answer)
        if answer.value is not None and age is not None and age >= policy.stuck_min_age:
            reason = _explain_reset(answer.value, migration, age, index)
            answers, about = (index.snapshot.migrations, answer), {"server": answer.value}
            yield report(KIND, migration.uuid, reason, *answers, migration=migration, **about)


def _list_busy(index: SnapshotIndex) -> Iterator[tuple[Server, Answer[Server]]]:
    """Yield the servers in BUILD or with a task, of which no move and no deletion is under way."""
    candidates = {uuid: index.get_server_lookup(uuid) for uuid in index.snapshot.candidates}
    # The listings are newer than the lookups.
    answers = {**candidates, **index.snapshot.surroundings.deletions.busy}
    for uuid, answer in sorted(answers.items()):
        server = answer.value
        if server is None or server.host in index.unjudged_hosts:
            continue
        is_busy = server.status == "BUILD" or server.task_state is not None
        moves = (move for move in _list_moves(uuid, index) if move.status != "finished")
        if is_busy and server.task_state not in DELETING_TASKS and all(one.ended for one in moves):
            yield server, answer


def _list_moves(server: str, index: SnapshotIndex) -> list[Migration]:
    """Return the listed migrations of a server, oldest first."""
    moves = index.get_listed_migrations(server).value or ()
    return sorted(moves, key=lambda move: move.created_at or "")


def _describe_task(server: Server, age: int) -> str:
    where = f" on {make_printable(server.host, _MAX_MESSAGE)}" if server.host else ""
    task = f"the task {make_printable(server.task_state or 'none', _MAX_MESSAGE)}"
    state = f"has {task} and has not changed for {format_duration(age)}."
    if server.status == "BUILD":
        state = f"is in BUILD with {task}, {format_duration(age)} after it was requested."
    return f"Server {server.uuid}{where} {state}"


def _explain_task(server: Server, index: SnapshotIndex) -> Reason:
    """Return what blocks a server with a task, and what to do first."""
    is_build = server.status == "BUILD"
    ends = "puts the server into ERROR. Then" if is_build else "ends most tasks. If it stays"
    end = (
        "end the task (Nova then takes the server for ACTIVE, and stops one that is suspended): "
        f"openstack server set --state active {server.uuid}."
    )
    if is_build:
        end = f"delete it, and create it again: openstack server delete {server.uuid}."
    if not server.host:
        return _explain_lost_request(server, end)
    if server.task_state in _MOVE_TASKS:
        return _explain_lost_move(server, _list_moves(server.uuid, index), end)
    host = make_printable(server.host, _MAX_MESSAGE)
    service = next(iter(index.list_compute_services(server.host)[0]), None)
    if service is None:
        return Reason(
            "task_without_service",
            f"Nova has no {COMPUTE} of {host}, and nothing else ends the task. Look whether its "
            f"guest runs there (virsh domstate {server.uuid}), then {end}",
        )
    state, reason_id = "up", "task_on_live_host"
    way = f"If nothing works on the server any more, restart it, which {ends}, {end}"
    if service.state != "up" or service.forced_down:
        state, reason_id = "down", "task_on_down_host"
        way = f"If the host can come back, start it, which {ends}, or if the machine is off, {end}"
    # A start would destroy a server on the source of its own evacuation.
    lookups = index.snapshot.surroundings.evacuated.values()
    if any(lookup.value is not None and lookup.value.host == server.host for lookup in lookups):
        reason_id = "task_beside_evacuation"
        way = f"Do not start it, because of the finding unfinished_evacuation there, but {end}"
    return Reason(
        reason_id,
        f"{COMPUTE} of {host} is {state}; openstack server event list {server.uuid} names the "
        f"request, by which it logs. {way}",
    )


def _explain_lost_request(server: Server, end: str) -> Reason:
    """Return how to go on with a server that no host has, so that nothing works on it."""
    if server.status == "BUILD":
        return Reason("build_without_host", f"It has no host, and nothing goes on with it: {end}")
    return Reason(
        "task_without_host",
        f"It has no host. If openstack server event list {server.uuid} shows that no host has "
        "begun, the request is lost. In the database of its cell: UPDATE instances SET task_state "
        f"= NULL WHERE uuid = '{server.uuid}'. Then request it again.",
    )


def _explain_lost_move(server: Server, moves: Sequence[Migration], end: str) -> Reason:
    """Return where the guest may be, and how the task ends where Nova lists no move under way."""
    hosts, newest = {server.host}, "it has no migration"
    if moves:
        hosts |= {moves[-1].source_compute, moves[-1].dest_compute}
        newest = f"its newest migration ({moves[-1].uuid}) is {moves[-1].status}"
    names = summarize_names(sorted(map(make_printable, filter(None, hosts))))
    return Reason(
        "task_without_migration",
        f"Nova lists no move of it under way: {newest}. Its guest may be on another host than "
        f"Nova's record says: look on {names} (virsh domstate {server.uuid}). If it is on "
        f"{make_printable(server.host or '', _MAX_MESSAGE)}, {end} If it is elsewhere, leave the "
        "task, because Nova could start a second guest: first correct host and node of the server "
        "in the table instances of its cell.",
    )


def _find_age_of_reset(migration: Migration, answer: Answer[Server]) -> int | None:
    """Return since when a resize is finished and its server does not wait for it any more."""
    server = answer.value
    if server is None or migration.status != "finished":
        return None
    if server.status not in UNCONFIRMABLE_STATUSES or not server.task_known or server.task_state:
        return None
    # A resize that was confirmed during this reading has changed its server.
    ages = [seconds_between(one, answer.at) for one in (migration.changed_at, server.updated)]
    return min(-1 if age is None else age for age in ages)


def _explain_reset(server: Server, migration: Migration, age: int, index: SnapshotIndex) -> Reason:
    ends = (migration.source_compute, migration.dest_compute)
    source, host = (make_printable(name or "?", _MAX_MESSAGE) for name in ends)
    # The kind ended_migration frees what the migration has.
    remains = migration.uuid in index.snapshot.allocations
    state = (
        f"Server {server.uuid} is {server.status} and waits for nothing, but its resize from "
        f"{source} to {host} (migration {migration.uuid}) is neither confirmed nor reverted, "
        f"unchanged for {format_duration(age)}. Nova refuses both since the server's state was "
        f"changed{', and its allocations on both hosts remain' * remains}."
    )
    waiting = [one for one in _list_moves(server.uuid, index) if one.status == "finished"]
    is_there = server.host == migration.dest_compute and server.status in ("ACTIVE", "SHUTOFF")
    if len(waiting) > 1 or not is_there:
        return Reason(
            "reset_resize_left",
            f"{state} First find its guest and its disks on {source}, on {host} and on the host "
            f"that Nova shows: virsh domstate {server.uuid}.",
        )
    return Reason(
        "reset_resize_to_confirm",
        f"{state} Make sure that its guest is on {host} (virsh domstate {server.uuid}): the next "
        f"steps delete what is left of it on {source}, where {COMPUTE} must be up. In the database "
        f"of its cell: UPDATE instances SET vm_state = 'resized' WHERE uuid = '{server.uuid}'. "
        f"Then: openstack server resize confirm {server.uuid}.",
    )


def _check_deletions(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the servers whose deletion has begun long ago, and has failed or never ended."""
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
    return Finding(KIND.name, UNDECIDED, uuid, reason, evidence=(lookup,))


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
