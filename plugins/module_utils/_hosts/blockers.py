# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""What holds a compute host back from being retired, and what of it is provably left over. Pure."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._common.times import (
    format_duration,
    seconds_between,
)
from ansible_collections.osops.placement.plugins.module_utils._models.change import (
    Change,
    sort_children_first,
)
from ansible_collections.osops.placement.plugins.module_utils._resources.migrations import (
    get_advice,
)
from ansible_collections.osops.placement.plugins.module_utils._rules.engine import judge_consumers
from ansible_collections.osops.placement.plugins.module_utils._snapshot.index import SnapshotIndex
from ansible_collections.osops.placement.plugins.module_utils._snapshot.services import COMPUTE

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
        Aggregate,
        Hypervisor,
        Migration,
        Server,
        Service,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import Provider
    from ansible_collections.osops.placement.plugins.module_utils._models.policy import Policy
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import (
        Answer,
        Snapshot,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.verdict import Finding

# What a blocker stops: everything, or the deletion of the service, up to which the host can still be made ready.
DISABLE, DELETE = "disable", "delete"


@d.dataclass(frozen=True)
class Host:
    """A compute host by the name of its service: what Nova and Placement have of it.

    nodes: its compute nodes, several with ironic. roots: the root providers of those, and what others of that name left behind.
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
    """What was asked about one host by itself: the servers and migrations that name it, and its aggregates."""

    servers: tuple[Server, ...]
    migrations: Answer[tuple[Migration, ...]]
    aggregates: tuple[Aggregate, ...]


@d.dataclass(frozen=True)
class Blocker:
    """One thing that holds a host back.

    kind: `format_server`, `migration`, `resize`, `claim`, `protect_excluded`, `service_up` or `unsound_reading`.
    stops: the first stage that must not begin while it is there.
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
    """Return the host with that name, which may be its service's, or that of its only compute node.

    remembered: uuids of root providers that an earlier look found; one that is still there belongs to the host, whatever its name.
    Raises InvalidInput for the name of one of several compute nodes: they can only be retired together.
    """
    computes = {service.host: service for service in services if service.binary == COMPUTE}
    named = [node for node in nodes if name in (node.name, node.uuid)]
    host = (
        name
        if name in computes or any(node.host == name for node in nodes) or not named
        else named[0].host
    )
    own = tuple(node for node in nodes if node.host == host)
    if host != name and len(own) > 1:
        raise InvalidInput(
            f"{name} is one of {len(own)} compute nodes of service {host}, which can only be retired together: name {host}."
        )
    every = {node.uuid for node in nodes}
    strangers = [
        provider
        for provider in providers.values()
        if provider.is_host and provider.uuid not in every
    ]
    # A host that was installed anew has another uuid, and the tree of the old one keeps its name (LP 1817833).
    names = {name, host, *(node.name for node in own)}
    uuids = {node.uuid for node in own}
    uuids |= {
        provider.uuid
        for provider in strangers
        if {provider.name, provider.uuid} & names or provider.uuid in remembered
    }
    roots = sorted(
        (providers[uuid] for uuid in uuids if uuid in providers), key=lambda provider: provider.name
    )
    return Host(host, computes.get(host), own, tuple(roots))


def find_leftovers(
    host: Host, snapshot: Snapshot, policy: Policy, kinds: Collection[str]
) -> list[Finding]:
    """Return the findings on the host's trees whose change is one of an orphan of the chosen `kinds`."""
    index = SnapshotIndex(snapshot)
    return [
        finding
        for finding in _find_consumers(host, index, policy).values()
        if finding and _frees_host(finding, host, index, kinds)
    ]


def find_blockers(
    host: Host, details: HostDetails, snapshot: Snapshot, policy: Policy, kinds: Collection[str]
) -> tuple[Blocker, ...]:
    """Return everything that holds `host` back and is not provably left over."""
    index = SnapshotIndex(snapshot)
    found: list[Blocker] = [
        Blocker("unsound_reading", host.name, "", gate) for gate in index.failed_absence_checks
    ]
    found += _find_exclusion_blockers(host, index, policy)
    found += _find_server_blockers(host, details)
    found += _find_migration_blockers(host, details, index)
    explained = {blocker.subject for blocker in found}
    for consumer, finding in sorted(_find_consumers(host, index, policy).items()):
        if consumer not in explained and not (finding and _frees_host(finding, host, index, kinds)):
            found.append(_make_allocation_blocker(consumer, finding, index, kinds))
    if host.service and host.service.state == "up":
        found.append(
            Blocker(
                "service_up",
                host.service.id or host.name,
                "",
                f"The {COMPUTE} of {host.name} runs. What is deleted under it comes back half: stop it before the service is deleted.",
                DELETE,
            )
        )
    return tuple(found)


def list_host_providers(host: Host, providers: Mapping[str, Provider]) -> list[Provider]:
    """Return all providers of the host, children first."""
    return [
        provider
        for root in host.roots
        for provider in sort_children_first(root.uuid, providers.values())
    ]


def _find_exclusion_blockers(host: Host, index: SnapshotIndex, policy: Policy) -> Iterator[Blocker]:
    """Claims on what is excluded are protected by themselves; here it is the tree that would go, and the service with it."""
    names = {
        host.name: host.name,
        **{name: node.name for node in host.nodes for name in (node.uuid, node.name)},
    }
    names |= {
        name: provider.name
        for provider in list_host_providers(host, index.providers)
        for name in (provider.uuid, provider.name)
    }
    for excluded in sorted(names.keys() & policy.exclude_providers):
        yield Blocker(
            "excluded",
            excluded,
            names[excluded],
            f"{names[excluded]} is excluded by name ({excluded}), and never touched{policy.get_exclusion_note([excluded])}.",
        )


def _find_server_blockers(host: Host, details: HostDetails) -> Iterator[Blocker]:
    known = {server.uuid: server for server in details.servers}
    # The listing of servers leaves out the soft-deleted, which the hypervisor listing has and for which Nova refuses as well.
    for uuid in sorted({*known, *(server for node in host.nodes for server in node.servers or ())}):
        server = known.get(uuid)
        state = (
            f"{server.status}{f', {server.task_state}' if server.task_state else ''}"
            if server
            else "perhaps soft-deleted"
        )
        yield Blocker(
            "server",
            uuid,
            server.name if server else "",
            f"Server {uuid} ({state}) is on {host.name}: move, evacuate or delete it.",
        )


def _find_migration_blockers(
    host: Host, details: HostDetails, index: SnapshotIndex
) -> Iterator[Blocker]:
    # Nova leaves a slow cell out of an answer without a word: what either has is there.
    listed = (
        row
        for row in index.migrations.values()
        if host.name in (row.source_compute, row.dest_compute)
    )
    rows = {row.uuid: row for row in (*listed, *(details.migrations.value or ()))}
    if details.migrations.value is None:
        yield Blocker(
            "unsound_reading",
            host.name,
            "",
            f"Nova answered {details.migrations.status} when asked for the migrations of {host.name}.",
        )
    for row in sorted(rows.values(), key=lambda row: row.uuid):
        if row.ended:
            continue
        age = seconds_between(row.updated_at or row.created_at, details.migrations.at)
        since = "" if age is None else f" for {format_duration(age)}"
        yield Blocker(
            "resize" if row.status == "finished" else "migration",
            row.uuid,
            "",
            f"Migration {row.uuid} ({row.type}) of server {row.server} from {row.source_compute} to {row.dest_compute} "
            f"is {row.status}{since}: {get_advice(row)}.",
        )


def _find_consumers(host: Host, index: SnapshotIndex, policy: Policy) -> dict[str, Finding | None]:
    """Return everybody who holds a share of the host's trees, with the finding about them, None for the healthy."""
    found = {finding.consumer: finding for finding in judge_consumers(index, policy)}
    return {
        consumer: found.get(consumer)
        for root in host.roots
        for consumer in index.consumers_by_tree.get(root.uuid, ())
    }


def _frees_host(finding: Finding, host: Host, index: SnapshotIndex, kinds: Collection[str]) -> bool:
    """Tell whether the change of a finding takes all that its consumer holds of the host."""
    if finding.kind not in kinds or not isinstance(finding.change, Change):
        return False
    return not {provider.uuid for provider in list_host_providers(host, index.providers)} & set(
        finding.change.after["allocations"]
    )


def _make_allocation_blocker(
    consumer: str, finding: Finding | None, index: SnapshotIndex, kinds: Collection[str]
) -> Blocker:
    server = finding.server if finding else None
    name = server.name if server else ""
    if finding is None:
        return Blocker(
            "claim",
            consumer,
            name,
            f"Consumer {consumer} holds a share of it, and nothing is wrong with that.",
        )
    left = (
        f" {finding.kind} is not among the kinds to remediate."
        if finding.change and finding.kind not in kinds
        else ""
    )
    return Blocker(
        "claim", consumer, name, f"{finding.verdict}, {finding.kind}: {finding.reason}{left}"
    )
