# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Projects in the scope, and those that own what was read."""

from __future__ import annotations

import dataclasses as d
from collections.abc import Callable, Mapping

from ..._common.errors import CloudError, InvalidInput
from ..._common.parallel import map_parallel
from ..._common.text import make_printable, suggest_names
from ..._common.uuids import normalize_uuid
from ..clients.nova import NovaReader
from ..clients.other_services import NotPermitted, ProjectReader
from ..clients.placement import PlacementReader
from ..clients.session import Session
from ..models.snapshot import NOT_ASKED, Answer, Projects, Scope, Snapshot


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
            known = self._placement.has_usages(uuid)
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
