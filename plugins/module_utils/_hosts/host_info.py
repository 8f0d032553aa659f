# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads everything about the compute hosts to decommission, from Placement, Nova and Neutron."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from .._common.clock import get_utc_now
from .._common.errors import InvalidInput, UnsoundReading
from .._common.parallel import look_up_each, map_parallel
from .._common.text import make_printable, suggest_names
from .._core.clients.nova import NovaReader
from .._core.clients.placement import PlacementReader
from .._core.clients.provider_state import ProviderStateReader
from .._core.clients.session import CloudContext, Session
from .._core.facts.agreement import list_host_names
from .._core.facts.index import SnapshotIndex
from .._core.facts.services import COMPUTE, get_listed_services, require_answer
from .._core.facts.trees import check_no_compute_node, find_tree, require_compute_nodes
from .._core.judging.engine import judge_consumers
from .._core.models.codec import convert_to_json
from .._core.models.finding import Finding
from .._core.models.kind import REMEDIATE
from .._core.models.kinds import CONSUMER_KINDS
from .._core.models.nova import Hypervisor, Service
from .._core.models.placement import Provider
from .._core.models.snapshot import NOT_ASKED, Answer, Scope
from .._core.options.policy import Policy, parse_policy, warn_ended_exclusions
from .._core.reading.reading import Collector
from .emptiness import DELETE, Blocker, Contents, find_hidden_usages
from .host import Host, find_host, list_host_providers, list_other_spellings
from .host_decommission import DeletionOptions
from .host_record import (
    HostRecords,
    build_record,
    choose_records,
    list_names,
    name_cloud,
    read_records,
)
from .host_report import HostReport, PartPolicy, find_blockers, find_part_blockers
from .parts import PartReader


class HostReader:
    """Reads hosts from one session, and what blocks the decommissioning of each."""

    def __init__(
        self, session: Session, policy: Policy, kinds: Collection[str], part_policy: PartPolicy
    ) -> None:
        self._reading = Collector(session, policy.pci_aliases)
        self._placement = PlacementReader(session.placement)
        self._nova = NovaReader(session.compute)
        self._parts = PartReader(session)
        self._states = ProviderStateReader(session.placement)
        self._policy = policy
        self._kinds = kinds
        self.part_policy = part_policy
        self._cloud = name_cloud(session.cloud)
        self._session = session
        self._services: Answer[tuple[Service, ...]] = NOT_ASKED
        self._nodes: Answer[tuple[Hypervisor, ...]] = NOT_ASKED
        self._providers: Mapping[str, Provider] = {}

    def read_hosts(
        self,
        names: Sequence[str],
        remembered: Collection[str] = (),
        allow_unknown: bool = False,
        earlier: t.Any = None,
    ) -> list[HostReport]:
        """Return everything about the hosts `names`.

        remembered: uuids of root providers that belong to the one host in `names`.
        allow_unknown: whether a host of which nothing exists is not most likely misspelt.
        earlier: the contents of the file of an earlier run. A host that it has is not misspelt.
        Raises InvalidInput for such a host, otherwise.
        """
        # All hosts are found in the same three listings, however many are named.
        services, nodes, providers = self._list_all()
        reports = []
        for name in names:
            records = HostRecords()
            if earlier is not None:
                records = read_records(earlier, name, self._cloud)
            former = self._list_former_roots(records, nodes, providers)
            remembered_roots = {*remembered, *former}
            was_service = (records.record or {}).get("host") == name
            host = find_host(name, services, nodes, providers, remembered_roots, was_service)
            parts = self._parts.read_parts(host.name, _find_zone(host, records), services)
            reports.append(HostReport(name, Contents(host), parts, records))
        if not remembered:
            labels = _list_host_labels(services, nodes, providers)
            for report in reports:
                self._check_known(report, labels, allow_unknown)
        return list(map(self._complete, reports))

    def _list_all(
        self,
    ) -> tuple[tuple[Service, ...], tuple[Hypervisor, ...], Mapping[str, Provider]]:
        """Return all services, compute nodes and providers."""
        self._services = self._nova.list_services()
        services = get_listed_services(self._services)
        self._nodes = self._nova.list_hypervisors(with_servers=False)
        nodes = require_compute_nodes(self._nodes)
        self._providers = self._placement.list_providers()
        return services, nodes, self._providers

    def record_host(
        self, report: HostReport, is_deleting: bool, own_reasons: Collection[str]
    ) -> dict[str, t.Any]:
        """Return a host as a file keeps it, with its record. See `choose_records`.

        is_deleting: whether the host is to be deleted now.
        """
        document, records = report.describe(), report.records
        if document["known"]:
            providers = map_parallel(self._record_provider, document["providers"])
            present = [provider for provider in providers if provider is not None]
            current = build_record(document, present, get_utc_now(), is_deleting, self._cloud)
            records = choose_records(records, current, own_reasons)
        return {**document, "record": records.record, "former_record": records.former}

    def _list_former_roots(
        self, record: HostRecords, nodes: Sequence[Hypervisor], providers: Mapping[str, Provider]
    ) -> list[str]:
        """Return the root providers that only the record of a host still has."""
        roots = []
        # The provider of a compute node is not left over, whatever a record says.
        for uuid in record.roots.intersection(providers).difference(node.uuid for node in nodes):
            state = self._states.read(uuid)
            if state is not None and record.is_root(providers[uuid], state.traits):
                roots.append(uuid)
        return roots

    def _record_provider(self, provider: dict[str, t.Any]) -> dict[str, t.Any] | None:
        state = self._states.read(provider["uuid"])
        return {**provider, **state.as_dict()} if state is not None else None

    def _check_known(
        self, report: HostReport, labels: Collection[str], allow_unknown: bool
    ) -> None:
        """Raise InvalidInput for a host of which there is nothing, not even a migration.

        allow_unknown: whether it is refused only if another spelling of its name is in use, or if
            it is a provider below that of a host.
        """
        host, parts, records = report.host, report.parts, report.records
        if records.record or records.roots or host.exists:
            return
        find_tree(report.name, self._providers)
        is_known = allow_unknown or parts.network.agents or parts.services
        # The host would look gone while it is up.
        if not list_other_spellings(host.name, labels) and (
            is_known or self._nova.list_migrations_of_host(host.name).value
        ):
            return
        raise InvalidInput(
            f"hosts: neither Nova nor Placement knows {make_printable(host.name, 100)}. "
            f"{suggest_names(host.name, labels)}".rstrip()
        )

    def _complete(self, report: HostReport) -> HostReport:
        """Return a report with what is on its host, and what blocks its decommissioning."""
        host = report.host
        part_blockers = tuple(find_part_blockers(host.name, report.parts, self.part_policy))
        namesakes = _find_namesakes(report, self._providers, self._nodes.value or ())
        if not host.exists:
            return d.replace(report, blockers=part_blockers, namesakes=namesakes)
        # From here on the snapshot counts: the first listing only showed which providers to read.
        contents = self._read_contents(host)
        in_use = self._find_providers_in_use(host)
        return d.replace(
            report,
            contents=contents,
            namesakes=namesakes,
            providers=tuple(list_host_providers(host, contents.providers or self._providers)),
            blockers=(*find_blockers(contents, self._policy), *in_use, *part_blockers),
        )

    def read_contents(self, name: str) -> Contents:
        """Return what decides whether a host is empty, without its other parts."""
        return self._read_contents(find_host(name, *self._list_all(), ()))

    def _read_contents(self, host: Host) -> Contents:
        """Return everything on a host, as the snapshot has it.

        Raises CloudError when Nova does not list its servers.
        """
        if host.roots:
            scope = Scope(hosts=tuple(root.uuid for root in host.roots))
            snapshot = self._reading.collect(scope)
        else:
            # A host without a provider has no allocations: the listings are enough.
            snapshot = self._reading.collect_cloud()
        index = SnapshotIndex(snapshot)
        # The compute nodes in the snapshot know their servers.
        read_nodes = {node.uuid: node for node in snapshot.hypervisors.value or ()}
        host = d.replace(host, nodes=tuple(read_nodes.get(node.uuid, node) for node in host.nodes))
        listed = self._nova.query_servers_on_host(host.name)
        # Without this listing, a host full of servers would look ready to decommission.
        servers = require_answer(listed, f"the servers of {host.name}")
        # A cell may be silent for one listing, and a server may move between two.
        hosted = {uuid for node in host.nodes for uuid in node.servers or ()}
        missing = sorted(hosted.difference(server.uuid for server in servers))
        lookups = map_parallel(self._nova.get_server, missing)
        return Contents(
            host,
            index,
            list_consumers(host, index, self._policy),
            self._kinds,
            servers,
            tuple(lookup.value for lookup in lookups if lookup.value is not None),
            self._nova.list_migrations_of_host(host.name),
            self._find_hidden(list_host_providers(host, index.providers or self._providers)),
        )

    def _find_hidden(self, providers: Sequence[Provider]) -> list[Blocker]:
        """Return what only the usages of providers show."""
        totals = look_up_each(self._placement.query_totals, [entry.uuid for entry in providers])
        return list(find_hidden_usages(providers, totals))

    def _find_providers_in_use(self, host: Host) -> Iterator[Blocker]:
        """Yield the former providers of a host that would not be deleted after its service.

        They are asked for as they will be then: without the service and its compute nodes.
        """
        nodes, services = _leave_out(self._nodes, host.name), _leave_out(self._services, host.name)
        own = {node.uuid for node in host.nodes}
        for root in host.roots:
            # Nova deletes the providers of its compute nodes itself.
            if root.uuid in own:
                continue
            names = [name for name in list_host_names(root.name) if name != host.name]
            try:
                self._check_no_compute_node(root, self._providers, nodes, services, names)
            except UnsoundReading as error:
                yield Blocker("provider_in_use", root.uuid, root.name, str(error), DELETE)

    def require_no_compute_node(
        self, root: Provider, host: Host, providers: Mapping[str, Provider]
    ) -> None:
        """Raise UnsoundReading if the provider of a host without a service may be another host's.

        host: as it was. The compute nodes that this Nova had are no other region's.
        """
        is_own = any(node.uuid == root.uuid for node in host.nodes)
        nodes = self._nova.list_hypervisors(with_servers=False)
        services, names = self._nova.list_services(), list_host_names(root.name)
        self._check_no_compute_node(root, providers, nodes, services, names, is_own)

    def _check_no_compute_node(
        self,
        root: Provider,
        providers: Mapping[str, Provider],
        nodes: Answer[tuple[Hypervisor, ...]],
        services: Answer[tuple[Service, ...]],
        names: Iterable[str],
        is_own: bool = False,
    ) -> None:
        other_novas: tuple[str, ...] = ()
        if not is_own and not self.part_policy.ignore_other_regions:
            other_novas = self._session.other_novas or self._session.query_other_novas().value or ()
        lookups = {name: self._nova.get_host(name) for name in names}
        search = self._nova.search_nodes(root.name)
        check_no_compute_node(root, providers, nodes, services, other_novas, lookups, search)


def list_consumers(host: Host, index: SnapshotIndex, policy: Policy) -> dict[str, Finding | None]:
    """Return each consumer with allocations on the host's trees, and the finding about it.

    The finding is None for a consumer that is healthy.
    """
    findings = {finding.consumer: finding for finding in judge_consumers(index, policy)}
    found = (index.consumers_by_tree.get(root.uuid, ()) for root in host.roots)
    return {consumer: findings.get(consumer) for consumers in found for consumer in consumers}


def make_host_reader(context: CloudContext, session: Session) -> HostReader:
    """Return a reader that judges hosts as the options say."""
    options = context.options
    policy = parse_policy(options)
    warn_ended_exclusions(context, policy)
    part_policy = PartPolicy(**DeletionOptions.parse(options))
    return HostReader(session, policy, options["kinds"], part_policy)


def read_contents(session: Session, name: str) -> Contents:
    """Return what decides whether a host is empty now.

    What a cleanup removes by default does not count, however young it is.
    """
    kinds = [kind.name for kind in CONSUMER_KINDS if kind.by_default == REMEDIATE]
    policy = Policy(min_age=0, unknown_min_age=0)
    return HostReader(session, policy, kinds, PartPolicy()).read_contents(name)


def _leave_out(answer: Answer[t.Any], host: str) -> Answer[t.Any]:
    return d.replace(answer, value=tuple(row for row in answer.value or () if row.host != host))


def _find_namesakes(
    report: HostReport, providers: Mapping[str, Provider], nodes: Iterable[Hypervisor]
) -> tuple[Provider, ...]:
    """Return the providers that are not of the host and would keep its names in use.

    nodes: the compute nodes that Nova lists. Another host whose hypervisor had the same name as
        that of the host keeps it.
    """
    host, record = report.host, report.records.record
    names = {report.name, host.name, *(node.name for node in host.nodes)}
    if record is not None:
        names |= list_names(record)
    roots = {root.uuid for root in host.roots}
    listed = {node.uuid for node in nodes}
    named = (provider for provider in providers.values() if provider.name in names)
    return tuple(one for one in named if one.root not in roots and one.uuid not in listed)


def _find_zone(host: Host, records: HostRecords) -> str | None:
    """Return the availability zone that a host leaves, or None without a service.

    A host that was taken out of its aggregates is in the default zone, which it does not leave.
    """
    service = convert_to_json(host.service)
    interrupted = records.find_interrupted(service) or {}
    service = interrupted.get("service") or service
    return service["zone"] if service else None


def _list_host_labels(
    services: Sequence[Service], nodes: Sequence[Hypervisor], providers: Mapping[str, Provider]
) -> set[str]:
    """Return all names by which a host can be named."""
    labels = {service.host for service in services if service.binary == COMPUTE}
    labels.update(node.name for node in nodes)
    labels.update(provider.name for provider in providers.values() if provider.is_host)
    return labels
