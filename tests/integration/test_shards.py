"""The shards of a cloud together do what one run over all of it does, and nothing twice.

They find, plan and change.
"""

import collections
import json
import typing as t
from pathlib import Path

import pytest

from ...plugins.module_utils._core.models.kinds import ORPHAN_KINDS
from ...plugins.module_utils._core.models.snapshot import Shard
from .interposer import interposed
from .support import Ansible, Minicloud, Placement, Run

OWN_CLOUD = True
COUNT = 3
# Orphans of one tree and of several, on live and deleted hosts, on Ironic's nodes and on a shared
# disk; drift, and lookalikes.
SCENARIOS = (
    "healthy",
    "shared_disk",
    "deleted_server",
    "purged_server",
    "nested_child",
    "ended_migration_pool",
    "evacuated_source",
    "extra_host",
    "unconfirmed_resize",
    "unreverted_allocation",
    "lost_mapping_extra_host",
    "misplaced_allocation",
    "missing_allocation",
    "wrong_amount",
    "ironic_nodes",
    "foreign_consumer",
    "orphaned_provider",
    "stale_service",
    "error_without_host",
)
AT_ONCE = {
    "min_age": "0",
    "unknown_min_age": "0",
    "unconfirmed_min_age": "0",
    "stuck_min_age": "0",
    "stale_min_age": "0",
}
PARTS = ("findings", "protected", "undecided")
ROLE = {
    "orphan_cleanup_remediate_kinds": [kind.name for kind in ORPHAN_KINDS],
    "orphan_cleanup_max_share": 1,
    "orphan_cleanup_max_changes": 1000,
}


@pytest.fixture(scope="module", autouse=True)
def _made(minicloud: Minicloud) -> None:
    minicloud.scenario(*SCENARIOS)


@pytest.fixture
def readings(
    ansible: Ansible, minicloud: Minicloud, tmp_path: Path
) -> tuple[list[dict[str, t.Any]], list[list[str]]]:
    """The findings of one run and then of each shard, and the requests that each of these sent."""
    found, requests = [], []
    with interposed(ansible, minicloud) as wires:
        for shard in (None, *(f"{number}/{COUNT}" for number in range(1, COUNT + 1))):
            dest = tmp_path / "found.json"
            result = ansible.direct(
                "orphan_detect", dest=str(dest), **AT_ONCE, **({"shard": shard} if shard else {})
            )
            assert not result["failed"], result.get("msg")
            found.append(json.loads(dest.read_text()))
            requests.append([*wires.placement.requests, *wires.nova.requests])
            wires.placement.clear()
            wires.nova.clear()
    return found, requests


def _told(found: dict[str, t.Any]) -> dict[str, tuple[t.Any, ...]]:
    """Return the verdicts by id, without how long something has lasted.

    Capacity is only read in passing, unless it is requested.
    """
    entries = [
        (part, entry)
        for part in PARTS
        for entry in found[part]
        if entry["kind"] != "capacity_mismatch"
    ]
    told = {
        entry["id"]: (
            part,
            entry["verdict"],
            entry["reason"] if entry["consumer"] else "",
            entry["change"],
            entry["providers"],
        )
        for part, entry in entries
    }
    assert len(told) == len(entries)
    return told


@pytest.mark.long
def test_shards_together_find_what_one_run_finds(
    readings: tuple[list[dict[str, t.Any]], list[list[str]]], placement: Placement
) -> None:
    (whole, *parts), (all_requests, *requests) = readings
    expected, found = _told(whole), [_told(part) for part in parts]
    times = collections.Counter(name for part in found for name in part)

    assert {name: told for name, told in times.items() if told > 1} == {}
    assert {name: told for part in found for name, told in part.items()} == expected
    kinds = {name.partition("/")[0] for name in expected}
    assert kinds >= {
        "deleted_server",
        "unknown_consumer",
        "ended_migration",
        "evacuated_source",
        "extra_host",
        "unreverted_allocation",
    }
    assert kinds >= {
        "missing_allocation",
        "wrong_amount",
        "misplaced_allocation",
        "unconfirmed_resize",
        "stale_service",
        "orphaned_provider",
        "unproven",
    }
    assert sum(bool(part) for part in found) == COUNT, (
        "no shard is without findings here, or this says little"
    )
    for number, part in enumerate(parts, 1):
        assert part["scope"]["shard"] == {"number": number, "count": COUNT}
    # How many servers there are is nova-compute's own figure, which changes between two readings.
    for counted in ("providers", "hypervisors"):
        assert (
            sum(part["summary"]["coverage"][counted] for part in parts)
            == whole["summary"]["coverage"][counted]
        )

    # Each provider's allocations are listed by the shard that has its root; only shared providers
    # are listed by all.
    sharing = {
        known["uuid"]
        for known in placement.get("/resource_providers?required=MISC_SHARES_VIA_AGGREGATE")[
            "resource_providers"
        ]
    }
    roots = {
        known["uuid"]: known["root_provider_uuid"]
        for known in placement.get("/resource_providers")["resource_providers"]
    }
    assert _listed(all_requests) == set(roots)
    for number, asked in enumerate(requests, 1):
        shard = Shard(number, COUNT)
        assert _listed(asked) == sharing | {
            uuid for uuid, root in roots.items() if shard.contains(root)
        }


def _listed(requests: list[str]) -> set[str]:
    return {
        line.split("/")[2]
        for line in requests
        if line.startswith("GET /resource_providers/") and line.endswith("/allocations")
    }


@pytest.mark.long
def test_capacity_is_reported_once_where_requested(ansible: Ansible) -> None:
    whole = ansible.direct("orphan_detect", kinds=["capacity_mismatch"], **AT_ONCE)
    parts = [
        ansible.direct("orphan_detect", kinds=["capacity_mismatch"], shard=f"{number}/2", **AT_ONCE)
        for number in (1, 2)
    ]

    assert sorted(entry["id"] for part in parts for entry in part["findings"]) == sorted(
        entry["id"] for entry in whole["findings"]
    )
    for amount in ("total", "used"):
        assert (
            sum(part["summary"]["capacity"]["VCPU"][amount] for part in parts)
            == whole["summary"]["capacity"]["VCPU"][amount]
        )


@pytest.mark.long
def test_shards_together_change_what_one_run_changes(
    ansible: Ansible, placement: Placement, tmp_path: Path
) -> None:
    """The shards are inventory hosts of one run, each with a folder of its own.

    The limit is divided among them.
    """
    before = placement.everything()
    checked = ansible.playbook("cleanup_orphans", "--check", variables=ROLE)
    planned = {change["finding"]: change for change in checked.read("plan.json")["changes"]}
    hosts = {
        f"part {number}": {"orphan_cleanup_shard": f"{number}/{COUNT}"}
        for number in range(1, COUNT + 1)
    }
    inventory = tmp_path / "inventory.json"
    inventory.write_text(json.dumps({"clouds": {"hosts": hosts}}))

    few = _clouds(ansible, inventory, orphan_cleanup_max_changes=COUNT - 1)
    after_few = placement.everything()
    run = _clouds(ansible, inventory)

    assert few.status != 0
    assert f"of which shard {COUNT}/{COUNT} may make 0" in few.told
    assert _changed(before, after_few) <= {change["consumer"] for change in planned.values()}
    assert run.status == 0, run.output
    folders = sorted(path.parent for path in (run.folder / "orphan-cleanup").glob("*/plan.json"))
    assert [folder.name.rpartition("-")[0] for folder in folders] == [
        f"part_{number}" for number in range(1, COUNT + 1)
    ]
    plans = [json.loads((folder / "plan.json").read_text()) for folder in folders]
    left = {
        name: change
        for name, change in planned.items()
        if placement.held(change["consumer"]) == _held(change["after"])
    }
    assert left == planned, "each planned change was made"
    assert [plan["shard"]["number"] for plan in plans] == [1, 2, 3]
    summary = run.read("summary.json")
    assert summary["complete"] and summary["missing_shards"] == []
    assert summary["totals"]["tally"]["failed"] == 0
    assert _changed(before, placement.everything()) == {
        change["consumer"] for change in planned.values()
    }


@pytest.mark.long
def test_incomplete_set_of_shards_names_the_missing_ones(ansible: Ansible, tmp_path: Path) -> None:
    """This is like one slice of a job.

    --limit would exclude localhost, and the summary is still printed.
    """
    inventory = tmp_path / "inventory.json"
    inventory.write_text(
        json.dumps(
            {
                "clouds": {
                    "hosts": {
                        f"part-{number}": {"orphan_cleanup_shard": f"{number}/2"}
                        for number in (1, 2)
                    }
                }
            }
        )
    )

    run = ansible.playbook(
        "detect_clouds", "--inventory", str(inventory), "--limit", "part-2", variables=ROLE
    )

    assert run.status == 0, run.output
    assert [row["name"] for row in run.read("summary.json")["runs"]] == ["part-2"]
    assert run.read("summary.json")["missing_shards"][0]["shards"] == ["1/2"]
    assert (run.folder / "orphan-cleanup" / "part-2" / "findings.json").exists()


def _clouds(ansible: Ansible, inventory: Path, **variables: t.Any) -> Run:
    return ansible.playbook(
        "cleanup_clouds", "--inventory", str(inventory), variables={**ROLE, **variables}
    )


def _changed(before: dict[str, t.Any], after: dict[str, t.Any]) -> set[str]:
    return {consumer for consumer in before | after if before.get(consumer) != after.get(consumer)}


def _held(document: dict[str, t.Any]) -> dict[str, t.Any]:
    return {provider: share["resources"] for provider, share in document["allocations"].items()}
