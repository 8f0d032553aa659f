"""Servers and allocations of projects that Keystone has deleted, and what projects get back."""

import json
import typing as t

import pytest

from .support import Ansible
from .world import World

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
    assert quota == {"name": "", "exists": False, "consumers": 1, "cores": 1, "ram_mib": 512}
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
    assert "Quota to get" in run.told and "): 1 core, 512 MiB" in run.told
