"""The reasons for which AWX refuses to create or change an object."""

from __future__ import annotations

import re
import typing as t

from .kinds import KINDS, PROMPTS, Entry
from .projects import Projects
from .store import Refused, Store
from .surveys import accept, questions_of, read_variables

# The time needs a zone.
_DTSTART = re.compile(r"DTSTART(;TZID=[\w/]+:\d{8}T\d{6}|:\d{8}T\d{6}Z) RRULE:FREQ=\w+.*")
# The kind of credential that an object takes, and the error about any other.
_CREDENTIALS = {
    "execution_environments": (
        "registry",
        "Only Container Registry credentials can be associated with an Execution Environment",
    ),
    "projects": ("scm", "Credential kind must be 'scm'."),
}
_WEBHOOK: Entry = {
    "http_method": "POST",
    "disable_ssl_verification": False,
    "username": "",
    "password": "",
}


class Rules:
    """Checks the fields of requests, and completes them as AWX does."""

    def __init__(self, store: Store, projects: Projects) -> None:
        self._store, self._projects = store, projects

    def complete(self, kind: str, body: Entry) -> Entry:
        """Return the fields of a new object, or refuse them."""
        missing = [field for field in KINDS[kind].needed if body.get(field) in (None, "")]
        if missing:
            raise Refused(400, {field: ["This field is required."] for field in missing})
        fields = {key: value for key, value in body.items() if key not in KINDS[kind].read_only}
        wanted = {**KINDS[kind].defaults, **fields}
        return self._check(kind, wanted, wanted, key=None)

    def correct(self, kind: str, entry: Entry, body: Entry) -> Entry:
        """Return the fields of an object that a request changes, or refuse them."""
        locked = (*KINDS[kind].read_only, *KINDS[kind].fixed)
        changes = {key: value for key, value in body.items() if key not in locked}
        if kind == "workflow_job_templates":
            changes = _change_prompts(changes)
        checked = self._check(kind, {**entry, **changes}, changes, key=entry["id"])
        return {key: checked[key] for key in checked if checked[key] != entry.get(key)}

    def _check(self, kind: str, wanted: Entry, given: Entry, key: int | None) -> Entry:
        for field, lists in KINDS[kind].refs.items():
            other = wanted.get(field)
            if other is not None and not self._store.has(other, lists):
                error = f'Invalid pk "{other}" - object does not exist.'
                raise Refused(400, {field: [error]})
        if kind == "job_templates":
            self._check_job_template(wanted)
        if kind in ("execution_environments", "projects") and wanted["credential"] is not None:
            self._check_kind(kind, wanted["credential"])
        if kind in ("job_templates", "workflow_job_templates"):
            read_variables(wanted["extra_vars"])
        if kind == "notification_templates":
            wanted["notification_configuration"] = _complete_configuration(wanted)
        if kind in ("schedules", "workflow_job_template_nodes"):
            self._check_prompts(kind, wanted, given, new=key is None)
        self._check_unique(kind, wanted, key)
        return wanted

    def _check_kind(self, kind: str, credential: int) -> None:
        expected, error = _CREDENTIALS[kind]
        if self._store.get(credential)["kind"] != expected:
            raise Refused(400, {"credential": [error]})

    def _check_job_template(self, wanted: Entry) -> None:
        project = self._store.objects["projects"][wanted["project"]]
        wanted["organization"] = project["organization"]
        if wanted["inventory"] is None and not wanted["ask_inventory_on_launch"]:
            error = "You must either set a default value or ask to prompt on launch."
            raise Refused(400, {"inventory": [error]})
        if not wanted["playbook"]:
            raise Refused(400, {"playbook": ["Must select playbook for project."]})
        if wanted["playbook"] not in self._projects.playbooks.get(project["id"], ()):
            raise Refused(400, {"playbook": ["Playbook not found for project."]})
        for field in ("scm_branch", "ask_scm_branch_on_launch"):
            if wanted[field] and not project["allow_override"]:
                raise Refused(400, {field: ["Project does not allow overriding branch."]})

    def _check_prompts(self, kind: str, wanted: Entry, given: Entry, *, new: bool) -> None:
        """Check what a node or a schedule gives to the template that it starts."""
        if kind == "schedules":
            _check_rrule(wanted["rrule"])
        if wanted["unified_job_template"] is None:
            return
        if not new and not {"extra_data", "inventory", *PROMPTS} & set(given):
            return
        template = self._store.get(wanted["unified_job_template"])
        questions = questions_of(template, self._store.surveys.get(template["id"]))
        answers = read_variables(wanted["extra_data"])
        # A workflow or its launch can answer what a node does not.
        errors = accept(template, questions, answers, required=kind == "schedules").errors
        if "extra_vars" in errors:
            errors["extra_data"] = errors.pop("extra_vars")
        for field in PROMPTS:
            ask = f"ask_{field.removeprefix('job_')}_on_launch"
            asked = template.get(ask) or wanted[field] in (None, template.get(field))
            if not asked:
                errors[field] = ["Field is not configured to prompt on launch."]
        if errors:
            raise Refused(400, errors)

    def _check_unique(self, kind: str, wanted: Entry, key: int | None) -> None:
        fields = KINDS[kind].unique
        if kind == "workflow_approval_templates" or wanted.get(fields[0]) is None:
            return
        for other in self._store.objects[kind].values():
            same = all(other.get(field) == wanted.get(field) for field in fields)
            if same and other["id"] != key:
                raise Refused(400, _already_exists(kind, fields))

    def check_link(self, kind: str, entry: Entry, link: str, other: t.Any) -> None:
        """Refuse an association that AWX does not allow. One that exists is allowed."""
        if not self._store.has(other, [KINDS[kind].links[link]]):
            raise Refused(400, {"msg": "Object does not exist."})
        linked = self._store.get(other)
        if link == "credentials":
            self._check_credential(entry, linked)
        if kind == "workflow_job_template_nodes":
            self._check_edge(entry, link, linked)

    def _check_credential(self, template: Entry, credential: Entry) -> None:
        for key in self._store.linked(template["id"], "credentials"):
            # This is so even for the credential itself.
            if self._store.get(key)["credential_type"] == credential["credential_type"]:
                name = self._store.get(credential["credential_type"])["name"]
                raise Refused(400, {"error": f"Cannot assign multiple {name} credentials."})

    def _check_edge(self, node: Entry, edge: str, child: Entry) -> None:
        if node["workflow_job_template"] != child["workflow_job_template"]:
            raise Refused(403, {"detail": "You do not have permission to perform this action."})
        for other in KINDS["workflow_job_template_nodes"].links:
            if other != edge and child["id"] in self._store.linked(node["id"], other):
                raise Refused(400, {"Error": "Relationship not allowed."})
        if node["id"] in self._find_descendants(child["id"]):
            raise Refused(400, {"Error": "Cycle detected."})

    def _find_descendants(self, key: int) -> set[int]:
        found, todo = set(), [key]
        while todo:
            one = todo.pop()
            if one in found:
                continue
            found.add(one)
            for edge in KINDS["workflow_job_template_nodes"].links:
                todo += self._store.linked(one, edge)
        return found


def _already_exists(kind: str, fields: tuple[str, ...]) -> Entry:
    if kind == "job_templates":
        combination = "JobTemplate with this (name, organization) combination already exists."
        return {"__all__": [combination]}
    names = " and ".join(field.replace("_", " ").capitalize() for field in fields)
    error = f"{KINDS[kind].label} with this {names} already exists."
    return {fields[0] if len(fields) == 1 else "__all__": [error]}


def _check_rrule(rrule: str) -> None:
    if not _DTSTART.fullmatch(rrule):
        raise Refused(400, {"rrule": ["rrule parsing failed validation."]})
    for rule in re.findall(r"RULE:\S*", rrule):
        if "INTERVAL" not in rule:
            raise Refused(400, {"rrule": [f"INTERVAL required in rrule: {rule}"]})
        if "SECONDLY" in rule:
            raise Refused(400, {"rrule": [f"SECONDLY is not supported: {rule}"]})
        if "COUNT" in rule and "UNTIL" in rule:
            error = f"RRULE may not contain both COUNT and UNTIL: {rule}"
            raise Refused(400, {"rrule": [error]})


def _change_prompts(changes: Entry) -> Entry:
    """Return what AWX makes of the prompts of a workflow: given ones replace all of them.

    None given, not even as null, leaves all as they are.
    """
    others = {key: value for key, value in changes.items() if key not in PROMPTS}
    given = {key: changes[key] for key in PROMPTS if changes.get(key) is not None}
    if given:
        others |= {**dict.fromkeys(PROMPTS), **given}
    return others


def _complete_configuration(template: Entry) -> Entry:
    given = template["notification_configuration"]
    if template["notification_type"] != "webhook":
        return dict(given)
    missing = [field for field in ("url", "headers") if field not in given]
    if missing:
        error = f"Missing required fields for Notification Configuration: {missing}."
        raise Refused(400, {"__all__": [error]})
    known = {key: value for key, value in given.items() if value != "$encrypted$"}
    return {**_WEBHOOK, **known}
