"""A stand-in for the part of AWX's REST API that its setup needs, and for its jobs.

It refuses what AWX refuses, as far as the setup could ask for it, and answers in the same shape.
It was written from the answers of a real AWX 24.6.
"""

import typing as t

from .projects import SYNCING, Projects, Repository
from .rights import Rights, User
from .rules import Rules
from .store import KINDS, UNIONS, Entry, Refused, Store, forbidden, not_found
from .surveys import accept, check_survey, questions_of, read_variables
from .workflows import Engine, Runner

TOKEN = "a token that nobody may see"
PREFIX = "/api/v2/"
_PAGE = 25
# What the setup creates, corrects and deletes. Everything else is there before it.
_WRITABLE = (
    "execution_environments",
    "hosts",
    "inventories",
    "job_templates",
    "notification_templates",
    "projects",
    "schedules",
    "workflow_approval_templates",
    "workflow_job_template_nodes",
    "workflow_job_templates",
)
Answer = tuple[int, t.Any]


class Awx:
    """Answers requests, and keeps the writes: method and path."""

    def __init__(self, playbooks: t.Collection[str], runner: Runner | None = None) -> None:
        self.url = ""
        self.written: list[str] = []
        self.store = Store()
        self.objects, self.surveys = self.store.objects, self.store.surveys
        self.projects = Projects(self.store, Repository(set(playbooks)))
        self.engine = Engine(self.store, runner)
        self.rules = Rules(self.store, self.projects)
        self.users = {TOKEN: User(system_administrator=True)}
        self.default = self.store.add("organizations", {"name": "Default"})
        self.openstack, self.source_control, self.registry = (
            self.store.add("credential_types", {"name": name, "namespace": namespace})
            for name, namespace in (
                ("OpenStack", "openstack"),
                ("Source Control", "scm"),
                ("Container Registry", "registry"),
            )
        )
        self.add_credential("OpenStack admin", self.default)

    # What tests prepare and examine.

    def add_credential(
        self, name: str, organization: Entry, credential_type: Entry | None = None
    ) -> Entry:
        of_type = (credential_type or self.openstack)["id"]
        fields = {"organization": organization["id"], "credential_type": of_type}
        return self.store.add("credentials", {"name": name, **fields})

    def named(self, kind: str, name: str, organization: Entry | None = None) -> Entry:
        """Return the only object with this name, or with this identifier."""
        found = [
            entry
            for entry in self.objects[kind].values()
            if name in (entry.get("name"), entry.get("identifier"))
            and (not organization or self.store.organization_of(entry["id"]) == organization["id"])
        ]
        assert len(found) == 1, (kind, name, found)
        return found[0]

    def linked(self, kind: str, name: str, link: str) -> list[str]:
        """Return the names of the objects that are associated with an object."""
        linked = self.store.linked(self.named(kind, name)["id"], link)
        return [self.store.get(key)["name"] for key in linked]

    def run_schedule(self, name: str) -> Entry:
        """Run a schedule as if its time had come, and return the job."""
        schedule = self.named("schedules", name)
        template = self.store.get(schedule["unified_job_template"])
        return self.engine.run_job(template, read_variables(schedule["extra_data"]))

    # The REST API.

    def ask(self, method: str, path: str, body: t.Any = None, token: str = TOKEN) -> Answer:
        """Return the status and the body of the answer to a request below `/api/v2/`."""
        return self.answer(token, method, PREFIX + path, {}, {} if body is None else body)

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
        kind, key, about = (*path.removeprefix(PREFIX).strip("/").split("/"), "", "")[:3]
        if kind == "config":
            return 200, {"version": "24.6.1"}
        if not path.startswith(PREFIX) or kind not in (*KINDS, *UNIONS):
            raise not_found()
        request = _Request(self, Rights(self.store, user), method, query, body)
        if not key:
            return request.answer_list(kind)
        if not key.isdigit() or int(key) not in self.objects[kind]:
            raise not_found()
        return request.answer_about(kind, self.objects[kind][int(key)], about)


class _Request:
    """One request of one user."""

    def __init__(
        self, awx: Awx, rights: Rights, method: str, query: dict[str, str], body: t.Any
    ) -> None:
        self._awx, self._store, self._rights = awx, awx.store, rights
        self._method, self._query, self._body = method, query, body

    def answer_list(self, kind: str) -> Answer:
        if self._method == "GET":
            lists = UNIONS.get(kind, (kind,))
            return self._show([key for one in lists for key in self._store.objects[one]])
        if self._method != "POST" or kind not in _WRITABLE:
            raise self._not_allowed()
        fields = self._awx.rules.complete(kind, self._body)
        if not self._rights.may_create(kind, fields):
            raise forbidden()
        entry = self._store.add(kind, fields)
        if kind == "projects":
            entry |= {"scm_revision": "", "last_job": None}
            self._awx.projects.sync(entry)
        return 201, self._store.shown(entry["id"])

    def _show(self, keys: t.Iterable[int]) -> Answer:
        """Answer with the first page of what the query asks for."""
        size = int(self._query.pop("page_size", _PAGE))
        found = [
            self._store.shown(key)
            for key in keys
            if self._rights.may_see(key) and self._store.matches(key, self._query)
        ]
        return 200, {"count": len(found), "next": None, "results": found[:size]}

    def answer_about(self, kind: str, entry: Entry, about: str) -> Answer:
        if not self._rights.may_see(entry["id"]):
            raise forbidden()
        if about in KINDS[kind].links:
            return self._answer_link(entry, about)
        special: dict[tuple[str, str], t.Callable[[Entry], Answer]] = {
            ("job_templates", "survey_spec"): self._answer_survey,
            ("workflow_job_templates", "survey_spec"): self._answer_survey,
            ("workflow_job_template_nodes", "create_approval_template"): self._create_approval,
            ("job_templates", "launch"): self._launch,
            ("workflow_job_templates", "launch"): self._launch,
            ("projects", "update"): self._update,
            ("project_updates", "stdout"): self._show_output,
            ("workflow_approvals", "approve"): lambda one: self._decide(one, "successful"),
            ("workflow_approvals", "deny"): lambda one: self._decide(one, "failed"),
        }
        if not about:
            return self._answer_object(kind, entry)
        if (kind, about) not in special:
            raise not_found()
        if self._method != "GET" and not self._rights.may_change(entry["id"]):
            raise forbidden()
        return special[kind, about](entry)

    def _answer_object(self, kind: str, entry: Entry) -> Answer:
        if self._method == "GET":
            if kind == "projects":
                self._awx.projects.look_at(entry)
            if entry.get("pending_deletion"):
                # A background task removes it. Here that ends when somebody looks.
                self._store.remove(entry["id"])
                raise not_found()
            return 200, self._store.shown(entry["id"])
        if kind not in _WRITABLE or self._method not in ("PATCH", "DELETE"):
            raise self._not_allowed()
        if not self._rights.may_change(entry["id"]):
            raise forbidden()
        # A DELETE may have the body null.
        if self._method == "DELETE":
            return self._delete(kind, entry)
        if not self._rights.may_give(kind, self._body):
            raise forbidden()
        changes = self._awx.rules.correct(kind, entry, self._body)
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
        return 202, {}

    def _answer_survey(self, entry: Entry) -> Answer:
        if self._method == "GET":
            return 200, self._store.surveys.get(entry["id"], {})
        check_survey(self._body)
        self._store.surveys[entry["id"]] = self._body
        return 200, None

    def _create_approval(self, node: Entry) -> Answer:
        template = self._store.add("workflow_approval_templates", self._body)
        node["unified_job_template"] = template["id"]
        return 201, self._store.shown(template["id"])

    def _answer_link(self, entry: Entry, link: str) -> Answer:
        linked = self._store.linked(entry["id"], link)
        if self._method == "GET":
            return self._show(linked)
        key = self._body.get("id")
        if not isinstance(key, int) or not self._store.has(key):
            raise Refused(400, {"msg": '"id" has to be that of an object.'})
        if not self._rights.may_associate(entry["id"], link, key):
            raise forbidden()
        if "disassociate" in self._body:
            linked.remove(key)
            return 204, None
        self._awx.rules.check_link(entry, link, key)
        if key not in linked:
            linked.append(key)
        return 204, None

    def _launch(self, template: Entry) -> Answer:
        questions = questions_of(template, self._store.surveys)
        accepted = accept(template, questions, read_variables(self._body.get("extra_vars")))
        # A launch ignores what the template does not ask for.
        errors = {key: value for key, value in accepted.errors.items() if key != "extra_vars"}
        if errors:
            raise Refused(400, errors)
        is_workflow = self._store.kind_of(template["id"]) == "workflow_job_templates"
        start = self._awx.engine.start_workflow if is_workflow else self._awx.engine.run_job
        return 201, self._store.shown(start(template, accepted.variables)["id"])

    def _update(self, project: Entry) -> Answer:
        return 202, self._store.shown(self._awx.projects.sync(project)["id"])

    def _show_output(self, update: Entry) -> Answer:
        return 200, {"range": {}, "content": update["stdout"]}

    def _decide(self, approval: Entry, status: str) -> Answer:
        self._awx.engine.decide(approval, status)
        return 204, None

    def _not_allowed(self) -> Refused:
        return Refused(405, {"detail": f'Method "{self._method}" not allowed.'})
