# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the projects of Keystone."""

from __future__ import annotations

import typing as t
import urllib.parse

from ..._common.errors import CloudError
from ..models.snapshot import Answer
from ..models.surroundings import Project
from .api import Api, Reply


class NotPermitted(CloudError):
    """These credentials may not read projects."""


class ProjectReader:
    """Reads projects from Keystone; None where the service catalogue does not have it."""

    def __init__(self, api: Api | None) -> None:
        self._api = api

    def get_project(self, uuid: str) -> Project | None:
        """Return a project by its uuid; None without one. Raises CloudError."""
        api = self._require_api()
        reply, project = api.read(
            f"/projects/{uuid}", None, lambda reply: _parse(reply.body["project"])
        )
        _expect(api, reply, f"for project {uuid}", 200, 404)
        return project

    def query_project(self, uuid: str) -> Answer[Project]:
        """Look up a project as evidence; any status is an answer.

        A 404 means that Keystone has no such project: to who may not see all projects it answers
        403, also for a project that does not exist (keystone/api/projects.py, ProjectResource.get).
        Raises CloudError without a Keystone.
        """
        path = f"/projects/{urllib.parse.quote(uuid, safe='')}"
        api = self._require_api()
        return api.ask(path, None, lambda reply: _parse(reply.body["project"]))

    def query_projects(self) -> Answer[tuple[Project, ...]]:
        """Return the projects that these credentials may list, as evidence.

        Raises CloudError without a Keystone.
        """
        api = self._require_api()
        return api.ask_pages("/projects", "projects", _parse)

    def query_domains(self) -> Answer[tuple[str, ...]]:
        """Return the uuids of the domains that these credentials may list, as evidence.

        Raises CloudError without a Keystone.
        """
        api = self._require_api()
        return api.ask_pages("/domains", "domains", lambda row: str(row["id"]))

    def find_projects(self, name: str) -> list[Project]:
        """Return the projects with exactly this name, in all domains. Raises CloudError."""
        # The database of Keystone may take no notice of upper case, and an id must never be taken
        # from a name that is only like the one that the user gave.
        return [project for project in self._list(name=name) if project.name == name]

    def list_names(self) -> list[str]:
        """Return the names of all projects."""
        return [project.name for project in self._list()]

    def _list(self, **filters: str) -> tuple[Project, ...]:
        api = self._require_api()
        reply, projects = api.read_pages("/projects", "projects", _parse, **filters)
        _expect(api, reply, "for its projects")
        return projects or ()

    def _require_api(self) -> Api:
        if self._api is None:
            raise CloudError("The service catalogue has no Keystone.")
        return self._api


def _expect(api: Api, reply: Reply, what: str, *statuses: int) -> None:
    if reply.status in (401, 403):
        raise NotPermitted(f"{api.name} at {api.endpoint} answered {reply.status}.")
    api.expect(reply, what, *statuses)


def _parse(row: t.Any) -> Project:
    return Project(str(row["id"]), str(row["name"]), str(row.get("domain_id") or ""))
