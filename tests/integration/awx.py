# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The part of AWX's REST API that its setup needs, written from its documentation.

It has lists, searches by field, and refusals. It runs no job.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import typing as t
import urllib.parse

from ansible_collections.osops.placement.tests.integration.local_server import (
    LocalServer,
    QuietHandler,
)

if t.TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "a token that nobody may see"

# The fields that each type of object requires, and the fields that are ids of other objects.
_NEEDED: dict[str, tuple[str, ...]] = {
    "execution_environments": ("name", "image"),
    "projects": ("name", "scm_type"),
    "inventories": ("name", "organization"),
    "hosts": ("name", "inventory"),
    "notification_templates": (
        "name",
        "organization",
        "notification_type",
        "notification_configuration",
    ),
    "job_templates": ("name", "job_type", "inventory", "project", "playbook"),
    "workflow_job_templates": ("name",),
    "workflow_job_template_nodes": ("workflow_job_template",),
    "schedules": ("name", "unified_job_template", "rrule"),
}
_IDS = {
    "organization",
    "inventory",
    "project",
    "execution_environment",
    "workflow_job_template",
    "unified_job_template",
}
_LINKS = {
    "job_templates": {
        "credentials",
        "notification_templates_error",
        "notification_templates_success",
    },
    "workflow_job_templates": {"notification_templates_error", "notification_templates_approvals"},
    "workflow_job_template_nodes": {"success_nodes", "failure_nodes", "always_nodes"},
}
_UNIQUE = ("name", "organization", "inventory")
_RRULE = re.compile(r"DTSTART(;TZID=[\w/]+)?:\d{8}T\d{6}Z? RRULE:FREQ=\w+;INTERVAL=\d+.*")


class Refused(Exception):
    """An answer other than a success."""

    def __init__(self, status: int, body: t.Any) -> None:
        super().__init__(status, body)
        self.status, self.body = status, body


class Awx:
    """The objects by list and id, and the writes: method and path."""

    def __init__(self, playbooks: t.Collection[str]) -> None:
        self.url = ""
        self.playbooks = playbooks
        self.written: list[str] = []
        self.objects: dict[str, dict[int, dict[str, t.Any]]] = {
            name: {} for name in (*_NEEDED, "organizations", "credentials")
        }
        self.surveys: dict[tuple[str, int], t.Any] = {}
        self.links: dict[tuple[str, int, str], list[int]] = {}
        self._ids = itertools.count(1)
        for name, given in (("organizations", "Default"), ("credentials", "OpenStack admin")):
            self._add(name, {"name": given})

    def named(self, kind: str, name: str) -> dict[str, t.Any]:
        (found,) = [
            entry
            for entry in self.objects[kind].values()
            if name in (entry.get("name"), entry.get("identifier"))
        ]
        return found

    def linked(self, kind: str, name: str, link: str) -> list[str]:
        """Return the names of the objects that are associated with an object."""
        ids = self.links.get((kind, self.named(kind, name)["id"], link), [])
        everything = {
            key: entry for entries in self.objects.values() for key, entry in entries.items()
        }
        return [everything[key].get("name") or everything[key]["identifier"] for key in ids]

    def answer(
        self, method: str, path: str, query: dict[str, str], body: t.Any
    ) -> tuple[int, t.Any]:
        parts = path.removeprefix("/api/v2/").strip("/").split("/")
        kind, key, about = (*parts, "", "")[:3]
        if not path.startswith("/api/v2/") or kind not in self.objects or len(parts) > 3:
            raise Refused(404, {"detail": "Not found."})
        if method != "GET":
            self.written.append(f"{method} {path}")
        if not key:
            return self._list(kind, query) if method == "GET" else (201, self._create(kind, body))
        if not key.isdigit() or int(key) not in self.objects[kind]:
            raise Refused(404, {"detail": "Not found."})
        return (
            self._about(method, kind, int(key), about, query, body)
            if about
            else self._one(method, kind, int(key), body)
        )

    def _list(self, kind: str, query: dict[str, str]) -> tuple[int, t.Any]:
        return _page([entry for entry in self.objects[kind].values() if _matches(entry, query)])

    def _one(self, method: str, kind: str, key: int, body: t.Any) -> tuple[int, t.Any]:
        entry = self.objects[kind][key]
        if method == "PATCH":
            self._check(kind, {**entry, **body})
            entry |= body
        elif kind == "projects":
            # A project is still fetching its files for a while.
            entry["status"] = {"new": "pending", "pending": "running"}.get(
                entry["status"], "successful"
            )
        return 200, entry

    def _about(
        self, method: str, kind: str, key: int, about: str, query: dict[str, str], body: t.Any
    ) -> tuple[int, t.Any]:
        if about == "survey_spec" and kind in ("job_templates", "workflow_job_templates"):
            if method == "POST":
                _check_survey(body)
                self.surveys[kind, key] = body
                return 200, None
            return 200, self.surveys.get((kind, key), {})
        if (
            about == "create_approval_template"
            and kind == "workflow_job_template_nodes"
            and method == "POST"
        ):
            if not body.get("name"):
                raise Refused(400, {"name": ["This field may not be blank."]})
            template = {"id": next(self._ids), **body}
            self.objects[kind][key]["unified_job_template"] = template["id"]
            self.objects[kind][key]["summary_fields"] = {
                "unified_job_template": {**template, "unified_job_type": "workflow_approval"}
            }
            return 201, template
        if about not in _LINKS.get(kind, ()):
            raise Refused(404, {"detail": "Not found."})
        linked = self.links.setdefault((kind, key, about), [])
        everything = {
            other: entry for entries in self.objects.values() for other, entry in entries.items()
        }
        if method == "GET":
            return _page(
                [everything[other] for other in linked if _matches(everything[other], query)]
            )
        if body.get("id") not in everything:
            raise Refused(400, {"msg": "Object does not exist."})
        if body["id"] in linked:
            raise Refused(400, {"error": "Already associated."})
        linked.append(body["id"])
        return 204, None

    def _create(self, kind: str, body: t.Any) -> dict[str, t.Any]:
        if missing := [field for field in _NEEDED.get(kind, ()) if not body.get(field)]:
            raise Refused(400, {field: ["This field is required."] for field in missing})
        self._check(kind, body)
        if any(
            all(entry.get(field) == body.get(field) for field in _UNIQUE)
            for entry in self.objects[kind].values()
            if entry.get("name")
        ):
            raise Refused(400, {"__all__": ["An object with this name already exists."]})
        entry = self._add(kind, body)
        if entry.get("unified_job_template"):
            entry["summary_fields"] = {
                "unified_job_template": {"id": entry["unified_job_template"]}
            }
        return entry

    def _add(self, kind: str, body: t.Any) -> dict[str, t.Any]:
        key = next(self._ids)
        entry = {
            "id": key,
            "description": "",
            "summary_fields": {},
            **body,
            **({"status": "new"} if kind == "projects" else {}),
        }
        self.objects[kind][key] = entry
        return entry

    def _check(self, kind: str, body: t.Any) -> None:
        everything = {
            key: entry for entries in self.objects.values() for key, entry in entries.items()
        }
        for field in _IDS & set(body):
            if body[field] not in everything:
                raise Refused(
                    400, {field: [f'Invalid pk "{body[field]}" - object does not exist.']}
                )
        if kind == "job_templates":
            project = everything[body["project"]]
            if project["status"] != "successful" or body["playbook"] not in self.playbooks:
                raise Refused(400, {"playbook": ["Playbook not found for project."]})
            if not isinstance(body.get("extra_vars", ""), str) or not isinstance(
                json.loads(body.get("extra_vars", "{}")), dict
            ):
                raise Refused(400, {"extra_vars": ["Must be valid JSON or YAML."]})
        if kind == "schedules" and not _RRULE.fullmatch(body["rrule"]):
            raise Refused(400, {"rrule": ["rrule parsing failed validation."]})


def _check_survey(spec: t.Any) -> None:
    """Check a survey by AWX's own rules: the names and the types of all fields."""
    if not all(spec.get(field) for field in ("name", "spec")) or "description" not in spec:
        raise Refused(400, {"error": "'name', 'description' and 'spec' missing from survey spec."})
    for number, question in enumerate(spec["spec"]):
        if lacking := {"question_name", "type", "variable", "required"} - set(question):
            raise Refused(
                400, {"error": f"{sorted(lacking)} missing from survey question {number}."}
            )
        if question["type"] not in (
            "text",
            "textarea",
            "password",
            "integer",
            "float",
            "multiplechoice",
            "multiselect",
        ):
            raise Refused(
                400,
                {
                    "error": (
                        f"'{question['type']}' in survey question {number} is not one of the "
                        "allowed types."
                    )
                },
            )
        if question["type"] in ("multiplechoice", "multiselect") and not question.get("choices"):
            raise Refused(400, {"error": f"Survey question {number} must specify choices."})


def _matches(entry: dict[str, t.Any], query: dict[str, str]) -> bool:
    return all(str(entry.get(field)) == wanted for field, wanted in query.items())


def _page(results: list[dict[str, t.Any]]) -> tuple[int, t.Any]:
    return 200, {"count": len(results), "next": None, "previous": None, "results": results}


@contextlib.contextmanager
def served(awx: Awx) -> Iterator[Awx]:
    """Let `awx` answer on a port of this machine."""

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            there = urllib.parse.urlsplit(self.path)
            given = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                    raise Refused(401, {"detail": "Authentication credentials were not provided."})
                status, body = awx.answer(
                    self.command,
                    there.path,
                    dict(urllib.parse.parse_qsl(there.query)),
                    json.loads(given or "{}"),
                )
            except Refused as refused:
                status, body = refused.status, refused.body
            content = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            if content:
                self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = _serve

    with LocalServer(Handler) as server:
        awx.url = server.address
        yield awx
