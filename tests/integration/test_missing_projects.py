"""Servers and allocations of projects that Keystone has deleted, and what projects get back."""

import json
import typing as t

import pytest

from .support import Ansible, Placement
from .world import NOBODY, World

OWN_CLOUD = True
pytestmark = pytest.mark.long


def detect(ansible: Ansible, **options: t.Any) -> dict[str, t.Any]:
    dest = ansible.folder / "findings.json"
    ansible.direct(
        "orphan_detect", dest=str(dest), **{"min_age": "0", "unknown_min_age": "0", **options}
    )
    document: dict[str, t.Any] = json.loads(dest.read_text(encoding="utf-8"))
    assert document["summary"]["coverage"]["unread"] == []
    return document


def get_missing(document: dict[str, t.Any]) -> dict[str, dict[str, t.Any]]:
    """Return the entries of this kind, by project."""
    entries = [*document["findings"], *document["undecided"]]
    return {
        entry["id"].partition("/")[2]: entry
        for entry in entries
        if entry["kind"] == "missing_project"
    }


def boot_in_doomed_project(world: World, name: str) -> tuple[str, str]:
    """Boot a server in a new project, delete the project, and return both uuids."""
    world.assign("admin", name, "admin")
    server = world.boot("compute-1", project=name)
    must = world.cloud.session.must
    (project,) = must("keystone", "GET", f"/v3/projects?name={name}")["projects"]
    must("keystone", "DELETE", f"/v3/projects/{project['id']}")
    return server, project["id"]


def test_live_server_of_a_deleted_project_is_found_when_it_is_asked_for(
    ansible: Ansible, world: World
) -> None:
    server, project = boot_in_doomed_project(world, "doomed")

    # The listings show the server to be in order, so that a default run does not ask for it.
    assert get_missing(detect(ansible)) == {}
    found = get_missing(detect(ansible, kinds=["missing_project"]))
    assert list(found) == [project]
    entry = found[project]
    assert entry["verdict"] == "drifted" and entry["change"] is None
    assert server in entry["reason"]
    assert f"--all-projects --project {project}" in entry["reason"]
    assert get_missing(detect(ansible, kinds=["missing_project"], projects=["demo"])) == {}


def test_candidate_of_a_deleted_project_is_found_in_every_run(
    ansible: Ansible, world: World
) -> None:
    server, project = boot_in_doomed_project(world, "doomed-too")
    world.claim_also(server, "compute-2")

    document = detect(ansible)
    assert list(get_missing(document)) == [project]
    (extra,) = [entry for entry in document["findings"] if entry["kind"] == "extra_host"]
    assert extra["consumer"] == server
    quota = document["summary"]["stranded"]["quota"][project]
    assert (quota["name"], quota["exists"], quota["consumers"]) == ("", False, 1)
    assert quota["resource_classes"] == {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
    # Of another domain as well.
    must = world.cloud.session.must
    domain = must("keystone", "POST", "/v3/domains", {"domain": {"name": "elsewhere"}})["domain"]
    other = {"name": "other", "domain_id": domain["id"]}
    must("keystone", "POST", "/v3/projects", {"project": other})
    assert list(get_missing(detect(ansible))) == [project]


def test_projects_are_named_beside_the_quota_that_they_get_back(
    ansible: Ansible, world: World
) -> None:
    server = world.boot("compute-3")
    world.claim_also(server, "compute-4")

    run = ansible.playbook("detect_orphans", variables={"orphan_cleanup_consumers": [server]})
    assert run.status == 0, run.output
    (quota,) = run.read("findings.json")["summary"]["stranded"]["quota"].values()
    assert (quota["name"], quota["cores"], quota["ram_mib"]) == ("demo", 1, 512)
    assert "Quota to get" in run.told and "): 1 VCPU, 512 MiB, 1 GiB disk" in run.told


def test_owner_of_a_server_is_that_of_nova(
    ansible: Ansible, world: World, placement: Placement
) -> None:
    """Placement does not know who owns a server from before Rocky, or one that was healed."""
    server = world.boot("compute-1")
    held = world.disown(server)

    def find(**options: t.Any) -> list[dict[str, t.Any]]:
        entries = detect(ansible, **options)["findings"]
        return [entry for entry in entries if entry["consumer"] == server]

    # The listings show it to be in order.
    (entry,) = find()
    assert (entry["kind"], entry["project"]) == ("wrong_owner", held.project)
    assert entry["change"]["after"]["project_id"] == held.project
    # Neither is it a server of a project that Keystone does not have, nor of another one.
    assert get_missing(detect(ansible, consumers=[server])) == {}
    assert (len(find(projects=["demo"])), find(projects=["admin"])) == (1, [])

    world.claim_also(server, "compute-2")
    document = detect(ansible, consumers=[server])
    assert [entry["kind"] for entry in document["findings"]] == ["extra_host"]
    stranded = document["summary"]["stranded"]
    assert list(stranded["projects"]) == [held.project]
    cores = {project: quota["cores"] for project, quota in stranded["quota"].items()}
    assert cores == {held.project: 0, NOBODY: 1}

    def count(project: str) -> int:
        usages: dict[str, int] = placement.get(f"/usages?project_id={project}", "1.28")["usages"]
        return usages.get("VCPU", 0)

    before = [count(held.project), count(NOBODY)]
    variables = {"orphan_cleanup_min_age": 0, "orphan_cleanup_consumers": [server]}
    run = ansible.playbook("cleanup_orphans", variables=variables)
    assert run.outcome(server)["outcome"] == "reduced"
    # That is what Nova counts, with either quota driver.
    assert [count(held.project), count(NOBODY)] == [before[0], before[1] - 1]
    chosen = {"orphan_cleanup_remediate_kinds": ["wrong_owner"], **variables}
    run = ansible.playbook("cleanup_orphans", variables=chosen)
    assert run.outcome(server)["outcome"] == "rewritten"
    assert [count(held.project), count(NOBODY)] == [before[0] + 1, before[1] - 2]
    assert find() == []
