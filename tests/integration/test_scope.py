# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is looked at is what was named, and a selection is what may be changed.

Triage sees what it says it sees.
"""

from __future__ import annotations

import typing as t

import pytest

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.osops.placement.tests.integration.support import (
        Ansible,
        Minicloud,
        Placement,
    )

OWN_CLOUD = True
SCENARIOS = (
    "healthy",
    "deleted_server",
    "evacuated_source",
    "extra_host",
    "wrong_owner",
    "wrong_amount",
    "missing_allocation",
)
YOUNG = {"min_age": "0", "unknown_min_age": "0"}


@pytest.fixture(scope="module", autouse=True)
def _made(minicloud: Minicloud) -> None:
    """Made anew: other tests may have cleaned up."""
    minicloud.run("scenario", "--again", *SCENARIOS)


def _found(ansible: Ansible, **options: t.Any) -> set[tuple[str, str]]:
    """The kinds and consumers of a detection's findings."""
    result = ansible.module("orphan_detect", **YOUNG, **options)
    assert not result["failed"], result.get("msg")
    return {(entry["kind"], entry["consumer"]) for entry in result["findings"]}


def _server(minicloud: Minicloud, scenario: str) -> str:
    return t.cast("str", minicloud.truth(scenario)["server"])


def _host(minicloud: Minicloud, scenario: str) -> str:
    """The host that the orphan of a scenario claims."""
    return next(
        share["provider_name"]
        for share in minicloud.truth(scenario)["shares"]
        if share["truth"] == "orphaned"
    )


def test_a_named_host_is_looked_at_closely_and_others_are_not(
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


def test_a_host_can_be_named_by_its_uuid(
    ansible: Ansible, minicloud: Minicloud, placement: Placement
) -> None:
    uuid = placement.providers()[_host(minicloud, "evacuated_source")]

    assert ("evacuated_source", _server(minicloud, "evacuated_source")) in _found(
        ansible, hosts=[uuid]
    )


def test_on_a_named_host_also_wrong_owners_are_found(
    ansible: Ansible, minicloud: Minicloud
) -> None:
    share = minicloud.truth("wrong_owner")["shares"][0]

    assert ("wrong_owner", share["consumer"]) in _found(ansible, hosts=[share["provider_name"]])


def test_an_unknown_host_is_refused(ansible: Ansible) -> None:
    result = ansible.module("orphan_detect", hosts=["nonesuch"])

    assert (
        result["failed"]
        and "hosts names nonesuch, which neither Nova nor Placement knows" in result["msg"]
    )


def test_named_consumers_are_looked_at_and_no_others(
    ansible: Ansible, minicloud: Minicloud
) -> None:
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
def test_a_project_is_that_of_the_claim(
    ansible: Ansible, minicloud: Minicloud, placement: Placement
) -> None:
    server = _server(minicloud, "deleted_server")
    project = placement.allocation(server)["project_id"]

    assert ("deleted_server", server) in _found(ansible, projects=[project])
    assert not any(
        consumer
        for _kind, consumer in _found(ansible, projects=["00000000000000000000000000000000"])
    )


@pytest.mark.long
def test_wrong_owners_are_looked_for_everywhere_when_they_are_named(
    ansible: Ansible, minicloud: Minicloud
) -> None:
    found = _found(ansible, kinds=["wrong_owner"])

    assert ("wrong_owner", _server(minicloud, "wrong_owner")) in found
    assert {kind for kind, _consumer in found} == {"wrong_owner"}


@pytest.mark.long
def test_capacity_is_read_when_it_is_named(ansible: Ansible, tmp_path: Path) -> None:
    ansible.module(
        "orphan_detect", **YOUNG, kinds=["capacity_mismatch"], dest=str(tmp_path / "all.json")
    )
    result = ansible.module("orphan_detect", **YOUNG, kinds=["capacity_mismatch"])

    told = result["summary"]["capacity"]["VCPU"]
    assert told["total"] > 0 and told["capacity"] >= told["used"] > 0


def test_more_than_there_is_and_other_than_the_host_reports_is_told(
    ansible: Ansible, minicloud: Minicloud, placement: Placement
) -> None:
    host = _host(minicloud, "deleted_server")
    path = f"/resource_providers/{placement.providers()[host]}/inventories/VCPU"
    stock = placement.get(path)
    placement.change("PUT", path, {**stock, "total": 1, "max_unit": 1, "allocation_ratio": 1.0})

    (entry,) = ansible.module("orphan_detect", **YOUNG, hosts=[host], kinds=["capacity_mismatch"])[
        "findings"
    ]

    assert "2 VCPU are claimed of a capacity of 1" in entry["reason"]
    assert "and the hypervisor reports" in entry["reason"]
    assert entry["change"] is None
    generation = placement.get(path)["resource_provider_generation"]
    placement.change("PUT", path, {**stock, "resource_provider_generation": generation})


def test_triage_sees_what_changes_the_figures_of_a_host(
    ansible: Ansible, minicloud: Minicloud
) -> None:
    found = _found(ansible, mode="triage")

    for scenario in ("deleted_server", "evacuated_source", "extra_host", "missing_allocation"):
        assert (scenario, _server(minicloud, scenario)) in found


def test_triage_of_named_hosts_is_refused(ansible: Ansible) -> None:
    result = ansible.module("orphan_detect", mode="triage", hosts=["compute-1"])

    assert result["failed"] and "mode=triage is for whole clouds" in result["msg"]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("[?kind==", "select is not a valid JMESPath expression"),
        ("[].reason", "select must return findings or their ids"),
        ("sum([].kind)", "select cannot be applied to the findings"),
    ],
)
def test_a_wrong_selection_is_refused(ansible: Ansible, expression: str, message: str) -> None:
    result = ansible.module("orphan_detect", select=expression, **YOUNG)

    assert result["failed"] and message in result["msg"]


@pytest.mark.long
def test_only_what_is_selected_is_changed(
    ansible: Ansible, minicloud: Minicloud, placement: Placement
) -> None:
    """The hosts scope keeps this to what this test made."""
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
def test_an_empty_selection_changes_nothing_and_says_so(
    ansible: Ansible, placement: Placement
) -> None:
    before = placement.everything()

    run = ansible.playbook(
        "cleanup_orphans", variables={"orphan_cleanup_select": "[?kind=='nonesuch']"}
    )

    assert run.status == 0, run.output
    assert "select matches none of the findings" in run.output
    assert placement.everything() == before


def test_a_clean_up_of_named_hosts_leaves_all_others(
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
