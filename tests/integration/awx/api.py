"""A stand-in for the part of AWX's REST API that its setup needs, and for its jobs.

It refuses what AWX refuses, and answers in the same shape. It was written from the answers of a
real AWX 24.6.
"""

from __future__ import annotations

import typing as t
import urllib.parse

from .kinds import KINDS, UNIONS, Entry
from .projects import SYNCING, Projects, Repository
from .rights import Rights, User
from .rules import Rules
from .store import Refused, Store, forbidden, not_found
from .surveys import accept, check_survey, questions_of, read_variables
from .workflows import Engine, Runner

TOKEN = "a token that nobody may see"
PREFIX = "/api/v2/"
_PAGE = 25
# What a client of the API can neither create, change nor delete, or at least does not have to.
_MADE_BY_AWX = (
    "credential_types",
    "instance_groups",
    "organizations",
    "roles",
    "teams",
    "jobs",
    "project_updates",
    "workflow_jobs",
    "workflow_approvals",
)
Answer = tuple[int, t.Any]


class Awx:
    """Answers requests, and keeps the writes: method and path."""

    def __init__(self, playbooks: t.Collection[str], runner: Runner | None = None) -> None:
        self.url = ""
        self.written: list[str] = []
        self.store = Store()
        self.projects = Projects(self.store, Repository(set(playbooks)))
        self.engine = Engine(self.store, runner)
        self._rules = Rules(self.store, self.projects)
        self.users = {TOKEN: User(system_administrator=True)}
        self.default = self.store.add("organizations", {"name": "Default"})
        self.openstack = self._add_type("OpenStack", "cloud", "openstack")
        self.source_control = self._add_type("Source Control", "scm", "scm")
        self.registry = self._add_type("Container Registry", "registry", "registry")
        self.add_credential("OpenStack admin", self.default)

    # What tests prepare and examine.

    @property
    def objects(self) -> dict[str, dict[int, Entry]]:
        return self.store.objects

    @property
    def surveys(self) -> dict[int, Entry]:
        return self.store.surveys

    def _add_type(self, name: str, kind: str, namespace: str) -> Entry:
        fields = {"name": name, "kind": kind, "namespace": namespace}
        return self.store.add("credential_types", fields)

    def add_credential(
        self, name: str, organization: Entry, credential_type: Entry | None = None
    ) -> Entry:
        of_type = credential_type or self.openstack
        return self.store.add(
            "credentials",
            {
                "name": name,
                "organization": organization["id"],
                "credential_type": of_type["id"],
                # None for a type that somebody has added.
                "kind": of_type["namespace"],
            },
        )

    def named(self, kind: str, name: str, organization: Entry | None = None) -> Entry:
        """Return the only object with this name, or with this identifier."""
        found = []
        for entry in self.objects[kind].values():
            owner = self.store.organization_of(kind, entry)
            if organization is not None and owner != organization["id"]:
                continue
            if name in (entry.get("name"), entry.get("identifier")):
                found.append(entry)
        assert len(found) == 1, (kind, name, found)
        return found[0]

    def linked(self, kind: str, name: str, link: str) -> list[str]:
        """Return the names of the objects that are associated with an object."""
        names = []
        for key in self.store.linked(self.named(kind, name)["id"], link):
            other = self.store.get(key)
            names.append(str(other.get("name") or other["identifier"]))
        return names

    def run_schedule(self, name: str) -> Entry:
        """Run a schedule as if its time had come, and return the job."""
        schedule = self.named("schedules", name)
        template = self.store.get(schedule["unified_job_template"])
        return self._start(template, read_variables(schedule["extra_data"]))

    # The REST API.

    def ask(self, method: str, path: str, body: t.Any = None, token: str = TOKEN) -> Answer:
        """Return the status and the body of the answer to a request below `/api/v2/`."""
        there = urllib.parse.urlsplit(PREFIX + path)
        query = dict(urllib.parse.parse_qsl(there.query))
        return self.answer(token, method, there.path, query, {} if body is None else body)

    def answer(
        self, token: str, method: str, path: str, query: dict[str, str], body: t.Any
    ) -> Answer:
        try:
            return self._answer(token, method, path, query, body)
        except Refused as refused:
            return refused.status, refused.body

    def _answer(
        self, token: str, method: str, path: str, query: dict[str, str], body: t.Any
    ) -> Answer:
        if token not in self.users:
            raise Refused(401, {"detail": "Authentication credentials were not provided."})
        user = self.users[token]
        if method != "GET":
            if user.scope == "read":
                raise forbidden()
            self.written.append(f"{method} {path}")
        parts = path.removeprefix(PREFIX).strip("/").split("/")
        kind, name, about = (*parts, "", "")[:3]
        if kind == "config" and method == "GET":
            return 200, {"version": "24.6.1"}
        known = kind in KINDS or kind in UNIONS
        if not path.startswith(PREFIX) or not known or len(parts) > 3:
            raise not_found()
        request = _Request(self, Rights(self.store, user), method, query, body)
        if not name:
            return request.answer_list(kind)
        entry = self._find(kind, urllib.parse.unquote(name))
        return request.answer_about(kind, entry, about)

    def _find(self, kind: str, name: str) -> Entry:
        """Return an object by its id, or by its named URL: `name++organization`."""
        if name.isdigit() and int(name) in self.objects.get(kind, {}):
            return self.objects[kind][int(name)]
        own, _separator, organization = name.partition("++")
        for entry in self.objects.get(kind, {}).values():
            owner = self.store.organization_of(kind, entry)
            if entry.get("name") != own or owner is None:
                continue
            if self.store.get(owner)["name"] == organization:
                return entry
        raise not_found()

    def _start(self, template: Entry, given: Entry, job_type: str | None = None) -> Entry:
        if self.store.kind_of(template["id"]) == "workflow_job_templates":
            return self.engine.start_workflow(template, given)
        return self.engine.run_job(template, given, job_type)


class _Request:
    """One request of one user."""

    def __init__(
        self, awx: Awx, rights: Rights, method: str, query: dict[str, str], body: t.Any
    ) -> None:
        self._awx, self._store, self._rights = awx, awx.store, rights
        self._method, self._query, self._body = method, query, body

    def answer_list(self, kind: str) -> Answer:
        if self._method == "GET":
            return self._show_page(kind, self._keys_of(kind))
        if self._method != "POST" or kind in _MADE_BY_AWX or kind in UNIONS:
            raise _not_allowed(self._method)
        fields = self._awx._rules.complete(kind, self._body)
        if not self._rights.may_create(kind, fields):
            raise forbidden()
        entry = self._store.add(kind, fields)
        if kind == "projects":
            entry |= {"status": "never updated", "scm_revision": "", "last_job": None}
            if entry["scm_type"]:
                self._awx.projects.sync(entry)
        if kind == "workflow_job_template_nodes":
            entry.setdefault("identifier", f"node-{entry['id']}")
        return 201, self._store.shown(entry["id"])

    def _keys_of(self, kind: str) -> list[tuple[str, int]]:
        keys = []
        for one in UNIONS.get(kind, (kind,)):
            keys += [
                (one, key)
                for key, entry in self._store.objects[one].items()
                if self._rights.may_see(one, entry)
            ]
        return keys

    def _show_page(self, what: str, keys: list[tuple[str, int]]) -> Answer:
        paging = ("page", "page_size", "order_by")
        wanted = {key: value for key, value in self._query.items() if key not in paging}
        found = [key for kind, key in keys if self._store.matches(kind, key, wanted)]
        size, page = int(self._query.get("page_size", _PAGE)), int(self._query.get("page", 1))
        following = None
        if len(found) > page * size:
            query = urllib.parse.urlencode({**self._query, "page": page + 1})
            following = f"{PREFIX}{what}/?{query}"
        part = found[(page - 1) * size : page * size]
        return 200, {
            "count": len(found),
            "next": following,
            "previous": None,
            "results": [self._store.shown(key) for key in part],
        }

    def answer_about(self, kind: str, entry: Entry, about: str) -> Answer:
        if not self._rights.may_see(kind, entry):
            raise forbidden()
        special: dict[str, t.Callable[[str, Entry], Answer]] = {
            "": self._answer_object,
            "survey_spec": self._answer_survey,
            "create_approval_template": self._create_approval,
            "launch": self._launch,
            "update": self._update,
            "stdout": self._show_output,
            "approve": self._decide,
            "deny": self._decide,
        }
        if about in KINDS[kind].links:
            return self._answer_link(kind, entry, about)
        if about not in special or (about == "survey_spec" and "survey_enabled" not in entry):
            raise not_found()
        self._about = about
        return special[about](kind, entry)

    def _answer_object(self, kind: str, entry: Entry) -> Answer:
        if self._method == "GET":
            if kind in ("projects", "project_updates"):
                self._awx.projects.look_at(kind, entry)
            if entry.get("pending_deletion"):
                # A background task removes it. Here that ends when somebody looks.
                self._store.remove(entry["id"])
                raise not_found()
            return 200, self._store.shown(entry["id"])
        if kind in _MADE_BY_AWX or self._method == "POST":
            raise _not_allowed(self._method)
        if not self._rights.may_change(kind, entry):
            raise forbidden()
        # A DELETE may have the body null.
        if self._method == "DELETE":
            return self._delete(kind, entry)
        if not self._rights.may_give(kind, self._body):
            raise forbidden()
        changes = self._awx._rules.correct(kind, entry, self._body)
        entry |= changes
        if kind == "projects" and set(SYNCING) & set(changes):
            self._awx.projects.sync(entry)
        return 200, self._store.shown(entry["id"])

    def _delete(self, kind: str, entry: Entry) -> Answer:
        if kind != "inventories":
            self._store.remove(entry["id"])
            return 204, None
        if entry["pending_deletion"]:
            raise Refused(400, {"error": "Inventory is already pending deletion."})
        entry["pending_deletion"] = True
        # AWX does this at once, and the rest in the background.
        for template in self._store.objects["job_templates"].values():
            if template["inventory"] == entry["id"]:
                template["inventory"] = None
        return 202, {}

    def _answer_survey(self, kind: str, entry: Entry) -> Answer:
        if self._method == "GET":
            return 200, self._store.surveys.get(entry["id"], {})
        if not self._rights.may_change(kind, entry):
            raise forbidden()
        check_survey(self._body)
        self._store.surveys[entry["id"]] = self._body
        return 200, None

    def _create_approval(self, kind: str, node: Entry) -> Answer:
        if kind != "workflow_job_template_nodes" or self._method != "POST":
            raise not_found()
        if not self._rights.may_change(kind, node):
            raise forbidden()
        if not self._body.get("name"):
            raise Refused(400, {"name": ["This field may not be blank."]})
        template = self._store.add("workflow_approval_templates", self._body)
        node["unified_job_template"] = template["id"]
        return 201, self._store.shown(template["id"])

    def _answer_link(self, kind: str, entry: Entry, link: str) -> Answer:
        linked = self._store.linked(entry["id"], link)
        if self._method == "GET":
            other = KINDS[kind].links[link]
            return self._show_page(f"{kind}/{entry['id']}/{link}", [(other, key) for key in linked])
        key = self._body.get("id")
        if key and not isinstance(key, int):
            raise Refused(400, {"msg": '"id" field must be an integer.'})
        if not self._rights.may_associate(kind, entry, link, key):
            raise forbidden()
        if "disassociate" in self._body:
            if not key:
                raise Refused(400, {"msg": '"id" is required to disassociate'})
            if key in linked:
                linked.remove(key)
            return 204, None
        self._awx._rules.check_link(kind, entry, link, key)
        if link == "credentials" and not self._rights.may_use(key):
            raise forbidden()
        if key not in linked:
            linked.append(key)
        return 204, None

    def _launch(self, kind: str, template: Entry) -> Answer:
        if kind not in ("job_templates", "workflow_job_templates"):
            raise not_found()
        if not self._rights.may_start(template["id"]):
            raise forbidden()
        questions = questions_of(template, self._store.surveys.get(template["id"]))
        given = read_variables(self._body.get("extra_vars"))
        accepted = accept(template, questions, given)
        # A launch ignores what the template does not ask for.
        errors = {key: value for key, value in accepted.errors.items() if key != "extra_vars"}
        if kind == "job_templates" and self._project_failed(template):
            errors["playbook"] = ["Missing a revision to run due to failed project update."]
        if errors:
            raise Refused(400, errors)
        job_type = self._body.get("job_type") if template.get("ask_job_type_on_launch") else None
        job = self._awx._start(template, accepted.variables, job_type)
        name = "workflow_job" if kind == "workflow_job_templates" else "job"
        ignored = {"extra_vars": accepted.ignored} if accepted.ignored else {}
        return 201, {name: job["id"], "ignored_fields": ignored, **self._store.shown(job["id"])}

    def _project_failed(self, template: Entry) -> bool:
        project = self._store.get(template["project"])
        return project["status"] in ("failed", "error") and not project["scm_update_on_launch"]

    def _update(self, kind: str, project: Entry) -> Answer:
        if kind != "projects" or self._method != "POST":
            raise not_found()
        if not self._rights.may_change(kind, project):
            raise forbidden()
        update = self._awx.projects.sync(project)
        return 202, {"project_update": update["id"], **self._store.shown(update["id"])}

    def _show_output(self, kind: str, job: Entry) -> Answer:
        if "stdout" not in job:
            raise not_found()
        if self._query.get("format") == "json":
            return 200, {"range": {}, "content": job["stdout"]}
        return 200, job["stdout"]

    def _decide(self, kind: str, approval: Entry) -> Answer:
        if kind != "workflow_approvals" or self._method != "POST":
            raise not_found()
        if not self._rights.may_approve(approval):
            raise forbidden()
        if approval["status"] != "pending":
            error = "This workflow step has already been approved or denied."
            raise Refused(400, {"error": error})
        status = "successful" if self._about == "approve" else "failed"
        self._awx.engine.decide(approval, status)
        return 204, None


def _not_allowed(method: str) -> Refused:
    return Refused(405, {"detail": f'Method "{method}" not allowed.'})
