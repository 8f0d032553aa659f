"""Who may see, change, start and approve what, by AWX's roles."""

from __future__ import annotations

import dataclasses as d
import typing as t

from .kinds import Entry
from .store import Store

# The job of each list belongs to the template that this field names.
_TEMPLATE_OF = {
    "jobs": "job_template",
    "project_updates": "project",
    "workflow_jobs": "workflow_job_template",
}


@d.dataclass(frozen=True)
class User:
    """The owner of a token.

    `roles` are pairs of the id of an object and one of admin, execute, approval, use, read; each
    of them includes read. A token with the scope `read` cannot write.
    """

    system_administrator: bool = False
    administers: frozenset[int] = frozenset()
    roles: frozenset[tuple[int, str]] = frozenset()
    scope: str = "write"
    # The ids of the teams whose roles the user has too.
    teams: frozenset[int] = frozenset()


class Rights:
    """The rights of one user."""

    def __init__(self, store: Store, user: User) -> None:
        self._store, self._user = store, user

    def _has_role(self, key: int, *names: str) -> bool:
        """Tell whether the user or a team of the user has one of these roles for an object."""
        held = set(self._user.roles)
        for team in self._user.teams:
            for role in map(self._store.get, self._store.linked(team, "roles")):
                held.add((role["content"], role["role_field"].removesuffix("_role")))
        return any((key, name) in held for name in names)

    def _administers(self, kind: str, entry: Entry) -> bool:
        if self._user.system_administrator:
            return True
        return self._store.organization_of(kind, entry) in self._user.administers

    def may_see(self, kind: str, entry: Entry) -> bool:
        if self._administers(kind, entry):
            return True
        if kind == "credential_types":
            return True
        if kind == "teams":
            # By default, an administrator of any organization sees all teams.
            return bool(self._user.administers) or entry["id"] in self._user.teams
        if kind == "roles":
            return self._may_see_by_id(entry["content"])
        if kind == "execution_environments" and entry["organization"] is None:
            return True
        if kind in _TEMPLATE_OF:
            return self._may_see_by_id(entry[_TEMPLATE_OF[kind]])
        if kind == "workflow_approvals":
            return self._may_see_by_id(entry["workflow_job_template"])
        if kind == "workflow_job_template_nodes":
            return self._may_see_by_id(entry["workflow_job_template"])
        if kind == "schedules":
            return self._may_see_by_id(entry["unified_job_template"])
        return self._has_role(entry["id"], "admin", "execute", "approval", "use", "read")

    def _may_see_by_id(self, key: int | None) -> bool:
        if key is None:
            return self._user.system_administrator
        return self.may_see(self._store.kind_of(key), self._store.get(key))

    def may_change(self, kind: str, entry: Entry) -> bool:
        if self._administers(kind, entry) or self._has_role(entry["id"], "admin"):
            return True
        if kind == "workflow_job_template_nodes":
            return self._has_role(entry["workflow_job_template"], "admin")
        if kind == "schedules":
            return self._has_role(entry["unified_job_template"], "admin")
        return kind == "hosts" and self._has_role(entry["inventory"], "admin")

    def may_give(self, kind: str, body: Entry) -> bool:
        """Tell whether the user may set the fields of a request that name a credential."""
        # Anybody may give any credential to an execution environment.
        return kind != "projects" or self._may_use(body, "credential")

    def may_associate(self, kind: str, entry: Entry, link: str, key: t.Any) -> bool:
        """Tell whether the user may associate an object with another, or end that."""
        if link == "roles":
            # The administrator of an object grants its roles, to teams that he can see.
            content = self._store.get(key)["content"] if self._store.has(key, ["roles"]) else None
            return self._may_change_by_id(content) if content else True
        if not self.may_change(kind, entry):
            return False
        if link == "instance_groups" and self._store.has(key, ["instance_groups"]):
            # An administrator of an organization has no role for them of himself.
            return self._user.system_administrator or self._has_role(key, "admin", "use")
        return True

    def may_create(self, kind: str, body: Entry) -> bool:
        """Tell whether the user may create an object with these fields."""
        if self._user.system_administrator:
            return True
        if kind == "job_templates":
            return self._may_use(body, "project", "inventory")
        if kind == "schedules":
            return self.may_start(body["unified_job_template"])
        if kind == "hosts":
            return self._may_change_by_id(body["inventory"])
        if kind == "workflow_job_template_nodes":
            template = body.get("unified_job_template")
            if template and not self.may_start(template):
                return False
            return self._may_change_by_id(body["workflow_job_template"])
        if body.get("organization") not in self._user.administers:
            return False
        return self.may_give(kind, body)

    def _may_use(self, body: Entry, *fields: str) -> bool:
        keys = [body[field] for field in fields if body.get(field)]
        return all(self.may_use(key) for key in keys)

    def _may_change_by_id(self, key: int) -> bool:
        return self.may_change(self._store.kind_of(key), self._store.get(key))

    def may_use(self, key: int) -> bool:
        return self._may_change_by_id(key) or self._has_role(key, "use")

    def may_start(self, key: int) -> bool:
        """Tell whether the user may start a template."""
        return self._may_change_by_id(key) or self._has_role(key, "execute")

    def may_approve(self, approval: Entry) -> bool:
        workflow = approval["workflow_job_template"]
        return self._may_change_by_id(workflow) or self._has_role(workflow, "approval")
