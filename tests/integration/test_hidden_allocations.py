"""Allocations whose consumer has lost its record: no listing has them."""

import json
import subprocess
import typing as t
import uuid

import pytest
from minicloud_ctl import holdings, servers, services

from .support import Ansible, Placement
from .world import World

pytestmark = pytest.mark.long


def detect(ansible: Ansible, **options: t.Any) -> dict[str, tuple[str, bool]]:
    """Return by ID the reason of each entry, and whether it would be changed."""
    dest = ansible.folder / "findings.json"
    ansible.direct(
        "orphan_detect", dest=str(dest), **{"min_age": "0", "unknown_min_age": "0", **options}
    )
    found = json.loads(dest.read_text(encoding="utf-8"))
    assert found["summary"]["coverage"]["unread"] == []
    entries = (*found["findings"], *found["undecided"])
    return {entry["id"]: (entry["reason_id"], bool(entry["change"])) for entry in entries}


def test_hidden_allocations_are_reported_and_judged_once_they_have_records(
    ansible: Ansible, world: World, placement: Placement
) -> None:
    live, dead = world.boot("compute-1"), world.boot("compute-2")
    stray = str(uuid.uuid4())
    held = holdings.of(world.cloud, dead)
    servers.delete(world.cloud, dead)
    holdings.await_providers(world.cloud, dead)
    holdings.write_back(world.cloud, dead, held)
    eight = {"VCPU": {"total": 8}}
    gone = placement.create_provider(f"gone-{dead}", eight, traits=["COMPUTE_NODE"])
    child = placement.create_provider(f"child-{dead}", eight, parent=gone)
    holdings.put(world.cloud, stray, {child: {"VCPU": 1}}, held)
    for consumer in (live, dead, stray):
        world.sql("placement", "DELETE FROM consumers WHERE uuid = ?", consumer)
    hidden = {
        f"hidden_allocation/{world.provider('compute-1')}": ("in_use_but_not_listed", False),
        f"hidden_allocation/{world.provider('compute-2')}": ("in_use_but_not_listed", False),
        f"hidden_allocation/{child}": ("in_use_but_not_listed", False),
        f"missing_allocation/{live}": ("allocation_may_be_hidden", False),
        f"orphaned_provider/{gone}": ("tree_has_hidden_allocation", False),
    }
    # The second reading is of what has changed.
    memory = {"mode": "incremental", "memory": str(ansible.folder / "memory.json")}
    for _run in range(2):
        with world.one_region():
            found = detect(ansible, **memory)
        assert found.items() >= hidden.items()
        assert not {f"deleted_server/{dead}", f"unknown_consumer/{stray}"} & set(found)

    # What the finding says.
    config = ["--config-file", str(world.paths.etc / "placement" / "placement.conf")]
    command = [world.paths.program("placement-manage"), *config, "db", "online_data_migrations"]
    subprocess.run(command, env=services.environment(world.paths, {}), check=True)
    kinds = ["deleted_server", "wrong_owner"]
    found = detect(ansible, kinds=[*kinds, "hidden_allocation"])
    assert found[f"deleted_server/{dead}"] == ("server_deleted", True)
    assert found[f"wrong_owner/{live}"] == ("owner_differs", True)
    assert not any(entry.startswith("hidden_allocation/") for entry in found)
    chosen = {"orphan_cleanup_remediate_kinds": kinds, "orphan_cleanup_consumers": [dead, live]}
    ansible.playbook("cleanup_orphans", variables=chosen)
    assert placement.held(dead) == {}
    assert placement.allocation(live)["project_id"] == held.project
    world.hold(stray, {})
    for provider in (child, gone):
        placement.change("DELETE", f"/resource_providers/{provider}")
