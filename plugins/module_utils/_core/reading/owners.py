# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads from Keystone the projects that own what was read."""

from __future__ import annotations

from collections.abc import Mapping

from ..._common.parallel import map_parallel
from ..clients.nova import NovaReader
from ..clients.projects import ProjectReader
from ..models.snapshot import NOT_ASKED, Answer, Projects, Snapshot

MISSING_PROJECT = "missing_project"

# One listing of all projects costs Keystone about as much as so many lookups.
_FEW = 10
_MAX_LOOKUPS = 100
_WORKERS = 4


def read_projects(keystone: ProjectReader, nova: NovaReader, snapshot: Snapshot) -> Projects:
    """Return what Keystone says of the projects of all candidates.

    Where the scope names the kind, also of the projects of all servers. Nothing is asked where
    there are none. Raises CloudError when a service does not answer.
    """
    servers = _list_servers(nova, snapshot)
    wanted = {*_list_owners(snapshot), *servers} - {""}
    if snapshot.scope.projects:
        wanted &= set(snapshot.scope.projects)
    if not wanted:
        return Projects()
    listing = keystone.query_projects() if len(wanted) > _FEW else NOT_ASKED
    listed = {project.uuid for project in listing.value or ()}
    chosen = sorted(wanted - listed)[:_MAX_LOOKUPS]
    answers = map_parallel(keystone.query_project, chosen, _WORKERS)
    lookups = dict(zip(chosen, answers, strict=True))
    missing = {uuid for uuid, answer in lookups.items() if answer.status == 404}
    if missing and listing == NOT_ASKED:
        listing = keystone.query_projects()
    domains: Answer[tuple[str, ...]] = NOT_ASKED
    if missing and len({project.domain for project in listing.value or ()}) == 1:
        domains = keystone.query_domains()
    kept = {uuid: servers[uuid] for uuid in sorted(missing & set(servers))}
    return Projects(lookups=lookups, listing=listing, domains=domains, servers=kept)


def _list_owners(snapshot: Snapshot) -> set[str]:
    """Return the projects of the candidates' allocations."""
    owners = set()
    for evidence in snapshot.evidence.values():
        allocation = evidence.allocation.value
        if allocation is not None and allocation.resources and allocation.project:
            owners.add(allocation.project)
    return owners


def _list_servers(nova: NovaReader, snapshot: Snapshot) -> Mapping[str, tuple[str, ...]]:
    """Return the servers by project; none unless the scope names the kind."""
    if MISSING_PROJECT not in snapshot.scope.kinds:
        return {}
    by_project: dict[str, list[str]] = {}
    for server, project in nova.list_server_projects().value or ():
        by_project.setdefault(project, []).append(server)
    return {project: tuple(sorted(servers)) for project, servers in by_project.items()}
