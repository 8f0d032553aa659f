# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hosts of the aggregates, availability zones and cells that the scope names, and projects.

Each of the three narrows what the others name, and the names within one of them add up. Hosts are
names of compute services. Aggregates and zones are Nova's own answer. No API says which cell a host
is in, so cells come with their hosts, from `nova-manage cell_v2 list_hosts` or from the user.

What is looked up here decides only what is read. No proof depends on it.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ..._common.errors import CloudError, InvalidInput
from ..._common.text import make_printable, normalize_uuid, suggest_names, summarize_names
from ..clients.nova import NovaReader
from ..clients.other_services import NotPermitted, ProjectReader
from ..clients.placement import PlacementReader
from ..clients.session import Session
from ..facts.services import COMPUTE
from ..models.nova import Aggregate, Service
from ..models.snapshot import HostGroups, Scope
from .compute_nodes import list_services_with_retry

# The hosts of each cell, by the name or uuid with which the user names the cell.
CellHosts = t.Mapping[str, t.Collection[str]]


def resolve_host_groups(
    session: Session, scope: Scope, cell_hosts: CellHosts, warn: Callable[[str], None]
) -> Scope:
    """Return the scope with the hosts of the groups that it names.

    cell_hosts: the hosts of each cell, as `parse_cell_hosts` returns them.
    warn: is called with a sentence about hosts that are left out.
    Raises InvalidInput for a group that does not exist or has no hosts, and CloudError when Nova
    does not list its services or aggregates.
    """
    if scope.groups.is_empty:
        return scope
    services, aggregates = _read_groups(session)
    groups = find_hosts_of_groups(scope.groups, services, aggregates, cell_hosts, warn)
    return d.replace(scope, groups=groups)


def read_hosts_still_in_groups(session: Session, groups: HostGroups) -> frozenset[str] | None:
    """Return the hosts that are now in the aggregates and zones of a plan.

    The result is None where neither is named: hosts do not change their cell.
    Raises InvalidInput for a group that does not exist any more.
    """
    asked = d.replace(groups, cells=(), hosts=())
    if asked.is_empty:
        return None
    services, aggregates = _read_groups(session)
    found = find_hosts_of_groups(asked, services, aggregates, {}, lambda _sentence: None)
    return frozenset(found.hosts)


def _read_groups(session: Session) -> tuple[tuple[Service, ...], tuple[Aggregate, ...]]:
    nova = NovaReader(session.compute)
    answer = list_services_with_retry(nova)
    if answer.value is None:
        raise CloudError(
            f"Nova answered {answer.status} when asked for its services, so the hosts of the "
            "named groups cannot be found."
        )
    return answer.value, nova.list_aggregates()


def parse_cell_hosts(options: Mapping[str, t.Any]) -> dict[str, tuple[str, ...]]:
    """Return the hosts of each cell that the options name.

    Raises InvalidInput for anything but lists of names, and for a host of two cells.
    """
    hosts_by_cell: dict[str, tuple[str, ...]] = {}
    cells_by_host: dict[str, str] = {}
    for cell, hosts in (options["cell_hosts"] or {}).items():
        shown = make_printable(cell, 100)
        if not isinstance(hosts, (list, tuple)) or not all(map(_is_name, hosts)):
            raise InvalidInput(
                f"cell_hosts: the hosts of cell {shown} are not a list of names: write "
                f"{{{shown}: [compute-1, compute-2]}}, and put a name that YAML takes for a "
                "number or a truth value in quotes."
            )
        name = str(cell)
        hosts_by_cell[normalize_uuid(name) or name] = tuple(hosts)
        for host in set(hosts):
            other = cells_by_host.setdefault(host, shown)
            if other != shown:
                raise InvalidInput(
                    f"cell_hosts: host {make_printable(host, 100)} is in cell {other} and in "
                    f"cell {shown}, but a host is in one cell only."
                )
    return hosts_by_cell


def _is_name(value: t.Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value == value.strip()


def find_hosts_of_groups(
    groups: HostGroups,
    services: Iterable[Service],
    aggregates: Sequence[Aggregate],
    cell_hosts: CellHosts,
    warn: Callable[[str], None],
) -> HostGroups:
    """Return the groups with the uuids of the aggregates, and the hosts that are in all of them.

    Pure. Raises InvalidInput for a group that does not exist or has no hosts, and when no host is
    in all of them.
    """
    computes = [service for service in services if service.binary == COMPUTE]
    sets: list[set[str]] = []
    found = _find_aggregates(groups.aggregates, aggregates)
    if groups.aggregates:
        sets.append(_list_hosts_of_aggregates(found))
    if groups.availability_zones:
        sets.append(_list_hosts_in_zones(groups.availability_zones, computes, aggregates, warn))
    if groups.cells:
        sets.append(_list_hosts_in_cells(groups.cells, cell_hosts, computes, warn))
    resolved = d.replace(
        groups,
        aggregates=tuple(aggregate.uuid for aggregate in found),
        aggregate_names=tuple(aggregate.name for aggregate in found),
        aggregate_numbers=tuple(str(aggregate.id) for aggregate in found),
    )
    hosts = set.intersection(*sets)
    if not hosts:
        raise InvalidInput(
            f"No host is in {resolved}. A host must be in one of each of these: name fewer of "
            "them, or correct the names."
        )
    return d.replace(resolved, hosts=tuple(sorted(hosts)))


def _find_aggregates(names: Iterable[str], aggregates: Sequence[Aggregate]) -> list[Aggregate]:
    """Return the aggregates that are named, each once, in the order of their names."""
    found = [_find_aggregate(name, aggregates) for name in names]
    by_uuid = {aggregate.uuid: aggregate for aggregate in found}
    return sorted(by_uuid.values(), key=lambda aggregate: (aggregate.name, aggregate.uuid))


def _find_aggregate(name: str, aggregates: Sequence[Aggregate]) -> Aggregate:
    shown = make_printable(name, 100)
    matches = [row for row in aggregates if name in (row.name, row.uuid, str(row.id))]
    if not matches:
        advice = suggest_names(name, [aggregate.name for aggregate in aggregates])
        raise InvalidInput(f"aggregates: Nova has no aggregate {shown}. {advice}".rstrip())
    if len(matches) > 1:
        # The name of one can be the number of another.
        listed = ", ".join(
            f"{aggregate.uuid} (name {make_printable(aggregate.name, 100)}, id {aggregate.id})"
            for aggregate in matches
        )
        raise InvalidInput(
            f"aggregates: {shown} means {len(matches)} aggregates: {listed}. "
            "Give the UUID of the one that you mean."
        )
    return matches[0]


def _list_hosts_of_aggregates(aggregates: Iterable[Aggregate]) -> set[str]:
    hosts: set[str] = set()
    for aggregate in aggregates:
        # Most likely another one is meant.
        if not aggregate.hosts:
            raise InvalidInput(
                f"aggregates: aggregate {make_printable(aggregate.name, 100)} has no hosts. "
                "Leave it out, or correct the name."
            )
        hosts.update(aggregate.hosts)
    return hosts


def _list_hosts_in_zones(
    zones: Iterable[str],
    computes: Iterable[Service],
    aggregates: Iterable[Aggregate],
    warn: Callable[[str], None],
) -> set[str]:
    """Return the hosts of compute services in the zones.

    Nova says the zone of each service, also of the default one. It does not for a service of a cell
    that does not answer. Then an aggregate of that host can, unless the host is in the default
    zone.
    """
    zones_of_aggregates: dict[str, set[str]] = {}
    for aggregate in aggregates:
        if aggregate.zone:
            for host in aggregate.hosts:
                zones_of_aggregates.setdefault(host, set()).add(aggregate.zone)
    hosts_by_zone: dict[str, set[str]] = {}
    without_zone = []
    for service in computes:
        known = zones_of_aggregates.get(service.host, set())
        if service.zone:
            known = {service.zone}
        if not known:
            without_zone.append(service.host)
        for zone in known:
            hosts_by_zone.setdefault(zone, set()).add(service.host)
    hosts: set[str] = set()
    for zone in zones:
        if zone not in hosts_by_zone:
            advice = suggest_names(zone, hosts_by_zone)
            raise InvalidInput(
                "availability_zones: no compute service is in availability zone "
                f"{make_printable(zone, 100)}. {advice}".rstrip()
            )
        hosts |= hosts_by_zone[zone]
    if without_zone:
        warn(
            "availability_zones: Nova does not say in which zone "
            f"{_show_hosts(without_zone)} is, because a cell does not answer: it is not read."
        )
    return hosts


def _list_hosts_in_cells(
    cells: Iterable[str],
    cell_hosts: CellHosts,
    computes: Iterable[Service],
    warn: Callable[[str], None],
) -> set[str]:
    """Return the hosts that the cells have by `cell_hosts`."""
    if not cell_hosts:
        raise InvalidInput(
            "cells: no API says which hosts a cell has: set cell_hosts (orphan_cleanup_cell_hosts) "
            "to the hosts of each cell, as `nova-manage cell_v2 list_hosts` lists them."
        )
    hosts: set[str] = set()
    for cell in cells:
        shown = make_printable(cell, 100)
        of_cell = cell_hosts.get(cell)
        if of_cell is None:
            raise InvalidInput(
                f"cells: cell_hosts has no cell {shown}. {suggest_names(cell, cell_hosts)}".rstrip()
            )
        if not of_cell:
            raise InvalidInput(f"cells: cell {shown} has no hosts. Leave it out.")
        hosts.update(of_cell)
    # Also the hosts of a cell that does not answer are listed.
    unlisted = hosts - {service.host for service in computes}
    if unlisted:
        warn(
            f"cells: Nova lists no compute service of {_show_hosts(unlisted)}: if it still has a "
            "provider of its name, that is read."
        )
    return hosts


def _show_hosts(hosts: Collection[str]) -> str:
    shown = summarize_names(make_printable(host, 100) for host in sorted(set(hosts)))
    return f"host {shown}" if len(set(hosts)) == 1 else f"hosts {shown}"


def resolve_projects(session: Session, scope: Scope, warn: Callable[[str], None]) -> Scope:
    """Return the scope with the uuids and names of the projects that it names.

    warn: is called with a sentence about a project that could not be checked.
    Raises InvalidInput for a project that does not exist, and for a name of several projects.
    """
    resolver = _Resolver(session, warn)
    names_by_uuid = dict(map(resolver.resolve, scope.projects))
    uuids = sorted(names_by_uuid)
    return d.replace(
        scope, projects=tuple(uuids), project_names=tuple(names_by_uuid[uuid] for uuid in uuids)
    )


class _Resolver:
    def __init__(self, session: Session, warn: Callable[[str], None]) -> None:
        self._keystone = ProjectReader(session.identity)
        self._placement = PlacementReader(session.placement)
        self._warn = warn

    def resolve(self, entry: str) -> tuple[str, str]:
        """Return the uuid of one project, and its name; no name where it is not known."""
        if normalize_uuid(entry):
            return entry, self._check_uuid(entry)
        return self._find_name(entry)

    def _check_uuid(self, uuid: str) -> str:
        """Return the name of a project; Keystone may forbid to read it."""
        try:
            project = self._keystone.get_project(uuid)
            if project is not None:
                return project.name
            known = any(self._placement.get_usages(uuid).values())
        except CloudError as error:
            self._warn(f"projects: it is not known whether project {uuid} exists. {error}")
            return ""
        # Orphans of a project that Keystone has deleted may still be there.
        if not known:
            raise InvalidInput(
                f"projects: Keystone has no project {uuid}, and Placement no allocation of it. "
                "Correct it, or leave it out."
            )
        return ""

    def _find_name(self, name: str) -> tuple[str, str]:
        shown = make_printable(name, 100)
        try:
            found = self._keystone.find_projects(name)
        except NotPermitted as error:
            raise InvalidInput(
                f"projects: these credentials may not look up project {shown}: {error} "
                "Give the UUID of the project instead of its name."
            ) from error
        except CloudError as error:
            raise InvalidInput(
                f"projects: project {shown} cannot be looked up: {error} "
                "Give the UUID of the project instead of its name."
            ) from error
        if not found:
            advice = suggest_names(name, self._keystone.list_names())
            raise InvalidInput(f"projects: Keystone has no project {shown}. {advice}".rstrip())
        if len(found) > 1:
            listed = ", ".join(
                f"{project.uuid} (domain {make_printable(project.domain, 100)})"
                for project in found
            )
            raise InvalidInput(
                f"projects: {len(found)} projects are named {shown}: {listed}. "
                "Give the UUID of the one that you mean."
            )
        return found[0].uuid, found[0].name
