"""The reasons for which AWX refuses to create or change an object."""

import re

from .projects import Projects
from .store import EDGES, KINDS, PROMPTS, Entry, Refused, Store
from .surveys import accept, questions_of, read_variables

# The time needs a zone, and the rule an interval.
_RRULE = re.compile(
    r"DTSTART(;TZID=[\w/]+:\d{8}T\d{6}|:\d{8}T\d{6}Z) RRULE:FREQ=\w+;INTERVAL=\d+(;.*)?"
)
# What AWX adds to the configuration of a webhook.
_WEBHOOK: Entry = {"http_method": "POST", "username": "", "password": ""}


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
        return self._check(kind, {**KINDS[kind].defaults, **fields}, key=None)

    def correct(self, kind: str, entry: Entry, body: Entry) -> Entry:
        """Return the fields of an object that a request changes, or refuse them."""
        changes = {key: value for key, value in body.items() if key not in KINDS[kind].read_only}
        if kind == "workflow_job_templates":
            changes = _change_prompts(changes)
        checked = self._check(kind, {**entry, **changes}, key=entry["id"])
        return {key: checked[key] for key in checked if checked[key] != entry.get(key)}

    def _check(self, kind: str, wanted: Entry, key: int | None) -> Entry:
        for field in KINDS[kind].refs:
            if wanted.get(field) is not None and not self._store.has(wanted[field]):
                raise Refused(400, {field: [f'Invalid pk "{wanted[field]}".']})
        read_variables(wanted.get("extra_vars"))
        if kind == "job_templates":
            self._check_job_template(wanted)
        if kind == "notification_templates":
            configuration = {**_WEBHOOK, **wanted["notification_configuration"]}
            wanted["notification_configuration"] = configuration
        if kind == "schedules" and not _RRULE.fullmatch(wanted["rrule"]):
            raise Refused(400, {"rrule": ["rrule parsing failed validation."]})
        if "extra_data" in wanted and wanted["unified_job_template"] is not None:
            self._check_answers(kind, wanted)
        self._check_unique(kind, wanted, key)
        return wanted

    def _check_job_template(self, wanted: Entry) -> None:
        project = self._store.get(wanted["project"])
        wanted["organization"] = project["organization"]
        if wanted["inventory"] is None and not wanted["ask_inventory_on_launch"]:
            error = "You must either set a default value or ask to prompt on launch."
            raise Refused(400, {"inventory": [error]})
        if wanted["playbook"] not in self._projects.playbooks.get(project["id"], ()):
            raise Refused(400, {"playbook": ["Playbook not found for project."]})

    def _check_answers(self, kind: str, wanted: Entry) -> None:
        """Check what a node or a schedule gives to the template that it starts."""
        template = self._store.get(wanted["unified_job_template"])
        questions = questions_of(template, self._store.surveys)
        answers = read_variables(wanted["extra_data"])
        # A workflow or its launch can answer what a node does not.
        errors = accept(template, questions, answers, required=kind == "schedules").errors
        if errors:
            raise Refused(400, errors)

    def _check_unique(self, kind: str, wanted: Entry, key: int | None) -> None:
        fields = KINDS[kind].unique
        if not fields or wanted.get(fields[0]) is None:
            return
        for other in self._store.objects[kind].values():
            same = all(other.get(field) == wanted.get(field) for field in fields)
            if same and other["id"] != key:
                error = f"{kind} with this {' and '.join(fields)} already exists."
                raise Refused(400, {"__all__": [error]})

    def check_link(self, entry: Entry, link: str, other: int) -> None:
        """Refuse an association that AWX does not allow. One that exists is allowed."""
        if link == "credentials":
            credential_type = self._store.get(other)["credential_type"]
            for key in self._store.linked(entry["id"], link):
                # This is so even for the credential itself.
                if self._store.get(key)["credential_type"] == credential_type:
                    raise Refused(400, {"error": "Cannot assign multiple credentials of a type."})
        for edge in EDGES:
            if link in EDGES and edge != link and other in self._store.linked(entry["id"], edge):
                raise Refused(400, {"Error": "Relationship not allowed."})


def _change_prompts(changes: Entry) -> Entry:
    """Return what AWX makes of the prompts of a workflow: given ones replace all of them.

    None given, not even as null, leaves all as they are.
    """
    others = {key: value for key, value in changes.items() if key not in PROMPTS}
    given = {key: changes[key] for key in PROMPTS if changes.get(key) is not None}
    if given:
        others |= {**dict.fromkeys(PROMPTS), **given}
    return others
