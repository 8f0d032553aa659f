# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""Which libvirt domains and instance directories have no server of Nova on their host. Pure.

The proofs about a server are those of `_rules.orphans` and `_rules.protections`. What is added here
is the host: a guest is left over when its server is gone from Nova, or is settled elsewhere after a
move that took it away from this host.
"""

from __future__ import annotations

import collections
import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._common.times import (
    format_duration,
    seconds_between,
)
from ansible_collections.osops.placement.plugins.module_utils._common.uuids import normalize_uuid
from ansible_collections.osops.placement.plugins.module_utils._hypervisor.virsh import SHUT_OFF
from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
    SUCCESSFUL_MIGRATION_STATUSES,
)
from ansible_collections.osops.placement.plugins.module_utils._models.verdict import (
    Decision,
    orphaned,
    protected,
    undecided,
)
from ansible_collections.osops.placement.plugins.module_utils._rules.orphans import (
    describe_deletion,
    find_deleted_server,
    is_deleted,
    is_unknown_to_nova,
)
from ansible_collections.osops.placement.plugins.module_utils._rules.protections import PROTECTIONS
from ansible_collections.osops.placement.plugins.module_utils._snapshot.consumer import (
    ConsumerView,
    find_deletion,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.index import SnapshotIndex

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
        Hypervisor,
        Migration,
        Server,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.policy import Policy

LEFTOVER_DOMAIN, LEFTOVER_DIRECTORY = "leftover_domain", "leftover_directory"

# These are about the allocations of a consumer; a guest on a host has an age of its own.
_ALLOCATION_PROTECTIONS = frozenset({"foreign_type", "too_young"})

# The facts by which each kind of guest is judged.
_REQUIRED_FACTS = {
    LEFTOVER_DOMAIN: ("nova", "state", "disks"),
    LEFTOVER_DIRECTORY: ("age_seconds", "link", "open", "shared"),
}


@d.dataclass(frozen=True)
class Guest:
    """A domain or an instance directory on the host of a compute service.

    host: the name of the compute service.
    facts: what `hypervisor_guest_info` returned about the guest.
    read_at: when it was read, by the clock of the host.
    node: the uuid of the compute node by nova-compute's own file, None where there is no file.
    domain_state: for a directory the state of the domain with its uuid, None without a domain.
    used_by: for a directory the names of other domains that have a disk in it, running or not.
    """

    kind: str
    host: str
    uuid: str
    name: str
    facts: Mapping[str, t.Any]
    read_at: str
    node: str | None = None
    domain_state: str | None = None
    used_by: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        if self.kind == LEFTOVER_DIRECTORY:
            return f"{self.kind}/{self.host}/{self.name}"
        return f"{self.kind}/{self.host}/{self.uuid}"

    @property
    def age_seconds(self) -> int | None:
        """Seconds since the guest last changed.

        For a directory by its newest file, for a domain by when Nova last defined it.
        """
        if self.kind == LEFTOVER_DIRECTORY:
            age: int | None = self.facts["age_seconds"]
            return age
        metadata = self.facts["nova"] or {}
        return seconds_between(metadata.get("created_at"), self.read_at)

    @property
    def runs(self) -> bool:
        """Whether the guest is a domain that Nova made and that is not shut off."""
        return (
            self.kind == LEFTOVER_DOMAIN
            and self.facts["nova"] is not None
            and self.facts["state"] != SHUT_OFF
        )


@d.dataclass(frozen=True)
class GuestFinding:
    """A verdict on one guest, with what an operator needs in order to check it."""

    guest: Guest
    decision: Decision
    server: Server | None


def parse_guests(document: Mapping[str, t.Any]) -> list[Guest]:
    """Return the guests in one result of `hypervisor_guest_info`.

    Raises InvalidInput when the document is something else.
    """
    try:
        guests = [*_parse_domains(document), *_parse_directories(document)]
        for guest in guests:
            _check_facts(guest)
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(
            "guests has what hypervisor_guest_info did not return "
            f"({type(error).__name__}: {error})."
        ) from error
    for guest in guests:
        if not isinstance(guest.uuid, str) or normalize_uuid(guest.uuid) != guest.uuid:
            raise InvalidInput(f"guests names {guest.uuid!r}, which is no UUID.")
    return guests


def _parse_domains(document: Mapping[str, t.Any]) -> Iterator[Guest]:
    # Read before the loop: a document without these keys is wrong even if it lists nothing.
    host, read_at, node = document["host"], document["read_at"], document.get("compute_id")
    for domain in document["domains"] or ():
        yield Guest(LEFTOVER_DOMAIN, host, domain["uuid"], domain["name"], domain, read_at, node)


def _parse_directories(document: Mapping[str, t.Any]) -> Iterator[Guest]:
    domains = document["domains"] or ()
    states = {domain["uuid"]: domain["state"] for domain in domains}
    # Where the domains could not be listed, a directory may belong to one that runs.
    default_state = "not known" if document["domains"] is None else None
    for directory in document["directories"] or ():
        yield Guest(
            LEFTOVER_DIRECTORY,
            document["host"],
            directory["uuid"],
            directory["name"],
            directory,
            document["read_at"],
            document.get("compute_id"),
            states.get(directory["uuid"], default_state),
            tuple(_find_disk_owners(directory, domains)),
        )


def _check_facts(guest: Guest) -> None:
    """Raise KeyError or TypeError now where judging the guest would raise it later."""
    missing = sorted(set(_REQUIRED_FACTS[guest.kind]) - set(guest.facts))
    if missing:
        raise KeyError(missing[0])
    if not isinstance(guest.age_seconds, (int, type(None))):
        raise TypeError("age_seconds is no number")


def _find_disk_owners(
    directory: Mapping[str, t.Any], domains: Iterable[Mapping[str, t.Any]]
) -> Iterator[str]:
    """Yield the names of the domains of other servers that have a disk in a directory."""
    for domain in domains:
        if domain["uuid"] == directory["uuid"]:
            continue
        # Only the name is compared: in a container the path may begin differently.
        if any(directory["name"] in disk.split("/") for disk in domain["disks"]):
            yield domain["name"]


def check_compute_hosts(hosts: Iterable[str], index: SnapshotIndex) -> None:
    """Raise InvalidInput for a host that is not the host of exactly one compute node.

    Every guest on it would seem to belong elsewhere.
    """
    nodes_by_host = collections.Counter(node.host for node in index.nodes.values())
    unknown = sorted({host for host in hosts if nodes_by_host[host] != 1})
    if unknown:
        raise InvalidInput(
            "Nova lists no compute service, or more than one compute node, of "
            f"{', '.join(unknown)}: give each host the name that its compute service has."
        )


def list_servers_to_look_up(guests: Iterable[Guest], index: SnapshotIndex) -> list[str]:
    """Return the uuids of the servers that Nova does not list on the host of their guest.

    Nova must be asked about them directly.
    """
    return sorted(
        {guest.uuid for guest in guests if index.get_listed_host(guest.uuid) != guest.host}
    )


def judge_guests(
    guests: Collection[Guest], index: SnapshotIndex, policy: Policy
) -> list[GuestFinding]:
    """Return a finding for each guest whose server is not on its host, sorted by guest id."""
    mistaken_hosts = _find_mistaken_hosts(guests, index)
    findings = []
    for guest in sorted(guests, key=lambda guest: guest.id):
        finding = _judge_guest(guest, index, policy, mistaken_hosts)
        if finding:
            findings.append(finding)
    return findings


def _judge_guest(
    guest: Guest, index: SnapshotIndex, policy: Policy, mistaken_hosts: Mapping[str, str]
) -> GuestFinding | None:
    """Return the finding about a guest, None when its server is on its host."""
    evidence = index.snapshot.evidence.get(guest.uuid)
    if evidence is None:
        if index.get_listed_host(guest.uuid) == guest.host:
            return None
        return GuestFinding(guest, undecided("Nova was not asked about its server."), None)
    if evidence.allocation.value is None:
        decision = undecided("What its server holds could not be read.", evidence.allocation)
        return GuestFinding(guest, decision, None)
    view = ConsumerView(index, evidence.allocation.value, evidence, evidence, None)
    outcome = _decide(guest, view, policy)
    if outcome is None:
        return None
    if guest.host in mistaken_hosts:
        outcome = undecided(
            f"{mistaken_hosts[guest.host]}: this may be another host than it is taken for.",
            index.snapshot.hypervisors,
        )
    return GuestFinding(guest, outcome, find_deleted_server(evidence) or view.server)


def _find_mistaken_hosts(guests: Iterable[Guest], index: SnapshotIndex) -> dict[str, str]:
    """Return the hosts that may be others than their names say, each with the reason.

    A host may have got the name of another one, or may belong to another cloud.
    """
    guests_by_host: dict[str, list[Guest]] = {}
    for guest in guests:
        guests_by_host.setdefault(guest.host, []).append(guest)
    reasons = {}
    for node in index.nodes.values():
        reason = _explain_mistaken_host(node, guests_by_host.get(node.host, []), index)
        if reason:
            reasons[node.host] = reason
    return reasons


def _explain_mistaken_host(
    node: Hypervisor, guests: Collection[Guest], index: SnapshotIndex
) -> str | None:
    """Return why the host of `node` may be another one, None when nothing says so."""
    for guest in guests:
        if guest.node and guest.node != node.uuid:
            return (
                f"nova-compute is compute node {guest.node} here, "
                f"and Nova's {node.host} is {node.uuid}"
            )
    # One server in its place shows that the host is the right one.
    if any(_is_server_on_host(guest, index) for guest in guests):
        return None
    if node.servers and guests:
        return f"Nova shows servers on {node.host} and none of them is here"
    for guest in guests:
        if guest.runs:
            return (
                f"The domain of {guest.uuid} is {guest.facts['state']} here, "
                f"and Nova shows no server on {node.host}"
            )
    return None


def _is_server_on_host(guest: Guest, index: SnapshotIndex) -> bool:
    """Return whether Nova shows the server of a guest on its host, listed or asked directly."""
    if index.get_listed_host(guest.uuid) == guest.host:
        return True
    evidence = index.snapshot.evidence.get(guest.uuid)
    if evidence is None or evidence.server.value is None:
        return False
    return evidence.server.value.host == guest.host


def _decide(guest: Guest, view: ConsumerView, policy: Policy) -> Decision | None:
    """Return the decision about a guest, None when its server is on its host."""
    if _is_server_on_host(guest, view.index):
        return None
    reason = _check_exclusion(guest, view, policy)
    if reason:
        return protected(reason)
    for name, protect in PROTECTIONS.items():
        if name in _ALLOCATION_PROTECTIONS:
            continue
        reason = protect(view, policy)
        if reason:
            return protected(reason, *view.state_evidence)
    # The order matters: what is in use is protected before anything is proven about its server.
    for rule in _RULES:
        decision = rule(guest, view, policy)
        if decision:
            return decision
    return undecided("What became of its server could not be proven.", *view.server_answers)


def _check_exclusion(guest: Guest, view: ConsumerView, policy: Policy) -> str | None:
    names = {guest.host}
    for node in view.index.nodes.values():
        if node.host == guest.host:
            names.update((node.uuid, node.name))
    return policy.explain_exclusion(names)


def _protect_in_use(guest: Guest, view: ConsumerView, policy: Policy) -> Decision | None:
    if guest.kind == LEFTOVER_DOMAIN:
        return _protect_domain(guest)
    return _protect_directory(guest)


def _protect_domain(guest: Guest) -> Decision | None:
    if guest.facts["nova"] is None:
        return protected(
            "It has none of the metadata that Nova gives its domains: it is somebody else's."
        )
    if guest.facts["state"] != SHUT_OFF:
        return protected(f"It is {guest.facts['state']}, and only what is shut off is undefined.")
    return None


def _protect_directory(guest: Guest) -> Decision | None:
    if guest.facts["link"]:
        return protected("It is a symbolic link and no directory.")
    if guest.domain_state not in (None, SHUT_OFF):
        return protected(f"The domain of this uuid is {guest.domain_state} here.")
    if guest.used_by:
        return protected(f"A disk of {min(guest.used_by)} is in it.")
    if guest.facts["open"]:
        return protected("A file in it is open.")
    # Anything else than False is an answer that could not be had.
    if guest.facts["open"] is not False:
        return protected("Whether a file in it is open could not be seen.")
    return None


def _decide_deleted_server(guest: Guest, view: ConsumerView, policy: Policy) -> Decision | None:
    if not is_deleted(view.subject):
        return None
    if view.contradiction:
        return undecided(
            f"Nova knows server {guest.uuid} as deleted, but {view.contradiction}.",
            *view.server_answers,
        )
    young = _protect_recently_deleted(guest, view, policy)
    if young:
        return young
    return orphaned(
        f"{describe_deletion(view.subject)} It stayed on {guest.host}.", *view.server_answers
    )


def _protect_recently_deleted(guest: Guest, view: ConsumerView, policy: Policy) -> Decision | None:
    server = find_deleted_server(view.subject)
    if server is None:
        # Nova does not say when a row was marked as deleted by hand.
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
    # A 404 proves nothing as long as these credentials see no server at all.
    if not any(sample.status == 200 for sample in view.index.snapshot.samples):
        return undecided(
            "Nova says that it does not know it, but there was no live server to see whether it "
            "would tell us."
        )
    young = _protect_young(guest, guest.age_seconds, policy.unknown_min_age)
    if young:
        return young
    return orphaned(
        f"Nova has no memory of its server, and does not show it on {guest.host}.",
        *view.migration_listings,
        *view.server_answers,
    )


def _decide_server_elsewhere(guest: Guest, view: ConsumerView, policy: Policy) -> Decision | None:
    server = view.server
    if server is None:
        return None
    if not view.is_settled_in_place or view.own_tree is None:
        return undecided(
            f"Server {server.uuid} is {server.status}, and not known to rest on another host.",
            *view.server_answers,
        )
    for move in view.server_migrations:
        # The newest comes first, and only that says where the disk is.
        if guest.host in (move.source_compute, move.dest_compute):
            return _decide_after_move(guest, view, policy, server, move)
    return undecided(
        f"Server {server.uuid} rests on {server.host}, but Nova tells of no move away from "
        f"{guest.host}.",
        *view.server_answers,
    )


def _decide_after_move(
    guest: Guest, view: ConsumerView, policy: Policy, server: Server, move: Migration
) -> Decision:
    """Return the decision about a guest by the newest move of its server that names its host."""
    if _is_evacuation_to_clean_up(move, guest.host):
        return protected(
            f"Server {server.uuid} was evacuated from here ({move.uuid}): nova-compute itself "
            "removes what is left when it starts.",
            *view.server_answers,
        )
    if not _has_left_host(move, guest.host):
        return undecided(
            f"Server {server.uuid} rests on {server.host}, but the newest move of it that names "
            f"{guest.host} ({move.uuid}, {move.type}) is {move.status}: its disk may be here.",
            *view.server_answers,
        )
    # On shared storage it is the directory that the server uses on its new host.
    if guest.kind == LEFTOVER_DIRECTORY and guest.facts["shared"] is not False:
        return protected(
            f"Server {server.uuid} lives on {server.host}, and this storage is shared, or may be: "
            "it is the same directory.",
            *view.server_answers,
        )
    since = seconds_between(move.changed_at, view.subject.server.at)
    young = _protect_young(guest, since, policy.min_age)
    if young:
        return young
    return orphaned(
        f"Server {server.uuid} rests on {server.host}; it left {guest.host} with {move.type} "
        f"{move.uuid} ({move.status}).",
        *view.server_answers,
    )


_RULES: tuple[Callable[[Guest, ConsumerView, Policy], Decision | None], ...] = (
    _protect_in_use,
    _decide_deleted_server,
    _decide_unknown_server,
    _decide_server_elsewhere,
)


def _is_evacuation_to_clean_up(move: Migration, host: str) -> bool:
    """Return whether nova-compute on `host` has yet to remove what an evacuation left there."""
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
    """Protect a guest that is left over for less than `min_age` seconds.

    Also protect a directory in which something changed in that time.
    since: for how many seconds the guest is left over, None where that is unknown.
    """
    ages = [since]
    if guest.kind == LEFTOVER_DIRECTORY:
        ages.append(guest.age_seconds)
    # A minimum age of 0 switches this protection off.
    if not min_age or all(age is not None and age >= min_age for age in ages):
        return None
    known_ages = [age for age in ages if age is not None]
    duration = "Since when it is so is not known"
    if len(known_ages) == len(ages):
        duration = f"It is so for {format_duration(min(known_ages))}"
    return protected(f"{duration} and the minimum age is {format_duration(min_age)}.")
