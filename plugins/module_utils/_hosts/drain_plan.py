# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the servers of a host would leave it, and where to. Pure.

Placement decides whether a host has room. What Nova's scheduler decides after it, and what can be
known of that, is here: disabled and dead hosts, server groups, and aggregates that are kept for
others.

What is packed is a possible assignment: each server is on a host that could take it alone, and no
provider has more on it than is free. A better assignment may exist, so a server that is left over
may fit after all; one that is placed together with the others certainly does.
"""

from __future__ import annotations

import dataclasses as d
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .._common.text import format_count, make_printable, summarize_names
from .._core.models.nova import Aggregate, Migration, Service
from .._core.models.other_services import ServerPort
from .._core.models.placement import AllocationCandidates, Allocations, Resources
from .draining import (
    AFFINITY,
    ANTI_AFFINITY,
    SOFT_AFFINITY,
    SOFT_ANTI_AFFINITY,
    STAYS,
    DrainPlanDocument,
    DrainServer,
    DrainSettings,
    MoveNeed,
    MoveOption,
    PredictionDocument,
    ServerGroup,
    Way,
)
from .migrations import explain_returning
from .move_ways import allows_group, build_need, decide_way, find_isolated_hosts

# How many reasons the sentence about a plan has.
_MAX_REASONS = 3
# A server cannot leave its group, and Nova moves no member away from the others.
_GROUP_ADVICE = {
    AFFINITY: "have its owner create it again without the group, or move it by hand",
    ANTI_AFFINITY: "add a host, or move another member of the group",
}


@d.dataclass(frozen=True)
class HostReading:
    """Everything that decides how a host can be drained.

    service: that of the host. services: the compute services of the cloud.
    nodes: the hosts of the compute nodes, by the uuid of the node.
    allocations, ports, migrations: by server; migrations that have not ended.
    obstacles: why servers stay for another reason than what they are, by server.
    places: the hosts of the members of server groups, by server.
    candidates: Placement's answers. shortages: by need, the classes of which no host has enough.
    returning: by server, the hosts that it was evacuated from and that would destroy it.
    last_traits: the traits that flavors require and no other host has, with these flavors.
    at: when Nova listed the migrations.
    """

    host: str
    service: Service
    services: Sequence[Service]
    servers: Sequence[DrainServer]
    nodes: Mapping[str, str] = d.field(default_factory=dict)
    allocations: Mapping[str, Allocations] = d.field(default_factory=dict)
    ports: Mapping[str, Sequence[ServerPort]] = d.field(default_factory=dict)
    migrations: Mapping[str, Sequence[Migration]] = d.field(default_factory=dict)
    obstacles: Mapping[str, Way] = d.field(default_factory=dict)
    groups: Sequence[ServerGroup] = ()
    places: Mapping[str, str] = d.field(default_factory=dict)
    aggregates: Sequence[Aggregate] = ()
    candidates: Mapping[MoveNeed, AllocationCandidates] = d.field(default_factory=dict)
    shortages: Mapping[MoveNeed, Sequence[str]] = d.field(default_factory=dict)
    last_traits: Mapping[str, Sequence[str]] = d.field(default_factory=dict)
    returning: Mapping[str, Sequence[str]] = d.field(default_factory=dict)
    at: str | None = None

    @property
    def other_hosts(self) -> set[str]:
        """The hosts that Nova's scheduler may select, without the one to drain."""
        return {one.host for one in self.services if is_selectable(one) and one.host != self.host}

    def get_need(self, server: DrainServer) -> MoveNeed | None:
        return build_need(server, self.allocations.get(server.uuid), self.aggregates)

    def list_groups(self, server: DrainServer) -> list[ServerGroup]:
        # Nova lets a server be in one group only, but a list costs nothing.
        return [group for group in self.groups if server.uuid in group.members]


@d.dataclass
class Parcel:
    """A server to place.

    amounts: what it needs in all, by resource class. options: where it could go alone.
    """

    uuid: str
    amounts: Resources
    options: Sequence[MoveOption]


@d.dataclass
class _Judged(Parcel):
    """A server with what was concluded about it."""

    server: DrainServer
    way: Way
    warnings: list[str]


def is_up(service: Service) -> bool:
    """Return whether a service is surely up."""
    return service.state == "up" and not service.forced_down


def is_selectable(service: Service) -> bool:
    """Return whether Nova's scheduler may select the host of a compute service."""
    return service.status == "enabled" and is_up(service)


def build_drain_plan(reading: HostReading, settings: DrainSettings) -> DrainPlanDocument:
    """Return how each server would leave the host, where to, and whether there is room for all."""
    judged = [_judge_server(server, reading, settings) for server in reading.servers]
    # A server that no host can take alone stays, so that it is not even asked for.
    movable = [entry for entry in judged if entry.way.how != STAYS]
    free = collect_free_amounts(reading.candidates.values())
    packing = Packing(free, reading.groups, dict(reading.places), reading.host)
    packing.place_all(movable)
    for entry in movable:
        if entry.uuid not in packing.hosts:
            entry.warnings.append("there is room for it alone, but not for all servers together")
    # They move in the order of the packing, so that a big server finds the gap that is kept for it.
    order = {parcel.uuid: number for number, parcel in enumerate(sort_biggest_first(movable))}
    judged.sort(key=lambda entry: (order.get(entry.uuid, len(order)), entry.server.name))
    predictions = [_describe(entry, packing.hosts.get(entry.uuid)) for entry in judged]
    return {
        "host": reading.host,
        "servers": predictions,
        "warnings": list(_find_host_warnings(reading)),
        "movable": len(movable),
        "fitting": len(packing.hosts),
        "summary": summarize_plan(reading.host, predictions),
    }


def _judge_server(server: DrainServer, reading: HostReading, settings: DrainSettings) -> _Judged:
    migrations = reading.migrations.get(server.uuid, ())
    ports = reading.ports.get(server.uuid, ())
    is_host_up = is_up(reading.service)
    way = decide_way(server, reading.host, is_host_up, settings, migrations, ports, reading.at)
    if way.how != STAYS:
        way = reading.obstacles.get(server.uuid, way)
    warnings, returning = list(way.warnings), reading.returning.get(server.uuid)
    if way.how != STAYS and returning:
        way = Way(STAYS, *explain_returning(returning))
    need: MoveNeed | None = None
    options: list[MoveOption] = []
    if way.how != STAYS:
        need = reading.get_need(server)
        options = list_options(server, need, reading)
        if not options:
            way = Way(STAYS, *_explain_no_host(server, need, reading))
        else:
            warnings += _find_group_warnings(server, options, reading)
    amounts = dict(need.resources) if need else {}
    return _Judged(server.uuid, amounts, options, server, way, warnings)


def list_options(
    server: DrainServer, need: MoveNeed | None, reading: HostReading
) -> list[MoveOption]:
    """Return where a server could go alone."""
    isolated = find_isolated_hosts(server, reading.aggregates)
    groups = reading.list_groups(server)
    # Placement knows neither of these; Nova's scheduler looks at them after its answer.
    return [
        option
        for option in list_offers(need, reading)
        if option.host not in isolated
        and _find_refusing_group(groups, server, option.host, reading) is None
    ]


def _find_refusing_group(
    groups: Iterable[ServerGroup], server: DrainServer, host: str, reading: HostReading
) -> ServerGroup | None:
    """Return the first group that keeps a server from a host, None if none does."""
    places, source = reading.places, reading.host
    refusing = (one for one in groups if not allows_group(one, server.uuid, host, places, source))
    return next(refusing, None)


def list_offers(need: MoveNeed | None, reading: HostReading) -> list[MoveOption]:
    """Return what Placement offers on hosts that the scheduler may select."""
    if need is None or need not in reading.candidates:
        return []
    candidates = reading.candidates[need]
    # The host itself is offered too as long as it is not disabled.
    others = reading.other_hosts
    found = [(_find_host(each, candidates, reading.nodes), each) for each in candidates.allocations]
    return [MoveOption(host, amounts) for host, amounts in found if host and host in others]


def _find_host(
    allocations: Allocations, candidates: AllocationCandidates, nodes: Mapping[str, str]
) -> str | None:
    """Return the host of a candidate; the other trees in it are those of sharing providers."""
    roots = (candidates.summaries[provider].root for provider in allocations)
    return next((nodes[root] for root in roots if root in nodes), None)


def collect_free_amounts(answers: Iterable[AllocationCandidates]) -> dict[str, dict[str, int]]:
    """Return what is free on each provider, by uuid; the least that any answer says."""
    free: dict[str, dict[str, int]] = {}
    for candidates in answers:
        for provider, summary in candidates.summaries.items():
            amounts = free.setdefault(provider, {})
            # The answers are from different moments, and one of them may be late.
            for cls, capacity in summary.capacity.items():
                left = capacity - summary.used.get(cls, 0)
                amounts[cls] = min(left, amounts.get(cls, left))
    return free


def _explain_no_host(
    server: DrainServer, need: MoveNeed | None, reading: HostReading
) -> tuple[str, str]:
    """Return why no host can take a server, and what to do about it."""
    if need is None:
        return "neither its flavor nor its allocation shows what it needs", "move it by hand"
    offers = {option.host for option in list_offers(need, reading)}
    if not offers:
        return _explain_no_offer(need, reading)
    isolated = find_isolated_hosts(server, reading.aggregates)
    free_hosts = sorted(offers - isolated.keys())
    if not free_hosts:
        names = sorted({isolated[host] for host in offers})
        return (
            f"the hosts with room are kept for others by aggregates ({summarize_names(names)})",
            "add a host that may take it",
        )
    # Each of these hosts is refused by a group; that of the first one stands for all.
    group = _find_refusing_group(reading.list_groups(server), server, free_hosts[0], reading)
    if group is None:
        return "the hosts with room have changed while they were read", "run again"
    return (
        f"its server group {group.name} ({group.policy}) allows none of the hosts with room "
        f"({summarize_names(free_hosts)})",
        _GROUP_ADVICE[group.policy],
    )


def _explain_no_offer(need: MoveNeed, reading: HostReading) -> tuple[str, str]:
    amounts = dict(need.resources)
    short = [cls for cls in reading.shortages.get(need, ()) if cls in amounts]
    advice = "make room on another host, or add a host"
    if short:
        texts = [describe_amount(cls, amounts[cls]) for cls in short]
        return f"it needs {' and '.join(texts)}, and no other host has that free", advice
    texts = [describe_amount(cls, amount) for cls, amount in need.resources]
    text = f"it needs {', '.join(texts)}"
    if need.required:
        text += f" with {', '.join(sorted(need.required))}"
    if need.member_of:
        text += " in its availability zone and aggregates"
    return f"{text}, and no other host has all of that free", advice


def describe_amount(cls: str, amount: int) -> str:
    """Return an amount of a resource class as an operator says it."""
    if cls == "MEMORY_MB" and amount % 1024 == 0:
        return f"{amount // 1024} GiB of memory"
    units = {"MEMORY_MB": "MiB of memory", "DISK_GB": "GiB of disk"}
    return f"{amount} {units.get(cls, cls)}"


def _find_group_warnings(
    server: DrainServer, options: Sequence[MoveOption], reading: HostReading
) -> Iterator[str]:
    """Yield which soft policy would be violated wherever the server goes."""
    hosts = {option.host for option in options}
    for group in reading.list_groups(server):
        members = set(group.members).intersection(reading.places) - {server.uuid}
        others = {reading.places[member] for member in members}
        if group.policy == SOFT_ANTI_AFFINITY and hosts <= others:
            yield (
                f"each host with room already has a member of its server group {group.name} "
                f"({group.policy})"
            )
        if group.policy == SOFT_AFFINITY and others and not hosts & others:
            yield (
                f"no host with room has a member of its server group {group.name} ({group.policy})"
            )


def _find_host_warnings(reading: HostReading) -> Iterator[str]:
    """Yield what the cloud loses while the host is disabled."""
    others = reading.other_hosts
    # The zone of hosts without a zone has no aggregate, but every service names its zone.
    zone = reading.service.zone
    in_zone = {service.host for service in reading.services if service.zone == zone}
    if zone and not in_zone & others:
        yield f"Availability zone {zone} is left without a host that is up and enabled."
    for aggregate in reading.aggregates:
        if reading.host in aggregate.hosts and not others & set(aggregate.hosts):
            yield f"Aggregate {aggregate.name} is left without a host that is up and enabled."
    for trait, flavors in sorted(reading.last_traits.items()):
        yield (
            f"No other host has trait {trait}, which flavors require "
            f"({summarize_names(sorted(flavors))})."
        )


def _describe(entry: _Judged, to: str | None) -> PredictionDocument:
    return {
        "uuid": entry.server.uuid,
        "name": entry.server.name,
        "status": entry.server.server.status,
        "flavor": entry.server.flavor_name,
        "how": entry.way.how,
        "hosts": sorted({option.host for option in entry.options}),
        "to": to,
        "reason": entry.way.reason,
        "advice": entry.way.advice,
        "warnings": entry.warnings,
    }


def summarize_plan(host: str, predictions: Sequence[PredictionDocument]) -> str:
    """Return the plan in one sentence, with the reasons of the first servers that do not fit."""
    if not predictions:
        return f"No server is on {host}."
    # On a dead host all servers stay for the same reason, which is said once.
    left: dict[str, list[str]] = {}
    for entry in predictions:
        if entry["to"] is not None:
            continue
        reason = entry["reason"]
        if entry["how"] != STAYS:
            reason = "there is no room for it together with the others"
        left.setdefault(make_printable(reason), []).append(make_printable(entry["name"]))
    staying = sum(map(len, left.values()))
    total = format_count(len(predictions), "server", "servers")
    text = f"{len(predictions) - staying} of {total} on {host} can leave"
    if left:
        text += f" ({_summarize_reasons(left)})"
    return f"{text}."


def _summarize_reasons(left: Mapping[str, Sequence[str]]) -> str:
    """Return the first reasons with their servers, and how many more servers there are."""
    parts = [f"{summarize_names(names)}: {reason}" for reason, names in left.items()]
    more = sum(map(len, list(left.values())[_MAX_REASONS:]))
    return "; ".join([*parts[:_MAX_REASONS], *([f"and {more} more"] if more else [])])


@d.dataclass
class Packing:
    """The assignment of servers to hosts, with what is then still free.

    free: by provider uuid. places: the hosts of the members of groups, by uuid.
    source: the host that all servers leave. hosts: those of the servers that are placed.
    """

    free: Mapping[str, dict[str, int]]
    groups: Sequence[ServerGroup] = ()
    places: dict[str, str] = d.field(default_factory=dict)
    source: str = ""
    hosts: dict[str, str] = d.field(default_factory=dict)

    def place_all(self, parcels: Sequence[Parcel]) -> None:
        """Place the servers, the biggest first."""
        for parcel in sort_biggest_first(parcels):
            option = self._choose(parcel)
            if option is not None:
                self._take(parcel.uuid, option)

    def _choose(self, parcel: Parcel) -> MoveOption | None:
        """Return the option that leaves the least free, so that big gaps stay for big servers."""
        fitting = [option for option in parcel.options if self._fits(parcel.uuid, option)]
        if not fitting:
            return None
        return min(fitting, key=lambda option: (self._rate_rest(option), option.host))

    def _fits(self, uuid: str, option: MoveOption) -> bool:
        # Sharing providers count too: several hosts take from what is free there.
        for provider, amounts in option.amounts.items():
            free = self.free.get(provider, {})
            if any(amount > free.get(cls, 0) for cls, amount in amounts.items()):
                return False
        return all(
            allows_group(group, uuid, option.host, self.places, self.source)
            for group in self.groups
            if uuid in group.members
        )

    def _rate_rest(self, option: MoveOption) -> float:
        """Return how much of what is free would remain, between 0 and 1: the least of any class."""
        rest = 1.0
        for provider, amounts in option.amounts.items():
            for cls, amount in amounts.items():
                free = self.free[provider][cls]
                rest = min(rest, (free - amount) / max(free, 1))
        return rest

    def _take(self, uuid: str, option: MoveOption) -> None:
        for provider, amounts in option.amounts.items():
            for cls, amount in amounts.items():
                self.free[provider][cls] -= amount
        # The next member of its group is judged by this place.
        self.places[uuid] = option.host
        self.hosts[uuid] = option.host


def sort_biggest_first(parcels: Sequence[Parcel]) -> list[Parcel]:
    """Return the servers by their largest fraction of the largest amount of a class.

    Those with the fewest options come first among servers of one size.
    """
    largest: dict[str, int] = {}
    for parcel in parcels:
        for cls, amount in parcel.amounts.items():
            largest[cls] = max(largest.get(cls, 1), amount)

    def rate(parcel: Parcel) -> tuple[float, int, str]:
        sizes = [amount / largest[cls] for cls, amount in parcel.amounts.items()]
        return (-max(sizes, default=0.0), len(parcel.options), parcel.uuid)

    return sorted(parcels, key=rate)
