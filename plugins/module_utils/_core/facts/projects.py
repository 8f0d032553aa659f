# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Keystone's answers about projects prove."""

from __future__ import annotations

from ..._common.errors import Reason
from ..models.snapshot import Projects, Snapshot


def find_project(uuid: str, snapshot: Snapshot) -> tuple[str, bool | None]:
    """Return the name of a project, and whether Keystone has it; None where it did not say so."""
    projects = snapshot.surroundings.projects
    for project in projects.listing.value or ():
        if project.uuid == uuid:
            return project.name, True
    lookup = projects.lookups.get(uuid)
    if lookup is None:
        return "", None
    if lookup.value is not None:
        return lookup.value.name, True
    if lookup.status == 404 and not explain_doubt(projects, snapshot.cloud.project):
        return "", False
    return "", None


def explain_doubt(projects: Projects, own_project: str | None) -> Reason | None:
    """Return why a 404 may not mean that there is no such project; empty if it does.

    own_project: the uuid of the project of these credentials.
    """
    listed = projects.listing.value
    if listed is None:
        return Reason(
            "projects_unread",
            f"Keystone answered {projects.listing.status} when asked for all projects, so these "
            "credentials may not see the projects of others",
        )
    if own_project not in {project.uuid for project in listed}:
        return Reason(
            "own_project_not_listed",
            "Keystone does not list the project of these credentials either: check that the "
            "identity endpoint of the service catalogue is the Keystone that gave the token",
        )
    if len(listed) == 1:
        return Reason(
            "only_own_project_listed", "Keystone lists no project but that of these credentials"
        )
    if len({project.domain for project in listed}) > 1:
        return None
    # Where all projects are of one domain, that has to be the only one.
    if projects.domains.value is not None and len(projects.domains.value) == 1:
        return None
    return Reason(
        "other_domains_not_listed",
        "Keystone lists only projects of one domain, so these credentials may not see those of "
        "other domains",
    )
