"""Projects and their updates, which take a while and can fail."""

import dataclasses as d

import yaml

from ..automation import ROOT
from .store import Entry, Store

VERSION = str(yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"])
# A change of one of these fields syncs the project at once. No other request does.
SYNCING = ("scm_type", "scm_url", "scm_branch")
FINISHED = ("successful", "failed", "error", "canceled")


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
    """Syncs projects. Each look at a project takes its update one step on."""

    def __init__(self, store: Store, repository: Repository) -> None:
        self._store, self.repository = store, repository
        # The playbooks that AWX has fetched, by project.
        self.playbooks: dict[int, set[str]] = {}

    def sync(self, project: Entry) -> Entry:
        """Start an update of a project, and return it."""
        fields = {"name": project["name"], "organization": project["organization"], "stdout": ""}
        update = self._store.add("project_updates", {**fields, "status": "pending"})
        project |= {"status": "pending", "current_job": update["id"]}
        return update

    def look_at(self, project: Entry) -> None:
        """Take an unfinished update one step on."""
        if not project.get("current_job"):
            return
        update = self._store.get(project["current_job"])
        if update["status"] == "pending":
            update["status"] = "running"
        else:
            update |= self._finish(project)
            project |= {"last_job": update["id"], "current_job": None}
        project["status"] = update["status"]

    def _finish(self, project: Entry) -> Entry:
        """Return what becomes of the update."""
        branch = project["scm_branch"] or "main"
        if self.repository.failures:
            return {"status": "failed", **self.repository.failures.pop(0)}
        if branch not in self.repository.branches:
            said = f"error: pathspec '{branch}' did not match any file(s) known to git\n"
            return {"status": "failed", "stdout": said}
        project["scm_revision"] = self.repository.branches[branch]
        self.playbooks[project["id"]] = set(self.repository.playbooks)
        return {"status": "successful"}
