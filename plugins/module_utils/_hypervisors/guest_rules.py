# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which libvirt domains and instance directories have no server of Nova on their host. Pure.

The proofs about a server are those of `kinds.deletions`, `kinds.unknown_consumers` and
`facts.protections`. What is added here
is the host: a guest is left over when its server is gone from Nova, or is settled elsewhere after a
move that took it away from this host.
"""

from __future__ import annotations

import collections
import dataclasses as d
from collections.abc import Callable, Collection, Iterable, Mapping

from .._common.errors import InvalidInput, Reason
from .._common.times import format_duration, is_earlier, seconds_between
from .._core.facts.consumer import ConsumerView
from .._core.facts.deletion import (
    describe_deletion,
    find_deleted_server,
    is_deleted,
    is_unknown_to_nova,
)
from .._core.facts.index import ListingsIndex, SnapshotIndex
from .._core.facts.protections import PROTECTIONS, explain_recent_event
from .._core.facts.server import find_deletion
from .._core.models.finding import ORPHANED, Decision, orphaned, protected, undecided
from .._core.models.nova import SUCCESSFUL_MIGRATION_STATUSES, Hypervisor, Migration, Server
from .._core.options.policy import Policy
from .guests import LEFTOVER_DIRECTORY, RUNNING_LEFTOVER, Guest
from .on_host.domain_xml import SHUT_OFF

# These are about allocations, but a guest on a host has its own age and no consumer type.
_ALLOCATION_PROTECTIONS = frozenset({"foreign_type", "too_young"})


@d.dataclass(frozen=True)
class GuestFinding:
    """A verdict on one guest, with what an operator needs in order to check it."""

    guest: Guest
    decision: Decision
    server: Server | None

    @property
    def kind(self) -> str:
        # Only a domain that is shut off is left over in the other sense.
        if self.decision.verdict == ORPHANED and self.guest.is_active:
            return RUNNING_LEFTOVER
        return self.guest.kind

    @property
    def is_removable(self) -> bool:
        """Whether the guest is left over, and may be removed from its host."""
        return self.decision.verdict == ORPHANED and self.kind != RUNNING_LEFTOVER


def check_compute_hosts(hosts: Iterable[str], nodes: Iterable[Hypervisor]) -> None:
    """Raise InvalidInput for a host that is not the host of exactly one compute node.

    Without this check, every guest on it would seem to belong to another host.
    """
    nodes_by_host = collections.Counter(node.host for node in nodes)
    unknown = sorted({host for host in hosts if nodes_by_host[host] != 1})
    if unknown:
        raise InvalidInput(
            "Nova does not list exactly one compute node for "
            f"{', '.join(unknown)}: in guests, set host to the name of the host of its compute "
            "service."
        )


def list_servers_to_look_up(guests: Iterable[Guest], index: ListingsIndex) -> list[str]:
    """Return the UUIDs of the servers that must be looked up directly.

    Nova does not list them on the host of their guest, or a move of them may have been cut off.
    """

    def is_in_doubt(guest: Guest) -> bool:
        return guest.is_put_aside or index.get_listed_host(guest.uuid) != guest.host

    return sorted({guest.uuid for guest in filter(is_in_doubt, guests)})


def judge_guests(
    guests: Collection[Guest], index: SnapshotIndex, policy: Policy
) -> list[GuestFinding]:
    """Return a finding for each guest whose server is not on its host, sorted by guest id."""
    mistaken_hosts = _find_mistaken_hosts(guests, index)
    inodes: dict[str, dict[str, int | None]] = collections.defaultdict(dict)
    for guest in guests:
        # On a file system of another host, the inode may have another number here.
        is_own = guest.facts.get("shared") is False and guest.host not in mistaken_hosts
        if guest.name == guest.uuid and is_own:
            inodes[guest.uuid][guest.host] = guest.facts.get("inode")
    seen = (d.replace(guest, inodes=inodes[guest.uuid]) for guest in guests)
    findings = [
        _judge_guest(guest, index, policy, mistaken_hosts)
        for guest in sorted(seen, key=lambda guest: guest.id)
    ]
    return [finding for finding in findings if finding]


def _judge_guest(
    guest: Guest, index: SnapshotIndex, policy: Policy, mistaken_hosts: Mapping[str, Reason]
) -> GuestFinding | None:
    """Return the finding about a guest, None when its server is on its host."""
    evidence = index.snapshot.evidence.get(guest.uuid)
    if evidence is None:
        if index.get_listed_host(guest.uuid) == guest.host:
            return None
        reason = Reason("server_not_looked_up", "Its server was not looked up in Nova.")
        return GuestFinding(guest, undecided(reason), None)
    if evidence.allocation.value is None:
        reason = Reason("allocation_unread", "The allocation of its server could not be read.")
        return GuestFinding(guest, undecided(reason, evidence.allocation), None)
    allocation = evidence.allocation.value
    view = ConsumerView(
        index=index, allocation=allocation, evidence=evidence, subject=evidence, migration=None
    )
    outcome = _decide(guest, view, policy)
    if outcome is None:
        return None
    # Whatever was proven about the server, it says nothing if this is another host.
    mistake = mistaken_hosts.get(guest.host)
    if mistake and not _is_left_by_all(guest, view):
        mistake = mistake.reword(f"{mistake}: this may not be host {guest.host}.")
        outcome = undecided(mistake, index.snapshot.hypervisors)
    return GuestFinding(guest, outcome, find_deleted_server(evidence) or view.server)


def _find_mistaken_hosts(guests: Iterable[Guest], index: SnapshotIndex) -> dict[str, Reason]:
    """Return the hosts that may be other hosts than their names say, each with the reason.

    A host may have been given the name of another one, or may belong to another cloud.
    """
    guests_by_host: dict[str, list[Guest]] = collections.defaultdict(list)
    for guest in guests:
        guests_by_host[guest.host].append(guest)
    reasons = {}
    for node in index.nodes.values():
        if reason := _explain_mistaken_host(node, guests_by_host[node.host], index):
            reasons[node.host] = reason
    return reasons


def _explain_mistaken_host(
    node: Hypervisor, guests: Collection[Guest], index: SnapshotIndex
) -> Reason | None:
    """Return why the host of `node` may be another host; None if nothing says so."""
    for guest in guests:
        if guest.node and guest.node != node.uuid:
            return Reason(
                "wrong_compute_id",
                f"By its own file, nova-compute on this host is compute node {guest.node}, "
                f"but in Nova, {node.host} is compute node {node.uuid}",
            )
    # One server that is where Nova shows it proves that this is the right host.
    if any(_is_server_on_host(guest, index) for guest in guests):
        return None
    if node.servers and guests:
        return Reason(
            "servers_of_host_absent",
            f"Nova shows servers on {node.host}, but none of them is on this host",
        )
    for guest in guests:
        # Without its own file, only its name says which host this is.
        if guest.is_active and guest.facts["nova"] is not None and guest.node is None:
            return Reason(
                "domain_of_unlisted_server",
                f"The domain of server {guest.uuid} is {guest.facts['state']} on this host, "
                f"but Nova shows no server on {node.host}",
            )
    return None


def _is_left_by_all(guest: Guest, view: ConsumerView) -> bool:
    """Return whether Nova shows no server on a host from which it evacuated that of this guest.

    If the guest runs, the host was cut off and not fenced, and is more likely that host than not.
    """
    servers = [node.servers for node in view.index.nodes.values() if node.host == guest.host]
    evacuated = _was_evacuated(view, guest.host, "done", "completed")
    return guest.is_active and guest.node is None and evacuated and not any(servers)


def _was_evacuated(view: ConsumerView, host: str, *statuses: str) -> bool:
    return any(
        move.type == "evacuation" and move.source_compute == host and move.status in statuses
        for move in view.server_migrations
    )


def _is_server_on_host(guest: Guest, index: SnapshotIndex) -> bool:
    """Return whether Nova shows the server of a guest on its host, listed or asked directly."""
    # The listing and the lookup have different times, and either is enough to leave a guest alone.
    if index.get_listed_host(guest.uuid) == guest.host:
        return True
    evidence = index.snapshot.evidence.get(guest.uuid)
    server = evidence.server.value if evidence else None
    return server is not None and server.host == guest.host


def _decide(guest: Guest, view: ConsumerView, policy: Policy) -> Decision | None:
    """Return the decision about a guest, None when its server is on its host."""
    if _is_server_on_host(guest, view.index) and not guest.is_put_aside:
        return None
    reason = _check_exclusion(guest, view, policy)
    if reason:
        return protected(reason)
    for name, protect in PROTECTIONS.items():
        if name in _ALLOCATION_PROTECTIONS:
            continue
        # These need somebody above all while their server is in ERROR.
        if name == "error_with_host" and (guest.is_active or guest.is_put_aside):
            continue
        reason = protect(view, policy)
        if reason:
            return protected(reason, *view.state_evidence)
    # However lately Nova did something: two guests may be writing to the same disks now.
    decision = _decide_running(guest, view, policy)
    if decision:
        return decision
    reason = explain_recent_event(view, policy)
    if reason:
        return protected(reason, *view.server_answers)
    # The order matters: a guest in use is protected before anything is proven about its server.
    for rule in _RULES:
        decision = rule(guest, view, policy)
        if decision:
            return decision
    return undecided(
        Reason("not_proven_left_over", "No answer of Nova proves that it is left over."),
        *view.server_answers,
    )


def _check_exclusion(guest: Guest, view: ConsumerView, policy: Policy) -> Reason | None:
    # A user may exclude the host by any name or UUID of its compute node.
    roots = view.index.list_nodes_at(guest.host)
    return policy.explain_exclusion(
        name
        for name in policy.exclude_providers
        if name == guest.host or not roots.isdisjoint(view.index.find_roots(name))
    )


def _decide_running(guest: Guest, view: ConsumerView, policy: Policy) -> Decision | None:
    server = view.server
    if not guest.is_active or server is None:
        return None
    place = server.host or "no host"
    reason = f"It is {guest.facts['state']} here, but Nova has server {guest.uuid} on {place}"
    # The server may have been moved between the two answers.
    if is_earlier(guest.read_at, server.updated):
        later = Reason("moved_since_it_was_read", f"{reason} since a later change: run again.")
        return undecided(later, *view.server_answers)
    danger = "If it runs there too, both may write to the same disks: stop the wrong one (virsh)."
    if _was_evacuated(view, guest.host, "done"):
        danger += " nova-compute here destroys this one, with its local disks, when it starts."
    found = Reason("guest_runs_elsewhere_for_nova", f"{reason}. {danger}")
    return orphaned(found, *view.server_answers)


def _decide_cut_move(guest: Guest, view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide about the disks of a server that a resize or cold migration put aside.

    Nova renames them back only when it reverts the move, also at the start of nova-compute if the
    server still has the task `resize_migrating`. Any later move deletes them
    (nova/virt/libvirt/driver.py, finish_revert_migration and migrate_disk_and_power_off).
    """
    if not guest.is_put_aside or not _is_server_on_host(guest, view.index):
        return None
    for last in view.server_migrations[:1]:
        if last.has_arrived and last.dest_compute == guest.host:
            reason = Reason(
                "left_by_earlier_move",
                f"An earlier move left it here. The last one ({last.uuid}, {last.type}) brought "
                f"its server here, whose disks are in {guest.uuid}: do not put this back.",
            )
            return undecided(reason, *view.server_answers)
    reason = Reason(
        "put_aside_by_cut_off_move",
        "A resize or cold migration that was cut off left the disks of its server here, which "
        f"cannot start without them. Stop the server, rename {guest.name} to {guest.uuid} (compare "
        "both if that exists), and reboot the server with --hard. Do not resize or migrate it "
        "before: Nova then deletes this directory.",
    )
    return undecided(reason, *view.server_answers)


def _protect_in_use(guest: Guest, view: ConsumerView, policy: Policy) -> Decision | None:
    explain = _explain_use_of_directory if guest.kind == LEFTOVER_DIRECTORY else _explain_use
    reason = explain(guest)
    return protected(reason) if reason else None


def _explain_use(guest: Guest) -> Reason | None:
    state, nova = guest.facts["state"], guest.facts["nova"]
    if nova is None:
        return Reason(
            "not_defined_by_nova", "It has no metadata of Nova, so Nova did not define this domain."
        )
    if guest.is_active:
        return Reason(
            "domain_is_active", f"It is {state}, and only domains that are shut off are undefined."
        )
    return None


def _explain_use_of_directory(guest: Guest) -> Reason | None:
    state, is_open = guest.domain_state, guest.facts["open"]
    if guest.facts["link"]:
        return Reason("symbolic_link", "It is a symbolic link, not a directory.")
    if state not in (None, SHUT_OFF):
        return Reason(
            "domain_of_directory_is_active", f"The domain with its UUID is {state} on this host."
        )
    if guest.used_by:
        return Reason("disk_in_use", f"It contains a disk of domain {min(guest.used_by)}.")
    if is_open:
        return Reason("file_open", "A file in it is open.")
    # Anything other than False means that the host could not find out.
    if is_open is not False:
        return Reason("open_files_unknown", "It is unknown whether a file in it is open.")
    return None


def _decide_deleted_server(guest: Guest, view: ConsumerView, policy: Policy) -> Decision | None:
    if not is_deleted(view.subject):
        return None
    if view.contradiction:
        reason = view.contradiction.reword(
            f"Nova reports server {guest.uuid} as deleted, but {view.contradiction}."
        )
        return undecided(reason, *view.server_answers)
    return _protect_recently_deleted(guest, view, policy) or orphaned(
        Reason(
            "left_by_deleted_server",
            f"{describe_deletion(view.subject)} Its {guest.noun} remains on {guest.host}.",
        ),
        *view.server_answers,
    )


def _protect_recently_deleted(guest: Guest, view: ConsumerView, policy: Policy) -> Decision | None:
    server = find_deleted_server(view.subject)
    if server is None:
        # Nova does not record when a row was marked as deleted by hand.
        return _protect_young(guest, guest.age_seconds, policy.unknown_min_age)
    deleted_at = server.terminated_at
    action = find_deletion(view.subject.actions)
    if not deleted_at and action:
        deleted_at = action.start_time
    since = seconds_between(deleted_at or server.updated, view.subject.server.at)
    return _protect_young(guest, since, policy.min_age)


def _decide_unknown_server(guest: Guest, view: ConsumerView, policy: Policy) -> Decision | None:
    if not is_unknown_to_nova(view):
        return None
    # A 404 proves nothing while these credentials see no server at all.
    if not any(sample.status == 200 for sample in view.index.snapshot.samples):
        reason = Reason(
            "server_visibility_not_checked",
            "Nova returns no record of its server, but there was no live server to check whether "
            "these credentials can see the servers of other projects.",
        )
        return undecided(reason)
    return _protect_young(guest, guest.age_seconds, policy.unknown_min_age) or orphaned(
        Reason(
            "left_by_unknown_server",
            f"Nova has no record of its server, but its {guest.noun} is on {guest.host}.",
        ),
        *view.migration_listings,
        *view.server_answers,
    )


def _decide_server_elsewhere(guest: Guest, view: ConsumerView, policy: Policy) -> Decision | None:
    server = view.server
    if server is None:
        return None
    if not view.is_settled_in_place or view.own_tree is None:
        reason = Reason(
            "settled_elsewhere_not_certain",
            f"Server {server.uuid} is {server.status}, but it is not certain that it is settled on "
            "another host.",
        )
        return undecided(reason, *view.server_answers)
    roots = view.index.list_nodes_at(guest.host)
    for move in view.server_migrations:
        # The newest comes first, and only the newest shows where the disk is.
        ends = ((move.source_compute, move.source_node), (move.dest_compute, move.dest_node))
        if any(view.index.may_be_at(root, *end) for root in roots for end in ends):
            return _decide_after_move(guest, view, policy, server, move)
    reason = Reason(
        "no_migration_away",
        f"Server {server.uuid} is settled on {server.host}, but Nova lists no migration of it "
        f"away from {guest.host}.",
    )
    return undecided(reason, *view.server_answers)


def _decide_after_move(
    guest: Guest, view: ConsumerView, policy: Policy, server: Server, move: Migration
) -> Decision:
    """Return the decision about a guest by the newest move of its server that names its host."""
    if _is_evacuation_to_clean_up(move, guest.host):
        reason = Reason(
            "evacuated_from_here",
            f"Server {server.uuid} was evacuated from this host (migration {move.uuid}): "
            "nova-compute removes it when it starts.",
        )
        return protected(reason, *view.server_answers)
    if not _has_left_host(move, guest.host):
        reason = Reason(
            "newest_move_did_not_leave",
            f"Server {server.uuid} is settled on {server.host}, but its newest migration that "
            f"may concern {guest.host} ({move.uuid}, {move.type}) is {move.status}: its disk may "
            f"be on {guest.host}.",
        )
        return undecided(reason, *view.server_answers)
    # On shared storage the server uses this directory on its new host.
    if guest.kind == LEFTOVER_DIRECTORY and guest.facts["shared"] is not False:
        reason = Reason(
            "storage_may_be_shared",
            f"Server {server.uuid} is settled on {server.host}, and this storage is or may be "
            "shared: the server may use this directory there.",
        )
        return protected(reason, *view.server_answers)
    # The storage may be shared in a way that this host does not show.
    present = guest.inodes.get(str(server.host))
    if guest.kind == LEFTOVER_DIRECTORY and present in (None, guest.facts.get("inode")):
        reason = Reason(
            "other_directory_not_seen",
            f"Server {server.uuid} is settled on {server.host}, which was not seen to have another "
            f"directory than this: clean up {server.host} in the same run.",
        )
        return protected(reason, *view.server_answers)
    since = seconds_between(move.changed_at, view.subject.server.at)
    return _protect_young(guest, since, policy.min_age) or orphaned(
        Reason(
            "left_by_move",
            f"Server {server.uuid} is settled on {server.host}; it left {guest.host} by "
            f"{move.type} {move.uuid} ({move.status}), but its {guest.noun} remains there.",
        ),
        *view.server_answers,
    )


_RULES: tuple[Callable[[Guest, ConsumerView, Policy], Decision | None], ...] = (
    _decide_cut_move,
    _protect_in_use,
    _decide_deleted_server,
    _decide_unknown_server,
    _decide_server_elsewhere,
)


def _is_evacuation_to_clean_up(move: Migration, host: str) -> bool:
    """Return whether nova-compute on `host` has yet to remove what an evacuation left there."""
    # nova-compute does so when it starts, and then saves the evacuation as `completed`
    # (nova/compute/manager.py, _destroy_evacuated_instances).
    return move.type == "evacuation" and move.status != "completed" and move.source_compute == host


def _has_left_host(move: Migration, host: str) -> bool:
    """Return whether a move ended with the server away from `host`."""
    # A reverted move took the server back to its source.
    if move.status == "reverted":
        return move.dest_compute == host and move.source_compute != host
    return (
        move.status in SUCCESSFUL_MIGRATION_STATUSES
        and move.source_compute == host
        and move.dest_compute != host
    )


def _protect_young(guest: Guest, since: int | None, min_age: int) -> Decision | None:
    """Protect a guest that has been left over for less than `min_age` seconds.

    Also protect a directory in which something has changed in that time.
    since: for how many seconds the guest has been left over; None if this is unknown.
    """
    ages = [since]
    if guest.kind == LEFTOVER_DIRECTORY:
        ages.append(guest.age_seconds)
    # A minimum age of 0 switches this protection off.
    if not min_age or all(age is not None and age >= min_age for age in ages):
        return None
    present_ages = [age for age in ages if age is not None]
    duration = "It is unknown how long it has been left over or unchanged"
    if len(present_ages) == len(ages):
        duration = f"It has been left over and unchanged for {format_duration(min(present_ages))}"
    reason = Reason(
        "left_for_too_short", f"{duration}, and the minimum age is {format_duration(min_age)}."
    )
    return protected(reason)
