# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a host is empty: the one place that decides it. Pure.

A build has an allocation before it has a host, a soft-deleted server is in no listing of servers,
a cell that is silent for one request has an empty one, and a server that was evacuated from a host
may be on it again. So a host is empty only if nothing that was read of it shows an occupant. A
drain and a decommissioning read all of it, a deletion looks once more at the allocations, and a
return and a redeployment ask what the next start of nova-compute would destroy.
"""

from __future__ import annotations

import dataclasses as d
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from .._common.errors import Reason
from .._common.text import make_printable
from .._common.times import format_duration, seconds_between
from .._core.facts.index import SnapshotIndex
from .._core.facts.trees import describe_consumers
from .._core.models.change import Change
from .._core.models.finding import Finding
from .._core.models.nova import Migration, Server
from .._core.models.placement import Allocations, Provider, Totals
from .._core.models.snapshot import NOT_ASKED, Answer
from .draining import GONE, MOVED, MoveOutcomeDocument
from .host import Host, list_host_providers
from .migrations import UnfinishedEvacuations, get_advice

# The first stage that a blocker stops. With only `delete` blockers the host can still be prepared
# for the deletion of its service.
DISABLE, DELETE = "disable", "delete"

# The kinds of occupants that a drain takes away.
DRAINABLE = frozenset({"server", "migration", "resize"})

# How many occupants a message has in full.
_MAX_REASONS = 3


@d.dataclass(frozen=True)
class Blocker:
    """One reason why a host is not empty, or cannot be decommissioned yet.

    kind: of an occupant `unsound_reading`, `server`, `migration`, `resize`, `claim`,
        `hidden_allocation`, `unfinished_evacuation` or `enabled`; others are in `host_report`.
    stops: the first stage that must not begin while the blocker is there.
    """

    kind: str
    subject: str
    name: str
    reason: str
    stops: str = DISABLE


@d.dataclass(frozen=True)
class Contents:
    """What was read of a host. What a claim does not rest on is not read for it.

    index: one reading of the cloud.
    consumers: those with allocations on its trees then, with the findings about them; None for
        healthy ones. kinds: the kinds of findings that count as left over.
    servers, migrations: those that name the host. unlisted: the servers that only its hypervisor
        lists, as Nova showed them then.
    hidden: what only the usages of its providers show.
    late: the allocations on its providers right before these are deleted.
    outcomes: what became of its servers in this run. One that was neither moved nor is gone is
        there, whatever the listings say.
    evacuations: those from the host that its nova-compute has not completed.
    is_enabled: whether Nova may send servers to it again. unread: why it could not be read,
        if it could not.
    """

    host: Host
    index: SnapshotIndex | None = None
    consumers: Mapping[str, Finding | None] = d.field(default_factory=dict)
    kinds: Collection[str] = ()
    servers: tuple[Server, ...] = ()
    unlisted: tuple[Server, ...] = ()
    migrations: Answer[tuple[Migration, ...]] = NOT_ASKED
    hidden: Sequence[Blocker] = ()
    late: Mapping[str, Allocations] = d.field(default_factory=dict)
    outcomes: Sequence[MoveOutcomeDocument] = ()
    evacuations: UnfinishedEvacuations | None = None
    is_enabled: bool = False
    unread: str | None = None

    @property
    def providers(self) -> Mapping[str, Provider]:
        """All providers of the reading, by uuid."""
        return self.index.providers if self.index else {}

    @property
    def leftovers(self) -> list[Finding]:
        """The findings whose changes free the host's trees."""
        return [one for one in self.consumers.values() if one and self.is_leftover(one)]

    def is_leftover(self, finding: Finding) -> bool:
        """Return whether the change of a finding removes all allocations of its consumer here."""
        # A finding without a change is only reported, so its allocation stays.
        if finding.kind not in self.kinds or not isinstance(finding.change, Change):
            return False
        remaining = finding.change.after["allocations"]
        own = list_host_providers(self.host, self.providers)
        return not any(provider.uuid in remaining for provider in own)


def list_occupants(contents: Contents) -> list[Blocker]:
    """Return what is on a host or may yet come to it; a host is empty if there is nothing.

    A claim must rest on a reading: of what was not read, nothing is said.
    """
    host = contents.host.name
    occupants = [
        *_find_doubts(contents),
        *_find_servers(contents),
        *_find_migrations(contents),
        *contents.hidden,
    ]
    # A server or migration that blocks by itself is not reported again as a consumer.
    occupants += _find_consumers(contents, {occupant.subject for occupant in occupants})
    occupants += _find_unmoved(contents, {occupant.subject for occupant in occupants})
    if contents.late:
        held = describe_consumers(contents.late, f"the providers of {host}")
        occupants.append(Blocker("claim", min(contents.late), "", held))
    if contents.evacuations and contents.evacuations.evacuations:
        reason = Reason("unfinished_evacuation", contents.evacuations.explain())
        occupants.append(Blocker(reason.id, host, "", reason))
    if contents.is_enabled:
        occupants.append(Blocker("enabled", host, "", f"{host} is enabled again: run again."))
    return occupants


def describe_others(occupants: Iterable[Blocker]) -> str:
    """Return sentences about the first occupants that are no servers; empty without any."""
    others = [make_printable(entry.reason) for entry in occupants if entry.kind != "server"]
    if len(others) > _MAX_REASONS:
        others[_MAX_REASONS:] = [f"And {len(others) - _MAX_REASONS} more."]
    return " ".join(others)


def find_hidden_usages(
    providers: Iterable[Provider], totals: Mapping[str, Answer[Totals]]
) -> Iterator[Blocker]:
    """Yield the providers of which more is in use than their listed allocations say.

    Placement lists no consumer of which it has no record, but refuses to delete its provider.
    """
    for provider in providers:
        answer = totals[provider.uuid]
        # One that is gone has nothing in use.
        if answer.status == 404 or (answer.value is not None and not answer.value.hidden):
            continue
        reason = (
            "what is in use could not be compared with what is listed (Placement answered "
            f"{answer.status}): run again."
        )
        if answer.value is not None:
            hidden = ", ".join(f"{amount} {cls}" for cls, amount in answer.value.hidden.items())
            reason = (
                f"more is in use than Placement lists: {hidden}. "
                "Placement would refuse to delete the provider: `placement-manage db "
                "online_data_migrations` adds records of consumers that lack one; run again then."
            )
        where = f"On provider {provider.name}, "
        yield Blocker("hidden_allocation", provider.uuid, provider.name, where + reason)


def _find_doubts(contents: Contents) -> Iterator[Blocker]:
    """Yield why servers and allocations may be missing from what was read."""
    host, migrations = contents.host.name, contents.migrations
    sentences = [] if contents.unread is None else [contents.unread]
    if contents.index is not None:
        sentences += map(str, contents.index.failed_absence_checks)
        if migrations.value is None:
            sentences.append(
                f"Nova answered {migrations.status} when asked for the migrations of {host}: check "
                "the credentials and nova-api, and run again."
            )
    for sentence in sentences:
        yield Blocker("unsound_reading", host, "", sentence)


def _find_servers(contents: Contents) -> Iterator[Blocker]:
    host = contents.host
    servers = {server.uuid: server for server in (*contents.unlisted, *contents.servers)}
    # The listing of servers leaves out soft-deleted servers. The listing of hypervisors has them,
    # and Nova does not delete the service of a host that has any
    # (nova/api/openstack/compute/services.py, delete).
    uuids = set(servers).union(*(node.servers or () for node in host.nodes))
    for uuid in sorted(uuids):
        server = servers.get(uuid)
        name = server.name if server else ""
        yield Blocker("server", uuid, name, f"Server {uuid} {_describe_place(server, host)}.")


def _describe_place(server: Server | None, host: Host) -> str:
    """Return where a server is, and what to do."""
    if server is None:
        return (
            f"is on {host.name} for its hypervisor, and Nova showed no such server when it was "
            "asked: it may have been deleted meanwhile. Run again"
        )
    state = server.status
    if server.task_state:
        state += f", {server.task_state}"
    if server.host != host.name:
        return f"({state}) was on {host.name} and is on {server.host} now: run again"
    advice = "move, evacuate or delete it"
    if server.status == "SOFT_DELETED":
        advice = "restore it, or delete it for good"
    return f"({state}) is on {host.name}: {advice}"


def _find_migrations(contents: Contents) -> Iterator[Blocker]:
    """Yield the migrations from and to the host that either listing has, sorted by uuid."""
    host = contents.host
    # Nova leaves a slow cell out of an answer without an error, so a migration that only one of
    # the two listings has counts too.
    named = {migration.uuid: migration for migration in contents.migrations.value or ()}
    for migration in contents.index.migrations.values() if contents.index else ():
        if host.name in (migration.source_compute, migration.dest_compute):
            named.setdefault(migration.uuid, migration)
    for uuid, migration in sorted(named.items()):
        # An ended migration blocks only if it still has an allocation, as any other consumer does.
        if migration.ended:
            continue
        age = seconds_between(migration.changed_at, contents.migrations.at)
        state = f"is {migration.status}"
        if age is not None:
            state = f"has been {migration.status} for {format_duration(age)}"
        yield Blocker(
            "resize" if migration.status == "finished" else "migration",
            uuid,
            "",
            f"Migration {uuid} ({migration.type}) of server {migration.server} from "
            f"{migration.source_compute} to {migration.dest_compute} {state}: "
            f"{_choose_advice(migration, host)}.",
        )


def _choose_advice(migration: Migration, host: Host) -> str:
    """Return what to do about a migration, also where its server is on a host that is down."""
    is_down = host.service is not None and host.service.state == "down"
    if is_down and migration.status == "finished" and migration.dest_compute == host.name:
        return "start nova-compute there first. A confirmation deletes the disk on the source"
    return get_advice(migration)


def _find_consumers(contents: Contents, explained: Collection[str]) -> Iterator[Blocker]:
    for consumer, finding in sorted(contents.consumers.items()):
        if consumer in explained or (finding and contents.is_leftover(finding)):
            continue
        name = ""
        reason = (
            f"Consumer {consumer} has an allocation on this host that is not left over: move or "
            "delete its server, or remove the allocation where it was made."
        )
        if finding:
            name = finding.server.name if finding.server else ""
            reason = f"Consumer {consumer} is {finding.verdict} ({finding.kind}): {finding.reason}"
        if finding and finding.change and finding.kind not in contents.kinds:
            reason += f" {finding.kind} is not in kinds, so it is not remediated."
        yield Blocker("claim", consumer, name, reason)


def _find_unmoved(contents: Contents, listed: Collection[str]) -> Iterator[Blocker]:
    for entry in contents.outcomes:
        if entry["outcome"] not in (MOVED, GONE) and entry["uuid"] not in listed:
            reason = f"Server {entry['uuid']} was not moved, and no listing has it: run again."
            yield Blocker("server", entry["uuid"], entry["name"], reason)
