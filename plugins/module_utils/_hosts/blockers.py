# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What blocks the decommissioning of a host, and what is provably left over on it. Pure."""

from __future__ import annotations

import dataclasses as d
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from .._common.errors import InvalidInput
from .._common.text import summarize_names
from .._common.times import format_duration, seconds_between
from .._core.facts.index import SnapshotIndex
from .._core.facts.services import COMPUTE
from .._core.judging.engine import judge_consumers
from .._core.models.change import Change, sort_children_first
from .._core.models.nova import Hypervisor, Migration, Server, Service
from .._core.models.placement import Allocations, Provider, Resources, sum_amounts
from .._core.models.snapshot import Answer
from .._core.models.verdict import Finding
from .._core.options.policy import Policy
from .migrations import get_advice

# The first stage that a blocker stops. With only `delete` blockers the host can still be prepared
# for the deletion of its service.
DISABLE, DELETE = "disable", "delete"

# The kinds of blockers that a drain takes away.
DRAINABLE = frozenset({"server", "migration", "resize"})

# How many reasons a refusal has in full.
_MAX_REASONS = 10


@d.dataclass(frozen=True)
class Host:
    """A compute host by the name of its service: what Nova and Placement have of it.

    nodes: its compute nodes, several with ironic.
    roots: the root providers of these nodes, and those that earlier nodes of that name left behind.
    """

    name: str
    service: Service | None
    nodes: tuple[Hypervisor, ...]
    roots: tuple[Provider, ...]

    @property
    def exists(self) -> bool:
        return bool(self.service or self.nodes or self.roots)


@d.dataclass(frozen=True)
class HostDetails:
    """The servers and migrations that name one host.

    unlisted: the servers that only its hypervisor lists, as Nova showed them then.
    """

    servers: tuple[Server, ...]
    migrations: Answer[tuple[Migration, ...]]
    unlisted: tuple[Server, ...] = ()


@d.dataclass(frozen=True)
class Blocker:
    """One reason why a host cannot be decommissioned yet.

    kind: `server`, `migration`, `resize`, `claim`, `hidden_allocation`, `provider_in_use`,
        `excluded`, `service_up`, `unsound_reading`, or one of those of `_hosts.parts`.
    stops: the first stage that must not begin while the blocker is there.
    """

    kind: str
    subject: str
    name: str
    reason: str
    stops: str = DISABLE


def find_host(
    name: str,
    services: Iterable[Service],
    nodes: Collection[Hypervisor],
    providers: Mapping[str, Provider],
    remembered: Collection[str],
) -> Host:
    """Return the host with that name: the name of its service, or that of its only compute node.

    remembered: uuids of root providers from an earlier run; one that is still there belongs to the
        host, whatever its name.
    Raises InvalidInput for the name of one of several compute nodes, which can only be
    decommissioned together, and for a host that has compute services in several cells.
    """
    services = list(services)
    computes = {service.host for service in services if service.binary == COMPUTE}
    host = _find_service_host(name, computes, nodes)
    own = tuple(node for node in nodes if node.host == host)
    # Nova deletes all compute nodes of a service together with it.
    if host != name and len(own) > 1:
        raise InvalidInput(
            f"{name} is one of {len(own)} compute nodes of service {host}, which can only be "
            f"decommissioned together: name {host}."
        )
    # A node may have another name than its host, such as the name with its domain.
    names = {name, host, *(node.name for node in own)}
    uuids = {node.uuid for node in own if node.uuid in providers}
    uuids.update(_find_leftover_roots(names, nodes, providers.values(), remembered))
    roots = sorted((providers[uuid] for uuid in uuids), key=lambda provider: provider.name)
    return Host(host, _find_compute_service(host, services), own, tuple(roots))


def list_other_spellings(name: str, labels: Iterable[str]) -> list[str]:
    """Return the names that differ from `name` in upper case or in having a domain only."""
    found, own = [], name.casefold()
    for label in labels:
        other = label.casefold()
        if own == other or own.startswith(f"{other}.") or other.startswith(f"{own}."):
            found.append(label)
    return found


def _find_compute_service(host: str, services: Iterable[Service]) -> Service | None:
    """Return the service nova-compute of a host, also one in a cell that does not answer."""
    found = {one.id: one for one in services if one.binary == COMPUTE and one.host == host}
    if len(found) > 1:
        ids = summarize_names(id or "one in a cell that does not answer" for id in found)
        raise InvalidInput(
            f"{host} has {len(found)} services {COMPUTE}, in different cells ({ids}), and its "
            "compute nodes and aggregates do not say whose they are: delete the service that is "
            "not in use (openstack compute service delete ID)."
        )
    return next(iter(found.values()), None)


def _find_service_host(name: str, computes: Collection[str], nodes: Collection[Hypervisor]) -> str:
    """Return the name of the service that `name` stands for, or `name` itself if none does."""
    if name in computes or any(node.host == name for node in nodes):
        return name
    for node in nodes:
        if name in (node.name, node.uuid):
            return node.host
    return name


def _find_leftover_roots(
    names: Collection[str],
    nodes: Iterable[Hypervisor],
    providers: Iterable[Provider],
    remembered: Collection[str],
) -> Iterator[str]:
    """Yield the uuids of root providers of that host which are not a compute node any more.

    A host that was installed again has another uuid, and the tree of the old one keeps its name
    (LP 1817833).
    """
    node_uuids = {node.uuid for node in nodes}
    for provider in providers:
        if not provider.is_host or provider.uuid in node_uuids:
            continue
        if provider.name in names or provider.uuid in names or provider.uuid in remembered:
            yield provider.uuid


def find_leftovers(
    host: Host, index: SnapshotIndex, policy: Policy, kinds: Collection[str]
) -> list[Finding]:
    """Return the findings of the chosen `kinds` whose changes free the host's trees."""
    found = _find_consumers(host, index, policy).values()
    return [one for one in found if one and _frees_host(one, host, index, kinds)]


def find_blockers(
    host: Host, details: HostDetails, index: SnapshotIndex, policy: Policy, kinds: Collection[str]
) -> tuple[Blocker, ...]:
    """Return everything that blocks decommissioning of `host` and is not provably left over."""
    blockers: list[Blocker] = []
    # After an unsound reading, servers and allocations may be missing from everything below.
    for sentence in index.failed_absence_checks:
        blockers.append(Blocker("unsound_reading", host.name, "", str(sentence)))
    blockers += _find_exclusion_blockers(host, index, policy)
    blockers += _find_server_blockers(host, details)
    blockers += _find_migration_blockers(host, details, index)
    # A server or migration that blocks by itself is not reported again as a consumer.
    explained = {blocker.subject for blocker in blockers}
    for consumer, finding in sorted(_find_consumers(host, index, policy).items()):
        if consumer in explained:
            continue
        if finding and _frees_host(finding, host, index, kinds):
            continue
        blockers.append(_make_allocation_blocker(consumer, finding, kinds))
    blockers += _find_service_blockers(host)
    return tuple(blockers)


def explain_refusal(
    subject: str, blockers: Sequence[Blocker | Finding], what: str, where: str = ""
) -> str:
    """Return why something is not done to a host or agent; empty if nothing blocks it.

    what: what is refused. where: where all of the blockers are. Both as parts of a sentence.
    """
    if not blockers:
        return ""
    count = ", ".join(filter(None, (f"blockers: {len(blockers)}", where)))
    reasons = " ".join(blocker.reason for blocker in blockers[:_MAX_REASONS])
    return f"{subject} cannot be {what} ({count}). {reasons}"


def find_hidden_usages(
    providers: Iterable[Provider],
    usages: Mapping[str, Resources | None],
    allocations: Mapping[str, Allocations],
) -> Iterator[Blocker]:
    """Yield the providers of which more or less is in use than their listed allocations say.

    Placement lists no consumer of which it has no record, but refuses to delete its provider.

    usages: by provider, None for one that is gone. allocations: by consumer.
    """
    for provider in providers:
        listed = sum_amounts(held.get(provider.uuid, {}) for held in allocations.values())
        used = {cls: amount for cls, amount in (usages[provider.uuid] or {}).items() if amount}
        if used == {cls: amount for cls, amount in listed.items() if amount}:
            continue
        yield Blocker(
            "hidden_allocation",
            provider.uuid,
            provider.name,
            f"On provider {provider.name}, {_describe_amounts(used)} in use, but its listed "
            f"allocations are {_describe_amounts(listed)}: Placement would refuse to delete it. "
            "`placement-manage db online_data_migrations` adds records of consumers that lack one; "
            "run again then.",
        )


def _describe_amounts(amounts: Resources) -> str:
    return ", ".join(f"{amount} {cls}" for cls, amount in sorted(amounts.items())) or "nothing"


def list_host_providers(host: Host, providers: Mapping[str, Provider]) -> list[Provider]:
    """Return all providers of the host, children first."""
    listed: list[Provider] = []
    for root in host.roots:
        listed += sort_children_first(root.uuid, providers.values())
    return listed


def _find_exclusion_blockers(host: Host, index: SnapshotIndex, policy: Policy) -> Iterator[Blocker]:
    """Yield a blocker for each excluded name of the host.

    Allocations on excluded providers are protected anyway, but here the tree itself would be
    deleted, and the service with it.
    """
    roots = {node.uuid for node in host.nodes} | {root.uuid for root in host.roots}
    for excluded in sorted(policy.exclude_providers):
        if excluded == host.name or not roots.isdisjoint(index.find_roots(excluded)):
            # Of an excluded UUID, the name is shown too.
            name = index.get_name(excluded)
            note = policy.get_exclusion_note([excluded])
            reason = f"{name} is excluded by name ({excluded}) and must not be changed{note}."
            yield Blocker("excluded", excluded, name, reason)


def _find_server_blockers(host: Host, details: HostDetails) -> Iterator[Blocker]:
    servers = {server.uuid: server for server in (*details.unlisted, *details.servers)}
    uuids = set(servers)
    # The listing of servers leaves out soft-deleted servers. The listing of hypervisors has them,
    # and Nova does not delete the service of a host that has any
    # (nova/api/openstack/compute/services.py, delete).
    for node in host.nodes:
        uuids.update(node.servers or ())
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


def _find_migration_blockers(
    host: Host, details: HostDetails, index: SnapshotIndex
) -> Iterator[Blocker]:
    if details.migrations.value is None:
        yield Blocker(
            "unsound_reading",
            host.name,
            "",
            f"Nova answered {details.migrations.status} when asked for the migrations of "
            f"{host.name}: check the credentials and nova-api, and run again.",
        )
    for migration in _list_host_migrations(host, details, index):
        # An ended migration blocks only if it still has an allocation, as any other consumer does.
        if migration.ended:
            continue
        age = seconds_between(migration.changed_at, details.migrations.at)
        state = f"is {migration.status}"
        if age is not None:
            state = f"has been {migration.status} for {format_duration(age)}"
        yield Blocker(
            "resize" if migration.status == "finished" else "migration",
            migration.uuid,
            "",
            f"Migration {migration.uuid} ({migration.type}) of server {migration.server} from "
            f"{migration.source_compute} to {migration.dest_compute} {state}: "
            f"{_choose_advice(migration, host)}.",
        )


def _choose_advice(migration: Migration, host: Host) -> str:
    """Return what to do about a migration, also where its server is on a host that is down."""
    is_down = host.service is not None and host.service.state == "down"
    if is_down and migration.status == "finished" and migration.dest_compute == host.name:
        return "start nova-compute there first. A confirmation deletes the disk on the source"
    return get_advice(migration)


def _list_host_migrations(
    host: Host, details: HostDetails, index: SnapshotIndex
) -> list[Migration]:
    """Return the migrations from and to the host that either listing has, sorted by uuid."""
    migrations = {}
    # Nova leaves a slow cell out of an answer without an error, so a migration that only one of
    # the two listings has counts too.
    for migration in index.migrations.values():
        if host.name in (migration.source_compute, migration.dest_compute):
            migrations[migration.uuid] = migration
    for migration in details.migrations.value or ():
        migrations[migration.uuid] = migration
    return sorted(migrations.values(), key=lambda migration: migration.uuid)


def _find_service_blockers(host: Host) -> Iterator[Blocker]:
    # Disabling the service is possible while it is up; only its deletion has to wait.
    if host.service and host.service.state == "up":
        yield Blocker(
            "service_up",
            host.service.id or host.name,
            "",
            f"The {COMPUTE} of {host.name} is up, and would create its service and a part of its "
            "host again: stop it before the service is deleted.",
            DELETE,
        )


def _find_consumers(host: Host, index: SnapshotIndex, policy: Policy) -> dict[str, Finding | None]:
    """Return each consumer with allocations on the host's trees, and the finding about it.

    The finding is None for a consumer that is healthy.
    """
    findings = {finding.consumer: finding for finding in judge_consumers(index, policy)}
    consumers: dict[str, Finding | None] = {}
    for root in host.roots:
        for consumer in index.consumers_by_tree.get(root.uuid, ()):
            consumers[consumer] = findings.get(consumer)
    return consumers


def _frees_host(finding: Finding, host: Host, index: SnapshotIndex, kinds: Collection[str]) -> bool:
    """Return whether the change of a finding removes all allocations of its consumer here."""
    # A finding without a change is only reported, so its allocation stays.
    if finding.kind not in kinds or not isinstance(finding.change, Change):
        return False
    remaining = finding.change.after["allocations"]
    own = list_host_providers(host, index.providers)
    return not any(provider.uuid in remaining for provider in own)


def _make_allocation_blocker(
    consumer: str, finding: Finding | None, kinds: Collection[str]
) -> Blocker:
    if finding is None:
        return Blocker(
            "claim",
            consumer,
            "",
            f"Consumer {consumer} has an allocation on this host that is not left over: move or "
            "delete its server, or remove the allocation where it was made.",
        )
    name = finding.server.name if finding.server else ""
    reason = f"Consumer {consumer} is {finding.verdict} ({finding.kind}): {finding.reason}"
    if finding.change and finding.kind not in kinds:
        reason += f" {finding.kind} is not in kinds, so it is not remediated."
    return Blocker("claim", consumer, name, reason)
