# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a host that was deployed again is complete, and what gives it back what it had before.

Only what the API owns is restored: the host aggregates of Nova, the traits that operators set, the
aggregates that only Placement has, and allocation ratios. Everything else is nova-compute's.
"""

from __future__ import annotations

import dataclasses as d
import functools
import typing as t
import urllib.parse
from collections.abc import Callable, Collection, Iterable, Iterator

from .._common.errors import CloudError, InvalidInput
from .._common.text import summarize_names
from .._core.changes.records import find_lost_aggregates, find_lost_traits
from .._core.clients.api import Api
from .._core.clients.groups import AggregateClient
from .._core.clients.nova import NovaReader
from .._core.clients.placement import PlacementReader
from .._core.clients.provider_state import ProviderStateReader
from .._core.clients.provider_writer import ProviderWriter
from .._core.clients.session import CloudContext, Session
from .._core.facts.services import COMPUTE, get_listed_services
from .._core.facts.trees import require_compute_nodes
from .._core.models.nova import Aggregate, Hypervisor, Service
from .._core.models.placement import NOVA_TRAITS, Provider, ProviderState
from .emptiness import Contents, list_occupants
from .host import Host
from .host_record import FormerHost, name_cloud, parse_former_host, read_host_file
from .migrations import UnfinishedEvacuations, read_unfinished_evacuations

# Nova removed this request after 2.42. It is the only one that shows a missing host mapping.
_HOST_MICROVERSION = "2.42"
# What Nova answers about a host without a mapping (nova/exception.py, HostMappingNotFound).
_UNMAPPED = "is not mapped to any cell"


@d.dataclass(frozen=True)
class RedeployedHost:
    """A host as Nova and Placement have it now.

    services: its compute services; more than one if two cells have a host of that name.
    nodes: its compute nodes that Nova lists.
    mapped: whether Nova's API has assigned it to a cell; None if Nova does not say.
    provider: the provider of its only compute node.
    state: the state of that provider.
    namesake: another provider that has the name of its only compute node, or of the host while it
        has no compute node.
    aggregates: all host aggregates.
    evacuations: those from the host that its nova-compute has not completed.
    """

    name: str
    services: tuple[Service, ...]
    nodes: tuple[Hypervisor, ...]
    mapped: bool | None
    provider: Provider | None
    state: ProviderState | None
    namesake: Provider | None
    aggregates: tuple[Aggregate, ...]
    evacuations: UnfinishedEvacuations

    @property
    def service(self) -> Service | None:
        """Its compute service, if it is the only one."""
        return self.services[0] if len(self.services) == 1 else None

    @property
    def node(self) -> Hypervisor | None:
        """Its compute node, if it is the only one."""
        return self.nodes[0] if len(self.nodes) == 1 else None


@d.dataclass(frozen=True)
class RedeployedHostReader:
    """Reads such hosts from one session."""

    session: Session

    def read(self, name: str) -> RedeployedHost:
        """Return the host whose compute service has the name `name`, without its evacuations."""
        nova = NovaReader(self.session.compute)
        providers = PlacementReader(self.session.placement).list_providers()
        all_services = get_listed_services(nova.list_services())
        services = [one for one in all_services if one.binary == COMPUTE and one.host == name]
        listed = require_compute_nodes(nova.list_hypervisors(with_servers=False))
        nodes = tuple(node for node in listed if node.host == name)
        # Placement is read first: a provider that is created meanwhile only seems to be missing.
        provider, node_name = None, name
        if len(nodes) == 1:
            provider, node_name = providers.get(nodes[0].uuid), nodes[0].name
        state = None
        if provider is not None:
            state = ProviderStateReader(self.session.placement).read(provider.uuid)
        namesakes = [entry for entry in providers.values() if entry.name == node_name]
        return RedeployedHost(
            name=name,
            services=tuple(services),
            nodes=nodes,
            mapped=_read_mapping(self.session.compute, name),
            provider=provider,
            state=state,
            namesake=next((entry for entry in namesakes if entry != provider), None),
            aggregates=nova.list_aggregates(),
            evacuations=UnfinishedEvacuations(name),
        )

    def add_evacuations(self, host: RedeployedHost, former_names: Iterable[str]) -> RedeployedHost:
        """Return the host with the evacuations that its nova-compute has not completed.

        former_names: what the host and its compute nodes were called before.
        """
        nodes = [node.name for node in host.nodes]
        names = {host.name, *nodes, *former_names}
        # The provider of a renamed host keeps the former name.
        if host.provider is not None:
            names.add(host.provider.name)
        nova = NovaReader(self.session.compute)
        found = read_unfinished_evacuations(nova, host.name, names, nodes)
        return d.replace(host, evacuations=found)


def _read_mapping(compute: Api, name: str) -> bool | None:
    path = f"/os-hosts/{urllib.parse.quote(name, safe='')}"
    reply = compute.get(path, _HOST_MICROVERSION)
    if reply.status == 200:
        return True
    # The mapping is looked up first. Without a compute node the answer is a 404 as well.
    return _UNMAPPED not in reply.detail if reply.status == 404 else None


OK, MISSING, DIFFERS, RESTORED, FAILED = "ok", "missing", "differs", "restored", "failed"
# A host without one of these is not complete, or not as it was asked for.
BAD_OUTCOMES = frozenset({MISSING, FAILED})
DISCOVER_HOSTS = "nova-manage cell_v2 discover_hosts"
_SYNC_AGGREGATES = "nova-manage placement sync_aggregates"


@d.dataclass(frozen=True)
class Check:
    """One part of a host.

    outcome: `ok`, `missing` (the host is not complete), `differs` (it is not what it was),
        `restored` or `failed` (it could not be restored).
    """

    name: str
    outcome: str
    detail: str


def list_checks(host: RedeployedHost) -> list[Check]:
    """Return the checks of a host, in the order in which its parts come back.

    A part that rests on a missing one is missing too, and says so.
    """
    return [Check(name, *judge(host)) for name, judge in _CHECKS.items()]


def _check_service(host: RedeployedHost) -> tuple[str, str]:
    service = host.service
    if not host.services:
        return MISSING, f"Nova lists no nova-compute on {host.name}: start it, it registers itself."
    if service is None:
        return MISSING, (
            f"Nova lists {len(host.services)} services nova-compute with the host name "
            f"{host.name}, in different cells: only one may remain."
        )
    if service.status == "UNKNOWN":
        return MISSING, "Its cell does not answer."
    # Nova shows such a service as down, whatever it reports.
    if service.forced_down:
        return MISSING, "It is forced down: unset that once the host is back."
    if service.state != "up":
        return MISSING, f"It is {service.state}, and last reported at {service.updated_at}."
    if service.status == "disabled":
        return OK, f"up, disabled ({service.disabled_reason or 'without a reason'})"
    return OK, f"up, {service.status}"


def _check_mapping(host: RedeployedHost) -> tuple[str, str]:
    if not host.services:
        return MISSING, "There is no service that could be assigned to a cell yet."
    if host.mapped is None:
        return MISSING, "Nova did not say whether the host is assigned to a cell."
    if not host.mapped:
        return MISSING, (
            "The host is not assigned to a cell, so Nova's API does not list its compute node and "
            f"nothing is scheduled there: run {DISCOVER_HOSTS}."
        )
    return OK, "assigned to a cell"


def _check_node(host: RedeployedHost) -> tuple[str, str]:
    if host.nodes:
        return OK, summarize_names(sorted(f"{node.name} ({node.uuid})" for node in host.nodes))
    # The compute node may well exist in the database of its cell.
    if host.mapped is False:
        return MISSING, "Nova does not list compute nodes of a host that is not assigned to a cell."
    return MISSING, (
        "Nova lists no compute node of the host: nova-compute creates it, so look into its log "
        "for what stops it."
    )


def _check_provider(host: RedeployedHost) -> tuple[str, str]:
    # With ironic each node has its own provider, and nodes change their service.
    if len(host.nodes) > 1:
        return OK, "one for each of its compute nodes is not checked"
    if host.provider is None:
        return MISSING, _explain_missing_provider(host)
    if host.node is not None and host.provider.name != host.node.name:
        return MISSING, (
            f"Provider {host.provider.uuid} has the name {host.provider.name}, and its compute "
            f"node the name {host.node.name}."
        )
    return OK, f"{host.provider.name} ({host.provider.uuid}), as the compute node"


def _explain_missing_provider(host: RedeployedHost) -> str:
    if host.namesake is not None and host.node is not None:
        return (
            f"Placement refuses to create provider {host.node.uuid} of the compute node, because "
            f"provider {host.namesake.uuid} has its name. See the finding name_conflict or "
            "former_provider."
        )
    if host.node is None:
        return "Without a compute node it is unknown which provider is that of the host."
    return (
        f"Placement has no provider {host.node.uuid}: nova-compute creates it at its next "
        "update, or says in its log why it cannot."
    )


def _check_state(
    host: RedeployedHost, check: Callable[[RedeployedHost, ProviderState], tuple[str, str]]
) -> tuple[str, str]:
    """Return what a check of the state of the only provider says."""
    if len(host.nodes) > 1:
        return OK, "not checked"
    if host.state is None:
        return MISSING, "The host has no provider."
    return check(host, host.state)


def _check_inventory(_host: RedeployedHost, state: ProviderState) -> tuple[str, str]:
    # All of a class may be reserved, which leaves nothing to schedule.
    present = {cls for cls, stock in state.inventories.items() if stock.capacity > 0}
    lacking = []
    # A host can dedicate all of its CPUs. Its disk may be that of a sharing provider.
    if not present & {"VCPU", "PCPU"}:
        lacking.append("VCPU")
    if "MEMORY_MB" not in present:
        lacking.append("MEMORY_MB")
    if lacking:
        return MISSING, (
            f"The provider has no {' and no '.join(lacking)}: nova-compute adds it at its next "
            "update."
        )
    return OK, ", ".join(f"{stock.total} {cls}" for cls, stock in sorted(state.inventories.items()))


def _check_traits(_host: RedeployedHost, state: ProviderState) -> tuple[str, str]:
    if not NOVA_TRAITS & state.traits:
        return MISSING, (
            "The provider has not COMPUTE_NODE: nova-compute adds it at its next update."
        )
    return OK, f"{len(state.traits)}, with COMPUTE_NODE"


def _check_aggregates(host: RedeployedHost, state: ProviderState) -> tuple[str, str]:
    own = [aggregate for aggregate in host.aggregates if host.name in aggregate.hosts]
    # Nova mirrors an aggregate when a host is added, and only logs it if that fails.
    unmirrored = [entry.name for entry in own if entry.uuid not in state.aggregates]
    if unmirrored:
        return MISSING, (
            f"The host is in {summarize_names(sorted(unmirrored))}, but its provider is not in the "
            f"aggregate of Placement: run {_SYNC_AGGREGATES}."
        )
    if not own:
        return OK, "in none"
    return OK, f"in {summarize_names(sorted(entry.name for entry in own))}, and its provider too"


def _check_evacuations(host: RedeployedHost) -> tuple[str, str]:
    for occupant in list_occupants(Contents(Host(host.name), evacuations=host.evacuations)):
        return MISSING, occupant.reason
    return OK, "none from the host waits for a start of nova-compute"


_CHECKS: dict[str, Callable[[RedeployedHost], tuple[str, str]]] = {
    "service": _check_service,
    "host mapping": _check_mapping,
    "compute node": _check_node,
    "provider": _check_provider,
    "inventory": functools.partial(_check_state, check=_check_inventory),
    "traits": functools.partial(_check_state, check=_check_traits),
    "aggregates": functools.partial(_check_state, check=_check_aggregates),
    "evacuations": _check_evacuations,
}


AGGREGATES, TRAITS, RATIOS = "aggregates", "traits", "ratios"
RESTORABLE = (AGGREGATES, TRAITS, RATIOS)

_UNKNOWN_CLOUD = (
    "The record was written by version 2.0.0 and does not name its cloud: make sure that it is of "
    "this cloud, because a host of the same name in another one has other traits."
)


@d.dataclass(frozen=True)
class Losses:
    """What a host had before, can have again by the API, and lacks now.

    host_aggregates: those of Nova. Nova mirrors them to Placement itself.
    aggregates: the uuids of those that only Placement has.
    ratios: the former allocation ratios, by resource class.
    """

    host_aggregates: tuple[Aggregate, ...] = ()
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    ratios: tuple[tuple[str, float], ...] = ()


def find_losses(host: RedeployedHost, record: FormerHost) -> Losses:
    """Return what the host lacks of its `record`. Pure."""
    by_uuid = {aggregate.uuid: aggregate for aggregate in host.aggregates}
    # An aggregate that was deleted and created again has another uuid, and another meaning.
    known = [by_uuid[former.uuid] for former in record.aggregates if former.uuid in by_uuid]
    host_aggregates = [aggregate for aggregate in known if host.name not in aggregate.hosts]
    then, now = record.provider, host.state
    if then is None or now is None:
        return Losses(tuple(host_aggregates))
    traits, _of_nova = find_lost_traits(then, now)
    lost_aggregates, _left = find_lost_aggregates(then, now, host.name, by_uuid)
    # A host aggregate that was deleted meanwhile is not one of Placement alone.
    former_uuids = {former.uuid for former in record.aggregates}
    return Losses(
        host_aggregates=tuple(host_aggregates),
        traits=tuple(sorted(traits)),
        aggregates=tuple(sorted(lost_aggregates - former_uuids)),
        ratios=_find_lost_ratios(then, now),
    )


def _find_lost_ratios(then: ProviderState, now: ProviderState) -> tuple[tuple[str, float], ...]:
    # A class that is gone is nova-compute's to bring back.
    common = sorted(then.inventories.keys() & now.inventories.keys())
    before = [(cls, then.inventories[cls].allocation_ratio) for cls in common]
    return tuple(one for one in before if one[1] != now.inventories[one[0]].allocation_ratio)


@d.dataclass(frozen=True)
class HostRestoration:
    """Compares one host with its record, and restores what the user wants.

    In check mode it writes nothing, and returns the checks as they would be.
    """

    aggregates: AggregateClient
    providers: ProviderWriter
    parts: Collection[str]
    check_mode: bool

    def restore(self, host: RedeployedHost, record: FormerHost) -> list[Check]:
        """Put back what `host` lacks, and return a check for each part of its record."""
        losses = find_losses(host, record)
        return [
            *self._restore_host_aggregates(host, record, losses),
            *self._restore_provider(host, losses),
            *_compare_service(host, record, losses, AGGREGATES in self.parts),
        ]

    def _restore_host_aggregates(
        self, host: RedeployedHost, record: FormerHost, losses: Losses
    ) -> Iterator[Check]:
        known = {aggregate.uuid for aggregate in host.aggregates}
        gone = [former for former in record.aggregates if former.uuid not in known]
        for former in gone:
            detail = f"Aggregate {former.name} ({former.uuid}) was deleted meanwhile."
            yield Check(f"host aggregate {former.name}", DIFFERS, detail)
        obstacle = "" if host.nodes else "Nova accepts only a host with a compute node."
        for aggregate in losses.host_aggregates:
            name, detail = f"host aggregate {aggregate.name}", f"Host {host.name} was in it."
            write = functools.partial(self.aggregates.add_host, aggregate, host.name)
            yield self._restore_part(name, AGGREGATES, detail, write, obstacle)
        if record.aggregates and not gone and not losses.host_aggregates:
            names = summarize_names(sorted(former.name for former in record.aggregates))
            yield Check("host aggregates", OK, f"still in {names}")

    def _restore_provider(self, host: RedeployedHost, losses: Losses) -> Iterator[Check]:
        provider, state = host.provider, host.state
        # What a host without a provider has lost is not known.
        if provider is None or state is None:
            return
        if losses.traits:
            detail = f"The provider had {summarize_names(losses.traits)}."
            write = functools.partial(self._add_to_provider, provider, losses.traits, ())
            yield self._restore_part("operator's traits", TRAITS, detail, write)
        if losses.aggregates:
            detail = f"The provider was in {summarize_names(losses.aggregates)}."
            write = functools.partial(self._add_to_provider, provider, (), losses.aggregates)
            yield self._restore_part("Placement aggregates", AGGREGATES, detail, write)
        for cls, ratio in losses.ratios:
            detail = f"It was {ratio} and is {state.inventories[cls].allocation_ratio}."
            write = functools.partial(self.providers.set_allocation_ratio, provider, cls, ratio)
            yield self._restore_part(f"allocation ratio of {cls}", RATIOS, detail, write)

    def _add_to_provider(
        self, provider: Provider, traits: Collection[str], aggregates: Collection[str]
    ) -> None:
        lacking, error = self.providers.add_traits_and_aggregates(provider, traits, aggregates)
        if lacking:
            names = summarize_names(sorted(lacking))
            raise error or CloudError(f"The provider still lacks {names}.")

    def _restore_part(
        self, name: str, part: str, detail: str, write: Callable[[], object], obstacle: str = ""
    ) -> Check:
        """Make one write, if its part is wanted, and return what became of it."""
        if part not in self.parts:
            return Check(name, DIFFERS, f"{detail} {_describe_opt_out(part)}")
        if obstacle:
            return Check(name, MISSING, f"{detail} {obstacle}")
        # Check mode comes last, so that it predicts what the real run would refuse.
        if self.check_mode:
            return Check(name, RESTORED, detail)
        try:
            write()
        except CloudError as error:
            return Check(name, FAILED, f"{detail} {error}")
        return Check(name, RESTORED, detail)


def _describe_opt_out(part: str) -> str:
    if part == RATIOS:
        return (
            "It stays, because nova-compute overwrites it where nova.conf sets it: add ratios to "
            "what is restored if nova.conf has only initial_cpu_allocation_ratio and the like."
        )
    return f"It stays, because {part} is not among what is restored."


def _compare_service(
    host: RedeployedHost, record: FormerHost, losses: Losses, restores_aggregates: bool
) -> Iterator[Check]:
    """Yield checks of what only the operator can decide: the zone and the state of the service."""
    if host.service is None:
        return
    coming = losses.host_aggregates if restores_aggregates else ()
    coming_zones = {aggregate.zone for aggregate in coming}
    # A zone that one of the aggregates brings back is not a difference.
    if record.zone and record.zone != host.service.zone and record.zone not in coming_zones:
        detail = f"It was {record.zone} and is {host.service.zone}: a host aggregate sets it."
        yield Check("availability zone", DIFFERS, detail)
    if record.disabled_reason and host.service.status != "disabled":
        detail = f"The service was disabled before ({record.disabled_reason}), and is enabled now."
        yield Check("disabled reason", DIFFERS, detail)


def restore_host(context: CloudContext) -> dict[str, t.Any]:
    """Check a host that was deployed again, and restore what the options say."""
    options = context.options
    if not options["host"].strip():
        raise InvalidInput("host must not be empty.")
    document = read_host_file(options["record"])
    session = context.connect()
    reader = RedeployedHostReader(session)
    host = reader.read(options["host"])
    record, restored = None, []
    if document is not None:
        service = host.service.id if host.service else None
        record = parse_former_host(document, host.name, service, name_cloud(session.cloud))
    if record is not None:
        writers = AggregateClient(session.compute), ProviderWriter(session.placement)
        restoration = HostRestoration(*writers, options["restore"], context.check_mode)
        restored = restoration.restore(host, record)
    changed = any(check.outcome == RESTORED for check in restored)
    # What Nova mirrors to Placement has changed with it.
    if changed and not context.check_mode:
        host = reader.read(options["host"])
    host = reader.add_evacuations(host, record.names if record else ())
    restarts = host.service is not None and host.service.state == "up"
    restarts = restarts and host.evacuations.restart_completes
    if restarts and context.check_mode and options["assume_restarted"]:
        host = d.replace(host, evacuations=UnfinishedEvacuations(host.name))
    checks = [*list_checks(host), *restored]
    if record is not None and not record.names_cloud:
        checks.append(Check("record", DIFFERS, _UNKNOWN_CLOUD))
    return {
        "changed": changed,
        "host": host.name,
        "checks": list(map(d.asdict, checks)),
        "complete": not any(check.outcome in BAD_OUTCOMES for check in checks),
        "evacuations": [entry.server for entry in host.evacuations.evacuations],
        "busy": list(host.evacuations.busy),
        "restart_completes": restarts,
        "mapped": host.mapped,
        "node": host.node.uuid if host.node else None,
        "former_node": record.node if record else None,
        "namesake": host.namesake.uuid if host.namesake else None,
        "recorded": record is not None,
    }
