"""Only what was named is read, and only what is selected may be changed."""

import json
import typing as t
from pathlib import Path

import pytest

from .strays import Strays
from .support import Ansible, Minicloud, Placement, long

OWN_CLOUD = True
pytestmark = pytest.mark.long
SCENARIOS = (
    "healthy",
    "deleted_server",
    "evacuated_source",
    "extra_host",
    "wrong_owner",
    "wrong_amount",
    "missing_allocation",
)
# A consumer that neither Placement nor Nova has ever had.
NOBODY = "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"
YOUNG = {"min_age": "0", "unknown_min_age": "0"}


@pytest.fixture(scope="module", autouse=True)
def _made(minicloud: Minicloud) -> None:
    """Create the scenarios again: other tests may have cleaned up."""
    minicloud.run("scenario", "--again", *SCENARIOS)


def _found(ansible: Ansible, **options: t.Any) -> set[tuple[str, str]]:
    """Return the kinds and consumers of a detection's findings."""
    result = ansible.module("orphan_detect", **YOUNG, **options)
    assert not result["failed"], result.get("msg")
    return {(entry["kind"], entry["consumer"]) for entry in result["findings"]}


def _server(minicloud: Minicloud, scenario: str) -> str:
    return t.cast("str", minicloud.truth(scenario)["server"])


def _host(minicloud: Minicloud, scenario: str) -> str:
    """Return the host on which the orphan of a scenario has its allocation."""
    return next(
        allocation["provider_name"]
        for allocation in minicloud.truth(scenario)["allocations"]
        if allocation["truth"] == "orphaned"
    )


def test_named_host_is_examined_closely_and_others_are_not(
    ansible: Ansible, minicloud: Minicloud, placement: Placement
) -> None:
    name = _host(minicloud, "deleted_server")
    holders = set(
        placement.get(f"/resource_providers/{placement.providers()[name]}/allocations")[
            "allocations"
        ]
    )
    result = ansible.module("orphan_detect", **YOUNG, hosts=[name])

    coverage = result["summary"]["coverage"]
    found = {entry["consumer"] for entry in result["findings"] if entry["consumer"]}
    assert _server(minicloud, "deleted_server") in found
    assert found <= holders
    assert (coverage["consumers"], coverage["looked_at_closely"], coverage["complete"]) == (
        len(holders),
        len(holders),
        True,
    )


def test_host_can_be_named_by_its_uuid(
    ansible: Ansible, minicloud: Minicloud, placement: Placement
) -> None:
    uuid = placement.providers()[_host(minicloud, "evacuated_source")]

    assert ("evacuated_source", _server(minicloud, "evacuated_source")) in _found(
        ansible, hosts=[uuid]
    )


def test_named_host_shows_wrong_owners_too(ansible: Ansible, minicloud: Minicloud) -> None:
    allocation = minicloud.truth("wrong_owner")["allocations"][0]

    assert ("wrong_owner", allocation["consumer"]) in _found(
        ansible, hosts=[allocation["provider_name"]]
    )


@pytest.mark.parametrize("kind", ["wrong_owner", long("wrong_amount")])
def test_a_kind_that_may_be_changed_is_searched(
    ansible: Ansible, minicloud: Minicloud, kind: str
) -> None:
    variables = {
        "orphan_cleanup_remediate_kinds": [kind],
        "orphan_cleanup_min_age": 0,
        "orphan_cleanup_max_share": 1,
    }

    run = ansible.playbook("cleanup_orphans", "--check", variables=variables)

    assert run.status == 0, run.output
    plan = json.loads((run.folder / "orphan-cleanup" / "plan.json").read_text())
    changes = {(step["kind"], step["consumer"]) for step in plan["changes"]}
    assert (kind, _server(minicloud, kind)) in changes, run.output
    assert {name for name, _consumer in changes} == {kind}


def test_named_consumers_are_the_only_ones_examined(ansible: Ansible, minicloud: Minicloud) -> None:
    named = [
        _server(minicloud, scenario)
        for scenario in ("extra_host", "missing_allocation", "wrong_amount", "healthy")
    ]

    assert _found(ansible, consumers=named) == {
        ("extra_host", named[0]),
        ("missing_allocation", named[1]),
        ("wrong_amount", named[2]),
    }


@pytest.mark.long
def test_project_filter_uses_the_project_of_the_allocation(
    ansible: Ansible, minicloud: Minicloud, placement: Placement, connection: t.Any
) -> None:
    server = _server(minicloud, "deleted_server")
    project = placement.allocation(server)["project_id"]

    assert ("deleted_server", server) in _found(ansible, projects=[project])
    empty = connection.identity.create_project(name="empty", domain_id="default")
    assert not any(consumer for _kind, consumer in _found(ansible, projects=["empty"]))
    assert _found(ansible, projects=["empty"]) == _found(ansible, projects=[empty.id])


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("hosts", "nonesuch"),
        ("projects", "nonesuch"),
        ("projects", "0" * 32),
        ("consumers", NOBODY),
    ],
)
def test_scope_that_names_nothing_is_refused(ansible: Ansible, option: str, name: str) -> None:
    result = ansible.direct("orphan_detect", **YOUNG, **{option: [name]})

    assert result["reason_id"] == "invalid_input"
    assert result["msg"].startswith(f"{option}: ") and name in result["msg"]


def test_unknown_consumer_is_accepted_if_the_user_says_so(ansible: Ansible) -> None:
    result = ansible.direct(
        "orphan_detect", **YOUNG, consumers=[NOBODY], allow_unknown_consumers=True
    )

    assert result["findings"] == []


@pytest.mark.long
def test_consumer_that_an_earlier_run_removed_is_known(
    ansible: Ansible, few: Strays, tmp_path: Path
) -> None:
    """Nova has never known it, and Placement has forgotten it."""
    few.claim()
    scope = {"consumers": few.consumers, "dest": str(tmp_path / "findings.json")}
    first = ansible.direct("orphan_detect", **YOUNG, **scope)
    assert len(first["findings"]) == len(few.consumers)
    few.release()

    for _run in range(2):
        assert ansible.direct("orphan_detect", **YOUNG, **scope)["findings"] == []


@pytest.mark.long
def test_capacity_is_read_when_the_kind_is_named(ansible: Ansible, tmp_path: Path) -> None:
    ansible.module(
        "orphan_detect", **YOUNG, kinds=["capacity_mismatch"], dest=str(tmp_path / "all.json")
    )
    result = ansible.module("orphan_detect", **YOUNG, kinds=["capacity_mismatch"])

    told = result["summary"]["capacity"]["VCPU"]
    assert told["total"] > 0 and told["capacity"] >= told["used"] > 0


def test_exceeded_and_mismatched_capacity_is_reported(
    ansible: Ansible, minicloud: Minicloud, placement: Placement
) -> None:
    host = _host(minicloud, "deleted_server")
    path = f"/resource_providers/{placement.providers()[host]}/inventories/VCPU"
    stock = placement.get(path)
    placement.change("PUT", path, {**stock, "total": 1, "max_unit": 1, "allocation_ratio": 1.0})

    (entry,) = ansible.module("orphan_detect", **YOUNG, hosts=[host], kinds=["capacity_mismatch"])[
        "findings"
    ]

    assert "2 VCPU" in entry["reason"] and "the hypervisor reports" in entry["reason"]
    assert entry["change"] is None
    generation = placement.get(path)["resource_provider_generation"]
    placement.change("PUT", path, {**stock, "resource_provider_generation": generation})


@pytest.mark.long
def test_selection_limits_the_changes(
    ansible: Ansible, minicloud: Minicloud, placement: Placement
) -> None:
    """The hosts scope limits this to what this test created."""
    minicloud.run("scenario", "--again", "deleted_server")
    server = _server(minicloud, "deleted_server")
    before = placement.everything()

    run = ansible.playbook(
        "cleanup_orphans", variables={"orphan_cleanup_select": f"[?consumer=='{server}'].id"}
    )

    after = placement.everything()
    assert run.status == 0, run.output
    assert set(before) - set(after) == {server}
    assert {consumer: held for consumer, held in before.items() if consumer != server} == after


@pytest.mark.long
def test_empty_selection_changes_nothing_and_warns(ansible: Ansible, placement: Placement) -> None:
    before = placement.everything()

    run = ansible.playbook(
        "cleanup_orphans", variables={"orphan_cleanup_select": "[?kind=='nonesuch']"}
    )

    assert run.status == 0, run.output
    assert "select returns none" in run.output
    assert placement.everything() == before


def test_cleanup_of_named_hosts_leaves_all_others_unchanged(
    ansible: Ansible, minicloud: Minicloud, placement: Placement
) -> None:
    before = placement.everything()

    run = ansible.playbook(
        "cleanup_orphans",
        variables={"orphan_cleanup_hosts": [_host(minicloud, "evacuated_source")]},
    )

    after = placement.everything()
    server = _server(minicloud, "evacuated_source")
    assert run.status == 0, run.output
    assert {consumer for consumer in before if before[consumer] != after.get(consumer)} == {server}
    assert set(before[server]) - set(after[server]) == {
        placement.providers()[_host(minicloud, "evacuated_source")]
    }
