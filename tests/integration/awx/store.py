"""The objects of the stand-in for AWX, and how AWX shows and finds them."""

from __future__ import annotations

import typing as t

from .kinds import JOB_TYPES, KINDS, Entry


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
        self._last = 0

    def add(self, kind: str, fields: Entry) -> Entry:
        self._last += 1
        entry = {"id": self._last, "description": "", **KINDS[kind].defaults, **fields}
        self.objects[kind][entry["id"]] = entry
        for role in KINDS[kind].roles:
            name = role.removesuffix("_role").capitalize()
            self.add("roles", {"name": name, "role_field": role, "content": entry["id"]})
        return entry

    def kind_of(self, key: int) -> str:
        for kind, entries in self.objects.items():
            if key in entries:
                return kind
        raise KeyError(key)

    def get(self, key: int) -> Entry:
        return self.objects[self.kind_of(key)][key]

    def has(self, key: t.Any, kinds: t.Iterable[str]) -> bool:
        return any(key in self.objects[kind] for kind in kinds)

    def linked(self, key: int, link: str) -> list[int]:
        """Return the ids of the objects that are associated with an object."""
        return self.links.setdefault((key, link), [])

    def organization_of(self, kind: str, entry: Entry) -> int | None:
        """Return the organization that decides who may see and change an object."""
        if kind == "organizations":
            return int(entry["id"])
        if entry.get("organization") is not None:
            return int(entry["organization"])
        if kind == "workflow_approval_templates":
            return self._organization_of_approval(entry)
        for field in ("inventory", "workflow_job_template", "unified_job_template"):
            owner = entry.get(field)
            if kind in ("hosts", "workflow_job_template_nodes", "schedules") and owner:
                return self.organization_of(self.kind_of(owner), self.get(owner))
        return None

    def _organization_of_approval(self, approval: Entry) -> int | None:
        for node in self.objects["workflow_job_template_nodes"].values():
            if node["unified_job_template"] == approval["id"]:
                return self.organization_of("workflow_job_template_nodes", node)
        return None

    def remove(self, key: int) -> None:
        """Delete an object with what belongs to it, and all references to it."""
        kind = self.kind_of(key)
        if kind == "workflow_job_templates":
            self._remove_approvals(key)
        del self.objects[kind][key]
        for other, description in KINDS.items():
            for field in description.refs:
                for entry in list(self.objects[other].values()):
                    if entry.get(field) != key:
                        continue
                    if field in description.owners:
                        self.remove(entry["id"])
                    else:
                        entry[field] = None
        self.links = {owner: ids for owner, ids in self.links.items() if owner[0] != key}
        for ids in self.links.values():
            if key in ids:
                ids.remove(key)

    def _remove_approvals(self, workflow: int) -> None:
        for node in list(self.objects["workflow_job_template_nodes"].values()):
            template = node["unified_job_template"]
            approvals = self.objects["workflow_approval_templates"]
            if node["workflow_job_template"] == workflow and template in approvals:
                del approvals[template]

    def shown(self, key: int) -> Entry:
        """Return an object as the API shows it."""
        kind = self.kind_of(key)
        entry = self.objects[kind][key]
        url = f"/api/v2/{kind}/{key}/"
        shown = {
            **entry,
            "type": KINDS[kind].type,
            "url": url,
            "related": {"launch": f"{url}launch/", "update": f"{url}update/"},
            "summary_fields": self._summary(kind, entry),
        }
        if kind == "notification_templates":
            configuration = entry["notification_configuration"]
            shown["notification_configuration"] = {**configuration, **_hide_password(configuration)}
        for link in KINDS[kind].links:
            if kind == "workflow_job_template_nodes":
                shown[link] = list(self.linked(key, link))
        return shown

    def _summary(self, kind: str, entry: Entry) -> Entry:
        fields: Entry = {}
        references = (*KINDS[kind].refs, "organization", "last_job", "current_job")
        for field in references:
            if entry.get(field):
                fields[field] = self._in_short(entry[field])
        if kind == "job_templates":
            fields["credentials"] = [
                self._in_short(key) for key in self.linked(entry["id"], "credentials")
            ]
        if KINDS[kind].roles:
            fields["object_roles"] = {
                role["role_field"]: self._in_short(role["id"])
                for role in self.objects["roles"].values()
                if role["content"] == entry["id"]
            }
        return fields

    def _in_short(self, key: int) -> Entry:
        kind = self.kind_of(key)
        entry = self.objects[kind][key]
        short = {field: entry.get(field, "") for field in ("id", "name", "description")}
        if kind in JOB_TYPES:
            short["unified_job_type"] = JOB_TYPES[kind]
        for field in ("status", "timeout", "finished"):
            if field in entry and kind not in ("job_templates", "workflow_job_templates"):
                short[field] = entry[field]
        return short

    def matches(self, kind: str, key: int, query: dict[str, str]) -> bool:
        """Tell whether an object has what a query with the lookups of Django asks for."""
        return all(self._has(kind, key, field, wanted) for field, wanted in query.items())

    def _has(self, kind: str, key: int, field: str, wanted: str) -> bool:
        path = field.split("__")
        lookup = path.pop() if path[-1] in ("in", "isnull", "exact", "startswith") else "exact"
        value = self._follow(kind, self.get(key), path)
        if lookup == "isnull":
            return (value is None) == (wanted.lower() in ("true", "1"))
        if lookup == "in":
            return str(value) in wanted.split(",")
        if lookup == "startswith":
            return str(value).startswith(wanted)
        return value is not None and str(value) == wanted

    def _follow(self, kind: str, entry: Entry, path: list[str]) -> t.Any:
        value: t.Any = entry
        for part in path:
            if value is None:
                return None
            if isinstance(value, int):
                kind, value = self.kind_of(value), self.get(value)
            known = {"organization", *KINDS[kind].refs, *KINDS[kind].needed, *value}
            if part not in known:
                label = KINDS[kind].label.replace(" ", "")
                raise Refused(400, {"detail": f"{label} has no field named '{part}'"})
            value = value.get(part)
        return value


def _hide_password(configuration: Entry) -> Entry:
    return {"password": "$encrypted$"} if "password" in configuration else {}
