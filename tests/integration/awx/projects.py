"""Projects and their updates, which take a while and can fail."""

from __future__ import annotations

import dataclasses as d

import yaml

from ..automation import ROOT
from .kinds import Entry
from .store import Store

VERSION = str(yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"])
# A change of one of these fields syncs the project at once. No other request does.
SYNCING = ("scm_type", "scm_url", "scm_branch", "scm_refspec")
FINISHED = ("successful", "failed", "error", "canceled")
_NEXT = {"pending": "running", "running": "finished"}


@d.dataclass
class Repository:
    """What a project is fetched from: the revision of each branch or tag, and the playbooks in it.

    Each of `failures` makes one sync fail: its status, and what the update says then.
    """

    playbooks: set[str]
    branches: dict[str, str] = d.field(
        default_factory=lambda: {"main": "a1b2c3d", VERSION: "0e1f2a3"}
    )
    failures: list[Entry] = d.field(default_factory=list)


class Projects:
    """Syncs projects. Each look at a project or at an update takes the update one step on."""

    def __init__(self, store: Store, repository: Repository) -> None:
        self._store, self.repository = store, repository
        # The playbooks that AWX has fetched, by project.
        self.playbooks: dict[int, set[str]] = {}

    def sync(self, project: Entry) -> Entry:
        """Start an update of a project, and return it."""
        update = self._store.add(
            "project_updates",
            {
                "name": project["name"],
                "project": project["id"],
                "unified_job_template": project["id"],
                "organization": project["organization"],
                "status": "pending",
                "failed": False,
                "scm_branch": project["scm_branch"],
                "result_traceback": "",
                "job_explanation": "",
                "stdout": "",
            },
        )
        project |= {"status": "pending", "current_job": update["id"]}
        return update

    def look_at(self, kind: str, entry: Entry) -> None:
        """Take an unfinished update one step on."""
        update = entry
        if kind == "projects":
            if not entry.get("current_job"):
                return
            update = self._store.get(entry["current_job"])
        if update["status"] in FINISHED:
            return
        update["status"] = _NEXT[update["status"]]
        project = self._store.get(update["project"])
        if update["status"] == "finished":
            self._finish(project, update)
        project["status"] = update["status"]

    def _finish(self, project: Entry, update: Entry) -> None:
        branch = update["scm_branch"] or "main"
        if self.repository.failures:
            update |= {"status": "failed", **self.repository.failures.pop(0)}
        elif branch not in self.repository.branches:
            said = f"error: pathspec '{branch}' did not match any file(s) known to git\n"
            update |= {"status": "failed", "stdout": said}
        else:
            update["status"] = "successful"
            update["scm_revision"] = self.repository.branches[branch]
            project["scm_revision"] = update["scm_revision"]
            self.playbooks[project["id"]] = set(self.repository.playbooks)
        update["failed"] = update["status"] != "successful"
        project |= {
            "last_job": update["id"],
            "current_job": None,
            "last_job_failed": update["failed"],
        }
