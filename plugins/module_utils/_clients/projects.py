# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Reads the projects of Keystone."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import CloudError

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._clients.api import Api


class NotPermitted(CloudError):
    """These credentials may not read projects."""


@d.dataclass(frozen=True)
class Project:
    """A project of Keystone; `domain` is the uuid of its domain."""

    uuid: str
    name: str
    domain: str


class ProjectReader:
    """Reads projects from Keystone; None where the service catalogue does not have it."""

    def __init__(self, api: Api | None) -> None:
        self._api = api

    def get_project(self, uuid: str) -> Project | None:
        """Return a project by its uuid; None without one. Raises CloudError."""
        path = f"/projects/{uuid}"
        found = self._read(path, f"for project {uuid}", lambda body: [_parse(body["project"])])
        return next(iter(found), None)

    def find_projects(self, name: str) -> list[Project]:
        """Return the projects with exactly this name, in all domains. Raises CloudError."""
        # The database of Keystone may take no notice of upper case, and an id must never be taken
        # from a name that is only like the one that the user gave.
        return [project for project in self._list(name=name) if project.name == name]

    def list_names(self) -> list[str]:
        """Return the names of all projects."""
        return [project.name for project in self._list()]

    def _list(self, **filters: str) -> list[Project]:
        return self._read("/projects", "for its projects", _parse_all, **filters)

    def _read(
        self, path: str, what: str, read: t.Callable[[t.Any], list[Project]], **filters: t.Any
    ) -> list[Project]:
        """Return what `read` makes of an answer; [] for a 404."""
        if self._api is None:
            raise CloudError("The service catalogue has no Keystone.")

        reply, value = self._api.read(path, None, lambda reply: read(reply.body), **filters)
        if reply.status in (401, 403):
            raise NotPermitted(f"{self._api.name} at {self._api.endpoint} answered {reply.status}.")
        self._api.expect(reply, what, 200, 404)
        return value or []


def _parse_all(body: t.Any) -> list[Project]:
    return [_parse(row) for row in body["projects"]]


def _parse(row: t.Any) -> Project:
    return Project(str(row["id"]), str(row["name"]), str(row.get("domain_id") or ""))
