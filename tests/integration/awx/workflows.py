"""Runs jobs, and workflows node by node as AWX does."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

from .kinds import EDGES, Entry
from .projects import FINISHED
from .store import Store
from .surveys import accept, questions_of, variables_of_job


class Finished(t.Protocol):
    """A job that has run: `Job` of `automation.py` is one."""

    @property
    def status(self) -> int: ...

    @property
    def output(self) -> str: ...

    @property
    def artifacts(self) -> dict[str, t.Any]: ...


# Takes the name of the playbook, the extra variables, and whether the job is a check.
Runner = t.Callable[[str, dict[str, t.Any], bool], Finished]


class Engine:
    """Runs a job within the request that starts it."""

    def __init__(self, store: Store, runner: Runner | None) -> None:
        self._store, self.runner = store, runner
        # The nodes of each workflow job, by id, and what became of them.
        self._nodes: dict[int, dict[int, Entry]] = {}

    def run_job(self, template: Entry, given: Entry, job_type: str | None = None) -> Entry:
        """Start a job template with these variables, and return the finished job."""
        job = self._store.add(
            "jobs",
            {
                **self._begin(template, given),
                "job_template": template["id"],
                "job_type": job_type or template["job_type"],
                "playbook": template["playbook"],
                "limit": template["limit"],
                "verbosity": template["verbosity"],
                "artifacts": {},
                "stdout": "",
            },
        )
        if self.runner is None:
            job["status"] = "successful"
            return job
        playbook = Path(job["playbook"]).name
        done = self.runner(playbook, json.loads(job["extra_vars"]), job["job_type"] == "check")
        job |= {"artifacts": done.artifacts, "stdout": done.output, "failed": done.status != 0}
        job["status"] = "failed" if job["failed"] else "successful"
        return job

    def start_workflow(self, template: Entry, given: Entry) -> Entry:
        """Start a workflow, and run it until it is finished or waits for an approval."""
        workflow = self._store.add(
            "workflow_jobs",
            {**self._begin(template, given), "workflow_job_template": template["id"]},
        )
        nodes = self._store.objects["workflow_job_template_nodes"].values()
        self._nodes[workflow["id"]] = {
            node["id"]: {"node": node, "job": None, "left_out": False, "artifacts": {}}
            for node in nodes
            if node["workflow_job_template"] == template["id"]
        }
        self._advance(workflow)
        return workflow

    def _begin(self, template: Entry, given: Entry) -> Entry:
        """Return what jobs and workflow jobs have in common when they start."""
        questions = questions_of(template, self._store.surveys.get(template["id"]))
        return {
            "name": template["name"],
            "status": "running",
            "unified_job_template": template["id"],
            "organization": template["organization"],
            "extra_vars": variables_of_job(template, questions, given),
            "failed": False,
        }

    def decide(self, approval: Entry, status: str, *, timed_out: bool = False) -> None:
        """Approve (successful), deny (failed) or cancel (canceled), and run what follows."""
        failed = status != "successful"
        approval |= {"status": status, "failed": failed, "timed_out": timed_out}
        self._advance(self._store.get(approval["workflow_job"]))

    def jobs_of(self, workflow: Entry) -> dict[str, Entry]:
        """Return the jobs that a workflow has started, by the identifier of the node."""
        return {
            state["node"]["identifier"]: state["job"]
            for state in self._nodes[workflow["id"]].values()
            if state["job"]
        }

    def _advance(self, workflow: Entry) -> None:
        states = self._nodes[workflow["id"]]
        self._leave_out(states)
        while ready := self._find_ready(states):
            for state in ready:
                self._start(workflow, states, state)
            self._leave_out(states)
        if all(_is_over(state) for state in states.values()):
            workflow["failed"] = any(self._fails_the_workflow(state) for state in states.values())
            workflow["status"] = "failed" if workflow["failed"] else "successful"

    def _leave_out(self, states: dict[int, Entry]) -> None:
        """Mark the nodes that will never start."""
        again = True
        while again:
            again = False
            for state in states.values():
                if state["left_out"] or state["job"] or not self._parents(states, state):
                    continue
                if self._is_to_be_left_out(states, state):
                    state["left_out"] = again = True

    def _is_to_be_left_out(self, states: dict[int, Entry], state: Entry) -> bool:
        parents = self._parents(states, state)
        if state["node"]["all_parents_must_converge"]:
            if any(parent["left_out"] for parent in parents):
                return True
            return not self._all_agree(parents, state)
        if not all(_is_decided(parent) for parent in parents):
            return False
        return not any(self._leads_to(parent, state) for parent in parents)

    def _leads_to(self, parent: Entry, state: Entry) -> bool:
        """Return whether a node leads to a child, or still may."""
        if parent["left_out"]:
            return False
        job = parent["job"]
        if job is not None and job["status"] not in FINISHED:
            return True
        return state["node"]["id"] in self._children(parent, ("always_nodes", _edge_of(job)))

    def _all_agree(self, parents: list[Entry], state: Entry) -> bool:
        """Return whether all parents lead to a child that needs all of them.

        AWX does not look at those that were canceled or ended with an error.
        """
        ended = ("successful", "failed")
        relevant = [one for one in parents if one["job"] and one["job"]["status"] in ended]
        return all(self._leads_to(parent, state) for parent in relevant)

    def _find_ready(self, states: dict[int, Entry]) -> list[Entry]:
        """Return the nodes to start now: those that a path of finished nodes leads to."""
        ready: list[Entry] = []
        todo = [state for state in states.values() if not self._parents(states, state)]
        seen: set[int] = set()
        for state in todo:
            key = state["node"]["id"]
            if key in seen or state["left_out"]:
                continue
            seen.add(key)
            if state["job"] is None and state["node"]["unified_job_template"] is not None:
                if self._is_ready(states, state):
                    ready.append(state)
            elif _is_over(state):
                edges = ("always_nodes", _edge_of(state["job"]))
                todo += [states[child] for child in sorted(self._children(state, edges))]
        return ready

    def _is_ready(self, states: dict[int, Entry], state: Entry) -> bool:
        parents = self._parents(states, state)
        if not all(_is_over(parent) for parent in parents):
            return False
        converges = state["node"]["all_parents_must_converge"]
        return not converges or self._all_agree(parents, state)

    def _parents(self, states: dict[int, Entry], state: Entry) -> list[Entry]:
        key = state["node"]["id"]
        return [parent for parent in states.values() if key in self._children(parent, EDGES)]

    def _children(self, state: Entry, edges: t.Iterable[str]) -> set[int]:
        key = state["node"]["id"]
        return {child for edge in edges for child in self._store.linked(key, edge)}

    def _start(self, workflow: Entry, states: dict[int, Entry], state: Entry) -> None:
        node = state["node"]
        for parent in self._parents(states, state):
            state["artifacts"] |= parent["artifacts"]
            state["artifacts"] |= (parent["job"] or {}).get("artifacts", {})
        template = self._store.get(node["unified_job_template"])
        if self._store.kind_of(template["id"]) == "workflow_approval_templates":
            state["job"] = self._ask(workflow, template)
            return
        questions = questions_of(template, self._store.surveys.get(template["id"]))
        own = accept(template, questions, node["extra_data"]).variables
        # Not only those that the template asks for, and those of the launch come last.
        given = {**own, **state["artifacts"], **json.loads(workflow["extra_vars"])}
        state["job"] = self.run_job(template, given)

    def _ask(self, workflow: Entry, template: Entry) -> Entry:
        return self._store.add(
            "workflow_approvals",
            {
                "name": template["name"],
                "description": template["description"],
                "timeout": template["timeout"],
                "status": "pending",
                "failed": False,
                "timed_out": False,
                "workflow_approval_template": template["id"],
                "workflow_job": workflow["id"],
                "workflow_job_template": workflow["workflow_job_template"],
                "organization": workflow["organization"],
            },
        )

    def _fails_the_workflow(self, state: Entry) -> bool:
        """Return whether a node failed and nothing follows its failure."""
        if state["left_out"]:
            return False
        if state["job"] and state["job"]["status"] == "successful":
            return False
        return not self._children(state, ("failure_nodes", "always_nodes"))


def _edge_of(job: Entry | None) -> str:
    """Return the edge that the end of a node follows. A node without a template fails."""
    if job and job["status"] == "successful":
        return "success_nodes"
    return "failure_nodes"


def _is_decided(state: Entry) -> bool:
    """Return whether a node was left out, has started, or has nothing to start."""
    started = state["job"] is not None
    return bool(state["left_out"] or started or state["node"]["unified_job_template"] is None)


def _is_over(state: Entry) -> bool:
    if state["left_out"]:
        return True
    if state["job"] is None:
        return state["node"]["unified_job_template"] is None
    return state["job"]["status"] in FINISHED
