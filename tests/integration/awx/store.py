"""The objects that AWX has, as far as its setup needs them, and how AWX shows and finds them."""

import dataclasses as d
import typing as t

Entry = dict[str, t.Any]

# Each of them starts jobs, so nodes and schedules can name any of them. `unified_job_type` has the
# name of these jobs.
JOB_TYPES = {
    "job_templates": "job",
    "workflow_job_templates": "workflow_job",
    "workflow_approval_templates": "workflow_approval",
    "projects": "project_update",
}
# This list contains the objects of several others.
UNIONS = {"unified_job_templates": tuple(JOB_TYPES)}
EDGES = ("always_nodes", "failure_nodes", "success_nodes")
# What a workflow can set for all jobs that it starts. None is not set.
PROMPTS = ("limit", "scm_branch", "job_tags", "skip_tags")
_ASKS = ("inventory", "labels", "limit", "variables")
_TEMPLATE: Entry = {
    **{f"ask_{name}_on_launch": False for name in _ASKS},
    "inventory": None,
    "extra_vars": "",
    "survey_enabled": False,
}
_NOTIFICATIONS = {
    f"notification_templates_{event}": "notification_templates"
    for event in ("approvals", "error", "started", "success")
}


@d.dataclass(frozen=True)
class Kind:
    """One type of object.

    `links` are the associations with any number of objects, and the list that these are in.
    """

    needed: tuple[str, ...] = ("name",)
    defaults: Entry = d.field(default_factory=dict)
    # The fields with the id of another object, which has to exist.
    refs: tuple[str, ...] = ()
    # The references to objects that a user needs rights for, to set them.
    used: tuple[str, ...] = ("organization",)
    unique: tuple[str, ...] = ("name", "organization")
    links: dict[str, str] = d.field(default_factory=dict)
    # The fields that a request cannot set.
    read_only: tuple[str, ...] = ()
    # The reference that decides on the organization, and deletes the object with the other one.
    owner: str = ""
    # The roles that teams can have for the object.
    roles: tuple[str, ...] = ()


KINDS = {
    "organizations": Kind(unique=("name",)),
    "teams": Kind(links={"roles": "roles"}),
    "roles": Kind(owner="content"),
    # They belong to no organization.
    "instance_groups": Kind(unique=("name",)),
    "credential_types": Kind(defaults={"namespace": None}, unique=("name",)),
    "credentials": Kind(unique=("name", "organization", "credential_type")),
    "execution_environments": Kind(
        ("name", "image"),
        {"organization": None, "credential": None},
        refs=("organization", "credential"),
        # Anybody may use any credential here.
        used=("organization",),
        # Also across organizations.
        unique=("name",),
    ),
    "projects": Kind(
        defaults={"scm_type": "", "scm_url": "", "scm_branch": "", "credential": None},
        refs=("organization", "credential"),
        used=("organization", "credential"),
        links=_NOTIFICATIONS,
        read_only=("status", "scm_revision", "last_job", "current_job"),
    ),
    "inventories": Kind(
        ("name", "organization"), {"pending_deletion": False}, refs=("organization",)
    ),
    "hosts": Kind(
        ("name", "inventory"),
        {"variables": ""},
        refs=("inventory",),
        used=("inventory",),
        unique=("name", "inventory"),
        owner="inventory",
    ),
    "notification_templates": Kind(
        ("name", "organization", "notification_type", "notification_configuration"),
        refs=("organization",),
    ),
    "job_templates": Kind(
        ("name", "project", "playbook"),
        {**_TEMPLATE, "job_type": "run", "execution_environment": None},
        refs=("project", "inventory", "execution_environment"),
        used=("project", "inventory"),
        links={
            **_NOTIFICATIONS,
            "credentials": "credentials",
            "instance_groups": "instance_groups",
        },
        # It comes from the project.
        read_only=("organization",),
        roles=("admin_role", "execute_role", "read_role"),
    ),
    "workflow_job_templates": Kind(
        defaults={**_TEMPLATE, **dict.fromkeys(PROMPTS), "organization": None},
        refs=("organization", "inventory"),
        links=_NOTIFICATIONS,
        roles=("admin_role", "execute_role", "approval_role", "read_role"),
    ),
    "workflow_job_template_nodes": Kind(
        ("workflow_job_template",),
        {"extra_data": {}, "unified_job_template": None, "all_parents_must_converge": False},
        refs=("workflow_job_template", "unified_job_template"),
        used=("workflow_job_template", "unified_job_template"),
        unique=("identifier", "workflow_job_template"),
        links=dict.fromkeys(EDGES, "workflow_job_template_nodes"),
        owner="workflow_job_template",
    ),
    "workflow_approval_templates": Kind(defaults={"timeout": 0}, unique=()),
    "schedules": Kind(
        ("name", "unified_job_template", "rrule"),
        {"extra_data": {}, "enabled": True},
        refs=("unified_job_template",),
        used=("unified_job_template",),
        unique=("name", "unified_job_template"),
        owner="unified_job_template",
    ),
    "jobs": Kind(),
    "project_updates": Kind(),
    "workflow_jobs": Kind(),
    "workflow_approvals": Kind(),
}


class Refused(Exception):
    """An answer other than a success."""

    def __init__(self, status: int, body: t.Any) -> None:
        super().__init__(status, body)
        self.status, self.body = status, body


def not_found() -> Refused:
    return Refused(404, {"detail": "Not found."})


def forbidden() -> Refused:
    return Refused(403, {"detail": "You do not have permission to perform this action."})


class Store:
    """All objects by list and id, their associations and their surveys.

    No two objects have the same id, not even in different lists.
    """

    def __init__(self) -> None:
        self.objects: dict[str, dict[int, Entry]] = {name: {} for name in KINDS}
        self.links: dict[tuple[int, str], list[int]] = {}
        self.surveys: dict[int, Entry] = {}
        self._kinds: dict[int, str] = {}

    def add(self, kind: str, fields: Entry) -> Entry:
        key = len(self._kinds) + 1
        entry = {"id": key, "description": "", **KINDS[kind].defaults, **fields}
        self.objects[kind][key], self._kinds[key] = entry, kind
        for role in KINDS[kind].roles:
            name = role.removesuffix("_role").capitalize()
            self.add("roles", {"name": name, "role_field": role, "content": key})
        return entry

    def kind_of(self, key: int) -> str:
        return self._kinds[key]

    def get(self, key: int) -> Entry:
        return self.objects[self._kinds[key]][key]

    def has(self, key: t.Any) -> bool:
        return key in self._kinds and key in self.objects[self._kinds[key]]

    def linked(self, key: int, link: str) -> list[int]:
        """Return the ids of the objects that are associated with an object."""
        return self.links.setdefault((key, link), [])

    def organization_of(self, key: int) -> int | None:
        """Return the organization that decides who may see and change an object."""
        entry, kind = self.get(key), self.kind_of(key)
        if kind == "organizations":
            return key
        if kind == "workflow_approval_templates":
            for node in self.objects["workflow_job_template_nodes"].values():
                if node["unified_job_template"] == key:
                    return self.organization_of(node["id"])
        if owner := entry.get(KINDS[kind].owner):
            return self.organization_of(owner)
        return entry.get("organization")

    def remove(self, key: int) -> None:
        """Delete an object with what belongs to it, and all references to it."""
        entry = self.objects[self.kind_of(key)].pop(key)
        if self.kind_of(key) == "workflow_job_template_nodes":
            self.objects["workflow_approval_templates"].pop(entry["unified_job_template"], None)
        for kind, description in KINDS.items():
            for other in list(self.objects[kind].values()):
                if other.get(description.owner) == key:
                    self.remove(other["id"])
                other |= {field: None for field in description.refs if other.get(field) == key}
        self.links = {owner: ids for owner, ids in self.links.items() if owner[0] != key}
        for ids in self.links.values():
            if key in ids:
                ids.remove(key)

    def shown(self, key: int) -> Entry:
        """Return an object as the API shows it."""
        kind, url = self.kind_of(key), f"/api/v2/{self.kind_of(key)}/{key}/"
        edges = EDGES if kind == "workflow_job_template_nodes" else ()
        return {
            **self.get(key),
            "type": kind.removesuffix("s"),
            "url": url,
            "related": {"launch": f"{url}launch/"},
            "summary_fields": self._summary(kind, self.get(key)),
            **{edge: list(self.linked(key, edge)) for edge in edges},
        }

    def _summary(self, kind: str, entry: Entry) -> Entry:
        references = {"organization", *KINDS[kind].refs}
        fields = {name: self._in_short(entry[name]) for name in references if entry.get(name)}
        if KINDS[kind].roles:
            fields["object_roles"] = {
                role["role_field"]: self._in_short(role["id"])
                for role in self.objects["roles"].values()
                if role["content"] == entry["id"]
            }
        return fields

    def _in_short(self, key: int) -> Entry:
        entry = self.get(key)
        short = {field: entry.get(field, "") for field in ("id", "name", "description", "timeout")}
        return {**short, "unified_job_type": JOB_TYPES.get(self.kind_of(key), "")}

    def matches(self, key: int, query: dict[str, str]) -> bool:
        """Tell whether an object has what a query with the lookups of Django asks for."""
        return all(self._has(key, field, wanted) for field, wanted in query.items())

    def _has(self, key: int, field: str, wanted: str) -> bool:
        field, _separator, lookup = field.partition("__")
        value = self.get(key).get(field)
        if lookup == "isnull":
            return (value is None) == (wanted == "true")
        if lookup == "in":
            return str(value) in wanted.split(",")
        if lookup:
            value = self.get(value)[lookup]
        return value is not None and str(value) == wanted
