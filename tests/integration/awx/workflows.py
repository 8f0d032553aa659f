"""Runs jobs, and workflows node by node as AWX does."""

from __future__ import annotations

import dataclasses as d
import json
import typing as t
from pathlib import Path

from .projects import FINISHED
from .store import EDGES, Entry, Store
from .surveys import accept, questions_of, variables_of_job

# Takes the name of the playbook, the extra variables, and whether the job is a check. Returns its
# status, its output and its artifacts.
Runner = t.Callable[[str, dict[str, t.Any], bool], t.Any]


@d.dataclass(eq=False)
class _Node:
    """A node of a workflow that runs, and what became of it."""

    entry: Entry
    parents: list[_Node] = d.field(default_factory=list)
    job: Entry = d.field(default_factory=dict)
    left_out: bool = False
    artifacts: Entry = d.field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        return self.left_out or self.job.get("status") in FINISHED

    @property
    def edges(self) -> tuple[str, str]:
        """The edges that the end of the node follows."""
        succeeded = self.job.get("status") == "successful"
        return ("always_nodes", "success_nodes" if succeeded else "failure_nodes")


class Engine:
    """Runs a job within the request that starts it."""

    def __init__(self, store: Store, runner: Runner | None) -> None:
        self._store, self.runner = store, runner
        self._nodes: dict[int, list[_Node]] = {}

    def run_job(self, template: Entry, given: Entry) -> Entry:
        """Start a job template with these variables, and return the finished job."""
        fields = {"artifacts": {}, "stdout": "", "status": "running"}
        job = self._begin("jobs", template, given, fields)
        if self.runner is None:
            job["status"] = "successful"
            return job
        is_check = template["job_type"] == "check"
        done = self.runner(Path(template["playbook"]).name, json.loads(job["extra_vars"]), is_check)
        job |= {"artifacts": done.artifacts, "stdout": done.output}
        job["status"] = "failed" if done.status else "successful"
        return job

    def start_workflow(self, template: Entry, given: Entry) -> Entry:
        """Start a workflow, and run it until it is finished or waits for an approval."""
        workflow = self._begin("workflow_jobs", template, given, {"status": "running"})
        nodes = {
            entry["id"]: _Node(entry)
            for entry in self._store.objects["workflow_job_template_nodes"].values()
            if entry["workflow_job_template"] == template["id"]
        }
        for node in nodes.values():
            for child in self._children(node, EDGES):
                nodes[child].parents.append(node)
        self._nodes[workflow["id"]] = list(nodes.values())
        self._advance(workflow)
        return workflow

    def _begin(self, kind: str, template: Entry, given: Entry, fields: Entry) -> Entry:
        questions = questions_of(template, self._store.surveys)
        return self._store.add(
            kind,
            {
                **fields,
                "name": template["name"],
                "organization": template["organization"],
                "extra_vars": variables_of_job(template, questions, given),
            },
        )

    def decide(self, approval: Entry, status: str) -> None:
        """Approve (successful), deny (failed) or cancel (canceled), and run what follows."""
        approval["status"] = status
        self._advance(self._store.get(approval["workflow_job"]))

    def jobs_of(self, workflow: Entry) -> dict[str, Entry]:
        """Return the jobs that a workflow has started, by the identifier of the node."""
        return {
            node.entry["identifier"]: node.job for node in self._nodes[workflow["id"]] if node.job
        }

    def _advance(self, workflow: Entry) -> None:
        nodes = self._nodes[workflow["id"]]
        while any(self._decide_on(workflow, node) for node in nodes):
            pass
        if all(node.is_over for node in nodes):
            failed = any(self._fails_the_workflow(node) for node in nodes)
            workflow["status"] = "failed" if failed else "successful"

    def _decide_on(self, workflow: Entry, node: _Node) -> bool:
        """Start a node, or leave it out for good. Return whether there was anything to decide."""
        if node.left_out or node.job:
            return False
        leading = [parent for parent in node.parents if self._leads_to(parent, node)]
        are_over = all(parent.is_over for parent in node.parents)
        if node.entry["all_parents_must_converge"]:
            node.left_out = any(self._forbids(parent, node) for parent in node.parents)
        else:
            node.left_out = bool(node.parents) and are_over and not leading
        if node.left_out:
            return True
        if not are_over or (node.parents and not leading):
            return False
        self._start(workflow, node)
        return True

    def _leads_to(self, parent: _Node, node: _Node) -> bool:
        finished = parent.job.get("status") in FINISHED
        return finished and node.entry["id"] in self._children(parent, parent.edges)

    def _forbids(self, parent: _Node, node: _Node) -> bool:
        """Return whether a parent keeps a node from starting that needs all of them.

        AWX does not look at those that were canceled or ended with an error.
        """
        ended = parent.job.get("status") in ("successful", "failed")
        return parent.left_out or (ended and not self._leads_to(parent, node))

    def _children(self, node: _Node, edges: t.Iterable[str]) -> set[int]:
        return {child for edge in edges for child in self._store.linked(node.entry["id"], edge)}

    def _start(self, workflow: Entry, node: _Node) -> None:
        for parent in node.parents:
            node.artifacts |= {**parent.artifacts, **parent.job.get("artifacts", {})}
        template = self._store.get(node.entry["unified_job_template"])
        if self._store.kind_of(template["id"]) == "workflow_approval_templates":
            approval = {"status": "pending", "workflow_job": workflow["id"]}
            approval |= {"organization": workflow["organization"], "name": template["name"]}
            node.job = self._store.add("workflow_approvals", approval)
            return
        questions = questions_of(template, self._store.surveys)
        own = accept(template, questions, node.entry["extra_data"]).variables
        # Not only those that the template asks for, and those of the launch come last.
        given = {**own, **node.artifacts, **json.loads(workflow["extra_vars"])}
        node.job = self.run_job(template, given)

    def _fails_the_workflow(self, node: _Node) -> bool:
        """Return whether a node failed and nothing follows its failure."""
        if node.left_out or node.job["status"] == "successful":
            return False
        return not self._children(node, ("failure_nodes", "always_nodes"))
