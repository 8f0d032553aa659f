# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A project that Keystone no longer has, with servers that live on."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ..._common.errors import Reason
from ..._common.text import format_count, summarize_names
from ..facts.groups import explain_doubt
from ..facts.index import SnapshotIndex
from ..models.finding import DRIFTED, UNDECIDED, Finding
from ..models.kind import CONDITION, REPORT, define_kind
from ..models.snapshot import PROJECT_SERVERS, PROJECTS
from ..options.policy import Policy

KIND = define_kind(
    __name__, __doc__, CONDITION, REPORT, needs=(PROJECTS,), named_needs=(PROJECT_SERVERS,)
)


def check(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the projects that own live servers and that Keystone no longer has.

    Proof: Nova has a server of the project. Keystone answers 404 when asked for the project
    directly, and these credentials have shown that they see other projects: Keystone lists their
    own project to them, and one of another domain where there is more than one domain. Otherwise
    the finding is undecided.

    Needs: Keystone. Detection asks for the projects of all servers that it looks up, and for those
    of all servers of the cloud if you name this kind in `orphan_cleanup_kinds`.

    Change: None. The servers live on, and nobody but an administrator can use or delete them.
    """
    projects = index.snapshot.surroundings.projects
    owners = _list_live_servers(index)
    for uuid, lookup in sorted(projects.lookups.items()):
        if lookup.status != 404 or not _is_reported_here(uuid, index):
            continue
        servers = sorted({*owners.get(uuid, ()), *projects.servers.get(uuid, ())})
        # What else is allocated for the project is an orphan, or somebody else's.
        if not servers:
            continue
        doubt = explain_doubt(projects, index.snapshot.cloud.project)
        owned = format_count(len(servers), "server of it exists", "servers of it exist")
        reason = Reason(
            "project_gone",
            f"Keystone has no project {uuid}, but {owned}: {summarize_names(servers)}.",
        )
        if doubt:
            reason = reason.but(doubt)
        else:
            listing = f"openstack server list --all-projects --project {shlex.quote(uuid)}"
            reason = reason.extend(
                "The servers live on, and only an administrator can reach them: list them with "
                f"{listing}. Nova cannot give a server to another project: make images of what "
                "somebody still needs, and delete the rest."
            )
        verdict, evidence = UNDECIDED if doubt else DRIFTED, (lookup, projects.listing)
        yield Finding("missing_project", verdict, uuid, reason, evidence=evidence)


def _is_reported_here(uuid: str, index: SnapshotIndex) -> bool:
    """Return whether this shard reports a project.

    Where the servers of all projects were listed, all shards know the same projects.
    """
    return "missing_project" not in index.snapshot.scope.kinds or index.is_in_shard(uuid)


def _list_live_servers(index: SnapshotIndex) -> dict[str, set[str]]:
    """Return the live servers by the project that Nova has for them, of those that were looked up.

    Placement may have another one for the allocation, which `wrong_owner` finds.
    """
    servers: dict[str, set[str]] = {}
    for evidence in index.snapshot.evidence.values():
        server = evidence.server.value
        if server is not None and server.project:
            servers.setdefault(server.project, set()).add(evidence.uuid)
    return servers
