# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""What lies on hypervisors and has no server of Nova's there: domains of libvirt and instance directories. Pure.

The proofs about a server are those of `_rules.orphans` and `_rules.protections`. What is added here is the host: a guest is left over when its server
is gone from Nova, or rests elsewhere after a move that took it away from this host.
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
        Migration,
        Server,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.policy import Policy
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Snapshot

LEFTOVER_DOMAIN, LEFTOVER_DIRECTORY = "leftover_domain", "leftover_directory"

# These are about what a consumer holds; a guest on a host has an age of its own.
_ALLOCATION_PROTECTIONS = frozenset({"foreign_type", "too_young"})

# What each is judged by.
_REQUIRED_FACTS = {
    LEFTOVER_DOMAIN: ("nova", "state", "disks"),
    LEFTOVER_DIRECTORY: ("age_seconds", "link", "open", "shared"),
}


@d.dataclass(frozen=True)
class Guest:
    """A domain, or an instance directory, as `hypervisor_guest_info` found it on the host of that compute service.

    facts: what it told of it. read_at: when, by the clock of the host.
    node: the uuid of the compute node that nova-compute is there by its own file, None where it has none.
    domain_state: of a directory the state of the domain with its uuid, None without one.
    used_by: of a directory the names of other domains that have a disk in it, running or not.
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
        return (
            f"{self.kind}/{self.host}/{self.name if self.kind == LEFTOVER_DIRECTORY else self.uuid}"
        )

    @property
    def age_seconds(self) -> int | None:
        """The time since it last changed: a directory by its newest file, a domain by when Nova last defined it."""
        if self.kind == LEFTOVER_DIRECTORY:
            age: int | None = self.facts["age_seconds"]
            return age
        return seconds_between((self.facts["nova"] or {}).get("created_at"), self.read_at)

    @property
    def runs(self) -> bool:
        """Whether it is a domain that Nova made and that is not shut off."""
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
    """Return the guests that one answer of `hypervisor_guest_info` tells of. Raises InvalidInput when it is none."""
    try:
        host, read_at, node, domains = (
            document["host"],
            document["read_at"],
            document.get("compute_id"),
            document["domains"] or (),
        )
        states = {domain["uuid"]: domain["state"] for domain in domains}
        otherwise = None if document["domains"] is not None else "not known"
        found = [
            Guest(LEFTOVER_DOMAIN, host, domain["uuid"], domain["name"], domain, read_at, node)
            for domain in domains
        ]
        for known in document["directories"] or ():
            state, others = (
                states.get(known["uuid"], otherwise),
                tuple(_find_disk_owners(known, domains)),
            )
            found.append(
                Guest(
                    LEFTOVER_DIRECTORY,
                    host,
                    known["uuid"],
                    known["name"],
                    known,
                    read_at,
                    node,
                    state,
                    others,
                )
            )
        for guest in found:
            _check_facts(guest)
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"guests has what hypervisor_guest_info did not return ({type(error).__name__}: {error})."
        ) from error
    for guest in found:
        if not isinstance(guest.uuid, str) or normalize_uuid(guest.uuid) != guest.uuid:
            raise InvalidInput(f"guests names {guest.uuid!r}, which is no UUID.")
    return found


def _check_facts(guest: Guest) -> None:
    """Raise what reading would raise later where something is missing of what a guest is judged by."""
    if missing := sorted(set(_REQUIRED_FACTS[guest.kind]) - set(guest.facts)):
        raise KeyError(missing[0])
    if not isinstance(guest.age_seconds, (int, type(None))):
        raise TypeError("age_seconds is no number")


def _find_disk_owners(
    directory: Mapping[str, t.Any], domains: Iterable[Mapping[str, t.Any]]
) -> Iterator[str]:
    """Yield the names of the domains of other servers that have a disk in a directory; in a container its path may begin otherwise."""
    for domain in domains:
        if domain["uuid"] != directory["uuid"] and any(
            directory["name"] in disk.split("/") for disk in domain["disks"]
        ):
            yield domain["name"]


def check_compute_hosts(hosts: Iterable[str], index: SnapshotIndex) -> None:
    """Raise InvalidInput for a host that is no compute service's: everything on it would look as if it belonged elsewhere."""
    known = collections.Counter(node.host for node in index.nodes.values())
    if unknown := sorted({host for host in hosts if known[host] != 1}):
        raise InvalidInput(
            f"Nova lists no compute service, or more than one compute node, of {', '.join(unknown)}: give each host the name that its "
            "compute service has."
        )


def list_servers_to_look_up(guests: Iterable[Guest], index: SnapshotIndex) -> list[str]:
    """Return the servers about which Nova must be asked: those that it does not show on the host of their guest."""
    return sorted(
        {guest.uuid for guest in guests if index.get_listed_host(guest.uuid) != guest.host}
    )


def judge_guests(
    guests: Collection[Guest], snapshot: Snapshot, policy: Policy
) -> list[GuestFinding]:
    """Return a finding for each guest that is not where its server lives."""
    index = SnapshotIndex(snapshot)
    mistaken = _find_mistaken_hosts(guests, index)
    findings = []
    for guest in sorted(guests, key=lambda guest: guest.id):
        evidence = snapshot.evidence.get(guest.uuid)
        if evidence is None:
            if index.get_listed_host(guest.uuid) != guest.host:
                findings.append(
                    GuestFinding(guest, undecided("Nova was not asked about its server."), None)
                )
            continue
        if evidence.allocation.value is None:
            findings.append(
                GuestFinding(
                    guest,
                    undecided("What its server holds could not be read.", evidence.allocation),
                    None,
                )
            )
            continue
        view = ConsumerView(index, evidence.allocation.value, evidence, evidence, None)
        decision = _decide(guest, view, policy)
        if decision and guest.host in mistaken:
            decision = undecided(
                f"{mistaken[guest.host]}: this may be another host than it is taken for.",
                snapshot.hypervisors,
            )
        if decision:
            findings.append(
                GuestFinding(guest, decision, find_deleted_server(evidence) or view.server)
            )
    return findings


def _find_mistaken_hosts(guests: Iterable[Guest], index: SnapshotIndex) -> dict[str, str]:
    """Return the hosts that may have been given the name of another one, or are looked for in another cloud, and what speaks for it."""
    by_host: dict[str, list[Guest]] = {}
    for guest in guests:
        by_host.setdefault(guest.host, []).append(guest)
    told = {}
    for node in index.nodes.values():
        here = by_host.get(node.host, [])
        other = next((guest.node for guest in here if guest.node not in (None, node.uuid)), None)
        if other:
            told[node.host] = (
                f"nova-compute is compute node {other} here, and Nova's {node.host} is {node.uuid}"
            )
            continue
        if any(_is_server_on_host(guest, index) for guest in here):
            continue
        if node.servers and here:
            told[node.host] = f"Nova shows servers on {node.host} and none of them is here"
        elif running := next((guest for guest in here if guest.runs), None):
            told[node.host] = (
                f"The domain of {running.uuid} is {running.facts['state']} here, and Nova shows no server on {node.host}"
            )
    return told


def _is_server_on_host(guest: Guest, index: SnapshotIndex) -> bool:
    """Tell whether Nova shows the server of a guest on its host, among others there or when it is asked directly."""
    evidence = index.snapshot.evidence.get(guest.uuid)
    server = evidence.server.value if evidence else None
    return index.get_listed_host(guest.uuid) == guest.host or (
        server is not None and server.host == guest.host
    )


def _decide(guest: Guest, view: ConsumerView, policy: Policy) -> Decision | None:
    if _is_server_on_host(guest, view.index):
        return None
    if reason := _check_exclusion(guest, view, policy):
        return protected(reason)
    for name, protect in PROTECTIONS.items():
        if name not in _ALLOCATION_PROTECTIONS and (reason := protect(view, policy)):
            return protected(reason, *view.state_evidence)
    for rule in _RULES:
        if decision := rule(guest, view, policy):
            return decision
    return undecided("What became of its server could not be proven.", *view.server_answers)


def _check_exclusion(guest: Guest, view: ConsumerView, policy: Policy) -> str | None:
    names = {
        guest.host,
        *(
            name
            for node in view.index.nodes.values()
            if node.host == guest.host
            for name in (node.uuid, node.name)
        ),
    }
    return policy.explain_exclusion(names)


def _protect_in_use(guest: Guest, view: ConsumerView, policy: Policy) -> Decision | None:
    facts = guest.facts
    if guest.kind == LEFTOVER_DOMAIN:
        if facts["nova"] is None:
            return protected(
                "It has none of the metadata that Nova gives its domains: it is somebody else's."
            )
        return (
            None
            if facts["state"] == SHUT_OFF
            else protected(f"It is {facts['state']}, and only what is shut off is undefined.")
        )
    if facts["link"]:
        return protected("It is a symbolic link and no directory.")
    if guest.domain_state not in (None, SHUT_OFF):
        return protected(f"The domain of this uuid is {guest.domain_state} here.")
    if guest.used_by:
        return protected(f"A disk of {min(guest.used_by)} is in it.")
    if facts["open"] is not False:
        return protected(
            "A file in it is open."
            if facts["open"]
            else "Whether a file in it is open could not be seen."
        )
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
    return young or orphaned(
        f"{describe_deletion(view.subject)} It stayed on {guest.host}.", *view.server_answers
    )


def _protect_recently_deleted(guest: Guest, view: ConsumerView, policy: Policy) -> Decision | None:
    deleted = find_deleted_server(view.subject)
    if deleted is None:
        # Nova does not tell when a row was marked as deleted by hand.
        return _protect_young(guest, guest.age_seconds, policy.unknown_min_age)
    action = find_deletion(view.subject.actions)
    since = deleted.terminated_at or (action.start_time if action else None) or deleted.updated
    return _protect_young(guest, seconds_between(since, view.subject.server.at), policy.min_age)


def _decide_unknown_server(guest: Guest, view: ConsumerView, policy: Policy) -> Decision | None:
    if not is_unknown_to_nova(view):
        return None
    if not any(sample.status == 200 for sample in view.index.snapshot.samples):
        return undecided(
            "Nova says that it does not know it, but there was no live server to see whether it would tell us."
        )
    evidence = (*view.migration_listings, *view.server_answers)
    young = _protect_young(guest, guest.age_seconds, policy.unknown_min_age)
    return young or orphaned(
        f"Nova has no memory of its server, and does not show it on {guest.host}.", *evidence
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
    last = next(
        (
            move
            for move in view.server_migrations
            if guest.host in (move.source_compute, move.dest_compute)
        ),
        None,
    )
    if last is None:
        return undecided(
            f"Server {server.uuid} rests on {server.host}, but Nova tells of no move away from {guest.host}.",
            *view.server_answers,
        )
    if (
        last.type == "evacuation"
        and last.status != "completed"
        and last.source_compute == guest.host
    ):
        return protected(
            f"Server {server.uuid} was evacuated from here ({last.uuid}): nova-compute itself removes what is left when it starts.",
            *view.server_answers,
        )
    if not _has_left_host(last, guest.host):
        return undecided(
            f"Server {server.uuid} rests on {server.host}, but the newest move of it that names {guest.host} ({last.uuid}, {last.type}) "
            f"is {last.status}: its disk may be here.",
            *view.server_answers,
        )
    if guest.kind == LEFTOVER_DIRECTORY and guest.facts["shared"] is not False:
        return protected(
            f"Server {server.uuid} lives on {server.host}, and this storage is shared, or may be: it is the same directory.",
            *view.server_answers,
        )
    young = _protect_young(
        guest,
        seconds_between(last.updated_at or last.created_at, view.subject.server.at),
        policy.min_age,
    )
    return young or orphaned(
        f"Server {server.uuid} rests on {server.host}; it left {guest.host} with {last.type} {last.uuid} ({last.status}).",
        *view.server_answers,
    )


_RULES: tuple[Callable[[Guest, ConsumerView, Policy], Decision | None], ...] = (
    _protect_in_use,
    _decide_deleted_server,
    _decide_unknown_server,
    _decide_server_elsewhere,
)


def _has_left_host(move: Migration, host: str) -> bool:
    """Tell whether a move ended with the server away from `host`."""
    if move.status == "reverted":
        return move.dest_compute == host and move.source_compute != host
    return (
        move.status in SUCCESSFUL_MIGRATION_STATUSES
        and move.source_compute == host
        and move.dest_compute != host
    )


def _protect_young(guest: Guest, since: int | None, wanted: int) -> Decision | None:
    """Protect what is left over for less than `wanted` seconds, and a directory in which something changed since."""
    ages = [since, *([guest.age_seconds] if guest.kind == LEFTOVER_DIRECTORY else [])]
    if not wanted or all(age is not None and age >= wanted for age in ages):
        return None
    known = [age for age in ages if age is not None]
    told = (
        f"It is so for {format_duration(min(known))}"
        if len(known) == len(ages)
        else "Since when it is so is not known"
    )
    return protected(f"{told} and the minimum age is {format_duration(wanted)}.")
